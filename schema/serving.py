"""How uvicorn serves the application: in order from its first connection to its last."""

from __future__ import annotations

import asyncio
import logging
import socket
from http import HTTPStatus
from typing import Any

import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from db.settings import Settings
from schema.app import Server
from schema.wire.errors import error_body

# How long a client may leave what was sent to it unread before its connection is cut. Writing
# waits that long, and what waits holds memory.
STALL_SECONDS = 30.0
# The largest head of a request, its headers or its URL, and how long it may take to come.
MAX_HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 30.0
_HEAD_TOO_LARGE = (
    431,
    error_body("HEADERS_TOO_LARGE", "The headers are too large: send fewer or shorter."),
)
_URL_TOO_LONG = (
    414,
    error_body("URI_TOO_LONG", "The URL is too long: send the request by POST."),
)
_NOT_HTTP = (400, error_body("BAD_REQUEST", "This is not HTTP/1.1."))


class PortTaken(Exception):
    """The server cannot listen where it was told to; the message is one line."""


class _CutsStalledClients:
    """A protocol that cuts the connection of a client that reads nothing any more."""

    transport: Any
    loop: asyncio.AbstractEventLoop
    _stalled: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._stalled = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._forget()
        super().resume_writing()  # type: ignore[misc]

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)  # type: ignore[misc]

    def cut_if_stalled(self) -> None:
        """Cut the connection now if its client has left something unread."""
        if self._stalled is not None:
            self.transport.abort()

    def _forget(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class _HeadTooLarge(Exception):
    pass


class _BoundsHeads(HttpToolsProtocol):
    """A protocol whose request heads are bounded in size and in time, which uvicorn leaves open."""

    _is_in_head = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _refusal = _NOT_HTTP

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_ended()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_in_head or self.transport.is_closing():
            return
        # Whatever came belongs to a head without an end so far.
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refusal = _HEAD_TOO_LARGE
            self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0
        if self._head_timer is None:
            self._await_head()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_HEAD_BYTES:
            self._refusal = _URL_TOO_LONG
            raise _HeadTooLarge

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._head_ended()
        if sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refusal = _HEAD_TOO_LARGE
            raise _HeadTooLarge
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with a head, and close."""
        status, error = self._refusal
        body = orjson.dumps({"errors": [error]})
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            "content-type: application/json; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _head_ended(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class PatientHTTP(_CutsStalledClients, _BoundsHeads):
    """HTTP."""


class PatientWebSocket(_CutsStalledClients, WebSocketsSansIOProtocol):
    """WebSocket."""

    async def send(self, message: Any) -> None:
        """Send what the application says."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            # uvicorn takes a refused handshake for one that was forgotten, and logs an error.
            self.handshake_complete = True

    def shutdown(self) -> None:
        """Close because the server stops."""
        try:
            super().shutdown()
        except InvalidState:
            # The client has begun to close at the same moment. uvicorn would let this end the
            # whole stop, the database's with it.
            self.transport.close()


class DrainingServer(uvicorn.Server):
    """Ends open streams before uvicorn closes their connections under them."""

    def __init__(self, config: uvicorn.Config, server: Server) -> None:
        super().__init__(config)
        self._server = server

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then print the address."""
        try:
            await super().startup(sockets)
        except SystemExit:  # how uvicorn says so, having logged the reason
            raise PortTaken(
                f"Cannot listen on port {self.config.port} of {self.config.host}: stop what does, "
                "or choose another with MIRRORGRAPH_PORT."
            ) from None
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            host = f"[{host}]" if ":" in host else host
            print(f"Mirrorgraph is ready at http://{host}:{port}", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, stop, close. All of it here: uvicorn raises the signal again afterwards."""
        await self._server.drain()
        # Who has not read by now what was sent is not waited for any longer.
        for connection in list(self.server_state.connections):
            if isinstance(connection, _CutsStalledClients):
                connection.cut_if_stalled()
        await super().shutdown(sockets)
        await self._server.close()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    # uvicorn logs a traceback whenever a client sends a frame that is no text: any client could
    # fill the log with them.
    return record.msg != "Invalid UTF-8 sequence received from client."


def uvicorn_config(app: Any, settings: Settings) -> uvicorn.Config:
    """What uvicorn is told."""
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=PatientHTTP,
        ws=PatientWebSocket,
        ws_max_size=settings.max_request_bytes,
        ws_per_message_deflate=False,
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=5,
        server_header=False,
    )
