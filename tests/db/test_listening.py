from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from db import listening
from db.listening import Listener
from tests.clusters import Cluster
from tests.db.conftest import until


class Ears:
    """What a listener was told, and how often it was lost."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        self.losses = 0
        self.lost = asyncio.Event()

    def hear(self, message: str) -> None:
        if message == "trouble":
            raise RuntimeError("a message that its receiver cannot bear")
        self.messages.put_nowait(message)

    def lose(self) -> None:
        self.losses += 1
        self.lost.set()

    async def next(self) -> str:
        async with asyncio.timeout(5):
            return await self.messages.get()


class Server:
    """A connection beside the listener's, for announcing and for looking at its backend."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def announce(self, message: str, channel: str = "things") -> None:
        await self._connection.execute("SELECT pg_notify($1, $2)", channel, message)

    async def backends(self) -> list[int]:
        rows = await self._connection.fetch(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY backend_start"
        )
        return [row["pid"] for row in rows]

    async def backend(self) -> int:
        (pid,) = await self.backends()
        return pid

    async def terminate(self, pid: int) -> None:
        assert await self._connection.fetchval("SELECT pg_terminate_backend($1, 5000)", pid)

    async def is_alone(self) -> bool:
        return await self.backends() == []


@pytest.fixture(scope="module")
async def listening_dsn(cluster: Cluster) -> AsyncIterator[str]:
    dsn = await cluster.new_database(template="template1")
    yield dsn
    await cluster.drop(dsn)


@pytest.fixture
async def server(listening_dsn: str) -> AsyncIterator[Server]:
    connection = await asyncpg.connect(listening_dsn)
    server = Server(connection)
    await until(server.is_alone, 5)
    yield server
    await connection.close()


@asynccontextmanager
async def heard(dsn: str, ears: Ears) -> AsyncIterator[Listener]:
    listener = Listener(dsn, "things", ears.hear, ears.lose)
    try:
        async with asyncio.timeout(10):
            await listener.start()
        yield listener
    finally:
        await listener.close()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> float:
    """Times short enough to wait for; the watchdog's."""
    monkeypatch.setattr(listening, "WATCHDOG_SECONDS", 0.5)
    monkeypatch.setattr(listening, "RETRY_SECONDS", 0.05)
    return 0.5


async def test_announcements_of_the_channel_arrive_in_order(
    listening_dsn: str, server: Server
) -> None:
    ears = Ears()
    async with heard(listening_dsn, ears) as listener:
        assert listener.is_connected
        await server.announce("elsewhere", channel="others")
        for message in ("run_1 1", "", "日本語 😀"):
            await server.announce(message)
        assert [await ears.next() for _ in range(3)] == ["run_1 1", "", "日本語 😀"]
        assert ears.messages.empty()
        assert ears.losses == 0


async def test_a_receiver_that_fails_hears_the_next_announcement(
    listening_dsn: str, server: Server
) -> None:
    ears = Ears()
    reported: list[Any] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
    try:
        async with heard(listening_dsn, ears):
            await server.announce("trouble")
            await server.announce("fine")
            assert await ears.next() == "fine"
    finally:
        loop.set_exception_handler(before)
    assert [type(each) for each in reported] == [RuntimeError]
    assert ears.losses == 0


async def test_a_terminated_connection_is_told_once_and_made_again(
    listening_dsn: str, server: Server
) -> None:
    """Rule T11. The watchdog is not needed for it: everything happens within its five seconds."""
    ears = Ears()
    async with heard(listening_dsn, ears) as listener:
        for losses in (1, 2):
            first = await server.backend()
            await server.terminate(first)
            async with asyncio.timeout(2):
                await ears.lost.wait()
            ears.lost.clear()
            async with asyncio.timeout(2):
                await listener._connected.wait()
            assert await server.backend() != first
            await server.announce(f"after loss {losses}")
            assert await ears.next() == f"after loss {losses}"
            assert ears.losses == losses


async def test_a_connection_that_ends_under_a_question_is_made_again(
    listening_dsn: str, server: Server, hasty: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What asyncpg says to a question between the server's last word and the end of the line."""

    async def refuse(*arguments: object, **options: object) -> None:
        raise asyncpg.InternalClientError("cannot switch to state 12")

    ears = Ears()
    async with heard(listening_dsn, ears) as listener:
        with monkeypatch.context() as patch:
            patch.setattr(asyncpg.Connection, "fetchval", refuse)
            async with asyncio.timeout(2 * hasty + 1):
                await ears.lost.wait()
        async with asyncio.timeout(5):
            await listener._connected.wait()
        await server.announce("after the loss")
        assert await ears.next() == "after the loss"


async def test_a_connection_that_goes_quiet_is_found_by_the_watchdog(
    listening_dsn: str, server: Server, hasty: float
) -> None:
    """Rule T13. A frozen backend: the connection stands, and nothing will ever come from it."""
    ears = Ears()
    async with heard(listening_dsn, ears) as listener:
        frozen = await server.backend()
        os.kill(frozen, signal.SIGSTOP)
        try:
            # At most one pause of the watchdog, and one question that gets no answer.
            async with asyncio.timeout(2 * hasty + 1):
                await ears.lost.wait()
            assert not listener.is_connected
            async with asyncio.timeout(5):
                await listener._connected.wait()
            await server.announce("after the loss")
            assert await ears.next() == "after the loss"
            assert ears.losses == 1
            assert frozen in await server.backends()
        finally:
            os.kill(frozen, signal.SIGCONT)

        async def is_gone() -> bool:
            return frozen not in await server.backends()

        await until(is_gone, 5)
        assert ears.losses == 1


async def test_the_watchdog_leaves_a_living_connection_alone(
    listening_dsn: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "WATCHDOG_SECONDS", 0.5)
    ears = Ears()

    async def is_asked() -> bool:
        last = await server._connection.fetchval(
            "SELECT query FROM pg_stat_activity WHERE pid = $1", backend
        )
        return last == "SELECT 1"

    async with heard(listening_dsn, ears):
        backend = await server.backend()
        await until(is_asked, 5)
        await server.announce("still here")
        assert await ears.next() == "still here"
        assert await server.backend() == backend
        assert ears.losses == 0


@pytest.mark.parametrize("mistake", [False, True])
async def test_a_listener_that_dies_is_told_as_a_loss(
    listening_dsn: str,
    server: Server,
    hasty: float,
    monkeypatch: pytest.MonkeyPatch,
    *,
    mistake: bool,
) -> None:
    """Rule T19. It is not made again, but streams end, and the server says that it is not ready."""

    async def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    ears = Ears()
    async with heard(listening_dsn, ears) as listener:
        task = listener._task
        assert task is not None
        if mistake:
            monkeypatch.setattr(asyncpg.Connection, "fetchval", fail)
        else:
            task.cancel()
        await asyncio.wait({task})
        assert ears.losses == 1
        assert not listener.is_connected
        if mistake:
            assert isinstance(task.exception(), ZeroDivisionError)
    assert ears.losses == 1


async def test_closing_ends_the_task_and_its_connection(listening_dsn: str, server: Server) -> None:
    ears = Ears()
    async with heard(listening_dsn, ears) as listener:
        task = listener._task
        assert task is not None
        await listener.close()
        assert task.done()
        assert not listener.is_connected
        await until(server.is_alone, 5)
        await listener.close()
    assert ears.losses == 0, "whoever closes knows that it is closed"
    await Listener(listening_dsn, "things", ears.hear, ears.lose).close()


async def test_closing_between_two_connections_ends_the_task(
    listening_dsn: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "RETRY_SECONDS", 3600)
    ears = Ears()
    async with heard(listening_dsn, ears) as listener:
        await server.terminate(await server.backend())
        async with asyncio.timeout(2):
            await ears.lost.wait()
    assert listener._task is not None
    assert listener._task.done()
    assert ears.losses == 1


class Gate:
    """A way to the database on which the first LISTEN, and all behind it, gets lost."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self.swallowed = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_unix_connection(self._socket_path)
        there = asyncio.create_task(self._pass(reader, there_writer))
        back = asyncio.create_task(self._pass(there_reader, writer))
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
        for end in (writer, there_writer):
            end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_swallowing = False
        with contextlib.suppress(ConnectionError):
            while content := await reader.read(65536):
                if b"LISTEN" in content and not self.swallowed:
                    is_swallowing = True
                if is_swallowing:
                    self.swallowed += 1
                else:
                    writer.write(content)
                    await writer.drain()


async def test_a_connection_that_goes_quiet_before_it_listens_is_given_up(
    listening_dsn: str, server: Server, cluster: Cluster, hasty: float
) -> None:
    folder = cluster.dsn.partition("?host=")[2]
    gate = Gate(f"{folder}/.s.PGSQL.5432")
    way = await asyncio.start_server(gate.serve, "127.0.0.1", 0)
    port = way.sockets[0].getsockname()[1]
    name = listening_dsn.rpartition("/test_")[2].partition("?")[0]
    ears = Ears()
    try:
        async with heard(f"postgresql://postgres@127.0.0.1:{port}/test_{name}", ears) as listener:
            assert gate.swallowed
            assert listener.is_connected
            await server.announce("at last")
            assert await ears.next() == "at last"
            assert ears.losses == 0, "it was never connected before"
    finally:
        way.close()
        await way.wait_closed()


async def test_starting_waits_for_a_database_that_comes_later(
    cluster: Cluster, hasty: float
) -> None:
    ears = Ears()
    listener = Listener(cluster.dsn_of("listening_later"), "things", ears.hear, ears.lose)
    starting = asyncio.create_task(listener.start())
    try:
        await asyncio.sleep(0)
        assert not listener.is_connected
        await cluster.run("CREATE DATABASE listening_later")
        async with asyncio.timeout(10):
            await starting
        assert listener.is_connected
        assert ears.losses == 0
    finally:
        starting.cancel()
        await listener.close()
        await cluster.run("DROP DATABASE IF EXISTS listening_later WITH (FORCE)")
