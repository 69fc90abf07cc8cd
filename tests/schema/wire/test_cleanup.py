"""However a client leaves, nothing of what it asked for is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
import sys
import weakref
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest

from schema.wire.errors import Refused
from schema.wire.requests import request_of
from schema.wire.sse import Reservation
from tests.e2e.callers import PATIENCE
from tests.schema.wire.leaving import (
    TRANSPORTS,
    ByEvents,
    ByOneStream,
    ByParts,
    ByPost,
    BySocket,
    Client,
)
from tests.schema.wire.serving import ProbeCaller, Wire, wired
from tests.schema.wire.talking import figure, until

KINDS = ("query", "mutation", "subscription")
KINDS_OF_CONNECTIONS = ("websocket", "sse", "multipart")


@pytest.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with wired() as wire:
        yield wire


@pytest.fixture(autouse=True)
async def complaints(caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    """Nobody complains: neither the event loop (of tasks destroyed while pending, exceptions that
    nobody took) nor the server.
    """
    loop = asyncio.get_running_loop()
    heard: list[dict[str, Any]] = []
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: heard.append(context))
    yield
    gc.collect(0)
    await asyncio.sleep(0)
    loop.set_exception_handler(handler)
    assert heard == []
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


@contextlib.asynccontextmanager
async def nothing_left(wire: Wire) -> AsyncIterator[None]:
    """What is there after the block was there before it; all that was opened has been cleaned."""
    before = asyncio.all_tasks()

    def is_quiet() -> bool:
        return (
            (wire.probe.live, wire.probe.slow) == (0, 0)
            and wire.probe.cleaned == wire.probe.opened
            and not any(figure(wire, "running_operations", kind=each) for each in KINDS)
            and not any(
                figure(wire, "connections", transport=each) for each in KINDS_OF_CONNECTIONS
            )
            and len(wire.endpoint.reservations) == 0
            and asyncio.all_tasks() <= before
        )

    yield
    with contextlib.suppress(TimeoutError):
        await until(is_quiet)
    assert (wire.probe.live, wire.probe.slow) == (0, 0)
    assert wire.probe.cleaned == wire.probe.opened
    assert [figure(wire, "running_operations", kind=each) for each in KINDS] == [0, 0, 0]
    gauges = [figure(wire, "connections", transport=each) for each in KINDS_OF_CONNECTIONS]
    assert gauges == [0, 0, 0]
    assert len(wire.endpoint.reservations) == 0
    assert asyncio.all_tasks() <= before


# What is asked for, and how one sees that it has begun.
SILENT = "subscription { silent }"
SLOW = "{ slow }"
SLOW_EVENT = "subscription { gated { slow } }"
LATE = "subscription { late(seconds: 3600) }"
SLOW_LOADS = "{ thing { slow thing { slow } } }"

WAYS = [(transport, end) for transport in TRANSPORTS for end in transport.ENDS]
WAYS_OF_STREAMS = [(transport, end) for transport, end in WAYS if transport.CARRIES_STREAMS]


def named(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


async def leave(client: Client, end: str) -> None:
    """End in one of the client's ways."""
    await getattr(client, end)()
    if end == "complete":
        # Completing ends the operation; what carried it is closed behind it.
        await client.close()


@pytest.mark.parametrize(("transport", "end"), WAYS_OF_STREAMS, ids=named)
async def test_a_silent_source_is_closed_and_its_clean_up_comes_to_its_end(
    wire: Wire, transport: type[Client], end: str
) -> None:
    """Rules T1, T2, T17."""
    opened = wire.probe.opened
    async with nothing_left(wire):
        client = transport(wire.address)
        await client.begin(SILENT)
        await until(lambda: wire.probe.live == 1)
        await leave(client, end)
    assert wire.probe.opened == opened + 1
    await client.gone()


@pytest.mark.parametrize(("transport", "end"), WAYS, ids=named)
async def test_an_operation_is_cancelled_for_real(
    wire: Wire, transport: type[Client], end: str
) -> None:
    """Rules T2, T3."""
    asked = SLOW_EVENT if transport is ByParts else SLOW
    cancelled = wire.probe.cancelled
    async with nothing_left(wire):
        client = transport(wire.address)
        await client.begin(asked)
        if asked is SLOW_EVENT:
            wire.probe.gate.release()
        await until(lambda: wire.probe.slow == 1)
        await leave(client, end)
    assert wire.probe.cancelled == cancelled + 1
    await client.gone()


@pytest.mark.parametrize(("transport", "end"), WAYS_OF_STREAMS, ids=named)
async def test_an_event_that_is_being_executed_is_cancelled(
    wire: Wire, transport: type[Client], end: str
) -> None:
    cancelled = wire.probe.cancelled
    async with nothing_left(wire):
        client = transport(wire.address)
        await client.begin(SLOW_EVENT)
        wire.probe.gate.release()
        await until(lambda: wire.probe.slow == 1)
        await leave(client, end)
    assert wire.probe.cancelled == cancelled + 1
    await client.gone()


@pytest.mark.parametrize(("transport", "end"), WAYS_OF_STREAMS, ids=named)
async def test_a_source_that_is_still_being_made_is_not_opened_any_more(
    wire: Wire, transport: type[Client], end: str
) -> None:
    """Rule T5."""
    opened, running = wire.probe.opened, ("running_operations", {"kind": "subscription"})
    async with nothing_left(wire):
        client = transport(wire.address)
        await client.begin(LATE)
        await until(lambda: figure(wire, running[0], **running[1]) == 1)
        await leave(client, end)
    assert wire.probe.opened == opened
    await client.gone()


@pytest.mark.parametrize("end", ["close", "abort"])
@pytest.mark.parametrize("transport", [ByEvents, ByParts, ByOneStream, BySocket], ids=named)
async def test_a_client_that_leaves_in_the_middle_of_a_frame_leaves_nothing(
    wire: Wire, transport: type[Client], end: str
) -> None:
    """Rules T1, T16. The server is writing: what it writes is larger than all buffers are."""
    async with nothing_left(wire):
        client = transport(wire.address)
        await client.begin("subscription { large(size: 8000000, to: 9) }")
        await client._lines[-1].hear(b"xxxxxxxx")
        assert wire.probe.live == 1
        await getattr(client, end)()
    await client.gone()


@pytest.mark.parametrize("transport", [ByEvents, ByParts, ByOneStream, BySocket], ids=named)
async def test_a_client_that_leaves_after_some_events_closes_the_source(
    wire: Wire, transport: type[Client]
) -> None:
    """Rule T16."""
    async with nothing_left(wire):
        client = transport(wire.address)
        await client.begin("subscription { gated { number } }")
        for _ in range(3):
            wire.probe.gate.release()
            await client._lines[-1].hear(b'{"number":0}')
        assert wire.probe.live == 1
        await client.close()
    await client.gone()


@pytest.mark.parametrize("end", ["close", "half_close", "abort"])
async def test_a_request_that_breaks_off_is_not_executed(wire: Wire, end: str) -> None:
    began = [figure(wire, "operations_total", kind="query", outcome=each) for each in ("ok",)]
    async with nothing_left(wire):
        client = ByPost(wire.address)
        line = await client.line()
        line.send(client.http("POST", body={"query": "{ hello }"}, cut=3))
        await asyncio.sleep(0)
        await getattr(client, end)()
    assert [figure(wire, "operations_total", kind="query", outcome="ok")] == began
    await client.gone()


@pytest.mark.parametrize("end", ["close", "abort"])
async def test_an_upload_that_breaks_off_leaves_nothing(wire: Wire, end: str) -> None:
    """A file of this size waits on disk."""
    head = (
        b'--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n'
        b'{"query": "mutation($file: Upload!) { readFile(file: $file) }", '
        b'"variables": {"file": null}}\r\n--x\r\n'
        b'Content-Disposition: form-data; name="map"\r\n\r\n{"0": ["variables.file"]}\r\n--x\r\n'
        b'Content-Disposition: form-data; name="0"; filename="a"\r\n\r\n'
    )
    request = (
        b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nGraphQL-Preflight: 1\r\n"
        b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 9000000\r\n\r\n"
    )
    async with nothing_left(wire):
        client = ByPost(wire.address)
        line = await client.line()
        line.send(request + head + bytes(2_000_000))
        await line.writer.drain()
        await getattr(client, end)()
    await client.gone()


async def test_operations_that_were_ended_are_waited_for_when_the_stream_ends(wire: Wire) -> None:
    """Rule T2. Their clean-up is neither cut short nor forgotten."""
    wire.probe.cleaning_seconds = 0.02
    try:
        for transport in (ByOneStream, BySocket):
            client = transport(wire.address)
            async with nothing_left(wire):
                for number in range(10):
                    await client.begin(SILENT, id=str(number))
                await until(lambda: wire.probe.live == 10)
                for number in range(5):
                    await client.send_complete(str(number))
                await until(lambda: wire.probe.live == 5)
                await client.abort()
            await client.gone()
    finally:
        wire.probe.cleaning_seconds = 0.0


async def test_an_id_is_free_as_soon_as_its_operation_was_ended(wire: Wire) -> None:
    """Rule T3: opened and completed 200 times in every order; the source waits all along."""
    dice = random.Random(3)
    for transport in (ByOneStream, BySocket):
        opened, count = wire.probe.opened, 0
        async with nothing_left(wire):
            client = transport(wire.address)
            await client.open()
            open_ids: list[str] = []
            while count < 200 or open_ids:
                free = [each for each in map(str, range(20)) if each not in open_ids]
                if count < 200 and free and (not open_ids or dice.random() < 0.55):
                    open_ids.append(dice.choice(free))
                    await client.begin(SILENT, id=open_ids[-1])
                    count += 1
                    if dice.random() < 0.5:
                        await until(lambda: wire.probe.live >= len(open_ids))  # noqa: B023
                else:
                    await client.complete(open_ids.pop(dice.randrange(len(open_ids))))
            await client.close()
        # Those that were completed before they had begun never opened their source.
        assert 50 < wire.probe.opened - opened <= 200
        await client.gone()


async def test_a_stream_that_has_ended_is_forgotten_at_once(wire: Wire) -> None:
    """Not only when the time would be up in which it had to be opened."""
    client = ByOneStream(wire.address)
    async with nothing_left(wire):
        await client.begin(SILENT)
        await until(lambda: wire.probe.live == 1)
        (reservation,) = wire.endpoint.reservations._reservations.values()
        watched = weakref.ref(reservation)
        del reservation
        await client.abort()
    await client.gone()
    gc.collect()
    assert watched() is None


async def test_an_operation_that_comes_too_late_for_its_stream_is_refused(wire: Wire) -> None:
    """Its stream has ended while the request, which was let in before, was still being read."""
    caller = ProbeCaller(wire.probe, "anybody")
    prepared = wire.operations.prepare(request_of({"query": SILENT}))
    async with nothing_left(wire):
        reservation = Reservation("token", caller)
        assert reservation.cancel() == []
        with pytest.raises(Refused) as refused:
            reservation.begin("1", wire.operations, prepared, caller.context())
        assert (refused.value.status, refused.value.code) == (404, "STREAM_NOT_FOUND")


async def objects_in_memory() -> int:
    for _ in range(10):  # what has ended is still being noted
        await asyncio.sleep(0)
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("transport", [ByOneStream, BySocket], ids=named)
async def test_a_thousand_operations_on_one_stream_leave_no_memory_behind(
    wire: Wire, transport: type[ByOneStream | BySocket]
) -> None:
    """Rules T18, T40. More than may be open at once, one after another."""
    async with nothing_left(wire):
        client = transport(wire.address)
        await client.open()
        tasks = asyncio.all_tasks()

        async def cycles(number: int) -> None:
            for _ in range(number // 20):
                for place in range(20):
                    await client.begin(SILENT, id=str(place))
                await until(lambda: wire.probe.live == 20)
                for place in range(20):
                    await client.complete(str(place))
                await until(lambda: asyncio.all_tasks() <= tasks)

        await cycles(200)
        sizes = [await objects_in_memory()]
        for _ in range(4):
            await cycles(240)
            sizes.append(await objects_in_memory())
        # A leak shows every time, and is one object for each operation at the least.
        assert min(after - before for before, after in pairwise(sizes)) < 120, sizes
        await client.close()
    await client.gone()


async def test_a_thousand_events_of_one_stream_leave_no_memory_behind(wire: Wire) -> None:
    """A stream may go on for days."""
    operations, caller = wire.operations, ProbeCaller(wire.probe, "anybody")
    document = "subscription { things(to: 1200) { number thing { number } } }"
    prepared = operations.prepare(request_of({"query": document}))
    async with nothing_left(wire), aclosing(operations.stream(prepared, caller.context())) as all_:
        sizes: list[int] = []
        count = 0
        async for _ in all_:
            count += 1
            if count % 200 == 0:
                sizes.append(await objects_in_memory())
        assert count == 1200
        # The first events make what is made once.
        assert min(after - before for before, after in pairwise(sizes[1:])) < 100, sizes


async def test_a_thousand_clients_that_come_and_go_in_any_order_leave_nothing(wire: Wire) -> None:
    """Rules T1, T3."""
    dice = random.Random(5)
    plans = [
        (
            transport := dice.choice(TRANSPORTS),
            dice.choice(transport.ENDS),
            dice.choice(_asked_of(transport)),
            dice.choice([None, 0.0, 0.001, 0.005]),
        )
        for _ in range(1_000)
    ]
    remaining = iter(plans)

    async def go_on() -> None:
        for transport, end, asked, pause in remaining:
            client = transport(wire.address)
            await client.begin(asked)
            if "gated" in asked:
                wire.probe.gate.release()
            if pause is not None:
                # Part of the scenario: clients leave at any moment. Nothing is waited for here.
                await asyncio.sleep(pause)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await leave(client, end)
            await client.gone()

    async with asyncio.timeout(2 * PATIENCE), nothing_left(wire):
        await asyncio.gather(*(go_on() for _ in range(25)))
    assert list(remaining) == []
    assert wire.probe.opened > 200
    # The server serves as before.
    async with nothing_left(wire):
        client = ByPost(wire.address)
        await client.begin("{ hello }")
        await client._lines[0].hear(b'{"data":{"hello":"hello world"}}')
        await client.gone()


def _asked_of(transport: type[Client]) -> tuple[str, ...]:
    single = ("{ hello }", SLOW, "{ slow(seconds: 0.002) }", SLOW_LOADS, "{ refused }")
    streams = (
        SILENT,
        LATE,
        "subscription { late(seconds: 0.002) }",
        # None of these ends by itself: a client may leave while a source cleans up that has.
        "subscription { count(to: 1000000, seconds: 0.001) }",
        "subscription { gated { slow number } }",
        "subscription { large(size: 500000, to: 1000000) }",
    )
    if not transport.CARRIES_STREAMS:
        return single
    return streams if transport is ByParts else (*single, *streams)
