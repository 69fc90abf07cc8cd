"""Facts about Strawberry and graphql-core that schema/wire relies on.

When one of these fails after an upgrade, the code named in its docstring must be looked at again.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from importlib.metadata import version
from typing import Any, ClassVar

import pytest
import strawberry
from graphql import GraphQLSyntaxError
from starlette.types import Message
from strawberry.asgi import ASGIWebSocketAdapter, GraphQL
from strawberry.dataloader import DataLoader
from strawberry.extensions import ParserCache, ValidationCache
from strawberry.http.base import BaseView
from strawberry.http.streaming import SSETransport
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext
from strawberry.subscriptions import GRAPHQL_SSE_PROTOCOL, GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import (
    BaseGraphQLTransportWSHandler,
)
from strawberry.types.execution import PreExecutionError
from strawberry.types.graphql import OperationType

from schema.root import schema as served_schema
from schema.wire.execution import OperationExecutor, WireSchema
from schema.wire.http import GraphQLEndpoint, LineFeedSSETransport, SocketHandler, TextFrames
from tests.conftest import ROOT


@strawberry.interface
class Thing:
    id: strawberry.ID


def _is_named(name: str) -> Any:
    return lambda value, _info: type(value).__name__ == name


@strawberry.type
class Apple(Thing):
    weight: int

    is_type_of = _is_named("AppleRow")


@strawberry.type
class Pear(Thing):
    weight: int

    is_type_of = _is_named("PearRow")


class AppleRow:
    """A row is no instance of the GraphQL type; it only has its attributes."""

    id = "apple"

    @property
    def weight(self) -> int:
        return 7


class PearRow(AppleRow):
    id = "pear"


@strawberry.type
class Query:
    @strawberry.field
    def things(self) -> list[Thing]:
        return [AppleRow(), PearRow()]  # type: ignore[list-item]

    @strawberry.field
    def echo(self, text: str | None = strawberry.UNSET, times: int | None = None) -> str:
        return f"{text if text is not strawberry.UNSET else 'left out'} {times}"


@strawberry.type
class Mutation:
    @strawberry.mutation
    def touch(self) -> int:
        return 1


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int) -> AsyncGenerator[int, None]:
        for number in range(to):
            yield number


class Noting(StrawberryGraphQLCoreExecutionContext):
    """Notes what it executes."""

    noted: ClassVar[list[str]] = []

    def execute_operation(self, *args: Any, **kwargs: Any) -> Any:
        self.noted.append(self.operation.operation.value)
        return super().execute_operation(*args, **kwargs)


@pytest.fixture
def noted() -> list[str]:
    Noting.noted = []
    return Noting.noted


schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    types=[Apple, Pear],
    extensions=[ParserCache, ValidationCache],
    execution_context_class=Noting,
)


async def results_of(source: Any) -> list[Any]:
    return [each async for each in source]


async def test_the_given_executor_carries_out_queries_and_mutations(noted: list[str]) -> None:
    """schema/wire/execution.py: OperationExecutor renews the context there."""
    assert (await schema.execute("{ echo }")).errors is None
    assert (await schema.execute("mutation { touch }")).errors is None
    await results_of(await schema.stream("{ echo }"))
    assert noted == ["query", "mutation", "query"]


async def test_the_given_executor_carries_out_every_event_of_a_subscription(
    noted: list[str],
) -> None:
    """schema/wire/execution.py: each event gets fresh loaders."""
    results = await results_of(await schema.stream("subscription { count(to: 3) }"))
    assert [each.data for each in results] == [{"count": n} for n in range(3)]
    assert noted.count("subscription") == 3


class FakeContext:
    """Stands for the caller of an operation; notes which ones resolvers have met."""

    request_id = "request"
    seen: ClassVar[list[Any]] = []

    def renewed(self) -> FakeContext:
        return FakeContext()


@strawberry.type
class OwnQuery:
    @strawberry.field
    def own(self, info: strawberry.Info[Any, None]) -> int:
        FakeContext.seen.append(info.context)
        return 1


@strawberry.type
class OwnSubscription:
    @strawberry.subscription
    async def each(self) -> AsyncGenerator[OwnQuery, None]:
        for _ in range(3):
            yield OwnQuery()


async def test_our_executor_gives_every_operation_and_event_a_context_of_its_own() -> None:
    FakeContext.seen = []
    wired = WireSchema(
        query=OwnQuery, subscription=OwnSubscription, execution_context_class=OperationExecutor
    )
    shared = FakeContext()
    for _ in range(2):
        await wired.execute("{ own }", context_value=shared)
    await results_of(await wired.stream("subscription { each { own } }", context_value=shared))
    assert len(FakeContext.seen) == 5
    assert len({id(each) for each in FakeContext.seen}) == 5
    assert shared not in FakeContext.seen


async def test_a_loader_remembers_for_as_long_as_its_context_lives() -> None:
    """resolvers/batching.py: why a context must not outlive an operation."""
    values = iter("ab")

    async def load(keys: list[str]) -> list[str]:
        return [next(values) for _ in keys]

    loader: DataLoader[str, str] = DataLoader(load_fn=load)
    assert [await loader.load("key"), await loader.load("key")] == ["a", "a"]


def test_event_streams_end_their_lines_in_crlf_unless_replaced() -> None:
    """schema/wire/http.py: LineFeedSSETransport is needed, as urql splits on line feeds alone."""
    shipped, ours = SSETransport(), LineFeedSSETransport()
    assert shipped.encode_event("next", "{}") == "event: next\r\ndata: {}\r\n\r\n"
    assert ours.encode_event("next", "{}") == "event: next\ndata: {}\n\n"
    assert ours.encode_complete() == "event: complete\ndata: \n\n"
    assert ours.encode_comment("ping") == ": ping\n\n"
    frames = [
        ours.encode_next({"data": {}}, json.dumps),
        ours.encode_complete(),
        ours.heartbeat_message(json.dumps),
    ]
    assert not any("\r" in frame for frame in frames)


@pytest.mark.parametrize(
    ("accept", "is_shipped", "is_ours"),
    [
        ("text/event-stream", True, True),
        ("TEXT/Event-Stream; charset=utf-8", True, True),
        # urql's own: it wants JSON and can also read streams.
        (
            "application/graphql-response+json, application/graphql+json, application/json, "
            "text/event-stream, multipart/mixed",
            True,
            False,
        ),
        ("text/event-stream, application/json", True, True),
        ("application/json;q=0.5, text/event-stream", True, True),
        ("text/event-stream;q=0.5, application/json", True, False),
        ("text/event-stream;q=0", True, False),
        ("text/event-stream;q=x", True, False),
        ("*/*", False, False),
        ("", False, False),
    ],
)
def test_event_streams_take_over_for_clients_that_only_mention_them_unless_replaced(
    accept: str, is_shipped: bool, is_ours: bool
) -> None:
    """schema/wire/http.py: LineFeedSSETransport.accepts."""
    assert SSETransport().accepts(accept) is is_shipped
    assert LineFeedSSETransport().accepts(accept) is is_ours


def test_a_view_takes_its_stream_transports_by_protocol() -> None:
    """schema/wire/http.py: stream_transport_classes_by_protocol."""
    assert BaseView.stream_transport_classes_by_protocol[GRAPHQL_SSE_PROTOCOL] is SSETransport
    ours = GraphQLEndpoint.stream_transport_classes_by_protocol
    assert dict(ours) == {GRAPHQL_SSE_PROTOCOL: LineFeedSSETransport}
    assert issubclass(SocketHandler, BaseGraphQLTransportWSHandler)
    assert GraphQLEndpoint.graphql_transport_ws_handler_class is SocketHandler


class Recorded:
    """A Starlette WebSocket that notes what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, object]] = []

    async def send_text(self, data: str) -> None:
        self.sent.append(("text", data))

    async def send_bytes(self, data: bytes) -> None:
        self.sent.append(("bytes", data))


class BytesView(GraphQL[Any, None]):
    def encode_json(self, data: object) -> bytes:
        return json.dumps(data).encode()


async def test_an_encoder_that_gives_bytes_sends_binary_frames_unless_replaced() -> None:
    """schema/wire/http.py: TextFrames."""
    message: Mapping[str, object] = {"type": "pong"}
    shipped, ours = Recorded(), Recorded()
    view: Any = BytesView(schema)
    await ASGIWebSocketAdapter(view, shipped, shipped).send_json(message)  # type: ignore[arg-type]
    await TextFrames(view, ours, ours).send_json(message)  # type: ignore[arg-type]
    assert shipped.sent == [("bytes", b'{"type": "pong"}')]
    assert ours.sent == [("text", '{"type":"pong"}')]


async def test_values_are_read_from_attributes_of_any_object() -> None:
    """schema/base.py: row_type declares types whose values are rows."""
    assert served_schema.config.default_resolver is getattr
    result = await schema.execute("{ things { id ... on Apple { weight } } }")
    assert result.errors is None
    assert result.data == {"things": [{"id": "apple", "weight": 7}, {"id": "pear"}]}


async def test_is_type_of_on_the_class_decides_which_type_a_row_is() -> None:
    """schema/base.py: row_type and the types of events set it."""
    result = await schema.execute("{ things { __typename } }")
    assert result.errors is None
    assert result.data == {"things": [{"__typename": "Apple"}, {"__typename": "Pear"}]}


async def test_an_unset_default_is_left_out_of_the_sdl_and_of_the_call() -> None:
    """schema/base.py: relation, so that no argument shows "= null"."""
    sdl = schema.as_str()
    assert "echo(text: String, times: Int = null): String!" in sdl
    result = await schema.execute("{ echo }")
    assert result.data == {"echo": "left out None"}
    result = await schema.execute("query($text: String) { echo(text: $text) }")
    assert result.data == {"echo": "left out None"}
    result = await schema.execute("{ echo(text: null) }")
    assert result.data == {"echo": "None None"}
    paths = [line for line in served_schema.as_str().splitlines() if re.search(r"\bto: ID", line)]
    assert paths == ["    to: ID"]


async def test_caches_given_as_classes_are_shared_by_all_requests() -> None:
    """schema/root.py: extensions=[ParserCache, ValidationCache]."""
    assert ParserCache().cached_parse_document is ParserCache().cached_parse_document
    assert ValidationCache().cached_validate_document is ValidationCache().cached_validate_document
    parsed = ParserCache().cached_parse_document
    validated = ValidationCache().cached_validate_document
    document = "query Remembered { echo }"
    await schema.execute(document)
    before = parsed.cache_info().hits, validated.cache_info().hits
    await schema.execute(document)
    await results_of(await schema.stream(document))
    assert (parsed.cache_info().hits, validated.cache_info().hits) == (before[0] + 2, before[1] + 2)


async def test_the_parser_cache_lets_syntax_errors_break_a_stream_unless_caught() -> None:
    """schema/wire/execution.py: _presented_stream."""
    with pytest.raises(GraphQLSyntaxError):
        await results_of(await schema.stream("{"))
    wired = WireSchema(query=Query, types=[Apple, Pear], extensions=[ParserCache])
    (result,) = await results_of(await wired.stream("{", context_value=FakeContext()))
    assert isinstance(result, PreExecutionError)
    assert [each.extensions for each in result.errors or []] == [{"code": "GRAPHQL_PARSE_FAILED"}]


async def test_a_subscription_is_executed_as_if_it_were_a_query_unless_forbidden() -> None:
    """schema/wire/execution.py: WireSchema.execute."""
    document = "subscription { count(to: 1) }"
    result = await schema.execute(document)
    assert [each.message for each in result.errors or []] == [
        "Cannot return null for non-nullable field Subscription.count."
    ]
    with pytest.raises(InvalidOperationTypeError) as caught:
        await served_schema.execute(
            'subscription { runEvents(runId: "x") { seq } }', context_value=FakeContext()
        )
    assert caught.value.operation_type is OperationType.SUBSCRIPTION


async def test_messages_of_odd_shape_break_the_shipped_socket_handler() -> None:
    """schema/wire/http.py: SocketHandler looks at them first."""
    view: Any = GraphQL(schema, subscription_protocols=[GRAPHQL_TRANSPORT_WS_PROTOCOL])
    broken: list[Any] = [[], 5, {"type": "subscribe", "id": [], "payload": {"query": "{ x }"}}]
    for message in broken:
        with pytest.raises((TypeError, AttributeError)):
            await _converse(view, [{"type": "connection_init"}, message])


async def _converse(app: Any, messages: list[Any]) -> list[Message]:
    """Speak to an application over a WebSocket, without a server."""
    sent: list[Message] = []

    async def incoming() -> AsyncIterator[Message]:
        yield {"type": "websocket.connect"}
        for message in messages:
            yield {"type": "websocket.receive", "text": json.dumps(message)}
        yield {"type": "websocket.disconnect", "code": 1000}

    source = incoming()

    async def receive() -> Message:
        return await anext(source)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": "/graphql",
        "headers": [],
        "query_string": b"",
        "subprotocols": [GRAPHQL_TRANSPORT_WS_PROTOCOL],
    }
    await app(scope, receive, send)
    return sent


def test_the_pinned_versions_are_the_installed_ones() -> None:
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))
    pins = dict(each.split("==") for each in project["project"]["dependencies"] if "==" in each)
    assert set(pins) >= {"strawberry-graphql", "graphql-core"}
    assert {name: version(name) for name in pins} == pins
    for lock in ("requirements.lock", "requirements-dev.lock"):
        locked = ROOT.joinpath(lock).read_text(encoding="utf-8")
        for name, pin in pins.items():
            assert re.search(rf"^{re.escape(name)}=={re.escape(pin)}\b", locked, re.MULTILINE)
