"""Reading of lorebooks: those inside cards, and the files of other programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.cards import (
    Lorebook,
    LoreEntry,
    Recursion,
    is_pattern,
    read_card,
    read_lorebook,
    read_lorebook_file,
)
from services.cards.lorebook import split_keys
from tests.services.cards.making import lore_entry, read, real, v2


def read_one(source: dict[str, Any]) -> tuple[LoreEntry, list[tuple[str, str]]]:
    book = read_lorebook({"entries": [source]})
    (only,) = book.entries
    return only, [(warning.code, warning.path) for warning in book.warnings]


# Real files


def test_the_book_of_a_real_card() -> None:
    """Rule K10."""
    source = read_card(real("with-lorebook-v3.json")).fields["character_book"]
    first, second = source["entries"]
    assert read_lorebook(source) == Lorebook(
        name="Test Lorebook",
        description="A lorebook for testing",
        scan_depth=2,
        token_budget=512,
        recursive=False,
        entries=(
            lore_entry(
                first,
                name="Test Entry 1",
                keys=("test entry", "lore test"),
                content="This is test lore content for entry 1.",
                position="before_char",
            ),
            lore_entry(
                second,
                name="Test Entry 2",
                keys=("another entry",),
                secondary_keys=("conditional key",),
                content="This is test lore content for entry 2.",
                insertion_order=200,
            ),
        ),
        source=source,
        warnings=(),
    )


def test_a_real_world_info_file() -> None:
    """Rule K10. A field that a world info entry lacks has the default of world info."""
    content = real("lorebook-text-uid.json")
    source = json.loads(content)
    assert read_lorebook_file(content) == Lorebook(
        name="World One",
        description="Test lorebook one",
        scan_depth=2,
        token_budget=2048,
        recursive=False,
        entries=(
            lore_entry(
                source["entries"]["1"],
                keys=("dragon",),
                content="Dragons exist.",
                position="before_char",
            ),
        ),
        source=source,
        warnings=(),
    )


# Entries


def test_an_empty_entry_and_what_it_leaves_open() -> None:
    """Rule K10. Without `enabled` it counts, without `position` it stands after."""
    assert read_one({}) == (lore_entry({}), [])


WORLD = {
    "uid": 7,
    "key": ["sea", "/sal(t|ty)/i"],
    "keysecondary": ["storm"],
    "comment": "The sea",
    "content": "Salt.",
    "constant": True,
    "vectorized": False,
    "selective": True,
    "selectiveLogic": 3,
    "order": 50,
    "position": 4,
    "disable": True,
    "excludeRecursion": True,
    "preventRecursion": True,
    "delayUntilRecursion": 2,
    "probability": 40,
    "useProbability": True,
    "depth": 2,
    "sticky": 3,
    "cooldown": 2,
    "delay": 1,
    "role": 1,
    "characterFilter": {"names": ["Mira"]},
}
COLUMNS: dict[str, Any] = {
    "name": "The sea",
    "keys": ("sea", "/sal(t|ty)/i"),
    "secondary_keys": ("storm",),
    "selective_logic": "and_all",
    "constant": True,
    "position": "at_depth",
    "depth": 2,
    "insertion_order": 50,
    "probability": 40,
    "sticky": 3,
    "cooldown": 2,
    "delay": 1,
    "recursion": Recursion(exclude=True, prevent=True, delay_until=2),
    "content": "Salt.",
    "enabled": False,
}
BOOK = {
    "id": 7,
    "keys": ["sea", "/sal(t|ty)/i"],
    "secondary_keys": ["storm"],
    "comment": "The sea",
    "content": "Salt.",
    "constant": True,
    "selective": True,
    "insertion_order": 50,
    "enabled": False,
    "position": "after_char",
    "use_regex": True,
    "extensions": {
        "position": 4,
        "exclude_recursion": True,
        "prevent_recursion": True,
        "delay_until_recursion": 2,
        "probability": 40,
        "useProbability": True,
        "depth": 2,
        "selectiveLogic": 3,
        "sticky": 3,
        "cooldown": 2,
        "delay": 1,
    },
}


@pytest.mark.parametrize("source", [WORLD, BOOK], ids=["world info", "book"])
def test_every_column_from_both_spellings(source: dict[str, Any]) -> None:
    """Rule K10. World info may also stand inside a card."""
    assert read_one(source) == (lore_entry(source, **COLUMNS), [])
    card = read(v2(character_book={"entries": [source]}))
    (inside,) = read_lorebook(card.fields["character_book"]).entries
    assert inside == lore_entry({k: v for k, v in source.items() if k != "use_regex"}, **COLUMNS)
    assert card.source["data"]["character_book"]["entries"] == [source]


@pytest.mark.parametrize(
    ("source", "column", "value", "warnings"),
    [
        *(
            ({"extensions": {"position": number}}, "position", name, [])
            for number, name in enumerate(
                [
                    *("before_char", "after_char", "before_author_note", "after_author_note"),
                    *("at_depth", "before_examples", "after_examples", "outlet"),
                ]
            )
        ),
        *(
            ({"extensions": {"selectiveLogic": number}}, "selective_logic", name, [])
            for number, name in enumerate(["and_any", "not_all", "not_any", "and_all"])
        ),
        ({"position": "before_char"}, "position", "before_char", []),
        ({"position": 0}, "position", "before_char", []),
        ({"position": "4"}, "position", "at_depth", []),
        ({"position": None}, "position", "after_char", []),
        ({"position": ""}, "position", "after_char", []),
        ({"position": "in_chat"}, "position", "after_char", ["POSITION_UNKNOWN"]),
        ({"position": 8}, "position", "after_char", ["POSITION_UNKNOWN"]),
        ({"position": {}}, "position", "after_char", ["POSITION_UNKNOWN"]),
        (
            {"extensions": {"position": 9}, "position": "before_char"},
            "position",
            "before_char",
            ["POSITION_UNKNOWN"],
        ),
        (
            {"extensions": {"position": 4}, "position": "before_char"},
            "position",
            "at_depth",
            [],
        ),
        ({"extensions": {"selectiveLogic": 7}}, "selective_logic", "and_any", ["VALUE_DROPPED"]),
        ({"extensions": {"selectiveLogic": "2"}}, "selective_logic", "not_any", ["TYPE_MENDED"]),
        ({"selectiveLogic": 2}, "selective_logic", "not_any", []),
        ({"keys": "sea, /a,b/i,salt"}, "keys", ("sea", "/a,b/i", "salt"), ["TYPE_MENDED"]),
        ({"keys": ["a,b"]}, "keys", ("a,b",), []),
        ({"keys": ["", None, "a", 5]}, "keys", ("a", "5"), None),
        ({"keys": None}, "keys", (), []),
        ({"keys": {}}, "keys", (), ["VALUE_DROPPED"]),
        ({"secondary_keys": ["a"]}, "secondary_keys", (), []),
        ({"secondary_keys": ["a"], "selective": False}, "secondary_keys", (), []),
        ({"secondary_keys": ["a"], "selective": True}, "secondary_keys", ("a",), []),
        ({"key": [], "keysecondary": ["a"]}, "secondary_keys", ("a",), []),
        ({"key": [], "keysecondary": ["a"], "selective": False}, "secondary_keys", (), []),
        ({"key": ["a"]}, "position", "before_char", []),
        ({"enabled": None}, "enabled", True, []),
        ({"enabled": "false"}, "enabled", False, ["TYPE_MENDED"]),
        ({"enabled": 0}, "enabled", False, ["TYPE_MENDED"]),
        ({"enabled": []}, "enabled", True, ["VALUE_DROPPED"]),
        ({"mode": "folder", "enabled": True}, "enabled", False, []),
        ({"key": [], "disable": True}, "enabled", False, []),
        ({"key": [], "disable": None}, "enabled", True, []),
        ({"constant": None}, "constant", False, []),
        ({"insertion_order": None}, "insertion_order", 100, []),
        ({"insertion_order": "7"}, "insertion_order", 7, ["TYPE_MENDED"]),
        ({"insertion_order": -5}, "insertion_order", -5, []),
        ({"insertion_order": 2.5}, "insertion_order", 2, ["NUMBER_MENDED"]),
        ({"insertion_order": 1e300}, "insertion_order", 2**31 - 1, ["NUMBER_MENDED"]),
        ({"insertion_order": "x"}, "insertion_order", 100, ["VALUE_DROPPED"]),
        ({"extensions": {"depth": ""}}, "depth", 4, []),
        ({"extensions": {"depth": 0}}, "depth", 0, []),
        ({"extensions": {"depth": -1}}, "depth", 0, ["NUMBER_MENDED"]),
        ({"extensions": {"probability": 0}}, "probability", 0, []),
        ({"extensions": {"probability": 250}}, "probability", 100, ["NUMBER_MENDED"]),
        ({"extensions": {"probability": None}}, "probability", 100, []),
        ({"extensions": {"probability": 5, "useProbability": False}}, "probability", 100, []),
        ({"probability": 5}, "probability", 5, []),
        ({"extensions": {"sticky": "3"}}, "sticky", 3, ["TYPE_MENDED"]),
        ({"extensions": {"cooldown": "x"}}, "cooldown", None, ["VALUE_DROPPED"]),
        ({"extensions": {"delay": True}}, "delay", None, ["VALUE_DROPPED"]),
        (
            {"extensions": {"delay_until_recursion": True}},
            "recursion",
            Recursion(delay_until=1),
            [],
        ),
        (
            {"extensions": {"delay_until_recursion": "3"}},
            "recursion",
            Recursion(delay_until=3),
            ["TYPE_MENDED"],
        ),
        ({"extensions": None}, "depth", 4, []),
        ({"extensions": [1]}, "depth", 4, []),
        ({"name": None, "comment": "Note"}, "name", "Note", []),
        ({"name": "Sea", "comment": "Note"}, "name", "Sea", []),
        ({"content": None}, "content", "", []),
        ({"content": 5}, "content", "5", ["TYPE_MENDED"]),
    ],
)
def test_a_value_in_any_spelling(
    source: dict[str, Any], column: str, value: Any, warnings: list[str] | None
) -> None:
    """Rule K10."""
    read_entry, found = read_one(source)
    mended = {column: value}
    if "key" in source or "keysecondary" in source:
        mended = {"position": "before_char", **mended}
    if column != "keys" and source.get("key"):
        mended["keys"] = tuple(source["key"])
    assert read_entry == lore_entry(source, **mended)
    if warnings is not None:
        assert [code for code, _ in found] == warnings
        assert all(path.startswith("entries.0.") for _, path in found)


def test_every_entry_is_kept_whatever_its_id() -> None:
    """Rule K10."""
    sources = [{"id": 1}, {"id": 1}, {"id": None}, {}, {"id": "one"}]
    assert [each.source for each in read_lorebook({"entries": sources}).entries] == sources


def test_what_is_no_entry_is_left_out_with_a_warning() -> None:
    book = read_lorebook({"entries": [1, {"content": "a"}, None]})
    assert [each.content for each in book.entries] == ["a"]
    assert [(each.code, each.path) for each in book.warnings] == [
        ("ENTRY_DROPPED", "entries.0"),
        ("ENTRY_DROPPED", "entries.2"),
    ]
    for entries in (None, "x", 5):
        assert read_lorebook({"entries": entries}).entries == ()
    assert read_lorebook({}).entries == ()


def test_the_entries_of_an_object_stand_in_the_order_of_its_numbers() -> None:
    """Whole numbers rising, then other keys as the file has them."""
    keys = ["10", "b", "9", "a", "2", "02", "-1"]
    book = read_lorebook({"entries": {key: {"content": key} for key in keys}})
    assert [each.content for each in book.entries] == ["2", "9", "10", "b", "a", "02", "-1"]


@pytest.mark.parametrize(
    ("book", "settings"),
    [
        ({}, ("", "", None, None, None)),
        (
            {"name": 5, "scan_depth": "4", "token_budget": 1.5, "recursive_scanning": "true"},
            ("5", "", 4, 2, True),
        ),
        (
            {"scanDepth": 3, "tokenBudget": 10, "recursiveScanning": False},
            ("", "", 3, 10, False),
        ),
        ({"scan_depth": None, "scanDepth": 3}, ("", "", 3, None, None)),
        ({"scan_depth": -3, "token_budget": "much"}, ("", "", 0, None, None)),
    ],
)
def test_settings_of_a_book(book: dict[str, Any], settings: tuple[Any, ...]) -> None:
    found = read_lorebook(book)
    assert (
        found.name,
        found.description,
        found.scan_depth,
        found.token_budget,
        found.recursive,
    ) == settings


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        *(("/sea/", True), ("/a\\/b/gi", True), ("/a,b/u", True), ("/a\nb/s", True)),
        *(("sea", False), ("//", False), ("/sea", False), ("/a/b/", False)),
        *(("/sea/x", False), ("/sea/ii", False), (" /sea/", False), ("/sea\\/", False)),
    ],
)
def test_a_key_is_a_pattern_by_its_shape(key: str, expected: bool) -> None:
    """Rule K11."""
    assert is_pattern(key) is expected


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("a, b ,,c", ["a", "b", "c"]),
        ("/a,b/i, c", ["/a,b/i", "c"]),
        ("/a,b, c", ["/a", "b", "c"]),
        ("x/a,b/i", ["x/a", "b/i"]),
        ("", []),
        (" , ", []),
    ],
)
def test_keys_in_one_line(line: str, keys: list[str]) -> None:
    assert split_keys(line) == keys
