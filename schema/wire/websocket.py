"""GraphQL over WebSocket: the server's side of graphql-transport-ws.

Each operation is a task with a context of its own. Close codes are those of the reference server,
graphql-ws; what it leaves open is said where it is decided.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import orjson
from starlette.types import Message, Receive, Scope, Send

from schema.wire.connections import Connections
from schema.wire.errors import ErrorBody, Refused, masked
from schema.wire.execution import Caller, Operations, SignIn
from schema.wire.racing import race
from schema.wire.requests import has_too_many_values, request_of

PROTOCOL = "graphql-transport-ws"


class CloseCode(IntEnum):
    """Why the server closes a socket."""

    TRY_AGAIN_LATER = 1013
    BAD_REQUEST = 4400
    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    SUBPROTOCOL_NOT_ACCEPTABLE = 4406
    INITIALISATION_TIMEOUT = 4408
    SUBSCRIBER_EXISTS = 4409
    TOO_MANY_INITIALISATIONS = 4429
    # The reference server breaks such connections off; clients take this one as a reason to
    # connect again.
    PONG_TIMEOUT = 4499


class Closed(Exception):
    """The server closes the socket."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        # A close frame has room for 123 bytes.
        self.reason = reason.encode()[:123].decode(errors="ignore")


class Left(Exception):
    """The client has closed the socket, or the connection is lost."""


@dataclass(frozen=True, slots=True)
class SocketTimes:
    """How long a socket waits, in seconds."""

    initialisation: float
    heartbeat: float


async def serve_socket(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    operations: Operations,
    sign_in: SignIn,
    connections: Connections,
    times: SocketTimes,
) -> None:
    """Serve one WebSocket from its handshake to its end."""
    await receive()  # websocket.connect
    try:
        with connections.open("websocket"):
            await _Socket(scope, receive, send, operations, sign_in, times).serve()
    except Refused as refused:
        operations.metrics.count(refused)
        await refuse_handshake(scope, send, refused)


async def refuse_handshake(scope: Scope, send: Send, refused: Refused) -> None:
    """Answer the handshake with a status, and a body where the server can send one."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": CloseCode.TRY_AGAIN_LATER})
        return
    headers = {"content-type": "application/json; charset=utf-8", **refused.headers}
    await send(
        {
            "type": "websocket.http.response.start",
            "status": refused.status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    body = orjson.dumps({"errors": refused.errors})
    await send({"type": "websocket.http.response.body", "body": body})


class _Socket:
    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        operations: Operations,
        sign_in: SignIn,
        times: SocketTimes,
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send_event = send
        self._operations = operations
        self._sign_in = sign_in
        self._times = times
        self._caller: Caller | None = None
        self._is_initialised = False
        self._signed_in = asyncio.Event()
        self._heard = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # Those whose ids are free again: still being cancelled, or saying their last message.
        self._ending: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        is_spoken = PROTOCOL in self._scope["subprotocols"]
        await self._send(
            {"type": "websocket.accept", "subprotocol": PROTOCOL if is_spoken else None}
        )
        try:
            if not is_spoken:
                raise Closed(
                    CloseCode.SUBPROTOCOL_NOT_ACCEPTABLE, f"Subprotocol not acceptable: {PROTOCOL}"
                )
            await race(
                self._listen(),
                initialisation=self._expect_initialisation(),
                heartbeat=self._keep_alive(),
                sign_in=self._watch_sign_in(),
            )
        except Closed as closed:
            await self._close(closed)
        except Left:
            pass
        except Exception as error:
            # A mistake of ours, or a database that does not answer while somebody signs in.
            masked(str(error), uuid.uuid4().hex, error)
            await self._close(Closed(CloseCode.TRY_AGAIN_LATER, "INTERNAL"))
        finally:
            await self._end_operations()

    async def _listen(self) -> None:
        while True:
            event = await self._receive()
            if event["type"] == "websocket.disconnect":
                raise Left
            self._heard.set()
            await self._take(_message(event))

    async def _take(self, message: Mapping[str, Any]) -> None:
        match message["type"]:
            case "connection_init":
                await self._initialise(message.get("payload") or {})
            case "ping":
                payload = message.get("payload")
                await self._say("pong", **({} if payload is None else {"payload": payload}))
            case "pong":
                pass
            case "subscribe":
                await self._begin(message)
            case "complete":
                task = self._tasks.pop(message["id"], None)
                if task is not None:
                    task.cancel()
                    self._ending.add(task)
            case _:
                raise Closed(CloseCode.BAD_REQUEST, "Unknown type of message")

    async def _initialise(self, payload: Mapping[str, Any]) -> None:
        if self._is_initialised:
            raise Closed(CloseCode.TOO_MANY_INITIALISATIONS, "Too many initialisation requests")
        self._is_initialised = True
        # Browsers cannot send headers with a handshake: what the payload holds goes before them.
        raw = self._scope["headers"]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
        headers |= {name.lower(): str(value) for name, value in payload.items()}
        try:
            self._caller = await self._sign_in(headers)
        except Refused as refused:
            self._operations.metrics.count(refused)
            is_ours = refused.status >= 500
            code = CloseCode.TRY_AGAIN_LATER if is_ours else CloseCode.FORBIDDEN
            raise Closed(code, refused.code) from refused
        await self._say("connection_ack")
        self._signed_in.set()

    async def _begin(self, message: Mapping[str, Any]) -> None:
        caller, name = self._caller, message["id"]
        if caller is None:
            raise Closed(CloseCode.UNAUTHORIZED, "Unauthorized: wait for connection_ack")
        if name in self._tasks:
            raise Closed(CloseCode.SUBSCRIBER_EXISTS, f"Subscriber for {name} already exists")
        limit = self._operations.limits.operations
        # Nothing more is read from a client that does not let its operations end.
        while self._ending and len(self._tasks) + len(self._ending) >= limit:
            await asyncio.wait(self._ending, return_when=asyncio.FIRST_COMPLETED)
        if len(self._tasks) >= limit:
            said = f"A socket carries at most {limit} operations at once."
            refused = Refused(429, "OPERATION_LIMIT", said)
            self._operations.metrics.count(refused)
            await self._say("error", id=name, payload=refused.errors)
            return
        task = asyncio.create_task(self._carry_out(name, caller, message["payload"]))
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._forget(name, task))

    def _forget(self, id: str, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if self._tasks.get(id) is task:
            del self._tasks[id]
        if not task.cancelled():
            task.exception()  # a connection that was lost meanwhile; the listener knows

    async def _carry_out(self, id: str, caller: Caller, payload: Mapping[str, Any]) -> None:
        try:
            errors = await self._send_results(id, caller, payload)
        except Refused as refused:
            self._operations.metrics.count(refused)
            errors = refused.errors
        # The id is free from here on: the client may use it again once it reads the end.
        task = asyncio.current_task()
        if task is not None and self._tasks.get(id) is task:
            self._ending.add(self._tasks.pop(id))
        if errors:
            await self._say("error", id=id, payload=errors)
        else:
            await self._say("complete", id=id)

    async def _send_results(
        self, id: str, caller: Caller, payload: Mapping[str, Any]
    ) -> list[ErrorBody]:
        """Send results; the errors of a stream that broke off."""
        prepared = self._operations.prepare(request_of(payload))
        async with aclosing(self._operations.stream(prepared, caller.context())) as responses:
            async for response in responses:
                if "data" not in response:
                    errors: list[ErrorBody] = response["errors"]
                    return errors
                try:
                    await self._say("next", id=id, payload=response)
                except Left:
                    # The listener learns of it too and ends all operations: an end of one's own
                    # would be cancelled in the middle of its clean-up.
                    await asyncio.Event().wait()
        return []

    async def _say(self, type: str, **members: Any) -> None:
        # Text frames: clients do not take JSON from binary ones.
        text = orjson.dumps({"type": type, **members}).decode()
        await self._send({"type": "websocket.send", "text": text})

    async def _send(self, event: Message) -> None:
        try:
            await self._send_event(event)
        except OSError:  # how servers say that the connection is lost
            raise Left from None

    async def _close(self, closed: Closed) -> None:
        await self._end_operations()
        message = {"type": "websocket.close", "code": int(closed.code), "reason": closed.reason}
        with suppress(Left):  # it is closed already
            await self._send(message)

    async def _end_operations(self) -> None:
        tasks = [*self._tasks.values(), *self._ending]
        for task in tasks:
            # Those whose client has completed them are cleaning up: cancelled again, they would
            # leave that half done.
            if not (task in self._ending and task.cancelling()):
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _expect_initialisation(self) -> None:
        await asyncio.sleep(self._times.initialisation)
        if not self._is_initialised:
            raise Closed(CloseCode.INITIALISATION_TIMEOUT, "Connection initialisation timeout")
        await asyncio.Event().wait()

    async def _keep_alive(self) -> None:
        """Ping the client for ever; close when it says nothing until the next ping is due."""
        await self._signed_in.wait()
        while True:
            await asyncio.sleep(self._times.heartbeat)
            self._heard.clear()
            await self._say("ping")
            try:
                async with asyncio.timeout(self._times.heartbeat):
                    await self._heard.wait()
            except TimeoutError:
                raise Closed(CloseCode.PONG_TIMEOUT, "No pong in time") from None

    async def _watch_sign_in(self) -> None:
        await self._signed_in.wait()
        assert self._caller is not None
        await self._caller.signed_out()
        raise Closed(CloseCode.FORBIDDEN, "UNAUTHENTICATED")


def _message(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message in a frame; raises Closed when it is none of the protocol."""
    text = event.get("text")
    if text is None:
        raise Closed(CloseCode.BAD_REQUEST, "Messages are text frames")
    if has_too_many_values(text):
        raise Closed(CloseCode.BAD_REQUEST, "The message has too many values")
    try:
        message = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Closed(CloseCode.BAD_REQUEST, "The message is not JSON") from None
    if not _is_well_formed(message):
        raise Closed(CloseCode.BAD_REQUEST, f"The message is none of {PROTOCOL}")
    return message  # type: ignore[no-any-return]


def _is_well_formed(message: Any) -> bool:
    """As the reference server judges it; what `payload` asks for is looked at per operation."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return False
    kind, payload, name = message["type"], message.get("payload"), message.get("id")
    if kind in {"subscribe", "complete"} and (not isinstance(name, str) or not name):
        return False
    if kind in {"connection_init", "ping", "pong"}:
        return isinstance(payload, dict | None)
    return kind != "subscribe" or _is_request(payload)


def _is_request(payload: Any) -> bool:
    try:
        request_of(payload)
    except Refused:
        return False
    return True
