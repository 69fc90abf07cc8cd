"""The texts of events: beside the log, and erased in time without a trace in what only grows."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from db.enums import RunEventType, TextChannel, Visibility
from db.tables import Run
from services import runs
from services.errors import Invalid, NotFound
from services.runs import Event, StreamOpening, following, replaying, texts_until
from services.runs.forgetting import RUNS_AT_ONCE
from tests.conftest import People
from tests.factories import make_tree
from tests.services.runs.servers import (
    Bench,
    ScriptedProvider,
    Server,
    a_server,
    numbers_of,
    text_of,
)


async def texts(bench: Bench, run: Run) -> list[tuple[int, str]]:
    rows = await bench.sql(
        "SELECT seq, text FROM run_event_texts WHERE run_id = $1 ORDER BY 1", run.id
    )
    return [(row["seq"], row["text"]) for row in rows]


async def ended_before(bench: Bench, run: Run, interval: str) -> None:
    await bench.sql(
        f"UPDATE runs SET ended_at = clock_timestamp() - interval '{interval}' WHERE id = $1",
        run.id,
    )


async def forget(bench: Bench, days: int = 30) -> int:
    async with bench.database.writing() as writing:
        return await runs.forget_old_texts(writing, days)


async def opened(server: Server, bench: Bench, run: Run, after: int) -> list[Any]:
    """Everything that a stream says, its opening too."""
    stream = runs.follow_run(
        server.database, server.hub, server.worker, bench.viewer, run.id, after
    )
    async with contextlib.aclosing(stream):
        return [each async for each in stream]


async def openings(bench: Bench, run: Run) -> tuple[list[str], list[str]]:
    """The texts of both channels at the two numbers behind the last piece."""
    places = [(run.id, seq) for seq in (7, 9)]
    async with bench.database.reading() as reading:
        text, reasoning = [
            await texts_until(reading, bench.viewer, places, channel) for channel in TextChannel
        ]
    return text, reasoning


async def test_a_log_holds_no_text_of_its_own(bench: Bench) -> None:
    """Rule R18."""
    async with a_server(bench.dsn) as server:
        run = await bench.ask("A secret question?")
        live = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
        # From memory and from the database: the same.
        assert await server.events(bench.viewer, run) == live
    assert text_of(live) == "Yes, always."
    assert await texts(bench, run) == [(5, "Hm."), (6, "Yes"), (7, ", always.")]
    rows = await bench.sql("SELECT type, payload_json::text FROM run_events ORDER BY seq")
    stored = " ".join(row["payload_json"] for row in rows)
    for text in ("Hm.", "Yes", "always", "secret"):
        assert text not in stored
    deltas = [row["payload_json"] for row in rows if row["type"] == "text_delta"]
    assert ["channel" in each and "target_id" in each for each in deltas] == [True] * 3


async def test_texts_are_kept_for_so_many_days_and_then_erased(bench: Bench) -> None:
    """Rule R19. Answers, events and numbers stay."""
    async with a_server(bench.dsn) as server:
        old, young = await bench.ended(await bench.ask(), await bench.ask())
        events = await server.events(bench.viewer, old)
        node = await bench.node(old)
        await ended_before(bench, old, "30 days 1 minute")
        await ended_before(bench, young, "29 days 23 hours")
        assert await forget(bench, 0) == 0
        assert await forget(bench, 31) == 0
        assert await forget(bench) == 1
        assert await forget(bench) == 0
        assert await texts(bench, old) == []
        assert len(await texts(bench, young)) == 3
        assert ((await bench.run(old)).texts_until_seq, old.texts_until_seq) == (7, None)
        assert (await bench.run(young)).texts_until_seq is None
        assert await bench.stored(old) == [(each.seq, each.type) for each in events]
        assert await bench.node(old) == node
        assert node.content == "Yes, always."
        assert await server.events(bench.viewer, old, 7) == events[7:]
        assert text_of(await server.events(bench.viewer, young)) == "Yes, always."


async def test_what_has_not_ended_is_left_alone(bench: Bench) -> None:
    """Rule R19."""
    async with a_server(bench.dsn, works=False):
        run = await bench.ask()
        await bench.sql("UPDATE runs SET created_at = created_at - interval '90 days'")
        assert await forget(bench, 1) == 0
    assert (await bench.run(run)).texts_until_seq is None


async def test_runs_without_a_text_are_done_once_and_can_be_followed(bench: Bench) -> None:
    """Rule R19."""
    async with a_server(bench.dsn, works=False) as server:
        run = await bench.cancel(await bench.ask())
        await ended_before(bench, run, "90 days")
        assert [await forget(bench), await forget(bench)] == [1, 0]
        assert (await bench.run(run)).texts_until_seq == 0
        opening, *events = await opened(server, bench, run, 0)
        assert isinstance(opening, StreamOpening)
        assert numbers_of(events) == [1]
    async with bench.database.reading() as reading:
        found = await texts_until(reading, bench.viewer, [(run.id, 1)], TextChannel.TEXT)
    assert found == [""]


async def test_many_runs_are_done_in_small_steps(bench: Bench) -> None:
    """Rule R19."""
    for _ in range(RUNS_AT_ONCE + 1):
        await bench.cancel(await bench.ask())
    await bench.sql("UPDATE runs SET ended_at = ended_at - interval '90 days'")
    assert [await forget(bench) for _ in range(3)] == [RUNS_AT_ONCE, 1, 0]


async def test_who_was_there_before_is_told_from_where_a_run_can_be_followed(
    bench: Bench, people: People
) -> None:
    """Rules R16, R20. And that alone; others are told nothing at all."""
    async with a_server(bench.dsn) as server:
        (run,) = await bench.ended(await bench.ask())
        whole = await server.events(bench.viewer, run)
        await ended_before(bench, run, "90 days")
        await forget(bench)
        for after in range(7):
            stream = runs.follow_run(
                server.database, server.hub, server.worker, bench.viewer, run.id, after
            )
            with pytest.raises(Invalid) as refused:
                await anext(stream)
            assert (refused.value.code, refused.value.path) == ("OUT_OF_WINDOW", ("after",))
            assert refused.value.details == {"oldest": 7}
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        for after in (7, 8, 9):
            opening, *events = await opened(server, bench, run, after)
            assert (opening.seq, events) == (after, whole[after:])
        for viewer in (people.stranger, people.anonymous):
            with pytest.raises(NotFound):
                await anext(
                    runs.follow_run(server.database, server.hub, server.worker, viewer, run.id, 0)
                )
        # The answer has the text that the events have no more.
        assert await openings(bench, run) == (["Yes, always."] * 2, ["Hm."] * 2)
        await bench.sql("UPDATE runs SET node_id = NULL WHERE id = $1", run.id)
        assert await openings(bench, run) == ([""] * 2, [""] * 2)


async def test_a_stream_whose_texts_are_erased_meanwhile_ends_with_that(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule R20. It does not go on with holes."""
    async with (
        a_server(bench.dsn),
        # One that has no log of the run in memory.
        a_server(bench.dsn, holder="server_b", works=False) as server,
    ):
        (run,) = await bench.ended(await bench.ask())
        read = following.events_after

        async def read_few(*args: Any) -> list[Event]:
            return (await read(*args))[:5]

        monkeypatch.setattr(following, "events_after", read_few)
        stream = runs.follow_run(
            server.database, server.hub, server.worker, bench.viewer, run.id, 0
        )
        seen = [await anext(stream) for _ in range(6)]
        assert seen[-1].seq == 5
        await ended_before(bench, run, "90 days")
        await forget(bench)
        with pytest.raises(Invalid) as refused:
            await anext(stream)
    assert (refused.value.code, refused.value.details) == ("OUT_OF_WINDOW", {"oldest": 7})


async def test_all_texts_of_a_character_are_erased_whatever_their_age(
    bench: Bench, people: People
) -> None:
    """Rule R18. Those of others stay."""
    async with bench.database.writing() as writing:
        other = await make_tree(writing, people.owner)
    async with a_server(bench.dsn, ScriptedProvider()):
        *theirs, kept = await bench.ended(
            *[await bench.ask() for _ in range(3)], await bench.ask("Well?", other)
        )
    async with bench.database.writing() as writing:
        await runs.forget_texts_of_character(writing, bench.tree.character_id)
    assert [await texts(bench, run) for run in theirs] == [[], [], []]
    assert [(await bench.run(run)).texts_until_seq for run in theirs] == [7, 7, 7]
    assert len(await texts(bench, kept)) == 3
    assert (await bench.run(kept)).texts_until_seq is None


# --- who may see what -----------------------------------------------------------------------------


async def test_events_are_for_those_whom_they_are_meant_for(bench: Bench, people: People) -> None:
    """Rule R29. The custodian sees what is public and what is the owner's; what is internal is
    nobody's. Here and on another server.
    """
    held = ScriptedProvider(is_held=True)
    async with (
        a_server(bench.dsn, held) as server,
        a_server(bench.dsn, holder="server_b", works=False) as other,
    ):
        run = await bench.ask()
        answer = await held.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        for visibility in Visibility:
            event = Event(
                *(run.id, log.last_seq + 1, run.created_at, RunEventType.RUN_WARNING),
                *(visibility, {"code": visibility.name, "message": "For some."}),
            )
            log._events.append(event)
        for part in held.parts:
            answer.script.put_nowait(part)
        await bench.ended(run)
        for where in (server, other):
            events = await where.events(bench.viewer, run)
            warnings = [each.code for each in events if each.type is RunEventType.RUN_WARNING]
            assert warnings == ["PUBLIC", "OWNER"]
            assert numbers_of(events) == [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12]
            for viewer in (people.stranger, people.anonymous):
                with pytest.raises(NotFound):
                    await where.events(viewer, run)
                async with bench.database.reading() as reading:
                    assert await replaying.events_after(reading, viewer, run.id, 0) == []
    assert len(await bench.stored(run)) == 12
