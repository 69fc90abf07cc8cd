"""What the times of rows are called: by their story's calendar, with the eras of their moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.tables import Branch, EraFlip, Story, StoryEntry
from resolvers import branch_rows
from resolvers.context import Context
from resolvers.stories import calendars_of_stories
from services import stories as service
from services.past import Moment


@dataclass(frozen=True, slots=True)
class _BranchThen:
    """A branch at a moment, of which there are few for many rows."""

    id: str
    moment: Moment | None


async def labels_of_entries(context: Context, entries: Sequence[StoryEntry]) -> list[str]:
    """What the time of each entry is called."""
    return await _labels(context, entries, [each.world_time for each in entries])


async def labels_of_flips(context: Context, flips: Sequence[EraFlip]) -> list[str]:
    """What the time at which each era begins is called."""
    return await _labels(context, flips, [each.at_worldtime for each in flips])


async def _labels(context: Context, rows: Sequence[Any], world_times: Sequence[int]) -> list[str]:
    of_rows = [_BranchThen(each.branch_id, getattr(each, "moment", None)) for each in rows]
    times: dict[_BranchThen, list[int]] = {}
    for then, time in zip(of_rows, world_times, strict=True):
        times.setdefault(then, []).append(time)
    thens = list(times)
    branches = await context.many(Branch, [each.id for each in thens])
    stories = await context.many(Story, [each.story_id for each in branches if each is not None])
    # Whose rows are seen, its story is: none of them is missing.
    known = [each for each in stories if each is not None]
    of_stories = await calendars_of_stories(context, known)
    flips = await branch_rows.lists(context, service.FLIPS_OF_BRANCHES, thens)
    labels = {}
    for then, story, calendar, eras in zip(thens, known, of_stories, flips, strict=True):
        labels[then] = service.labels_of_times(
            None if calendar is None else calendar.definition,
            story.definition.world_time_origin,
            times[then],
            eras,
        )
    return [labels[then][time] for then, time in zip(of_rows, world_times, strict=True)]


async def backwards_of_entries(context: Context, entries: Sequence[StoryEntry]) -> list[bool]:
    """Whether each entry lies earlier in time than the entry before it."""
    times: dict[int, int | None] = {}
    present = [at for at, each in enumerate(entries) if _moment(each) is None]
    if present:
        async with context.reading() as reading:
            found = await service.times_before_entries(
                reading, context.viewer, [entries[at] for at in present]
            )
        times.update(zip(present, found, strict=True))
    for moment in dict.fromkeys(_moment(each) for each in entries):
        if moment is not None:
            of_branch = await branch_rows.rows_at(context, moment, StoryEntry)
            then = [at for at, each in enumerate(entries) if _moment(each) == moment]
            found = service.times_before([entries[at] for at in then], of_branch.values())
            times.update(zip(then, found, strict=True))
    before = [times[at] for at in range(len(entries))]
    return [
        time is not None and each.world_time < time
        for each, time in zip(entries, before, strict=True)
    ]


def _moment(entry: StoryEntry) -> Moment | None:
    moment: Moment | None = getattr(entry, "moment", None)
    return moment
