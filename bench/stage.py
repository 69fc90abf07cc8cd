"""What everything that is measured on stories needs: the services' database, a bare connection to
it, and rounds in which both sides take turns.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg

from bench import bare_sql, stories
from bench.figures import p95, ratios, spread
from bench.shapes import Shape
from db.engine import Database, open_database
from db.reading import prepare_connection
from services import deltas
from services.access import Viewer

Json = dict[str, Any]
Say = Callable[[str], None]

_STATEMENT_SECONDS = 600.0
# PostgreSQL plans a statement anew the first five times that a connection uses it.
WARM_UP = 6


@dataclass(frozen=True, slots=True)
class Story:
    """What is measured with of a story that has been told."""

    branch_id: str
    # Ids in order of their positions, which begin at 1.
    entries: list[str]
    # The position of the last entry before each turn.
    turns: list[int]
    rows: int
    # The log position at which each entry that the log knows begins.
    begins: dict[str, int]
    head: int

    def before_turns(self, number: int) -> str:
        """The last entry before the last so many turns."""
        return self.entries[self.turns[-number] - 1]


class _WarmedUp(Exception):
    """Ends a transaction of which nothing is to stay."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A database with stories."""

    database: Database
    # Knows nothing of the services.
    bare: Any
    viewer: Viewer

    async def tell(self, shape: Shape, seed: int = 0) -> Story:
        """A new story."""
        told = await stories.fill(self.database, shape, seed)
        begins: dict[str, int] = {}
        for delta in told.ledger.deltas:
            if delta["entry_id"] is not None:
                begins.setdefault(delta["entry_id"], delta["log_position"])
        rows = told.rows + len(told.ledger.embeddings)
        head = len(told.ledger.deltas)
        story = Story(told.branch_id, told.entries, told.turns, rows, begins, head)
        del told
        # The hundred thousands of objects that made it are not to be walked while measuring.
        gc.collect()
        return story

    async def fork(self, branch_id: str, entry_id: str) -> deltas.Fork:
        """The services' fork of a branch, as a mutation makes it."""
        async with self.database.writing(sees_one_state=True) as writing:
            return await deltas.fork_branch(writing, self.viewer, branch_id, entry_id, "Fork")

    async def roll_back(self, branch_id: str, entry_id: str, *, warms_up: bool = False) -> None:
        """The services' rollback; with `warms_up` nothing comes of it."""
        with contextlib.suppress(_WarmedUp):
            async with self.database.writing() as writing:
                await deltas.roll_back_branch(writing, self.viewer, branch_id, entry_id)
                if warms_up:
                    raise _WarmedUp

    async def undo(self, branch_id: str) -> None:
        """The services' undo."""
        async with self.database.writing() as writing:
            await deltas.undo_branch(writing, self.viewer, branch_id)

    async def redo(self, branch_id: str) -> None:
        """The services' redo."""
        async with self.database.writing() as writing:
            await deltas.redo_branch(writing, self.viewer, branch_id)

    async def check_equal(self, branch_id: str, other_id: str, what: str) -> None:
        """Raise RuntimeError unless two branches have the same in all tables."""
        one, other = [await bare_sql.digests(self.bare, each) for each in (branch_id, other_id)]
        differing = [table for table in one if one[table] != other[table]]
        if differing:
            raise RuntimeError(f"{what}: {', '.join(differing)} differ")


@contextlib.asynccontextmanager
async def staged(dsn: str) -> AsyncIterator[Stage]:
    """A migrated database, opened."""
    # One connection for each side, so that it is warm once it has been used.
    database = await open_database(dsn, pool_size=1, statement_timeout=_STATEMENT_SECONDS)
    bare: Any = None
    try:
        await database.load_secrets()
        bare = await asyncpg.connect(dsn)
        await prepare_connection(bare)
        yield Stage(database, bare, await stories.local_viewer(database))
    finally:
        if bare is not None:
            await bare.close()
        await database.close()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """What has been made before is not walked by the garbage collector in the block, as in servers
    it is not.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def seconds(work: Awaitable[object]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def in_turn(number: int, *sides: Any) -> list[Any]:
    """The sides, so that over the rounds each goes first as often as the others."""
    place = number % len(sides)
    return [*sides[place:], *sides[:place]]


def against_bare(services: list[float], bare: list[float]) -> Json:
    """The seconds of both sides, and how many times as long the services take."""
    return {
        **ratios("vs_bare_sql", services, bare),
        "seconds": {"services": spread(services), "bare_sql": spread(bare)},
    }


def milliseconds(times: list[float]) -> Json:
    """Seconds summed up in milliseconds."""
    return {
        "times": len(times),
        "median": round(statistics.median(times) * 1e3, 3),
        "p95": round(p95(times) * 1e3, 3),
    }
