"""What times of a story are called: by its calendar, from its origin, with the eras of a branch.

Source: spec aventuras, in-world time tracking; calendars.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Integer, Text, func, select, true
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import EntryKind
from db.reading import Reading, param, statement
from db.tables import EraFlip, StoryEntry
from services import calendars
from services.access import Viewer, visible
from services.calendars import MAX_RENDERED


def labels_of_times(
    calendar: Mapping[str, Any] | None,
    origin: Mapping[str, int],
    world_times: Iterable[int],
    flips: Sequence[EraFlip],
) -> dict[int, str]:
    """The label of each world time; the bare number where the calendar is gone or does not know."""
    distinct = list(dict.fromkeys(world_times))
    if calendar is None:
        return {each: str(each) for each in distinct}
    eras = [calendars.EraFlip(each.at_worldtime, each.era_name) for each in flips]
    return {
        rendered.world_time: rendered.label
        for first in range(0, len(distinct), MAX_RENDERED)
        for rendered in calendars.render_times(
            calendar,
            distinct[first : first + MAX_RENDERED],
            dict(origin),
            eras,
        )
    }


def times_before(
    entries: Sequence[StoryEntry], of_branch: Iterable[StoryEntry]
) -> list[int | None]:
    """The world time of the entry before each, among all entries of its branch."""
    told = sorted(
        (each.position, each.world_time) for each in of_branch if each.kind != EntryKind.SYSTEM
    )
    places = [bisect_left(told, (each.position,)) for each in entries]
    return [told[place - 1][1] if place else None for place in places]


@statement(StoryEntry)
def _times_before() -> Any:
    wanted = (
        func.unnest(param("branch_ids", ARRAY(Text)), param("positions", ARRAY(Integer)))
        .table_valued("branch_id", "position", with_ordinality="place", name="wanted")
        .render_derived()
    )
    before = (
        select(col(StoryEntry.meta)["worldTime"].astext.label("time_before"))
        .where(
            col(StoryEntry.branch_id) == wanted.c.branch_id,
            col(StoryEntry.position) < wanted.c.position,
            col(StoryEntry.kind) != EntryKind.SYSTEM.value,
            visible(StoryEntry),
        )
        .order_by(col(StoryEntry.position).desc())
        .limit(1)
        .lateral("before")
    )
    return (
        select(before.c.time_before)
        .select_from(wanted.outerjoin(before, true()))
        .order_by(wanted.c.place)
    )


async def times_before_entries(
    reading: Reading, viewer: Viewer, entries: Sequence[StoryEntry]
) -> list[int | None]:
    """The world time of the entry before each; None before the first. One statement."""
    rows: list[Any] = await reading.all(
        _times_before(),
        branch_ids=[each.branch_id for each in entries],
        positions=[each.position for each in entries],
        **viewer.parameters,
    )
    return [None if row.time_before is None else int(row.time_before) for row in rows]
