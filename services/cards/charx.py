"""Reads the files of a CharX: a zip archive, maybe with a picture in front of it.

Everything an archive says of itself is checked before anything is inflated, and nothing is inflated
beyond the limits.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass

from services.cards.media import is_safe_path
from services.cards.refusals import (
    MAX_FILES,
    MAX_FILES_BYTES,
    files_too_large,
    refusal,
    too_many_files,
)
from services.errors import Invalid

_END = b"PK\x05\x06"
_DIRECTORY_ENTRY = b"PK\x01\x02"
# The end record and the longest comment after it.
_LONGEST_END = 22 + 0xFFFF
_ENCRYPTED = 0x1 | 0x40
_LOCAL_HEADER = struct.Struct("<26xHH")

# What zipfile raises for archives that are not what they say.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of an archive by path, in its own order, and the bytes in front of it."""

    files: dict[str, bytes]
    front: bytes


def is_archive(content: bytes) -> bool:
    """Whether the bytes are, or end with, a zip archive."""
    return content.startswith(b"PK\x03\x04") or _END in content[-_LONGEST_END:]


def read_archive(content: bytes) -> Archive:
    """Inflate all files of an archive; folders are left out.

    Raises `Invalid`: BROKEN_CHARX (not readable, or not what it says of itself), UNSAFE_CHARX (a
    path that leads elsewhere, a link, one path twice, files that share bytes), ENCRYPTED_CARD,
    CARD_TOO_MANY_FILES, CARD_FILES_TOO_LARGE. (spec: sillytavern cards, CharX)
    """
    # zipfile builds an object for each entry of the directory: count them before it does.
    if content.count(_DIRECTORY_ENTRY) > MAX_FILES:
        raise too_many_files()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            _check_entries(content, entries, archive.start_dir)
            files = {
                entry.filename: _inflated(archive, entry) for entry in entries if not entry.is_dir()
            }
    except _BROKEN:
        raise _broken() from None
    front = min((entry.header_offset for entry in entries), default=0)
    return Archive(files, content[:front])


def _check_entries(content: bytes, entries: list[zipfile.ZipInfo], start_dir: int) -> None:
    paths: set[str] = set()
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED:
            raise refusal("ENCRYPTED_CARD", "The archive is encrypted. Pack it without a password.")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _broken()
        path = entry.orig_filename
        is_link = stat.S_ISLNK(entry.external_attr >> 16)
        if is_link or path in paths or not is_safe_path(path.removesuffix("/")):
            raise _unsafe()
        paths.add(path)
    if sum(entry.file_size for entry in entries) > MAX_FILES_BYTES:
        raise files_too_large()
    end = 0
    for entry in sorted(entries, key=lambda each: each.header_offset):
        if entry.header_offset < end:
            raise _unsafe()
        name_length, extra_length = _LOCAL_HEADER.unpack_from(content, entry.header_offset)
        header = _LOCAL_HEADER.size + name_length + extra_length
        end = entry.header_offset + header + entry.compress_size
    if end > start_dir:
        raise _broken()


def _inflated(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise _broken()
    return content


def _broken() -> Invalid:
    return refusal("BROKEN_CHARX", "The archive is damaged, or packed in a way CharX does not use.")


def _unsafe() -> Invalid:
    message = "The archive holds a link, a path that leads elsewhere, or the same place twice."
    return refusal("UNSAFE_CHARX", message)
