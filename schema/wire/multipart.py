"""Subscriptions over multipart HTTP, by Apollo's protocol (`subscriptionSpec=1.0`).

Each part is a JSON object: a response under `payload`, or empty to keep the connection. Errors
that end the whole stream stand beside a null payload.
"""

from __future__ import annotations

from typing import Any

import orjson

from schema.wire.execution import Response
from schema.wire.streams import Framing

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


def _frame(response: Response) -> bytes:
    is_response = "data" in response
    return _part({"payload": response} if is_response else {"payload": None, **response})


PARTS = Framing(headers=_HEADERS, opening=_DELIMITER, frame=_frame, beat=_part({}), ending=_END)
