"""Walks the chunks of a PNG file, gives its text chunks, and puts other ones in.

Knows nothing of cards or JSON.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from services.cards.refusals import MAX_INFLATED_BYTES, MAX_PNG_CHUNKS, card_too_large, refusal

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What the format allows for the keyword of a text chunk.
MAX_KEYWORD_LENGTH = 79

_TEXT_KINDS = (b"tEXt", b"zTXt", b"iTXt")
_HEADER = struct.Struct(">I4s")
_CRC = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A tEXt, zTXt or iTXt chunk.

    `name` is the keyword as it is spelt, `keyword` the same in lower case; `body` is what follows
    the keyword's NUL, not yet inflated. The chunk is `start` to `end` of the file.
    """

    kind: bytes
    name: str
    body: bytes
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The keyword as it is compared."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class PngTexts:
    """The text chunks of a PNG in file order, and where its last chunk (IEND) begins and ends."""

    chunks: tuple[TextChunk, ...]
    end_chunk: int
    end: int


def read_texts(content: bytes) -> PngTexts:
    """Walk a PNG up to IEND, checking every length and CRC.

    Raises `Invalid` BROKEN_PNG or CARD_TOO_MANY_CHUNKS. `content` begins with `SIGNATURE`.
    (spec: sillytavern cards, PNG container)
    """
    chunks: list[TextChunk] = []
    for number, (kind, start, end) in enumerate(_chunks(content), 1):
        if number > MAX_PNG_CHUNKS:
            break
        if kind in _TEXT_KINDS:
            keyword, _, body = content[start + _HEADER.size : end - _CRC.size].partition(b"\0")
            chunks.append(TextChunk(kind, keyword.decode("latin-1").strip(), body, start, end))
        if kind == b"IEND":
            return PngTexts(tuple(chunks), start, end)
    raise refusal("CARD_TOO_MANY_CHUNKS", f"The PNG has more than {MAX_PNG_CHUNKS:,} chunks.")


def _chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    view = memoryview(content)
    start = len(SIGNATURE)
    while True:
        if len(content) - start < _HEADER.size + _CRC.size:
            raise refusal("BROKEN_PNG", "The PNG is cut off: it has no end (IEND) chunk.")
        length, kind = _HEADER.unpack_from(content, start)
        crc_position = start + _HEADER.size + length
        end = crc_position + _CRC.size
        if end > len(content):
            raise refusal("BROKEN_PNG", "The PNG is cut off: a chunk is longer than the file.")
        (crc,) = _CRC.unpack_from(content, crc_position)
        if zlib.crc32(view[start + 4 : crc_position]) != crc:
            raise refusal("BROKEN_PNG", "The PNG is damaged: a chunk's checksum (CRC) is wrong.")
        yield kind, start, end
        start = end


def text_of(chunk: TextChunk) -> bytes:
    """Return the text of a chunk, inflated where it was compressed.

    Raises `Invalid` BROKEN_CARD (not a readable text) or CARD_CHUNK_TOO_LARGE.
    """
    if chunk.kind == b"tEXt":
        return chunk.body
    if chunk.kind == b"zTXt":
        return _inflated(chunk.body[:1], chunk.body[1:])
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
        raise card_too_large()
    if not inflater.eof:
        raise refusal("BROKEN_CARD", "The compressed text of the card is cut off.")
    return text


def without(content: bytes, texts: PngTexts, is_unwanted: Callable[[TextChunk], bool]) -> bytes:
    """Return the PNG without the text chunks that are unwanted and without what follows its end."""
    kept: list[bytes] = []
    start = 0
    for chunk in filter(is_unwanted, texts.chunks):
        kept.append(content[start : chunk.start])
        start = chunk.end
    return b"".join((*kept, content[start : texts.end]))


def with_texts(picture: bytes, named_texts: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a PNG with tEXt chunks put in before its end; keywords and texts are Latin-1."""
    texts = read_texts(picture)
    added = (_chunk(b"tEXt", name.encode("latin-1") + b"\0" + text) for name, text in named_texts)
    return b"".join((picture[: texts.end_chunk], *added, picture[texts.end_chunk : texts.end]))


def plain_picture(width: int, height: int, grey: int) -> bytes:
    """Return a PNG of one grey (0 to 255)."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    # Stored, not compressed, so that no version of zlib makes other bytes of it.
    rows = zlib.compress((b"\0" + bytes((grey,)) * width) * height, 0)
    return SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    return _HEADER.pack(len(body), kind) + body + _CRC.pack(zlib.crc32(kind + body))
