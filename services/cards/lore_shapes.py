"""Turns the entries of every kind of lorebook into those of a card's book, and into world info.

Known are world info, NovelAI, Agnai and RisuAI, each by the names its entries use. Names that are
not known stay as they are. (spec: sillytavern cards, 8 and 10)
"""

from __future__ import annotations

from typing import Any

from services.cards.lorebook import split_keys

Entry = dict[str, Any]

# World info on the left, the entry of a book on the right.
_BOOK_NAMES = {
    "uid": "id",
    "key": "keys",
    "keysecondary": "secondary_keys",
    "order": "insertion_order",
    "comment": "comment",
    "content": "content",
    "constant": "constant",
    "selective": "selective",
}
# World info on the left, the extensions of a book's entry on the right.
_EXTENSION_NAMES = {
    "position": "position",
    "displayIndex": "display_index",
    "excludeRecursion": "exclude_recursion",
    "preventRecursion": "prevent_recursion",
    "delayUntilRecursion": "delay_until_recursion",
    "probability": "probability",
    "useProbability": "useProbability",
    "depth": "depth",
    "selectiveLogic": "selectiveLogic",
    "outletName": "outlet_name",
    "group": "group",
    "groupOverride": "group_override",
    "groupWeight": "group_weight",
    "useGroupScoring": "use_group_scoring",
    "scanDepth": "scan_depth",
    "caseSensitive": "case_sensitive",
    "matchWholeWords": "match_whole_words",
    "automationId": "automation_id",
    "role": "role",
    "vectorized": "vectorized",
    "sticky": "sticky",
    "cooldown": "cooldown",
    "delay": "delay",
    "matchPersonaDescription": "match_persona_description",
    "matchCharacterDescription": "match_character_description",
    "matchCharacterPersonality": "match_character_personality",
    "matchCharacterDepthPrompt": "match_character_depth_prompt",
    "matchScenario": "match_scenario",
    "matchCreatorNotes": "match_creator_notes",
    "triggers": "triggers",
    "ignoreBudget": "ignore_budget",
}
_WORLD_INFO_DEFAULTS = {"selective": True, "order": 100, "position": 0, "disable": False}

_AGNAI_NAMES = {"keywords": "keys", "entry": "content", "weight": "insertion_order"}
_NOVELAI_NAMES = {"text": "content", "displayName": "name", "forceActivation": "constant"}
_RISU_NAMES = {
    "key": "keys",
    "secondkey": "secondary_keys",
    "insertorder": "insertion_order",
    "alwaysActive": "constant",
}


def extensions_of(entry: Entry) -> dict[str, Any]:
    """Return the extensions of an entry, empty when they are none."""
    extensions = entry.get("extensions")
    return extensions if isinstance(extensions, dict) else {}


def as_book_entry(entry: Entry) -> Entry:
    """Return the entry with the names of a card's book; `entry` itself when it has them already."""
    if "keys" not in entry and not entry.keys().isdisjoint(("insertorder", "alwaysActive")):
        return _from_risu(entry)
    if "keys" not in entry and not entry.keys().isdisjoint(("key", "keysecondary", "disable")):
        return _from_world_info(entry)
    if "content" not in entry and not entry.keys().isdisjoint(("contextConfig", "displayName")):
        return _from_novelai(entry)
    if "content" not in entry and "entry" in entry:
        return {"position": "before_char", **_renamed(entry, _AGNAI_NAMES)}
    return entry


def _renamed(entry: Entry, names: dict[str, str]) -> Entry:
    return {names.get(name, name): value for name, value in entry.items()}


def _from_world_info(entry: Entry) -> Entry:
    given = {**_WORLD_INFO_DEFAULTS, **entry}
    extensions = {**extensions_of(entry)}
    book_entry: Entry = {"keys": []}
    for name, value in given.items():
        if name in _BOOK_NAMES:
            book_entry[_BOOK_NAMES[name]] = value
        elif name in _EXTENSION_NAMES:
            extensions[_EXTENSION_NAMES[name]] = value
        elif name == "disable":
            book_entry["enabled"] = not value
        elif name != "extensions":
            book_entry[name] = value
    return {**book_entry, "extensions": extensions}


def _from_novelai(entry: Entry) -> Entry:
    config = entry.get("contextConfig")
    order = config.get("budgetPriority") if isinstance(config, dict) else None
    given = {"position": "before_char", "insertion_order": 0 if order is None else order}
    return {**given, **_renamed(entry, _NOVELAI_NAMES)}


def _from_risu(entry: Entry) -> Entry:
    book_entry = {"position": "before_char", **_renamed(entry, _RISU_NAMES)}
    for name in ("keys", "secondary_keys"):
        line = book_entry.get(name)
        book_entry[name] = split_keys(line) if isinstance(line, str) else []
    chance = book_entry.pop("activationPercent", None)
    if chance is not None:
        book_entry["extensions"] = {**extensions_of(entry), "probability": chance}
    return book_entry


def as_world_info(entry: Entry, uid: int) -> Entry:
    """Return an entry of a book with the names of world info, under another id."""
    book_entry = {
        name: value for name, value in entry.items() if name not in ("use_regex", "position")
    }
    names = {book: name for name, book in _BOOK_NAMES.items()}
    world_entry = _renamed(book_entry, names)
    world_entry["uid"] = uid
    world_entry["disable"] = not world_entry.pop("enabled", True)
    known = {book: name for name, book in _EXTENSION_NAMES.items()}
    extensions = world_entry.pop("extensions", {})
    world_entry |= {known[name]: value for name, value in extensions.items() if name in known}
    rest = {name: value for name, value in extensions.items() if name not in known}
    if rest:
        world_entry["extensions"] = rest
    return world_entry
