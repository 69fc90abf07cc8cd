"""`/metrics` of a running server: what it shows, and that it goes up and back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

import asyncpg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from db.enums import RunStatus
from tests.e2e.callers import PATIENCE, Caller, event_of
from tests.figures import Figures, changes, read_figures, series

SLOW = "Tell me everything. [demo: rate=100 length=4000]"
POOL_SIZE = 3

# Each family with its type, its labels, and all the values that the labels can have.
KINDS = {"query", "mutation", "subscription"}
OUTCOMES = {"ok", "partial", "failed", "refused", "timeout", "cancelled"}
FAMILIES: dict[str, tuple[str, Mapping[str, set[str]]]] = {
    "mirrorgraph_operations": ("counter", {"kind": KINDS, "outcome": OUTCOMES}),
    "mirrorgraph_operation_seconds": ("histogram", {"kind": KINDS}),
    "mirrorgraph_running_operations": ("gauge", {"kind": KINDS}),
    "mirrorgraph_connections": ("gauge", {"transport": {"websocket", "sse", "multipart"}}),
    "mirrorgraph_pool_connections": (
        "gauge",
        {"pool": {"reading", "writing"}, "state": {"busy", "idle"}},
    ),
    "mirrorgraph_runs": ("gauge", {"state": {each.value for each in RunStatus}}),
    "mirrorgraph_running_runs": ("gauge", {}),
    "mirrorgraph_hub_subscriptions": ("gauge", {}),
    "mirrorgraph_document_cache_entries": ("gauge", {}),
    "mirrorgraph_document_cache_bytes": ("gauge", {}),
    "mirrorgraph_document_cache_hits": ("counter", {}),
    "mirrorgraph_document_cache_misses": ("counter", {}),
}


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_POOL_SIZE": str(POOL_SIZE)}


async def look(caller: Caller) -> Figures:
    answer = await caller.request("GET", "/metrics")
    assert answer.status == 200
    return read_figures(answer.body)


async def seen(caller: Caller, **least: float) -> Figures:
    """The figures once they are these or more; what is not named does not matter."""
    async with asyncio.timeout(PATIENCE):
        while True:
            figures = await look(caller)
            if all(figures[name] >= value for name, value in least.items()):
                return figures
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def locked_characters(dsn: str) -> AsyncIterator[None]:
    """Whoever reads characters waits."""
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE characters IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await connection.close()


async def test_it_is_prometheus_text_with_these_families_and_labels_alone(caller: Caller) -> None:
    assert (await caller.post("{ unknown }")).codes == ["GRAPHQL_VALIDATION_FAILED"]
    answer = await caller.request("GET", "/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"
    families = {each.name: each for each in text_string_to_metric_families(answer.body)}
    refusals = families.pop("mirrorgraph_refusals")
    assert (refusals.type, {tuple(each.labels) for each in refusals.samples}) == (
        "counter",
        {("code",)},
    )
    assert set(families) == set(FAMILIES)
    for name, (kind, labels) in FAMILIES.items():
        family = families[name]
        assert (family.type, bool(family.documentation)) == (kind, True), name
        given = [
            {label: value for label, value in each.labels.items() if label != "le"}
            for each in family.samples
        ]
        assert {tuple(each) for each in given} == {tuple(labels)}, name
        assert {label: {each[label] for each in given} for label in labels} == labels, name


async def test_a_run_and_who_follows_it_are_shown_while_they_last(caller: Caller) -> None:
    before = await look(caller)
    begun = await caller.begin(SLOW)
    async with caller.stream(variables={"run": begun.run}) as results:
        assert "seq" in event_of(await anext(results))
        during = await seen(caller, **{series("mirrorgraph_runs", state="running"): 1})
    watched = (
        "mirrorgraph_runs",
        "mirrorgraph_running",
        "mirrorgraph_connections",
        "mirrorgraph_hub",
    )
    assert changes(before, during, *watched) == {
        "mirrorgraph_runs{state=running}": 1,
        "mirrorgraph_running_runs": 1,
        "mirrorgraph_running_operations{kind=subscription}": 1,
        "mirrorgraph_connections{transport=sse}": 1,
        # The stream, and the worker that listens for a wish to cancel.
        "mirrorgraph_hub_subscriptions": 2,
    }
    await caller.change("RunCancel", run=begun.run)
    await caller.follow(begun.run)
    async with asyncio.timeout(PATIENCE):
        while (after := changes(before, await look(caller), *watched)) != {
            "mirrorgraph_runs{state=cancelled}": 1
        }:
            assert set(after) <= {*changes(before, during), "mirrorgraph_runs{state=cancelled}"}
            await asyncio.sleep(0.02)


async def test_connections_at_work_are_shown_as_busy(caller: Caller, server_dsn: str) -> None:
    reading = "mirrorgraph_pool_connections{pool=reading,state=%s}"
    async with locked_characters(server_dsn):
        asked = "{ characters(first: 1) { nodes { id } } }"
        asking = [asyncio.create_task(caller.ask(asked)) for _ in range(POOL_SIZE - 1)]
        # One is left for the figures themselves.
        during = await seen(caller, **{reading % "busy": POOL_SIZE - 1})
        assert during["mirrorgraph_running_operations{kind=query}"] == POOL_SIZE - 1
    await asyncio.gather(*asking)
    after = await look(caller)
    assert (after[reading % "busy"], after[reading % "idle"]) == (0, POOL_SIZE)
    assert after["mirrorgraph_running_operations{kind=query}"] == 0


async def test_a_known_document_is_a_hit(caller: Caller) -> None:
    before = await look(caller)
    for _ in range(3):
        await caller.ask("query NewHere { me: __typename }")
    changed = changes(before, await look(caller), "mirrorgraph_document_cache")
    assert changed.pop("mirrorgraph_document_cache_bytes") > 0
    assert changed == {
        "mirrorgraph_document_cache_entries": 1,
        "mirrorgraph_document_cache_misses_total": 1,
        "mirrorgraph_document_cache_hits_total": 2,
    }
