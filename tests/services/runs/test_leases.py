"""A run and its character belong to one server, for as long as it says that it lives."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from itertools import combinations
from typing import Any

import asyncpg
import pytest

from db.tables import Run
from services import runs
from services.providers import Part, Request, TextPart
from tests.conftest import People
from tests.factories import make_character, make_tree
from tests.services.runs.servers import (
    NO_LIMITS,
    SHORT_LEASE,
    STOP,
    WORDS,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    someone_waits_for_a_lock,
    until,
)


async def is_expired(bench: Bench, run: Run) -> bool:
    row = await bench.sql(
        "SELECT lease_expires_at < clock_timestamp() FROM runs WHERE id = $1", run.id
    )
    return bool(row[0][0])


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE runtime_seats SET epoch = epoch + 1",
        "UPDATE runtime_seats SET lease_holder = 'intruder',"
        " lease_expires_at = clock_timestamp() + interval '1 hour'",
        "UPDATE runs SET lease_holder = 'intruder' WHERE ended_at IS NULL",
        "UPDATE runs SET status = 'awaiting_confirmation', lease_holder = NULL"
        " WHERE ended_at IS NULL",
    ],
    ids=["epoch", "seat", "run", "status"],
)
async def test_who_has_lost_a_lease_can_commit_nothing(bench: Bench, change: str) -> None:
    """Rule R4."""
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        answer = await server.provider.begun()
        answer.script.put_nowait(TextPart("text", "kept "))
        log = server.worker.live_log(run.id)
        assert log is not None
        await until(lambda: log.last_seq == 5 and not log.unstored())
        kept = await bench.stored(run)
        await bench.sql(change)
        answer.script.put_nowait(TextPart("text", "dropped"))
        answer.script.put_nowait(STOP)
        await until(lambda: server.worker.live_log(run.id) is None)
        assert not answer.is_open
        lost = await bench.run(run)
        assert (lost.ended_at, lost.last_seq) == (None, 5)
        assert await bench.stored(run) == kept
        node = await bench.node(run)
        assert (node.status, node.content) == ("bud", "")


async def test_a_run_whose_seat_was_taken_is_failed_when_its_lease_runs_out(bench: Bench) -> None:
    """Rule R14."""
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider, lease=SHORT_LEASE) as server:
        run = await bench.ask()
        answer = await provider.begun()
        answer.script.put_nowait(TextPart("text", "kept"))
        log = server.worker.live_log(run.id)
        assert log is not None
        await until(lambda: log.last_seq == 5 and not log.unstored())
        await bench.sql(
            "UPDATE runtime_seats SET epoch = epoch + 1, lease_holder = 'intruder',"
            " lease_expires_at = clock_timestamp() + interval '1 hour'"
        )
        answer.script.put_nowait(TextPart("text", "dropped"))
        (run,) = await bench.ended(run)
        events = await server.events(bench.viewer, run)
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.code == "STALE_SEAT_EPOCH"
    assert numbers_of(events) == [1, 2, 3, 4, 5, 6]
    node = await bench.node(run)
    assert (node.status, node.content) == ("partial", "kept")
    (seat,) = await bench.sql("SELECT lease_holder, epoch FROM runtime_seats")
    # 1 when the character was made, one more for each time the seat was taken.
    assert (seat["lease_holder"], seat["epoch"]) == ("intruder", 3)


async def test_a_lost_lease_is_noticed_while_the_provider_is_silent(bench: Bench) -> None:
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider, lease=SHORT_LEASE) as server:
        run = await bench.ask()
        answer = await provider.begun()
        await bench.sql("UPDATE runs SET lease_holder = 'intruder' WHERE id = $1", run.id)
        await until(lambda: server.worker.live_log(run.id) is None)
        assert not answer.is_open


async def test_a_run_outlives_its_lease_while_its_server_lives(bench: Bench) -> None:
    """Rule R4."""
    provider, other = ScriptedProvider(is_held=True), ScriptedProvider()
    # The other server has nothing to do but to recover what is lost.
    other.name = "idle"
    async with (
        a_server(bench.dsn, provider, lease=SHORT_LEASE),
        a_server(bench.dsn, other, holder="server_b", lease=SHORT_LEASE),
    ):
        run = await bench.ask()
        answer = await provider.begun()
        long_ago = (
            "SELECT clock_timestamp() > started_at + $2::float8 * interval '1 second'"
            " FROM runs WHERE id = $1"
        )

        async def is_long_past_its_first_lease() -> bool:
            row = await bench.sql(long_ago, run.id, 4 * SHORT_LEASE)
            return bool(row[0][0])

        await until(is_long_past_its_first_lease)
        assert not await is_expired(bench, run)
        for part in (*WORDS, STOP):
            answer.script.put_nowait(part)
        (run,) = await bench.ended(run)
    assert run.status == "succeeded"
    assert (await bench.node(run)).content == "Yes, always."


class Roster:
    """Who works on which character right now; fails when two servers work on the same."""

    def __init__(self) -> None:
        self.at_work: dict[str, Counter[str]] = defaultdict(Counter)
        self.asked: list[str] = []
        self.holders: dict[str, str] = {}
        self.clashes: list[str] = []


class RosterProvider(ScriptedProvider):
    """Notes down who answers for whom; takes a number of the loop's turns for each answer."""

    def __init__(self, roster: Roster, holder: str, draw: random.Random) -> None:
        super().__init__()
        self.roster = roster
        self.holder = holder
        self.draw = draw

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        at_work = self.roster.at_work[request.character.name]
        at_work[self.holder] += 1
        question = request.messages[-1].text
        self.roster.asked.append(question)
        self.roster.holders[question] = self.holder
        try:
            for _ in range(self.draw.randrange(1, 60)):
                if sum(1 for count in at_work.values() if count) > 1:
                    self.roster.clashes.append(f"{request.character.name}: {at_work}")
                await asyncio.sleep(0)
                yield TextPart("text", "word ")
            yield STOP
        finally:
            at_work[self.holder] -= 1


@pytest.mark.parametrize("seed", range(3))
async def test_two_servers_never_share_a_run_nor_a_character(
    bench: Bench, people: People, seed: int
) -> None:
    """Rules R1, R2."""
    draw = random.Random(seed)
    roster = Roster()
    async with bench.database.writing() as writing:
        characters = [await make_character(writing, people.owner, f"Ada{n}") for n in range(5)]
        trees = [
            await make_tree(writing, people.owner, draw.choice(characters), f"Tree {n}")
            for n in range(30)
        ]
    queued = [await bench.ask(f"Question {n}", tree) for n, tree in enumerate(trees)]
    first, second = (RosterProvider(roster, holder, draw) for holder in ("server_a", "server_b"))
    async with (
        a_server(bench.dsn, first, concurrent=draw.randint(1, 8)),
        a_server(bench.dsn, second, holder="server_b", concurrent=draw.randint(1, 8)),
    ):
        ended = await bench.ended(*queued)
    assert roster.clashes == []
    assert sorted(roster.asked) == sorted(f"Question {n}" for n in range(30))
    assert {run.status for run in ended} == {"succeeded"}
    nodes = await bench.sql("SELECT run_id FROM tree_nodes WHERE node_type = 'candidate_answer'")
    assert sorted(row["run_id"] for row in nodes) == sorted(run.id for run in queued)
    # The same by the database's clock: on one character, only runs of one server overlap.
    holders = [roster.holders[f"Question {n}"] for n in range(30)]
    for (one, here), (other, there) in combinations(zip(ended, holders, strict=True), 2):
        if one.character_id == other.character_id and here != there:
            assert one.started_at is not None
            assert other.started_at is not None
            first_run, later = sorted((one, other), key=lambda run: str(run.started_at))
            assert first_run.ended_at is not None
            assert later.started_at is not None
            assert first_run.ended_at <= later.started_at
    (free,) = await bench.sql("SELECT count(*) FROM runtime_seats WHERE lease_holder IS NOT NULL")
    assert free["count"] == 0
    await no_deadlocks(bench)


async def no_deadlocks(bench: Bench) -> None:
    (row,) = await bench.sql(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    assert row["deadlocks"] == 0


async def test_many_answers_to_one_question_at_the_same_time(bench: Bench) -> None:
    """Runs of one tree take the same locks; in one order, or the database ends one of them."""
    async with a_server(bench.dsn, concurrent=8):
        first = await bench.ask(tree=bench.tree)
        for _ in range(3):

            async def regenerate() -> Run:
                async with bench.database.writing() as writing:
                    return await runs.regenerate_answer(
                        writing,
                        bench.viewer,
                        first.question_node_id,
                        provider="scripted",
                        model=None,
                        limits=NO_LIMITS,
                    )

            again = await asyncio.gather(*(regenerate() for _ in range(20)))
            ended = await bench.ended(first, *again)
            assert Counter(run.status for run in ended) == {"succeeded": 21}
    await no_deadlocks(bench)
    contents = await bench.sql(
        "SELECT content FROM tree_nodes WHERE parent_node_id = $1", first.question_node_id
    )
    assert [row["content"] for row in contents] == ["Yes, always."] * 61


async def test_a_run_taken_while_another_ends_keeps_the_seat(bench: Bench) -> None:
    """Whoever ends a run gives the seat back only if no other run of the server needs it."""
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        first = await bench.ask("First?")
        answer = await server.provider.begun()
        connection = await asyncpg.connect(bench.dsn)
        async with connection.transaction():
            # What takes a run up holds the seat until it commits; meanwhile the first run ends.
            await connection.execute("SELECT 1 FROM runtime_seats FOR UPDATE")
            answer.script.put_nowait(STOP)
            await until(lambda: someone_waits_for_a_lock(bench))
            (queued,) = await insert_taken_run(connection, first)
        await connection.close()
        await bench.ended(first)
        (seat,) = await bench.sql("SELECT lease_holder FROM runtime_seats")
        assert seat["lease_holder"] == "server_a"
        await bench.sql(
            "UPDATE runs SET status = 'cancelled', lease_holder = NULL,"
            " ended_at = clock_timestamp() WHERE id = $1",
            queued["id"],
        )


async def insert_taken_run(connection: Any, like: Run) -> list[Any]:
    """A running run of the same server on the same character."""
    rows = await connection.fetch(
        "INSERT INTO runs (id, kind, status, requested_by_user_id, character_id, tree_id,"
        " question_node_id, provider, seed, seat_epoch, lease_holder, lease_expires_at)"
        " SELECT 'run_' || gen_random_uuid(), kind, 'running', requested_by_user_id, character_id,"
        " tree_id, question_node_id, provider, seed, seat_epoch, lease_holder,"
        " clock_timestamp() + interval '1 hour' FROM runs WHERE id = $1 RETURNING id",
        like.id,
    )
    return list(rows)
