"""Subscriptions over multipart HTTP, by Apollo's protocol (`subscriptionSpec=1.0`).

Each part is a JSON object: a response under `payload`, or empty to keep the connection. Errors
that end the whole stream stand beside a null payload.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from starlette.types import Receive, Send

from schema.wire.connections import Connections
from schema.wire.errors import RequestError
from schema.wire.execution import Caller, Response
from schema.wire.racing import EndedEarly, race
from schema.wire.streams import SIGNED_OUT, Stream, heartbeat, left

_HEADERS = {
    # The boundary goes without quotes: gql reads it in no other way.
    "content-type": "multipart/mixed;boundary=graphql;subscriptionSpec=1.0",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
# Every part ends with the delimiter of the next, so that clients need not wait to read it.
_DELIMITER = b"\r\n--graphql"
_END = b"--\r\n"


def _part(value: Any) -> bytes:
    return b"\r\ncontent-type: application/json\r\n\r\n" + orjson.dumps(value) + _DELIMITER


def _enveloped(response: Response) -> dict[str, Any]:
    return {"payload": response} if "data" in response else {"payload": None, **response}


async def stream_parts(
    receive: Receive,
    send: Send,
    caller: Caller,
    responses: AsyncGenerator[Response, None],
    headers: Mapping[str, str],
    connections: Connections,
    heartbeat_seconds: float,
) -> None:
    """Send the responses of one subscription as parts."""
    with connections.open("multipart"):
        stream = Stream(send)
        await stream.begin({**_HEADERS, **headers})
        await stream.write(_DELIMITER)

        async def pump() -> None:
            async with aclosing(responses):
                try:
                    async for response in responses:
                        await stream.write(_part(_enveloped(response)))
                except RequestError as error:
                    await stream.write(_part({"payload": None, "errors": error.errors}))

        try:
            await race(
                pump(),
                gone=left(receive),
                silence=heartbeat(stream, _part({}), heartbeat_seconds),
                signed_out=caller.signed_out(),
            )
        except EndedEarly as early:
            if early.reason == "gone":
                return
            await stream.write(_part({"payload": None, "errors": [SIGNED_OUT]}))
        await stream.write(_END)
        await stream.end()
