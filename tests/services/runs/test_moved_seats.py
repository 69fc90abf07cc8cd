"""What servers do when somebody else takes a character's seat, or holds it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from db.engine import Database
from db.reading import Writing
from db.tables import Run, RuntimeSeat
from services import characters, mirrors, seats
from services.access import Viewer, require_row
from services.errors import Conflict
from services.providers import TextPart
from services.runs import records
from tests.factories import make_character
from tests.services.runs.servers import (
    STOP,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    until,
)


async def seat_of(database: Database, viewer: Viewer, character_id: str) -> RuntimeSeat:
    async with database.reading() as reading:
        found = await characters.seats_of_characters(reading, viewer, [character_id])
    return found[character_id]


async def do(database: Database, work: Callable[[Writing], Awaitable[RuntimeSeat]]) -> RuntimeSeat:
    async with database.writing() as writing:
        return await work(writing)


async def begun(bench: Bench, provider: ScriptedProvider, server: Any) -> tuple[Run, Any]:
    """A run in work, of which a piece of text is stored, and its script."""
    run = await bench.ask()
    answer = await provider.begun()
    answer.script.put_nowait(TextPart("text", "kept "))
    log = server.worker.live_log(run.id)
    assert log is not None
    await until(lambda: log.last_seq == 5 and not log.unstored())
    return run, answer


MOVES: dict[str, Callable[[Writing, Viewer, str, int], Awaitable[RuntimeSeat]]] = {
    "migrated": lambda w, v, it, epoch: seats.migrate_seat(w, v, it),
    "handed over": lambda w, v, it, epoch: seats.hand_over_seat(w, v, it, "phone", epoch, 60),
}


@pytest.mark.parametrize("move", MOVES)
async def test_what_runs_on_a_seat_that_is_moved_ends_and_keeps_its_text(
    bench: Bench, move: str
) -> None:
    """Rules R4, S3. The server that had it commits nothing more, and takes a waiting run anew."""
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider) as server:
        run, answer = await begun(bench, provider, server)
        seat = await seat_of(bench.database, bench.viewer, bench.tree.character_id)
        moved = await do(
            bench.database,
            lambda w: MOVES[move](w, bench.viewer, bench.tree.character_id, seat.epoch),
        )
        assert moved.epoch == seat.epoch + 1
        stored = await bench.stored(run)
        answer.script.put_nowait(TextPart("text", "dropped"))
        answer.script.put_nowait(STOP)
        await until(lambda: server.worker.live_log(run.id) is None)
        events = await server.events(bench.viewer, run)
        assert await bench.stored(run) == stored
        ended, node = await bench.run(run), await bench.node(run)
        next_run = await bench.ask()
        if move == "migrated":
            await provider.begun(2)
        else:
            assert (await bench.run(next_run)).status == "queued"
    assert ended.error is not None
    assert (ended.status, ended.error.code) == ("failed", "STALE_SEAT_EPOCH")
    assert events[-1].error_code == ended.error_code
    assert numbers_of(events) == [1, 2, 3, 4, 5, 6]
    assert (node.status, node.content) == ("partial", "kept ")


async def test_a_run_is_stale_as_well_when_its_server_died_before_the_seat_was_taken(
    bench: Bench,
) -> None:
    """Rule R14."""
    run = await bench.ask()
    async with bench.database.writing() as writing:
        assert await records.take_next_run(writing, "server_gone", "scripted", 60) is not None
    await bench.sql("UPDATE runs SET lease_expires_at = now() - interval '1 second'")
    await bench.sql("UPDATE runtime_seats SET lease_expires_at = now() - interval '1 second'")
    await do(
        bench.database,
        lambda w: seats.acquire_seat(w, bench.viewer, bench.tree.character_id, "phone", 60),
    )
    async with a_server(bench.dsn):
        (ended,) = await bench.ended(run)
    assert ended.error is not None
    assert ended.error.code == "STALE_SEAT_EPOCH"
    seat = await seat_of(bench.database, bench.viewer, bench.tree.character_id)
    assert (seat.lease_holder, seat.epoch) == ("phone", 3)


async def test_answers_wait_while_somebody_else_runs_the_character(bench: Bench) -> None:
    """Rule S2."""
    character = bench.tree.character_id
    await do(
        bench.database,
        lambda w: seats.acquire_seat(w, bench.viewer, character, "phone", 60),
    )
    async with a_server(bench.dsn) as server:
        waiting = await bench.ask()
        async with bench.database.writing() as writing:
            other = await make_character(writing, bench.viewer, "Bea")
            tree = await mirrors.create_tree(
                writing, bench.viewer, other.id, "Another's", bench.tree.realm
            )
        # What was asked later of another character is answered, so the server has looked.
        await bench.ended(await bench.ask(tree=tree))
        assert (await bench.run(waiting)).status == "queued"
        assert len(server.provider.answers) == 1
        await do(bench.database, lambda w: seats.release_seat(w, bench.viewer, character, 2))
        (ended,) = await bench.ended(waiting)
    assert (ended.status, ended.seat_epoch) == ("succeeded", 3)


async def test_freeing_a_seat_stops_what_runs_and_lets_the_next_run_begin(bench: Bench) -> None:
    """Rule S2."""
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider) as server:
        run, _ = await begun(bench, provider, server)
        held = await do(
            bench.database,
            lambda w: seats.release_seat(w, bench.viewer, bench.tree.character_id),
        )
        assert held.lease_holder == "server_a"
        (stopped,) = await bench.ended(run)
        node = await bench.node(run)
        await bench.ask()
        await provider.begun(2)
    assert stopped.status == "cancelled"
    assert (node.status, node.content) == ("partial", "kept ")


async def test_a_seat_of_a_server_is_not_anybody_else_s(bench: Bench) -> None:
    """Rule S1."""
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider) as server:
        await begun(bench, provider, server)
        seat = await seat_of(bench.database, bench.viewer, bench.tree.character_id)
        with pytest.raises(Conflict) as caught:
            await do(
                bench.database,
                lambda w: seats.acquire_seat(w, bench.viewer, bench.tree.character_id, "phone", 60),
            )
        assert caught.value.code == "SEAT_LEASE_CONFLICT"
        after = await seat_of(bench.database, bench.viewer, bench.tree.character_id)
        assert (after.lease_holder, after.epoch) == (seat.lease_holder, seat.epoch)


async def test_moving_and_taking_up_at_once_leaves_no_run_behind(bench: Bench) -> None:
    """Rules R4, S3. Whatever was taken up while the seat moved is either done or ended as stale."""
    async with (
        a_server(bench.dsn, lease=1.5),
        a_server(bench.dsn, holder="server_b", lease=1.5),
    ):
        asked: list[Run] = []
        for _ in range(4):
            asked.append(await bench.ask())
            await do(
                bench.database,
                lambda w: seats.migrate_seat(w, bench.viewer, bench.tree.character_id),
            )
        ended = await bench.ended(*asked)
    for run in ended:
        async with bench.database.reading() as reading:
            run = await require_row(reading, bench.viewer, Run, run.id)
        code = run.error and run.error.code
        assert (run.status, code) in {("succeeded", None), ("failed", "STALE_SEAT_EPOCH")}
