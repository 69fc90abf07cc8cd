"""Events are stored, then shown: whatever the database does, nothing is lost or stored twice."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from services.providers import TextPart
from services.runs import Event
from services.runs.records import store_events
from services.runs.working import MAX_WAITING
from tests.services.runs.servers import (
    PATIENCE,
    STOP,
    Bench,
    ScriptedProvider,
    Server,
    a_server,
    numbers_of,
    someone_waits_for_a_lock,
    text_of,
    until,
)


async def test_nothing_is_shown_that_is_not_stored(bench: Bench) -> None:
    """Rules R5, R6. Neither here nor elsewhere; and a provider that is too far ahead waits."""
    words = [TextPart("text", f"{number} ") for number in range(3 * MAX_WAITING)]
    async with (
        a_server(bench.dsn, ScriptedProvider(is_held=True)) as server,
        a_server(bench.dsn, holder="server_b", works=False) as other,
    ):
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        seen: dict[str, list[Event]] = {"here": [], "there": []}

        async def follow(where: str, at: Server) -> None:
            async for event in at.follow(bench.viewer, run):
                seen[where].append(event)

        following = [
            asyncio.create_task(follow("here", server)),
            asyncio.create_task(follow("there", other)),
        ]
        await until(lambda: numbers_of(seen["here"]) == numbers_of(seen["there"]) == [1, 2, 3, 4])
        async with bench.run_row_held(run):
            for word in words:
                answer.script.put_nowait(word)
            answer.script.put_nowait(STOP)
            await until(lambda: len(log.unstored()) == MAX_WAITING)
            await until(lambda: someone_waits_for_a_lock(bench))
            # One piece is in the worker's hand, the others are still the provider's.
            assert answer.taken == MAX_WAITING + 1
            server.hub.publish_all()
            other.hub.publish_all()
            # One who comes now gets no more than the others.
            stream = server.follow(bench.viewer, run, 3)
            assert (await anext(stream)).seq == 4
            late = asyncio.create_task(anext(stream))
            done, _ = await asyncio.wait({late, *following}, timeout=0.05)
            assert not done
            assert [len(each) for each in seen.values()] == [4, 4]
            assert len(log.unstored()) == MAX_WAITING
        async with asyncio.timeout(PATIENCE):
            assert (await late).seq == 5
            await stream.aclose()
            await asyncio.gather(*following)
        (run,) = await bench.ended(run)
        node = await bench.node(run)
    assert run.status == "succeeded"
    assert seen["here"] == seen["there"]
    assert numbers_of(seen["here"]) == list(range(1, 3 * MAX_WAITING + 7))
    assert [seq for seq, _ in await bench.stored(run)] == numbers_of(seen["here"])
    assert node.content == text_of(seen["here"]) == "".join(word.text for word in words)


async def test_a_full_log_outlasts_a_database_that_gives_no_answer(bench: Bench) -> None:
    words = [TextPart("text", f"{number} ") for number in range(MAX_WAITING + 9)]
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider, statement_timeout=0.1) as server:
        run = await bench.ask()
        answer = await provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        await until(lambda: not log.unstored())
        failures = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        async with bench.run_row_held(run):
            for word in words:
                answer.script.put_nowait(word)
            await until(lambda: len(log.unstored()) == MAX_WAITING)
            before = (await bench.sql(failures))[0][0]

            async def has_failed_twice() -> bool:
                return bool((await bench.sql(failures))[0][0] >= before + 2)

            await until(has_failed_twice)
        answer.script.put_nowait(STOP)
        (run,) = await bench.ended(run)
    assert run.status == "succeeded"
    assert (await bench.node(run)).content == "".join(word.text for word in words)


async def test_a_run_begins_once_what_it_is_about_can_be_read(bench: Bench) -> None:
    run = await bench.ask()
    await bench.sql("ALTER TABLE users RENAME TO away")
    with capture_logs() as logs:
        async with a_server(bench.dsn) as server:
            await until(lambda: [each for each in logs if "a run waits" in each["event"]])
            await bench.sql("ALTER TABLE away RENAME TO users")
            events = await server.events(bench.viewer, run)
    assert events[-1].status == "succeeded"
    assert numbers_of(events) == list(range(1, 10))


async def test_a_run_outlasts_the_loss_of_every_connection(bench: Bench) -> None:
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider) as server:
        run = await bench.ask()
        answer = await provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        answer.script.put_nowait(TextPart("text", "before"))
        await until(lambda: log.last_seq == 5 and not log.unstored())
        await bench.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        answer.script.put_nowait(TextPart("text", " and after"))
        await until(lambda: log.last_seq == 6 and not log.unstored())
        answer.script.put_nowait(STOP)
        (run,) = await bench.ended(run)
    assert run.status == "succeeded"
    assert (await bench.node(run)).content == "before and after"


async def test_a_whole_answer_outlasts_a_database_that_refuses_its_end(bench: Bench) -> None:
    """Rule R8."""
    async with a_server(bench.dsn) as server:
        await bench.sql(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$"
        )
        await bench.sql(
            "CREATE TRIGGER refuse BEFORE UPDATE ON tree_nodes"
            " FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        with capture_logs() as logs:
            run = await bench.ask()
            await until(lambda: [each for each in logs if "an end waits" in each["event"]])
        assert (await bench.node(run)).status == "bud"
        await bench.sql("DROP TRIGGER refuse ON tree_nodes")
        (run,) = await bench.ended(run)
        events = await server.events(bench.viewer, run)
    assert run.status == "succeeded"
    assert (await bench.node(run)).status == "solidified"
    assert numbers_of(events) == list(range(1, run.last_seq + 1))


async def test_a_batch_whose_commit_was_not_heard_of_is_stored_once(bench: Bench) -> None:
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider) as server:
        run = await bench.ask()
        await provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        await until(lambda: log.last_seq == 4 and not log.unstored())
        async with server.database.writing() as writing:
            await store_events(writing, "server_a", run.id, log.after(0))
        assert [seq for seq, _ in await bench.stored(run)] == [1, 2, 3, 4]
