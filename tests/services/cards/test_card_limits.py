"""Limits: the largest that is taken, and one more."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest

from services.cards import read_card
from tests.services.cards.making import (
    MINIMAL_FIELDS,
    chunk,
    encoded,
    png,
    read,
    refused,
    text_chunk,
    v2,
    zipped,
)


def test_file_bytes() -> None:
    content = json.dumps(v2()).encode()
    full = content + b" " * (16 * 1024 * 1024 - len(content))
    assert read_card(full).fields == MINIMAL_FIELDS
    assert refused(full + b" ") == "CARD_FILE_TOO_LARGE"


def test_inflated_bytes() -> None:
    content = json.dumps(v2()).encode()
    full = content + b" " * (8 * 1024 * 1024 - len(content))
    for kind, head in ((b"zTXt", b"ccv3\0\0"), (b"iTXt", b"ccv3\0\1\0\0\0")):
        assert read_card(png(chunk(kind, head + zlib.compress(full)))).fields == MINIMAL_FIELDS
        too_large = png(chunk(kind, head + zlib.compress(full + b" ")))
        assert refused(too_large) == "CARD_CHUNK_TOO_LARGE"
    # A limit is final: a readable chunk beside it does not help.
    bomb = chunk(b"zTXt", b"ccv3\0\0" + zlib.compress(full + b" "))
    beside = text_chunk(b"chara", encoded(v2()))
    assert refused(png(bomb, beside)) == "CARD_CHUNK_TOO_LARGE"


def test_bytes_of_the_json() -> None:
    """Rule K9. Whatever carries it; blanks around it do not count."""
    content = json.dumps(v2()).encode()
    full = b"{" + b" " * (8 * 1024 * 1024 - len(content)) + content[1:]
    for carry in (bytes, lambda each: zipped({"card.json": each}), in_chunk):
        assert read_card(carry(full + b"\n")).fields == MINIMAL_FIELDS
        assert refused(carry(b"{ " + full[1:])) == "CARD_CHUNK_TOO_LARGE"


def in_chunk(content: bytes) -> bytes:
    return png(text_chunk(b"chara", base64.b64encode(content)))


def test_many_short_values() -> None:
    row = ",".join(["1"] * 9_999)
    rows = ",".join([f"[{row}]"] * 100)
    assert read_card(f'{{"name":"M","x":[{rows}],"y":[1]}}'.encode()).spec == "v1"
    more = f'{{"name":"M","x":[{rows},[{row}]],"y":[1]}}'
    assert refused(more.encode()) == "CARD_TOO_MANY_VALUES"


def test_a_bomb_is_stopped_while_inflating(monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    make = zlib.decompressobj

    class Watched:
        def __init__(self) -> None:
            self._inflater = make()

        def decompress(self, data: bytes, max_length: int = 0) -> bytes:
            nonlocal largest
            text = self._inflater.decompress(data, max_length)
            largest = max(largest, len(text))
            return text

    bomb = zlib.compress(b" " * (64 * 1024 * 1024))
    monkeypatch.setattr(zlib, "decompressobj", Watched)
    assert refused(png(chunk(b"zTXt", b"ccv3\0\0" + bomb))) == "CARD_CHUNK_TOO_LARGE"
    assert largest == 8 * 1024 * 1024 + 1


def test_png_chunks() -> None:
    card = text_chunk(b"chara", encoded(v2()))
    filler = chunk(b"tIME", b"")
    most = png(card, *[filler] * (10_000 - 4))
    assert read_card(most).fields == MINIMAL_FIELDS
    assert refused(png(card, *[filler] * (10_000 - 3))) == "CARD_TOO_MANY_CHUNKS"


def nested(levels: int) -> bytes:
    """A card whose deepest list is `levels` deep, the root object being the first level."""
    return b'{"name": "Mira", "x": %s%s}' % (b"[" * (levels - 1), b"]" * (levels - 1))


def test_json_depth() -> None:
    assert read_card(nested(64)).fields == MINIMAL_FIELDS
    assert refused(nested(65)) == "CARD_TOO_DEEP"
    assert refused(nested(200_000)) == "CARD_TOO_DEEP"
    assert refused(b'{"name": "Mira", "x": ' + b'{"a":' * 64 + b"1" + b"}" * 65) == "CARD_TOO_DEEP"


def test_text_length() -> None:
    assert len(read(v2(description="é" * 1_000_000)).fields["description"]) == 1_000_000
    assert refused(json.dumps(v2(description="é" * 1_000_001)).encode()) == "CARD_TEXT_TOO_LONG"
    assert refused(json.dumps(v2(**{"k" * 1_000_001: 1})).encode()) == "CARD_TEXT_TOO_LONG"


def test_list_length() -> None:
    assert len(read(v2(tags=["t"] * 10_000)).fields["tags"]) == 10_000
    assert refused(json.dumps(v2(tags=["t"] * 10_001)).encode()) == "CARD_LIST_TOO_LONG"
    members = {str(number): number for number in range(10_001)}
    assert refused(json.dumps(v2(extensions=members)).encode()) == "CARD_LIST_TOO_LONG"


def test_nested_values() -> None:
    rows: list[Any] = [[[]] * 9_999] * 49
    assert read(v2(extensions={"x": rows})).spec == "v2"
    assert refused(json.dumps(v2(x=[*rows, *rows])).encode()) == "CARD_TOO_MANY_VALUES"


def test_greetings() -> None:
    most = v2(alternate_greetings=["hi"] * 300, group_only_greetings=["all"] * 200)
    assert len(read(most).fields["alternate_greetings"]) == 300
    most["data"]["group_only_greetings"].append("one more")
    assert refused(json.dumps(most).encode()) == "CARD_TOO_MANY_GREETINGS"
