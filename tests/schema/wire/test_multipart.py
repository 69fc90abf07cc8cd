"""Subscriptions over multipart HTTP, byte by byte, as Apollo's clients read them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.e2e.callers import Json
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import Exchange, asking, figure, until
from tests.schema.wire.test_sse import ADA, ERRORS, SIGNED_OUT, SILENT, code

# As Apollo Client asks for subscriptions.
PARTS = {"Accept": "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json"}
DELIMITER = b"\r\n--graphql"
END = b"--\r\n"


@pytest_asyncio.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    """One server for what leaves no trace in it."""
    async with wired() as served:
        yield served


def part(value: bytes) -> bytes:
    return b"\r\ncontent-type: application/json\r\n\r\n%b\r\n--graphql" % value


def result(data: bytes) -> bytes:
    return part(b'{"payload":{"data":%b}}' % data)


async def expect_failure(exchange: Exchange, errors: list[Json]) -> None:
    """The stream ends with these errors, which stand at the top level."""
    last = (await exchange.rest()).removesuffix(DELIMITER + END)
    head, _, value = last.rpartition(b"\r\n\r\n")
    assert head == b"\r\ncontent-type: application/json"
    assert json.loads(value) == {"payload": None, "errors": errors}


@pytest.mark.parametrize(
    "accept",
    [
        PARTS["Accept"],
        'multipart/mixed;subscriptionSpec="1.0", application/json',
        "multipart/mixed;subscriptionSpec=1.0",
        "application/json, Multipart/Mixed; subscriptionSpec=1.0",
    ],
)
async def test_a_stream_byte_for_byte(wire: Wire, accept: str) -> None:
    query = "subscription { count(to: 2) }"
    async with asking(wire, query, headers={"Accept": accept}) as exchange:
        assert exchange.status == 200
        media = "multipart/mixed;boundary=graphql;subscriptionSpec=1.0"
        assert exchange.headers["content-type"] == media
        assert exchange.headers["cache-control"] == "no-cache"
        assert exchange.headers["x-accel-buffering"] == "no"
        assert exchange.headers["transfer-encoding"] == "chunked"
        whole = DELIMITER + result(b'{"count":1}') + result(b'{"count":2}') + END
        assert await exchange.rest() == whole


async def test_every_part_is_complete_when_it_is_sent() -> None:
    """Clients read a part once its delimiter has come: it must not wait for the next part."""
    async with wired() as wire:
        async with asking(wire, "subscription { gated { number } }", headers=PARTS) as exchange:
            await exchange.expect(DELIMITER)
            for _ in range(3):
                wire.probe.gate.release()
                await exchange.expect(result(b'{"gated":{"number":0}}'))
        await until(lambda: wire.probe.cleaned == 1)


async def test_a_stream_without_events(wire: Wire) -> None:
    async with asking(wire, "subscription { count(to: 0) }", headers=PARTS) as exchange:
        assert await exchange.rest() == DELIMITER + END


@pytest.mark.parametrize("query", ["{ hello }", "query { hello }"])
async def test_a_query_is_answered_with_json(wire: Wire, query: str) -> None:
    async with asking(wire, query, headers=PARTS) as exchange:
        assert exchange.headers["content-type"] == "application/json; charset=utf-8"
        assert await exchange.rest() == b'{"data":{"hello":"hello world"}}'


async def test_a_client_that_reads_parts_alone_gets_a_query_in_one(wire: Wire) -> None:
    headers = {"Accept": "multipart/mixed;subscriptionSpec=1.0"}
    async with asking(wire, "{ hello }", headers=headers) as exchange:
        assert await exchange.rest() == DELIMITER + result(b'{"hello":"hello world"}') + END


@pytest.mark.parametrize(
    "accept",
    [
        "multipart/mixed",
        "multipart/mixed;deferSpec=20220824",
        "multipart/mixed;subscriptionSpec=2.0",
    ],
)
async def test_other_specifications_are_not_spoken(wire: Wire, accept: str) -> None:
    async with asking(wire, SILENT, headers={"Accept": f"{accept}, application/json"}) as exchange:
        assert await code(exchange) == (406, "STREAM_REQUIRED")
    async with asking(wire, SILENT, headers={"Accept": accept}) as exchange:
        assert await code(exchange) == (406, "NOT_ACCEPTABLE")


@pytest.mark.parametrize(("asked", "errors"), ERRORS.values(), ids=ERRORS)
async def test_errors_of_a_request_stand_at_the_top(
    wire: Wire, asked: dict[str, Any], errors: list[Json]
) -> None:
    headers = {"Accept": "multipart/mixed;subscriptionSpec=1.0"}
    async with asking(wire, headers=headers, **asked) as exchange:
        assert exchange.status == 200
        await exchange.expect(DELIMITER)
        await expect_failure(exchange, errors)


@pytest.mark.parametrize(
    ("after", "field", "last"),
    [
        (0, "refusing", {"message": "Mend this.", "extensions": {"code": "MEND_THIS"}}),
        (2, "refusing", {"message": "Mend this.", "extensions": {"code": "MEND_THIS"}}),
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
async def test_a_stream_that_fails(wire: Wire, after: int, field: str, last: Json) -> None:
    query = f"subscription {{ {field}(after: {after}) }}"
    async with asking(wire, query, headers=PARTS) as exchange:
        await exchange.expect(DELIMITER)
        for number in range(after):
            await exchange.expect(result(b'{"%b":%d}' % (field.encode(), number)))
        await expect_failure(exchange, [last])


async def test_silence_is_filled_with_empty_parts() -> None:
    async with wired(settings=EndpointSettings(heartbeat_seconds=0.02)) as wire:
        async with asking(wire, SILENT, headers=PARTS) as exchange:
            await exchange.expect(DELIMITER + part(b"{}") * 3)
        await until(lambda: wire.probe.cleaned == 1)


async def test_a_client_that_leaves_ends_its_operation() -> None:
    """Rules T1, T2, T5."""
    async with wired() as wire:
        for query in (SILENT, "subscription { late(seconds: 3600) }"):
            async with asking(wire, query, headers=PARTS) as exchange:
                await exchange.expect(DELIMITER)
                await until(lambda: figure(wire, "running_operations", kind="subscription") == 1)
            await until(lambda: figure(wire, "connections", transport="multipart") == 0)
        assert figure(wire, "running_operations", kind="subscription") == 0
        assert (wire.probe.live, wire.probe.opened, wire.probe.cleaned) == (0, 1, 1)


async def test_the_end_of_a_sign_in_ends_its_streams() -> None:
    async with wired() as wire, asking(wire, SILENT, headers={**PARTS, **ADA}) as exchange:
        await until(lambda: wire.probe.live == 1)
        wire.probe.signed_out["ada"].set()
        last = part(b'{"payload":null,"errors":[%b]}' % SIGNED_OUT)
        assert await exchange.rest() == DELIMITER + last + END
        assert (wire.probe.live, wire.probe.cleaned) == (0, 1)


async def test_a_server_carries_so_many_streams() -> None:
    async with (
        wired(Limits(connections=1)) as wire,
        asking(wire, SILENT, headers=PARTS),
        asking(wire, SILENT, headers=PARTS) as second,
    ):
        assert second.headers["retry-after"] == "5"
        assert await code(second) == (503, "CONNECTION_LIMIT")
