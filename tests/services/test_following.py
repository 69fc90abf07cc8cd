"""Following a run from another process, by what the database shows of it and when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg
import pytest

from db.enums import RunEventType, Visibility
from db.tables import Run
from services.runs import Event, following
from services.runs import records as service
from services.runs.events import RESERVE
from tests.services.test_runs import PATIENCE, Bench, a_server, bench, numbers_of, until

__all__ = ["bench"]  # a fixture

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
    payload = {"channel": "text", "text": "x", "target_id": run.node_id}
    return [
        Event(run.id, number, moment, RunEventType.TEXT_DELTA, Visibility.PUBLIC, payload)
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


@pytest.mark.parametrize("chunk", [1, 3, 500])
async def test_events_stored_together_are_all_delivered(
    bench: Bench, dsn: str, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule T9. Ten events of one transaction and one moment, however few are read at once."""
    run = await taken(bench)
    whole = pieces(run, range(1, 11))
    async with bench.database.writing() as writing:
        assert await service.store_events(writing, HOLDER, run.id, whole) == 10 + RESERVE
    read = service.events_after

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
