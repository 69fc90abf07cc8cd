"""Callers of a running server: plain HTTP, a WebSocket and server-sent events spoken by hand, Node
programs, and a look into the database behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect

from tests.acceptance import document
from tests.conftest import ROOT, ServerProcess
from tests.forking import ForkedCommand, base_environment

# Longer than anything here takes on a slow machine: a test that hits it has failed.
PATIENCE = 30.0
PREFLIGHT = {"GraphQL-Preflight": "1"}
CLIENTS = ROOT / "tests" / "conformance"

CARD_IMPORT = document("10-card-import.graphql")
EMBRYO_ACTIVATE = document("11-embryo-activate.graphql")
TREE_ASK = document("12-tree-ask.graphql")
RUN_EVENTS = document("13-run-events.graphql")
TREE_PAGE = document("15-tree-page.graphql")

EMBRYO_CREATE = """
mutation EmbryoCreate($identity: EmbryoIdentityInput!) {
  embryoCreate(input: { identity: $identity }) {
    embryo { id status version } errors { code message path }
  }
}
"""
CHANGES = """
mutation NodeAdopt($node: ID!) {
  nodeAdopt(input: { nodeId: $node }) {
    tree { id version workingEntry { id } } errors { code message path }
  }
}
mutation AnswerRegenerate($question: ID!) {
  answerRegenerate(input: { questionId: $question }) {
    run { id status } errors { code message path }
  }
}
mutation RunCancel($run: ID!) {
  runCancel(input: { runId: $run }) {
    run { id status } errors { code message path }
  }
}
"""
READS = """
query Run($id: ID!) {
  run(id: $id) {
    id status provider model usage finishReason error { code message } lastSeq startedAt
    question { id } node { id status content reasoning model }
  }
}
query Tree($id: ID!) {
  mirrorTree(id: $id) { id topic version workingEntry { id } nodes(first: 200) { totalCount } }
}
query Node($id: ID!) { treeNode(id: $id) { id status content reasoning model } }
"""
CHECKLIST = ["identity", "boundaries", "custody"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def data(self) -> Json:
        """The data of an answer that has no errors."""
        assert self.status == 200, (self.status, self.body)
        assert "errors" not in self.body, self.body
        data: Json = self.body["data"]
        return data

    @property
    def codes(self) -> list[str]:
        """The codes of the errors."""
        return [error["extensions"]["code"] for error in self.body["errors"]]


class Caller:
    """One person at one server, over HTTP."""

    def __init__(
        self, server: ServerProcess, session: aiohttp.ClientSession, token: str | None = None
    ) -> None:
        self.server = server
        self.session = session
        self.token = token

    def as_(self, token: str | None) -> Caller:
        """The same with another token."""
        return Caller(self.server, self.session, token)

    @property
    def headers(self) -> dict[str, str]:
        """What signs the person in."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    async def request(
        self, method: str, path: str = "/graphql", headers: Mapping[str, str] = {}, **body: Any
    ) -> Answer:
        """Any request; the body is read as JSON where it says that it is JSON."""
        async with asyncio.timeout(PATIENCE):
            response = await self.session.request(
                method, self.server.address + path, headers={**self.headers, **headers}, **body
            )
            async with response:
                text = await response.text()
        is_json = text and "json" in response.headers.get("Content-Type", "")
        return Answer(response.status, response.headers, json.loads(text) if is_json else text)

    async def post(
        self,
        query: str,
        variables: Json | None = None,
        operation: str | None = None,
        headers: Mapping[str, str] = {},
    ) -> Answer:
        """An operation by POST."""
        asked = {"query": query, "variables": variables or {}, "operationName": operation}
        return await self.request("POST", headers=headers, json=asked)

    async def ask(
        self, query: str, variables: Json | None = None, operation: str | None = None
    ) -> Json:
        """The data of an operation that must succeed."""
        return (await self.post(query, variables, operation)).data

    async def upload(
        self,
        content: bytes,
        name: str = "card.png",
        headers: Mapping[str, str] = PREFLIGHT,
        query: str = CARD_IMPORT,
    ) -> Answer:
        """A card by the multipart request specification, its boundary chosen at random."""
        form = aiohttp.FormData(quote_fields=False)
        form.add_field("operations", json.dumps({"query": query, "variables": {"file": None}}))
        form.add_field("map", json.dumps({"0": ["variables.file"]}))
        form.add_field("0", content, filename=name, content_type="application/octet-stream")
        return await self.request("POST", headers=headers, data=form)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        query: str = RUN_EVENTS,
        variables: Json | None = None,
        operation: str | None = None,
    ) -> AsyncIterator[AsyncIterator[Json]]:
        """The results of an operation as server-sent events; of RUN_EVENTS without the opening."""
        asked = {"query": query, "variables": variables or {}, "operationName": operation}
        accepting = {"Accept": "text/event-stream", **self.headers}
        response = await self.session.post(self.server.url, json=asked, headers=accepting)
        async with response:
            assert response.status == 200, await response.text()
            assert response.headers["Content-Type"].partition(";")[0] == "text/event-stream"
            results = _results(response.content)
            if query == RUN_EVENTS:
                results = without_opening(results, (variables or {}).get("after"))
            try:
                yield results
            finally:
                await results.aclose()

    @contextlib.asynccontextmanager
    async def socket(self, **headers: str) -> AsyncIterator[Socket]:
        """A signed-in WebSocket."""
        async with dialled(self.server, headers) as connection:
            socket = Socket(connection)
            params = {"payload": self.headers} if self.token else {}
            await socket.send({"type": "connection_init", **params})
            assert await socket.receive() == {"type": "connection_ack"}
            async with socket.listening():
                yield socket

    # What most tests begin with.

    async def create_character(self, **identity: Any) -> str:
        """The id of a new character."""
        given = {"name": "Ada", "description": "Ada tests. She counts to nine.", **identity}
        made = await self.ask(EMBRYO_CREATE, {"identity": given})
        embryo = made["embryoCreate"]["embryo"]["id"]
        issued = await self.ask(EMBRYO_ACTIVATE, {"id": embryo, "confirmed": CHECKLIST})
        assert issued["embryoActivate"]["errors"] == []
        return str(issued["embryoActivate"]["character"]["id"])

    async def create_tree(self, character: str | None = None, topic: str = "Tests") -> str:
        """The id of a new tree, with a new character unless one is given."""
        character = character or await self.create_character()
        made = await self.ask(TREE_ASK, {"character": character, "topic": topic}, "TreeCreate")
        assert made["treeCreate"]["errors"] == []
        return str(made["treeCreate"]["tree"]["id"])

    async def begin(self, text: str, tree: str | None = None, parent: str | None = None) -> Begun:
        """A question that was asked, in a new tree unless one is given."""
        tree = tree or await self.create_tree()
        asked = {"tree": tree, "parent": parent, "text": text}
        payload = (await self.ask(TREE_ASK, asked, "TreeAsk"))["treeAsk"]
        assert payload["errors"] == []
        return Begun(tree, payload["question"]["id"], payload["run"]["id"])

    async def change(self, operation: str, **variables: str) -> Json:
        """The payload of one of CHANGES."""
        (payload,) = (await self.ask(CHANGES, variables, operation)).values()
        return dict(payload)

    async def read(self, operation: str, id: str) -> Json:
        """The row of one of READS."""
        (row,) = (await self.ask(READS, {"id": id}, operation)).values()
        return dict(row)

    async def follow(self, run: str, after: int | None = None) -> list[Json]:
        """All events of a run until it completes, over server-sent events."""
        variables = {"run": run, "after": after}
        async with asyncio.timeout(PATIENCE), self.stream(variables=variables) as results:
            return [event_of(result) async for result in results]


@dataclass(frozen=True, slots=True)
class Begun:
    """A question on its way."""

    tree: str
    question: str
    run: str


def event_of(result: Json) -> Json:
    """The event in one result of the subscription."""
    assert set(result) == {"data"}, result
    event: Json = result["data"]["runEvents"]
    return event


def is_opening(result: Json, after: int | None) -> bool:
    """Whether a result is what a stream of RUN_EVENTS begins with. It always is, unless the stream
    was refused.
    """
    if "errors" in result:
        return False
    event = event_of(result)
    assert (event["__typename"], event["seq"]) == ("StreamOpened", after or 0), event
    return True


async def without_opening(results: Any, after: int | None = None) -> AsyncGenerator[Json, None]:
    """The results of RUN_EVENTS, the first of which is checked and left out."""
    async with contextlib.aclosing(results):
        async for result in results:
            if not is_opening(result, after):
                yield result
            break
        async for result in results:
            yield result


def text_of(events: Sequence[Json], channel: str = "TEXT") -> str:
    """The text of a channel."""
    return "".join(each["text"] for each in events if each.get("channel") == channel)


def numbers_of(events: Sequence[Json]) -> list[int]:
    """The numbers of events."""
    return [each["seq"] for each in events]


async def _results(lines: aiohttp.StreamReader) -> Any:
    """Frames of exactly two lines and an empty one; comments are heartbeats."""
    frame: list[str] = []
    async for raw in lines:
        line = raw.decode()
        assert line.endswith("\n"), line
        assert "\r" not in line, line
        if line != "\n":
            frame.append(line[:-1])
            continue
        if not frame[0].startswith(":"):
            (event, data) = frame
            if event == "event: complete":
                assert data == "data: "
                assert await lines.read() == b""
                return
            assert event == "event: next"
            yield json.loads(data.removeprefix("data: "))
        frame = []
    raise EOFError("the stream broke off before its complete event")


def dialled(server: ServerProcess | str, headers: Mapping[str, str] = {}, **given: Any) -> connect:
    """A WebSocket that has said nothing yet, to a server or an address."""
    address = server if isinstance(server, str) else server.socket_url
    options: dict[str, Any] = {
        "subprotocols": ["graphql-transport-ws"],
        "proxy": None,
        "max_size": None,
        **given,
    }
    return connect(address, additional_headers=dict(headers), **options)


@dataclass
class Operation:
    """One operation on a socket: its results until it completes or is refused."""

    id: str
    results: asyncio.Queue[Json | None] = field(default_factory=asyncio.Queue)
    errors: list[Json] = field(default_factory=list)
    # What `after` was asked for, while the opening of RUN_EVENTS is still to come.
    opens_after: int | None = None

    def __aiter__(self) -> Operation:
        return self

    async def __anext__(self) -> Json:
        async with asyncio.timeout(PATIENCE):
            result = await self.results.get()
        if result is None:
            raise StopAsyncIteration
        after, self.opens_after = self.opens_after, None
        if after is not None and is_opening(result, after):
            return await anext(self)
        return result


class Socket:
    """The graphql-transport-ws protocol, spoken by hand, so that every frame is looked at."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._operations: dict[str, Operation] = {}
        self._count = 0

    async def send(self, message: Json) -> None:
        """One message."""
        await self.connection.send(json.dumps(message))

    async def receive(self) -> Json:
        """The next message, which must be a text frame."""
        async with asyncio.timeout(PATIENCE):
            frame = await self.connection.recv()
        assert isinstance(frame, str), "a binary frame"
        message: Json = json.loads(frame)
        return message

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Deal messages out to their operations while the block runs."""
        listener = asyncio.create_task(self._listen())
        try:
            yield
        finally:
            listener.cancel()
            ended = await asyncio.gather(listener, return_exceptions=True)
        for each in ended:
            if isinstance(each, AssertionError):
                raise each

    async def _listen(self) -> None:
        try:
            async for frame in self.connection:
                assert isinstance(frame, str), "a binary frame"
                message = json.loads(frame)
                operation = self._operations[message["id"]]
                if message["type"] == "next":
                    operation.results.put_nowait(message["payload"])
                    continue
                if message["type"] == "error":
                    operation.errors = message["payload"]
                else:
                    assert message == {"type": "complete", "id": operation.id}
                del self._operations[operation.id]
                operation.results.put_nowait(None)
        except websockets.ConnectionClosed:
            pass
        finally:
            for operation in self._operations.values():
                operation.results.put_nowait(None)

    async def start(
        self, query: str, variables: Json | None = None, operation: str | None = None
    ) -> Operation:
        """Begin an operation; the opening of RUN_EVENTS is checked and left out."""
        self._count += 1
        started = self._operations[str(self._count)] = Operation(str(self._count))
        if query == RUN_EVENTS:
            started.opens_after = (variables or {}).get("after") or 0
        asked = {"query": query, "variables": variables or {}, "operationName": operation}
        await self.send({"type": "subscribe", "id": started.id, "payload": asked})
        return started

    async def stop(self, operation: Operation) -> None:
        """Hang one operation up."""
        del self._operations[operation.id]
        await self.send({"type": "complete", "id": operation.id})

    async def ask(
        self, query: str, variables: Json | None = None, operation: str | None = None
    ) -> Json:
        """The data of a query or mutation that must succeed."""
        started = await self.start(query, variables, operation)
        results = [result async for result in started]
        assert started.errors == []
        (result,) = results
        assert set(result) == {"data"}, result
        data: Json = result["data"]
        return data

    async def follow(self, run: str, after: int | None = None) -> list[Json]:
        """All events of a run until it completes."""
        started = await self.start(RUN_EVENTS, {"run": run, "after": after})
        events = [event_of(result) async for result in started]
        assert started.errors == []
        return events


def node_program() -> str:
    """Where Node is; the test is skipped where it or the client packages are missing."""
    node = shutil.which("node")
    if node is None or not CLIENTS.joinpath("node_modules").is_dir():
        pytest.skip("needs Node and the packages of tests/conformance (npm ci)")
    return node


async def node_lines(script: str, **arguments: Any) -> AsyncIterator[Json]:
    """What a program in tests/conformance prints, line by line as JSON; it must end well."""
    process = await asyncio.create_subprocess_exec(
        node_program(),
        script,
        json.dumps(arguments),
        cwd=CLIENTS,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    try:
        async for line in process.stdout:
            yield json.loads(line)
        assert await process.wait() == 0, (await complaints).decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await complaints


async def command(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """A command of the server: its exit status and what it printed to both outputs."""
    process = await ForkedCommand(
        arguments, {**base_environment(), "MIRRORGRAPH_PORT": "0", **environment}
    ).start()
    async with asyncio.timeout(PATIENCE):
        printed, complained = await asyncio.gather(process.stdout.read(), process.stderr.read())
        status = await process.wait()
    return status, printed.decode(), complained.decode()
