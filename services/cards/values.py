"""Mends single values of a card towards the type its field must have, warning for each mend.

A value that cannot be used is replaced by the empty one; the source of the card still holds it.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

from services.cards.card import Findings

# Seconds of this size lie in the year 5138, milliseconds in 1973.
_SMALLEST_MILLISECONDS = 100_000_000_000
_END_OF_YEAR_9999 = 253_402_300_799

# What an integer column of the database holds.
LEAST, MOST = -(2**31), 2**31 - 1


def text(value: Any, path: str, found: Findings) -> str:
    """Return the value as text: null is empty, a number or boolean keeps its JSON spelling."""
    if isinstance(value, str):
        return value
    if value is None:
        found.add("NULL_VALUE", "The value is null; it was read as an empty text.", path)
        return ""
    if isinstance(value, dict | list):
        _drop("text", path, found)
        return ""
    found.add("TYPE_MENDED", "The value is not a text; it was turned into one.", path)
    return json.dumps(value)


def texts(value: Any, path: str, found: Findings, separator: str | None = None) -> list[str]:
    """Return the value as a list of texts; blank and unusable items are left out.

    A single text becomes a list of one, or of its parts when there is a `separator`.
    """
    if value is None:
        found.add("NULL_VALUE", "The value is null; it was read as an empty list.", path)
        return []
    if isinstance(value, dict):
        _drop("list of texts", path, found)
        return []
    if not isinstance(value, list):
        found.add("TYPE_MENDED", "The value is not a list; it was turned into one.", path)
        whole = value if isinstance(value, str) else json.dumps(value)
        parts = [part.strip() for part in whole.split(separator)] if separator else [whole]
        return [part for part in parts if part.strip()]
    items: list[str] = []
    for index, item in enumerate(value):
        if item is None or (isinstance(item, str) and not item.strip()):
            found.add("ITEM_DROPPED", "The item is empty; it was left out.", f"{path}.{index}")
        elif isinstance(item, dict | list):
            _drop("text", f"{path}.{index}", found)
        else:
            items.append(text(item, f"{path}.{index}", found))
    return items


def extensions(value: Any, path: str, found: Findings) -> dict[str, Any]:
    """Return the extensions as they are, or an empty object when they are not an object."""
    if value is None:
        found.add("NULL_VALUE", "The value is null; it was read as an empty object.", path)
        return {}
    return mapping(value, path, found) or {}


def mapping(value: Any, path: str, found: Findings) -> dict[str, Any] | None:
    """Return an object as it is, None for anything else."""
    if isinstance(value, dict):
        return value
    _drop("object", path, found)
    return None


def book(value: Any, path: str, found: Findings) -> dict[str, Any] | None:
    """Return an embedded lorebook without its `use_regex`, None when it is not an object."""
    kept = mapping(value, path, found)
    if kept is None:
        return None
    entries = kept.get("entries")
    if isinstance(entries, dict):
        message = "The entries of the lorebook are an object where a list is usual."
        found.add("BOOK_ENTRIES_ARE_A_MAP", message, f"{path}.entries")
        entries = list(entries.values())
    for entry in entries if isinstance(entries, list) else []:
        # Each key is judged by its own shape, and writing puts the flag in again.
        if isinstance(entry, dict):
            entry.pop("use_regex", None)
    return kept


def assets(value: Any, path: str, found: Findings) -> list[dict[str, Any]] | None:
    """Return the assets that are objects, as they are; None when there is no list."""
    if not isinstance(value, list):
        _drop("list of assets", path, found)
        return None
    kept = []
    for index, item in enumerate(value):
        if isinstance(item, dict):
            kept.append(item)
        else:
            _drop("object", f"{path}.{index}", found)
    return kept


def seconds(value: Any, path: str, found: Findings) -> int | float | None:
    """Return a date as Unix seconds, from seconds, milliseconds or ISO 8601 text.

    Returns None for other texts and for times before 1970 or after the year 9999.
    """
    number = number_of(value)
    if number is None and isinstance(value, str):
        number = _seconds_of_iso(value)
    if number is not None and number >= _SMALLEST_MILLISECONDS:
        number = number / 1000
    if number is None or not 0 <= number <= _END_OF_YEAR_9999:
        _drop("date", path, found)
        return None
    if number == value:
        return number
    found.add("DATE_MENDED", "The date was not in Unix seconds; it was turned into them.", path)
    return int(number)


def boolean(value: Any, default: bool, path: str, found: Findings) -> bool:
    """Return a boolean, also from its text or a number; null and unusable values are `default`."""
    if isinstance(value, bool):
        return value
    if value is None:
        return default
    spelt = {"true": True, "1": True, "false": False, "0": False}.get(str(value).strip().lower())
    if spelt is None:
        _drop("boolean", path, found)
        return default
    found.add("TYPE_MENDED", "The value is not a boolean; it was turned into one.", path)
    return spelt


def whole(
    value: Any, path: str, found: Findings, *, least: int = LEAST, most: int = MOST
) -> int | None:
    """Return a whole number, also from text or a fraction; null and unusable values are None."""
    if value is None or value == "":
        return None
    number = number_of(value)
    if number is None or not math.isfinite(number):
        _drop("number", path, found)
        return None
    kept = min(most, max(least, round(number)))
    if kept != number:
        found.add("NUMBER_MENDED", f"The number was read as {kept}.", path)
    elif isinstance(value, str):
        found.add("TYPE_MENDED", "The value is not a number; it was turned into one.", path)
    return kept


def number_of(value: Any) -> int | float | None:
    """Return the number that a number or a text stands for, None when it is not one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def copied(value: Any) -> Any:
    """Return a copy of parsed JSON that shares no object or list with it."""
    if isinstance(value, dict):
        return {key: copied(member) for key, member in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def keep(fields: dict[str, Any], key: str, value: Any) -> None:
    """Put an optional field where it has a value."""
    if value is not None:
        fields[key] = value


def _seconds_of_iso(value: str) -> float | None:
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    # ISO text without a zone is taken as UTC, as V3 counts in UTC.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _drop(wanted: str, path: str, found: Findings) -> None:
    message = f"The value cannot be used as a {wanted}; it was left out."
    found.add("VALUE_DROPPED", message, path)
