"""gql, the Python client, over each of its transports."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from gql import Client, FileVar, GraphQLRequest
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.aiohttp_websockets import AIOHTTPWebsocketsTransport
from gql.transport.async_transport import AsyncTransport
from gql.transport.exceptions import TransportQueryError, TransportServerError
from gql.transport.websockets import WebsocketsTransport
from graphql import print_schema

from tests.e2e.callers import PREFLIGHT
from tests.schema.wire.serving import Wire, probe_schema
from tests.schema.wire.talking import until


def over_http(wire: Wire) -> AIOHTTPTransport:
    return AIOHTTPTransport(url=wire.url, headers=PREFLIGHT)


def over_websockets(wire: Wire) -> WebsocketsTransport:
    return WebsocketsTransport(url=wire.socket_url)


def over_aiohttp_websockets(wire: Wire) -> AIOHTTPWebsocketsTransport:
    return AIOHTTPWebsocketsTransport(url=wire.socket_url)


transports = pytest.mark.parametrize(
    "transport", [over_http, over_websockets, over_aiohttp_websockets]
)
Transport = Callable[[Wire], AsyncTransport]

COUNT = GraphQLRequest(
    "subscription Count($to: Int!) { count(to: $to) }", variable_values={"to": 3}
)
LONG = GraphQLRequest("subscription { count(to: 1000000, seconds: 0.001) }")


@transports
async def test_gql_fetches_the_schema_and_checks_its_queries_by_it(
    wire: Wire, transport: Transport
) -> None:
    client = Client(transport=transport(wire), fetch_schema_from_transport=True)
    async with client as session:
        assert client.schema is not None
        assert print_schema(client.schema) == print_schema(probe_schema._schema)
        asked = GraphQLRequest(
            "query($name: String) { hello(name: $name) }", variable_values={"name": "Ça va?"}
        )
        assert await session.execute(asked) == {"hello": "hello Ça va?"}


@transports
async def test_gql_gets_errors_with_their_codes(wire: Wire, transport: Transport) -> None:
    async with Client(transport=transport(wire)) as session:
        with pytest.raises(TransportQueryError) as partial:
            await session.execute(GraphQLRequest("{ hello refused }"))
        with pytest.raises(TransportQueryError) as invalid:
            await session.execute(GraphQLRequest("{ xyz }"))
    assert partial.value.data == {"hello": "hello world", "refused": None}
    codes = [
        [each["extensions"]["code"] for each in error.value.errors or ()]
        for error in (partial, invalid)
    ]
    assert codes == [["MEND_THIS"], ["GRAPHQL_VALIDATION_FAILED"]]


@transports
async def test_gql_follows_a_subscription_to_its_end_or_leaves_early(
    wire: Wire, transport: Transport
) -> None:
    """Rule T2."""
    cleaned = wire.probe.cleaned
    async with Client(transport=transport(wire)) as session:
        assert [each async for each in session.subscribe(COUNT)] == [
            {"count": 1},
            {"count": 2},
            {"count": 3},
        ]
        leaving = session.subscribe(LONG)
        assert await anext(leaving) == {"count": 1}
        await leaving.aclose()
        await until(lambda: wire.probe.cleaned == cleaned + 2)
        assert wire.probe.live == 0


@transports
async def test_gql_is_told_when_a_subscription_breaks_off(wire: Wire, transport: Transport) -> None:
    broken = GraphQLRequest("subscription { breaking(after: 1) }")
    async with Client(transport=transport(wire)) as session:
        results = session.subscribe(broken)
        assert await anext(results) == {"breaking": 0}
        # Over HTTP gql knows no errors that end a whole stream but by their text.
        with pytest.raises((TransportQueryError, TransportServerError)) as ended:
            await anext(results)
    assert "MARKER" not in str(ended.value)
    assert "Something went wrong on the server." in str(ended.value)


async def test_gql_uploads_files_and_sends_batches(wire: Wire) -> None:
    async with Client(transport=over_http(wire)) as session:
        files = [FileVar(io.BytesIO(text.encode())) for text in ("Erste", "второй")]
        asked = GraphQLRequest(
            "mutation($files: [Upload!]!) { readFiles(files: $files) }",
            variable_values={"files": files},
        )
        uploaded = await session.execute(asked, upload_files=True)
        batch = await session.execute_batch(
            [GraphQLRequest("{ hello }"), GraphQLRequest("{ caller }")]
        )
    assert uploaded == {"readFiles": ["Erste", "второй"]}
    assert batch == [{"hello": "hello world"}, {"caller": "anybody"}]
