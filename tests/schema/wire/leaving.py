"""Clients that leave in every way there is, over every transport: on plain connections, so that
each can be cut wherever one wants.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.e2e.callers import PATIENCE

_HANDSHAKE = (
    "GET /graphql HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
)


class Line:
    """A connection to a server, and the ways in which it can end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, address: str) -> Line:
        """A line to an `http://` address. Little fits into it that is not read."""
        there = urlsplit(address)
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connection, (there.hostname, there.port))
        return cls(*await asyncio.open_connection(sock=connection, limit=4_096))

    def send(self, content: bytes) -> None:
        """Say something."""
        self.writer.write(content)

    async def hear(self, wanted: bytes) -> bytes:
        """What comes up to these bytes and with them."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readuntil(wanted)

    async def close(self) -> None:
        """Say that nothing more will be sent or read, in order."""
        self.writer.close()

    async def half_close(self) -> None:
        """Say that nothing more will be sent; the server closes then."""
        self.writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            while await self.reader.read(65_536):
                pass
        self.writer.close()

    async def abort(self) -> None:
        """Be gone with a reset, as when a program crashes."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Client:
    """One client over one transport, with an operation at most."""

    # How it can end, by the names of its methods.
    ENDS: ClassVar[tuple[str, ...]] = ("close", "half_close", "abort")
    CARRIES_STREAMS: ClassVar[bool] = True

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self._token = token
        self._lines: list[Line] = []

    async def line(self) -> Line:
        """A new connection."""
        line = await Line.to(self.address)
        self._lines.append(line)
        return line

    def http(
        self, method: str, path: str = "", body: Any = None, cut: int | None = None, **headers: str
    ) -> bytes:
        """A request over HTTP, up to `cut` bytes before its end."""
        content = b"" if body is None else json.dumps(body).encode()
        named = {"Host": "localhost", "Content-Length": str(len(content))}
        if body is not None:
            named["Content-Type"] = "application/json"
        if self._token is not None:
            named["Authorization"] = f"Bearer {self._token}"
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} /graphql{path} HTTP/1.1", *(f"{k}: {v}" for k, v in named.items())]
        whole = "\r\n".join([*lines, "", ""]).encode() + content
        return whole if cut is None else whole[:-cut]

    async def begin(self, query: str, variables: Any = None) -> None:
        """Ask for an operation; nothing of its answer is read."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close all lines in order."""
        for line in self._lines:
            await line.close()

    async def half_close(self) -> None:
        """Say on all lines that nothing more comes."""
        for line in self._lines:
            await line.half_close()

    async def abort(self) -> None:
        """Break all lines off."""
        for line in self._lines:
            await line.abort()

    async def heard_number(self) -> int:
        """The `seq` in the next event of a run, wherever it is wrapped in."""
        await self._lines[-1].hear(b'"seq":')
        return int((await self._lines[-1].hear(b","))[:-1])

    async def gone(self) -> None:
        """Leave nothing open, however the end was."""
        for line in self._lines:
            line.writer.close()
            line.writer.transport.abort()


class ByPost(Client):
    """A single response."""

    CARRIES_STREAMS = False
    accept = "application/json"

    async def begin(self, query: str, variables: Any = None) -> None:
        line = await self.line()
        asked = {"query": query, "variables": variables}
        line.send(self.http("POST", body=asked, Accept=self.accept))


class ByBatch(ByPost):
    """Two operations in a list; the first one runs."""

    async def begin(self, query: str, variables: Any = None) -> None:
        line = await self.line()
        asked = {"query": query, "variables": variables}
        line.send(self.http("POST", body=[asked, asked], Accept=self.accept))


class ByEvents(ByPost):
    """A stream of server-sent events for one operation."""

    CARRIES_STREAMS = True
    accept = "text/event-stream"


class ByParts(ByPost):
    """A multipart stream, which carries subscriptions only."""

    CARRIES_STREAMS = True
    accept = "multipart/mixed;subscriptionSpec=1.0"


class ByOneStream(Client):
    """A stream of server-sent events for many operations, each by a request of its own."""

    ENDS = (*Client.ENDS, "complete")

    async def open(self) -> None:
        """Reserve the stream and open it."""
        asking = await self.line()
        asking.send(self.http("PUT"))
        await asking.hear(b"\r\n\r\n")
        self._stream_token = (await asking.reader.read(100)).decode()
        stream = await self.line()
        stream.send(self.http("GET", f"?token={self._stream_token}", Accept="text/event-stream"))
        await stream.hear(b":\n\n")

    async def begin(self, query: str, variables: Any = None, id: str = "1") -> None:
        if not self._lines:
            await self.open()
        asked = {"query": query, "variables": variables, "extensions": {"operationId": id}}
        await self._ask(
            self.http("POST", body=asked, X_GraphQL_Event_Stream_Token=self._stream_token), b"202"
        )

    async def complete(self, id: str = "1") -> None:
        """End the operation; the stream stays."""
        headers = {"X_GraphQL_Event_Stream_Token": self._stream_token}
        await self._ask(self.http("DELETE", f"?operationId={id}", **headers), b"200")

    async def event(self) -> tuple[str, Any]:
        """The next event on the stream: its name and its data."""
        frame = (await self._lines[1].hear(b"\n\n")).decode()
        lines = [each for each in frame.splitlines() if each.startswith(("event: ", "data: "))]
        name, data = (each.partition(": ")[2] for each in lines)
        return name, json.loads(data)

    async def send_complete(self, id: str) -> None:
        """End an operation without waiting for the answer, which comes once it has ended."""
        headers = {"X_GraphQL_Event_Stream_Token": self._stream_token}
        line = await self.line()
        line.send(self.http("DELETE", f"?operationId={id}", **headers))

    async def _ask(self, request: bytes, status: bytes) -> None:
        asking = self._lines[0]
        asking.send(request)
        head = await asking.hear(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + status), head


class BySocket(Client):
    """A WebSocket."""

    ENDS = (*Client.ENDS, "complete", "say_goodbye", "complete_and_abort", "cut")

    async def open(self) -> None:
        """Shake hands and initialise."""
        line = await self.line()
        line.send(_HANDSHAKE.encode())
        await line.hear(b"\r\n\r\n")
        payload = {"Authorization": f"Bearer {self._token}"} if self._token else None
        line.send(frame({"type": "connection_init", "payload": payload}))
        await line.hear(b'{"type":"connection_ack"}')

    async def begin(self, query: str, variables: Any = None, id: str = "1") -> None:
        if not self._lines:
            await self.open()
        asked = {"query": query, "variables": variables}
        self._lines[0].send(frame({"type": "subscribe", "id": id, "payload": asked}))

    async def complete(self, id: str = "1") -> None:
        """End the operation; the socket stays."""
        self._lines[0].send(frame({"type": "complete", "id": id}))

    async def send_complete(self, id: str) -> None:
        """The same: there is no answer to wait for."""
        await self.complete(id)

    async def say_goodbye(self) -> None:
        """The closing handshake of WebSocket, and then the end of the connection."""
        self._lines[0].send(b"\x88\x82" + bytes(4) + struct.pack("!H", 1000))
        await self.half_close()

    async def complete_and_abort(self) -> None:
        """Leave while the operation that was ended is still being cleaned up."""
        await self.complete()
        await self.abort()

    async def cut(self) -> None:
        """Be lost in the middle of a frame."""
        self._lines[0].send(frame({"type": "complete", "id": "1"})[:-10])
        await self.close()


TRANSPORTS: tuple[type[Client], ...] = (ByPost, ByBatch, ByEvents, ByParts, ByOneStream, BySocket)


def frame(message: Any) -> bytes:
    """A text frame of a client; its mask is all zeros, which leaves the text as it is."""
    content = json.dumps(message).encode()
    size = len(content)
    head = bytes([0x81, 0x80 | size]) if size < 126 else b"\x81\xfe" + struct.pack("!H", size)
    return head + bytes(4) + content
