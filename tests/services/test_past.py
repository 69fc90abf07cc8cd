"""Branches as they were: as of an entry, a position of the log, a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from db.enums import EntityKind
from db.tables import StoryEntity, StoryEntry
from services import deltas, past
from services.errors import Invalid, NotFound
from services.past import AsOf
from tests.services.deltas.desks import Desk, desk

__all__ = ["desk"]


async def images(desk: Desk, as_of: AsOf) -> dict[str, dict[str, Any]]:
    """All logged tables at a moment."""
    moment = await past.resolve_moment(desk.writing, desk.people.owner, desk.branch_id, as_of)
    found = {}
    for table in deltas.LOGGED:
        rows = await past.images_at(desk.writing, moment, table)
        for row in rows.values():
            del row["branch_id"]
        found[str(table)] = rows
    return found


async def test_as_of_an_entry_is_what_a_fork_there_has(desk: Desk) -> None:
    """Rule H1."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    third = await desk.turn(3)
    await desk.fact(second["id"], "Late", mira["id"])
    await desk.fact(third["id"], "Third", mira["id"])
    await desk.edit(StoryEntity, mira["id"], description="Lights lamps.")
    for entry in (second, third):
        fork_id = await desk.fork(entry["id"])
        assert await images(desk, AsOf(entry_id=entry["id"])) == await desk.state(fork_id)


async def test_as_of_a_position_is_what_was_there_then(desk: Desk) -> None:
    """Rules H1, H2."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    states = [await desk.state()]
    times = [datetime.now(UTC)]
    for step in (
        desk.turn(2),
        desk.edit(StoryEntity, mira["id"], name="Mira Voss"),
        desk.turn(3),
    ):
        await step
        states.append(await desk.state())
        times.append(datetime.now(UTC))
    for position, state in enumerate(states):
        assert await images(desk, AsOf(log_position=position)) == state
        assert await images(desk, AsOf(at=times[position])) == state


async def test_a_moment_says_where_it_is(desk: Desk) -> None:
    """Rule H2."""
    viewer, branch_id = desk.people.owner, desk.branch_id
    second = await desk.turn(2)
    third = await desk.turn(3)

    async def resolved(as_of: AsOf) -> tuple[str | None, int]:
        moment = await past.resolve_moment(desk.writing, viewer, branch_id, as_of)
        return moment.entry_id, moment.log_position

    assert await resolved(AsOf(entry_id=second["id"])) == (second["id"], 1)
    assert await resolved(AsOf(entry_id=f"{branch_id}:{third['id']}")) == (third["id"], 2)
    assert await resolved(AsOf(log_position=1)) == (second["id"], 1)
    opening = next(iter((await images(desk, AsOf(log_position=0)))["story_entries"]))
    assert await resolved(AsOf(log_position=0)) == (opening, 0)
    with pytest.raises(Invalid) as refusal:
        await resolved(AsOf(log_position=3))
    assert (refusal.value.code, refusal.value.path) == ("OUT_OF_RANGE", ("asOf", "logPosition"))
    with pytest.raises(NotFound):
        await past.resolve_moment(
            desk.writing, desk.people.stranger, branch_id, AsOf(log_position=1)
        )


async def test_a_row_of_the_past_has_what_rows_have(desk: Desk) -> None:
    """Rule H3."""
    await desk.turn(2, worldTime=60)
    third = await desk.turn(3, worldTime=120)
    moment = await past.resolve_moment(
        desk.writing, desk.people.owner, desk.branch_id, AsOf(log_position=1)
    )
    rows = await past.rows_at(desk.writing, desk.people.owner, moment, StoryEntry)
    assert third["id"] not in rows
    row = max(rows.values(), key=lambda each: each.position)
    assert (row.world_time, row.position, row.kind) == (60, 2, "ai_reply")
    assert row.id == f"{desk.branch_id}:{row.row_id}"
    assert isinstance(row.created_at, datetime)
    assert (type(row).__name__, row.moment) == ("StoryEntry", moment)
