"""A model provider for tests: a real HTTP server on loopback that answers from a script.

It speaks OpenAI's chat completions and Anthropic's messages as streams, and OpenAI's embeddings; it
records what it was asked and whether the client stayed; what the answers mean is left to the tests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from aiohttp import web

Fault: TypeAlias = Literal[
    "status", "hang", "cut", "broken_json", "error_event", "refusal", "no_finish"
]
Wire: TypeAlias = Literal["openai", "anthropic"]

_OPENAI_FINISH = {"stop": "stop", "length": "length", "refused": "content_filter"}
_ANTHROPIC_FINISH = {"stop": "end_turn", "length": "max_tokens", "refused": "refusal"}


@dataclass(frozen=True, slots=True)
class Script:
    """One answer, given to every request until the script is changed.

    `reasoning` and then `words` are sent piece by piece, `delay` seconds apart. The fault comes
    after `after` of these pieces:

    - "status": no stream, but the HTTP status `status` with `headers` and an error body;
    - "hang": nothing more until `ScriptedProvider.resume`; with `after=0` not even the headers;
    - "cut": the connection is closed in the middle of the stream;
    - "broken_json": an event that is not JSON;
    - "error_event": an error inside the stream, made of `error_type` and `error_message`;
    - "refusal": a refusal in the wire's own way, a delta for OpenAI, a stop reason for Anthropic;
    - "no_finish": the stream ends in order but without a finish mark.

    `error_body` replaces the whole error body: text as it stands, anything else as JSON.
    """

    words: tuple[str, ...] = ("Hello", " there", ".")
    reasoning: tuple[str, ...] = ()
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    delay: float = 0.0
    fault: Fault | None = None
    after: int = 0
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    error_type: str = "server_error"
    error_message: str = "The scripted provider fails."
    error_body: object = None
    finish: Literal["stop", "length", "refused"] = "stop"
    model: str = "scripted-model"
    input_tokens: int = 11


@dataclass(slots=True)
class Received:
    """One request; header names are in lower case.

    `disconnected` is set when the client goes before the answer is complete, `completed` when the
    whole answer has been sent.
    """

    wire: Wire
    headers: dict[str, str]
    body: dict[str, Any]
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    completed: asyncio.Event = field(default_factory=asyncio.Event)


class ScriptedProvider:
    """The running server. Assign `script` to change what the next requests get."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Received] = []
        # Makes the vector of a text, for embeddings; by letters unless a test says otherwise.
        self.embed: Callable[[str], list[float]] = letters
        self.url = ""
        self._arrival = asyncio.Condition()
        self._resumed = asyncio.Event()
        self._is_stopping = False

    @property
    def openai_base_url(self) -> str:
        """What the openai provider takes as its base URL."""
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """What the anthropic provider takes as its base URL."""
        return self.url

    async def received(self, number: int = 1, *, within: float = 10.0) -> Received:
        """The `number`th request, waited for if need be. Raises TimeoutError."""
        async with asyncio.timeout(within), self._arrival:
            await self._arrival.wait_for(lambda: len(self.requests) >= number)
        return self.requests[number - 1]

    def resume(self) -> None:
        """Let the answers that hang now go on."""
        self._resumed.set()
        self._resumed = asyncio.Event()

    async def _answer(self, request: web.Request, wire: Wire) -> web.StreamResponse:
        script = self.script
        received = Received(
            wire,
            {name.lower(): value for name, value in request.headers.items()},
            await request.json(),
        )
        async with self._arrival:
            self.requests.append(received)
            self._arrival.notify_all()
        try:
            response = await self._play(request, wire, script)
        except (asyncio.CancelledError, ConnectionError):
            if not self._is_stopping:
                received.disconnected.set()
            raise
        received.completed.set()
        return response

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        script = self.script
        body = await request.json()
        received = Received("openai", {k.lower(): v for k, v in request.headers.items()}, body)
        async with self._arrival:
            self.requests.append(received)
            self._arrival.notify_all()
        if script.fault == "status":
            return _error_response("openai", script)
        if script.fault == "hang":
            await self._resumed.wait()
        data = [
            {"object": "embedding", "index": index, "embedding": self.embed(text)}
            for index, text in enumerate(body["input"])
        ]
        received.completed.set()
        # In no order: clients go by the index.
        return web.json_response({"object": "list", "data": data[::-1], "model": body["model"]})

    async def _play(self, request: web.Request, wire: Wire, script: Script) -> web.StreamResponse:
        if script.fault == "status":
            return _error_response(wire, script)
        if script.fault == "hang" and script.after == 0:
            await self._resumed.wait()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for step in _openai_steps(script) if wire == "openai" else _anthropic_steps(script):
            if step == "hang":
                if script.after > 0:
                    await self._resumed.wait()
            elif step == "cut":
                assert request.transport is not None
                request.transport.close()
                return response
            else:
                await response.write(step.encode())
                await asyncio.sleep(script.delay)
        await response.write_eof()
        return response


@asynccontextmanager
async def scripted_provider(script: Script | None = None) -> AsyncIterator[ScriptedProvider]:
    """A scripted provider on a free port of the loopback interface."""
    server = ScriptedProvider(script or Script())

    async def chat_completions(request: web.Request) -> web.StreamResponse:
        return await server._answer(request, "openai")

    async def messages(request: web.Request) -> web.StreamResponse:
        return await server._answer(request, "anthropic")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat_completions)
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/v1/embeddings", server._embed)
    # Cancelling the handler is how a server learns at once that its client has gone.
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        server.url = f"http://{host}:{port}"
        yield server
    finally:
        server._is_stopping = True
        server.resume()
        await runner.cleanup()


def letters(text: str) -> list[float]:
    """A vector of 26 values: how often a text has each letter; not of length 1."""
    return [0.01 + text.lower().count(chr(ord("a") + at)) for at in range(26)]


def _error_response(wire: Wire, script: Script) -> web.Response:
    body = _error_body(wire, script) if script.error_body is None else script.error_body
    if isinstance(body, str):
        return web.Response(
            status=script.status, text=body, content_type="text/html", headers=script.headers
        )
    return web.json_response(body, status=script.status, headers=script.headers)


def _error_body(wire: Wire, script: Script) -> dict[str, Any]:
    error: dict[str, Any] = {"message": script.error_message, "type": script.error_type}
    if wire == "openai":
        error.update(code=script.error_type, param=None)
        return {"error": error}
    return {"type": "error", "error": error}


def _pieces(script: Script) -> list[tuple[Literal["text", "reasoning"], str]]:
    pieces: list[tuple[Literal["text", "reasoning"], str]] = []
    pieces += [("reasoning", word) for word in script.reasoning]
    pieces += [("text", word) for word in script.words]
    return pieces


def _openai_steps(script: Script) -> Iterator[str]:
    """SSE text to send, or the name of a fault to commit at this place."""
    pieces = _pieces(script)
    yield _openai_chunk(script, [_choice({"role": "assistant", "content": ""})])
    for count, (channel, word) in enumerate(pieces):
        if script.fault and count == script.after:
            yield from _openai_fault(script)
        name = "content" if channel == "text" else script.reasoning_field
        yield _openai_chunk(script, [_choice({name: word})])
    if script.fault and script.after >= len(pieces):
        yield from _openai_fault(script)
    if script.fault != "no_finish":
        yield _openai_chunk(script, [_choice({}, _OPENAI_FINISH[script.finish])])
        details = {"reasoning_tokens": len(script.reasoning)}
        usage = {
            "prompt_tokens": script.input_tokens,
            "completion_tokens": len(pieces),
            "total_tokens": script.input_tokens + len(pieces),
            "completion_tokens_details": details,
        }
        yield _openai_chunk(script, [], usage)
    yield "data: [DONE]\n\n"


def _openai_fault(script: Script) -> Iterator[str]:
    if script.fault == "broken_json":
        yield 'data: {"choices": [{"del\n\n'
    elif script.fault == "error_event":
        yield f"data: {json.dumps(script.error_body or _error_body('openai', script))}\n\n"
    elif script.fault == "refusal":
        yield _openai_chunk(script, [_choice({"refusal": "I will not say that."})])
    elif script.fault in ("hang", "cut"):
        yield script.fault


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _openai_chunk(
    script: Script, choices: list[dict[str, Any]], usage: dict[str, Any] | None = None
) -> str:
    chunk = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": script.model,
        "choices": choices,
        "usage": usage,
    }
    return f"data: {json.dumps(chunk)}\n\n"


def _anthropic_steps(script: Script) -> Iterator[str]:
    """SSE text to send, or the name of a fault to commit at this place."""
    message: dict[str, Any] = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": script.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": script.input_tokens, "output_tokens": 1},
    }
    yield _anthropic_event("message_start", message=message)
    yield _anthropic_event("ping")
    pieces = _pieces(script)
    index, open_channel = -1, ""
    for count, (channel, word) in enumerate(pieces):
        if script.fault and count == script.after:
            yield from _anthropic_fault(script)
            if script.fault == "refusal":
                break
        kind = "text" if channel == "text" else "thinking"
        if channel != open_channel:
            if open_channel:
                yield _anthropic_event("content_block_stop", index=index)
            index, open_channel = index + 1, channel
            block = {"type": kind, kind: ""}
            yield _anthropic_event("content_block_start", index=index, content_block=block)
        delta = {"type": f"{kind}_delta", kind: word}
        yield _anthropic_event("content_block_delta", index=index, delta=delta)
    if script.fault and script.after >= len(pieces):
        yield from _anthropic_fault(script)
    if open_channel:
        yield _anthropic_event("content_block_stop", index=index)
    if script.fault == "no_finish":
        return
    finish = "refused" if script.fault == "refusal" else script.finish
    usage = {
        "output_tokens": len(pieces),
        "output_tokens_details": {"thinking_tokens": len(script.reasoning)},
    }
    end = {"stop_reason": _ANTHROPIC_FINISH[finish], "stop_sequence": None}
    yield _anthropic_event("message_delta", delta=end, usage=usage)
    yield _anthropic_event("message_stop")


def _anthropic_fault(script: Script) -> Iterator[str]:
    if script.fault == "broken_json":
        yield 'event: content_block_delta\ndata: {"type": "content_bl\n\n'
    elif script.fault == "error_event":
        body = script.error_body or _error_body("anthropic", script)
        yield f"event: error\ndata: {json.dumps(body)}\n\n"
    elif script.fault in ("hang", "cut"):
        yield script.fault


def _anthropic_event(kind: str, **content: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **content})}\n\n"
