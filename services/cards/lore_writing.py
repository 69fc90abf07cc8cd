"""Writes lorebooks: as the book inside a card, and as files of their own."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from services.cards.card import Findings
from services.cards.lore_reading import LOGICS, POSITIONS, read_entry, read_settings
from services.cards.lore_shapes import as_book_entry, as_world_info, extensions_of
from services.cards.lorebook import Lorebook, LoreEntry, is_pattern
from services.cards.values import copied

# Root keys of lorebook files that say what kind of file it is, or hold what is written anew.
_OF_THE_FILE = (
    *("spec", "type", "ver", "kind", "data", "lorebookVersion", "originalData"),
    *("scanDepth", "tokenBudget", "recursiveScanning"),
)
# What V3 asks these to be; another value is written as it was read.
_KINDS: dict[str, set[type]] = {
    "constant": {bool},
    "content": {str},
    "enabled": {bool},
    "insertion_order": {int, float},
}
_DECORATORS = re.compile(r"(?:@@[^\n]*(?:\n|$))+(?:\r?\n)*")


class LorebookTarget(StrEnum):
    """The kinds of files that a lorebook can be written as."""

    WORLD_INFO = "world_info"
    JSON_V3 = "json_v3"


def write_lorebook(lorebook: Lorebook) -> dict[str, Any]:
    """Return the book as a card holds it, with every entry in the names of V3.

    What the sources of book and entries hold stays, but where our columns say otherwise. To read
    it again gives the same columns. (spec: sillytavern cards, 4 and rule 7)
    """
    source = {name: value for name, value in lorebook.source.items() if name not in _OF_THE_FILE}
    book: dict[str, Any] = copied(
        {name: value for name, value in source.items() if name != "entries"}
    )
    names = ("name", "description", "scan_depth", "token_budget", "recursive_scanning")
    settings = (
        lorebook.name,
        lorebook.description,
        lorebook.scan_depth,
        lorebook.token_budget,
        lorebook.recursive,
    )
    present = read_settings(book, Findings())
    book |= {
        name: value
        for name, value, before in zip(names, settings, present, strict=True)
        if value != before
    }
    book["extensions"] = book.get("extensions") or {}
    book["entries"] = [write_entry(entry) for entry in lorebook.entries]
    return book


def write_entry(entry: LoreEntry) -> dict[str, Any]:
    """Return an entry with the names of V3; what its source holds beside our columns stays."""
    written: dict[str, Any] = copied(as_book_entry(entry.source))
    extensions = written["extensions"] = copied(extensions_of(written))
    present = asdict(read_entry(written, "", Findings()))
    wanted = asdict(entry)
    changed = {name for name, value in wanted.items() if present[name] != value}

    if "name" in changed:
        title = "comment" if "comment" in written and not written.get("name") else "name"
        written[title] = entry.name
        # Where a name is missing the comment stands for it, so it goes too.
        written |= {"comment": ""} if not entry.name and written.get("comment") else {}
    if "secondary_keys" in changed:
        written["selective"] = bool(entry.secondary_keys)
    for name, kinds in _KINDS.items():
        if name in changed or type(written.get(name)) not in kinds:
            written[name] = wanted[name]
    for name in ("keys", "secondary_keys"):
        if name in changed or not _are_texts(written.get(name)):
            written[name] = list(wanted[name])

    for name in ("depth", "sticky", "cooldown", "delay"):
        if name in changed:
            extensions[name] = wanted[name]
    if "selective_logic" in changed:
        extensions["selectiveLogic"] = LOGICS.index(entry.selective_logic)
    if "probability" in changed:
        extensions |= {"probability": entry.probability, "useProbability": True}
    if "recursion" in changed:
        extensions["exclude_recursion"] = entry.recursion.exclude
        extensions["prevent_recursion"] = entry.recursion.prevent
        extensions["delay_until_recursion"] = entry.recursion.delay_until
    if "position" in changed or written.get("position") not in (None, "before_char", "after_char"):
        written["position"] = entry.position if entry.position == "before_char" else "after_char"
        extensions["position"] = POSITIONS.index(entry.position)
    written.pop("use_regex", None)
    return {**written, "use_regex": _has_patterns(entry.keys)}


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _has_patterns(keys: tuple[str, ...]) -> bool:
    return bool(keys) and all(map(is_pattern, keys))


def book_of_v2(book: dict[str, Any]) -> dict[str, Any]:
    """Return a book as V2 knows it: without pattern flags and decorator lines (4.1)."""
    entries = [
        {name: value for name, value in entry.items() if name != "use_regex"}
        | {"content": without_decorators(entry["content"])}
        for entry in book["entries"]
    ]
    return {**book, "entries": entries}


def without_decorators(content: str) -> str:
    """Return the text of an entry without the decorator lines that it begins with."""
    return _DECORATORS.sub("", content, count=1) if content.startswith("@@") else content


def write_lorebook_file(lorebook: Lorebook, target: LorebookTarget) -> bytes:
    """Return the bytes of a lorebook file; the same values always give the same bytes."""
    book = write_lorebook(lorebook)
    if target is LorebookTarget.JSON_V3:
        return as_json({"spec": "lorebook_v3", "data": book})
    entries = {
        str(uid): as_world_info(entry, uid) | {"position": POSITIONS.index(ours.position)}
        for uid, (entry, ours) in enumerate(zip(book["entries"], lorebook.entries, strict=True))
    }
    return as_json({**book, "entries": entries})


def as_json(value: Any) -> bytes:
    """Return the JSON text that every file is written as."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
