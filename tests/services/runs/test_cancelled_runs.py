"""Stopping a run on purpose."""

from __future__ import annotations

import asyncio

import pytest

from db.enums import RunEventType
from db.tables import MirrorTree
from services import runs
from services.access import require_row
from services.errors import NotFound
from services.providers import TextPart
from tests.conftest import People
from tests.services.runs.servers import (
    SHORT_LEASE,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
)


async def test_a_queued_run_is_cancelled_at_once(bench: Bench, people: People) -> None:
    async with a_server(bench.dsn, works=False) as idle:
        run = await bench.ask()
        following = asyncio.create_task(idle.events(bench.viewer, run))
        for viewer in (people.stranger, people.anonymous):
            with pytest.raises(NotFound):
                await bench.cancel(run, viewer)
        assert (await bench.run(run)).status == "queued"
        cancelled = await bench.cancel(run)
        assert (cancelled.status, cancelled.node_id, cancelled.last_seq) == ("cancelled", None, 1)
        events = await following
        assert [(event.seq, event.type, event.status) for event in events] == [
            (1, RunEventType.RUN_FINISHED, "cancelled")
        ]
    async with a_server(bench.dsn) as server:
        later = await bench.ask("Later?")
        await bench.ended(later)
        assert len(server.provider.answers) == 1
        again = await bench.cancel(run)
    assert again == cancelled
    assert await bench.stored(run) == [(1, "run_finished")]


async def test_a_running_run_is_cancelled_from_another_server(bench: Bench) -> None:
    async with (
        a_server(bench.dsn, ScriptedProvider(is_held=True)) as server,
        a_server(bench.dsn, holder="server_b", works=False) as other,
    ):
        run = await bench.ask(tree=bench.tree)
        answer = await server.provider.begun()
        answer.script.put_nowait(TextPart("reasoning", "Hm."))
        answer.script.put_nowait(TextPart("text", "So far"))
        stream = other.follow(bench.viewer, run)
        events = [await anext(stream) for _ in range(6)]
        async with other.database.writing() as writing:
            await runs.cancel_run(writing, bench.viewer, run.id)
        events += [event async for event in stream]
        (run,) = await bench.ended(run)
        assert not answer.is_open
        assert (await bench.cancel(run)).status == "cancelled"
    assert (run.status, run.error, run.finish_reason) == ("cancelled", None, None)
    assert numbers_of(events) == [1, 2, 3, 4, 5, 6, 7]
    assert events[-1].status == "cancelled"
    node = await bench.node(run)
    assert (node.status, node.content, node.reasoning) == ("partial", "So far", "Hm.")
    async with bench.database.reading() as reading:
        tree = await require_row(reading, bench.viewer, MirrorTree, bench.tree.id)
    assert tree.working_entry_node_id is None


async def test_a_run_can_be_cancelled_after_announcements_were_lost(bench: Bench) -> None:
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider, lease=SHORT_LEASE) as server:
        run = await bench.ask()
        await provider.begun()
        server.hub.interrupt("STREAM_INTERRUPTED", "Come back.")
        await bench.cancel(run)
        (run,) = await bench.ended(run)
    assert run.status == "cancelled"


async def test_a_run_that_has_ended_cannot_be_cancelled(bench: Bench) -> None:
    async with a_server(bench.dsn):
        run = await bench.ask()
        (ended,) = await bench.ended(run)
        stored = await bench.stored(run)
        assert await bench.cancel(run) == ended
    assert await bench.stored(run) == stored
