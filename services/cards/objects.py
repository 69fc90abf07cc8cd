"""Builds the JSON object of a card, V2 or V3, from what the character is and what it came from."""

from __future__ import annotations

from typing import Any

from services.cards.lore_reading import read_lorebook
from services.cards.lore_writing import book_of_v2, write_lorebook
from services.cards.normalising import GREETINGS, KNOWN, ROOT_EXTENSIONS, TEXTS, V3_ONLY
from services.cards.values import copied


def object_of_v2(fields: dict[str, Any], source: dict[str, Any] | None) -> dict[str, Any]:
    """Return a V2 card; what only V3 knows is left out."""
    data = {key: value for key, value in _data(fields, source).items() if key not in V3_ONLY}
    if "character_book" in data:
        data["character_book"] = book_of_v2(data["character_book"])
    return {"spec": "chara_card_v2", "spec_version": "2.0", "data": data, **_root(data, source)}


def object_of_v3(fields: dict[str, Any], source: dict[str, Any] | None) -> dict[str, Any]:
    """Return a V3 card, with everything that `fields` and `source` hold."""
    data = _data(fields, source)
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": data, **_root(data, source)}


def _data(fields: dict[str, Any], source: dict[str, Any] | None) -> dict[str, Any]:
    data: dict[str, Any] = dict.fromkeys(TEXTS, "")
    data |= {key: [] for key in (*GREETINGS, "tags")} | {"extensions": {}}
    original = (source or {}).get("data")
    if isinstance(original, dict):
        data |= {key: value for key, value in original.items() if key not in KNOWN}
    data = copied(data | fields)
    if isinstance(data.get("character_book"), dict):
        data["character_book"] = write_lorebook(read_lorebook(data["character_book"]))
    return data


def _root(data: dict[str, Any], source: dict[str, Any] | None) -> dict[str, Any]:
    """Return what stands beside `data`: unknown keys as they were, copies of fields brought up.

    Many programs keep copies at the root, and others read them there.
    """
    now = {**data, "creatorcomment": data["creator_notes"]}
    now |= {key: data["extensions"][key] for key in ROOT_EXTENSIONS if key in data["extensions"]}
    known = (*KNOWN, *ROOT_EXTENSIONS, "creatorcomment")
    return {
        key: now[key] if key in known and key in now else copied(value)
        for key, value in (source or {}).items()
        if key not in ("spec", "spec_version", "data")
    }
