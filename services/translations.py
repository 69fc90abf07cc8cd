"""Texts of a branch in other languages: which fields have them, and setting and removing them.

Source: spec aventuras, translation; translation targets; survival anchor.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.enums import EntityKind, EntryKind, TranslationTarget
from db.ids import MalformedId, parse_id
from db.paging import PagedList, SortKey
from db.reading import Writing, param, statement
from db.tables import Branch, BranchRow, Translation
from services import deltas
from services.access import Viewer, require_row, visible
from services.errors import Invalid, NotFound
from services.text import checked_language, checked_text

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

_BY_ID = [SortKey(col(Translation.row_id))]
TRANSLATIONS = PagedList(
    "translations",
    Translation,
    sort=[SortKey(col(Translation.created_at)), *_BY_ID],
    parent=col(Translation.branch_id),
    where=lambda: (
        visible(Translation)
        & (param("language").is_(None) | (col(Translation.language) == param("language")))
    ),
)
TRANSLATIONS_OF_TARGETS = PagedList(
    "translations of targets",
    Translation,
    sort=_BY_ID,
    parent=col(Translation.target_id),
    within=col(Translation.branch_id),
    where=lambda: visible(Translation) & (col(Translation.language) == param("language")),
)


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


async def set_translation(
    writing: Writing,
    viewer: Viewer,
    *,
    target_id: str,
    field: str,
    language: str,
    text: str,
    expected_head: int | None = None,
) -> tuple[Translation, Branch]:
    """Say a field of a row in a language, instead of what was said so before.

    Raises NotFound, Conflict, Invalid (FIELD_NOT_TRANSLATABLE, NOTHING_TO_TRANSLATE,
    LANGUAGE_INVALID, TEXT_…).
    """
    branch_id, target_row_id, table = _target(target_id)
    checked_language(language, "input", "language")
    checked_text(text, "input", "text")
    async with deltas.acting(
        writing, viewer, branch_id, expected_head=expected_head, path=("input", "targetId")
    ) as action:
        target = await action.require(table, target_row_id, "input", "targetId")
        kind = _KINDS[table.__name__]
        source = source_text(kind, target.__getitem__, field, "input", "field")
        if not source or _is_of_the_server(kind, target):
            raise Invalid(
                "There is no text of the story here.", "NOTHING_TO_TRANSLATE", ("input", "field")
            )
        anchor = await deltas.newest_anchor(action, target_row_id)
        key = {
            "target_kind": kind,
            "target_id": target_row_id,
            "field": stored_field(field),
            "language": language,
        }
        found = await writing.value(_translation_id(), branch_id=branch_id, **key)
        if found is None:
            row = await action.create(Translation, {**key, "translated_text": text}, anchor=anchor)
        else:
            before = await action.require(Translation, found)
            row = await action.update(Translation, before, {"translated_text": text}, anchor=anchor)
    return (
        await require_row(writing, viewer, Translation, f"{branch_id}:{row['id']}"),
        await require_row(writing, viewer, Branch, branch_id),
    )


async def delete_translation(
    writing: Writing, viewer: Viewer, translation_id: str, expected_head: int | None = None
) -> tuple[str, Branch]:
    """Take a translation away, so that its source shows; its id. Raises NotFound, Conflict."""
    async with deltas.acting_on(
        writing,
        viewer,
        Translation,
        translation_id,
        "input",
        "translationId",
        expected_head=expected_head,
    ) as (action, before):
        anchor = await deltas.newest_anchor(action, before["target_id"])
        await action.delete(Translation, before, anchor=anchor)
    branch_id = action.branch.id
    return f"{branch_id}:{before['id']}", await require_row(writing, viewer, Branch, branch_id)


def _target(target_id: str) -> tuple[str, str, type[BranchRow]]:
    """The branch, the row and the table that an id of a target leads to."""
    try:
        parsed = parse_id(target_id)
    except MalformedId:
        parsed = None
    for table in TARGETS.values():
        if parsed and parsed.branch_id and parsed.table == table.__tablename__:
            return parsed.branch_id, parsed.row_id, table
    raise NotFound("There is no such thing to translate.", path=("input", "targetId"))


def _is_of_the_server(kind: TranslationTarget, target: deltas.Image) -> bool:
    """Whether this is an entry of kind system, which is not logged and soon gone."""
    return kind is TranslationTarget.STORY_ENTRY and target["kind"] == EntryKind.SYSTEM


@statement(Translation)
def _translation_id() -> Any:
    return select(col(Translation.row_id)).where(
        col(Translation.branch_id) == param("branch_id"),
        col(Translation.target_id) == param("target_id"),
        col(Translation.target_kind) == param("target_kind"),
        col(Translation.field) == param("field"),
        col(Translation.language) == param("language"),
    )
