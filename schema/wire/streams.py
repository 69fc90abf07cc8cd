"""Responses over HTTP that go on: what server-sent events and multipart have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Receive, Send

from schema.wire.errors import error_body

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
