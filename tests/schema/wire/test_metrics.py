"""What the wire counts: each way in which an operation ends, for real."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import websockets
from prometheus_client import generate_latest

from schema.wire.limits import Limits
from schema.wire.metrics import OUTCOMES, Metrics
from tests.e2e.callers import PREFLIGHT, Socket, dialled
from tests.figures import Figures, changes, read_figures
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import until

STREAM = {"Accept": "text/event-stream"}
PARTS = {"Accept": "multipart/mixed;subscriptionSpec=1.0, application/json"}
OPERATIONS = "mirrorgraph_operations_total"
REFUSALS = "mirrorgraph_refusals_total"
RUNNING = "mirrorgraph_running_operations"
CONNECTIONS = "mirrorgraph_connections"
SECONDS = "mirrorgraph_operation_seconds_count"


@pytest.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    limits = Limits(seconds=0.3, operations=2, connections=2, batch=3, depth=5)
    async with wired(limits, must_sign_in=True) as wire:
        yield wire


@pytest.fixture(scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer ada"}) as session:
        yield session


def now(wire: Wire) -> Figures:
    return read_figures(generate_latest(wire.metrics.registry).decode())


def is_quiet(wire: Wire) -> bool:
    """Whether nothing runs and no stream is open, from an earlier test or this one."""
    figures = now(wire)
    return not any(figures[name] for name in figures if name.startswith((RUNNING, CONNECTIONS)))


@contextlib.asynccontextmanager
async def counted(wire: Wire, *prefixes: str) -> AsyncIterator[Figures]:
    """Filled when the block ends: by how much these series have changed."""
    await until(lambda: is_quiet(wire))
    before = now(wire)
    changed: Figures = {}
    yield changed
    await until(lambda: is_quiet(wire))
    changed |= changes(before, now(wire), *prefixes)


async def post(wire: Wire, session: aiohttp.ClientSession, asked: Any, **given: Any) -> str:
    body = {"query": asked} if isinstance(asked, str) else asked
    async with session.post(wire.url, json=body, **given) as response:
        return await response.text()


@contextlib.asynccontextmanager
async def signed_in(wire: Wire) -> AsyncIterator[Socket]:
    async with dialled(wire.socket_url) as connection:
        client = Socket(connection)
        await client.send({"type": "connection_init", "payload": {"authorization": "Bearer bob"}})
        assert await client.receive() == {"type": "connection_ack"}
        yield client


KINDS = ("query", "mutation", "subscription")
ENDINGS = [
    ("query { hello }", "ok"),
    ("query { hello broken }", "partial"),
    ("query { brokenRoot }", "failed"),
    ("query Typed($id: Int!) { listOf(ids: [$id]) { number } }", "refused"),
    ("query { slow }", "timeout"),
    ("mutation { set(value: 0) }", "ok"),
    ("subscription { count(to: 2) }", "ok"),
    ("subscription { things(to: 2) { number broken } }", "partial"),
    ("subscription { refusing(after: 1) }", "failed"),
    ("subscription { breaking(after: 1) }", "failed"),
    ("subscription Typed($to: Int!) { count(to: $to) }", "refused"),
    ("subscription { late(seconds: 60) }", "timeout"),
]


@pytest.mark.parametrize(("query", "outcome"), ENDINGS)
async def test_an_operation_counts_once_by_its_kind_and_outcome(
    wire: Wire, session: aiohttp.ClientSession, query: str, outcome: str
) -> None:
    kind = query.partition(" ")[0]
    async with counted(wire, OPERATIONS, RUNNING, CONNECTIONS) as changed:
        await post(wire, session, query, headers=STREAM if kind == "subscription" else {})
    assert changed == {f"{OPERATIONS}{{kind={kind},outcome={outcome}}}": 1}


@pytest.mark.parametrize(
    ("query", "headers", "transport"),
    [
        ("query { slow }", {}, None),
        ("subscription { silent }", STREAM, "sse"),
        ("subscription { silent }", PARTS, "multipart"),
        ("subscription { silent }", None, "websocket"),
    ],
)
async def test_what_runs_is_shown_while_it_runs_and_counts_as_cancelled_when_its_client_leaves(
    wire: Wire,
    session: aiohttp.ClientSession,
    query: str,
    headers: dict[str, str] | None,
    transport: str | None,
) -> None:
    kind = query.partition(" ")[0]

    async def ask() -> None:
        if headers is not None:
            await post(wire, session, query, headers=headers)
            return
        async with signed_in(wire) as client, client.listening():
            async for _ in await client.start(query):
                pass

    async with counted(wire, OPERATIONS, RUNNING, CONNECTIONS) as changed:
        before = now(wire)
        asking = asyncio.create_task(ask())
        await until(lambda: now(wire)[f"{RUNNING}{{kind={kind}}}"] == 1)
        running = changes(before, now(wire), RUNNING, CONNECTIONS)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert running == {
        f"{RUNNING}{{kind={kind}}}": 1,
        **({f"{CONNECTIONS}{{transport={transport}}}": 1} if transport else {}),
    }
    assert changed == {f"{OPERATIONS}{{kind={kind},outcome=cancelled}}": 1}


async def test_durations_are_those_of_operations_and_of_each_event(
    wire: Wire, session: aiohttp.ClientSession
) -> None:
    async with counted(wire, SECONDS, "mirrorgraph_operation_seconds_sum") as changed:
        await post(wire, session, "query { hello }")
        await post(wire, session, "query { slow }")
        await post(wire, session, "subscription { count(to: 3) }", headers=STREAM)
    # What ran out of its time took at least that long.
    assert changed.pop("mirrorgraph_operation_seconds_sum{kind=query}") >= 0.3
    assert changed.pop("mirrorgraph_operation_seconds_sum{kind=subscription}") > 0
    assert changed == {f"{SECONDS}{{kind=query}}": 2, f"{SECONDS}{{kind=subscription}}": 3}


REFUSED: list[tuple[Any, dict[str, str], str]] = [
    ("{", {}, "GRAPHQL_PARSE_FAILED"),
    ("{ unknown }", {}, "GRAPHQL_VALIDATION_FAILED"),
    ("{ thing { thing { thing { thing { thing { number } } } } } }", {}, "DEPTH_LIMIT"),
    ("query($id: Int!) { listOf(ids: [$id]) { number } }", {}, "BAD_USER_INPUT"),
    ("{ things(first: 201) { nodes { number } } }", {}, "PAGE_LIMIT"),
    ("{ slow }", {}, "OPERATION_TIMEOUT"),
    ("subscription { count(to: 1) }", {}, "STREAM_REQUIRED"),
    ({"query": 1}, {}, "BAD_REQUEST"),
    ([{"query": "{ hello }"}] * 4, {}, "BATCH_LIMIT"),
    ([{"query": "{ hello }"}, {"query": "{ unknown }"}], {}, "GRAPHQL_VALIDATION_FAILED"),
    ([{"query": "subscription { count(to: 1) }"}], {}, "STREAM_REQUIRED"),
    ({"documentId": "sha256:0"}, {}, "DOCUMENT_NOT_FOUND"),
    ("{ hello }", {"Accept": "text/html"}, "NOT_ACCEPTABLE"),
    ("{ hello }", {"Authorization": ""}, "UNAUTHENTICATED"),
    ("{ unknown }", STREAM, "GRAPHQL_VALIDATION_FAILED"),
    ("subscription($to: Int!) { count(to: $to) }", STREAM, "BAD_USER_INPUT"),
]


@pytest.mark.parametrize(("asked", "headers", "code"), REFUSED)
async def test_a_refusal_counts_once_by_its_code(
    wire: Wire, session: aiohttp.ClientSession, asked: Any, headers: dict[str, str], code: str
) -> None:
    async with counted(wire, REFUSALS) as changed:
        assert code in await post(wire, session, asked, headers=headers)
    assert changed == {f"{REFUSALS}{{code={code}}}": 1}


async def test_refusals_on_sockets_count_as_well(
    wire: Wire, session: aiohttp.ClientSession
) -> None:
    async with counted(wire, REFUSALS) as changed:
        async with dialled(wire.socket_url) as connection:
            await connection.send(json.dumps({"type": "connection_init"}))
            with pytest.raises(websockets.ConnectionClosed):
                await connection.recv()
        with pytest.raises(websockets.InvalidStatus):
            async with dialled(wire.socket_url, {"Origin": "https://elsewhere.example"}):
                pass
        async with signed_in(wire) as client, signed_in(wire):
            with pytest.raises(websockets.InvalidStatus):
                async with signed_in(wire):
                    pass
            # Both places are taken, so that an event stream finds none as well.
            assert "CONNECTION_LIMIT" in await post(wire, session, "{ hello }", headers=STREAM)
            for name in ("1", "2", "3"):
                payload = {"query": "subscription { silent }"}
                await client.send({"type": "subscribe", "id": name, "payload": payload})
            assert (await client.receive())["id"] == "3"
            await client.send({"type": "complete", "id": "1"})
            await until(lambda: wire.probe.live == 1)
            await client.send({"type": "subscribe", "id": "4", "payload": {"query": "{"}})
            assert (await client.receive())["type"] == "error"
    assert changed == {
        f"{REFUSALS}{{code={code}}}": by
        for code, by in {
            "UNAUTHENTICATED": 1,
            "ORIGIN_NOT_ALLOWED": 1,
            "CONNECTION_LIMIT": 2,
            "OPERATION_LIMIT": 1,
            "GRAPHQL_PARSE_FAILED": 1,
        }.items()
    }


async def test_a_client_cannot_make_labels(wire: Wire, session: aiohttp.ClientSession) -> None:
    known = {"query { hello }", "{ unknown }"}
    for query in known:
        await post(wire, session, query)
    before = now(wire)
    chosen = "Chosen_by_a_client"
    params = {"query": f"query {chosen} {{ hello }}", "operationName": chosen}
    async with session.get(wire.url, params=params, headers=PREFLIGHT) as response:
        assert response.status == 200
    await post(wire, session, {"query": f"{{ {chosen} }}", "extensions": {"code": chosen}})
    await post(wire, session, {"query": "{ hello }", "operationName": chosen})
    await post(wire, session, {"documentId": chosen})
    after = now(wire)
    assert not [name for name in after if chosen in name]
    assert set(after) - set(before) <= {
        f"{REFUSALS}{{code={code}}}"
        for code in ("OPERATION_RESOLUTION_FAILURE", "DOCUMENT_NOT_FOUND")
    }


def test_a_fresh_server_shows_every_kind_and_outcome_as_zero() -> None:
    fresh = read_figures(generate_latest(Metrics().registry).decode())
    counts = {name: value for name, value in fresh.items() if name.startswith(OPERATIONS)}
    assert counts == {
        f"{OPERATIONS}{{kind={kind},outcome={outcome}}}": 0
        for kind in KINDS
        for outcome in OUTCOMES
    }
    assert not any(fresh.values())
