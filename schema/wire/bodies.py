"""What an HTTP request asks for, read from its URL or its body and bounded while it arrives."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.types import Message, Receive

from schema.wire.errors import Refused, request_error
from schema.wire.limits import Limits
from schema.wire.negotiation import JSON
from schema.wire.requests import OperationRequest, in_time, parse_json
from schema.wire.uploads import uploaded

FORM = "multipart/form-data"
# Below what the server takes at all, so that it is said in the words of this layer.
_MAX_QUERY_STRING = 60 * 1024


def bounded(receive: Receive, limits: Limits) -> Receive:
    """Receive a body of at most so many bytes; raises Refused with 413."""
    received = 0

    async def receive_bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limits.request_bytes:
            raise Refused(
                413,
                "REQUEST_TOO_LARGE",
                f"A request has at most {limits.request_bytes:,} bytes.",
            )
        return message

    return receive_bounded


def content_type(request: Request) -> tuple[str, str]:
    """The media type of the body and its charset, both in lower case."""
    media_type, *parameters = request.headers.get("content-type", "").lower().split(";")
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name == "charset":
            return media_type.strip(), value.strip('"')
    return media_type.strip(), "utf-8"


@asynccontextmanager
async def asked_by(request: Request, limits: Limits) -> AsyncIterator[Any]:
    """What a request asks for: an object, or a list of them. Its files last as long as the block.

    Raises Refused.
    """
    if request.method == "GET":
        yield _asked_by_url(request)
        return
    media_type, charset = content_type(request)
    if media_type not in {JSON, FORM} or charset not in {"utf-8", "utf8"}:
        raise Refused(
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            f"Send {JSON} in UTF-8, or {FORM} with files.",
            headers={"accept-post": f"{JSON}, {FORM}"},
        )
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "UNSUPPORTED_MEDIA_TYPE", "Send the body without compression.")
    if media_type == JSON:
        yield parse_json(await in_time(request.body(), limits))
        return
    async with uploaded(request, limits) as operations:
        yield operations


def _asked_by_url(request: Request) -> dict[str, Any]:
    if len(request.scope["query_string"]) > _MAX_QUERY_STRING:
        raise Refused(414, "URI_TOO_LONG", "The URL is too long: send the request by POST.")
    given: dict[str, Any] = {}
    for name in ("query", "operationName", "documentId", "variables", "extensions"):
        # An empty text stands for nothing.
        if value := request.query_params.get(name):
            is_json = name in {"variables", "extensions"}
            given[name] = parse_json(value, f"`{name}`") if is_json else value
    return given


async def request_hash(asked: OperationRequest) -> str:
    """SHA-256 over the document, its name, the variables, and the content of every file.

    Raises RequestError.
    """

    async def plain(value: Any) -> Any:
        if isinstance(value, UploadFile):
            content = hashlib.sha256(await value.read()).hexdigest()
            await value.seek(0)
            return {"file": content}
        if isinstance(value, dict):
            return {key: await plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await plain(item) for item in value]
        return value

    named = asked.query if asked.query is not None else asked.document_id
    try:
        whole = [named, asked.operation_name, await plain(asked.variables)]
        written = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
    except (RecursionError, orjson.JSONEncodeError):
        # Deeper than JSON can be written, though it could be read.
        raise request_error(422, "BAD_USER_INPUT", "The variables nest too deeply.") from None
    return hashlib.sha256(written).hexdigest()
