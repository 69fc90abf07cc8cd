"""What a server does by the clock, whoever asks: chores in small steps, of several servers by one.

A chore belongs to its noun; here is only how it is carried out again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import structlog
from sqlalchemy import func, select

from db.engine import Database
from db.reading import DATABASE_TROUBLE, Writing, param, statement

# Does a bounded number of rows in the transaction that it is given, and says how many; it is
# called again, each time in a transaction of its own, until there was nothing to do.
Chore: TypeAlias = Callable[[Writing], Awaitable[int]]

logger = structlog.get_logger("mirrorgraph.housekeeping")


class Housekeeper:
    """The chores of one server process by their names, `seconds` from one round to the next.

    Each step of a chore holds an advisory lock of the chore's name, so several servers on one
    database never do the same at once. A chore that fails is logged, and tried again next round.
    """

    def __init__(self, database: Database, chores: Mapping[str, Chore], *, seconds: float) -> None:
        self._database = database
        self._chores = chores
        self._seconds = seconds
        self._rounds: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin the first round at once."""
        self._rounds = asyncio.create_task(self._forever(), name="housekeeping")

    async def stop(self) -> None:
        """End; a step that is not done is rolled back."""
        if self._rounds is not None:
            self._rounds.cancel()
            await asyncio.gather(self._rounds, return_exceptions=True)

    async def run_once(self) -> dict[str, int]:
        """One round; how many rows each chore did, by its name."""
        return {name: await self._do(name, chore) for name, chore in self._chores.items()}

    async def _forever(self) -> None:
        while True:
            await self.run_once()
            await asyncio.sleep(self._seconds)

    async def _do(self, name: str, chore: Chore) -> int:
        done = 0
        try:
            while step := await self._step(name, chore):
                done += step
        except DATABASE_TROUBLE as error:
            logger.warning("a chore waits for the database", chore=name, error=type(error).__name__)
        except Exception:
            logger.exception("a chore failed", chore=name)
        if done:
            logger.info("a chore is done", chore=name, rows=done)
        return done

    async def _step(self, name: str, chore: Chore) -> int:
        async with self._database.writing() as writing:
            is_ours = await writing.value(_lock(), lock=f"chore {name}")
            return await chore(writing) if is_ours else 0


@statement(object)
def _lock() -> Any:
    return select(func.pg_try_advisory_xact_lock(func.hashtextextended(param("lock"), 0)))
