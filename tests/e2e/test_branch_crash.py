"""A server killed in the middle of a way back or a fork leaves the old state or the new one."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from sqlalchemy import select
from sqlmodel import col

from db.engine import open_database
from db.reading import columns, compile_statement, record_class
from db.tables import Branch, Delta, RedoStep
from services import deltas
from services.access import Viewer
from tests.clusters import Cluster
from tests.conftest import serving
from tests.e2e.callers import Caller
from tests.e2e.ways_back_documents import WAYS_BACK, Told, tell_story
from tests.factories import append_entry
from tests.services.deltas.ledgers import rows_of, state_of

OPERATIONS = ("BranchUndo", "BranchRollback", "BranchFork")
KILLS = 5
# Enough that there is a middle in which to be killed.
TURNS = 120


async def everything(dsn: str) -> dict[str, Any]:
    """All that belongs to branches, by the names of these."""
    database = await open_database(dsn, pool_size=1, statement_timeout=30)
    try:
        async with database.reading() as reading:
            wanted = select(*columns(Branch)).order_by(col(Branch.name))
            branches: list[Any] = await reading.all(compile_statement(wanted, record_class(Branch)))
            return {branch.name: await _branch(reading, branch) for branch in branches}
    finally:
        await database.close()


async def _branch(reading: Any, branch: Any) -> Any:
    state = await state_of(reading, branch.id)
    for rows in state.values():
        for row in rows.values():
            del row["branch_id"]
    log = [(each.row_id, each.log_position) for each in await rows_of(reading, Delta, branch.id)]
    steps = [each.action_id for each in await rows_of(reading, RedoStep, branch.id)]
    return state, log, steps, branch.head, branch.classifier_status


async def _grow(dsn: str, told: Told, user_id: str) -> None:
    """One long action, which undo takes back at once."""
    database = await open_database(dsn, pool_size=1, statement_timeout=30)
    try:
        async with (
            database.writing() as writing,
            deltas.acting(writing, Viewer(user_id), told.branch) as action,
        ):
            for position in range(2, 2 + TURNS):
                await append_entry(action, position, content=f"Entry {position}. " * 20)
    finally:
        await database.close()


@pytest.fixture(scope="module")
async def told_dsn(cluster: Cluster) -> AsyncIterator[tuple[str, Told]]:
    """A database in which a story has been told, to be copied."""
    dsn = await cluster.new_database()
    async with serving(DATABASE_URL=dsn) as server, aiohttp.ClientSession() as session:
        caller = Caller(server, session)
        told = await tell_story(caller)
        user_id = (await caller.ask("{ viewer { user { id } } }"))["viewer"]["user"]["id"]
        await _grow(dsn, told, user_id)
    yield dsn, told
    await cluster.drop(dsn)


async def _ask(dsn: str, told: Told, operation: str, kill_after: float | None) -> None:
    """Ask a server of its own, and kill it so many seconds later."""
    given = {"branch": told.branch, "entry": told.entries[0], "name": "Fork"}
    async with serving(DATABASE_URL=dsn) as server, aiohttp.ClientSession() as session:
        asked = asyncio.ensure_future(Caller(server, session).ask(WAYS_BACK, given, operation))
        if kill_after is None:
            await asked
            return
        # The moment of the kill is what is being tried; nothing waits for it.
        await asyncio.wait({asked}, timeout=kill_after)
        server.process.send_signal(signal.SIGKILL)
        await server.process.wait()
        with contextlib.suppress(aiohttp.ClientError, AssertionError, asyncio.CancelledError):
            await asked


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_killed_server_leaves_the_old_state_or_the_new_one(
    cluster: Cluster, told_dsn: tuple[str, Told], operation: str
) -> None:
    """Rule L24."""
    source, told = told_dsn
    template = source.partition("/test_")[2].partition("?")[0]
    old = await everything(source)
    done = await cluster.new_database(f"test_{template}")
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await _ask(done, told, operation, None)
    taken = loop.time() - begun
    new = await everything(done)
    assert new != old
    chance = random.Random(operation)
    for _ in range(KILLS):
        dsn = await cluster.new_database(f"test_{template}")
        await _ask(dsn, told, operation, chance.uniform(0, min(taken, 0.2)))
        found = await everything(dsn)
        if found != old:
            assert found == new
        await cluster.drop(dsn)
    await cluster.drop(done)
