"""One well-filled database for all rules that need rows; nothing may change it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from db.engine import open_database
from tests.architecture.world import World, build_world
from tests.clusters import Cluster


# Of the session, not of the package: a worker may come back to these tests after others.
@pytest.fixture(scope="session")
async def world(cluster: Cluster) -> AsyncIterator[World]:
    dsn = await cluster.new_database()
    database = await open_database(dsn, pool_size=4, statement_timeout=30)
    await database.load_secrets()
    yield await build_world(database)
    await database.close()
    await cluster.drop(dsn)
