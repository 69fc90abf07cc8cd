"""Signed page cursors: opaque to clients, checked when they come back.

A cursor holds the sort values of one row of one list. The signature keeps a client from making
cursors up, so what comes out of `read` was put in by `write` of the same list.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

_SIGNATURE_BYTES = 12
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class MalformedCursor(ValueError):
    """The cursor is not one that this server made for this list."""


class CursorSigner:
    """Writes and reads cursors with one secret, which all servers on a database share."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def write(self, list_name: str, values: Sequence[Any]) -> str:
        """The cursor of a row whose sort values are `values`, in the list `list_name`."""
        body = orjson.dumps([_plain(value) for value in values])
        return _encoded(self._signature(list_name, body) + body)

    def read(self, list_name: str, cursor: str) -> list[Any]:
        """The sort values behind a cursor; raises MalformedCursor."""
        try:
            signed = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        except (UnicodeEncodeError, binascii.Error):
            raise MalformedCursor from None
        # The decoder skips what is no base64 and ignores the last bits: one row, one cursor.
        if _encoded(signed) != cursor:
            raise MalformedCursor
        signature, body = signed[:_SIGNATURE_BYTES], signed[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(list_name, body)):
            raise MalformedCursor
        return [_rich(value) for value in orjson.loads(body)]

    def _signature(self, list_name: str, body: bytes) -> bytes:
        message = list_name.encode() + b"\0" + body
        return hmac.digest(self._secret, message, hashlib.sha256)[:_SIGNATURE_BYTES]


def _encoded(signed: bytes) -> str:
    return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


def _plain(value: Any) -> Any:
    # Whole microseconds: a float would lose the last digits and with them rows.
    if isinstance(value, datetime):
        return {"t": (value - _EPOCH) // _MICROSECOND}
    return value


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        return _EPOCH + value["t"] * _MICROSECOND
    return value
