"""Finds the card in a file: tells the containers apart and chooses among the chunks of a PNG."""

from __future__ import annotations

from typing import Any

from services.cards import png
from services.cards.card import Card, CardWarning, Findings
from services.cards.normalising import normalise
from services.cards.payload import object_in_chunk, object_in_json, trimmed
from services.cards.refusals import MAX_CHUNKS_TRIED, MAX_FILE_BYTES, refusal
from services.errors import Invalid

# Best first. The two words of the specifications, then what other writers have used.
_USUAL_KEYWORDS = ("ccv3", "chara")
_KEYWORDS = (*_USUAL_KEYWORDS, "chara_card_v3", "ccv2", "character", "charactercard", "card")
_ASSET_KEYWORD = "chara-ext-asset_"

# With one of these the next chunk is tried; any other refusal is about a limit and final.
_UNREADABLE = frozenset({"BROKEN_CARD", "ENCRYPTED_CARD", "NOT_A_CARD", "CARD_NAME_MISSING"})

_OTHER_CONTAINERS = (
    (b"PK", "a zip archive (CharX)"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"RIFF", "a RIFF file (such as WebP)"),
    (b"GIF8", "a GIF picture"),
    (b"Rar!", "a RAR archive"),
)


def read_card(content: bytes) -> Card:
    """Read a character card from the bytes of a file; its name and type play no part.

    Accepted are PNG with a card in a text chunk (`ccv3` before `chara`) and JSON, each holding a
    V1, V2 or V3 card. Versions, unknown keys, nulls and wrong spellings never refuse a card; every
    mend is a warning. Raises `Invalid` at ("input", "file"): CARD_FILE_TOO_LARGE (16 MiB),
    UNSUPPORTED_CARD_CONTAINER, BROKEN_PNG, CARD_TOO_MANY_CHUNKS (10,000), NO_CARD,
    CARD_CHUNK_TOO_LARGE (8 MiB inflated), ENCRYPTED_CARD, BROKEN_CARD, NOT_A_CARD,
    CARD_NAME_MISSING, CARD_TOO_MANY_VALUES (500,000 brackets), CARD_TOO_DEEP (64),
    CARD_TEXT_TOO_LONG (1,000,000 characters), CARD_LIST_TOO_LONG (10,000),
    CARD_TOO_MANY_GREETINGS (500). (spec: sillytavern cards, 13)
    """
    if len(content) > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // 1024 // 1024
        raise refusal("CARD_FILE_TOO_LARGE", f"The file is larger than {limit} MiB.")
    if content.startswith(png.SIGNATURE):
        return _read_png(content)
    if trimmed(content).startswith((b"{", b"[", b"rcc||")):
        found = Findings()
        return _card("json", object_in_json(content, found), found, ())
    known = [name for start, name in _OTHER_CONTAINERS if content.startswith(start)]
    raise refusal(
        "UNSUPPORTED_CARD_CONTAINER",
        f"The file is {known[0] if known else 'of an unknown kind'}. Accepted are a PNG picture "
        "with a character card inside and a JSON file with a V1, V2 or V3 card.",
    )


def _card(
    container: str,
    source: dict[str, Any],
    found: Findings,
    about_the_file: tuple[CardWarning, ...],
) -> Card:
    spec, fields = normalise(source, found)
    return Card(container, spec, fields, source, about_the_file + found.warnings())


def _read_png(content: bytes) -> Card:
    texts = png.read_texts(content)
    candidates = sorted(
        (chunk for chunk in texts.chunks if chunk.keyword in _KEYWORDS),
        key=lambda chunk: _KEYWORDS.index(chunk.keyword),
    )
    about_the_file = _warnings_of_png(texts)
    refusals: list[Invalid] = []
    for place, chunk in enumerate(candidates[:MAX_CHUNKS_TRIED]):
        found = Findings()
        try:
            source = object_in_chunk(png.text_of(chunk), found)
            others = _warnings_of_choice(candidates, place, refusals)
            return _card("png_text", source, found, about_the_file + others)
        except Invalid as error:
            if error.code not in _UNREADABLE:
                raise
            refusals.append(error)
    if candidates and candidates[0].keyword in _USUAL_KEYWORDS:
        raise refusals[0]
    raise refusal(
        "NO_CARD",
        "The PNG holds no character card. Sites and picture programs often remove it: take the "
        "file that was first downloaded.",
    )


def _warnings_of_png(texts: png.PngTexts) -> tuple[CardWarning, ...]:
    found = Findings()
    found.add("PICTURE_NOT_KEPT", "Only the card was read; the picture itself is not kept.")
    if texts.trailing_bytes:
        found.add("TRAILING_BYTES", f"{texts.trailing_bytes:,} bytes after the PNG were ignored.")
    assets = sum(chunk.keyword.startswith(_ASSET_KEYWORD) for chunk in texts.chunks)
    if assets:
        found.add("ASSETS_NOT_KEPT", f"{assets} files inside the PNG (assets) are not kept.")
    return found.warnings()


def _warnings_of_choice(
    candidates: list[png.TextChunk], place: int, refusals: list[Invalid]
) -> tuple[CardWarning, ...]:
    found = Findings()
    chosen = candidates[place].keyword
    if chosen not in _USUAL_KEYWORDS:
        found.add("UNUSUAL_KEYWORD", f"The card is in a chunk called {chosen}, not chara or ccv3.")
    for chunk, error in zip(candidates, refusals, strict=False):
        found.add("CHUNK_UNREADABLE", f"A {chunk.keyword} chunk was passed over: {error.message}")
    for chunk in candidates[place + 1 :]:
        message = (
            f"Another card, in a {chunk.keyword} chunk, was ignored: a {chosen} chunk comes first."
        )
        found.add("CHUNK_IGNORED", message)
    return found.warnings()
