"""What the tests of the database layer share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from db.engine import Database, open_database
from tests.clusters import Cluster


@pytest.fixture(scope="module")
async def shared_database(cluster: Cluster) -> AsyncIterator[Database]:
    """One migrated database for a whole module, for tests that clear up behind themselves."""
    dsn = await cluster.new_database()
    database = await open_database(dsn, pool_size=4, statement_timeout=10)
    await database.load_secrets()
    yield database
    await database.close()
    await cluster.drop(dsn)


async def until(claim: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Ask again and again until the claim holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(seconds):
        while True:
            if await claim():
                return
            await asyncio.sleep(0.01)
