"""Clients that do not read what they asked for: the server waits for them, then lets go.

Rule T10 everywhere: nothing is dropped, and nothing piles up.
"""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import orjson
import pytest

from schema import serving
from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.e2e.callers import PATIENCE
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import (
    EVENTS,
    Exchange,
    Talk,
    asking,
    begin,
    connected,
    events_executed,
    figure,
    opening,
    quiet,
    reserve,
    talking,
    until,
)

SIZE, COUNT = 100_000, 120
LARGE = f"subscription {{ large(size: {SIZE}, to: {COUNT}) }}"
ENDLESS = f"subscription {{ large(size: {SIZE}, to: 100000) }}"
PARTS = {"Accept": "multipart/mixed;subscriptionSpec=1.0"}
# A good part of what a stream says, and more than the system's own buffers hold of it.
MOST_UNREAD = 80


def payload(number: int) -> bytes:
    """One result as it is sent."""
    return orjson.dumps({"data": {"large": f"{number} ".ljust(SIZE, "x")}})


# What is read of a stream that was left unread: all that was said, in order.


async def read_events(exchange: Exchange) -> None:
    await exchange.expect(b":\n\n")
    for number in range(COUNT):
        await exchange.expect(b"event: next\ndata: %b\n\n" % payload(number))
    assert await exchange.rest() == b"event: complete\ndata: \n\n"


async def read_operation(exchange: Exchange) -> None:
    await exchange.expect(b":\n\n")
    for number in range(COUNT):
        said = b'{"id":"1","payload":%b}' % payload(number)
        await exchange.expect(b"event: next\ndata: %b\n\n" % said)
    await exchange.expect(b'event: complete\ndata: {"id":"1"}\n\n')


async def read_parts(exchange: Exchange) -> None:
    await exchange.expect(b"\r\n--graphql")
    head = b"\r\ncontent-type: application/json\r\n\r\n"
    for number in range(COUNT):
        await exchange.expect(b'%b{"payload":%b}\r\n--graphql' % (head, payload(number)))
    assert await exchange.rest() == b"--\r\n"


async def read_messages(talk: Talk) -> None:
    for number in range(COUNT):
        async with asyncio.timeout(PATIENCE):
            message = await talk.connection.recv(decode=False)
        assert message == b'{"type":"next","id":"1","payload":%b}' % payload(number)
    assert await talk.hear() == {"type": "complete", "id": "1"}


Client = tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[bool]]]


@contextlib.asynccontextmanager
async def unread(wire: Wire, transport: str, query: str) -> AsyncIterator[Client]:
    """A subscription of which nothing is read; how to read it all, and whether it breaks off."""
    if transport == "websocket":
        sock = await connected(wire)
        async with talking(wire.socket_url, sock=sock, max_queue=1, close_timeout=0) as talk:
            await talk.subscribe("1", query)
            yield lambda: read_messages(talk), lambda: broken_off(talk)
    elif transport == "reserved":
        token = await reserve(wire)
        async with opening(wire, token) as exchange:
            await begin(wire, token, "1", query)
            yield lambda: read_operation(exchange), exchange.cut
    else:
        headers = EVENTS if transport == "sse" else PARTS
        read = read_events if transport == "sse" else read_parts
        async with asking(wire, query, headers=headers) as exchange:
            yield lambda: read(exchange), exchange.cut


async def broken_off(talk: Talk) -> bool:
    """Whether a socket ends without a word."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(PATIENCE):
            async for _ in talk.connection:
                pass
    return talk.connection.close_code == 1006


@contextlib.contextmanager
def weighed() -> Iterator[Callable[[], int]]:
    """How much memory has come on top since the block began."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield lambda: tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


TRANSPORTS = pytest.mark.parametrize("transport", ["sse", "reserved", "multipart", "websocket"])


@TRANSPORTS
async def test_the_source_waits_for_a_client_that_reads_nothing(transport: str) -> None:
    """Rule T10."""
    async with wired() as wire:
        with weighed() as grown:
            async with unread(wire, transport, LARGE) as (read, _):
                await until(lambda: events_executed(wire) > 0)
                executed = await quiet(lambda: events_executed(wire))
                assert executed < MOST_UNREAD
                # A few events wait in the server and in the client, and no more.
                assert grown() < 20 * SIZE
                assert wire.probe.live == 1
                await read()
                await until(lambda: wire.probe.cleaned == 1)
                assert events_executed(wire) == COUNT


@TRANSPORTS
async def test_a_client_that_stays_away_is_cut(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule T10. Its source is closed then, not read to its end."""
    monkeypatch.setattr(serving, "STALL_SECONDS", 0.1)
    async with wired() as wire, unread(wire, transport, ENDLESS) as (_, is_cut):
        await until(lambda: wire.probe.cleaned == 1)
        assert (wire.probe.live, wire.probe.opened) == (0, 1)
        assert events_executed(wire) < MOST_UNREAD
        name = "sse" if transport == "reserved" else transport
        await until(lambda: figure(wire, "connections", transport=name) == 0)
        assert figure(wire, "running_operations", kind="subscription") == 0
        assert await is_cut()


@TRANSPORTS
async def test_a_client_that_is_gone_while_it_reads_nothing(transport: str) -> None:
    async with wired() as wire:
        async with unread(wire, transport, ENDLESS):
            await until(lambda: events_executed(wire) > 0)
            await quiet(lambda: events_executed(wire))
        await until(lambda: wire.probe.cleaned == 1)
        assert events_executed(wire) < MOST_UNREAD


async def test_a_fast_client_does_not_keep_others_waiting() -> None:
    """A source that never waits for anything gives way between two events."""
    async with wired() as wire, talking(wire.socket_url) as talk:
        await talk.subscribe("1", "subscription { large(size: 1, to: 100000) }")
        await talk.subscribe("2", "{ hello }")
        while (await talk.hear())["id"] == "1":
            pass
        assert events_executed(wire) < 1_000


async def test_a_client_that_only_asks_is_not_heard_any_more() -> None:
    """Rule T10. Answers that nobody reads hold back the questions, not fill the memory."""
    settings = EndpointSettings(heartbeat_seconds=3_600)
    async with wired(Limits(operations=10), settings) as wire:
        before = len(asyncio.all_tasks())
        sock = await connected(wire)
        async with talking(wire.socket_url, sock=sock, max_queue=1, close_timeout=0) as talk:
            said = 0

            async def ask() -> None:
                nonlocal said
                while True:
                    # The answer repeats the id, which makes it as large.
                    await talk.subscribe(f"{said} ".ljust(SIZE, "x"), "{ unknown }")
                    said += 1

            flood = asyncio.create_task(ask())
            await until(lambda: said > 0)
            await quiet(lambda: said)
            assert len(asyncio.all_tasks()) - before < 30
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)
            talk.connection.transport.abort()
        await until(lambda: figure(wire, "connections", transport="websocket") == 0)
        await until(lambda: len(asyncio.all_tasks()) <= before)
