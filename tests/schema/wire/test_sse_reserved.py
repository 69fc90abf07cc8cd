"""GraphQL over server-sent events: one stream, reserved and then opened, for many operations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from schema.wire import sse
from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import EVENTS, TOKEN, asking, begin, opening, reserve, until
from tests.schema.wire.test_sse import (
    ADA,
    ANSWERS,
    COMMENT,
    COUNT,
    ERRORS,
    EVE,
    SIGNED_OUT,
    SILENT,
    code,
    next_,
    streams,
)


@pytest_asyncio.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    """One server for what leaves no trace in it."""
    async with wired() as served:
        yield served


def result(id: str, payload: bytes) -> bytes:
    return next_(b'{"id":"%b","payload":%b}' % (id.encode(), payload))


def completed(id: str) -> bytes:
    return b'event: complete\ndata: {"id":"%b"}\n\n' % id.encode()


@pytest.mark.parametrize("way", ["header", "URL"])
async def test_one_stream_carries_every_operation(wire: Wire, way: str) -> None:
    token = await reserve(wire)
    path, headers = (f"?token={token}", {}) if way == "URL" else ("", {TOKEN: token})
    async with asking(wire, method="GET", path=path, headers={**EVENTS, **headers}) as stream:
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        await stream.expect(COMMENT)
        for name, (query, results) in ANSWERS.items():
            extensions = {"operationId": name}
            async with asking(
                wire, query, path=path, headers=headers, extensions=extensions
            ) as accepted:
                assert (accepted.status, await accepted.rest()) == (202, b"")
            await stream.expect(b"".join(result(name, each) for each in results) + completed(name))


async def test_operations_of_one_stream_run_side_by_side() -> None:
    async with wired() as wire:
        token = await reserve(wire)
        async with opening(wire, token) as stream:
            await stream.expect(COMMENT)
            await begin(wire, token, "gated", "subscription { gated { number } }")
            await begin(wire, token, "count", COUNT)
            await stream.expect(result("count", b'{"data":{"count":1}}'))
            await stream.expect(result("count", b'{"data":{"count":2}}') + completed("count"))
            wire.probe.gate.release()
            await stream.expect(result("gated", b'{"data":{"gated":{"number":0}}}'))


async def test_what_is_asked_before_the_stream_opens_waits_for_it(wire: Wire) -> None:
    token = await reserve(wire)
    await begin(wire, token, "1", "{ hello }")
    async with opening(wire, token) as stream:
        expected = result("1", b'{"data":{"hello":"hello world"}}') + completed("1")
        await stream.expect(COMMENT + expected)


async def test_a_stream_is_opened_once(wire: Wire) -> None:
    token = await reserve(wire)
    async with opening(wire, token) as stream:
        await stream.expect(COMMENT)
        async with opening(wire, token) as second:
            assert await code(second) == (409, "STREAM_EXISTS")
        await begin(wire, token, "1", COUNT)
        await stream.expect(result("1", b'{"data":{"count":1}}'))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"query": "{ hello"}, (400, "GRAPHQL_PARSE_FAILED")),
        ({"query": "{ unknown }"}, (422, "GRAPHQL_VALIDATION_FAILED")),
        (
            {"query": "query A { hello }", "operationName": "B"},
            (422, "OPERATION_RESOLUTION_FAILURE"),
        ),
        ({"query": "{ hello }", "extensions": {}}, (422, "BAD_REQUEST")),
        ({"query": "{ hello }", "extensions": {"operationId": ""}}, (422, "BAD_REQUEST")),
        ({"query": "{ hello }", "extensions": {"operationId": 1}}, (422, "BAD_REQUEST")),
        ({"query": "{ hello }", "variables": []}, (422, "BAD_REQUEST")),
    ],
)
async def test_a_request_with_mistakes_is_answered_itself(
    wire: Wire, asked: dict[str, Any], expected: tuple[int, str]
) -> None:
    token = await reserve(wire)
    asked = {"extensions": {"operationId": "1"}, **asked}
    async with opening(wire, token) as stream:
        await stream.expect(COMMENT)
        async with asking(wire, headers={TOKEN: token}, **asked) as exchange:
            assert await code(exchange) == expected
        # The id was not taken by it.
        await begin(wire, token, "1", "subscription { count(to: 0) }")
        await stream.expect(completed("1"))


async def test_a_variable_of_the_wrong_type_is_told_on_the_stream(wire: Wire) -> None:
    token = await reserve(wire)
    asked, errors = ERRORS["a variable of the wrong type"]
    async with opening(wire, token) as stream:
        await stream.expect(COMMENT)
        async with asking(
            wire, headers={TOKEN: token}, extensions={"operationId": "1"}, **asked
        ) as exchange:
            assert exchange.status == 202
        await stream.expect(b"event: next\ndata: ")
        told = b""
        while not told.endswith(b"\n"):
            told += await stream.read(1)
        assert json.loads(told) == {"id": "1", "payload": {"errors": errors}}
        await stream.expect(b"\n" + completed("1"))


async def test_an_operation_is_ended_by_its_id() -> None:
    async with wired() as wire:
        token = await reserve(wire)
        async with opening(wire, token) as stream:
            await stream.expect(COMMENT)
            await begin(wire, token, "1", SILENT)
            await until(lambda: wire.probe.live == 1)
            for named in ("1", "1", "unknown"):
                path = f"?operationId={named}"
                async with asking(
                    wire, method="DELETE", path=path, headers={TOKEN: token}
                ) as deleted:
                    assert (deleted.status, await deleted.rest()) == (200, b"")
                assert (wire.probe.live, wire.probe.cleaned) == (0, 1)
            # Nothing was said of it, and the id is free.
            await begin(wire, token, "1", "{ hello }")
            await stream.expect(result("1", b'{"data":{"hello":"hello world"}}') + completed("1"))


async def test_an_id_is_in_use_until_its_operation_ends(wire: Wire) -> None:
    token = await reserve(wire)
    async with opening(wire, token) as stream:
        await stream.expect(COMMENT)
        await begin(wire, token, "1", SILENT)
        async with asking(
            wire, "{ hello }", headers={TOKEN: token}, extensions={"operationId": "1"}
        ) as exchange:
            assert await code(exchange) == (409, "OPERATION_EXISTS")


async def test_a_stream_carries_so_many_operations() -> None:
    """Rule T40."""
    async with wired(Limits(operations=2)) as wire:
        token = await reserve(wire)
        async with opening(wire, token) as stream:
            await stream.expect(COMMENT)
            await begin(wire, token, "1", SILENT)
            for number in range(50):
                await begin(wire, token, str(number + 2), "subscription { count(to: 0) }")
                await stream.expect(completed(str(number + 2)))
            await begin(wire, token, "2", SILENT)
            async with asking(
                wire, "{ hello }", headers={TOKEN: token}, extensions={"operationId": "3"}
            ) as exchange:
                assert await code(exchange) == (429, "OPERATION_LIMIT")


async def requests(
    wire: Wire, token: str, headers: Mapping[str, str] = {}
) -> list[tuple[int, str]]:
    """How everything is answered that a caller can ask of a stream, but for opening it."""
    answers = []
    given = {TOKEN: token, **headers}
    extensions = {"operationId": "1"}
    async with asking(wire, "{ hello }", headers=given, extensions=extensions) as exchange:
        answers.append(await code(exchange))
    async with asking(wire, method="DELETE", path="?operationId=1", headers=given) as exchange:
        answers.append(await code(exchange))
    return answers


NOT_FOUND = (404, "STREAM_NOT_FOUND")


async def test_a_token_that_nobody_has_reserved(wire: Wire) -> None:
    assert await requests(wire, "unknown") == [NOT_FOUND] * 2
    async with opening(wire, "unknown") as exchange:
        assert await code(exchange) == NOT_FOUND
    async with asking(wire, method="DELETE", path="?operationId=1", headers={}) as exchange:
        assert await code(exchange) == NOT_FOUND


async def test_a_stream_belongs_to_who_has_reserved_it() -> None:
    async with wired(must_sign_in=True) as wire:
        token = await reserve(wire, ADA)
        assert await requests(wire, token, EVE) == [NOT_FOUND] * 2
        assert await requests(wire, token) == [(401, "UNAUTHENTICATED")] * 2
        async with asking(wire, method="PUT", headers={}) as exchange:
            assert await code(exchange) == (401, "UNAUTHENTICATED")
        async with opening(wire, token) as stream:
            await stream.expect(COMMENT)
            await begin(wire, token, "1", "{ caller }", ADA)
            await stream.expect(result("1", b'{"data":{"caller":"ada"}}') + completed("1"))


async def test_an_operation_to_end_must_be_named(wire: Wire) -> None:
    token = await reserve(wire)
    for path in ("", "?operationId="):
        async with asking(wire, method="DELETE", path=path, headers={TOKEN: token}) as exchange:
            assert await code(exchange) == (422, "BAD_REQUEST")


async def test_a_reservation_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "RESERVATION_SECONDS", 0.3)
    async with wired() as wire:
        kept, lost = await reserve(wire), await reserve(wire)
        async with opening(wire, kept) as stream:
            await stream.expect(COMMENT)
            await begin(wire, lost, "1", SILENT)
            reservations = wire.endpoint.reservations
            await until(lambda: len(reservations) == 1)
            assert await requests(wire, lost) == [NOT_FOUND] * 2
            assert wire.probe.opened == 0
            # A stream that was opened in time stays.
            await begin(wire, kept, "1", "{ hello }")
            await stream.expect(result("1", b'{"data":{"hello":"hello world"}}') + completed("1"))


async def test_so_many_streams_can_be_reserved() -> None:
    async with wired(Limits(connections=2)) as wire:
        await reserve(wire)
        token = await reserve(wire)
        async with asking(wire, method="PUT", headers={}) as exchange:
            assert await code(exchange) == (503, "CONNECTION_LIMIT")
        async with opening(wire, token) as stream:
            await stream.expect(COMMENT)
        await until(lambda: streams(wire) == 0)
        await reserve(wire)


async def test_the_end_of_a_stream_ends_its_operations() -> None:
    """Rules T1, T2."""
    async with wired() as wire:
        token = await reserve(wire)
        async with opening(wire, token) as stream:
            await stream.expect(COMMENT)
            for number in range(5):
                await begin(wire, token, f"silent {number}", SILENT)
                await begin(wire, token, f"slow {number}", "{ slow }")
            await until(lambda: (wire.probe.live, wire.probe.slow) == (5, 5))
        await until(lambda: streams(wire) == 0)
        assert (wire.probe.live, wire.probe.cleaned) == (0, 5)
        assert (wire.probe.slow, wire.probe.cancelled) == (0, 5)
        assert await requests(wire, token) == [NOT_FOUND] * 2


async def test_the_end_of_a_sign_in_ends_its_one_stream() -> None:
    async with wired() as wire:
        token = await reserve(wire, ADA)
        async with opening(wire, token) as stream:
            await stream.expect(COMMENT)
            await begin(wire, token, "1", SILENT, ADA)
            await begin(wire, token, "2", SILENT, ADA)
            await until(lambda: wire.probe.live == 2)
            wire.probe.signed_out["ada"].set()
            ended = b"".join(
                result(each, b'{"errors":[%b]}' % SIGNED_OUT) + completed(each)
                for each in ("1", "2")
            )
            assert await stream.rest() == ended
            assert (wire.probe.live, wire.probe.cleaned) == (0, 2)
        assert await requests(wire, token, ADA) == [NOT_FOUND] * 2


async def test_one_stream_is_kept_alive() -> None:
    settings = EndpointSettings(heartbeat_seconds=0.02)
    async with wired(settings=settings) as wire, opening(wire, await reserve(wire)) as stream:
        await stream.expect(COMMENT * 4)


async def test_a_stopping_server_reserves_nothing() -> None:
    async with wired() as wire:
        token = await reserve(wire)
        wire.probe.is_stopping = True
        async with asking(wire, method="PUT", headers={}) as exchange:
            assert await code(exchange) == (503, "SERVER_STOPPING")
        async with opening(wire, token) as exchange:
            assert await code(exchange) == (503, "SERVER_STOPPING")
