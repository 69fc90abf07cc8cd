"""What went wrong in us is logged whole, and told over every transport as no more than an id."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.e2e.callers import Json
from tests.schema.wire.leaving import ByOneStream
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import EVENTS, asking, talking

MARKER = "MARKER of what must never leave the server"
MESSAGE = "Something went wrong on the server. Say this request id when you report it."


@pytest.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with wired() as wire:
        yield wire


@dataclass(frozen=True)
class Case:
    """What is asked for, and the responses: MASK stands for an error with its path."""

    query: str
    responses: list[Json]
    # What the log has of the exception.
    logged: str = f"RuntimeError({MARKER!r})"


def mask(*path: str | int) -> Json:
    """An error that was masked; the request id is filled in."""
    return {"message": MESSAGE, **({"path": list(path)} if path else {})}


QUERIES = {
    "a resolver": Case("{ broken }", [{"data": {"broken": None}, "errors": [mask("broken")]}]),
    "a resolver below which nothing is left": Case(
        "{ brokenRoot }", [{"data": None, "errors": [mask("brokenRoot")]}]
    ),
    "a loader": Case(
        "{ thing { badlyLoaded } }",
        [{"data": {"thing": {"badlyLoaded": None}}, "errors": [mask("thing", "badlyLoaded")]}],
    ),
    "a refusal that is not ours": Case(
        "{ forbidden }",
        [{"data": {"forbidden": None}, "errors": [mask("forbidden")]}],
        f"PermissionError({MARKER!r})",
    ),
    "something that was cancelled at nobody's wish": Case(
        "{ cancelled }", [{"errors": [mask()]}], f"CancelledError({MARKER!r})"
    ),
}
EVENT: Json = {"data": {"gated": {"broken": None}}, "errors": [mask("gated", "broken")]}
SUBSCRIPTIONS = {
    "what makes a source": Case("subscription { unmade }", [{"errors": [mask("unmade")]}]),
    "a source before its first event": Case(
        "subscription { breaking(after: 0) }", [{"errors": [mask()]}]
    ),
    "a source after an event": Case(
        "subscription { breaking(after: 1) }",
        [{"data": {"breaking": 0}}, {"errors": [mask()]}],
    ),
    "a resolver of an event": Case("subscription { gated { broken } }", [EVENT]),
    "a loader of an event": Case(
        "subscription { gated { badlyLoaded } }",
        [
            {
                "data": {"gated": {"badlyLoaded": None}},
                "errors": [mask("gated", "badlyLoaded")],
            }
        ],
    ),
}


@dataclass
class Told:
    """Everything that came over a line, what it means, and the ids that its headers name."""

    raw: bytes
    responses: list[Json]
    request_id: str | None = None


Ask = Callable[[Wire, str, int], Awaitable[Told]]


async def by_post(wire: Wire, query: str, count: int) -> Told:
    async with asking(wire, query, headers={"Accept": "application/json"}) as exchange:
        raw = await exchange.rest()
        told = Told(raw, [json.loads(raw)], exchange.headers["x-request-id"])
        told.raw += json.dumps(exchange.headers).encode()
        return told


async def by_batch(wire: Wire, query: str, count: int) -> Told:
    batch = [{"query": query}, {"query": "{ hello }"}]
    async with (
        aiohttp.ClientSession() as session,
        session.post(wire.url, json=batch) as response,
    ):
        raw = await response.read()
        first, second = json.loads(raw)
        assert second == {"data": {"hello": "hello world"}}
        request_id = response.headers["x-request-id"].split(", ")[0]
        return Told(raw, [first], request_id)


async def by_events(wire: Wire, query: str, count: int) -> Told:
    told = Told(b"", [])
    async with asking(wire, query, headers=EVENTS) as exchange:
        while len(told.responses) < count:
            told.raw += (piece := await exchange.piece())
            if piece.startswith(b"event: next"):
                event, _, _ = piece.partition(b"\n\n")
                told.responses.append(json.loads(event.partition(b"data: ")[2]))
        told.request_id = exchange.headers.get("x-request-id")
    return told


async def by_parts(wire: Wire, query: str, count: int) -> Told:
    told = Told(b"", [])
    headers = {"Accept": "multipart/mixed;subscriptionSpec=1.0"}
    async with asking(wire, query, headers=headers) as exchange:
        while len(told.responses) < count:
            told.raw += (piece := await exchange.piece())
            if b"{" in piece:
                part = json.loads(piece[piece.index(b"{") : piece.rindex(b"}") + 1])
                told.responses.append(part.pop("payload") or part)
        told.request_id = exchange.headers.get("x-request-id")
    return told


async def by_one_stream(wire: Wire, query: str, count: int) -> Told:
    told = Told(b"", [])
    client = ByOneStream(wire.address)
    await client.begin(query)
    while len(told.responses) < count:
        name, data = await client.event()
        told.raw += json.dumps(data).encode()
        assert (name, data["id"]) == ("next", "1")
        told.responses.append(data["payload"])
    await client.gone()
    return told


async def by_socket(wire: Wire, query: str, count: int) -> Told:
    told = Told(b"", [])
    async with talking(wire.socket_url) as talk:
        await talk.subscribe("1", query)
        while len(told.responses) < count:
            message = await talk.hear()
            told.raw += json.dumps(message).encode()
            payload = message["payload"]
            told.responses.append(payload if message["type"] == "next" else {"errors": payload})
    return told


SINGLE: list[Ask] = [by_post, by_batch, by_events, by_one_stream, by_socket]
STREAMS: list[Ask] = [by_events, by_parts, by_one_stream, by_socket]


def named(value: object) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize("ask", SINGLE, ids=named)
@pytest.mark.parametrize("name", QUERIES)
async def test_the_cause_of_a_failed_query_is_logged_and_not_told(
    wire: Wire, name: str, ask: Ask
) -> None:
    """Rule T31."""
    await _check(wire, QUERIES[name], ask)


@pytest.mark.parametrize("ask", STREAMS, ids=named)
@pytest.mark.parametrize("name", SUBSCRIPTIONS)
async def test_the_cause_of_a_failed_subscription_is_logged_and_not_told(
    wire: Wire, name: str, ask: Ask
) -> None:
    """Rule T31."""
    wire.probe.gate = asyncio.Semaphore(1)
    await _check(wire, SUBSCRIPTIONS[name], ask)


async def _check(wire: Wire, case: Case, ask: Ask) -> None:
    with capture_logs() as logs:
        told = await ask(wire, case.query, len(case.responses))
    assert b"MARKER" not in told.raw
    (entry,) = [each for each in logs if each["log_level"] == "error"]
    assert entry["event"] == "an operation failed"
    assert repr(entry["exc_info"]) == case.logged
    request_ids = set()
    for response in told.responses:
        for error in response.get("errors", ()):
            error.pop("locations", None)
            extensions = error.pop("extensions")
            assert extensions.pop("code") == "INTERNAL"
            request_ids.add(extensions.pop("requestId"))
            assert extensions == {}
    assert told.responses == case.responses
    assert request_ids == {entry["request_id"]}
    assert told.request_id in {None, entry["request_id"]}


async def test_an_error_that_the_client_can_mend_is_told_and_not_logged(wire: Wire) -> None:
    with capture_logs() as logs:
        told = await by_post(wire, "{ refused }", 1)
    (error,) = told.responses[0]["errors"]
    assert (error["message"], error["extensions"]["code"]) == ("Mend this.", "MEND_THIS")
    assert [each for each in logs if each["log_level"] == "error"] == []
