"""Turns the text of a card, base64 or plain JSON, into a JSON object that a database can hold."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from services.cards.card import Findings
from services.cards.mending import make_storable, without_unstorable
from services.cards.refusals import (
    MAX_BRACKETS,
    MAX_COMMAS,
    MAX_INFLATED_BYTES,
    MAX_JSON_DEPTH,
    card_too_large,
    refusal,
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n\0"
_ENCRYPTED = b"rcc||"
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_STRAY = bytes(set(range(256)) - set(_ALPHABET))

# The longest whole number, sign included, that may still fit a float. Python refuses to read
# numbers of more than 4,300 digits with an error that JSON readers do not expect.
_MAX_NUMBER_LENGTH = 310


def trimmed(text: bytes) -> bytes:
    """Return the text without a byte order mark and without blanks or NULs at its ends."""
    return text.strip(_BLANKS).removeprefix(_BYTE_ORDER_MARK).strip(_BLANKS)


def begins_json(content: bytes) -> bool:
    """Whether a file looks like JSON, or like a card that RisuAI encrypted."""
    return trimmed(content).startswith((b"{", b"[", _ENCRYPTED))


def object_in_chunk(text: bytes, found: Findings) -> dict[str, Any]:
    """Return the card object in the text of a PNG chunk: base64 of JSON, or JSON as it is.

    Raises like `object_in_json`. (spec: sillytavern cards, rule 3)
    """
    text = trimmed(text)
    if text.startswith(b"{"):
        found.add("NOT_BASE64", "The card is plain JSON where base64 text is usual.")
        return object_in_json(text, found)
    _refuse_encrypted(text)
    return object_in_json(decode_base64(text, found), found)


def object_in_json(text: bytes, found: Findings) -> dict[str, Any]:
    """Return the object that a UTF-8 JSON text holds, made storable.

    Raises `Invalid`: ENCRYPTED_CARD, BROKEN_CARD (not JSON), NOT_A_CARD (not an object), and the
    limits CARD_CHUNK_TOO_LARGE, CARD_TOO_MANY_VALUES, CARD_TOO_DEEP, CARD_TEXT_TOO_LONG,
    CARD_LIST_TOO_LONG.
    """
    text = trimmed(text)
    _refuse_encrypted(text)
    if len(text) > MAX_INFLATED_BYTES:
        raise card_too_large()
    value = _parse(_decode_utf8(text, found), found)
    if not isinstance(value, dict):
        raise refusal("NOT_A_CARD", "The JSON is not a card: it is not an object.")
    make_storable(value, found)
    return value


def _refuse_encrypted(text: bytes) -> None:
    if text.startswith(_ENCRYPTED):
        raise refusal(
            "ENCRYPTED_CARD",
            "The card is encrypted by RisuAI. Export it there without encryption.",
        )


def decode_base64(text: bytes, found: Findings) -> bytes:
    """Return what base64 text stands for; stray characters and missing padding are mended."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        pass
    letters = text.translate(_URL_SAFE).translate(None, delete=_STRAY)
    # A single letter over a group of four carries less than a byte.
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    decoded = base64.b64decode(letters + b"=" * (-len(letters) % 4))
    found.add("BASE64_MENDED", "The base64 text of the card had stray characters or no padding.")
    return decoded


def _decode_utf8(text: bytes, found: Findings) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        found.add("INVALID_UTF8", "Some bytes are not UTF-8 text; they were replaced by U+FFFD.")
        return text.decode("utf-8", "replace")


def _parse(text: str, found: Findings) -> Any:
    if text.count("{") + text.count("[") > MAX_BRACKETS or text.count(",") > MAX_COMMAS:
        raise refusal("CARD_TOO_MANY_VALUES", "The card holds too many values.")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    name = without_unstorable(key[:40])
                    found.add("DUPLICATE_KEY", f'"{name}" is given twice; the last one was taken.')
                    break
                seen.add(key)
        return members

    try:
        # Raw line breaks and tabs inside strings are against JSON and common in hand-edited cards.
        return json.loads(text, strict=False, parse_int=_number, object_pairs_hook=members)
    except RecursionError:
        message = f"The card is nested more than {MAX_JSON_DEPTH} levels deep."
        raise refusal("CARD_TOO_DEEP", message) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise refusal("BROKEN_CARD", f"The card is not readable JSON ({place}).") from None


def _number(text: str) -> int | float:
    return int(text) if len(text) <= _MAX_NUMBER_LENGTH else float(text)
