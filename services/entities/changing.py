"""Making, changing and deleting entities.

Source: spec aventuras, world-state storage; description vs state boundary; name collision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.enums import EntityKind, EntityStatus
from db.reading import Writing, param, statement
from db.tables import Branch, Story, StoryEntity, StoryEntry
from services import deltas
from services.access import Viewer, require_row, rows_by_ids
from services.deltas import Action, Image
from services.entities.edits import Edits
from services.entities.listing import SLOTS, held_by
from services.entities.names import Likeness, likeness
from services.entities.places import UNFLAGGED, check_changed_place, check_new_place
from services.entities.positions import pick_up, take_from_holders
from services.entities.states import patched_state
from services.errors import Forbidden, Invalid
from services.scenes import narrative_tail, tail_scene
from services.shapes import EMPTY_STATES
from services.text import MAX_LINE, checked_lines, checked_prose, checked_text

PREFIXES = {
    EntityKind.CHARACTER: "char",
    EntityKind.LOCATION: "loc",
    EntityKind.ITEM: "item",
    EntityKind.FACTION: "fact",
}
# Part of every prompt that an entity comes into.
MAX_DESCRIPTION = 50_000
# The most rows that an answer shows beside what was asked for.
MAX_SHOWN = 200
_ENTITY_PATH = ("input", "entityId")
# What other entities name a place or a faction by.
_NAMED_BY = {
    EntityKind.CHARACTER: (),
    EntityKind.LOCATION: ("current_location_id", "parent_location_id", "at_location_id"),
    EntityKind.ITEM: (),
    EntityKind.FACTION: ("faction_id",),
}


@dataclass(frozen=True, slots=True)
class Changed:
    """What an act did: the entity, the others that it changed (200 at most), the branch."""

    entity: StoryEntity
    also_changed: list[StoryEntity]
    branch: Branch


async def create_entity(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    values: Mapping[str, Any],
    state: Any = None,
    expected_head: int | None = None,
) -> tuple[Changed, list[StoryEntity]]:
    """Make an entity; `state` is a patch over an empty one. Also answers with its namesakes, who
    are not marked: whoever writes a name by hand means it.

    Raises NotFound, Conflict, LimitReached, Forbidden (RETIRED_PLACE, RETIRED_PARENT,
    FIELD_READ_ONLY), Invalid (TEXT_…, OUT_OF_RANGE, NOT_RETIRED, INVALID_SHAPE, WRONG_KIND,
    ITEM_TWICE, KEY_TWICE, PARENT_CHAIN_BROKEN).
    """
    columns = checked_columns(values)
    kind = EntityKind(columns["kind"])
    _check_reason(columns)
    async with deltas.acting(writing, viewer, branch_id, expected_head=expected_head) as action:
        edits = Edits(action)
        path = ("input", "state")
        empty = EMPTY_STATES[kind]
        columns["state"] = (
            dict(empty) if state is None else await patched_state(edits, kind, empty, state, *path)
        )
        if kind is EntityKind.LOCATION:
            await check_new_place(edits, columns, *path, "parent_location_id")
        namesakes = await namesakes_of(action, kind, columns["name"], columns["keywords"])
        row = await create_in(edits, columns)
        written = await edits.write()
    changed = await answered(writing, viewer, row, written)
    alike = [f"{row['branch_id']}:{each}" for each, _ in namesakes[:MAX_SHOWN]]
    found = await rows_by_ids(writing, viewer, StoryEntity, alike)
    return changed, [each for each in found if each is not None]


async def create_in(edits: Edits, columns: Mapping[str, Any]) -> Image:
    """Put an entity in whose columns are checked, and take what it has from everybody else."""
    prefix = PREFIXES[EntityKind(columns["kind"])]
    row = await edits.action.create(StoryEntity, columns, prefix=prefix)
    await pick_up(edits, held_by(row["state"]), row["id"])
    return row


async def update_entity(
    writing: Writing,
    viewer: Viewer,
    entity_id: str,
    changes: Mapping[str, Any],
    state: Any = None,
    *,
    clears_collision: bool = False,
    expected_head: int | None = None,
) -> Changed:
    """Change what is given; `state` is a patch, in which null clears and lists are whole.

    Raises NotFound, Conflict, LimitReached, Forbidden (RETIRED_PLACE, RETIRED_PARENT, STORY_INSIDE,
    FIELD_READ_ONLY), Invalid (TEXT_…, OUT_OF_RANGE, NOT_RETIRED, INVALID_SHAPE, WRONG_KIND,
    ITEM_TWICE, KEY_TWICE, PARENT_CYCLE, PARENT_CHAIN_BROKEN).
    """
    columns = checked_columns(changes)
    async with deltas.acting_on(
        writing, viewer, StoryEntity, entity_id, *_ENTITY_PATH, expected_head=expected_head
    ) as (action, before):
        edits = Edits(action)
        await edits.load([before["id"]])
        await _change(edits, before, columns, state)
        if clears_collision:
            await clear_collision(edits, edits.get(before["id"]))
        written = await edits.write()
    return await answered(writing, viewer, before, written)


async def _change(edits: Edits, before: Image, columns: dict[str, Any], state: Any) -> None:
    kind, row_id = EntityKind(before["kind"]), before["id"]
    if columns.get("status", EntityStatus.RETIRED) != EntityStatus.RETIRED:
        # Who is not gone is gone for no reason.
        columns.setdefault("retired_reason", None)
    _check_reason({**before, **columns})
    edits.change(row_id, **columns)
    if state is not None:
        patched = await patched_state(edits, kind, before["state"], state, "input", "state")
        edits.change(row_id, state=patched)
    after = edits.get(row_id)
    if kind is EntityKind.CHARACTER:
        await pick_up(edits, _taken(before["state"], after["state"]), row_id)
    elif kind is EntityKind.ITEM:
        lies_at = after["state"]["at_location_id"]
        if lies_at is not None and lies_at != before["state"]["at_location_id"]:
            await take_from_holders(edits, [row_id])
    elif kind is EntityKind.LOCATION:
        await check_changed_place(
            edits,
            before,
            after,
            parent_path=("input", "state", "parent_location_id"),
            status_path=("input", "status"),
            mode_path=("input", "injectionMode"),
        )


def _taken(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The items that a character has got, or has taken from one slot into the other."""
    return [each for slot in SLOTS for each in after[slot] if each not in before[slot]]


async def retire_entity(
    writing: Writing,
    viewer: Viewer,
    entity_id: str,
    reason: str | None,
    expected_head: int | None = None,
) -> Changed:
    """Say that an entity is gone for good, and why. Raises what `update_entity` raises for it."""
    changes = {"status": EntityStatus.RETIRED, "retired_reason": reason}
    return await update_entity(writing, viewer, entity_id, changes, expected_head=expected_head)


async def delete_entity(
    writing: Writing, viewer: Viewer, entity_id: str, expected_head: int | None = None
) -> tuple[str, list[StoryEntity], Branch]:
    """Delete an entity with all that is about it alone; its id in full, what else was changed, the
    branch. What it placed or held is left nowhere in particular.

    Raises NotFound, Conflict, Forbidden (LEAD_STAYS).
    """
    async with deltas.acting_on(
        writing, viewer, StoryEntity, entity_id, *_ENTITY_PATH, expected_head=expected_head
    ) as (action, image):
        await refuse_lead(action, image["id"], *_ENTITY_PATH)
        edits = Edits(action)
        for key in _NAMED_BY[EntityKind(image["kind"])]:
            for each in await edits.naming(key, [image["id"]]):
                edits.change_state(each["id"], **{key: None})
        if image["kind"] == EntityKind.ITEM:
            await take_from_holders(edits, [image["id"]])
        written = await edits.write()
        await replace_in_scenes(action, image["id"], None)
        await action.delete(StoryEntity, image)
    found = await rows_by_ids(writing, viewer, StoryEntity, _ids(image, written))
    branch = await require_row(writing, viewer, Branch, image["branch_id"])
    deleted_id = f"{image['branch_id']}:{image['id']}"
    return deleted_id, [each for each in found if each is not None], branch


async def replace_in_scenes(action: Action, row_id: str, by: str | None) -> None:
    """Take an entity out of the scenes that the story goes on from, or put another in its place.

    Scenes of earlier entries keep its id: readers bear with one that is gone.
    """
    tail = await narrative_tail(action.writing, action.branch.id)
    told = (await tail_scene(action.writing, action.branch.id)).entry_id
    for entry_id in dict.fromkeys([tail.row_id if tail else None, told]):
        entry = await action.find(StoryEntry, entry_id) if entry_id else None
        if entry is None:
            continue
        meta = dict(entry["metadata"])
        present = [by if each == row_id else each for each in meta["sceneEntities"]]
        meta["sceneEntities"] = list(dict.fromkeys(each for each in present if each is not None))
        if meta["currentLocationId"] == row_id:
            meta["currentLocationId"] = by
        await action.update(StoryEntry, entry, {"metadata": meta}, anchor=entry["id"])


@statement(object)
def _definition() -> Any:
    return (
        select(col(Story.definition_json).label("definition"))
        .join(Branch, col(Branch.story_id) == col(Story.id))
        .where(col(Branch.id) == param("branch_id"))
    )


async def refuse_lead(action: Action, row_id: str, *path: str | int) -> None:
    """Refuse to take the lead out of a story: Forbidden (LEAD_STAYS)."""
    definition = await action.writing.value(_definition(), branch_id=action.branch.id)
    if definition["leadEntityId"] == row_id:
        told = "This is the lead of the story: give the story another one first."
        raise Forbidden(told, "LEAD_STAYS", path)


async def clear_collision(edits: Edits, image: Image) -> None:
    """Say of an entity that it is no duplicate; of its namesake too, if that was marked because of
    this one or of one that is gone.
    """
    partner_id = image["name_collision_partner_id"]
    partner = await edits.find(partner_id) if partner_id else None
    if partner is not None and partner["name_collision_flag"]:
        its_own = partner["name_collision_partner_id"]
        if its_own == image["id"] or its_own is None or await edits.find(its_own) is None:
            edits.change(partner["id"], **UNFLAGGED)
    edits.change(image["id"], **UNFLAGGED)


@statement(object)
def _names() -> Any:
    return (
        select(
            col(StoryEntity.row_id).label("row_id"),
            col(StoryEntity.name).label("name"),
            col(StoryEntity.keywords).label("other_names"),
        )
        .where(
            col(StoryEntity.branch_id) == param("branch_id"),
            col(StoryEntity.kind) == param("kind"),
        )
        .order_by(col(StoryEntity.created_at), col(StoryEntity.row_id))
    )


async def namesakes_of(
    action: Action, kind: EntityKind, name: str, keywords: Sequence[str] = ()
) -> list[tuple[str, Likeness]]:
    """The entities of a kind that have a name or something like it: exact namesakes first, among
    these and among the others the oldest first. By their own ids.
    """
    rows: list[Any] = await action.writing.all(
        _names(), branch_id=action.branch.id, kind=kind.value
    )
    found = [
        (row.row_id, alike)
        for row in rows
        if (alike := likeness(name, keywords, row.name, row.other_names)) is not Likeness.NONE
    ]
    return sorted(found, key=lambda each: -each[1])


def checked_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """New values by the names of columns, as they are kept. Raises Invalid and LimitReached."""
    columns = dict(values)
    if "name" in values:
        checked_text(values["name"], "input", "name", max_length=MAX_LINE)
    if "description" in values:
        checked_prose(values["description"], "input", "description", max_length=MAX_DESCRIPTION)
    reason = values.get("retired_reason")
    if reason is not None:
        checked_text(reason, "input", "retiredReason", max_length=MAX_LINE)
    for each in ("keywords", "tags"):
        if each in values:
            columns[each] = checked_lines(values[each], "input", each)
    if not 0 <= values.get("priority", 0) <= 100:
        raise Invalid("Give a number from 0 to 100.", "OUT_OF_RANGE", ("input", "priority"))
    return columns


def _check_reason(row: Mapping[str, Any]) -> None:
    if row.get("retired_reason") is not None and row["status"] != EntityStatus.RETIRED:
        told = "Only who is retired is so for a reason."
        raise Invalid(told, "NOT_RETIRED", ("input", "retiredReason"))


def _ids(image: Image, row_ids: Sequence[str]) -> list[str]:
    return [f"{image['branch_id']}:{each}" for each in row_ids[:MAX_SHOWN]]


async def answered(
    writing: Writing, viewer: Viewer, image: Image, written: Sequence[str]
) -> Changed:
    """An entity and what else an act has changed, as they are now."""
    others = [each for each in written if each != image["id"]]
    found = await rows_by_ids(writing, viewer, StoryEntity, _ids(image, others))
    return Changed(
        await require_row(writing, viewer, StoryEntity, _ids(image, [image["id"]])[0]),
        [each for each in found if each is not None],
        await require_row(writing, viewer, Branch, image["branch_id"]),
    )
