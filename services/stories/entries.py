"""Entries of a story: appending, editing, correcting and deleting them.

Source: spec aventuras, entry metadata shape; opening entry; text edits are delta-logged; system
entries are not delta-logged; retired places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Text, or_
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import BranchEventKind, DeltaOp, EntryKind, LoggedTable
from db.ids import new_id
from db.paging import PagedList, SortKey
from db.reading import Writing, any_of, param
from db.tables import Branch, StoryEntity, StoryEntry
from services import deltas
from services.access import Viewer, require_row, row_id_in, visible
from services.calendars import MAX_WORLD_TIME
from services.errors import Forbidden, Invalid
from services.plot.fields import answered
from services.scenes import ends_of, head_turn, inherited_meta, require_place, require_present
from services.text import MAX_LINE, checked_text

_ENTRY_PATH = ("input", "entryId")
MAX_SUMMARY = 2_000

ENTRIES_OF_BRANCHES = PagedList(
    "entries",
    StoryEntry,
    sort=[SortKey(col(StoryEntry.position))],
    parent=col(StoryEntry.branch_id),
    where=lambda: (
        visible(StoryEntry)
        & or_(param("kinds", ARRAY(Text)).is_(None), any_of(StoryEntry.kind, "kinds"))
    ),
)


async def append_entry(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    kind: EntryKind,
    content: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[StoryEntry, Branch]:
    """Put an entry behind the last one, whose scene, place and time it has unless `changes` say
    otherwise: world_time or world_time_delta, scene_entity_ids, current_location_id, model,
    summary.

    An entry of kind system is about the end of the story: it is not logged, there is one at most,
    it is always the last, and the next entry takes its place.

    Raises NotFound, Conflict, Invalid (TEXT_…, OPENING_EXISTS, OPENING_REQUIRED, OUT_OF_RANGE,
    WRONG_KIND), Forbidden (RETIRED_PLACE), LimitReached.
    """
    if kind is EntryKind.OPENING:
        raise Invalid("A story has one opening.", "OPENING_EXISTS", ("input", "kind"))
    if "model" in changes and kind is not EntryKind.AI_REPLY:
        raise Invalid("Only a reply has a model.", "WRONG_KIND", ("input", "model"))
    checked_text(content, "input", "content")
    async with deltas.acting(writing, viewer, branch_id, expected_head=expected_head) as action:
        tail, notice = await ends_of(writing, action.branch.id)
        if tail is None:
            told = "This story has not begun: give it an opening first."
            raise Invalid(told, "OPENING_REQUIRED", ("input", "branchId"))
        meta = await _changed_meta(action, inherited_meta(tail.meta), changes)
        if notice is not None:
            await deltas.uproot_rows(writing, action.branch.id, StoryEntry, [notice.row_id])
            action.taken_back.append(_notice_change(DeltaOp.DELETE, notice.row_id))
        entry_id = new_id("story_entries")
        values = {
            "id": entry_id,
            "position": tail.position + 1,
            "kind": kind,
            "content": content,
            "metadata": meta,
        }
        if kind is EntryKind.SYSTEM:
            (entry,) = await deltas.plant_rows(writing, action.branch.id, StoryEntry, [values])
            action.taken_back.append(_notice_change(DeltaOp.CREATE, entry_id))
            await _tell_notice(action)
        else:
            entry = await action.create(StoryEntry, values, anchor=entry_id)
    return await answered(writing, viewer, StoryEntry, entry)


async def edit_entry(
    writing: Writing,
    viewer: Viewer,
    entry_id: str,
    content: str,
    expected_head: int | None = None,
) -> tuple[StoryEntry, Branch]:
    """Give an entry another text. Within the head turn that takes back what was concluded from its
    old text, and from the texts behind it; further up it is the text alone.

    Raises NotFound, Conflict, Invalid (TEXT_…, NOT_IN_THE_STORY).
    """
    checked_text(content, "input", "content")
    async with deltas.acting_on(
        writing, viewer, StoryEntry, entry_id, *_ENTRY_PATH, expected_head=expected_head
    ) as (action, entry):
        _refuse_system(entry)
        if content != entry["content"]:
            await _rewrite(action, entry, content)
    return await answered(writing, viewer, StoryEntry, entry)


async def _rewrite(action: deltas.Action, entry: deltas.Image, content: str) -> None:
    turn = [each.row_id for each in await head_turn(action.writing, action.branch.id)]
    changes, anchor = {"content": content}, entry["id"]
    if anchor not in turn:
        await action.update(StoryEntry, entry, changes, anchor=anchor)
        return
    # The scope is written down: the tail may move before this edit is undone.
    entry_ids, processed_through = turn[turn.index(anchor) :], entry["position"] - 1
    scope = {"entryIds": entry_ids, "processedThrough": processed_through}
    await action.update(
        StoryEntry, entry, changes, anchor=anchor, notes={deltas.INVALIDATION: scope}
    )
    await deltas.invalidate_facts(action, entry_ids, processed_through)


async def update_meta(
    writing: Writing,
    viewer: Viewer,
    entry_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[StoryEntry, Branch]:
    """Correct the time, scene, place or summary of one entry; others do not follow. What a
    generation reported of itself stays as it was reported.

    Raises what `append_entry` raises, and Invalid (NOT_IN_THE_STORY).
    """
    async with deltas.acting_on(
        writing, viewer, StoryEntry, entry_id, *_ENTRY_PATH, expected_head=expected_head
    ) as (action, entry):
        _refuse_system(entry)
        meta = await _changed_meta(action, entry["metadata"], changes)
        await action.update(StoryEntry, entry, {"metadata": meta}, anchor=entry["id"])
    return await answered(writing, viewer, StoryEntry, entry)


async def delete_entry(
    writing: Writing, viewer: Viewer, entry_id: str, expected_head: int | None = None
) -> tuple[str, Branch]:
    """Take one entry out, with its pictures and translations; its id. Those behind it stay, with
    the positions that they have.

    Raises NotFound, Conflict, Forbidden (OPENING_STAYS).
    """
    async with deltas.acting_on(
        writing, viewer, StoryEntry, entry_id, *_ENTRY_PATH, expected_head=expected_head
    ) as (action, entry):
        if entry["kind"] == EntryKind.OPENING:
            told = "The opening stays: edit its text instead."
            raise Forbidden(told, "OPENING_STAYS", _ENTRY_PATH)
        if entry["kind"] == EntryKind.SYSTEM:
            await deltas.uproot_rows(writing, action.branch.id, StoryEntry, [entry["id"]])
            action.taken_back.append(_notice_change(DeltaOp.DELETE, entry["id"]))
            await _tell_notice(action)
        else:
            await action.delete(StoryEntry, entry, anchor=entry["id"])
    branch = await require_row(writing, viewer, Branch, entry["branch_id"])
    return f"{branch.id}:{entry['id']}", branch


def _refuse_system(entry: deltas.Image) -> None:
    if entry["kind"] == EntryKind.SYSTEM:
        told = "This is a notice, not a part of the story: delete it."
        raise Invalid(told, "NOT_IN_THE_STORY", _ENTRY_PATH)


def _notice_change(op: DeltaOp, row_id: str) -> tuple[str, str, str]:
    return LoggedTable.STORY_ENTRIES, op, row_id


async def _tell_notice(action: deltas.Action) -> None:
    """What the log does not know, those who watch learn all the same."""
    await deltas.note_event(
        action.writing,
        action.branch,
        BranchEventKind.NOTICE,
        action_id=None,
        source=None,
        head=action.branch.head,
        changes=action.taken_back,
    )


async def _changed_meta(
    action: deltas.Action, before: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Metadata with what is given, checked; what is left out stays."""
    meta = dict(before)
    if "world_time" in changes and "world_time_delta" in changes:
        told = "Give either the time or how much of it went by."
        raise Invalid(told, "INVALID", ("input", "worldTimeDelta"))
    if "world_time" in changes:
        meta["worldTime"] = checked_world_time(changes["world_time"], "input", "worldTime")
    if "world_time_delta" in changes:
        meta["worldTime"] = _time_after(meta["worldTime"], changes["world_time_delta"])
    if "scene_entity_ids" in changes:
        path = ("input", "sceneEntityIds")
        ids = [
            row_id_in(action.branch.id, StoryEntity, each, *path, number)
            for number, each in enumerate(changes["scene_entity_ids"])
        ]
        await require_present(action, ids, *path)
        meta["sceneEntities"] = list(dict.fromkeys(ids))
    if "current_location_id" in changes:
        meta["currentLocationId"] = await _place(
            action, changes["current_location_id"], before["currentLocationId"]
        )
    for name, most in (("model", MAX_LINE), ("summary", MAX_SUMMARY)):
        if name in changes:
            meta.pop(name, None)
            if changes[name] is not None:
                meta[name] = checked_text(changes[name], "input", name, max_length=most)
    return meta


async def _place(action: deltas.Action, given: str | None, before: str | None) -> str | None:
    if given is None:
        return None
    path = ("input", "currentLocationId")
    row_id = row_id_in(action.branch.id, StoryEntity, given, *path)
    await require_place(action, row_id, *path, staying_at=before)
    return row_id


def checked_world_time(value: int, *path: str | int) -> int:
    """A world time as it is kept. Raises Invalid (OUT_OF_RANGE)."""
    if not 0 <= value <= MAX_WORLD_TIME:
        told = f"A world time lies between 0 and {MAX_WORLD_TIME:,}."
        raise Invalid(told, "OUT_OF_RANGE", path)
    return value


def _time_after(before: int, delta: int) -> int:
    path = ("input", "worldTimeDelta")
    if delta < 0:
        raise Invalid("Time goes by forwards: give 0 or more.", "OUT_OF_RANGE", path)
    return checked_world_time(before + delta, *path)
