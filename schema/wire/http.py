"""GraphQL over HTTP: which way a request goes, and what its answer looks like.

Source: the GraphQL over HTTP draft of 2026. Where it recommends one status code among several,
that one is sent; `legacy_status_codes` sends those of the older draft instead.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response as HTTPResponse
from starlette.types import Message, Receive, Scope, Send

from schema.wire.bodies import asked_by, bounded, request_hash
from schema.wire.connections import Connections
from schema.wire.errors import Refused, RequestError, masked, request_error
from schema.wire.execution import (
    Caller,
    OperationContext,
    Operations,
    Prepared,
    Response,
    SignIn,
)
from schema.wire.multipart import PARTS
from schema.wire.negotiation import EVENT_STREAM, JSON, MULTIPART, RESPONSE_JSON, accepted
from schema.wire.origins import is_known_origin, require_preflight
from schema.wire.racing import EndedEarly, race
from schema.wire.requests import OperationRequest, request_of
from schema.wire.sse import DISTINCT, Reservations
from schema.wire.streams import left, send_stream
from schema.wire.websocket import SocketTimes, refuse_handshake, serve_socket

STREAM_TOKEN_HEADER = "x-graphql-event-stream-token"

_METHODS = "GET, POST, PUT, DELETE"
# The draft's code for data that has errors beside it.
_PARTIAL_SUCCESS = 294


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """What the endpoint does one way or another."""

    allowed_origins: tuple[str, ...] = ()
    legacy_status_codes: bool = False
    heartbeat_seconds: float = 12.0
    initialisation_seconds: float = 10.0


class GraphQLEndpoint:
    """The ASGI application at /graphql, for every transport."""

    def __init__(
        self,
        operations: Operations,
        sign_in: SignIn,
        settings: EndpointSettings,
        check_open: Callable[[], None],
    ) -> None:
        """`check_open` raises Refused while no new stream may begin."""
        limits = operations.limits
        self.operations = operations
        self.sign_in = sign_in
        self.settings = settings
        self.connections = Connections(limits.connections, operations.metrics, check_open)
        self.reservations = Reservations(
            self.connections, limits.connections, settings.heartbeat_seconds
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or one socket."""
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
            return
        await _Exchange(self, scope, receive, send).serve()

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_known_origin(Headers(scope=scope), self.settings.allowed_origins):
            await receive()
            said = "Pages of this origin may not connect: see MIRRORGRAPH_ALLOWED_ORIGINS."
            refused = Refused(403, "ORIGIN_NOT_ALLOWED", said)
            self.operations.metrics.count(refused)
            await refuse_handshake(scope, send, refused)
            return
        settings = self.settings
        await serve_socket(
            scope,
            receive,
            send,
            operations=self.operations,
            sign_in=self.sign_in,
            connections=self.connections,
            times=SocketTimes(settings.initialisation_seconds, settings.heartbeat_seconds),
        )


class _Exchange:
    """One HTTP request and its answer."""

    def __init__(
        self, endpoint: GraphQLEndpoint, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._endpoint = endpoint
        self._operations = endpoint.operations
        self._settings = endpoint.settings
        self._receive = receive
        self._send_message = send
        self._has_begun = False
        request = self._request = Request(scope, bounded(receive, endpoint.operations.limits))
        # Several headers mean the same as one with all their members.
        self._accept = accepted(",".join(request.headers.getlist("accept")))
        self._is_event_source = self._accept.types[:1] == (EVENT_STREAM,)
        self._token = request.headers.get(STREAM_TOKEN_HEADER) or request.query_params.get("token")

    async def serve(self) -> None:
        """From the request to the last byte of the answer."""
        try:
            await self._answer()
        except Refused as refused:
            self._operations.metrics.count(refused)
            await self._respond(self._refusal(refused))
        except (EndedEarly, ClientDisconnect):
            pass  # the client has left, and nobody waits for an answer
        except Exception as error:
            # A mistake of ours, or a database that does not answer while somebody signs in.
            said = masked(str(error), uuid.uuid4().hex, error)
            if not self._has_begun:
                await self._respond(_rendered(500, {"errors": [said]}, JSON))

    async def _send(self, message: Message) -> None:
        self._has_begun = True
        await self._send_message(message)

    async def _respond(self, response: HTTPResponse) -> None:
        await response(self._request.scope, self._receive, self._send)

    async def _answer(self) -> None:
        match self._request.method:
            case "GET" if self._token is not None and self._is_event_source:
                await self._endpoint.reservations.serve(self._token, self._receive, self._send)
            case "GET" | "POST":
                await self._execute()
            case "PUT":
                await self._reserve()
            case "DELETE":
                await self._stop()
            case _:
                raise Refused(
                    405,
                    "METHOD_NOT_ALLOWED",
                    f"This address takes {_METHODS}.",
                    headers={"allow": _METHODS},
                )

    async def _reserve(self) -> None:
        caller = await self._endpoint.sign_in(self._request.headers)
        token = self._endpoint.reservations.reserve(caller)
        headers = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
        await self._respond(HTTPResponse(token, 201, headers))

    async def _stop(self) -> None:
        caller = await self._endpoint.sign_in(self._request.headers)
        reservation = self._endpoint.reservations.find(self._token or "", caller)
        operation_id = self._request.query_params.get("operationId")
        if not operation_id:
            raise Refused(422, "BAD_REQUEST", "Say in operationId which operation to end.")
        await reservation.stop(operation_id)
        await self._respond(HTTPResponse(status_code=200))

    async def _execute(self) -> None:
        require_preflight(
            self._request, self._settings.allowed_origins, is_event_source=self._is_event_source
        )
        if self._accept.single() is None and self._accept.stream() is None:
            raise _not_acceptable(f"{EVENT_STREAM}, or {MULTIPART};subscriptionSpec=1.0")
        caller = await self._endpoint.sign_in(self._request.headers)
        async with asked_by(self._request, self._operations.limits) as given:
            if isinstance(given, list):
                await self._execute_batch(given, caller)
                return
            asked = self._traced(request_of(given))
            if self._token is not None:
                await self._begin_on_stream(asked, self._token, caller)
            else:
                await self._execute_one(asked, caller)

    async def _execute_one(self, asked: OperationRequest, caller: Caller) -> None:
        """Answer a single operation, as a single response or as a stream."""
        try:
            prepared = self._prepare(asked)
        except RequestError as error:
            # A client that reads streams alone is told on a stream.
            if self._accept.single() not in {None, EVENT_STREAM}:
                raise
            await self._stream(_failing(error), {}, caller)
            return
        if prepared.is_subscription and self._accept.stream() is None:
            raise _stream_required()
        context = await self._context(asked, caller)
        headers = {"x-request-id": context.request_id}
        media = self._accept.single()
        if prepared.is_subscription or media in {None, EVENT_STREAM}:
            await self._stream(self._operations.stream(prepared, context), headers, caller)
            return
        assert media is not None
        try:
            body = await race(self._operations.respond(prepared, context), gone=left(self._receive))
        except RequestError as error:
            error.headers |= headers
            raise
        await self._respond(_rendered(self._status(body, media), body, media, headers))

    async def _stream(
        self,
        responses: AsyncGenerator[Response, None],
        headers: Mapping[str, str],
        caller: Caller,
    ) -> None:
        is_sse = self._accept.stream() == EVENT_STREAM
        with self._endpoint.connections.open("sse" if is_sse else "multipart"):
            await send_stream(
                self._receive,
                self._send,
                caller,
                responses,
                DISTINCT if is_sse else PARTS,
                headers,
                self._settings.heartbeat_seconds,
            )

    async def _execute_batch(self, given: list[Any], caller: Caller) -> None:
        """Answer several operations, one after another, each in a context of its own."""
        most = self._operations.limits.batch
        if not 1 <= len(given) <= most:
            raise Refused(
                422,
                "BATCH_LIMIT",
                f"A batch has 1 to {most} operations.",
                found=len(given),
                limit=most,
            )
        if "idempotency-key" in self._request.headers:
            raise Refused(
                422, "BAD_REQUEST", "An Idempotency-Key stands for one operation: send no batch."
            )
        asked = [self._traced(request_of(each)) for each in given]
        media = next((each for each in self._accept.types if each in {RESPONSE_JSON, JSON}), None)
        if media is None:
            raise _not_acceptable("for a batch no stream")
        request_ids: list[str] = []
        answering = self._answer_batch(asked, caller, request_ids)
        bodies = await race(answering, gone=left(self._receive))
        # As many as were begun, in their order.
        headers = {"x-request-id": ", ".join(request_ids)} if request_ids else {}
        await self._respond(_rendered(200, bodies, media, headers))

    async def _answer_batch(
        self, asked: list[OperationRequest], caller: Caller, request_ids: list[str]
    ) -> list[Response]:
        bodies = []
        for each in asked:
            try:
                prepared = self._prepare(each)
                if prepared.is_subscription:
                    raise _stream_required()
                context = await self._context(each, caller)
                request_ids.append(context.request_id)
                bodies.append(await self._operations.respond(prepared, context))
            except Refused as refused:
                self._operations.metrics.count(refused)
                bodies.append({"errors": refused.errors})
        return bodies

    async def _begin_on_stream(self, asked: OperationRequest, token: str, caller: Caller) -> None:
        reservation = self._endpoint.reservations.find(token, caller)
        operation_id = asked.extensions.get("operationId")
        if not isinstance(operation_id, str) or not operation_id:
            raise Refused(422, "BAD_REQUEST", "extensions.operationId is a text.")
        prepared = self._prepare(asked)
        context = await self._context(asked, caller)
        reservation.begin(operation_id, self._operations, prepared, context)
        await self._respond(HTTPResponse(status_code=202))

    def _prepare(self, asked: OperationRequest) -> Prepared:
        prepared = self._operations.prepare(asked)
        if self._request.method == "GET" and prepared.kind == "mutation":
            raise Refused(
                405, "METHOD_NOT_ALLOWED", "Send mutations by POST.", headers={"allow": "POST"}
            )
        return prepared

    async def _context(self, asked: OperationRequest, caller: Caller) -> OperationContext:
        key = self._request.headers.get("idempotency-key")
        return caller.context(key, await request_hash(asked) if key is not None else "")

    def _traced(self, asked: OperationRequest) -> OperationRequest:
        """The request with the trace that its headers name, if they do."""
        parent = self._request.headers.get("traceparent")
        if parent is None or "traceparent" in asked.extensions:
            return asked
        return replace(asked, extensions={**asked.extensions, "traceparent": parent})

    def _status(self, body: Response, media: str) -> int:
        is_partial = "errors" in body and media == RESPONSE_JSON
        return _PARTIAL_SUCCESS if is_partial and not self._settings.legacy_status_codes else 200

    def _refusal(self, refused: Refused) -> HTTPResponse:
        status, media = refused.status, JSON
        is_response = isinstance(refused, RequestError)
        if self._settings.legacy_status_codes:
            if is_response and self._accept.single() == RESPONSE_JSON:
                media = RESPONSE_JSON
            if is_response and media == JSON and status < 500:
                status = 200
            elif status == 422 or (is_response and status == 404):
                status = 400
        elif is_response:
            # A well-formed GraphQL response, whatever the client says that it reads.
            media = RESPONSE_JSON
        return _rendered(status, {"errors": refused.errors}, media, refused.headers)


def _not_acceptable(others: str) -> Refused:
    return Refused(406, "NOT_ACCEPTABLE", f"Accept one of {RESPONSE_JSON}, {JSON}, {others}.")


def _stream_required() -> RequestError:
    return request_error(
        406,
        "STREAM_REQUIRED",
        "A subscription is a stream: accept text/event-stream, or open a WebSocket.",
    )


async def _failing(error: RequestError) -> AsyncGenerator[Response, None]:
    raise error
    yield {}


def _rendered(
    status: int, body: Any, media: str, headers: Mapping[str, str] | None = None
) -> HTTPResponse:
    all_headers = {"content-type": f"{media}; charset=utf-8", **(headers or {})}
    return HTTPResponse(orjson.dumps(body), status, all_headers)
