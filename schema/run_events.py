"""`GET /runs/{id}/events`: a run's events as plain server-sent events, for clients without a
GraphQL library. Executes a subscription of the API, so shapes and permissions are the API's own.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import aclosing
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response as HTTPResponse
from starlette.types import Receive, Scope, Send

from schema.wire.errors import Refused, RequestError, error_response, masked
from schema.wire.execution import Response
from schema.wire.http import GraphQLEndpoint
from schema.wire.origins import refuse_foreign_pages
from schema.wire.racing import EndedEarly, race
from schema.wire.requests import request_of
from schema.wire.sse import EVENT_STREAM_HEADERS
from schema.wire.streams import SIGNED_OUT, Stream, heartbeat, left

DOCUMENT = """
subscription RunEvents($run: ID!, $after: Int) {
  runEvents(runId: $run, after: $after) {
    __typename
    seq
    at
    ... on StreamOpened { text reasoning: text(channel: REASONING) run { id status lastSeq } }
    ... on RunStarted { run { id kind } }
    ... on PhaseStarted { name }
    ... on TextDelta { channel text targetId }
    ... on PhaseFinished { name }
    ... on RunWarning { code message subjectId field }
    ... on RunProgressed { done total missed }
    ... on RunFinished { status error { code message } node { id status content } }
  }
}
"""
# The one error that is sent as a stream: see _interruption.
_OUT_OF_WINDOW = "OUT_OF_WINDOW"
# Which statuses an error in the place of the first event has; others are mistakes in the request.
_STATUSES = {"NOT_FOUND": 404, "INTERNAL": 500, "OPERATION_TIMEOUT": 503}
_BEAT = b":\n\n"


class RunEventStream:
    """The ASGI application at that address. `Last-Event-ID`, or `after` in the URL, is the number
    of the last event that the client has seen.
    """

    def __init__(self, endpoint: GraphQLEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one stream."""
        begun = asyncio.Event()
        try:
            instead = await self._serve(Request(scope), receive, Stream(send), begun)
        except Refused as refused:
            self._endpoint.operations.metrics.count(refused)
            instead = error_response(refused)
        except Exception as error:
            # A mistake of ours, or a database that does not answer while somebody signs in.
            said = masked(str(error), uuid.uuid4().hex, error)
            instead = error_response(RequestError(500, [said]))
        if instead is not None and not begun.is_set():
            await instead(scope, receive, send)

    async def _serve(
        self, request: Request, receive: Receive, stream: Stream, begun: asyncio.Event
    ) -> HTTPResponse | None:
        """Send the stream; or the response to send in its place."""
        if request.method != "GET":
            headers = {"allow": "GET"}
            raise Refused(405, "METHOD_NOT_ALLOWED", "This address takes GET.", headers=headers)
        refuse_foreign_pages(request, self._endpoint.settings.allowed_origins)
        caller = await self._endpoint.sign_in(request.headers)
        variables = {"run": request.path_params["run_id"], "after": _last_seen(request)}
        operations = self._endpoint.operations
        prepared = operations.prepare(request_of({"query": DOCUMENT, "variables": variables}))
        context = caller.context()

        async def answer() -> HTTPResponse | None:
            async with aclosing(operations.stream(prepared, context)) as responses:
                first = await anext(responses)
                if not _is_out_of_window(first) and _is_all_seen(_event(first)):
                    # How EventSource is told not to come back.
                    return HTTPResponse(status_code=204)
                begun.set()
                await stream.begin({**EVENT_STREAM_HEADERS, "x-request-id": context.request_id})
                await stream.write(_frame_of(first))
                async for response in responses:
                    await stream.write(_frame_of(response))
                await stream.end()
            return None

        async def beat() -> None:
            await begun.wait()
            await heartbeat(stream, _BEAT, self._endpoint.settings.heartbeat_seconds)

        with self._endpoint.connections.open("sse"):
            try:
                return await race(
                    answer(), gone=left(receive), silence=beat(), signed_out=caller.signed_out()
                )
            except EndedEarly as early:
                if early.reason == "signed_out":
                    if not begun.is_set():
                        raise RequestError(401, [SIGNED_OUT]) from None
                    await stream.end()
                return None


def _last_seen(request: Request) -> int | None:
    given = request.headers.get("last-event-id") or request.query_params.get("after")
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise Refused(422, "INVALID_CURSOR", "Last-Event-ID and after are numbers of events.")
    return int(given)


def _event(response: Response) -> dict[str, Any]:
    """The event in a response; raises Refused with what the API says in its place."""
    if response.get("data"):
        event: dict[str, Any] = response["data"]["runEvents"]
        return event
    (error, *_) = response["errors"]
    extensions = dict(error["extensions"])
    code = extensions.pop("code")
    status = 503 if extensions.get("retryable") else _STATUSES.get(code, 422)
    raise Refused(status, code, error["message"], **extensions)


def _is_all_seen(opening: dict[str, Any]) -> bool:
    run = opening["run"]
    is_over = run is not None and run["status"] in {"SUCCEEDED", "FAILED", "CANCELLED"}
    return is_over and bool(opening["seq"] >= run["lastSeq"])


def _is_out_of_window(response: Response) -> bool:
    errors = response.get("errors") or [{}]
    return bool(errors[0].get("extensions", {}).get("code") == _OUT_OF_WINDOW)


def _frame_of(response: Response) -> bytes:
    if response.get("data"):
        return _frame(response["data"]["runEvents"])
    return _frame(_interruption(response["errors"][0]))


def _interruption(error: dict[str, Any]) -> dict[str, Any]:
    """The last thing on a stream that ends early; EventSource comes back by itself behind it."""
    event = {"__typename": "Interrupted", **error}
    if error["extensions"]["code"] == _OUT_OF_WINDOW:
        # With this number it comes back to what can be followed, and not for ever to this error,
        # which a status would hide from it.
        event["seq"] = error["extensions"]["oldest"]
    return event


def _frame(event: dict[str, Any]) -> bytes:
    head = f"event: {event['__typename']}\n"
    if "seq" in event:
        head = f"id: {event['seq']}\n{head}"
    return head.encode() + b"data: " + orjson.dumps(event) + b"\n\n"
