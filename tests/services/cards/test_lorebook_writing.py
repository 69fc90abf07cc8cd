"""Writing of lorebooks: nothing is lost, and what is read again is the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.cards import (
    Lorebook,
    LorebookTarget,
    LoreEntry,
    Recursion,
    read_card,
    read_lorebook,
    read_lorebook_file,
    write_lorebook,
    write_lorebook_file,
)
from services.cards.lore_reading import LOGICS, POSITIONS
from services.cards.lore_writing import without_decorators
from tests.services.cards.making import real

WORLD = {
    "uid": 7,
    "key": ["sea"],
    "keysecondary": ["storm"],
    "comment": "The sea",
    "content": "@@activate\nSalt.",
    "order": 50,
    "position": 4,
    "disable": True,
    "depth": 2,
    "role": 1,
    "characterFilter": {"names": ["Mira"]},
    "extensions": {"mine": 1},
}
SOURCES: list[dict[str, Any]] = [
    {},
    WORLD,
    {"keys": ["a"], "content": "b", "extensions": {}, "enabled": True, "insertion_order": 1},
    {"keys": ["a"], "comment": "Note", "selective": True, "secondary_keys": ["b"], "folder": "f"},
    {"keys": ["a"], "name": "Sea", "comment": "Note", "content": 5},
    {"keys": None, "position": 4, "enabled": None, "use_regex": True, "extensions": None},
    {"keys": ["/a/"], "extensions": {"position": 7, "outlet_name": "x", "useProbability": False}},
    {"keys": "a, b", "probability": "30", "position": "in_chat", "name": 5},
    {"keys": ["a"], "sticky": 3, "depth": 9, "insertion_order": 2.0, "constant": "true"},
    {"key": "sea, port", "insertorder": 3, "alwaysActive": True, "activationPercent": 20},
    {"entry": "Salt.", "keywords": ["sea"], "weight": 5, "priority": 2},
    {"text": "Salt.", "displayName": "Sea", "keys": ["sea"], "contextConfig": {}, "id": "x"},
]


def without_source(book: Lorebook) -> Lorebook:
    """A lorebook for comparing: its columns without sources and warnings."""
    entries = tuple(replace(each, source={}) for each in book.entries)
    return replace(book, entries=entries, source={}, warnings=())


def written(source: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The entry as a card holds it, after changes of its columns."""
    book = read_lorebook({"entries": [source]})
    (entry,) = book.entries
    (only,) = write_lorebook(replace(book, entries=(replace(entry, **changes),)))["entries"]
    assert isinstance(only, dict)
    return only


def test_a_real_book_stays_as_it_is() -> None:
    """Rule K8. V3 asks for `use_regex`, and nothing else was missing."""
    book = read_card(real("with-lorebook-v3.json")).fields["character_book"]
    assert write_lorebook(read_lorebook(book)) == {
        **book,
        "entries": [{**entry, "use_regex": False} for entry in book["entries"]],
    }


def test_world_info_gets_the_names_of_a_card() -> None:
    """Rule K10. What is not known stays where it is."""
    assert written(WORLD) == {
        "id": 7,
        "keys": ["sea"],
        "secondary_keys": ["storm"],
        "selective": True,
        "comment": "The sea",
        "content": "@@activate\nSalt.",
        "constant": False,
        "insertion_order": 50,
        "enabled": False,
        "use_regex": False,
        "characterFilter": {"names": ["Mira"]},
        "extensions": {"mine": 1, "position": 4, "depth": 2, "role": 1},
    }


def test_an_edited_entry_keeps_what_was_not_edited() -> None:
    source = {
        "keys": ["sea"],
        "content": "Salt.",
        "comment": "The sea",
        "extensions": {"role": 2, "depth": 4},
        "priority": 9,
        "position": "before_char",
    }
    changes = {"name": "Port", "position": "outlet", "probability": 30, "insertion_order": 5}
    assert written(source, **changes) == {
        "keys": ["sea"],
        "secondary_keys": [],
        "content": "Salt.",
        "comment": "Port",
        "constant": False,
        "enabled": True,
        "insertion_order": 5,
        "priority": 9,
        "position": "after_char",
        "use_regex": False,
        "extensions": {
            "role": 2,
            "depth": 4,
            "position": 7,
            "probability": 30,
            "useProbability": True,
        },
    }
    assert source["extensions"] == {"role": 2, "depth": 4}


@pytest.mark.parametrize(
    ("keys", "has_patterns"),
    [
        (["sea"], False),
        (["/sea/i"], True),
        (["/sea/i", "/port/"], True),
        (["/sea/i", "port"], False),
        (["/sea/x"], False),
        ([], False),
    ],
)
@pytest.mark.parametrize("said", [True, False, None])
def test_a_plain_key_is_never_called_a_pattern(
    keys: list[str], has_patterns: bool, said: bool | None
) -> None:
    """Rule K11."""
    assert written({"keys": keys, "use_regex": said})["use_regex"] is has_patterns


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Salt.", "Salt."),
        ("@@depth 4\nSalt.", "Salt."),
        ("@@depth 4\r\n@@@role user\r\n\r\nSalt.\n@@x", "Salt.\n@@x"),
        ("@@activate", ""),
        ("\n@@depth 4\nSalt.", "\n@@depth 4\nSalt."),
    ],
)
def test_decorator_lines_are_taken_out(content: str, text: str) -> None:
    assert without_decorators(content) == text


LETTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = st.text(LETTERS, max_size=4)
COUNTS = st.none() | st.integers(0, 2**31 - 1)
KEYS = st.lists(TEXTS.filter(str.strip), max_size=3).map(tuple)
ENTRIES = st.builds(
    LoreEntry,
    name=TEXTS,
    keys=KEYS,
    secondary_keys=KEYS,
    selective_logic=st.sampled_from(LOGICS),
    constant=st.booleans(),
    position=st.sampled_from(POSITIONS),
    depth=st.integers(0, 100),
    insertion_order=st.integers(-(2**31), 2**31 - 1),
    probability=st.integers(0, 100),
    sticky=COUNTS,
    cooldown=COUNTS,
    delay=COUNTS,
    recursion=st.builds(Recursion, st.booleans(), st.booleans(), st.integers(0, 9)),
    content=TEXTS,
    enabled=st.booleans(),
    source=st.sampled_from(SOURCES),
)
BOOKS = st.builds(
    Lorebook,
    name=TEXTS,
    description=TEXTS,
    scan_depth=COUNTS,
    token_budget=COUNTS,
    recursive=st.none() | st.booleans(),
    entries=st.lists(ENTRIES, max_size=3).map(tuple),
    source=st.sampled_from(
        [
            {},
            {"name": "World", "scan_depth": 2, "recursive_scanning": True, "extensions": {"a": 1}},
            {"scanDepth": 3, "tokenBudget": 5, "description": "d", "kind": "memory"},
        ]
    ),
    warnings=st.just(()),
)


@settings(max_examples=60)
@given(BOOKS)
def test_whatever_was_edited_is_read_again(book: Lorebook) -> None:
    """Rule K8. Whatever the source of an entry was, in a card and in either file."""
    inside = write_lorebook(book)
    assert without_source(read_lorebook(inside)) == without_source(book)
    again = read_lorebook(inside)
    assert again.warnings == ()
    assert write_lorebook(again) == inside
    for target in LorebookTarget:
        read = read_lorebook_file(write_lorebook_file(book, target))
        assert without_source(read) == without_source(book)


def test_an_order_between_two_whole_numbers_stays() -> None:
    assert written({"keys": [], "insertion_order": 2.5})["insertion_order"] == 2.5


@pytest.mark.parametrize("source", SOURCES)
def test_an_entry_that_was_not_edited_means_the_same(source: dict[str, Any]) -> None:
    """Rule K8."""
    book = read_lorebook({"entries": [source]})
    for target in LorebookTarget:
        again = read_lorebook_file(write_lorebook_file(book, target))
        assert without_source(again).entries == without_source(book).entries


def test_a_file_of_world_info() -> None:
    """Rule K10. An object of entries under new ids, with the names of world info."""
    book = read_lorebook({"name": "World", "entries": [WORLD, WORLD]})
    content = write_lorebook_file(book, LorebookTarget.WORLD_INFO)
    entry = {
        "key": ["sea"],
        "keysecondary": ["storm"],
        "comment": "The sea",
        "content": "@@activate\nSalt.",
        "constant": False,
        "selective": True,
        "order": 50,
        "position": 4,
        "disable": True,
        "depth": 2,
        "role": 1,
        "characterFilter": {"names": ["Mira"]},
        "extensions": {"mine": 1},
    }
    assert json.loads(content) == {
        "name": "World",
        "extensions": {},
        "entries": {"0": {**entry, "uid": 0}, "1": {**entry, "uid": 1}},
    }


def test_a_book_file_of_v3() -> None:
    book = read_lorebook({"name": "World", "entries": []})
    assert json.loads(write_lorebook_file(book, LorebookTarget.JSON_V3)) == {
        "spec": "lorebook_v3",
        "data": {"name": "World", "extensions": {}, "entries": []},
    }
