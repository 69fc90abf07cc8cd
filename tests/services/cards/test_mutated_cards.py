"""Whatever comes in, a card or a refusal comes out."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cards import Card, CardTarget, Lorebook, read_card, read_lorebook, write_card
from services.errors import Invalid
from tests.services.cards.making import MINIMAL_FIELDS, chunk, encoded, png, text_chunk, v2, v3

REFUSALS = {
    *("UNSUPPORTED_CARD_CONTAINER", "BROKEN_PNG", "NO_CARD", "BROKEN_CARD", "NOT_A_CARD"),
    *("ENCRYPTED_CARD", "CARD_NAME_MISSING", "CARD_CHUNK_TOO_LARGE", "CARD_TOO_DEEP"),
}


def card_or_refusal(content: bytes) -> Card | Invalid:
    try:
        return read_card(content)
    except Invalid as error:
        return error


def assert_card_or_refusal(content: bytes) -> None:
    card = card_or_refusal(content)
    if isinstance(card, Invalid):
        assert card.path == ("input", "file")
        assert card.code in REFUSALS
        return
    assert card.container in ("png_text", "json")
    assert card.spec in ("v1", "v2", "v3")
    assert card.fields["name"]
    assert card.fields.keys() >= MINIMAL_FIELDS.keys()
    for part in (card.fields, card.source, [[w.code, w.message, w.path] for w in card.warnings]):
        # What orjson writes without an escaped NUL, the database stores.
        assert b"\\u0000" not in orjson.dumps(part).replace(b"\\\\", b"")
    for key, empty in MINIMAL_FIELDS.items():
        assert type(card.fields[key]) is type(empty)


FULL_CARD = v3(
    description="A pilot. \0 \ud83d 😀",
    tags=["sea"],
    alternate_greetings=["Hi"],
    creation_date=1_700_000_000,
    character_book={"entries": [{"keys": ["sea"], "content": "salt"}], "extensions": {}},
)
FULL_JSON = json.dumps(FULL_CARD).encode()
WHOLE_FILES = (
    FULL_JSON,
    json.dumps({"char_name": "Mira", "char_persona": "A pilot."}).encode(),
    png(
        text_chunk(b"chara", encoded(v2())), chunk(b"zTXt", b"ccv3\0\0" + zlib.compress(FULL_JSON))
    ),
)


@st.composite
def mutations(draw: st.DrawFn, content: bytes) -> bytes:
    """The content after a few cuts, flipped bytes and doubled pieces."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(changed)))
        end = min(len(changed), start + draw(st.integers(0, 40)))
        match draw(st.sampled_from(("cut", "flip", "double", "truncate"))):
            case "cut":
                del changed[start:end]
            case "flip" if start < len(changed):
                changed[start] ^= draw(st.integers(1, 255))
            case "double":
                changed[start:start] = changed[start:end]
            case "truncate":
                del changed[start:]
    return bytes(changed)


@given(st.sampled_from(WHOLE_FILES).flatmap(mutations))
def test_a_mutated_file_gives_a_card_or_a_refusal(content: bytes) -> None:
    assert_card_or_refusal(content)


@given(
    st.sampled_from((b"tEXt", b"zTXt", b"iTXt")),
    st.sampled_from(
        (
            b"ccv3\0" + encoded(FULL_CARD),
            b"ccv3\0" + FULL_JSON,
            b"ccv3\0\0" + zlib.compress(FULL_JSON),
            b"ccv3\0\1\0en\0\0" + zlib.compress(encoded(FULL_CARD)),
        )
    ).flatmap(mutations),
)
def test_a_mutated_chunk_with_a_true_checksum_gives_a_card_or_a_refusal(
    kind: bytes, body: bytes
) -> None:
    assert_card_or_refusal(png(chunk(kind, body)))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["\0", "\ud800", "chara_card_v3", "3.0", "a,b", "2024-01-01"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["entries", "a", "a\0", "\ud800"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *MINIMAL_FIELDS,
        *("nickname", "source", "assets", "creation_date", "modification_date", "character_book"),
        *("creator_notes_multilingual", "char_name", "greeting", "creatorcomment", "x", "x\0"),
    ]
)
MEMBERS = st.dictionaries(KEYS, JSON_VALUES, max_size=8)


@given(
    MEMBERS,
    st.none() | MEMBERS,
    st.dictionaries(st.sampled_from(["spec", "spec_version"]), JSON_VALUES),
    st.booleans(),
)
def test_any_json_in_any_field_gives_a_card_or_a_refusal(
    root: dict[str, Any], data: dict[str, Any] | None, spec: dict[str, Any], is_named: bool
) -> None:
    source: dict[str, Any] = {**root, **spec}
    if data is not None:
        source["data"] = {**data, "name": "Mira"} if is_named else data
    elif is_named:
        source["name"] = "Mira"
    assert_card_or_refusal(json.dumps(source).encode())


ENTRY_KEYS = st.sampled_from(
    [
        *("keys", "key", "secondary_keys", "keysecondary", "content", "entry", "text", "name"),
        *("comment", "enabled", "disable", "position", "extensions", "insertion_order", "order"),
        *("selective", "selectiveLogic", "probability", "useProbability", "constant", "id", "uid"),
        *("depth", "sticky", "delayUntilRecursion", "insertorder", "contextConfig", "mode"),
        *("activationPercent", "use_regex", "keywords", "x"),
    ]
)
NUMBERS = st.sampled_from([0, 1, 4, 7, 8, -1, 1.5, 1e300, "3", "x", "", None, True, "before_char"])
EXTENSIONS = st.dictionaries(
    st.sampled_from(
        ["position", "depth", "probability", "useProbability", "selectiveLogic", "sticky", "x"]
    ),
    JSON_VALUES | NUMBERS,
    max_size=4,
)
ENTRIES = JSON_VALUES | st.dictionaries(ENTRY_KEYS, JSON_VALUES | NUMBERS | EXTENSIONS, max_size=8)
BOOKS = st.fixed_dictionaries(
    {"entries": st.lists(ENTRIES, max_size=3) | st.dictionaries(st.text("01a"), ENTRIES)},
    optional=dict.fromkeys(("name", "scan_depth", "recursive_scanning"), JSON_VALUES | NUMBERS),
)
ASSETS = st.lists(
    JSON_VALUES | st.dictionaries(st.sampled_from(["type", "uri", "name"]), JSON_VALUES), max_size=3
)


def meaning(card: Card) -> tuple[dict[str, Any], Lorebook | None]:
    """The fields without the book, and what the book says, without the spelling of its entries."""
    fields = {key: value for key, value in card.fields.items() if key != "character_book"}
    if "character_book" not in card.fields:
        return fields, None
    book = read_lorebook(card.fields["character_book"])
    entries = tuple(replace(entry, source={}) for entry in book.entries)
    return fields, replace(book, entries=entries, source={}, warnings=())


@settings(max_examples=40, deadline=None)
@given(MEMBERS, st.none() | BOOKS, st.none() | ASSETS)
def test_whatever_was_read_is_written_and_read_again(
    data: dict[str, Any], book: dict[str, Any] | None, assets: list[Any] | None
) -> None:
    """Rule K8. However strange a card is."""
    extra = {"character_book": book, "assets": assets}
    given_data = {**data, **{key: value for key, value in extra.items() if value is not None}}
    card = card_or_refusal(json.dumps(v3(**{**given_data, "name": "Mira"})).encode())
    if isinstance(card, Invalid):
        return
    for target in (CardTarget.JSON_V3, CardTarget.PNG, CardTarget.CHARX):
        content = write_card(card.fields, card.source, card.files, target)
        again = read_card(content)
        assert meaning(again) == meaning(card)
        assert write_card(again.fields, again.source, again.files, target) == content
    write_card(card.fields, card.source, card.files, CardTarget.JSON_V2)
