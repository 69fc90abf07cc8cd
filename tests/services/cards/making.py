"""Makes card files of every kind for the tests of cards, and reads real ones."""

from __future__ import annotations

import base64
import io
import json
import struct
import zipfile
import zlib
from typing import Any

import pytest

from services.cards import Card, LoreEntry, Recursion, read_card
from services.errors import Invalid
from tests.conftest import shared

MINIMAL_FIELDS: dict[str, Any] = {
    "name": "Mira",
    "description": "",
    "personality": "",
    "scenario": "",
    "first_mes": "",
    "mes_example": "",
    "creator_notes": "",
    "system_prompt": "",
    "post_history_instructions": "",
    "creator": "",
    "character_version": "",
    "alternate_greetings": [],
    "group_only_greetings": [],
    "tags": [],
    "extensions": {},
}


def real(name: str) -> bytes:
    return shared("data", "cards", name).read_bytes()


def chunk(kind: bytes, body: bytes) -> bytes:
    crc = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc)


def png(*chunks: bytes) -> bytes:
    """A PNG of one grey pixel with the chunks between its picture and its end."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    picture = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"\x89PNG\r\n\x1a\n" + header + picture + b"".join(chunks) + chunk(b"IEND", b"")


def text_chunk(keyword: bytes, text: bytes) -> bytes:
    return chunk(b"tEXt", keyword + b"\0" + text)


def encoded(card: Any) -> bytes:
    return base64.b64encode(json.dumps(card).encode())


def v2(**data: Any) -> dict[str, Any]:
    return {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Mira", **data}}


def v3(**data: Any) -> dict[str, Any]:
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": {"name": "Mira", **data}}


def read(card: Any) -> Card:
    return read_card(json.dumps(card).encode())


def found(card: Card) -> list[tuple[str, str]]:
    return [(warning.code, warning.path) for warning in card.warnings]


def refused(content: bytes) -> str:
    with pytest.raises(Invalid) as caught:
        read_card(content)
    assert caught.value.path == ("input", "file")
    assert caught.value.message
    return caught.value.code


def with_files(card: Card) -> dict[str, tuple[str, bytes]]:
    """The files of a card by path."""
    assert len({file.path for file in card.files}) == len(card.files)
    return {file.path: (file.media_type, file.content) for file in card.files}


def zipped(
    files: dict[str, bytes], front: bytes = b"", method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """A zip archive of the files, behind other bytes."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return front + written.getvalue()


def charx(card: Any, files: dict[str, bytes] | None = None, front: bytes = b"") -> bytes:
    """A CharX with the card and files beside it."""
    return zipped({"card.json": json.dumps(card).encode(), **(files or {})}, front)


PLAIN_ENTRY: dict[str, Any] = {
    "name": "",
    "keys": (),
    "secondary_keys": (),
    "selective_logic": "and_any",
    "constant": False,
    "position": "after_char",
    "depth": 4,
    "insertion_order": 100,
    "probability": 100,
    "sticky": None,
    "cooldown": None,
    "delay": None,
    "recursion": Recursion(exclude=False, prevent=False, delay_until=0),
    "content": "",
    "enabled": True,
}


def lore_entry(source: dict[str, Any], **columns: Any) -> LoreEntry:
    return LoreEntry(**{**PLAIN_ENTRY, **columns}, source=source)
