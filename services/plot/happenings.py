"""Happenings: what occurred, who took part, and who knows of it.

Source: spec aventuras, happenings and character knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db.columns import BranchRow
from db.enums import EntityKind
from db.reading import Writing
from db.tables import Branch, Happening, HappeningAwareness, HappeningInvolvement, StoryEntity
from services import deltas
from services.access import Viewer, row_id_in
from services.deltas.rows import images_naming
from services.errors import Invalid, LimitReached
from services.plot.fields import answered, checked, entry_named, optional_line, with_entries

# The most who take part in a happening, and the most whose knowledge of it is written down. What
# more than these know is common knowledge.
MAX_TIES = 200
_HAPPENING_PATH = ("input", "happeningId")


@dataclass(frozen=True, slots=True)
class Involvement:
    """That an entity takes part, as it is asked for."""

    entity_id: str
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Awareness:
    """That a character knows, as it is asked for."""

    character_id: str
    source: str | None = None
    learned_at_entry_id: str | None = None
    decay_resistance: float | None = None


async def create_happening(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    values: Mapping[str, Any],
    involvements: Sequence[Involvement] = (),
    awareness: Sequence[Awareness] = (),
    expected_head: int | None = None,
) -> tuple[Happening, Branch]:
    """Write down a happening with who took part and who knows, in one action.

    Raises NotFound, Conflict, LimitReached, Invalid (TEXT_…, ONE_TIME_ANCHOR, COMMON_KNOWLEDGE,
    NOT_A_CHARACTER, OUT_OF_RANGE; DUPLICATE where the same one is given twice).
    """
    columns = checked(values)
    for field, ties in (("involvements", involvements), ("awareness", awareness)):
        if len(ties) > MAX_TIES:
            raise LimitReached(f"Give {MAX_TIES} at most.", path=("input", field))
    if awareness and columns.get("common_knowledge"):
        raise _common_knowledge("input", "awareness")
    async with deltas.acting(writing, viewer, branch_id, expected_head=expected_head) as action:
        columns = await with_entries(action, columns, "occurred_at_entry_id")
        _refuse_two_times(columns, columns)
        happening = await action.create(Happening, columns)
        known: set[str] = set()
        for index, each in enumerate(involvements):
            path = ("input", "involvements", index)
            entity_id = await _entity(action, each.entity_id, *path, "entityId")
            _refuse_again(known, entity_id, *path, "entityId")
            role = optional_line(each.role, *path, "role")
            await action.create(
                HappeningInvolvement,
                {"happening_id": happening["id"], "entity_id": entity_id, "role": role},
            )
        known = set()
        for index, one in enumerate(awareness):
            path = ("input", "awareness", index)
            character_id = await _character(action, one.character_id, *path, "characterId")
            _refuse_again(known, character_id, *path, "characterId")
            given = {
                "source": one.source,
                "learned_at_entry_id": one.learned_at_entry_id,
                "decay_resistance": one.decay_resistance or 0,
            }
            await action.create(
                HappeningAwareness,
                {
                    "happening_id": happening["id"],
                    "character_id": character_id,
                    **await _known(action, given, *path),
                },
            )
    return await answered(writing, viewer, Happening, happening)


async def update_happening(
    writing: Writing,
    viewer: Viewer,
    happening_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Happening, Branch]:
    """Change what is given. What becomes common knowledge loses, in the same action, the notes of
    who knew it. Raises NotFound, Conflict, Invalid (TEXT_…, ONE_TIME_ANCHOR).
    """
    columns = checked(changes)
    async with deltas.acting_on(
        writing, viewer, Happening, happening_id, *_HAPPENING_PATH, expected_head=expected_head
    ) as (action, before):
        columns = await with_entries(action, columns, "occurred_at_entry_id")
        _refuse_two_times({**before, **columns}, columns)
        row = await action.update(Happening, before, columns)
        if row["common_knowledge"] and not before["common_knowledge"]:
            for each in await _ties(action, HappeningAwareness, before):
                await action.delete(HappeningAwareness, each)
    return await answered(writing, viewer, Happening, row)


async def set_involvement(
    writing: Writing,
    viewer: Viewer,
    happening_id: str,
    entity_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[HappeningInvolvement, Branch]:
    """Say that an entity takes part, or as what. Raises NotFound, Conflict, LimitReached, Invalid
    (TEXT_…).
    """
    async with deltas.acting_on(
        writing, viewer, Happening, happening_id, *_HAPPENING_PATH, expected_head=expected_head
    ) as (action, happening):
        pair = {
            "happening_id": happening["id"],
            "entity_id": await _entity(action, entity_id, "input", "entityId"),
        }
        columns = {name: optional_line(value, "input", "role") for name, value in changes.items()}
        row = await _put(action, HappeningInvolvement, happening, pair, columns)
    return await answered(writing, viewer, HappeningInvolvement, row)


async def set_awareness(
    writing: Writing,
    viewer: Viewer,
    happening_id: str,
    character_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[HappeningAwareness, Branch]:
    """Say that a character knows of a happening, or how, since when and how firmly: one row for the
    two. Raises NotFound, Conflict, LimitReached, Invalid (COMMON_KNOWLEDGE, NOT_A_CHARACTER,
    TEXT_…, OUT_OF_RANGE).
    """
    async with deltas.acting_on(
        writing, viewer, Happening, happening_id, *_HAPPENING_PATH, expected_head=expected_head
    ) as (action, happening):
        if happening["common_knowledge"]:
            raise _common_knowledge(*_HAPPENING_PATH)
        pair = {
            "happening_id": happening["id"],
            "character_id": await _character(action, character_id, "input", "characterId"),
        }
        columns = await _known(action, changes, "input")
        row = await _put(action, HappeningAwareness, happening, pair, columns)
    return await answered(writing, viewer, HappeningAwareness, row)


async def _put(
    action: deltas.Action,
    table: type[BranchRow],
    happening: deltas.Image,
    pair: Mapping[str, str],
    columns: Mapping[str, Any],
) -> deltas.Image:
    """The row of a happening and another one, changed or new."""
    ties = await _ties(action, table, happening)
    for each in ties:
        if pair.items() <= each.items():
            return await action.update(table, each, columns)
    if len(ties) >= MAX_TIES:
        raise LimitReached(f"There are {MAX_TIES} already.", path=_HAPPENING_PATH)
    return await action.create(table, {**pair, **columns})


async def _ties(
    action: deltas.Action, table: type[BranchRow], happening: deltas.Image
) -> list[deltas.Image]:
    """The rows of a table that name a happening."""
    name = deltas.logged_of(table).name
    found = await images_naming(action.writing, action.branch.id, name, [happening["id"]])
    return list(found.values())


async def _known(
    action: deltas.Action, values: Mapping[str, Any], *path: str | int
) -> dict[str, Any]:
    """Columns of an awareness, checked."""
    columns = dict(values)
    if "source" in columns:
        columns["source"] = optional_line(columns["source"], *path, "source")
    if "learned_at_entry_id" in columns:
        columns["learned_at_entry_id"] = await entry_named(
            action, columns["learned_at_entry_id"], *path, "learnedAtEntryId"
        )
    if not 0 <= columns.get("decay_resistance", 0) <= 1:
        raise Invalid("Give a number from 0 to 1.", "OUT_OF_RANGE", (*path, "decayResistance"))
    return columns


async def _entity(action: deltas.Action, entity_id: str, *path: str | int) -> str:
    row_id = row_id_in(action.branch.id, StoryEntity, entity_id, *path)
    await action.require(StoryEntity, row_id, *path)
    return row_id


async def _character(action: deltas.Action, character_id: str, *path: str | int) -> str:
    row_id = row_id_in(action.branch.id, StoryEntity, character_id, *path)
    entity = await action.require(StoryEntity, row_id, *path)
    if entity["kind"] != EntityKind.CHARACTER:
        raise Invalid("Characters alone know of things.", "NOT_A_CHARACTER", path)
    return row_id


def _refuse_again(known: set[str], row_id: str, *path: str | int) -> None:
    if row_id in known:
        raise Invalid("This one is given twice.", "DUPLICATE", path)
    known.add(row_id)


def _refuse_two_times(columns: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """A happening has a place in the story or a time in words."""
    if columns.get("temporal") is not None and columns.get("occurred_at_entry_id") is not None:
        raise Invalid(
            "A happening has an entry or a time in words: clear the other one.",
            "ONE_TIME_ANCHOR",
            ("input", "temporal" if given.get("temporal") else "occurredAtEntryId"),
        )


def _common_knowledge(*path: str | int) -> Invalid:
    return Invalid(
        "Everybody knows of this: nobody's knowledge of it is written down.",
        "COMMON_KNOWLEDGE",
        path,
    )
