"""What a client asks for, in the shape that all transports share."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import orjson

from schema.wire.errors import Refused
from schema.wire.limits import Limits

T = TypeVar("T")

# The most values in what a client sends. Python needs some 80 bytes and half a microsecond for
# each, which two bytes of JSON can ask for: as many as fit a request would take half a gigabyte.
MOST_VALUES = 100_000
# A text, even one without an end, or a sign that another value follows. Possessive, so that no
# text is ever read twice.
_TEXT_OR_SIGN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{,]', re.DOTALL)

_OBJECT = "an object"
_TEXT = "a text"


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """The parameters of GraphQL over HTTP, which sockets and event streams carry as well.

    `query` is None only where the document is named by its hash: `document_id` is then
    `sha256:` and 64 hexadecimal digits, from the parameter of that name or from Apollo's
    `persistedQuery` extension. With both, the hash must be the text's.
    """

    query: str | None
    operation_name: str | None
    variables: dict[str, Any]
    extensions: dict[str, Any]
    document_id: str | None
    # Whether the client speaks Apollo's protocol, which has an answer of its own for misses.
    is_automatic: bool


def request_of(given: Any) -> OperationRequest:
    """Check the parameters' types; raises Refused with 422. Null equals absent."""
    if not isinstance(given, dict):
        raise _malformed("The request is a JSON object with the document in `query`.")
    query = _typed(given, "query", str, _TEXT)
    extensions = _typed(given, "extensions", dict, _OBJECT) or {}
    document_id = _typed(given, "documentId", str, _TEXT)
    automatic = _automatic_id(extensions)
    if query is None and document_id is None and automatic is None:
        raise _malformed("The request has no document: put its text into `query`.")
    return OperationRequest(
        query,
        # An empty name stands for none, as in a GET request's URL.
        _typed(given, "operationName", str, _TEXT) or None,
        _typed(given, "variables", dict, _OBJECT) or {},
        extensions,
        document_id or automatic,
        automatic is not None,
    )


def _automatic_id(extensions: dict[str, Any]) -> str | None:
    persisted = extensions.get("persistedQuery")
    if persisted is None:
        return None
    digest = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    if not isinstance(digest, str) or persisted.get("version") != 1:
        raise _malformed("extensions.persistedQuery has a version, which is 1, and a sha256Hash.")
    return f"sha256:{digest.lower()}"


def _typed(given: dict[str, Any], name: str, wanted: type, called: str) -> Any:
    value = given.get(name)
    if value is not None and not isinstance(value, wanted):
        raise _malformed(f"`{name}` is {called} or null.")
    return value


def _malformed(message: str) -> Refused:
    return Refused(422, "BAD_REQUEST", message)


def parse_json(content: bytes | str, called: str = "The body") -> Any:
    """JSON in UTF-8; raises Refused with 400 or 413."""
    try:
        text = content if isinstance(content, str) else content.decode()
        if has_too_many_values(text):
            raise Refused(
                413, "REQUEST_TOO_LARGE", f"{called} has more than {MOST_VALUES:,} values."
            )
        return orjson.loads(content)
    except (UnicodeDecodeError, orjson.JSONDecodeError):
        raise Refused(400, "BAD_REQUEST", f"{called} is not JSON in UTF-8.") from None


def has_too_many_values(text: str) -> bool:
    """Whether a JSON text has more values than are worth reading."""
    if sum(map(text.count, "[{,")) <= MOST_VALUES:
        return False
    # Texts may be full of such signs. Stops as soon as the answer is known.
    signs = (each for each in _TEXT_OR_SIGN.finditer(text) if text[each.start()] != '"')
    return next(islice(signs, MOST_VALUES, None), None) is not None


async def in_time(receiving: Awaitable[T], limits: Limits) -> T:
    """What is being received, if it arrives in time; raises Refused with 408."""
    try:
        async with asyncio.timeout(limits.request_seconds):
            return await receiving
    except TimeoutError:
        raise Refused(
            408, "REQUEST_TIMEOUT", "The body did not arrive in time: send it again."
        ) from None
