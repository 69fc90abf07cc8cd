"""Finds the card in a file: tells the containers apart and chooses among the chunks of a PNG."""

from __future__ import annotations

from typing import Any

from services.cards import carried, charx, png
from services.cards.assets import settle
from services.cards.card import Card, CardFile, CardWarning, Findings
from services.cards.carried import KEYWORDS, USUAL_KEYWORDS
from services.cards.media import JPEG, media_type_of
from services.cards.normalising import normalise
from services.cards.payload import begins_json, object_in_chunk, object_in_json
from services.cards.refusals import (
    MAX_CHUNKS_TRIED,
    MAX_FILE_BYTES,
    refusal,
)
from services.errors import Invalid

# With one of these the next chunk is tried; any other refusal is about a limit and final.
_UNREADABLE = frozenset({"BROKEN_CARD", "ENCRYPTED_CARD", "NOT_A_CARD", "CARD_NAME_MISSING"})

_OTHER_CONTAINERS = (
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"RIFF", "a RIFF file (such as WebP)"),
    (b"GIF8", "a GIF picture"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
)
# What the YAML cards of text-generation-webui begin with.
_YAML_KEYS = (b"name:", b"char_name:", b"context:", b"greeting:")

# Where a JPEG stands among the files that a CharX is appended to.
_FRONT_PATH = "carrier.jpg"


def read_card(content: bytes) -> Card:
    """Read a character card from the bytes of a file; its name and type play no part.

    Accepted are PNG with a card in a text chunk (`ccv3` before `chara`), JSON, and CharX (a zip
    with `card.json`, or with a PNG card inside; maybe behind a picture), each holding a V1, V2 or
    V3 card. Versions, unknown keys, nulls and wrong spellings never refuse a card; every mend is a
    warning. Raises `Invalid` at ("input", "file") with the codes and limits of docs/cards.md.
    (spec: sillytavern cards, 13)
    """
    if len(content) > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // 1024 // 1024
        raise refusal("CARD_FILE_TOO_LARGE", f"The file is larger than {limit} MiB.")
    if content.startswith(png.SIGNATURE):
        return _read_png(content)
    if begins_json(content):
        found = Findings()
        card = _card("json", object_in_json(content, found), found)
        return _with_files(card, (), {}, None, Findings())
    if charx.is_archive(content):
        return _read_archive(content)
    raise refusal(
        "UNSUPPORTED_CARD_CONTAINER",
        f"The file is {_kind_of(content)}. Accepted are a PNG picture with a character card "
        "inside, a CharX archive and a JSON file, with a V1, V2 or V3 card.",
    )


def _kind_of(content: bytes) -> str:
    if content.lstrip().startswith(_YAML_KEYS):
        return "a YAML file"
    kinds = (name for start, name in _OTHER_CONTAINERS if content.startswith(start))
    return next(kinds, "of an unknown kind")


def _card(
    container: str,
    source: dict[str, Any],
    found: Findings,
    before: tuple[CardWarning, ...] = (),
) -> Card:
    spec, fields = normalise(source, found)
    return Card(container, spec, fields, source, before + found.warnings())


def _with_files(
    card: Card,
    files: tuple[CardFile, ...],
    names: dict[str, str],
    carrier_path: str | None,
    found: Findings,
) -> Card:
    path = "assets" if card.spec == "v1" else "data.assets"
    missing = Findings()
    settle(card.fields, names, carrier_path, missing, path)
    warnings = found.warnings() + card.warnings + missing.warnings()
    return Card(card.container, card.spec, card.fields, card.source, warnings, files)


def _read_png(content: bytes, *, is_inside: bool = False) -> Card:
    texts = png.read_texts(content)
    candidates = sorted(
        (chunk for chunk in texts.chunks if chunk.keyword in KEYWORDS),
        key=lambda chunk: KEYWORDS.index(chunk.keyword),
    )
    trailing = content[texts.end :]
    # An archive may hold itself, so what lies inside one is not opened in turn.
    if not candidates and not is_inside and charx.is_archive(trailing):
        return _read_archive(content)
    card = _chosen(candidates)
    found = Findings()
    if trailing:
        found.add("TRAILING_BYTES", f"{len(trailing):,} bytes after the PNG were ignored.")
    picture = png.without(content, texts, carried.is_of_a_card)
    files = carried.files_in(content, texts, picture, card.fields, found)
    return _with_files(card, files.files, files.names, files.carrier_path, found)


def _chosen(candidates: list[png.TextChunk]) -> Card:
    refusals: list[Invalid] = []
    for place, chunk in enumerate(candidates[:MAX_CHUNKS_TRIED]):
        found = Findings()
        try:
            source = object_in_chunk(png.text_of(chunk), found)
            return _card(
                "png_text", source, found, _warnings_of_choice(candidates, place, refusals)
            )
        except Invalid as error:
            if error.code not in _UNREADABLE:
                raise
            refusals.append(error)
    if candidates and candidates[0].keyword in USUAL_KEYWORDS:
        raise refusals[0]
    raise refusal(
        "NO_CARD",
        "The PNG holds no character card. Sites and picture programs often remove it: take the "
        "file that was first downloaded.",
    )


def _warnings_of_choice(
    candidates: list[png.TextChunk], place: int, refusals: list[Invalid]
) -> tuple[CardWarning, ...]:
    found = Findings()
    chosen = candidates[place].keyword
    if chosen not in USUAL_KEYWORDS:
        found.add("UNUSUAL_KEYWORD", f"The card is in a chunk called {chosen}, not chara or ccv3.")
    for chunk, error in zip(candidates, refusals, strict=False):
        found.add("CHUNK_UNREADABLE", f"A {chunk.keyword} chunk was passed over: {error.message}")
    for chunk in candidates[place + 1 :]:
        message = (
            f"Another card, in a {chunk.keyword} chunk, was ignored: a {chosen} chunk comes first."
        )
        found.add("CHUNK_IGNORED", message)
    return found.warnings()


def _read_archive(content: bytes) -> Card:
    archive = charx.read_archive(content)
    card_json = archive.files.pop(carried.CARD_PATH, None)
    if card_json is None:
        return _card_of_png_inside(archive)
    found = Findings()
    card = _card("charx", object_in_json(card_json, found), found)
    about_the_file = Findings()
    files = _files_of(archive, about_the_file)
    return _with_files(card, files, {file.path: file.path for file in files}, None, about_the_file)


def _files_of(archive: charx.Archive, found: Findings) -> tuple[CardFile, ...]:
    contents = dict(archive.files)
    if media_type_of(archive.front) == JPEG and _FRONT_PATH not in contents:
        contents[_FRONT_PATH] = archive.front
    elif archive.front:
        found.add("LEADING_BYTES", f"{len(archive.front):,} bytes before the archive were ignored.")
    if "module.risum" in contents:
        found.add("MODULE_NOT_READ", "The RisuAI module in the archive is kept, but was not read.")
    usable: dict[str, CardFile] = {}
    for path, content in contents.items():
        if carried.is_usable_path(path, usable):
            usable[path] = CardFile(path, media_type_of(content), content)
        else:
            found.add("ASSET_IGNORED", "A second card.json in the archive was left out.")
    return tuple(usable.values())


def _card_of_png_inside(archive: charx.Archive) -> Card:
    """Return the first card that a PNG in the archive holds; the other files stay beside it."""
    pictures = [
        path
        for path, file in archive.files.items()
        if file.startswith(png.SIGNATURE) and len(file) <= MAX_FILE_BYTES
    ]
    for path in pictures[:MAX_CHUNKS_TRIED]:
        try:
            card = _read_png(archive.files[path], is_inside=True)
        except Invalid as error:
            if error.code not in (*_UNREADABLE, "NO_CARD", "BROKEN_PNG"):
                raise
            continue
        found = Findings()
        found.add("CARD_IN_ARCHIVE", "The card was found in a PNG picture inside the archive.")
        del archive.files[path]
        taken = {file.path for file in card.files}
        others = (file for file in _files_of(archive, found) if file.path not in taken)
        warnings = found.warnings() + card.warnings
        files = (*card.files, *others)
        return Card(card.container, card.spec, card.fields, card.source, warnings, files)
    raise refusal("NO_CARD", "The archive holds neither a card.json nor a PNG with a card inside.")
