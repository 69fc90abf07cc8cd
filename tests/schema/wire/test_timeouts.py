"""Operations that take too long are stopped for real, and told so over every transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from schema.wire.limits import Limits
from tests.e2e.callers import Json
from tests.schema.wire.leaving import ByOneStream
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import EVENTS, asking, figure, talking, until

SECONDS = 0.05
SAID = f"The operation took longer than {SECONDS} seconds and was stopped."
ERROR: Json = {"message": SAID, "extensions": {"code": "OPERATION_TIMEOUT"}}

SLOW = "{ slow }"
LATE = "subscription { late(seconds: 3600) }"
EVENT = "subscription { gated { slow } }"
STOPPED_EVENT: Json = {
    "errors": [{"message": SAID, "extensions": {"code": "OPERATION_TIMEOUT", "retryable": True}}]
}


@pytest.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with wired(Limits(seconds=SECONDS)) as wire:
        yield wire


@pytest.fixture(autouse=True)
async def stopped(wire: Wire) -> AsyncIterator[None]:
    """Whatever ran too long was cancelled and has cleaned up; it is counted as a time-out."""
    wire.probe.cancelled = wire.probe.slow = 0
    tasks = asyncio.all_tasks()
    yield
    await until(lambda: wire.probe.live == 0 and wire.probe.cleaned == wire.probe.opened)
    await until(lambda: asyncio.all_tasks() - tasks <= {asyncio.current_task()})
    assert wire.probe.slow == 0
    kinds = ("query", "mutation", "subscription")
    assert [figure(wire, "running_operations", kind=kind) for kind in kinds] == [0, 0, 0]


def timeouts(wire: Wire, kind: str) -> float:
    return figure(wire, "operations_total", kind=kind, outcome="timeout")


@pytest.mark.parametrize("accept", ["application/json", "application/graphql-response+json"])
async def test_a_slow_query_is_refused_by_a_single_response(wire: Wire, accept: str) -> None:
    before = timeouts(wire, "query")
    async with aiohttp.ClientSession() as session:
        asked = {"json": {"query": SLOW}, "headers": {"Accept": accept}}
        async with session.post(wire.url, **asked) as response:
            assert (response.status, await response.json(content_type=None)) == (
                503,
                {"errors": [ERROR]},
            )
    assert wire.probe.cancelled == 1
    assert timeouts(wire, "query") == before + 1


async def test_in_a_batch_each_operation_has_its_own_time(wire: Wire) -> None:
    async with aiohttp.ClientSession() as session:
        batch = [{"query": SLOW}, {"query": "{ hello }"}, {"query": SLOW}]
        async with session.post(wire.url, json=batch) as response:
            assert await response.json() == [
                {"errors": [ERROR]},
                {"data": {"hello": "hello world"}},
                {"errors": [ERROR]},
            ]
    assert wire.probe.cancelled == 2


async def test_all_fields_of_an_operation_are_stopped(wire: Wire) -> None:
    async with aiohttp.ClientSession() as session:
        query = "{ slow again: slow thing { slow thing { slow } } }"
        async with session.post(wire.url, json={"query": query}) as response:
            assert await response.json() == {"errors": [ERROR]}
    assert wire.probe.cancelled == 4


STREAMED: dict[str, tuple[str, Json]] = {
    "a query": (SLOW, {"errors": [ERROR]}),
    "a source that is being made": (LATE, {"errors": [ERROR]}),
}


@pytest.mark.parametrize("name", STREAMED)
async def test_a_stream_of_events_tells_and_completes(wire: Wire, name: str) -> None:
    query, told = STREAMED[name]
    async with asking(wire, query) as exchange:
        said = json.dumps(told, separators=(",", ":"))
        assert await exchange.rest() == (
            f":\n\nevent: next\ndata: {said}\n\nevent: complete\ndata: \n\n".encode()
        )


@pytest.mark.parametrize("name", STREAMED)
async def test_one_stream_for_many_tells_and_completes(wire: Wire, name: str) -> None:
    query, told = STREAMED[name]
    client = ByOneStream(wire.address)
    await client.begin(query)
    frames = [await client.event() for _ in range(2)]
    assert frames == [
        ("next", {"id": "1", "payload": told}),
        ("complete", {"id": "1"}),
    ]
    await client.gone()


async def test_parts_tell_at_the_top_level(wire: Wire) -> None:
    headers = {"Accept": "multipart/mixed;subscriptionSpec=1.0"}
    async with asking(wire, LATE, headers=headers) as exchange:
        said = json.dumps({"payload": None, "errors": [ERROR]}, separators=(",", ":"))
        assert await exchange.rest() == (
            "\r\n--graphql\r\ncontent-type: application/json\r\n\r\n"
            f"{said}\r\n--graphql--\r\n".encode()
        )


@pytest.mark.parametrize("query", [SLOW, LATE])
async def test_a_socket_tells_and_lives_on(wire: Wire, query: str) -> None:
    async with talking(wire.socket_url) as talk:
        await talk.subscribe("1", query)
        assert await talk.hear() == {"type": "error", "id": "1", "payload": [ERROR]}
        await talk.subscribe("1", "{ hello }")
        assert (await talk.hear())["payload"] == {"data": {"hello": "hello world"}}


async def test_an_event_that_takes_too_long_ends_its_stream(wire: Wire) -> None:
    """Going on without it would be a gap that nobody sees: the client is told to come back."""
    async with talking(wire.socket_url) as talk, asking(wire, EVENT) as exchange:
        await exchange.expect(b":\n\n")
        await until(lambda: wire.probe.live == 1)
        wire.probe.gate.release()
        said = json.dumps(STOPPED_EVENT, separators=(",", ":"))
        assert await exchange.rest() == (
            f"event: next\ndata: {said}\n\nevent: complete\ndata: \n\n".encode()
        )
        await until(lambda: wire.probe.live == 0)

        await talk.subscribe("1", EVENT)
        wire.probe.gate.release()
        told = {"type": "error", "id": "1", "payload": STOPPED_EVENT["errors"]}
        assert await talk.hear() == told
    assert wire.probe.cancelled == 2


async def test_parts_of_events_that_take_too_long(wire: Wire) -> None:
    headers = {"Accept": "multipart/mixed;subscriptionSpec=1.0"}
    async with asking(wire, EVENT, headers=headers) as exchange:
        await exchange.expect(b"\r\n--graphql")
        wire.probe.gate.release()
        said = json.dumps({"payload": None, **STOPPED_EVENT}, separators=(",", ":"))
        assert await exchange.rest() == (
            f"\r\ncontent-type: application/json\r\n\r\n{said}\r\n--graphql--\r\n".encode()
        )
    assert wire.probe.cancelled == 1


async def test_waiting_for_an_event_is_not_limited(wire: Wire) -> None:
    async with asking(wire, "subscription { gated { number } }", headers=EVENTS) as exchange:
        await exchange.expect(b":\n\n")
        # The silence is the scenario: twice as long as any operation may take.
        await asyncio.sleep(2 * SECONDS)
        wire.probe.gate.release()
        await exchange.expect(b'event: next\ndata: {"data":{"gated":{"number":0}}}\n\n')
