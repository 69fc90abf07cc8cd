"""More of everything than a server can want, all at once: it serves what it has room for, says so
for the rest, goes on serving everybody else, and keeps nothing of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from tests.conftest import ServerProcess
from tests.e2e.callers import PATIENCE, RUN_EVENTS, Caller, dialled

ROLES = "{ viewer { roles } }"
CONNECTIONS = 520
CACHE_BYTES = 8 * 1024 * 1024
MIB = 1024 * 1024

# What 500 sockets and 2,000 operations may leave behind. A socket takes about 40 KiB while it is
# open, and Python's allocator gives back whole arenas alone; a leak of a socket's or an
# operation's state would add up with each round, which the rounds below do not allow.
GROWTH = 100 * MIB
GROWTH_OF_A_ROUND = 8 * MIB


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {
        "MIRRORGRAPH_MAX_CONNECTIONS": str(CONNECTIONS),
        "MIRRORGRAPH_REQUEST_TIMEOUT": "1",
        "MIRRORGRAPH_INIT_TIMEOUT": "1",
        "MIRRORGRAPH_DOCUMENT_CACHE_BYTES": str(CACHE_BYTES),
    }


def memory(server: ServerProcess) -> int:
    """What the server holds of the machine's memory, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    (kibibytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status.read_text())
    return int(kibibytes) * 1024


@contextlib.asynccontextmanager
async def somebody_else(caller: Caller) -> AsyncIterator[None]:
    """Another client, whose ordinary queries are all served while the block runs."""
    is_over = asyncio.Event()
    served = 0

    async def ask() -> None:
        nonlocal served
        while not is_over.is_set():
            assert await caller.ask(ROLES) == {"viewer": {"roles": []}}
            served += 1

    asking = asyncio.create_task(ask())
    try:
        yield
    finally:
        is_over.set()
        async with asyncio.timeout(PATIENCE):
            await asking
    assert served > 0


@contextlib.asynccontextmanager
async def crowd(server: ServerProcess, count: int) -> AsyncIterator[list[ClientConnection]]:
    """Sockets that are opened all at once, and closed all at once."""
    async with asyncio.timeout(PATIENCE), contextlib.AsyncExitStack() as stack:
        connections = await asyncio.gather(
            *(stack.enter_async_context(dialled(server, open_timeout=None)) for _ in range(count))
        )
        yield connections


async def open_connections(caller: Caller) -> int:
    """How many sockets the server says it carries."""
    text = (await caller.request("GET", "/metrics")).body
    found = re.findall(r'mirrorgraph_connections\{transport="websocket"\} (\d+)', text)
    return int(found[0]) if found else 0


async def until_connections(caller: Caller, count: int) -> None:
    """Return when the server carries so many sockets."""
    async with asyncio.timeout(PATIENCE):
        while await open_connections(caller) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def initialise(connection: ClientConnection) -> None:
    await connection.send('{"type":"connection_init"}')
    assert await connection.recv() == '{"type":"connection_ack"}'


async def test_500_sockets_at_once_are_served_and_those_over_the_limit_refused(
    caller: Caller, server: ServerProcess
) -> None:
    """Nobody else notices, and a place that is left is free again."""
    async with somebody_else(caller), crowd(server, CONNECTIONS) as connections:
        await asyncio.gather(*map(initialise, connections))
        assert await open_connections(caller) == CONNECTIONS
        for _ in range(3):
            with pytest.raises(InvalidStatus) as caught:
                async with dialled(server):
                    pass
            assert caught.value.response.status_code == 503
            assert b"CONNECTION_LIMIT" in caught.value.response.body
        refused = await caller.post(
            RUN_EVENTS, {"run": "run_1"}, headers={"Accept": "text/event-stream"}
        )
        assert (refused.status, refused.codes) == (503, ["CONNECTION_LIMIT"])
        await connections[0].close()
        await until_connections(caller, CONNECTIONS - 1)
        async with dialled(server) as connection:
            await initialise(connection)
    await until_connections(caller, 0)


async def flood(server: ServerProcess, sockets: int, operations: int) -> None:
    """Operations on sockets, all at once; each is answered by its own result and its end."""
    async with crowd(server, sockets) as connections:

        async def use(connection: ClientConnection) -> None:
            await initialise(connection)
            for number in range(operations):
                await connection.send(
                    f'{{"type":"subscribe","id":"{number}","payload":{{"query":"{ROLES}"}}}}'
                )
            received = [str(await connection.recv()) for _ in range(2 * operations)]
            for number in range(operations):
                of_this = [each for each in received if f'"id":"{number}"' in each]
                assert of_this == [
                    f'{{"type":"next","id":"{number}",'
                    '"payload":{"data":{"viewer":{"roles":[]}}}}',
                    f'{{"type":"complete","id":"{number}"}}',
                ]

        await asyncio.gather(*map(use, connections))


async def test_2000_operations_at_once_are_all_answered_and_leave_nothing(
    caller: Caller, server: ServerProcess
) -> None:
    """Memory is about the same after each round: what a round takes is given back or used anew."""
    before = memory(server)
    after = []
    for _ in range(4):
        async with somebody_else(caller):
            await flood(server, sockets=40, operations=50)
        await until_connections(caller, 0)
        after.append(memory(server))
    assert max(after) - before < GROWTH, (before, after)
    assert after[-1] - after[0] < 2 * GROWTH_OF_A_ROUND, (before, after)


async def test_sockets_that_say_nothing_are_closed_in_time(
    caller: Caller, server: ServerProcess
) -> None:
    async with somebody_else(caller), crowd(server, 100) as connections:
        await asyncio.gather(*(each.wait_closed() for each in connections))
        assert {each.close_code for each in connections} == {4408}
    await until_connections(caller, 0)


async def test_half_a_handshake_holds_up_nobody(caller: Caller, server: ServerProcess) -> None:
    """Connections that begin a request and never end its head."""
    host, port = server.address.removeprefix("http://").split(":")
    writers = []
    async with somebody_else(caller):
        for _ in range(300):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: webso")
            writers.append(writer)
        assert await open_connections(caller) == 0
        async with dialled(server) as connection:
            await initialise(connection)
    for writer in writers:
        writer.transport.abort()
    await until_connections(caller, 0)


async def test_bodies_that_do_not_arrive_are_given_up(
    caller: Caller, server: ServerProcess
) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        'Content-Length: 100\r\n\r\n{"query": "'
    )

    async def send_slowly() -> bytes:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode())
        status = await reader.readline()
        answer = await reader.readuntil(b"}]}")
        writer.close()
        return status.split()[1] + b" " + answer.partition(b'"code":')[2]

    async with asyncio.timeout(PATIENCE), somebody_else(caller):
        answers = await asyncio.gather(*(send_slowly() for _ in range(100)))
    assert set(answers) == {b'408 "REQUEST_TIMEOUT"}}]}'}


async def test_documents_that_are_all_new_fill_no_more_than_the_cache(
    caller: Caller, server: ServerProcess
) -> None:
    """All of them would weigh six times the cache."""

    async def send(number: int) -> None:
        fields = " ".join(f"a{each}: roles" for each in range(45))
        padding = " " * (1_000 + number)
        assert set((await caller.post(f"{{ viewer {{ {fields} }} }} #{padding}")).body) == {"data"}

    async def cached() -> dict[str, float]:
        text = (await caller.request("GET", "/metrics")).body
        found = re.findall(r"^mirrorgraph_document_cache_(\w+) (\S+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in found}

    for number in range(50):
        await send(number)
    before = memory(server)
    for number in range(50, 350):
        await send(number)
    now = await cached()
    assert now["misses_total"] >= 350
    assert CACHE_BYTES / 2 < now["bytes"] <= CACHE_BYTES
    after = memory(server)
    assert after - before < GROWTH_OF_A_ROUND + CACHE_BYTES, (before, after)
