"""Eras of a branch: the moments from which its calendar counts by another one.

Source: spec aventuras, era flips; calendars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.paging import PagedList, SortKey
from db.reading import Writing, columns, param, statement
from db.tables import Branch, EraFlip, StoryEntry
from services import deltas
from services.access import Viewer, require_row, visible
from services.errors import Conflict, Invalid, LimitReached
from services.plot.fields import answered
from services.stories.entries import checked_world_time
from services.text import MAX_LINE, checked_text

# As many as one list shows, so that a time is never shown by some of them.
MAX_FLIPS = 200
_AT_PATH = ("input", "atWorldTime")
_FLIP_PATH = ("input", "eraFlipId")

FLIPS_OF_BRANCHES = PagedList(
    "era flips",
    EraFlip,
    sort=[SortKey(col(EraFlip.at_worldtime))],
    parent=col(EraFlip.branch_id),
    where=lambda: visible(EraFlip),
)


@statement(EraFlip)
def _flips_of_branch() -> Any:
    return select(*columns(EraFlip)).where(col(EraFlip.branch_id) == param("branch_id"))


async def flip_era(
    writing: Writing,
    viewer: Viewer,
    era_name: str,
    *,
    entry_id: str | None = None,
    branch_id: str | None = None,
    at_world_time: int | None = None,
    expected_head: int | None = None,
) -> tuple[EraFlip, Branch]:
    """Begin an era: at the time of an entry, or of a branch at a world time.

    Raises NotFound, Conflict (also ERA_FLIP_EXISTS), Invalid (TEXT_…, OUT_OF_RANGE), LimitReached.
    """
    checked_text(era_name, "input", "eraName", max_length=MAX_LINE)
    if entry_id is not None and branch_id is None and at_world_time is None:
        path = ("input", "entryId")
        async with deltas.acting_on(
            writing, viewer, StoryEntry, entry_id, *path, expected_head=expected_head
        ) as (action, entry):
            flip = await _begin(action, era_name, entry["metadata"]["worldTime"], path)
    elif entry_id is None and branch_id is not None and at_world_time is not None:
        at = checked_world_time(at_world_time, *_AT_PATH)
        async with deltas.acting(writing, viewer, branch_id, expected_head=expected_head) as action:
            flip = await _begin(action, era_name, at, _AT_PATH)
    else:
        told = "Say when: give entryId, or else branchId and atWorldTime."
        raise Invalid(told, "INVALID", ("input",))
    return await answered(writing, viewer, EraFlip, flip)


async def _begin(
    action: deltas.Action, era_name: str, at: int, path: tuple[str, ...]
) -> deltas.Image:
    await _refuse_second(action, at, path)
    return await action.create(EraFlip, {"at_worldtime": at, "era_name": era_name})


async def update_flip(
    writing: Writing,
    viewer: Viewer,
    flip_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[EraFlip, Branch]:
    """Change the name of an era or its beginning: era_name, at_world_time. Raises as `flip_era`."""
    columns_: dict[str, Any] = {}
    if "era_name" in changes:
        columns_["era_name"] = checked_text(
            changes["era_name"], "input", "eraName", max_length=MAX_LINE
        )
    async with deltas.acting_on(
        writing, viewer, EraFlip, flip_id, *_FLIP_PATH, expected_head=expected_head
    ) as (action, before):
        if "at_world_time" in changes:
            at = checked_world_time(changes["at_world_time"], *_AT_PATH)
            if at != before["at_worldtime"]:
                await _refuse_second(action, at, _AT_PATH)
            columns_["at_worldtime"] = at
        flip = await action.update(EraFlip, before, columns_)
    return await answered(writing, viewer, EraFlip, flip)


async def delete_flip(
    writing: Writing, viewer: Viewer, flip_id: str, expected_head: int | None = None
) -> tuple[str, Branch]:
    """Take an era back; the id of its beginning. Raises NotFound, Conflict."""
    async with deltas.acting_on(
        writing, viewer, EraFlip, flip_id, *_FLIP_PATH, expected_head=expected_head
    ) as (action, before):
        await action.delete(EraFlip, before)
    branch = await require_row(writing, viewer, Branch, before["branch_id"])
    return f"{branch.id}:{before['id']}", branch


async def _refuse_second(action: deltas.Action, at: int, path: tuple[str, ...]) -> None:
    flips = await action.writing.all(_flips_of_branch(), branch_id=action.branch.id)
    if any(each.at_worldtime == at for each in flips):
        raise Conflict("Another era begins at this moment.", "ERA_FLIP_EXISTS", path)
    if len(flips) >= MAX_FLIPS:
        raise LimitReached(f"A branch has {MAX_FLIPS} eras at most.")
