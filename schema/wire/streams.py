"""Responses over HTTP that go on: what server-sent events and multipart have in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from starlette.types import Receive, Send

from schema.wire.errors import RequestError, error_body
from schema.wire.execution import Caller, Response
from schema.wire.racing import EndedEarly, race

# What a stream says last when the sign-in that opened it has ended.
SIGNED_OUT = error_body("UNAUTHENTICATED", "Your sign-in has ended: sign in again.")


class Stream:
    """The body of a response, written piece by piece. Writing waits while the client is slow."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def begin(self, headers: Mapping[str, str]) -> None:
        """Send the head."""
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def write(self, piece: bytes) -> None:
        """Send a piece of the body."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        """Say that the body is complete."""
        await self._send({"type": "http.response.body", "body": b""})


async def left(receive: Receive) -> None:
    """Return when the client has left; what it may still send is ignored."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def heartbeat(stream: Stream, beat: bytes, seconds: float) -> None:
    """Write something that means nothing, for ever, so that proxies keep the connection."""
    while True:
        await asyncio.sleep(seconds)
        await stream.write(beat)


@dataclass(frozen=True, slots=True)
class Framing:
    """How one protocol writes the stream of one operation."""

    headers: Mapping[str, str]
    opening: bytes
    # A response, or one that has errors and no data.
    frame: Callable[[Response], bytes]
    beat: bytes
    ending: bytes


async def send_stream(
    receive: Receive,
    send: Send,
    caller: Caller,
    responses: AsyncGenerator[Response, None],
    framing: Framing,
    headers: Mapping[str, str],
    heartbeat_seconds: float,
) -> None:
    """Send the responses of one operation as they come, until they end, the client leaves, or its
    sign-in ends.
    """
    stream = Stream(send)
    await stream.begin({**framing.headers, **headers})
    await stream.write(framing.opening)

    async def pump() -> None:
        async with aclosing(responses):
            try:
                async for response in responses:
                    await stream.write(framing.frame(response))
            except RequestError as error:
                await stream.write(framing.frame({"errors": error.errors}))

    try:
        await race(
            pump(),
            gone=left(receive),
            silence=heartbeat(stream, framing.beat, heartbeat_seconds),
            signed_out=caller.signed_out(),
        )
    except EndedEarly as early:
        if early.reason == "gone":
            return
        await stream.write(framing.frame({"errors": [SIGNED_OUT]}))
    await stream.write(framing.ending)
    await stream.end()
