"""What is in a run's log, and who sees it."""

from __future__ import annotations

import asyncio

import pytest

from db.enums import RunEventType
from db.tables import MirrorTree
from services.access import require_row
from services.errors import NotFound, Unavailable
from services.providers import TextPart
from services.runs import Event
from services.runs.events import LiveLog
from tests.conftest import People
from tests.services.runs.servers import (
    PATIENCE,
    STOP,
    WORDS,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    text_of,
    types_of,
    until,
)


async def test_events_are_numbered_without_gap_and_leave_a_solid_answer(bench: Bench) -> None:
    """Rules R3, R5, R15."""
    async with a_server(bench.dsn) as server:
        run = await bench.ask(tree=bench.tree)
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert types_of(events) == [
        RunEventType.RUN_STARTED,
        RunEventType.PHASE_STARTED,
        RunEventType.PHASE_FINISHED,
        RunEventType.PHASE_STARTED,
        RunEventType.TEXT_DELTA,
        RunEventType.TEXT_DELTA,
        RunEventType.TEXT_DELTA,
        RunEventType.PHASE_FINISHED,
        RunEventType.RUN_FINISHED,
    ]
    assert numbers_of(events) == list(range(1, 10))
    assert await bench.stored(run) == [(event.seq, event.type.value) for event in events]
    assert events[-1].payload == {"status": "succeeded", "node_id": run.node_id, "error": None}
    assert (run.status, run.last_seq, run.finish_reason) == ("succeeded", 9, "stop")
    assert (run.model, run.error) == ("scripted-model-1", None)
    assert run.usage == {"input_tokens": 7, "output_tokens": 3, "reasoning_tokens": 1}
    assert run.lease_holder is None
    node = await bench.node(run)
    assert (node.status, node.content, node.reasoning) == ("solidified", "Yes, always.", "Hm.")
    assert node.model == "scripted-model-1"
    async with bench.database.reading() as reading:
        tree = await require_row(reading, bench.viewer, MirrorTree, bench.tree.id)
    assert tree.working_entry_node_id == node.id


async def test_live_and_stored_events_are_equal_from_every_number_on(bench: Bench) -> None:
    """Rule R9."""
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        live = [asyncio.create_task(server.events(bench.viewer, run, after)) for after in range(12)]
        answer = await server.provider.begun()
        for part in (*WORDS, STOP):
            answer.script.put_nowait(part)
        streams = await asyncio.gather(*live)
        await bench.ended(run)
        await until(lambda: server.worker.live_log(run.id) is None)
        for after, stream in enumerate(streams):
            assert stream == streams[0][after:]
            assert await server.events(bench.viewer, run, after) == stream
    assert len(streams[0]) == 9


async def test_another_server_shows_the_same_events_once_and_while_they_come(
    bench: Bench,
) -> None:
    """Rule R9."""
    async with (
        a_server(bench.dsn, ScriptedProvider(is_held=True)) as server,
        a_server(bench.dsn, holder="server_b", works=False) as other,
    ):
        run = await bench.ask()
        answer = await server.provider.begun()
        here = asyncio.create_task(server.events(bench.viewer, run))
        there: list[Event] = []
        stream = other.follow(bench.viewer, run)
        async with asyncio.timeout(PATIENCE):
            # Each word arrives before the next one is said.
            for word in ("one ", "two ", "three"):
                answer.script.put_nowait(TextPart("text", word))
                while not there or there[-1].text != word:
                    there.append(await anext(stream))
            answer.script.put_nowait(STOP)
            there += [event async for event in stream]
        assert there == await here
        assert numbers_of(there) == list(range(1, len(there) + 1))
        assert text_of(there) == "one two three"


async def test_strangers_cannot_follow(bench: Bench, people: People) -> None:
    async with a_server(bench.dsn, works=False) as server:
        run = await bench.ask()
        for viewer in (people.stranger, people.anonymous):
            with pytest.raises(NotFound):
                await anext(server.follow(viewer, run))
        assert server.hub.open_subscriptions == 0


async def test_a_follower_that_hangs_up_leaves_nothing_behind(bench: Bench) -> None:
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        await server.provider.begun()
        before = server.hub.open_subscriptions
        stream = server.follow(bench.viewer, run)
        await anext(stream)
        assert server.hub.open_subscriptions == before + 1
        await stream.aclose()
        assert server.hub.open_subscriptions == before


async def test_an_interrupted_stream_can_be_resumed(bench: Bench) -> None:
    """Rule R11."""
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        answer = await server.provider.begun()
        stream = server.follow(bench.viewer, run)
        first = [await anext(stream) for _ in range(4)]
        following = asyncio.create_task(anext(stream))
        await until(lambda: not following.done() and server.hub.open_subscriptions >= 3)
        server.hub.interrupt("STREAM_INTERRUPTED", "Come back.")
        with pytest.raises(Unavailable):
            await asyncio.wait_for(following, PATIENCE)
        answer.script.put_nowait(STOP)
        rest = await server.events(bench.viewer, run, first[-1].seq)
    assert numbers_of([*first, *rest]) == [1, 2, 3, 4, 5, 6]


def test_a_log_shows_what_is_stored() -> None:
    log = LiveLog("run", 0)
    log.add(RunEventType.RUN_STARTED, {})
    log.add(RunEventType.PHASE_STARTED, {"name": "context"})
    log.add(RunEventType.PHASE_FINISHED, {"name": "context"})
    assert numbers_of(log.unstored()) == [1, 2, 3]
    assert log.after(0) == []
    log.mark_stored(2)
    assert numbers_of(log.unstored()) == [3]
    assert [numbers_of(log.after(seq)) for seq in (0, 1, 2, 9)] == [[1, 2], [2], [], []]
    assert log.last_seq == 3
    assert log.covers(0)
    assert not LiveLog("run", 7).covers(6)
