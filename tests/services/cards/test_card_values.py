"""Single values of the wrong spelling."""

from __future__ import annotations

from typing import Any

import pytest

from tests.services.cards.making import MINIMAL_FIELDS, found, read, v2, v3


@pytest.mark.parametrize(
    ("key", "value", "mended", "warnings"),
    [
        ("personality", None, "", [("NULL_VALUE", "data.personality")]),
        ("character_version", 1.5, "1.5", [("TYPE_MENDED", "data.character_version")]),
        ("creator", True, "true", [("TYPE_MENDED", "data.creator")]),
        ("scenario", ["a"], "", [("VALUE_DROPPED", "data.scenario")]),
        ("tags", "sea, pilot,, calm ", ["sea", "pilot", "calm"], [("TYPE_MENDED", "data.tags")]),
        ("tags", None, [], [("NULL_VALUE", "data.tags")]),
        ("tags", {}, [], [("VALUE_DROPPED", "data.tags")]),
        ("tags", ["sea", 5], ["sea", "5"], [("TYPE_MENDED", "data.tags.1")]),
        (
            "alternate_greetings",
            "Hello, you.",
            ["Hello, you."],
            [("TYPE_MENDED", "data.alternate_greetings")],
        ),
        ("alternate_greetings", "", [], [("TYPE_MENDED", "data.alternate_greetings")]),
        (
            "alternate_greetings",
            ["", "Hi", None, {}],
            ["Hi"],
            [
                ("ITEM_DROPPED", "data.alternate_greetings.0"),
                ("ITEM_DROPPED", "data.alternate_greetings.2"),
                ("VALUE_DROPPED", "data.alternate_greetings.3"),
            ],
        ),
        ("extensions", None, {}, [("NULL_VALUE", "data.extensions")]),
        ("extensions", "x", {}, [("VALUE_DROPPED", "data.extensions")]),
        ("nickname", 7, "7", [("TYPE_MENDED", "data.nickname")]),
        ("source", "https://a.b", ["https://a.b"], [("TYPE_MENDED", "data.source")]),
        ("assets", [{"x": 1}, "y"], [{"x": 1}], [("VALUE_DROPPED", "data.assets.1")]),
        ("creation_date", 1_700_000_000, 1_700_000_000, []),
        ("creation_date", 0, 0, []),
        ("creation_date", "1700000000", 1_700_000_000, [("DATE_MENDED", "data.creation_date")]),
        (
            "modification_date",
            1_700_000_000_123,
            1_700_000_000,
            [("DATE_MENDED", "data.modification_date")],
        ),
        (
            "creation_date",
            "2023-11-14T22:13:20Z",
            1_700_000_000,
            [("DATE_MENDED", "data.creation_date")],
        ),
        (
            "creation_date",
            "2023-11-14 22:13:20",
            1_700_000_000,
            [("DATE_MENDED", "data.creation_date")],
        ),
        (
            "character_book",
            {"entries": {"0": {"key": ["sea"]}}},
            {"entries": {"0": {"key": ["sea"]}}},
            [("BOOK_ENTRIES_ARE_A_MAP", "data.character_book.entries")],
        ),
        ("character_book", {"entries": [{"id": None}]}, {"entries": [{"id": None}]}, []),
    ],
)
def test_a_value_of_the_wrong_spelling_is_mended(
    key: str, value: Any, mended: Any, warnings: list[tuple[str, str]]
) -> None:
    card = read(v2(**{key: value}))
    assert card.fields == {**MINIMAL_FIELDS, key: mended}
    assert type(card.fields[key]) is type(mended)
    assert card.source == v2(**{key: value})
    assert found(card) == warnings


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("character_book", None, "NULL_VALUE"),
        ("character_book", [], "VALUE_DROPPED"),
        ("nickname", None, "NULL_VALUE"),
        ("assets", None, "NULL_VALUE"),
        ("assets", "none", "VALUE_DROPPED"),
        ("creator_notes_multilingual", "en", "VALUE_DROPPED"),
        ("creation_date", "2023-4-8 @14h 12m 43s 738ms", "VALUE_DROPPED"),
        ("creation_date", -62_135_596_800, "VALUE_DROPPED"),
        ("creation_date", True, "VALUE_DROPPED"),
        ("creation_date", "nan", "VALUE_DROPPED"),
        ("creation_date", 10**18, "VALUE_DROPPED"),
    ],
)
def test_an_optional_field_that_cannot_be_used_is_left_out(key: str, value: Any, code: str) -> None:
    card = read(v3(**{key: value}))
    assert card.fields == MINIMAL_FIELDS
    assert card.source == v3(**{key: value})
    assert found(card) == [(code, f"data.{key}")]


def test_paths_of_a_v1_card_begin_at_its_root() -> None:
    assert found(read({"name": "Mira", "tags": "sea"})) == [("TYPE_MENDED", "tags")]
