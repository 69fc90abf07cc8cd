"""Following a run from another process, by what the database shows of it and when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg
import pytest

from db.enums import RunEventType, TextChannel, Visibility
from db.tables import Run
from services.access import Viewer
from services.providers import TextPart
from services.runs import Event, following, texts_until
from services.runs import records as service
from tests.conftest import People
from tests.services.runs.servers import (
    PATIENCE,
    STOP,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    until,
)

HOLDER = "server_x"


async def taken(bench: Bench) -> Run:
    """A run that a server has taken up which does nothing by itself."""
    await bench.ask()
    async with bench.database.writing() as writing:
        run = await service.take_next_run(writing, HOLDER, "scripted", 60)
    assert run is not None
    return run


def pieces(run: Run, numbers: Sequence[int]) -> list[Event]:
    """Pieces of text that all came at one moment."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    payload = {"channel": "text", "target_id": run.node_id}
    return [
        Event(run.id, number, moment, RunEventType.TEXT_DELTA, Visibility.PUBLIC, payload, "x")
        for number in numbers
    ]


async def test_no_event_is_skipped_whose_transaction_ends_late(bench: Bench, dsn: str) -> None:
    """Rule T8. A later number cannot be stored, and so not be seen, before the earlier ones are."""
    run = await taken(bench)
    first = await asyncpg.connect(dsn)

    async def is_held_up() -> bool:
        return bool(await first.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"))

    async def store(numbers: Sequence[int]) -> None:
        async with bench.database.writing() as writing:
            await service.store_events(writing, HOLDER, run.id, pieces(run, numbers))

    try:
        async with a_server(dsn, works=False) as server:
            await store([1])
            stream = server.follow(bench.viewer, run)
            assert (await anext(stream)).seq == 1
            async with bench.database.writing() as early:
                await service.store_events(early, HOLDER, run.id, pieces(run, [2, 3]))
                later = asyncio.create_task(store([4]))
                await until(is_held_up)
                seen = asyncio.create_task(anext(stream))
                server.hub.publish_all()
                done, _ = await asyncio.wait({later, seen}, timeout=0.05)
                assert not done
            async with asyncio.timeout(PATIENCE):
                await later
                assert [(await seen).seq, *[(await anext(stream)).seq for _ in "34"]] == [2, 3, 4]
            await stream.aclose()
    finally:
        await first.close()


async def test_texts_up_to_several_numbers_of_several_runs(bench: Bench, people: People) -> None:
    """Rule R16. By the channel, and for who may see them."""
    parts = [TextPart("reasoning", "Hm."), TextPart("text", "Yes"), TextPart("text", ", \u00e9.")]
    async with a_server(bench.dsn, ScriptedProvider(*parts, STOP)):
        one, other = await bench.ended(await bench.ask(), await bench.ask())
    places = [(one.id, seq) for seq in (0, 4, 5, 6, 7, 99)] + [(other.id, 6), (other.id, 6)]

    async def texts(viewer: Viewer, channel: TextChannel) -> list[str]:
        async with bench.database.reading() as reading:
            return await texts_until(reading, viewer, places, channel)

    whole = "Yes, \u00e9."
    assert await texts(bench.viewer, TextChannel.TEXT) == [
        *["", "", "", "Yes", whole, whole],
        *["Yes", "Yes"],
    ]
    assert await texts(bench.viewer, TextChannel.REASONING) == [
        *["", "", "Hm.", "Hm.", "Hm.", "Hm."],
        *["Hm.", "Hm."],
    ]
    assert await texts(people.stranger, TextChannel.TEXT) == [""] * 8


@pytest.mark.parametrize("chunk", [1, 3, 500])
async def test_events_stored_together_are_all_delivered(
    bench: Bench, dsn: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule T9. Ten events of one transaction and one moment, however few are read at once."""
    run = await taken(bench)
    whole = pieces(run, range(1, 11))
    async with bench.database.writing() as writing:
        await service.store_events(writing, HOLDER, run.id, whole)
    read = following.events_after

    async def read_few(reading: object, viewer: object, run_id: str, seq: int) -> list[Event]:
        return (await read(reading, viewer, run_id, seq))[:chunk]  # type: ignore[arg-type]

    monkeypatch.setattr(following, "events_after", read_few)
    async with a_server(dsn, works=False) as server, asyncio.timeout(PATIENCE):
        for after in range(10):
            stream = server.follow(bench.viewer, run, after)
            got = [await anext(stream) for _ in range(10 - after)]
            assert got == whole[after:]
            assert numbers_of(got) == list(range(after + 1, 11))
            await stream.aclose()


async def test_who_is_behind_when_a_run_ends_reads_on_from_its_log(bench: Bench) -> None:
    """Rule R9. The very events, so that many who follow alike can share what is made of them; and
    the same from the database once nobody holds the log.
    """
    async with a_server(bench.dsn, ScriptedProvider(TextPart("text", "Yes."), STOP)) as server:
        run = await bench.ask()
        slow = server.follow(bench.viewer, run)
        seen = [await anext(slow)]
        quick = await server.events(bench.viewer, run)
        log = server.worker.live_log(run.id)
        assert log is not None
        assert log.is_whole
        del log
        seen += [event async for event in slow]
        assert [id(each) for each in seen] == [id(each) for each in quick]
        await slow.aclose()
        await until(lambda: server.worker.live_log(run.id) is None)
        assert await server.events(bench.viewer, run) == quick
        assert await server.events(bench.viewer, run, quick[-1].seq) == []
