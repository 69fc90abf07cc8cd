"""Servers that are gone, or go."""

from __future__ import annotations

import asyncio

from db.enums import RunEventType, RunStatus
from services import runs
from services.providers import TextPart
from services.runs import recovering
from tests.services.runs.servers import (
    LONG_LEASE,
    PATIENCE,
    WORDS,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    someone_waits_for_a_lock,
    text_of,
    until,
)


async def test_a_lost_run_goes_on_with_the_next_number(bench: Bench) -> None:
    """Rules R7, R15. What was not stored has been seen by nobody."""
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        answer.script.put_nowait(TextPart("text", "kept"))
        stream = server.follow(bench.viewer, run)
        seen = [await anext(stream) for _ in range(5)]
        later = asyncio.create_task(anext(stream))
        async with bench.run_row_held(run) as holding:
            answer.script.put_nowait(TextPart("text", " dropped"))
            await until(lambda: someone_waits_for_a_lock(bench))
            assert [event.text for event in log.unstored()] == [" dropped"]
            # Recovery passes over what somebody else holds.
            async with bench.database.writing() as writing:
                assert await recovering.recover_lost_run(writing) is None
            # The server is presumed dead before its batch is stored.
            await holding.execute(
                "UPDATE runs SET lease_holder = 'server_gone',"
                " lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = $1",
                run.id,
            )
        await until(lambda: server.worker.live_log(run.id) is None)
        async with bench.database.writing() as writing:
            recovered = await recovering.recover_lost_run(writing)
            assert recovered is not None
            assert recovered.id == run.id
            assert await recovering.recover_lost_run(writing) is None
        async with asyncio.timeout(PATIENCE):
            seen += [await later, *[event async for event in stream]]
        (run,) = await bench.ended(run)
    assert numbers_of(seen) == [1, 2, 3, 4, 5, 6]
    assert text_of(seen) == "kept"
    assert seen[-1].error_code == run.error_code
    assert run.last_seq == 6
    assert (run.status, run.error_code, run.lease_holder) == ("failed", "SERVER_LOST", None)
    assert [seq for seq, _ in await bench.stored(run)] == [1, 2, 3, 4, 5, 6]
    node = await bench.node(run)
    assert (node.status, node.content) == ("partial", "kept")


async def test_a_run_lost_before_anything_was_stored(bench: Bench) -> None:
    run = await bench.ask()
    async with bench.database.writing() as writing:
        taken = await runs.records.take_next_run(writing, "server_gone", "scripted", LONG_LEASE)
    assert taken is not None
    assert (taken.id, taken.last_seq) == (run.id, 0)
    await bench.sql("UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 second'")
    async with a_server(bench.dsn) as server:
        events = await server.events(bench.viewer, run)
        # The seat is free again at once.
        (next_run,) = await bench.ended(await bench.ask("Next?"))
    assert [(event.seq, event.type) for event in events] == [(1, RunEventType.RUN_FINISHED)]
    node = await bench.node(run)
    assert (node.status, node.content, node.reasoning) == ("partial", "", None)
    assert next_run.status == "succeeded"


async def test_an_only_server_recovers_at_once(bench: Bench) -> None:
    """Rule R14."""
    run = await bench.ask()
    async with bench.database.writing() as writing:
        await runs.records.take_next_run(writing, "server_gone", "scripted", 3600)
    async with a_server(bench.dsn, works=False) as server:
        await server.worker.start(is_only_server=True)
        assert (await bench.run(run)).error_code == "SERVER_LOST"


async def test_draining_keeps_the_text_and_leaves_the_queue(bench: Bench) -> None:
    """Rule R13."""
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider, concurrent=1) as server:
        run = await bench.ask("Now?")
        answer = await provider.begun()
        waiting = await bench.ask("Later?")
        for part in WORDS:
            answer.script.put_nowait(part)
        stream = server.follow(bench.viewer, run)
        events = [await anext(stream) for _ in range(7)]
        await asyncio.wait_for(server.worker.drain(), PATIENCE)
        events += [event async for event in stream]
        assert not answer.is_open
        assert provider.is_closed
        assert len(provider.answers) == 1
        drained = await bench.run(run)
        assert (await bench.run(waiting)).status == "queued"
    assert (drained.status, drained.error_code) == ("failed", "SERVER_STOPPED")
    assert numbers_of(events) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert events[-1].error_code == drained.error_code
    node = await bench.node(run)
    assert (node.status, node.content, node.reasoning) == ("partial", "Yes, always.", "Hm.")
    (seat,) = await bench.sql("SELECT lease_holder FROM runtime_seats")
    assert seat["lease_holder"] is None
    async with a_server(bench.dsn, holder="server_b"):
        (waiting,) = await bench.ended(waiting)
    assert waiting.status == RunStatus.SUCCEEDED


async def test_draining_while_nothing_was_said_yet(bench: Bench) -> None:
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        await until(lambda: server.worker.live_log(run.id) is not None)
        await asyncio.wait_for(server.worker.drain(), PATIENCE)
    ended = await bench.run(run)
    assert (ended.status, ended.error_code) == ("failed", "SERVER_STOPPED")
    assert (await bench.node(run)).content == ""
    stored = [seq for seq, _ in await bench.stored(run)]
    assert stored == list(range(1, len(stored) + 1))
