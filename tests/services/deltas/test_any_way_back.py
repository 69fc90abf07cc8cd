"""Whatever is done to a branch, in whatever order: what every way back keeps to."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import DeltaOp, EntryKind
from db.tables import Embedding
from services import deltas
from services.deltas import LOGGED
from services.deltas.closing import held_rows
from services.deltas.embedding import content_hash
from services.deltas.logged import STALE
from services.past import AsOf
from tests.conftest import People
from tests.services.deltas.ledgers import rows_of
from tests.services.deltas.worlds import (
    DONE,
    PERIODIC,
    STEPS,
    State,
    World,
    attempt,
    bare,
    columns_of,
    loose_ends,
    told_anew,
)

# The same examples each time; with EXAMPLES as many others as it says, which are not made smaller.
BOUNDED: Any = settings(
    max_examples=int(os.environ.get("EXAMPLES", "70")),
    deadline=None,
    derandomize=not os.environ.get("EXAMPLES"),
    database=None,
    phases=[Phase.generate] if os.environ.get("EXAMPLES") else list(Phase),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
OFTEN = (
    "turn",
    "turn",
    "edit",
    "fact",
    "fact",
    "say",
    "say",
    "answer",
    "answer",
    "reword",
    "reword",
    "undo",
    "agent",
)


def steps(*names: str, most: int = 20) -> Any:
    return st.lists(st.tuples(st.sampled_from(names), st.integers(0, 10_000)), max_size=most)


ANYTHING = steps(*OFTEN, *STEPS)


async def check_branch(world: World, branch_id: str | None = None) -> None:
    """What is so of every branch at every time."""
    branch_id = branch_id or world.branch_id
    state, log = await world.state(branch_id), await world.log(branch_id)
    assert loose_ends(state, log) == []
    # Every row that is there was planted or has a change that made it.
    made = {each.target_id for each in log if each.op == DeltaOp.CREATE}
    live = {row_id for rows in state.values() for row_id in rows}
    planted = {row_id for rows in world.planted.values() for row_id in rows}
    notices = {
        row_id for row_id, row in state["story_entries"].items() if row["kind"] == EntryKind.SYSTEM
    }
    assert live - made - planted == notices
    # Every change is of a row that is there, or that a deletion holds.
    held = [row["id"] for each in log if each.op == DeltaOp.DELETE for _, row in held_rows(each)]
    assert {each.target_id for each in log} <= live | set(held)
    assert len(held) == len(set(held))
    assert live.isdisjoint(held)
    # What is embedded.
    embedded: dict[str, set[str]] = {}
    for each in await rows_of(world.writing, Embedding, branch_id):
        embedded.setdefault(each.target_id, set()).add(each.source_hash)
    assert embedded.keys() <= live
    for logged in LOGGED.values():
        if logged.embedded:
            rows = await deltas.all_images(world.writing, branch_id, logged.name)
            for row in rows.values():
                fresh = content_hash(logged.name, row) in embedded.get(row["id"], ())
                assert row[STALE] is not fresh, row
    # Who has seen a head has seen what the branch is, or is told otherwise.
    branch = await world.branch(branch_id)
    if branch_id == world.branch_id:
        rest = {name: rows for name, rows in state.items() if name != "story_entries"}
        rest["story_entries"] = {
            row_id: row for row_id, row in state["story_entries"].items() if row_id not in notices
        }
        seen = world.heads.setdefault(branch.head, (rest, columns_of(log)))
        assert seen == (rest, columns_of(log)), branch.head
    assert branch.head >= max((each.log_position for each in log), default=0)
    assert branch.last_position >= branch.head


async def check_assets(world: World) -> None:
    rows = await world.writing._connection.fetch(
        "SELECT id, pending_delete_at IS NULL AS kept, EXISTS (SELECT 1 FROM entry_assets e"
        " WHERE e.asset_id = a.id) AS shown FROM assets a WHERE id = ANY($1::text[])",
        world.assets,
    )
    assert all(row["kept"] == row["shown"] for row in rows)


@given(done=ANYTHING)
@BOUNDED
async def test_whatever_is_done_a_branch_holds_together(
    database: Database, people: People, done: list[tuple[str, int]]
) -> None:
    """Rules L14, L25."""
    async with database.writing() as writing:
        world = await World.begin(writing, people.owner)
        await check_branch(world)
        for name, seed in done:
            await world.step(name, seed)
            await check_branch(world)
        await check_assets(world)


@given(done=ANYTHING)
@BOUNDED
async def test_undo_then_redo_is_the_identity(
    database: Database, people: People, done: list[tuple[str, int]]
) -> None:
    """Rules L8, L12."""
    async with database.writing() as writing:
        world = await World.begin(writing, people.owner)
        for name, seed in done:
            await world.step(name, seed)
        before, log = await world.state(), await world.log()
        number = 0
        while any(each.source != PERIODIC for each in await world.log()):
            if await attempt(writing, world.undo()) != DONE:
                break
            number += 1
            await check_branch(world)
        for _ in range(number):
            if await attempt(writing, world.redo()) != DONE:
                return
            await check_branch(world)
        after, again = await world.state(), await world.log()
        missing = {each.row_id for each in log} - {each.row_id for each in again}
        assert {each.source for each in log if each.row_id in missing} <= {"periodic_classifier"}
        if not missing:
            drop_notices(before), drop_notices(after)
            assert after == before
            # Of two deletions either may hold what names the rows of both.
            assert told(again) == told(log)
            assert held_by(again) == held_by(log)


def told(log: list[Any]) -> list[Any]:
    """The log without what deletions hold."""
    payloads = [None if each.op == DeltaOp.DELETE else each.undo_payload for each in log]
    positions = [(each.row_id, each.log_position, each.action_id, each.source) for each in log]
    return list(zip(positions, payloads, strict=True))


def held_by(log: list[Any]) -> dict[str, Any]:
    """The rows that deletions hold."""
    held = [row for each in log if each.op == DeltaOp.DELETE for _, row in held_rows(each)]
    return {row["id"]: {k: v for k, v in bare(row).items() if k[0] != "$"} for row in held}


def drop_notices(state: State) -> None:
    entries = state["story_entries"]
    for row_id in [each for each, row in entries.items() if row["kind"] == EntryKind.SYSTEM]:
        del entries[row_id]


@given(done=ANYTHING, chosen=st.integers(0, 100))
@BOUNDED
async def test_a_fork_is_the_moment_of_the_entry_and_the_rollback_to_it(
    database: Database, people: People, done: list[tuple[str, int]], chosen: int
) -> None:
    """Rules L13, L21."""
    async with database.writing() as writing:
        world = await World.begin(writing, people.owner)
        for name, seed in done:
            await world.step(name, seed)
        entries = await world.entries()
        entry = entries[chosen % len(entries)]
        before, log = await world.state(), await world.log()
        copy_id = await world.fork(entries[-1]["id"])
        copied = await world.state(copy_id)
        drop_notices(before)
        assert copied == before
        assert columns_of(await world.log(copy_id)) == columns_of(log)
        way = deltas.roll_back_branch(writing, people.owner, copy_id, entry["id"])
        outcome = await attempt(writing, way)
        fork_id = ""

        async def fork() -> None:
            nonlocal fork_id
            fork_id = await world.fork(entry["id"])

        assert await attempt(writing, fork()) == outcome
        was = await world.as_of(AsOf(entry_id=entry["id"]))
        if outcome != DONE:
            return
        state = await world.state(fork_id)
        assert state == await world.state(copy_id)
        assert columns_of(await world.log(fork_id)) == columns_of(await world.log(copy_id))
        assert was == state
        assert max(row["position"] for row in state["story_entries"].values()) == entry["position"]
        await check_branch(world, fork_id)
        await check_branch(world, copy_id)
        await check_assets(world)
        after = await world.state()
        drop_notices(after)
        assert after == before
        assert columns_of(await world.log()) == columns_of(log)


ORDERLY = steps("turn", "turn", "edit", "agent", "correct", "close", "show", "embed")


@given(done=ORDERLY)
@BOUNDED
async def test_where_nothing_lags_a_fork_is_the_log_told_anew_from_nothing(
    database: Database, people: People, done: list[tuple[str, int]]
) -> None:
    """Rule L21."""
    async with database.writing() as writing:
        world = await World.begin(writing, people.owner)
        for name, seed in done:
            await world.step(name, seed)
        log = await world.log()
        assert await world.state() == told_anew(world.planted, log, world.made)
        for entry in (await world.entries())[:-1]:
            fork_id = await world.fork(entry["id"])
            told = told_anew(world.planted, await world.log(fork_id), world.made)
            assert await world.state(fork_id) == told
        # And a moment of the log is the log up to there.
        for position in range(len(log) + 1):
            told = told_anew(world.planted, log[:position], world.made)
            assert await world.as_of(AsOf(log_position=position)) == told
