"""GraphQL over server-sent events, by the protocol of graphql-sse: a stream for each operation
(distinct connections mode), or one stream for many (single connection mode).

Frames end in plain line feeds, since urql splits on those alone.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import orjson
from starlette.types import Receive, Send

from schema.wire.connections import Connections
from schema.wire.errors import Refused, RequestError
from schema.wire.execution import Caller, OperationContext, Operations, Prepared, Response
from schema.wire.racing import EndedEarly, race
from schema.wire.streams import SIGNED_OUT, Framing, Stream, heartbeat, left

EVENT_STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    # Asks nginx to pass events on at once.
    "x-accel-buffering": "no",
}
_COMMENT = b":\n\n"

# How long a reservation waits for its stream.
RESERVATION_SECONDS = 30.0


def _event(name: str, value: Any = None) -> bytes:
    # `complete` needs its empty data line, or EventSource would not tell of it.
    data = b"" if value is None else orjson.dumps(value)
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


# One stream for one operation. Some browsers tell of the opening only when something has come.
DISTINCT = Framing(
    headers=EVENT_STREAM_HEADERS,
    opening=_COMMENT,
    frame=lambda response: _event("next", response),
    beat=_COMMENT,
    ending=_event("complete"),
)


class Reservation:
    """One stream for many operations of a caller: reserved, then opened, then gone."""

    def __init__(self, token: str, caller: Caller) -> None:
        self.token = token
        self.caller = caller
        self.is_taken = False
        self._is_over = False
        # What drops the reservation when nobody opens its stream.
        self.expiry: asyncio.TimerHandle | None = None
        self._opened: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()
        self._operations: dict[str, asyncio.Task[None]] = {}
        # Those that are cleaning up already: cancelled again, they would leave that half done.
        self._stopping: set[asyncio.Task[None]] = set()

    def begin(
        self, id: str, operations: Operations, prepared: Prepared, context: OperationContext
    ) -> None:
        """Begin an operation whose responses go to the stream. Raises Refused."""
        if self._is_over:  # while the request was being read
            raise _no_stream()
        if id in self._operations:
            raise Refused(409, "OPERATION_EXISTS", f"An operation {id!r} is running already.")
        if len(self._operations) >= operations.limits.operations:
            raise Refused(
                429,
                "OPERATION_LIMIT",
                f"A stream carries at most {operations.limits.operations} operations at once.",
            )
        task = asyncio.create_task(self._carry(id, operations.stream(prepared, context)))
        self._operations[id] = task
        task.add_done_callback(lambda _: self._forget(id, task))

    async def _carry(self, id: str, responses: AsyncGenerator[Response, None]) -> None:
        async with aclosing(responses):
            stream = await asyncio.shield(self._opened)
            try:
                async for response in responses:
                    await stream.write(_event("next", {"id": id, "payload": response}))
            except RequestError as error:
                payload = {"errors": error.errors}
                await stream.write(_event("next", {"id": id, "payload": payload}))
            await stream.write(_event("complete", {"id": id}))

    def _forget(self, id: str, task: asyncio.Task[None]) -> None:
        self._stopping.discard(task)
        if self._operations.get(id) is task:
            del self._operations[id]

    async def stop(self, id: str) -> None:
        """End an operation at the client's wish; nothing happens when it has ended."""
        task = self._operations.get(id)
        if task is not None:
            self._cancel(task)
            await asyncio.wait({task})

    def _cancel(self, task: asyncio.Task[None]) -> None:
        if task not in self._stopping:
            self._stopping.add(task)
            task.cancel()

    async def serve(self, receive: Receive, send: Send, heartbeat_seconds: float) -> None:
        """Be the stream until the client leaves or its sign-in ends."""
        stream = Stream(send)
        await stream.begin(EVENT_STREAM_HEADERS)
        await stream.write(_COMMENT)
        self._opened.set_result(stream)
        try:
            await race(
                heartbeat(stream, _COMMENT, heartbeat_seconds),
                gone=left(receive),
                signed_out=self.caller.signed_out(),
            )
        except EndedEarly as early:
            if early.reason == "signed_out":
                ids = list(self._operations)
                await asyncio.gather(*self.cancel(), return_exceptions=True)
                for each in ids:
                    said = {"id": each, "payload": {"errors": [SIGNED_OUT]}}
                    await stream.write(_event("next", said))
                    await stream.write(_event("complete", {"id": each}))
                await stream.end()

    def cancel(self) -> list[asyncio.Task[None]]:
        """End all operations; those that have yet to come to their end."""
        tasks = list(self._operations.values())
        for task in tasks:
            self._cancel(task)
        self._opened.cancel()
        self._is_over = True
        return tasks


class Reservations:
    """The streams of single connection mode, by their tokens."""

    def __init__(self, connections: Connections, most: int, heartbeat_seconds: float) -> None:
        self._connections = connections
        self._most = most
        self._heartbeat_seconds = heartbeat_seconds
        self._reservations: dict[str, Reservation] = {}

    def __len__(self) -> int:
        return len(self._reservations)

    def reserve(self, caller: Caller) -> str:
        """A token for a stream to come. Raises Refused."""
        if len(self._reservations) >= self._most:
            raise Refused(503, "CONNECTION_LIMIT", "Too many streams are reserved: try again.")
        token = secrets.token_urlsafe(32)
        reservation = self._reservations[token] = Reservation(token, caller)
        reservation.expiry = asyncio.get_running_loop().call_later(
            RESERVATION_SECONDS, self._expire, reservation
        )
        return token

    def _expire(self, reservation: Reservation) -> None:
        self._reservations.pop(reservation.token, None)
        reservation.cancel()

    def find(self, token: str, caller: Caller) -> Reservation:
        """The caller's reservation; raises Refused with 404."""
        reservation = self._reservations.get(token)
        if reservation is None or reservation.caller.identity != caller.identity:
            raise _no_stream()
        return reservation

    async def serve(self, token: str, receive: Receive, send: Send) -> None:
        """Be the stream of a token, which is all the proof there is: EventSource cannot send
        headers. Raises Refused.
        """
        reservation = self._reservations.get(token)
        if reservation is None:
            raise _no_stream()
        if reservation.is_taken:
            raise Refused(409, "STREAM_EXISTS", "The stream of this token is open already.")
        with self._connections.open("sse"):
            reservation.is_taken = True
            if reservation.expiry is not None:
                # Left to run out, it would keep a connection that is long gone in memory.
                reservation.expiry.cancel()
            try:
                await reservation.serve(receive, send, self._heartbeat_seconds)
            finally:
                self._reservations.pop(token, None)
                await asyncio.gather(*reservation.cancel(), return_exceptions=True)


def _no_stream() -> Refused:
    return Refused(404, "STREAM_NOT_FOUND", "No stream is reserved under this token: PUT one.")
