"""Reads hostile files in a process of its own and tells what came out and how much memory it took.

`python -m tests.services.cards.hostile` prints an object: `outcomes` (how many files of each kind
gave which container or code) and `peak` (MiB).
"""

from __future__ import annotations

import base64
import io
import json
import random
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from services.cards import Card, read_card, read_lorebook
from services.errors import Invalid
from tests.conftest import SHARED
from tests.services.cards.making import chunk, encoded, png, text_chunk, v2, zipped

MEBIBYTE = 1024 * 1024
Mutant = tuple[str, bytes]
FOLDER = SHARED / "data" / "cards"


def bytes_changed(content: bytes, dice: random.Random) -> Iterator[bytes]:
    """Cuts at every region, bits flipped, runs taken out, doubled and zeroed."""
    for part in range(8):
        yield content[: len(content) * part // 8 + dice.randrange(4)]
    for _ in range(7):
        start = dice.randrange(len(content))
        end = min(len(content), start + dice.choice([1, 4, 40, 4000]))
        flipped = bytearray(content)
        flipped[start] ^= 1 << dice.randrange(8)
        yield bytes(flipped)
        yield content[:start] + content[end:]
        yield content[:end] + content[start:]
        yield content[:start] + bytes(end - start) + content[end:]


def chunks_of(content: bytes) -> list[bytes]:
    chunks = []
    start = 8
    while start < len(content):
        (length,) = struct.unpack_from(">I", content, start)
        chunks.append(content[start : start + length + 12])
        start += length + 12
    return chunks


def chunks_changed(content: bytes, dice: random.Random) -> Iterator[bytes]:
    """Chunks of a PNG doubled, swapped, left out; texts changed; lengths that lie."""
    chunks = chunks_of(content)
    for _ in range(6):
        one, other = dice.randrange(len(chunks)), dice.randrange(len(chunks))
        swapped = list(chunks)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        for changed in (swapped, chunks[:one] + chunks[other:], [*chunks[:one], *chunks]):
            yield content[:8] + b"".join(changed)
    for place, each in enumerate(chunks):
        if each[4:8] != b"tEXt":
            continue
        for _ in range(8):
            body = bytearray(each[8:-4])
            body[dice.randrange(len(body))] = dice.randrange(256)
            changed = [*chunks[:place], chunk(b"tEXt", bytes(body)), *chunks[place + 1 :]]
            yield content[:8] + b"".join(changed)
        for length in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
            wrong = struct.pack(">I", length) + each[4:]
            yield content[:8] + b"".join([*chunks[:place], wrong, *chunks[place + 1 :]])


def texts_changed(content: bytes, dice: random.Random) -> Iterator[bytes]:
    """JSON in other encodings, and its values replaced by ones that fit nowhere."""
    text = content.decode()
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "latin-1", "utf-8-sig", "utf-7"):
        yield text.encode(encoding, "replace")
    values = (
        *("null", "[]", "{}", "-1", "1e999", "9" * 400, '"\\ud800\\u0000"', "[[[[]]]]", "true"),
        *('"x"', "NaN", "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70),
    )
    places = [match.span(1) for match in re.finditer(r':\s*("[^"]*"|\d+|true|false|\[\])', text)]
    for value in values:
        for start, end in dice.sample(places, min(6, len(places))):
            yield (text[:start] + value + text[end:]).encode()


CHANGES: dict[str, tuple[Callable[[bytes, random.Random], Iterator[bytes]], ...]] = {
    ".png": (bytes_changed, chunks_changed),
    ".json": (bytes_changed, texts_changed),
    ".charx": (bytes_changed,),
}


def mutants_of_real_files() -> Iterator[Mutant]:
    for path in sorted(FOLDER.glob("*.*")) if FOLDER.exists() else ():
        for change in CHANGES.get(path.suffix, ()):
            for mutant in change(path.read_bytes(), random.Random(path.name)):
                yield path.name, mutant


def deflated(byte: bytes, mebibytes: int) -> bytes:
    """Much of one byte, never held in memory as a whole."""
    deflater = zlib.compressobj()
    piece = byte * MEBIBYTE
    return b"".join([*(deflater.compress(piece) for _ in range(mebibytes)), deflater.flush()])


def archive_with_zeros(mebibytes: int) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("card.json", json.dumps(v2()))
        with archive.open("a.bin", "w") as entry:
            for _ in range(mebibytes):
                entry.write(bytes(MEBIBYTE))
    return written.getvalue()


def bombs() -> Iterator[Mutant]:
    """Files that are small, or within the limits, and ask for much."""
    card = text_chunk(b"chara", encoded(v2()))
    row = "[" + ",".join(['"abcdef"'] * 9_999) + "]"
    yield "texts", f'{{"name":"M","x":[{",".join([row] * 90)}]}}'.encode()
    row = "[" + ",".join(f'{{"k":"v{number}"}}' for number in range(9_999)) + "]"
    objects = f'{{"name":"M","x":[{",".join([row] * 40)}]}}'.encode()
    yield "objects", png(text_chunk(b"ccv3", base64.b64encode(objects)))
    yield "numbers", b'{"name":"M","x":[' + b"1," * 8 * MEBIBYTE
    yield "brackets", b"[" * 16 * MEBIBYTE
    yield "wide text", b'{"name":"' + "😀".encode() + b"a" * 7 * MEBIBYTE + b'"}'

    inflated = deflated(b"\0", 200)
    yield "card chunk", png(chunk(b"zTXt", b"ccv3\0\0" + inflated))
    yield "file chunk", png(card, chunk(b"zTXt", b"chara-ext-asset_:0\0\0" + inflated))
    blank = deflated(b"=", 8)
    blanks = [chunk(b"zTXt", b"chara-ext-asset_:%d\0\0" % n + blank) for n in range(900)]
    yield "file chunks", png(card, *blanks)
    yield "chunks", png(card, *[chunk(b"tEXt", b"")] * 9_000)

    bomb = archive_with_zeros(200)
    yield "archive", bomb
    lying = bytearray(bomb)
    struct.pack_into("<I", lying, bomb.rindex(b"PK\1\2") + 24, 10)
    yield "lying archive", bytes(lying)
    yield "full archive", archive_with_zeros(31)
    entry = bomb[bomb.rindex(b"PK\1\2") : bomb.rindex(b"PK\5\6")]
    end = struct.pack("<4s4xHHIIH", b"PK\5\6", 3, 3, 300_000 * len(entry), 0, 0)
    yield "entries", entry * (15 * MEBIBYTE // len(entry)) + end
    zeros = chunk(b"zTXt", b"chara-ext-asset_:0\0\0" + inflated[:100])
    full = png(card, zeros, chunk(b"tEXt", b"chara-ext-asset_:1\0" + b"A" * 14 * MEBIBYTE))
    yield "png in archive", zipped({"a.png": full, "b.png": full})


def outcome(content: bytes) -> str:
    try:
        card = read_card(content)
    except Invalid as refusal:
        return refusal.code
    check(card)
    return card.container


def check(card: Card) -> None:
    """What is read is plausible, and a book in it can be read too."""
    assert card.fields["name"].strip()
    assert all(isinstance(card.fields[key], str) for key in ("description", "first_mes"))
    assert all(isinstance(tag, str) for tag in card.fields["tags"])
    assert sum(len(file.content) for file in card.files) <= 48 * MEBIBYTE
    if "character_book" in card.fields:
        read_lorebook(card.fields["character_book"])


def peak() -> int:
    """The most memory this process had, in MiB; a program that was replaced does not count."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


if __name__ == "__main__":
    outcomes: dict[str, Counter[str]] = {}
    for source in (mutants_of_real_files(), bombs()):
        for name, mutant in source:
            outcomes.setdefault(name, Counter())[outcome(mutant)] += 1
    print(json.dumps({"outcomes": outcomes, "peak": peak()}))
