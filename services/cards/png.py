"""Walks the chunks of a PNG file and gives its text chunks. Knows nothing of cards or JSON."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from services.cards.refusals import MAX_INFLATED_BYTES, MAX_PNG_CHUNKS, refusal

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TEXT_KINDS = (b"tEXt", b"zTXt", b"iTXt")
_HEADER = struct.Struct(">I4s")
_CRC = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A tEXt, zTXt or iTXt chunk.

    `keyword` is in lower case; `body` is what follows the keyword's NUL, not yet inflated.
    """

    kind: bytes
    keyword: str
    body: bytes


@dataclass(frozen=True, slots=True)
class PngTexts:
    """The text chunks of a PNG in file order, and how many bytes follow its end."""

    chunks: tuple[TextChunk, ...]
    trailing_bytes: int


def read_texts(content: bytes) -> PngTexts:
    """Walk a PNG up to IEND, checking every length and CRC.

    Raises `Invalid` BROKEN_PNG or CARD_TOO_MANY_CHUNKS. `content` begins with `SIGNATURE`.
    (spec: sillytavern cards, PNG container)
    """
    view = memoryview(content)
    chunks: list[TextChunk] = []
    position = len(SIGNATURE)
    for _ in range(MAX_PNG_CHUNKS):
        if len(content) - position < _HEADER.size + _CRC.size:
            raise refusal("BROKEN_PNG", "The PNG is cut off: it has no end (IEND) chunk.")
        length, kind = _HEADER.unpack_from(content, position)
        crc_position = position + _HEADER.size + length
        if crc_position + _CRC.size > len(content):
            raise refusal("BROKEN_PNG", "The PNG is cut off: a chunk is longer than the file.")
        (crc,) = _CRC.unpack_from(content, crc_position)
        if zlib.crc32(view[position + 4 : crc_position]) != crc:
            raise refusal("BROKEN_PNG", "The PNG is damaged: a chunk's checksum (CRC) is wrong.")
        if kind in _TEXT_KINDS:
            keyword, _, body = content[position + _HEADER.size : crc_position].partition(b"\0")
            chunks.append(TextChunk(kind, keyword.decode("latin-1").strip().lower(), body))
        position = crc_position + _CRC.size
        if kind == b"IEND":
            return PngTexts(tuple(chunks), len(content) - position)
    raise refusal("CARD_TOO_MANY_CHUNKS", f"The PNG has more than {MAX_PNG_CHUNKS:,} chunks.")


def text_of(chunk: TextChunk) -> bytes:
    """Return the text of a chunk, inflated where it was compressed.

    Raises `Invalid` BROKEN_CARD (not a readable text) or CARD_CHUNK_TOO_LARGE.
    """
    if chunk.kind == b"tEXt":
        return chunk.body
    if chunk.kind == b"zTXt":
        return _inflated(method=chunk.body[:1], data=chunk.body[1:])
    flag, method = chunk.body[:1], chunk.body[1:2]
    _language, _, rest = chunk.body[2:].partition(b"\0")
    _translated_keyword, _, text = rest.partition(b"\0")
    return text if flag == b"\0" else _inflated(method, text)


def _inflated(method: bytes, data: bytes) -> bytes:
    if method != b"\0":
        raise refusal("BROKEN_CARD", "The card is compressed with a method PNG does not know.")
    inflater = zlib.decompressobj()
    try:
        # One byte over the limit is enough to know; the rest of a bomb is never inflated.
        text = inflater.decompress(data, MAX_INFLATED_BYTES + 1)
    except zlib.error:
        raise refusal("BROKEN_CARD", "The compressed text of the card is damaged.") from None
    if len(text) > MAX_INFLATED_BYTES:
        limit = MAX_INFLATED_BYTES // 1024 // 1024
        raise refusal("CARD_CHUNK_TOO_LARGE", f"The card inflates to more than {limit} MiB.")
    if not inflater.eof:
        raise refusal("BROKEN_CARD", "The compressed text of the card is cut off.")
    return text
