"""Lorebooks in files of their own, of every program that is known."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from services.cards import Lorebook, read_lorebook_file
from services.errors import Invalid
from tests.services.cards.making import chunk, lore_entry, png, text_chunk, v2


def from_file(value: Any) -> Lorebook:
    return read_lorebook_file(json.dumps(value).encode())


def refused(content: bytes) -> str:
    with pytest.raises(Invalid) as caught:
        read_lorebook_file(content)
    assert caught.value.path == ("input", "file")
    return caught.value.code


def test_a_book_file_of_v3() -> None:
    data = {"name": "Sea", "entries": [{"keys": ["sea"], "content": "Salt."}]}
    book = from_file({"spec": "lorebook_v3", "data": data})
    assert (book.name, book.source) == ("Sea", data)
    assert book.entries == (lore_entry(data["entries"][0], keys=("sea",), content="Salt."),)


NOVELAI = {
    "lorebookVersion": 4,
    "entries": [
        {
            "keys": ["sea"],
            "text": "Salt.",
            "displayName": "The sea",
            "enabled": False,
            "forceActivation": True,
            "contextConfig": {"budgetPriority": 400},
        },
        {"keys": ["port"], "text": "Ships.", "displayName": "", "contextConfig": None},
    ],
}


def test_a_lorebook_of_novelai() -> None:
    """Rule K10."""
    first, second = NOVELAI["entries"]  # type: ignore[misc]
    book = from_file(NOVELAI)
    assert book.source == NOVELAI
    assert book.entries == (
        lore_entry(
            first,
            name="The sea",
            keys=("sea",),
            content="Salt.",
            enabled=False,
            constant=True,
            position="before_char",
            insertion_order=400,
        ),
        lore_entry(
            second, keys=("port",), content="Ships.", position="before_char", insertion_order=0
        ),
    )


@pytest.mark.parametrize(
    "carrier",
    [
        text_chunk(b"naidata", base64.b64encode(json.dumps(NOVELAI).encode())),
        chunk(b"zTXt", b"NAIdata\0\0" + zlib.compress(json.dumps(NOVELAI).encode())),
    ],
)
def test_a_lorebook_of_novelai_in_a_png(carrier: bytes) -> None:
    assert read_lorebook_file(png(carrier)).entries == from_file(NOVELAI).entries


def test_a_memory_book_of_agnai() -> None:
    """Rule K10."""
    source = {
        "name": "The sea",
        "entry": "Salt.",
        "keywords": ["sea", "salt"],
        "priority": 5,
        "weight": 7,
        "enabled": False,
    }
    book = from_file({"kind": "memory", "name": "World", "entries": [source]})
    assert book.name == "World"
    assert book.entries == (
        lore_entry(
            source,
            name="The sea",
            keys=("sea", "salt"),
            content="Salt.",
            insertion_order=7,
            enabled=False,
            position="before_char",
        ),
    )


def test_a_lorebook_of_risuai() -> None:
    """Rule K10."""
    source = {
        "key": "sea, /a,b/i",
        "secondkey": "storm",
        "comment": "The sea",
        "content": "Salt.",
        "insertorder": 30,
        "alwaysActive": True,
        "selective": True,
        "activationPercent": 40,
        "mode": "normal",
    }
    folder = {"key": "\uf000folder", "comment": "Folder", "mode": "folder", "insertorder": 1}
    book = from_file({"type": "risu", "ver": 1, "data": [source, folder]})
    assert book.entries == (
        lore_entry(
            source,
            name="The sea",
            keys=("sea", "/a,b/i"),
            secondary_keys=("storm",),
            content="Salt.",
            insertion_order=30,
            constant=True,
            probability=40,
            position="before_char",
        ),
        lore_entry(
            folder,
            name="Folder",
            keys=("\uf000folder",),
            insertion_order=1,
            position="before_char",
            enabled=False,
        ),
    )


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"name: World", "NOT_A_LOREBOOK"),
        (b"", "NOT_A_LOREBOOK"),
        (b"PK\3\4", "NOT_A_LOREBOOK"),
        (png(), "NOT_A_LOREBOOK"),
        (json.dumps(v2()).encode(), "NOT_A_LOREBOOK"),
        (b'{"spec": "lorebook_v3", "data": 5}', "NOT_A_LOREBOOK"),
        (b'{"type": "risu", "data": {}}', "NOT_A_LOREBOOK"),
        (b'{"entries": 5}', "NOT_A_LOREBOOK"),
        (b"[]", "NOT_A_CARD"),
        (b'{"entries": {', "BROKEN_CARD"),
        (png()[:-3], "BROKEN_PNG"),
        (b"rcc||rccv1||abc", "ENCRYPTED_CARD"),
        (b" " * (16 * 1024 * 1024 + 1), "CARD_FILE_TOO_LARGE"),
        (json.dumps({"entries": [{}] * 10_001}).encode(), "CARD_LIST_TOO_LONG"),
    ],
)
def test_a_file_that_is_no_lorebook(content: bytes, code: str) -> None:
    assert refused(content) == code
