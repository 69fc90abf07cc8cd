"""Tells by its first bytes what a file is, and whether the path it came with may be used."""

from __future__ import annotations

import re

UNKNOWN = "application/octet-stream"
PNG, JPEG = "image/png", "image/jpeg"

# What only programs look at is told by text; markup is never called so, for browsers would run it.
_JSON, _TEXT = "application/json", "text/plain"

_STARTS = (
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"\0\1\0\0\0", "font/ttf"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
)
_RIFF_KINDS = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_FTYP_KINDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}

_SNIFFED_BYTES = 4096
_CONTROLS_OF_BINARIES = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")

_MAX_PATH_LENGTH = 500
_UNSAFE_LETTERS = re.compile("[\0-\x1f\x7f\ud800-\udfff\\\\]")
_DRIVE = re.compile("[A-Za-z]:")


def media_type_of(content: bytes) -> str:
    """Return the media type of a file by its bytes, `application/octet-stream` when unknown."""
    for start, media_type in _STARTS:
        if content.startswith(start):
            return media_type
    if content.startswith(b"RIFF"):
        return _RIFF_KINDS.get(content[8:12], UNKNOWN)
    if content[4:8] == b"ftyp":
        return _FTYP_KINDS.get(content[8:12], "video/mp4")
    head = content[:_SNIFFED_BYTES]
    if not head or _CONTROLS_OF_BINARIES.search(head) or not _is_utf8(head):
        return UNKNOWN
    is_json = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"["))
    return _JSON if is_json else _TEXT


def is_safe_path(path: str) -> bool:
    """Whether a path stays below the folder it is joined to, on every system."""
    return (
        0 < len(path) <= _MAX_PATH_LENGTH
        and not _UNSAFE_LETTERS.search(path)
        and not _DRIVE.match(path)
        and all(part not in ("", ".", "..") for part in path.split("/"))
    )


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # The last character may have been cut at the end of what is looked at.
        return len(head) == _SNIFFED_BYTES and error.start > len(head) - 4
    return True
