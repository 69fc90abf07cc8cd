"""GraphQL over HTTP, server-sent events and WebSocket: Strawberry's view, with what real clients
need put right. Facts about the view that this relies on are in tests/schema/test_strawberry.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson
from cross_web import HTTPException
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from strawberry.asgi import ASGIWebSocketAdapter, GraphQL
from strawberry.exceptions import ConnectionRejectionError
from strawberry.http import GraphQLRequestData
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.http.streaming import SSETransport
from strawberry.schema.exceptions import InvalidOperationTypeError
from strawberry.subscriptions import GRAPHQL_SSE_PROTOCOL, GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import (
    BaseGraphQLTransportWSHandler,
)
from strawberry.types.graphql import OperationType

from schema.wire.errors import error_body
from schema.wire.execution import WireSchema

# A page on another site cannot set any of these without the browser asking us first, so requests
# that a plain form or link could send must carry one.
PREFLIGHT_HEADERS = (
    "graphql-preflight",
    "apollo-require-preflight",
    "x-apollo-operation-name",
    "x-requested-with",
)


class Refused(Exception):
    """A request that is answered without being executed."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


# From the headers of a request to the operation's context; without headers, the context of a socket
# that has yet to sign in. Raises Refused.
MakeContext = Callable[[Mapping[str, str] | None], Awaitable[Any]]

# "Try again later", for a socket that is opened while the server stops.
_TRY_AGAIN_LATER = 1013


class LineFeedSSETransport(SSETransport):
    """Server-sent events with plain line feeds, since urql splits on those alone, and only for
    clients that prefer them to JSON.
    """

    def accepts(self, accept: str) -> bool:
        """Whether event streams rank above every JSON type that the client takes."""
        ranks = _ranked(accept)
        stream = ranks.get("text/event-stream", 0.0)
        json = max(
            (ranks.get(name, 0.0) for name in _JSON_TYPES),
            default=0.0,
        )
        return stream > json

    def encode_event(self, event: str, data: str | None = None) -> str:
        """One event."""
        return f"event: {event}\ndata: {data or ''}\n\n"

    def encode_comment(self, comment: str) -> str:
        """A heartbeat."""
        return f": {comment}\n\n"


_JSON_TYPES = ("application/json", "application/graphql-response+json")


def _ranked(accept: str) -> dict[str, float]:
    """Media types and how much they are wanted: quality first, then the order of mention."""
    ranks: dict[str, float] = {}
    parts = accept.lower().split(",")
    for place, part in enumerate(parts):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        # Mentioned earlier wins among equals; the step is far below any quality's.
        ranks[name] = quality - place * 1e-6 if quality > 0 else 0.0
    return ranks


class TextFrames(ASGIWebSocketAdapter):
    """Sends text frames: our JSON encoder gives bytes, which would go out as binary ones."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        try:
            await self.ws.send_text(orjson.dumps(message).decode())
        except (WebSocketDisconnect, RuntimeError) as error:
            raise WebSocketDisconnected from error


class SocketHandler(BaseGraphQLTransportWSHandler[Any, None]):
    """The server's side of graphql-transport-ws. Messages of another shape close the socket with
    4400, as the reference server does; as shipped they would break it off.
    """

    async def handle_message(self, message: Any) -> None:
        """Take one message."""
        if not _is_well_formed(message):
            await self.handle_invalid_message("The message is none of graphql-transport-ws")
            return
        if message["type"] == "connection_init" and message.get("payload") is None:
            message = {"type": "connection_init"}
        await super().handle_message(message)


def _is_well_formed(message: Any) -> bool:
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return False
    if message["type"] in {"subscribe", "complete"}:
        operation_id = message.get("id")
        if not isinstance(operation_id, str) or not operation_id:
            return False
    if message["type"] != "subscribe":
        return True
    asked = message.get("payload")
    return (
        isinstance(asked, dict)
        and isinstance(asked.get("query"), str)
        and isinstance(asked.get("variables"), (dict, type(None)))
        and isinstance(asked.get("operationName"), (str, type(None)))
    )


class GraphQLEndpoint(GraphQL[Any, None]):
    """The endpoint at /graphql, for every transport."""

    websocket_adapter_class = TextFrames
    graphql_transport_ws_handler_class = SocketHandler
    stream_transport_classes_by_protocol = MappingProxyType(
        {GRAPHQL_SSE_PROTOCOL: LineFeedSSETransport}
    )

    def __init__(
        self,
        schema: WireSchema,
        make_context: MakeContext,
        *,
        max_request_bytes: int,
        allowed_origins: tuple[str, ...],
    ) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            multipart_uploads_enabled=True,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL, GRAPHQL_SSE_PROTOCOL),
            allowed_origins=allowed_origins,
        )
        self._make_context = make_context
        self._max_request_bytes = max_request_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one socket."""
        if scope["type"] == "websocket":
            try:
                await super().__call__(scope, receive, send)
            except Refused as refused:
                close = {"type": "websocket.close", "code": _TRY_AGAIN_LATER}
                await send({**close, "reason": refused.code})
            return
        response: Response
        request = Request(scope, self._bounded(receive))
        try:
            _require_preflight(request)
            response = await self.run(request)
        except Refused as refused:
            response = _refusal(refused.status, refused.code, refused.message)
        except HTTPException as error:
            response = _refusal(error.status_code, "BAD_REQUEST", error.reason)
        await response(scope, receive, send)

    def _bounded(self, receive: Receive) -> Receive:
        received = 0

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_request_bytes:
                limit = f"{self._max_request_bytes:,}"
                raise Refused(413, "REQUEST_TOO_LARGE", f"A request has at most {limit} bytes.")
            return message

        return bounded

    async def get_context(self, request: Request | WebSocket, response: Any) -> Any:
        """The context of a request, or of a socket, whose client may sign in only after opening
        it.
        """
        is_socket = isinstance(request, WebSocket)
        return await self._make_context(None if is_socket else request.headers)

    async def on_ws_connect(self, context: Any) -> Any:
        """Sign a socket in by what `connection_init` carries."""
        given = context.connection_params or {}
        token = next((v for k, v in given.items() if k.lower() == "authorization"), "")
        try:
            signed_in = await self._make_context({"authorization": str(token)})
        except Refused as refused:
            raise ConnectionRejectionError({"code": refused.code}) from refused
        context.viewer = signed_in.viewer
        return await super().on_ws_connect(context)

    async def execute_operation(
        self,
        request: Request,
        request_adapter: Any,
        request_data: GraphQLRequestData | list[GraphQLRequestData],
        context: Any,
        root_value: None,
        sub_response: Response,
    ) -> Any:
        """Execute, having noted what is asked where the client sent an Idempotency-Key."""
        if context.idempotency_key is not None and isinstance(request_data, GraphQLRequestData):
            context.request_hash = await _request_hash(request_data)
        return await super().execute_operation(
            request, request_adapter, request_data, context, root_value, sub_response
        )

    async def execute_single(self, *args: Any, **kwargs: Any) -> Any:
        """One result."""
        try:
            return await super().execute_single(*args, **kwargs)
        except HTTPException as error:
            cause = error.__cause__
            if (
                isinstance(cause, InvalidOperationTypeError)
                and cause.operation_type is OperationType.SUBSCRIPTION
            ):
                raise Refused(
                    400,
                    "STREAM_REQUIRED",
                    "A subscription is a stream: accept text/event-stream, or open a WebSocket.",
                ) from None
            raise

    async def parse_multipart(self, request: Any) -> Any:
        """The operation in an upload, its files put where the map says."""
        try:
            return await super().parse_multipart(request)
        except (AttributeError, IndexError, TypeError, ValueError):
            message = "The body does not follow the GraphQL multipart request specification."
            raise Refused(400, "BAD_REQUEST", message) from None

    def parse_json(self, data: str | bytes) -> Any:
        """A JSON object or list; anything else is refused."""
        parsed = super().parse_json(data)
        if not isinstance(parsed, (dict, list)):
            raise Refused(400, "BAD_REQUEST", "The body is a JSON object.")
        return parsed

    def decode_json(self, data: str | bytes) -> object:
        """JSON in."""
        return orjson.loads(data)

    def encode_json(self, data: object) -> bytes:
        """JSON out."""
        return orjson.dumps(data)


# What a browser sends to another site without asking first; "" stands for a body without a type.
_SIMPLE_TYPES = {
    "",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain",
}


def _require_preflight(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_simple = request.method == "GET" or media_type in _SIMPLE_TYPES
    if is_simple and not any(name in request.headers for name in PREFLIGHT_HEADERS):
        raise Refused(
            403,
            "PREFLIGHT_REQUIRED",
            "GET requests and forms need a header that shows they come from a script, such as "
            "GraphQL-Preflight: 1. Other requests have the type application/json.",
        )


async def _request_hash(data: GraphQLRequestData) -> str:
    """SHA-256 over the document, its name, the variables, and the content of every file."""
    digest = hashlib.sha256()

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

    asked = [data.query, data.operation_name, await plain(data.variables)]
    digest.update(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS))
    return digest.hexdigest()


def _refusal(status: int, code: str, message: str) -> JSONResponse:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    return JSONResponse(error_body(code, message), status, headers)
