"""Generated stories are what they claim to be: every way back through the services leads to what a
replay of their changes says. Nothing is timed.
"""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from bench import bare_sql, stories
from bench.replay import Replay, compared, differences
from bench.shapes import Shape, Told, shape_of
from bench.telling import tell
from db.engine import Database
from db.enums import DeltaOp, LoggedTable
from db.reading import prepare_connection
from services import deltas
from services.deltas.rows import all_images

SHORT = Shape(60, characters=12, edits=0.6)


@pytest.fixture
async def connection(dsn: str) -> Any:
    connection = await asyncpg.connect(dsn)
    await prepare_connection(connection)
    yield connection
    await connection.close()


async def stored(database: Database, branch_id: str) -> Any:
    """Every row of a branch, as a replay has them."""
    async with database.reading() as reading:
        return {name: await all_images(reading, branch_id, name) for name in deltas.LOGGED}


def everything(told: Told) -> list[Any]:
    ledger = told.ledger
    return [
        [compared(row) for rows in ledger.rows.values() for row in rows.values()],
        [compared(row) for row in (*ledger.deltas, *ledger.embeddings)],
    ]


def test_the_same_seed_tells_the_same_story() -> None:
    first, second, other = tell(SHORT, 1), tell(SHORT, 1), tell(SHORT, 2)
    assert first.branch_id != second.branch_id
    payloads = [each.ledger.deltas.copy() for each in (first, second)]
    for told in (first, second, other):
        for delta in told.ledger.deltas:
            payload = delta["undo_payload"]
            if delta["op"] is DeltaOp.DELETE:
                payload.pop("branch_id")
                for rows in payload.get(deltas.CHILDREN, {}).values():
                    for row in rows:
                        row.pop("branch_id")
    assert payloads
    assert everything(first) == everything(second)
    assert everything(first) != everything(other)


def test_a_story_has_the_size_that_it_claims() -> None:
    told = tell(shape_of(1_000))
    assert len(told.entries) == 1_000
    assert len(told.ledger.rows[LoggedTable.ENTITIES]) == 250
    assert 13.2 <= told.rows / 1_000 <= 14.2
    assert 1.3 <= len(told.ledger.embeddings) / 1_000 <= 1.8
    filled = [name for name, rows in told.ledger.rows.items() if rows]
    # And the log is the eleventh.
    assert len(filled) == 10


async def test_what_is_stored_is_what_was_told(database: Database) -> None:
    told = await stories.fill(database, SHORT, seed=3)
    assert differences(told.ledger.rows, await stored(database, told.branch_id)) == []


async def test_undone_all_the_way_a_story_is_what_it_began_with(
    database: Database, connection: Any
) -> None:
    told = await stories.fill(database, SHORT, seed=4)
    viewer = await stories.local_viewer(database)
    async with database.writing() as writing:
        for _ in told.ledger.deltas:
            if not (await deltas.undo_branch(writing, viewer, told.branch_id)).reversed:
                break
    assert await connection.fetchval("SELECT count(*) FROM deltas") == 0
    assert differences(told.ledger.planted, await stored(database, told.branch_id)) == []


async def test_forks_and_rollbacks_are_what_a_replay_says(
    database: Database, connection: Any
) -> None:
    told = await stories.fill(database, SHORT, seed=5)
    viewer = await stories.local_viewer(database)
    replay = Replay(told)
    for position in range(1, len(told.entries) + 1, 4):
        expected, entry = replay.as_of(position), told.entries[position - 1]
        async with database.writing() as writing:
            fork = await deltas.fork_branch(writing, viewer, told.branch_id, entry, "Fork")
        assert differences(expected, await stored(database, fork.branch.id)) == []
        copy, _ = await bare_sql.copy_branch(connection, told.branch_id)
        async with database.writing() as writing:
            await deltas.roll_back_branch(writing, viewer, copy, entry)
        assert differences(expected, await stored(database, copy)) == []
        both = [await bare_sql.digests(connection, each) for each in (fork.branch.id, copy)]
        assert both[0] == both[1]
