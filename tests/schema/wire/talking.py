"""Clients that leave nothing out: HTTP byte by byte, WebSocket frame by frame."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import websockets
from websockets.asyncio.client import ClientConnection

from tests.e2e.callers import PATIENCE, Json, dialled
from tests.schema.wire.serving import Wire

EVENTS = {"Accept": "text/event-stream"}
TOKEN = "X-GraphQL-Event-Stream-Token"
# Small, so that what is not read piles up in the server soon.
_SMALL = 32_768


async def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; it is looked at again and again."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def quiet(count: Callable[[], float]) -> float:
    """The count once it has stopped to grow: the same for fifty looks in a row."""
    last, looks = count(), 0
    async with asyncio.timeout(PATIENCE):
        while looks < 50:
            await asyncio.sleep(0.004)
            now = count()
            looks = looks + 1 if now == last else 0
            last = now
    return last


def figure(wire: Wire, name: str, **labels: str) -> float:
    """What the server counts under a name."""
    return wire.metrics.registry.get_sample_value(f"mirrorgraph_{name}", labels) or 0.0


def events_executed(wire: Wire) -> float:
    """How many events of subscriptions have been executed, whether or not they were read."""
    return figure(wire, "operation_seconds_count", kind="subscription")


class Exchange:
    """One request over HTTP/1.1 on a connection of its own, read as it comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self._body = b""

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send the request and read the head of the answer."""
        all_headers = {"Host": "localhost", "Content-Length": str(len(body)), **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in all_headers.items())]
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")[:-2]
        self.status = int(first.split(" ")[1])
        pairs = (each.partition(": ") for each in rest)
        self.headers = {name.lower(): value for name, _, value in pairs}

    async def piece(self) -> bytes:
        """The next chunk of the body; empty when the body is complete."""
        async with asyncio.timeout(PATIENCE):
            size = int(await self._reader.readline(), 16)
            piece = await self._reader.readexactly(size)
            assert await self._reader.readline() == b"\r\n"
        return piece

    async def read(self, size: int) -> bytes:
        """So many bytes of the body, which chunks do not show."""
        while len(self._body) < size:
            piece = await self.piece()
            assert piece, f"the body is complete after {self._body!r}"
            self._body += piece
        read, self._body = self._body[:size], self._body[size:]
        return read

    async def expect(self, wanted: bytes) -> None:
        """The next bytes of the body are these."""
        assert await self.read(len(wanted)) == wanted

    async def rest(self) -> bytes:
        """Everything that is left of the body."""
        if "content-length" in self.headers:
            return await self._reader.readexactly(int(self.headers["content-length"]))
        while piece := await self.piece():
            self._body += piece
        return self._body

    async def cut(self) -> bool:
        """Whether the connection breaks off before the body is complete."""
        try:
            await self.rest()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            return True
        return False

    def abort(self) -> None:
        """Leave without a word."""
        self._writer.transport.abort()


@contextlib.asynccontextmanager
async def asking(
    wire: Wire,
    query: str | None = None,
    *,
    method: str = "POST",
    path: str = "",
    headers: Mapping[str, str] = EVENTS,
    **parameters: Any,
) -> AsyncIterator[Exchange]:
    """An exchange whose head has been read; the body of a POST is JSON."""
    body = b""
    if query is not None:
        body = json.dumps({"query": query, **parameters}).encode()
        headers = {"Content-Type": "application/json", **headers}
    reader, writer = await asyncio.open_connection(sock=await connected(wire))
    exchange = Exchange(reader, writer)
    try:
        await exchange.ask(method, f"/graphql{path}", headers, body)
        yield exchange
    finally:
        exchange.abort()


async def reserve(wire: Wire, headers: Mapping[str, str] = {}) -> str:
    """The token of a new stream."""
    async with asking(wire, method="PUT", headers=headers) as exchange:
        assert exchange.status == 201
        assert exchange.headers["content-type"] == "text/plain; charset=utf-8"
        assert exchange.headers["cache-control"] == "no-store"
        return (await exchange.rest()).decode()


def opening(wire: Wire, token: str) -> contextlib.AbstractAsyncContextManager[Exchange]:
    """The stream of a token; it is all that EventSource can send."""
    return asking(wire, method="GET", path=f"?token={token}", headers=EVENTS)


async def begin(
    wire: Wire, token: str, id: str, query: str, headers: Mapping[str, str] = {}
) -> None:
    """Begin an operation, which must be accepted."""
    given = {TOKEN: token, **headers}
    async with asking(wire, query, headers=given, extensions={"operationId": id}) as exchange:
        assert (exchange.status, await exchange.rest()) == (202, b"")


async def connected(wire: Wire) -> socket.socket:
    """A connection on whose way to the client little fits that is not read."""
    connection = socket.socket(proto=socket.IPPROTO_TCP)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    connection.setblocking(False)
    address = urlsplit(wire.address)
    await asyncio.get_running_loop().sock_connect(connection, (address.hostname, address.port))
    return connection


class Talk:
    """A WebSocket on which every message is said and heard one by one."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, message: Any) -> None:
        """Send a frame: a text or bytes as they are, anything else as JSON."""
        is_raw = isinstance(message, str | bytes)
        await self.connection.send(message if is_raw else json.dumps(message))

    async def subscribe(self, id: str, query: str, **payload: Any) -> None:
        """Begin an operation."""
        await self.say({"type": "subscribe", "id": id, "payload": {"query": query, **payload}})

    async def stop(self, id: str) -> None:
        """End an operation."""
        await self.say({"type": "complete", "id": id})

    async def hear(self) -> Json:
        """The next message, which is a text frame."""
        async with asyncio.timeout(PATIENCE):
            frame = await self.connection.recv()
        assert isinstance(frame, str), "a binary frame"
        message: Json = json.loads(frame)
        return message

    async def nothing_more(self) -> None:
        """The socket lives, and until now nothing was sent that has not been heard."""
        await self.say({"type": "ping", "payload": {"is": "anything left"}})
        assert await self.hear() == {"type": "pong", "payload": {"is": "anything left"}}

    async def ended(self) -> tuple[int | None, str]:
        """The code and the reason with which the server closes, before any other message."""
        try:
            message = await self.hear()
        except websockets.ConnectionClosed as closed:
            received = closed.rcvd
            return (received.code, received.reason) if received else (None, "")
        raise AssertionError(f"the socket is open and says {message}")


@contextlib.asynccontextmanager
async def talking(
    address: str, headers: Mapping[str, str] = {}, *, init: Any = None, **given: Any
) -> AsyncIterator[Talk]:
    """A socket; initialised with the payload `init`, unless that is `False`."""
    async with dialled(address, headers, **given) as connection:
        talk = Talk(connection)
        if init is not False:
            await talk.say({"type": "connection_init", "payload": init})
            assert await talk.hear() == {"type": "connection_ack"}
        yield talk


def next_(id: str, **data: Any) -> Json:
    """A result."""
    return {"type": "next", "id": id, "payload": {"data": data}}


def complete(id: str) -> Json:
    """The end of an operation."""
    return {"type": "complete", "id": id}


def error(id: str, code: str, message: str, **more: Any) -> Json:
    """The end of an operation that failed or was refused, with one error."""
    body = {"message": message, "extensions": {"code": code}, **more}
    return {"type": "error", "id": id, "payload": [body]}
