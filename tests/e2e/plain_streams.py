"""A client of `GET /runs/{id}/events`, spoken by hand, so that every line is looked at."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping

from tests.e2e.callers import Caller, Json


async def plain_events(
    caller: Caller, run: str, last_seen: int | None = None, query: str = ""
) -> AsyncGenerator[Json, None]:
    """Everything on one stream, the opening first; nothing when the answer is that all was seen.

    `last_seen` goes as Last-Event-ID. A stream that breaks off raises what aiohttp raises.
    """
    headers = {"Accept": "text/event-stream", **caller.headers, **last_event_id(last_seen)}
    address = f"{caller.server.address}/runs/{run}/events{query}"
    async with caller.session.get(address, headers=headers) as response:
        if response.status == 204:
            assert await response.read() == b""
            return
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert response.headers["Cache-Control"] == "no-cache"
        assert response.headers["X-Request-Id"]
        frame: list[str] = []
        async for raw in response.content:
            line = raw.decode()
            assert line.endswith("\n"), line
            assert "\r" not in line, line
            if line != "\n":
                frame.append(line[:-1])
                continue
            if frame != [":"]:  # a heartbeat
                yield _event_in(frame)
            frame = []
        assert frame == []


def last_event_id(seq: int | None) -> Mapping[str, str]:
    """The header with which EventSource comes back."""
    return {} if seq is None else {"Last-Event-ID": str(seq)}


def _event_in(frame: list[str]) -> Json:
    *head, data = frame
    event: Json = json.loads(data.removeprefix("data: "))
    number = [f"id: {event['seq']}"] if "seq" in event else []
    assert head == [*number, f"event: {event['__typename']}"]
    return event
