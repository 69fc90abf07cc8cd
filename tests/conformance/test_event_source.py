"""EventSource in a real browser: no headers, and pages of origins that we know and do not know."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.callers import RUN_EVENTS, Caller, is_opening, node_lines
from tests.e2e.test_browser import browser


@pytest.fixture(scope="module")
async def other_port() -> AsyncIterator[int]:
    """A server with an empty page."""

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text="<title>Elsewhere</title>", content_type="text/html")

    application = web.Application()
    application.router.add_get("/", page)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture(scope="module")
def environment(other_port: int) -> dict[str, str]:
    return {"MIRRORGRAPH_ALLOWED_ORIGINS": f"http://localhost:{other_port}"}


REFUSED: dict[str, Any] = {
    "": {"opened": 0, "next": [], "complete": [], "failed": "closed"},
    # Stopped by the browser, which is told nothing about that origin when it asks.
    ": PUT": "blocked",
    ": POST": "blocked",
    # Needs no asking, and so reaches the server, which refuses it.
    ": text": "blocked",
}


async def test_event_source_is_served_to_known_origins_alone(
    caller: Caller, other_port: int
) -> None:
    """Rules T34, T43."""
    begun = await caller.begin("Well? [demo: length=3]")
    events = await caller.follow(begun.run)
    before = await figures(caller)
    steps: dict[str, Any] = {}
    async for line in node_lines(
        "event-source.mjs",
        address=caller.server.address,
        executablePath=browser(),
        other=f"http://127.0.0.1:{other_port}/",
        query=RUN_EVENTS,
        variables={"run": begun.run},
    ):
        steps[line["step"]] = line["seen"]
    after = await figures(caller)

    # Every stream that was served begins with an opening of its own moment.
    for each in ("own origin", "allowed origin"):
        assert is_opening(steps[each]["next"].pop(0), None)
    assert is_opening(steps["single connection"]["next"]["run"].pop(0), None)
    results = [{"data": {"runEvents": event}} for event in events]
    whole = {"opened": 1, "next": results, "complete": [""], "failed": None}
    assert steps == {
        "own origin": whole,
        "single connection": {
            "reserved": 201,
            "begun": [202, 202],
            "next": {"run": results, "viewer": [{"data": {"viewer": {"roles": []}}}]},
            "complete": ["run", "viewer"],
            "failed": False,
        },
        "allowed origin": whole,
        "allowed origin: PUT": 201,
        "allowed origin: POST": 200,
        "allowed origin: text": 415,
        **{f"another port{act}": seen for act, seen in REFUSED.items()},
        **{f"another site{act}": seen for act, seen in REFUSED.items()},
        "a name that leads to us": 400,
    }
    # What the server saw of it: two streams without the header, three texts, three streams served.
    assert {name: after[name] - before[name] for name in after} == {
        "PREFLIGHT_REQUIRED": 2,
        "UNSUPPORTED_MEDIA_TYPE": 3,
        "streams": 3,
    }


async def figures(caller: Caller) -> dict[str, float]:
    """What the server has counted so far."""
    told = str((await caller.request("GET", "/metrics")).body)
    samples = [each for family in text_string_to_metric_families(told) for each in family.samples]

    def count(name: str, **labels: str) -> float:
        return sum(
            each.value
            for each in samples
            if each.name == f"mirrorgraph_{name}_total" and each.labels == labels
        )

    return {
        "PREFLIGHT_REQUIRED": count("refusals", code="PREFLIGHT_REQUIRED"),
        "UNSUPPORTED_MEDIA_TYPE": count("refusals", code="UNSUPPORTED_MEDIA_TYPE"),
        "streams": count("operations", kind="subscription", outcome="ok"),
    }
