"""One server for each module: local mode, the demo provider without delay, its own database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.clusters import Cluster
from tests.conftest import ServerProcess, serving
from tests.e2e.callers import Caller
from tests.e2e.ledgers import Ledger


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        yield session


@pytest.fixture(scope="module")
async def server_dsn(cluster: Cluster) -> AsyncIterator[str]:
    dsn = await cluster.new_database()
    yield dsn
    await cluster.drop(dsn)


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Settings beyond the common ones; modules replace it."""
    return {}


@pytest.fixture(scope="module")
async def server(
    server_dsn: str, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServerProcess]:
    common = {
        "DATABASE_URL": server_dsn,
        "MIRRORGRAPH_DEMO_RATE": "0",
        "MIRRORGRAPH_DATA_DIR": str(tmp_path_factory.mktemp("data")),
    }
    async with serving(**{**common, **environment}) as server:
        yield server
    assert "Traceback" not in server.output, server.output


@pytest.fixture(scope="module")
def caller(server: ServerProcess, session: aiohttp.ClientSession) -> Caller:
    return Caller(server, session)


@pytest.fixture(scope="module")
def ledger(server_dsn: str) -> Ledger:
    return Ledger(server_dsn)
