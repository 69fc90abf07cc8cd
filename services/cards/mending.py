"""Makes parsed JSON storable: enforces its size limits and mends what a database cannot hold."""

from __future__ import annotations

import math
import re
from typing import Any

from services.cards.card import Findings
from services.cards.refusals import MAX_JSON_DEPTH, MAX_LIST_LENGTH, MAX_TEXT_LENGTH, refusal

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")

# What orjson can write: signed and unsigned 64 bits.
_MIN_WHOLE, _MAX_WHOLE = -(2**63), 2**64 - 1

# Keys can be a million characters long and paths repeat them at every level.
_MAX_KEY_IN_PATH = 40


def make_storable(root: dict[str, Any], found: Findings) -> None:
    """Mend a parsed JSON object in place, adding a warning for each mend.

    U+0000 is removed and a lone surrogate becomes U+FFFD, in keys too (PostgreSQL holds neither);
    a whole number beyond 64 bits becomes a float; NaN and the infinities become null.
    Raises `Invalid`: CARD_TOO_DEEP, CARD_TEXT_TOO_LONG, CARD_LIST_TOO_LONG.
    """
    _mend_members(root, "", 1, found)


def without_unstorable(text: str) -> str:
    """Return the text without U+0000 and with U+FFFD for each lone surrogate."""
    return _SURROGATE.sub("\ufffd", text.replace("\0", ""))


def _mended(value: Any, path: str, depth: int, found: Findings) -> Any:
    if isinstance(value, str):
        return _mended_text(value, path, found)
    if isinstance(value, dict):
        _mend_members(value, path, depth, found)
    elif isinstance(value, list):
        _check_size(len(value), depth)
        for index, item in enumerate(value):
            value[index] = _mended(item, f"{path}.{index}", depth + 1, found)
    elif isinstance(value, float) and not math.isfinite(value):
        found.add("NUMBER_NOT_FINITE", "The number has no finite value; it became null.", path)
        return None
    elif isinstance(value, int) and not _MIN_WHOLE <= value <= _MAX_WHOLE:
        return _rounded(value, path, found)
    return value


def _mend_members(value: dict[str, Any], path: str, depth: int, found: Findings) -> None:
    _check_size(len(value), depth)
    mended: dict[str, Any] = {}
    collisions = 0
    for key, member in value.items():
        member_path = without_unstorable(key[:_MAX_KEY_IN_PATH])
        if path:
            member_path = f"{path}.{member_path}"
        new_key = _mended_text(key, member_path, found)
        if new_key != key:
            # Two keys may become alike; neither value may be lost for it. One rising number for
            # the whole object keeps this linear when every key is alike.
            base = new_key
            while new_key in value or new_key in mended:
                collisions += 1
                new_key = f"{base}\ufffd{collisions}"
        mended[new_key] = _mended(member, member_path, depth + 1, found)
    value.clear()
    value.update(mended)


def _check_size(length: int, depth: int) -> None:
    if depth > MAX_JSON_DEPTH:
        message = f"The card is nested more than {MAX_JSON_DEPTH} levels deep."
        raise refusal("CARD_TOO_DEEP", message)
    if length > MAX_LIST_LENGTH:
        message = f"A list or object in the card has more than {MAX_LIST_LENGTH:,} members."
        raise refusal("CARD_LIST_TOO_LONG", message)


def _mended_text(text: str, path: str, found: Findings) -> str:
    if len(text) > MAX_TEXT_LENGTH:
        message = f"A text in the card is longer than {MAX_TEXT_LENGTH:,} characters."
        raise refusal("CARD_TEXT_TOO_LONG", message)
    if not _UNSTORABLE.search(text):
        return text
    if "\0" in text:
        found.add("NUL_REMOVED", "The text held NUL characters; they were removed.", path)
    if _SURROGATE.search(text):
        message = "The text held broken characters (half of a pair); U+FFFD stands for each."
        found.add("SURROGATE_REPLACED", message, path)
    return without_unstorable(text)


def _rounded(value: int, path: str, found: Findings) -> float | None:
    try:
        rounded = float(value)
    except OverflowError:
        found.add("NUMBER_NOT_FINITE", "The number is too large; it became null.", path)
        return None
    found.add("NUMBER_ROUNDED", "The whole number needs more than 64 bits; it was rounded.", path)
    return rounded
