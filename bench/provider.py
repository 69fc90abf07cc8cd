"""A model provider for W9: answers in OpenAI's wire format after a known time.

Its first token says when it had the request and when it sent that token, in nanoseconds of the wall
clock, so whoever reads it knows what the provider itself took.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import orjson
from aiohttp import web

# So that the end of the answer does not come together with its beginning.
_TOKENS_BEHIND = 5
_SECONDS_BETWEEN = 0.01


class Provider:
    """The handler of requests; `delay` is in seconds."""

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Stream an answer."""
        await request.read()
        received = time.time_ns()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(_chunk({"role": "assistant", "content": ""}))
        await asyncio.sleep(self._delay)
        await response.write(_chunk({"content": f"{received} {time.time_ns()}"}))
        for _ in range(_TOKENS_BEHIND):
            await asyncio.sleep(_SECONDS_BETWEEN)
            await response.write(_chunk({"content": " and"}))
        await response.write(_chunk({}, "stop"))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    chunk = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


async def serve(delay: float) -> None:
    """Serve on a port of the system's choice until told to stop."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", Provider(delay).answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        print(f"The provider is ready at http://{host}:{port}", flush=True)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def main() -> None:
    """`python -m bench.provider SECONDS`."""
    parser = argparse.ArgumentParser(prog="bench.provider")
    parser.add_argument("delay", type=float)
    asyncio.run(serve(parser.parse_args().delay))


if __name__ == "__main__":
    main()
