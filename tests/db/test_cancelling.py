from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import asyncpg
from sqlalchemy import select

from db.engine import open_database
from db.reading import columns, statement
from db.tables import Setting
from tests.clusters import Cluster

POOL = 5


@statement(Setting)
def all_settings() -> Any:
    return select(*columns(Setting))


async def test_whatever_the_moment_a_cancelled_statement_ends_and_no_other_does(
    cluster: Cluster,
) -> None:
    """PostgreSQL forgets a request to cancel that comes before it has begun the statement."""
    dsn = await cluster.new_database()
    # Long, so that no statement ends by itself.
    database = await open_database(dsn, pool_size=POOL, statement_timeout=600)
    holding = await asyncpg.connect(dsn)
    dice = random.Random(7)

    async def read(_: int) -> int:
        async with database.reading() as reading:
            return len(await reading.all(all_settings()))

    async def read_and_leave(_: int) -> None:
        async with database.reading() as reading:
            asking = asyncio.create_task(reading.all(all_settings()))
            # The moment is the scenario: about when the statement begins.
            for _ in range(dice.choice([0, 0, 1, 2, 3])):
                await asyncio.sleep(0)
            if dice.random() < 0.5:
                await asyncio.sleep(dice.random() * 0.0005)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking

    try:
        await asyncio.gather(*map(read, range(POOL)))
        async with asyncio.timeout(60):
            async with holding.transaction():
                await holding.execute("LOCK TABLE settings IN ACCESS EXCLUSIVE MODE")
                for _ in range(60):
                    await asyncio.gather(*map(read_and_leave, range(2 * POOL)))
            for _ in range(20):
                await asyncio.gather(*map(read, range(2 * POOL)))
            assert database.pool_use()["reading"][0] == POOL
    finally:
        await holding.close()
        async with asyncio.timeout(10):
            await database.close()
        await cluster.drop(dsn)
