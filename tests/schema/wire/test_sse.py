"""GraphQL over server-sent events, byte by byte: a stream for each operation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.e2e.callers import PREFLIGHT, Json
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import EVENTS, Exchange, asking, figure, until

SILENT = "subscription { silent }"
COUNT = "subscription { count(to: 2) }"
COMMENT = b":\n\n"
COMPLETE = b"event: complete\ndata: \n\n"
SIGNED_OUT = b'{"message":"Your sign-in has ended: sign in again.",' + (
    b'"extensions":{"code":"UNAUTHENTICATED"}}'
)
ADA, EVE = {"Authorization": "Bearer ada"}, {"Authorization": "Bearer eve"}


@pytest_asyncio.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    """One server for what leaves no trace in it."""
    async with wired() as served:
        yield served


def next_(data: bytes) -> bytes:
    return b"event: next\ndata: %b\n\n" % data


def streams(wire: Wire) -> float:
    return figure(wire, "connections", transport="sse")


async def code(exchange: Exchange) -> tuple[int, str]:
    """The status and the one error of an answer that is no stream."""
    assert exchange.headers["content-type"].endswith("json; charset=utf-8")
    (body,) = json.loads(await exchange.rest())["errors"]
    return exchange.status, body["extensions"]["code"]


ANSWERS = {
    "a query": ("{ hello }", [b'{"data":{"hello":"hello world"}}']),
    "a text of several lines": (
        '{ hello(name: "a\\nb\\r\\nc") }',
        [rb'{"data":{"hello":"hello a\nb\r\nc"}}'],
    ),
    "a subscription": (COUNT, [b'{"data":{"count":1}}', b'{"data":{"count":2}}']),
    "a subscription without events": ("subscription { count(to: 0) }", []),
    "a mutation": ("mutation { set(value: 5) }", [b'{"data":{"set":5}}']),
}


@pytest.mark.parametrize(("query", "results"), ANSWERS.values(), ids=ANSWERS)
async def test_a_stream_byte_for_byte(wire: Wire, query: str, results: list[bytes]) -> None:
    """Rule T43. Lines end in plain line feeds."""
    async with asking(wire, query) as exchange:
        assert exchange.status == 200
        assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert exchange.headers["cache-control"] == "no-cache"
        assert exchange.headers["x-accel-buffering"] == "no"
        assert exchange.headers["transfer-encoding"] == "chunked"
        body = b"".join([COMMENT, *map(next_, results), COMPLETE])
        assert await exchange.rest() == body
        assert b"\r" not in body


@pytest.mark.parametrize(
    "headers",
    [
        {**EVENTS, **PREFLIGHT},
        # As EventSource asks, from a page of ours.
        {**EVENTS, "Sec-Fetch-Site": "same-origin"},
        {"Accept": "TEXT/Event-Stream;q=0.9", **PREFLIGHT},
        {"Accept": "text/*", **PREFLIGHT},
    ],
)
@pytest.mark.parametrize(
    ("query", "results"),
    [(query, results) for query, results in ANSWERS.values() if not query.startswith("mutation")],
)
async def test_a_stream_by_get(
    wire: Wire, headers: Mapping[str, str], query: str, results: list[bytes]
) -> None:
    path = "?" + urlencode({"query": query})
    async with asking(wire, method="GET", path=path, headers=headers) as exchange:
        assert await exchange.rest() == b"".join([COMMENT, *map(next_, results), COMPLETE])


async def test_a_mutation_by_get_is_refused_as_ever(wire: Wire) -> None:
    path = "?" + urlencode({"query": "mutation { set(value: 6) }"})
    headers = {**EVENTS, **PREFLIGHT}
    async with asking(wire, method="GET", path=path, headers=headers) as exchange:
        assert exchange.headers["allow"] == "POST"
        assert await code(exchange) == (405, "METHOD_NOT_ALLOWED")
    assert wire.probe.value != 6


@pytest.mark.parametrize(
    ("accept", "query", "media"),
    [
        # As urql asks.
        (
            "application/graphql-response+json, application/graphql+json, application/json, "
            "text/event-stream, multipart/mixed",
            "{ hello }",
            "application/graphql-response+json",
        ),
        (
            "application/graphql-response+json, application/graphql+json, application/json, "
            "text/event-stream, multipart/mixed",
            COUNT,
            "text/event-stream",
        ),
        ("text/event-stream, application/json;q=0.5", "{ hello }", "text/event-stream"),
        ("text/event-stream;q=0.5, application/json", "{ hello }", "application/json"),
        ("application/json, text/event-stream;q=0.1", COUNT, "text/event-stream"),
    ],
)
async def test_streams_are_for_those_who_want_them(
    wire: Wire, accept: str, query: str, media: str
) -> None:
    """Rule T43."""
    async with asking(wire, query, headers={"Accept": accept}) as exchange:
        assert exchange.status == 200
        assert exchange.headers["content-type"] == f"{media}; charset=utf-8"


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else "x"


async def test_variables_that_are_hard_to_compare_do_a_stream_no_harm(wire: Wire) -> None:
    """Deeper than what writes them as JSON would go; nobody asked for the variable."""
    async with asking(wire, COUNT, variables={"other": nested(400)}) as exchange:
        results = [b'{"data":{"count":1}}', b'{"data":{"count":2}}']
        assert await exchange.rest() == b"".join([COMMENT, *map(next_, results), COMPLETE])
    await until(lambda: wire.probe.live == 0)
    assert wire.probe.cleaned == wire.probe.opened


ERRORS: dict[str, tuple[dict[str, Any], list[Json]]] = {
    "a syntax error": (
        {"query": "{ hello"},
        [
            {
                "message": "Syntax Error: Expected Name, found <EOF>.",
                "locations": [{"line": 1, "column": 8}],
                "extensions": {"code": "GRAPHQL_PARSE_FAILED"},
            }
        ],
    ),
    "validation errors": (
        {"query": "{ a b }"},
        [
            {
                "message": f"Cannot query field '{name}' on type 'Query'.",
                "locations": [{"line": 1, "column": column}],
                "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"},
            }
            for name, column in (("a", 3), ("b", 5))
        ],
    ),
    "a variable of the wrong type": (
        {"query": "subscription ($to: Int!) { count(to: $to) }", "variables": {"to": "x"}},
        [
            {
                "message": "Variable '$to' has invalid value: "
                "Int cannot represent non-integer value: 'x'",
                "locations": [{"line": 1, "column": 15}],
                "extensions": {"code": "BAD_USER_INPUT"},
            }
        ],
    ),
    "an unknown operation": (
        {"query": "query A { hello }", "operationName": "B"},
        [
            {
                "message": "The document has no operation 'B', but A.",
                "extensions": {"code": "OPERATION_RESOLUTION_FAILURE"},
            }
        ],
    ),
}


@pytest.mark.parametrize(("asked", "errors"), ERRORS.values(), ids=ERRORS)
async def test_errors_of_a_request_are_events(
    wire: Wire, asked: dict[str, Any], errors: list[Json]
) -> None:
    async with asking(wire, **asked) as exchange:
        assert exchange.status == 200
        await exchange.expect(COMMENT + b"event: next\ndata: ")
        line, _, rest = (await exchange.rest()).partition(b"\n")
        assert json.loads(line) == {"errors": errors}
        assert rest == b"\n" + COMPLETE


@pytest.mark.parametrize(
    ("after", "query", "last"),
    [
        (1, "refusing", {"message": "Mend this.", "extensions": {"code": "MEND_THIS"}}),
        (0, "refusing", {"message": "Mend this.", "extensions": {"code": "MEND_THIS"}}),
        (
            1,
            "breaking",
            {
                "message": "Something went wrong on the server. "
                "Say this request id when you report it.",
                "extensions": {"code": "INTERNAL", "requestId": "request-anybody-1"},
            },
        ),
    ],
)
async def test_a_stream_that_fails(wire: Wire, after: int, query: str, last: Json) -> None:
    async with asking(wire, f"subscription {{ {query}(after: {after}) }}") as exchange:
        await exchange.expect(COMMENT)
        for number in range(after):
            await exchange.expect(next_(b'{"data":{"%b":%d}}' % (query.encode(), number)))
        await exchange.expect(b"event: next\ndata: ")
        line, _, rest = (await exchange.rest()).partition(b"\n")
        assert json.loads(line) == {"errors": [last]}
        assert rest == b"\n" + COMPLETE


async def test_silence_is_filled_with_comments() -> None:
    async with wired(settings=EndpointSettings(heartbeat_seconds=0.02)) as wire:
        async with asking(wire, SILENT) as exchange:
            await exchange.expect(COMMENT * 4)
        await until(lambda: wire.probe.cleaned == 1)


async def test_a_client_that_leaves_ends_its_operation() -> None:
    """Rules T1, T2, T5."""
    async with wired() as wire:
        for query in (SILENT, "{ slow }"):
            async with asking(wire, query) as exchange:
                await exchange.expect(COMMENT)
                await until(lambda: wire.probe.live + wire.probe.slow == 1)
        async with asking(wire, "subscription { late(seconds: 3600) }") as exchange:
            await exchange.expect(COMMENT)
        await until(lambda: streams(wire) == 0)
        assert (wire.probe.live, wire.probe.opened, wire.probe.cleaned) == (0, 1, 1)
        assert (wire.probe.slow, wire.probe.cancelled) == (0, 1)


async def test_the_end_of_a_sign_in_ends_its_streams() -> None:
    async with (
        wired() as wire,
        asking(wire, SILENT, headers={**EVENTS, **ADA}) as ada,
        asking(wire, SILENT, headers={**EVENTS, **EVE}) as eve,
    ):
        await until(lambda: wire.probe.live == 2)
        wire.probe.signed_out["ada"].set()
        expected = COMMENT + next_(b'{"errors":[%b]}' % SIGNED_OUT) + COMPLETE
        assert await ada.rest() == expected
        assert (wire.probe.live, wire.probe.cleaned) == (1, 1)
        await eve.expect(COMMENT)


async def test_a_server_carries_so_many_streams() -> None:
    async with wired(Limits(connections=1)) as wire:
        async with asking(wire, SILENT), asking(wire, SILENT) as second:
            assert second.headers["retry-after"] == "5"
            assert await code(second) == (503, "CONNECTION_LIMIT")
        await until(lambda: streams(wire) == 0)
        wire.probe.is_stopping = True
        async with asking(wire, SILENT) as exchange:
            assert await code(exchange) == (503, "SERVER_STOPPING")
