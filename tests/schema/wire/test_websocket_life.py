"""The life of a socket: who is let in, how many operations it carries, what it leaves behind."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
import websockets

from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.e2e.callers import Json, dialled
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import (
    Talk,
    complete,
    error,
    figure,
    next_,
    talking,
    until,
)

SILENT = "subscription { silent }"


@pytest_asyncio.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    """One server for what leaves no trace in it."""
    async with wired() as served:
        yield served


async def ask(talk: Talk, id: str, query: str, **data: Any) -> None:
    """An operation with one result, which must be this one."""
    await talk.subscribe(id, query)
    assert await talk.hear() == next_(id, **data)
    assert await talk.hear() == complete(id)


def open_sockets(wire: Wire) -> float:
    return figure(wire, "connections", transport="websocket")


async def refused(wire: Wire, headers: Mapping[str, str] = {}) -> tuple[int, Json, str | None]:
    """How a handshake is refused: status, the error's code, and when to try again."""
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with dialled(wire.socket_url, headers):
            pass
    response = caught.value.response
    body = json.loads(response.body or b"")
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    (only,) = body["errors"]
    return response.status_code, only["extensions"]["code"], response.headers.get("retry-after")


# The handshake.


@pytest.mark.parametrize(
    "offered",
    [None, ["graphql-ws"], ["unknown"], ["GRAPHQL-TRANSPORT-WS"]],
    ids=["none", "the legacy one", "an unknown one", "in capitals"],
)
async def test_another_subprotocol_is_closed(wire: Wire, offered: list[str] | None) -> None:
    """Rule T39."""
    async with talking(wire.socket_url, init=False, subprotocols=offered) as talk:
        assert talk.connection.subprotocol is None
        assert await talk.ended() == (4406, "Subprotocol not acceptable: graphql-transport-ws")


async def test_the_subprotocol_is_found_among_several(wire: Wire) -> None:
    offered = ["graphql-ws", "graphql-transport-ws", "other"]
    async with talking(wire.socket_url, subprotocols=offered) as talk:
        assert talk.connection.subprotocol == "graphql-transport-ws"


FOREIGN = "https://foreign.example"


@pytest.mark.parametrize(
    ("allowed", "origin"),
    [
        ((), None),
        ((), "same"),
        (("https://friend.example",), "https://friend.example"),
        (("https://friend.example",), "same"),
        (("*",), FOREIGN),
        (("*",), "null"),
    ],
)
async def test_pages_of_known_origins_may_connect(
    allowed: tuple[str, ...], origin: str | None
) -> None:
    async with wired(settings=EndpointSettings(allowed_origins=allowed)) as wire:
        headers = {} if origin is None else {"Origin": origin.replace("same", wire.address)}
        async with talking(wire.socket_url, headers) as talk:
            await ask(talk, "1", "{ hello }", hello="hello world")


@pytest.mark.parametrize("origin", [FOREIGN, "null", "", "http://127.0.0.1:1", "friend.example"])
async def test_pages_of_other_origins_may_not(origin: str) -> None:
    settings = EndpointSettings(allowed_origins=("https://friend.example",))
    async with wired(settings=settings) as wire:
        expected = (403, "ORIGIN_NOT_ALLOWED", None)
        assert await refused(wire, {"Origin": origin}) == expected
        assert figure(wire, "refusals_total", code="ORIGIN_NOT_ALLOWED") == 1


async def test_a_server_that_stops_takes_no_more() -> None:
    async with wired() as wire, talking(wire.socket_url) as talk:
        async with talking(wire.socket_url, init=False) as uninitialised:
            wire.probe.is_stopping = True
            status, code, _ = await refused(wire)
            assert (status, code) == (503, "SERVER_STOPPING")
            await uninitialised.say({"type": "connection_init"})
            assert await uninitialised.ended() == (1013, "SERVER_STOPPING")
        await talk.subscribe("1", "{ hello }")
        said = "The server is stopping: try again soon."
        assert await talk.hear() == error("1", "SERVER_STOPPING", said)


async def test_a_server_carries_so_many_sockets() -> None:
    async with wired(Limits(connections=2)) as wire, talking(wire.socket_url):
        async with talking(wire.socket_url, init=False):
            assert await refused(wire) == (503, "CONNECTION_LIMIT", "5")
            assert open_sockets(wire) == 2
        await until(lambda: open_sockets(wire) == 1)
        async with talking(wire.socket_url) as talk:
            await ask(talk, "1", "{ hello }", hello="hello world")
        assert figure(wire, "refusals_total", code="CONNECTION_LIMIT") == 1


# Signing in.


async def test_a_socket_that_never_initialises_is_closed() -> None:
    settings = EndpointSettings(initialisation_seconds=0.05)
    async with wired(settings=settings) as wire, talking(wire.socket_url) as initialised:
        async with talking(wire.socket_url, init=False) as talk:
            await talk.say({"type": "ping"})
            assert await talk.hear() == {"type": "pong"}
            assert await talk.ended() == (4408, "Connection initialisation timeout")
        await initialised.nothing_more()


@pytest.mark.parametrize(
    ("headers", "payload", "name"),
    [
        ({"Authorization": "Bearer ada"}, None, "ada"),
        ({}, {"Authorization": "Bearer ada"}, "ada"),
        ({}, {"authorization": "Bearer ada"}, "ada"),
        # A browser may send what it knows of the last visit; the page knows better.
        ({"Authorization": "Bearer eve"}, {"AUTHORIZATION": "Bearer ada"}, "ada"),
        ({"Authorization": "Bearer ada", "X-Name": "caf\xe9"}, None, "ada"),
    ],
)
async def test_headers_or_the_payload_sign_in(
    headers: dict[str, str], payload: Json | None, name: str
) -> None:
    async with (
        wired(must_sign_in=True) as wire,
        talking(wire.socket_url, headers, init=payload) as talk,
    ):
        await ask(talk, "1", "{ caller }", caller=name)


@pytest.mark.parametrize("payload", [None, {}, {"token": "ada"}, {"authorization": ""}])
async def test_whoever_does_not_sign_in_is_not_let_in(payload: Json | None) -> None:
    """Rule T39. What is asked for right behind the init is not executed."""
    async with wired(must_sign_in=True) as wire:
        async with talking(wire.socket_url, init=False) as talk:
            await talk.say({"type": "connection_init", "payload": payload})
            await talk.subscribe("1", SILENT)
            assert await talk.ended() == (4403, "UNAUTHENTICATED")
        assert wire.probe.opened == 0


async def test_the_end_of_a_sign_in_closes_its_sockets() -> None:
    async with (
        wired() as wire,
        talking(wire.socket_url, init={"authorization": "Bearer ada"}) as ada,
        talking(wire.socket_url, init={"authorization": "Bearer eve"}) as eve,
    ):
        for talk in (ada, eve):
            await talk.subscribe("1", SILENT)
        await until(lambda: wire.probe.live == 2)
        wire.probe.signed_out["ada"].set()
        assert await ada.ended() == (4403, "UNAUTHENTICATED")
        assert (wire.probe.live, wire.probe.cleaned) == (1, 1)
        await eve.nothing_more()


# Operations.


async def test_a_socket_carries_a_hundred_operations() -> None:
    """Rule T40."""
    async with wired() as wire, talking(wire.socket_url) as talk:
        for number in range(100):
            await talk.subscribe(str(number), SILENT)
        await until(lambda: wire.probe.live == 100)
        refusal = "A socket carries at most 100 operations at once."
        await talk.subscribe("one more", "{ hello }")
        assert await talk.hear() == error("one more", "OPERATION_LIMIT", refusal)
        # One that is ended makes room at once, under its own id or another.
        await talk.stop("7")
        await ask(talk, "7", "{ hello }", hello="hello world")
        await talk.subscribe("again", SILENT)
        await talk.nothing_more()
        assert wire.probe.opened == 101
        await talk.subscribe("one more", "{ hello }")
        assert await talk.hear() == error("one more", "OPERATION_LIMIT", refusal)


async def test_operations_that_have_ended_do_not_count() -> None:
    """Rule T40."""
    limits = Limits(operations=1)
    async with wired(limits) as wire, talking(wire.socket_url) as talk:
        for number in range(500):
            await ask(talk, str(number), "{ hello }", hello="hello world")
        for number in range(100):
            await talk.subscribe(str(number), SILENT)
            await talk.stop(str(number))
        await ask(talk, "last", "subscription { count(to: 1) }", count=1)
        assert wire.probe.live == 0


async def test_an_operation_that_is_ended_says_nothing_more() -> None:
    async with wired() as wire, talking(wire.socket_url) as talk:
        await talk.subscribe("1", "subscription { gated { number } }")
        await talk.subscribe("2", "{ slow }")
        wire.probe.gate.release()
        assert await talk.hear() == next_("1", gated={"number": 0})
        await until(lambda: wire.probe.slow == 1)
        await talk.stop("1")
        await talk.stop("2")
        await talk.nothing_more()
        await until(lambda: wire.probe.cleaned == 1)
        assert (wire.probe.live, wire.probe.slow, wire.probe.cancelled) == (0, 0, 1)
        wire.probe.gate.release()
        await talk.nothing_more()
        assert figure(wire, "running_operations", kind="subscription") == 0
        assert (
            figure(wire, "operations_total", kind="subscription", outcome="cancelled"),
            figure(wire, "operations_total", kind="query", outcome="cancelled"),
        ) == (1, 1)


@pytest.mark.parametrize("leave", ["close", "abort"])
async def test_a_client_that_leaves_takes_its_operations_along(leave: str) -> None:
    """Rules T1, T2."""
    async with wired() as wire, talking(wire.socket_url) as talk:
        before = len(asyncio.all_tasks())
        for number in range(5):
            await talk.subscribe(f"silent {number}", SILENT)
            await talk.subscribe(f"slow {number}", "{ slow }")
        await until(lambda: (wire.probe.live, wire.probe.slow) == (5, 5))
        if leave == "close":
            await talk.connection.close()
        else:
            talk.connection.transport.abort()
        await until(lambda: open_sockets(wire) == 0)
        assert (wire.probe.live, wire.probe.cleaned) == (0, 5)
        assert (wire.probe.slow, wire.probe.cancelled) == (0, 5)
        await until(lambda: len(asyncio.all_tasks()) <= before)


@pytest.mark.parametrize("leave", ["complete", "close", "abort"])
async def test_a_source_that_is_being_opened_stays_closed(leave: str) -> None:
    """Rule T5."""
    async with wired() as wire, talking(wire.socket_url) as talk:
        await talk.subscribe("1", "subscription { late(seconds: 0.05) }")
        running = {"kind": "subscription"}
        await until(lambda: figure(wire, "running_operations", **running) == 1)
        match leave:
            case "complete":
                await talk.stop("1")
            case "close":
                await talk.connection.close()
            case "abort":
                talk.connection.transport.abort()
        await until(lambda: figure(wire, "running_operations", **running) == 0)
        # Another that is asked for now is open when the first would have been.
        async with talking(wire.socket_url) as later:
            await later.subscribe("1", "subscription { late(seconds: 0.05) }")
            await until(lambda: wire.probe.live == 1)
            assert wire.probe.opened == 1


async def test_operations_read_anew() -> None:
    """Rule T20. Neither events nor queries see what an earlier one has loaded."""
    async with wired() as wire, talking(wire.socket_url) as talk:
        await talk.subscribe("events", "subscription { gated { a: loaded b: loaded } }")
        for value in (1, 2, 3):
            await ask(talk, "change", f"mutation {{ set(value: {value}) }}", set=value)
            wire.probe.gate.release()
            assert await talk.hear() == next_("events", gated={"a": value, "b": value})
            await ask(talk, "query", "{ thing { loaded } }", thing={"loaded": value + 1})
        assert wire.probe.batches == [[0], [1]] * 3


async def test_each_operation_has_a_context_of_its_own() -> None:
    async with wired() as wire, talking(wire.socket_url) as talk:
        for number in (1, 2):
            await talk.subscribe("1", "{ broken }")
            (body,) = (await talk.hear())["payload"]["errors"]
            assert body["extensions"]["requestId"] == f"request-anybody-{number}"
            assert await talk.hear() == complete("1")


async def test_documents_may_be_named(wire: Wire) -> None:
    query = "{ named: hello }"
    digest = hashlib.sha256(query.encode()).hexdigest()
    extensions = {"persistedQuery": {"version": 1, "sha256Hash": digest}}
    by_hash = {"type": "subscribe", "id": "1", "payload": {"extensions": extensions}}
    by_id = {"type": "subscribe", "id": "1", "payload": {"documentId": f"sha256:{digest}"}}
    async with talking(wire.socket_url) as talk:
        await talk.say(by_hash)
        missing = error("1", "PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")
        assert await talk.hear() == missing
        for subscribe in (
            {**by_hash, "payload": {"query": query, "extensions": extensions}},
            by_hash,
            by_id,
        ):
            await talk.say(subscribe)
            assert await talk.hear() == next_("1", named="hello world")
            assert await talk.hear() == complete("1")


async def test_extensions_reach_the_operation(wire: Wire) -> None:
    async with talking(wire.socket_url) as talk:
        await talk.subscribe("1", '{ extension(name: "a") }', extensions={"a": "given"})
        assert await talk.hear() == next_("1", extension="given")
        assert await talk.hear() == complete("1")


# Frames and pings.


async def test_a_frame_may_have_so_many_bytes() -> None:
    async with wired(Limits(request_bytes=1_000)) as wire:
        for frame in (ping(1_001), [ping(1_001)[:600], ping(1_001)[600:]]):
            async with talking(wire.socket_url) as talk:
                await talk.say(ping(1_000))
                assert (await talk.hear())["type"] == "pong"
                await talk.connection.send(frame)
                code, _ = await talk.ended()
                assert code == 1009


def ping(size: int) -> str:
    """A message of so many bytes."""
    frame = '{"type":"ping","payload":{"x":"%s"}}'
    return frame % ("x" * (size - len(frame) + 2))


async def test_a_message_may_come_in_pieces(wire: Wire) -> None:
    async with talking(wire.socket_url) as talk:
        await talk.connection.send(['{"type": "pi', 'ng", "payload": {"a"', ": 1}}"])
        assert await talk.hear() == {"type": "pong", "payload": {"a": 1}}


async def test_the_server_pings() -> None:
    """Rule T4."""
    settings = EndpointSettings(heartbeat_seconds=0.15)
    async with wired(settings=settings) as wire, talking(wire.socket_url) as talk:
        await talk.subscribe("1", SILENT)
        for _ in range(2):
            assert await talk.hear() == {"type": "ping"}
            await talk.say({"type": "pong"})
        assert await talk.hear() == {"type": "ping"}
        # Any message shows that the client is there.
        await talk.stop("unknown")
        assert await talk.hear() == {"type": "ping"}
        assert wire.probe.live == 1


async def test_a_client_that_answers_no_ping_is_closed() -> None:
    """Rule T4. The library below answers pings of the WebSocket itself: those do not count."""
    async with wired(settings=EndpointSettings(heartbeat_seconds=0.05)) as wire:
        async with talking(wire.socket_url) as talk:
            await talk.subscribe("1", SILENT)
            assert await talk.hear() == {"type": "ping"}
            assert await talk.ended() == (4499, "No pong in time")
        assert (wire.probe.live, wire.probe.cleaned) == (0, 1)
