"""Who a character is, as a person writes it: the fields of a card that are written by hand.

Pure. Fields of a card that nobody writes here are left as they came.
Source: spec soul-mirror, section 1 (provisional identity, core anchor and forbidden zone).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.text import MAX_LINE, MAX_TEXT, checked_text, refuse_unstorable

FORBIDDEN_ZONE = "forbidden_zone"
# What a field is called in inputs, where that is not its name in a card.
INPUT_NAMES = {
    "first_mes": "firstMessage",
    "mes_example": "exampleMessages",
    "system_prompt": "systemPrompt",
    "post_history_instructions": "postHistoryInstructions",
    FORBIDDEN_ZONE: "forbiddenZone",
}
_LINES = {"name", "nickname"}


def changed_identity(
    identity: Mapping[str, Any], changes: Mapping[str, Any], *path: str | int
) -> dict[str, Any]:
    """The identity with some fields set, by their names in a card. What is null, empty or blank is
    taken out, except the name; everything else stays.

    Raises Invalid (TEXT_EMPTY, TEXT_TOO_LONG, INVALID_TEXT) with the path of the input's field.
    """
    written = {
        key: _checked(key, value, (*path, INPUT_NAMES.get(key, key)))
        for key, value in changes.items()
    }
    kept = {key: value for key, value in identity.items() if key not in changes}
    return kept | {key: value for key, value in written.items() if value}


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names of the fields that differ, sorted. An empty field is as good as none."""
    return sorted(
        key
        for key in before.keys() | after.keys()
        if (before.get(key) or None) != (after.get(key) or None)
    )


def _checked(key: str, value: Any, path: tuple[str | int, ...]) -> Any:
    if key == FORBIDDEN_ZONE:
        lines: Sequence[str] = value or []
        return [checked_text(each, *path, index) for index, each in enumerate(lines)]
    if key == "name":
        return checked_text(value or "", *path, max_length=MAX_LINE)
    if isinstance(value, str):
        longest = MAX_LINE if key in _LINES else MAX_TEXT
        return checked_text(value, *path, max_length=longest) if value.strip() else None
    refuse_unstorable(value, path)
    return value
