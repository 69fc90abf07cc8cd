"""What tests share: a real PostgreSQL, a migrated database for each test, people, and servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from db.engine import Database, open_database
from services import accounts
from services.access import ANONYMOUS, Viewer
from tests.clusters import Cluster
from tests.forking import ForkedCommand, base_environment

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def shared(*parts: str) -> Path:
    """A file of the folder beside the project; the test is skipped where there is none."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"needs {'/'.join(('../shared', *parts))}, which does not ship with the project"
        )
    return path


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()


@pytest.fixture
async def dsn(cluster: Cluster) -> AsyncIterator[str]:
    """A migrated database without rows."""
    dsn = await cluster.new_database()
    yield dsn
    await cluster.drop(dsn)


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    """The same, opened."""
    database = await open_database(dsn, pool_size=4, statement_timeout=10)
    await database.load_secrets()
    yield database
    await database.close()


@dataclass(frozen=True)
class People:
    """Who asks in tests: the owner of things, somebody else, and nobody."""

    owner: Viewer
    stranger: Viewer
    anonymous: Viewer = ANONYMOUS


@pytest.fixture
async def people(database: Database) -> People:
    async with database.writing() as writing:
        owner = await accounts.ensure_user(writing, "owner")
        stranger = await accounts.ensure_user(writing, "stranger")
    return People(Viewer(owner.id), Viewer(stranger.id))


class ServerProcess:
    """A server as `python -m schema.cli serve` starts it, on a port of the system's."""

    def __init__(self, **environment: str) -> None:
        self._environment = environment
        self._process: ForkedCommand | None = None
        self.address = ""
        self.output = ""
        self._reading: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        return f"{self.address}/graphql"

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws", 1)

    @property
    def process(self) -> ForkedCommand:
        assert self._process is not None
        return self._process

    async def start(self) -> ServerProcess:
        """Start and wait until the address is printed; fails with the output otherwise."""
        environment = {
            **base_environment(),
            "MIRRORGRAPH_PORT": "0",
            # The local model takes its time for each text: tests that are about it ask for it.
            "MIRRORGRAPH_EMBEDDER": "none",
            **self._environment,
        }
        self._process = await ForkedCommand(["serve"], environment).start()
        ready = asyncio.get_running_loop().create_future()
        self._reading = [
            asyncio.create_task(self._read(self._process.stdout, ready)),
            asyncio.create_task(self._read(self._process.stderr, None)),
        ]
        ended = asyncio.create_task(self._process.wait())
        await asyncio.wait({ready, ended}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            await asyncio.gather(*self._reading)
        if not ready.done():
            raise AssertionError(
                f"the server did not start ({self.process.returncode}):\n{self.output}"
            )
        self.address = ready.result()
        return self

    async def _read(self, stream: asyncio.StreamReader, ready: Any) -> None:
        async for line in stream:
            text = line.decode()
            self.output += text
            if ready is not None and " ready at " in text and not ready.done():
                ready.set_result(text.split()[-1])

    async def stop(self, signal: int = 15) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(signal)
        status = await asyncio.wait_for(self.process.wait(), 30)
        await asyncio.gather(*self._reading, return_exceptions=True)
        return status


@contextlib.asynccontextmanager
async def serving(**environment: str) -> AsyncIterator[ServerProcess]:
    """A running server, stopped at the end of the block."""
    server = await ServerProcess(**environment).start()
    try:
        yield server
    finally:
        await server.stop()
