"""Puts together what a model is asked: the character's identity, then the talk so far.

Pure: no database, no clock. Card macros for the two names are expanded here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from db.enums import NodeType
from db.tables import Character, TreeNode
from services.providers import CharacterSheet, Message

_CHARACTER_NAME = re.compile(r"\{\{char\}\}|<bot>|<char>", re.IGNORECASE)
_USER_NAME = re.compile(r"\{\{user\}\}|<user>", re.IGNORECASE)

# Stands for a question where the character goes on by itself.
GO_ON = "[Go on with your own thought from where you stopped, without repeating yourself.]"

# Which parts of the identity go into the prompt, in this order, and under which words.
_SECTIONS = (
    ("system_prompt", ""),
    ("description", ""),
    ("personality", "Personality: "),
    ("scenario", "Scenario: "),
    ("mes_example", "Example of how {name} talks:\n"),
)


def expand_names(text: str, *, character: str, user: str) -> str:
    """Replace the placeholders for the two names (cards, section 1); case does not matter."""
    text = _CHARACTER_NAME.sub(lambda _: character, text)
    return _USER_NAME.sub(lambda _: user, text)


def spoken_name(character: Character) -> str:
    """What the character is called in talk: its nickname where it has one."""
    anchor: dict[str, Any] = character.identity_baseline.get("core_anchor", {})
    return anchor.get("nickname") or character.name


def character_sheet(character: Character, user_name: str) -> CharacterSheet:
    """The character's own words with both names filled in."""
    anchor: dict[str, Any] = character.identity_baseline.get("core_anchor", {})
    name = spoken_name(character)
    texts = [
        expand_names(anchor[key], character=name, user=user_name)
        for key in ("description", "personality", "scenario", "first_mes", "mes_example")
        if anchor.get(key)
    ]
    return CharacterSheet(name, tuple(texts))


def build_messages(
    character: Character, path: Sequence[TreeNode], user_name: str
) -> tuple[Message, ...]:
    """The messages of a request: one system message, then the talk from root to question."""
    baseline = character.identity_baseline
    anchor: dict[str, Any] = baseline.get("core_anchor", {})
    name = spoken_name(character)
    sections = [f"You are {name}. Answer as {name}, in the language you are addressed in."]
    for key, heading in _SECTIONS:
        if anchor.get(key):
            sections.append(heading.format(name=name) + str(anchor[key]))
    forbidden = baseline.get("forbidden_zone") or []
    if forbidden:
        sections.append(
            "Never, whatever is asked:\n" + "\n".join(f"- {each}" for each in forbidden)
        )
    if anchor.get("post_history_instructions"):
        sections.append(str(anchor["post_history_instructions"]))
    talk = []
    if anchor.get("first_mes"):
        talk.append(Message("assistant", str(anchor["first_mes"])))
    talk += [
        Message("user" if node.node_type == NodeType.QUESTION else "assistant", node.content)
        for node in path
        if node.content
    ]
    if path and path[-1].node_type != NodeType.QUESTION:
        talk.append(Message("user", GO_ON))
    return tuple(
        Message(each.role, expand_names(each.text, character=name, user=user_name))
        for each in (Message("system", "\n\n".join(sections)), *talk)
    )
