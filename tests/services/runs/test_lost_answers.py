"""Transactions that are committed although nobody is told so, because the connection breaks off."""

from __future__ import annotations

import asyncio

import pytest

from services.providers import TextPart
from tests.services.runs.breaking import Between
from tests.services.runs.servers import (
    STOP,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    text_of,
    until,
)


@pytest.mark.parametrize("count", [1, 3])
async def test_a_commit_that_is_not_heard_of_stores_and_shows_its_events_once(
    bench: Bench, count: int
) -> None:
    """Rule R6."""
    async with (
        Between(bench.dsn).open() as between,
        a_server(between.dsn, ScriptedProvider(is_held=True)) as server,
    ):
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        following = asyncio.create_task(server.events(bench.viewer, run))
        await until(lambda: log.last_seq == 4 and not log.unstored())
        between.to_lose = count
        for word in ("one ", "two ", "three"):
            answer.script.put_nowait(TextPart("text", word))
        await until(lambda: between.lost == count and log.last_seq == 7 and not log.unstored())
        answer.script.put_nowait(STOP)
        events = await following
        (run,) = await bench.ended(run)
    assert run.status == "succeeded"
    assert numbers_of(events) == list(range(1, 10))
    assert [seq for seq, _ in await bench.stored(run)] == numbers_of(events)
    assert text_of(events) == (await bench.node(run)).content == "one two three"


async def test_an_end_whose_commit_is_not_heard_of_stays_as_it_is(bench: Bench) -> None:
    """Rules R6, R8."""
    async with (
        Between(bench.dsn).open() as between,
        a_server(between.dsn, ScriptedProvider(is_held=True)) as server,
    ):
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        answer.script.put_nowait(TextPart("text", "whole"))
        await until(lambda: log.last_seq == 5 and not log.unstored())
        following = asyncio.create_task(server.events(bench.viewer, run))
        # Whichever transaction is the first from here on, it is one of the end.
        between.to_lose = 2
        answer.script.put_nowait(STOP)
        events = await following
        (run,) = await bench.ended(run)
        between.to_lose = 0
    assert between.lost >= 1
    assert (run.status, run.last_seq) == ("succeeded", 7)
    assert numbers_of(events) == list(range(1, 8))
    assert [seq for seq, _ in await bench.stored(run)] == numbers_of(events)
    node = await bench.node(run)
    assert (node.status, node.content) == ("solidified", "whole")
