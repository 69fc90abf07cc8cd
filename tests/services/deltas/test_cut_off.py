"""A way back that is cut off in the middle, by the end of its connection, was never begun."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from db.engine import Database
from db.enums import EntityKind
from db.reading import DATABASE_TROUBLE, Writing
from db.tables import Branch, BranchEvent, Delta, Embedding, RedoStep, StoryEntry
from services import deltas
from services.access import Viewer, require_row
from tests.conftest import People
from tests.factories import make_branch, plant_entity
from tests.services.deltas.desks import Desk
from tests.services.deltas.ledgers import rows_of, state_of

Way = Callable[[Writing, Viewer, str, str], Awaitable[Any]]


async def undo(writing: Writing, viewer: Viewer, branch_id: str, _entry_id: str) -> None:
    await deltas.undo_branch(writing, viewer, branch_id)


async def redo(writing: Writing, viewer: Viewer, branch_id: str, _entry_id: str) -> None:
    await deltas.redo_branch(writing, viewer, branch_id)


async def roll_back(writing: Writing, viewer: Viewer, branch_id: str, entry_id: str) -> None:
    await deltas.roll_back_branch(writing, viewer, branch_id, entry_id)


async def reword(writing: Writing, viewer: Viewer, branch_id: str, entry_id: str) -> None:
    async with deltas.acting(writing, viewer, branch_id) as action:
        row = await action.require(StoryEntry, entry_id)
        await action.update(StoryEntry, row, {"content": "Anew."}, anchor=entry_id)
        await deltas.invalidate_facts(action, [entry_id], 1)


async def fork(writing: Writing, viewer: Viewer, branch_id: str, entry_id: str) -> None:
    await deltas.fork_branch(writing, viewer, branch_id, entry_id, "Fork")


WAYS: dict[str, Way] = {
    "undo": undo,
    "redo": redo,
    "roll back": roll_back,
    "reword": reword,
    "fork": fork,
}


ALL = ("branches", "deltas")
FACTS = ("happenings", "happening_awareness")
# Which tables each of them writes to; it is cut off at each.
WRITTEN = {
    "undo": (*ALL, *FACTS, "story_entries", "redo_steps", "branch_events"),
    "redo": (*ALL, "story_entries", "redo_steps", "branch_events"),
    "roll back": (*ALL, *FACTS, "story_entries", "redo_steps", "branch_events"),
    "reword": (*ALL, *FACTS, "story_entries", "redo_steps", "branch_events"),
    "fork": (*ALL, *FACTS, "story_entries", "entities", "embeddings"),
}


async def tell(writing: Writing, people: People) -> tuple[str, str]:
    """A branch with something to undo and something to redo; its first turn."""
    branch_id = (await make_branch(writing, people.owner)).id
    desk = Desk(writing, people, branch_id)
    mira = await plant_entity(writing, branch_id, EntityKind.CHARACTER, "Mira")
    first = await desk.turn(2)
    for position in range(3, 7):
        entry = await desk.turn(position)
        await desk.fact(first["id"], f"Late {position}", mira["id"])
        await desk.fact(entry["id"], f"Of {position}", mira["id"])
    await desk.turn(7)
    await desk.undo()
    return branch_id, str(first["id"])


async def everything(database: Database, viewer: Viewer, branch_id: str) -> Any:
    """All that there is of the story of a branch."""
    async with database.reading() as reading:
        branch = await require_row(reading, viewer, Branch, branch_id)
        names = await reading._connection.fetch("SELECT name FROM branches ORDER BY name")
        logs = [
            await rows_of(reading, table, branch_id)
            for table in (Delta, RedoStep, BranchEvent, Embedding)
        ]
        return branch, names, await state_of(reading, branch_id), logs


@contextlib.asynccontextmanager
async def ending(dsn: str, table: str) -> AsyncIterator[None]:
    """Whoever writes to a table within the block loses the connection by it, as in a crash."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "CREATE OR REPLACE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;"
        f"CREATE TRIGGER die AFTER INSERT OR UPDATE OR DELETE ON {table} EXECUTE FUNCTION die()"
    )
    try:
        yield
    finally:
        await connection.execute(f"DROP TRIGGER die ON {table}")
        await connection.close()


@pytest.mark.parametrize("name", WAYS)
async def test_what_is_cut_off_leaves_all_as_it_was(
    database: Database, dsn: str, people: People, name: str
) -> None:
    """Rule L24."""
    viewer = people.owner
    async with database.writing() as writing:
        branch_id, entry_id = await tell(writing, people)
    old = await everything(database, viewer, branch_id)

    async def go() -> None:
        async with database.writing() as writing:
            await WAYS[name](writing, viewer, branch_id, entry_id)

    for table in WRITTEN[name]:
        async with ending(dsn, table):
            with pytest.raises(DATABASE_TROUBLE):
                await go()
        assert await everything(database, viewer, branch_id) == old, table
    await go()
    assert await everything(database, viewer, branch_id) != old
