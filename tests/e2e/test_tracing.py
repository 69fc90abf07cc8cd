"""Spans as a collector gets them: one trace for each operation, below the client's own."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import asyncpg
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.clusters import Cluster
from tests.conftest import serving
from tests.e2e.callers import Caller, Json, Socket, dialled

# Stands in variables, documents, questions and cards; no span may hold it.
PRIVATE = "Marker-of-what-is-private"
# Long enough for all operations but the one that meets a locked table.
OPERATION_SECONDS = 3.0
# A stop takes no longer, whatever becomes of the last spans.
STOP_SECONDS = 10.0

LIBRARY = """
query Library($text: String!) {
  characters(first: 5) {
    nodes { name trees { nodes { topic nodes { nodes { parent { id } } } } } }
  }
  viewer { roles }
  absent: __type(name: $text) { name }
}
"""
CHANGE = """
mutation Change($identity: EmbryoIdentityInput!) {
  embryoCreate(input: { identity: $identity }) { embryo { id } }
  again: embryoCreate(input: { identity: $identity }) { embryo { id } }
}
"""
FOLLOW = "subscription Follow($run: ID!) { runEvents(runId: $run) { seq } }"
FAILED = """
query Failed($after: String) {
  characters(first: 5) { nodes { trees(after: $after) { nodes { id } } } }
}
"""
REFUSED = "query Refused($ids: [ID!]!) { nodes(ids: $ids) { id } }"
SLOW = """
query Slow {
  characters(first: 1) { nodes { trees { nodes { canonizations { totalCount } } } } }
}
"""
# Over a socket, by the names of the operations.
SOCKET = {
    "Socket": "query Socket { viewer { user { name } } }",
    "Stream": "subscription Stream($run: ID!) { runEvents(runId: $run) { seq } }",
    "Quiet": "query Quiet { viewer { user { name } } }",
}


@dataclass
class Collector:
    """Takes spans by OTLP over HTTP."""

    url: str = ""
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        exported = ExportTraceServiceRequest()
        exported.ParseFromString(await request.read())
        self.requests.append(exported)
        return web.Response(content_type="application/x-protobuf")

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextlib.asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        collector.url = f"http://{host}:{port}"
        yield collector
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Parent:
    """A span of the client's, which the server is told of."""

    trace: str = field(default_factory=lambda: secrets.token_hex(16))
    span: str = field(default_factory=lambda: secrets.token_hex(8))
    flags: str = "01"

    @property
    def header(self) -> dict[str, str]:
        return {"traceparent": f"00-{self.trace}-{self.span}-{self.flags}"}


@dataclass
class Traced:
    """What a collector got of a server that has stopped since."""

    spans: list[Span] = field(default_factory=list)
    # The client's span of each operation, by the operation's name.
    parents: dict[str, Parent] = field(default_factory=dict)
    events: int = 0
    output: str = ""

    def of(self, name: str) -> list[Span]:
        """The spans in the trace of an operation."""
        return [each for each in self.spans if each.trace_id.hex() == self.parents[name].trace]

    def top(self, name: str) -> Span:
        """The span of an operation, right below the client's."""
        (top,) = [
            each for each in self.of(name) if each.parent_span_id.hex() == self.parents[name].span
        ]
        return top

    def paths(self, name: str) -> Counter[str]:
        """How many spans there are by their place below the operation's."""
        spans = {each.span_id: each for each in self.of(name)}
        top = self.top(name)

        def path(span: Span) -> str:
            above = spans[span.parent_span_id]
            return span.name if above is top else f"{path(above)} > {span.name}"

        return Counter(path(each) for each in spans.values() if each is not top)


def attributes(span: Span) -> Json:
    return {
        each.key: getattr(each.value, str(each.value.WhichOneof("value")))
        for each in span.attributes
    }


async def ask_everything(caller: Caller, dsn: str, traced: Traced) -> None:
    """One operation of each kind and outcome, by every transport."""

    def parent(name: str, flags: str = "01") -> Parent:
        return traced.parents.setdefault(name, Parent(flags=flags))

    async def post(query: str, name: str, **variables: object) -> list[str]:
        answer = await caller.post(query, variables, name, headers=parent(name).header)
        return answer.codes if "errors" in answer.body else []

    runs = [(await caller.begin(f"Hello {PRIVATE}?")).run for _ in range(2)]
    for run in runs:
        await caller.follow(run)
    assert await post(LIBRARY, "Library", text=PRIVATE) == []
    locking = await asyncpg.connect(dsn)
    await locking.execute("BEGIN; LOCK TABLE canonizations IN ACCESS EXCLUSIVE MODE")
    slow = asyncio.create_task(post(SLOW, "Slow"))
    identity = {"name": "Ada", "description": PRIVATE}
    assert await post(CHANGE, "Change", identity=identity) == []
    assert await post(FAILED, "Failed", after=PRIVATE) == ["INVALID_CURSOR"]
    assert await post(REFUSED, "Refused", ids=[PRIVATE, {}]) == ["BAD_USER_INPUT"]
    headers = {"Accept": "text/event-stream", **parent("Follow").header}
    asked = {"query": FOLLOW, "variables": {"run": runs[0]}}
    async with caller.session.post(caller.server.url, json=asked, headers=headers) as response:
        traced.events = (await response.text()).count("event: next")
    async with dialled(caller.server) as dialling:
        client = Socket(dialling)
        await client.send({"type": "connection_init"})
        assert await client.receive() == {"type": "connection_ack"}
        for name, query in SOCKET.items():
            extensions = parent(name, "00" if name == "Quiet" else "01").header
            payload = {"query": query, "variables": {"run": runs[1]}, "extensions": extensions}
            await client.send({"type": "subscribe", "id": name, "payload": payload})
            while (message := await client.receive())["type"] != "complete":
                assert (message["type"], set(message["payload"])) == ("next", {"data"})
    assert await slow == ["OPERATION_TIMEOUT"]
    await locking.close()


@pytest.fixture(scope="module")
async def traced(cluster: Cluster, session: aiohttp.ClientSession) -> AsyncIterator[Traced]:
    traced = Traced()
    dsn = await cluster.new_database()
    async with collecting() as collector:
        settings = {
            "DATABASE_URL": dsn,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "MIRRORGRAPH_OPERATION_TIMEOUT": str(OPERATION_SECONDS),
            "MIRRORGRAPH_DEMO_RATE": "0",
            "MIRRORGRAPH_DEMO_CONTENT": "false",
        }
        async with serving(**settings) as server:
            await ask_everything(Caller(server, session), dsn, traced)
        # The last spans were sent while the server stopped.
        traced.spans, traced.output = collector.spans, server.output
    yield traced
    await cluster.drop(dsn)


@pytest.mark.parametrize(
    ("name", "kind", "outcome", "status"),
    [
        ("Library", "query", "ok", Status(code=Status.STATUS_CODE_UNSET)),
        ("Change", "mutation", "ok", Status(code=Status.STATUS_CODE_UNSET)),
        ("Follow", "subscription", "ok", Status(code=Status.STATUS_CODE_UNSET)),
        ("Stream", "subscription", "ok", Status(code=Status.STATUS_CODE_UNSET)),
        ("Socket", "query", "ok", Status(code=Status.STATUS_CODE_UNSET)),
        ("Refused", "query", "refused", Status(code=Status.STATUS_CODE_UNSET)),
        ("Failed", "query", "failed", Status(code=Status.STATUS_CODE_ERROR, message="failed")),
        ("Slow", "query", "timeout", Status(code=Status.STATUS_CODE_ERROR, message="timeout")),
    ],
)
def test_an_operation_is_one_span_below_the_clients(
    traced: Traced, name: str, kind: str, outcome: str, status: Status
) -> None:
    top = traced.top(name)
    told = attributes(top)
    assert told.pop("graphql.document.id").startswith("sha256:")
    assert told == {
        "graphql.operation.type": kind,
        "graphql.operation.name": name,
        "mirrorgraph.outcome": outcome,
    }
    assert (top.name, top.kind, top.status) == (f"{kind} {name}", Span.SPAN_KIND_SERVER, status)


def test_root_fields_are_below_it_and_each_call_of_a_batch_function_below_them(
    traced: Traced,
) -> None:
    assert traced.paths("Library") == {
        "Query.characters": 1,
        "Query.characters > trees_of_characters": 1,
        "Query.characters > nodes_of_trees": 1,
        "Query.characters > parents_of_nodes": 1,
        "Query.characters > parents_of_nodes > _rows_of_ids": 1,
        "Query.viewer": 1,
        "Query.__type": 1,
    }
    assert traced.paths("Change") == {"Mutation.embryoCreate": 2}
    assert traced.paths("Socket") == {
        "Query.viewer": 1,
        "Query.viewer > users_of_viewers": 1,
        "Query.viewer > users_of_viewers > _rows_of_ids": 1,
    }
    assert traced.paths("Refused") == {}
    # A field of each event; a run's first question and its answer make at least four.
    assert traced.paths("Follow") == {"Subscription.runEvents": traced.events}
    assert traced.events > 3


def test_a_call_of_a_batch_function_says_for_how_many_parents(traced: Traced) -> None:
    parents = {
        each.name: attributes(each)["mirrorgraph.parents"]
        for each in traced.of("Library")
        if each.parent_span_id.hex() != traced.parents["Library"].span and "." not in each.name
    }
    # Two characters with a tree each, with a question and its answer in each.
    assert parents == {
        "trees_of_characters": 2,
        "nodes_of_trees": 2,
        "parents_of_nodes": 4,
        "_rows_of_ids": 2,
    }


def test_a_batch_function_that_failed_is_marked(traced: Traced) -> None:
    (batch,) = [each for each in traced.of("Failed") if each.name == "trees_of_characters"]
    assert batch.status == Status(code=Status.STATUS_CODE_ERROR)


def test_spans_hold_nothing_that_is_private(traced: Traced) -> None:
    assert len(traced.spans) > 20
    text = "".join(str(each) for each in traced.spans)
    for private in (PRIVATE, "INVALID_CURSOR", "not a cursor", "exception", "runEvents(", "seq"):
        assert private not in text, private
    assert {each.trace_state for each in traced.spans} == {""}
    assert not [each for each in traced.spans if each.events]


def test_what_the_client_does_not_sample_is_not_sent(traced: Traced) -> None:
    assert traced.of("Quiet") == []


def test_operations_without_a_parent_begin_traces_of_their_own(traced: Traced) -> None:
    tops = [each for each in traced.spans if not each.parent_span_id]
    assert Counter(each.name for each in tops) == {
        "mutation EmbryoCreate": 2,
        "mutation EmbryoActivate": 2,
        "mutation TreeCreate": 2,
        "mutation TreeAsk": 2,
        "subscription RunEvents": 2,
    }
    assert len({each.trace_id for each in tops}) == len(tops)


def test_the_server_says_nothing_of_it(traced: Traced) -> None:
    lines = traced.output.splitlines()
    assert [line for line in lines if "opentelemetry" in line or "Traceback" in line] == []


async def test_without_the_setting_nothing_is_sent(
    cluster: Cluster, session: aiohttp.ClientSession
) -> None:
    dsn = await cluster.new_database()
    async with collecting() as collector:
        # Where the library would send spans by itself, were any made.
        elsewhere = f"{collector.url}/v1/traces"
        settings = {"DATABASE_URL": dsn, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": elsewhere}
        async with serving(**settings) as server:
            asked = await Caller(server, session).post(SLOW, headers=Parent().header)
            assert asked.status == 200
        assert collector.requests == []
    await cluster.drop(dsn)


async def serve_without_collector(
    dsn: str, session: aiohttp.ClientSession, *, is_listening: bool
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        if is_listening:
            nobody.listen()  # connections are made, and nothing is ever said on them
        host, port = nobody.getsockname()
        settings = {
            "DATABASE_URL": dsn,
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{host}:{port}",
            # Spans are sent, in vain, while the server serves.
            "OTEL_BSP_SCHEDULE_DELAY": "10",
        }
        async with serving(**settings) as server:
            caller = Caller(server, session)
            for _ in range(5):
                assert (await caller.post(SLOW)).status == 200
            async with asyncio.timeout(STOP_SECONDS):
                await server.stop()
    assert len(server.output.splitlines()) == 2, server.output
    assert "Traceback" not in server.output


async def test_a_collector_that_is_not_there_or_never_answers_does_no_harm(
    cluster: Cluster, session: aiohttp.ClientSession
) -> None:
    dsns = [await cluster.new_database() for _ in range(2)]
    await asyncio.gather(
        serve_without_collector(dsns[0], session, is_listening=False),
        serve_without_collector(dsns[1], session, is_listening=True),
    )
    for dsn in dsns:
        await cluster.drop(dsn)
