"""Reads the names that programs before and beside the specifications gave to a card's fields.

Pygmalion and its editors, text-generation-webui, Agnai. (spec: sillytavern cards, 10)
"""

from __future__ import annotations

from typing import Any

from services.cards.card import Findings

# In order of trust: of two old names for one field the first that has a text is taken.
OLD_NAMES = {
    "creatorcomment": "creator_notes",
    "char_name": "name",
    "char_persona": "description",
    "char_greeting": "first_mes",
    "example_dialogue": "mes_example",
    "world_scenario": "scenario",
    "context": "description",
    "greeting": "first_mes",
    "sampleChat": "mes_example",
}
_AGNAI_NAMES = {
    "systemPrompt": "system_prompt",
    "postHistoryInstructions": "post_history_instructions",
    "alternateGreetings": "alternate_greetings",
    "characterVersion": "character_version",
    "characterBook": "character_book",
}


def fill_from_old_names(given: dict[str, Any], source: dict[str, Any], found: Findings) -> None:
    """Put into `given` what the root of a card holds under other names; what it has stays."""
    attributes = _agnai_attributes(source)
    if attributes is not None:
        _fill_from_agnai(given, source, attributes, found)
    for old_name, key in OLD_NAMES.items():
        value = source.get(old_name)
        if isinstance(value, str) and value and given.get(key) in (None, ""):
            _fill(given, key, value, old_name, found)


def _agnai_attributes(source: dict[str, Any]) -> dict[str, Any] | None:
    persona = source.get("persona")
    attributes = persona.get("attributes") if isinstance(persona, dict) else None
    return attributes if isinstance(attributes, dict) else None


def _fill_from_agnai(
    given: dict[str, Any], source: dict[str, Any], attributes: dict[str, Any], found: Findings
) -> None:
    # There the persona says who the character is, and the description is a note for people.
    described = "\n".join(filter(None, (_line(*each) for each in attributes.items())))
    if described:
        note = given.pop("description", None)
        if note and not given.get("creator_notes"):
            _fill(given, "creator_notes", note, "description", found)
        _fill(given, "description", described, "persona", found)
    for old_name, key in _AGNAI_NAMES.items():
        if source.get(old_name) and not given.get(key):
            _fill(given, key, source[old_name], old_name, found)


def _line(name: str, values: Any) -> str:
    items = values if isinstance(values, list) else [values]
    text = ", ".join(item for item in items if isinstance(item, str) and item)
    # A persona of the kind `text` is one attribute of that name.
    return text if name == "text" or not text else f"{name}: {text}"


def _fill(given: dict[str, Any], key: str, value: Any, old_name: str, found: Findings) -> None:
    given[key] = value
    found.add("FIELD_RENAMED", f"The field was read as {key}.", old_name)
