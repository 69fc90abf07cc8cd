"""A run's events by EventSource in a real browser, which comes back by itself."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from tests.conformance.test_streams import Outage
from tests.e2e.callers import PATIENCE, Caller, Json, node_lines, numbers_of, text_of
from tests.e2e.test_browser import browser

LONG_RUN = "Tell me everything. [demo: rate=50 length=200]"
# How much is seen before the connection is cut.
SEEN = 20


async def test_a_browser_comes_back_by_itself_and_stops_at_the_end(caller: Caller) -> None:
    """Rules R9, R16, R17, T34."""
    outage = Outage(urlsplit(caller.server.address).port or 0)
    await outage.begin()
    begun = await caller.begin(LONG_RUN)
    openings: list[Json] = []
    events: list[Json] = []
    errors: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for line in node_lines(
            "run-events.mjs",
            address=f"http://127.0.0.1:{outage.port}/",
            executablePath=browser(),
            run=begun.run,
        ):
            if "error" in line:
                errors.append(line["error"])
                continue
            event = line["data"]
            assert (line["type"], line["id"]) == (event["__typename"], str(event["seq"]))
            if event["__typename"] == "StreamOpened":
                assert (event["seq"], event["text"]) == (len(events), text_of(events))
                openings.append(event)
                continue
            events.append(event)
            if len(events) == SEEN:
                await outage.end()
                await outage.begin()
    await outage.end()
    assert events == await caller.follow(begun.run)
    assert numbers_of(events) == list(range(1, len(events) + 1))
    # It was cut off once, came back at the end of the stream, and was told to stop.
    assert len(openings) == 2
    assert errors == ["comes back", "comes back", "over"]
