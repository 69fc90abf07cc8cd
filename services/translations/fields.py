"""Which texts of a branch can be said in other languages, and how one is read off its row.

Source: spec aventuras, translation; translation targets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from db.enums import EntityKind, EntryKind, TranslationTarget
from db.tables import BranchRow
from services import deltas
from services.errors import Invalid

# The texts of a row that people read. A star stands for a place in a list, from 0. Keywords and
# tags are for finding things, and ids, numbers and where a text came from are no text at all.
FIELDS: dict[TranslationTarget, frozenset[str]] = {
    TranslationTarget.ENTITY: frozenset({"name", "description", "retired_reason"}),
    TranslationTarget.LORE: frozenset({"title", "body", "category"}),
    TranslationTarget.THREAD: frozenset({"title", "description", "category"}),
    TranslationTarget.HAPPENING: frozenset({"title", "description", "category", "temporal"}),
    TranslationTarget.STORY_ENTRY: frozenset({"content"}),
    TranslationTarget.CHARACTER_RELATIONSHIP: frozenset({"kind", "inverse_kind"}),
    TranslationTarget.CHAPTER: frozenset({"title", "summary", "theme"}),
}
# Those within the state of an entity.
STATE_FIELDS: dict[EntityKind, frozenset[str]] = {
    EntityKind.CHARACTER: frozenset(
        {
            "visual.physique",
            "visual.face",
            "visual.hair",
            "visual.eyes",
            "visual.attire",
            "visual.distinguishing",
            "traits.*",
            "drives.*",
            "voice",
        }
    ),
    EntityKind.LOCATION: frozenset({"condition"}),
    EntityKind.ITEM: frozenset({"condition"}),
    EntityKind.FACTION: frozenset({"standing", "agenda.*"}),
}
# Clients know these under the names that GraphQL gives them.
_ALIASES = {"retiredReason": "retired_reason", "inverseKind": "inverse_kind"}
_PLACE = re.compile(r"\.(0|[1-9][0-9]{0,3})$")
TARGETS: dict[TranslationTarget, type[BranchRow]] = {
    each.target_kind: each.table for each in deltas.LOGGED.values() if each.target_kind is not None
}
_KINDS = {table.__name__: kind for kind, table in TARGETS.items()}


def stored_field(field: str) -> str:
    """The name under which translations of a field are kept: as the specification writes it, and
    within a state without the word `state`.
    """
    return _ALIASES.get(field, field.removeprefix("state."))


def kind_of(row: Any) -> TranslationTarget:
    """What kind of target a row of the present or of the past is."""
    return _KINDS[type(row).__name__]


def source_text(
    kind: TranslationTarget, read: Callable[[str], Any], field: str, *path: str | int
) -> str | None:
    """A field of a row as it was written; None where the row has nothing there.

    `read` gives a column of the row by its name. Raises Invalid (FIELD_NOT_TRANSLATABLE).
    """
    wanted = stored_field(field)
    columns = FIELDS[kind]
    if wanted in columns and "." not in field:
        text: str | None = read(wanted)
        return text
    is_entity = kind is TranslationTarget.ENTITY
    in_state = STATE_FIELDS[EntityKind(read("kind"))] if is_entity else frozenset()
    if _PLACE.sub(".*", wanted) not in in_state or wanted.endswith("*"):
        listed = ", ".join(sorted(columns | in_state))
        raise Invalid(
            f"This is nothing to be translated here. What is: {listed}.",
            "FIELD_NOT_TRANSLATABLE",
            path,
        )
    head, _, rest = wanted.partition(".")
    value = read("state").get(head)
    if isinstance(value, list):
        place = int(rest)
        return value[place] if place < len(value) else None
    return value.get(rest) if isinstance(value, dict) else value


def is_of_the_server(kind: TranslationTarget, target: deltas.Image) -> bool:
    """Whether this is an entry of kind system, which is not logged and soon gone."""
    return kind is TranslationTarget.STORY_ENTRY and target["kind"] == EntryKind.SYSTEM
