"""Runs in one process and in several: the worker, its log, followers, leases, and recovery.

Real PostgreSQL; the provider is an object of the tests' own that says what it is told to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from db.engine import Database, open_database
from db.enums import NodeStatus, RunEventType, RunStatus, TextChannel
from db.listening import Listener
from db.tables import MirrorTree, Run, TreeNode
from services import mirrors, runs
from services.access import Viewer, require_row
from services.errors import Invalid, NotFound, Unavailable
from services.hub import CHANNEL, Hub
from services.providers import Finished, Part, ProviderError, Request, TextPart, Usage
from services.runs import Event, RunWorker, recovering
from services.runs.events import RESERVE, LiveLog
from services.runs.records import store_events
from tests.conftest import People
from tests.factories import make_character, make_talk, make_tree

# Longer than anything here takes on a slow machine: a test that hits it has failed.
PATIENCE = 20.0
# Outlasts every test that is not about leases.
LONG_LEASE = 60.0
SHORT_LEASE = 0.6

STOP = Finished("stop", Usage(7, 3, 1), "scripted-model-1")
WORDS = [TextPart("reasoning", "Hm."), TextPart("text", "Yes"), TextPart("text", ", always.")]


@dataclass(eq=False)
class Answer:
    """One answer being given: parts are put into `script`, an exception is raised."""

    request: Request
    script: asyncio.Queue[Part | Exception]
    taken: int = 0
    is_open: bool = True


class ScriptedProvider:
    """Says what the tests put into its answers; by default a whole answer at once."""

    name = "scripted"
    default_model = "scripted-default"

    def __init__(self, *parts: Part | Exception, is_held: bool = False) -> None:
        self.parts = parts or (*WORDS, STOP)
        self.is_held = is_held
        self.answers: list[Answer] = []
        self.is_closed = False

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        answer = Answer(request, asyncio.Queue())
        if not self.is_held:
            for part in self.parts:
                answer.script.put_nowait(part)
        self.answers.append(answer)
        try:
            while True:
                part = await answer.script.get()
                if isinstance(part, Exception):
                    raise part
                answer.taken += 1
                yield part
                if isinstance(part, Finished):
                    return
        finally:
            answer.is_open = False

    async def close(self) -> None:
        self.is_closed = True

    async def begun(self, count: int = 1) -> Answer:
        """The newest answer, once so many were asked for."""
        await until(lambda: len(self.answers) >= count)
        return self.answers[count - 1]


@dataclass
class Server:
    """What one server process has of runs."""

    database: Database
    hub: Hub
    worker: RunWorker
    provider: ScriptedProvider

    def follow(self, viewer: Viewer, run: Run, after: int = 0) -> AsyncGenerator[Event, None]:
        return runs.follow_run(self.database, self.hub, self.worker, viewer, run.id, after)

    async def events(self, viewer: Viewer, run: Run, after: int = 0) -> list[Event]:
        async with asyncio.timeout(PATIENCE):
            return [event async for event in self.follow(viewer, run, after)]


@contextlib.asynccontextmanager
async def a_server(
    dsn: str,
    provider: ScriptedProvider | None = None,
    *,
    holder: str = "server_a",
    lease: float = LONG_LEASE,
    concurrent: int = 8,
    works: bool = True,
    statement_timeout: float = 10,
) -> AsyncIterator[Server]:
    """A server of its own: pools, hub, listener and worker."""
    provider = provider or ScriptedProvider()
    database = await open_database(dsn, pool_size=4, statement_timeout=statement_timeout)
    hub = Hub()
    listener = Listener(dsn, CHANNEL, hub.publish, lambda: None)
    await listener.start()
    worker = RunWorker(
        database,
        hub,
        provider,
        holder=holder,
        lease_seconds=lease,
        concurrent_runs=concurrent,
    )
    if works:
        await worker.start(is_only_server=False)
    try:
        yield Server(database, hub, worker, provider)
    finally:
        async with asyncio.timeout(PATIENCE):
            await worker.drain()
            await listener.close()
            await database.close()


async def until(condition: Callable[[], Any]) -> None:
    """Return when the condition holds; fails after PATIENCE."""
    async with asyncio.timeout(PATIENCE):
        while True:
            met = condition()
            if isinstance(met, Awaitable):
                met = await met
            if met:
                return
            await asyncio.sleep(0.005)


@dataclass
class Bench:
    """A character with a tree, and short ways to ask and to look."""

    database: Database
    viewer: Viewer
    tree: MirrorTree
    dsn: str
    _questions: int = field(default=0)

    async def ask(self, text: str = "Well?", tree: MirrorTree | None = None) -> Run:
        """The first question of a tree, by default of a new one of the same character."""
        async with self.database.writing() as writing:
            tree = tree or await mirrors.create_tree(
                writing, self.viewer, self.tree.character_id, "Tests", self.tree.realm
            )
            _, run = await runs.ask_tree(
                writing, self.viewer, tree.id, None, text, provider="scripted", model=None
            )
        return run

    async def run(self, run: Run) -> Run:
        async with self.database.reading() as reading:
            return await require_row(reading, self.viewer, Run, run.id)

    async def node(self, run: Run) -> TreeNode:
        node_id = (await self.run(run)).node_id
        assert node_id is not None
        async with self.database.reading() as reading:
            return await require_row(reading, self.viewer, TreeNode, node_id)

    async def cancel(self, run: Run, viewer: Viewer | None = None) -> Run:
        async with self.database.writing() as writing:
            return await runs.cancel_run(writing, viewer or self.viewer, run.id)

    async def ended(self, *which: Run) -> list[Run]:
        """The runs once all of them have ended."""

        async def all_ended() -> bool:
            return all([(await self.run(run)).ended_at for run in which])

        await until(all_ended)
        return [await self.run(run) for run in which]

    async def sql(self, text: str, *values: Any) -> list[Any]:
        connection = await asyncpg.connect(self.dsn)
        try:
            return list(await connection.fetch(text, *values))
        finally:
            await connection.close()

    async def stored(self, run: Run) -> list[tuple[int, str]]:
        """Numbers and types of the stored events."""
        rows = await self.sql(
            "SELECT seq, type FROM run_events WHERE run_id = $1 ORDER BY 1", run.id
        )
        return [(row["seq"], row["type"]) for row in rows]

    @contextlib.asynccontextmanager
    async def run_row_held(self, run: Run) -> AsyncIterator[None]:
        """Nothing of the run can be stored while the block runs."""
        connection = await asyncpg.connect(self.dsn)
        try:
            async with connection.transaction():
                await connection.execute("SELECT 1 FROM runs WHERE id = $1 FOR UPDATE", run.id)
                yield
        finally:
            await connection.close()


@pytest.fixture
async def bench(database: Database, people: People, dsn: str) -> Bench:
    async with database.writing() as writing:
        return Bench(database, people.owner, await make_tree(writing, people.owner), dsn)


def types_of(events: Sequence[Event]) -> list[RunEventType]:
    return [event.type for event in events]


def numbers_of(events: Sequence[Event]) -> list[int]:
    return [event.seq for event in events]


def text_of(events: Sequence[Event], channel: TextChannel = TextChannel.TEXT) -> str:
    deltas = [event for event in events if event.type is RunEventType.TEXT_DELTA]
    return "".join(event.text for event in deltas if event.channel is channel)


# The log


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
                while not there or there[-1].payload.get("text") != word:
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


# Backpressure


async def test_no_number_is_shown_that_was_not_reserved(bench: Bench) -> None:
    """Rule R6."""
    words = [TextPart("text", f"{number} ") for number in range(3 * RESERVE)]
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        shown = asyncio.create_task(server.events(bench.viewer, run))
        await until(lambda: not log.unstored())
        async with bench.run_row_held(run):
            for word in words:
                answer.script.put_nowait(word)
            answer.script.put_nowait(STOP)
            await until(lambda: log.is_full)
            held = await bench.run(run)
            assert log.last_seq == log.reserved_seq == held.reserved_seq
            assert held.reserved_seq == held.last_seq + RESERVE
            assert len(log.unstored()) == RESERVE
            # One piece is in the worker's hand, the others are still the provider's.
            assert answer.taken == RESERVE + 1
        events = await shown
        (run,) = await bench.ended(run)
        node = await bench.node(run)
    assert run.status == "succeeded"
    assert numbers_of(events) == list(range(1, 3 * RESERVE + 7))
    assert [seq for seq, _ in await bench.stored(run)] == numbers_of(events)
    assert node.content == text_of(events) == "".join(word.text for word in words)


async def test_a_full_log_outlasts_a_database_that_gives_no_answer(bench: Bench) -> None:
    words = [TextPart("text", f"{number} ") for number in range(RESERVE + 9)]
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
            await until(lambda: log.is_full)
            before = (await bench.sql(failures))[0][0]

            async def has_failed_twice() -> bool:
                return bool((await bench.sql(failures))[0][0] >= before + 2)

            await until(has_failed_twice)
        answer.script.put_nowait(STOP)
        (run,) = await bench.ended(run)
    assert run.status == "succeeded"
    assert (await bench.node(run)).content == "".join(word.text for word in words)


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


def test_a_log_knows_what_is_stored_and_what_is_full() -> None:
    log = LiveLog("run", 0, 2)
    log.add(log.draft(RunEventType.RUN_STARTED, {}))
    log.add(log.draft(RunEventType.PHASE_STARTED, {"name": "context"}))
    assert log.is_full
    assert [event.seq for event in log.unstored()] == [1, 2]
    log.mark_stored(1, 3)
    assert not log.is_full
    assert [event.seq for event in log.unstored()] == [2]
    assert [event.seq for event in log.after(1)] == [2]
    assert [event.seq for event in log.after(9)] == []
    assert log.draft(RunEventType.RUN_FINISHED, {}, ahead=1).seq == 4


# Leases


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
    assert run.error.code == "SERVER_LOST"
    assert numbers_of(events) == [1, 2, 3, 4, 5, 5 + RESERVE + 1, 5 + RESERVE + 2]
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


async def someone_waits_for_a_lock(bench: Bench) -> bool:
    rows = await bench.sql(
        "SELECT 1 FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return bool(rows)


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


# Cancelling


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


# What a provider may do


OVERLOADED = ProviderError("RATE_LIMITED", "Wait a minute.", retryable=True)


@pytest.mark.parametrize("after", range(len(WORDS) + 1))
async def test_a_provider_that_fails_leaves_the_text_so_far(bench: Bench, after: int) -> None:
    provider = ScriptedProvider(*WORDS[:after], OVERLOADED)
    async with a_server(bench.dsn, provider) as server:
        run = await bench.ask(tree=bench.tree)
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert run.status == "failed"
    assert (run.error_code, run.error_message) == ("RATE_LIMITED", "Wait a minute.")
    assert events[-1].error == run.error
    assert types_of(events)[4:] == [RunEventType.TEXT_DELTA] * after + [RunEventType.RUN_FINISHED]
    assert numbers_of(events) == list(range(1, 6 + after))
    node = await bench.node(run)
    assert node.status == "partial"
    assert node.content == "".join(part.text for part in WORDS[1:after])
    assert node.reasoning == ("Hm." if after else None)
    async with bench.database.reading() as reading:
        tree = await require_row(reading, bench.viewer, MirrorTree, bench.tree.id)
    assert tree.working_entry_node_id is None


async def test_what_nobody_foresaw_ends_the_run_and_tells_nothing(bench: Bench) -> None:
    provider = ScriptedProvider(TextPart("text", "kept"), ZeroDivisionError("secret"))
    async with a_server(bench.dsn, provider):
        with capture_logs() as logs:
            (run,) = await bench.ended(await bench.ask())
    assert run.error is not None
    assert (run.status, run.error.code) == ("failed", "INTERNAL")
    assert "secret" not in run.error.message
    node = await bench.node(run)
    assert (node.status, node.content) == ("partial", "kept")
    assert [each["run"] for each in logs if each["event"] == "an answer failed"] == [run.id]


@pytest.mark.parametrize(
    ("reason", "status", "code", "node_status", "warnings"),
    [
        ("stop", "succeeded", None, NodeStatus.SOLIDIFIED, []),
        ("other", "succeeded", None, NodeStatus.SOLIDIFIED, []),
        ("length", "succeeded", None, NodeStatus.PARTIAL, ["ANSWER_CUT"]),
        ("refused", "failed", "REFUSED", NodeStatus.PARTIAL, []),
    ],
)
async def test_how_an_answer_ends(
    bench: Bench,
    reason: Any,
    status: str,
    code: str | None,
    node_status: NodeStatus,
    warnings: list[str],
) -> None:
    """Rule R12."""
    provider = ScriptedProvider(*WORDS, Finished(reason, None, None))
    async with a_server(bench.dsn, provider) as server:
        run = await bench.ask()
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert (run.status, run.error_code, run.finish_reason) == (status, code, reason)
    assert (run.model, run.usage) == ("scripted-default", None)
    assert numbers_of(events) == list(range(1, len(events) + 1))
    assert [event.code for event in events if event.type is RunEventType.RUN_WARNING] == warnings
    assert (await bench.node(run)).status == node_status


async def test_what_the_database_cannot_hold_is_left_out_everywhere(bench: Bench) -> None:
    parts = [
        TextPart("reasoning", "a\0b"),
        TextPart("text", "\0"),
        TextPart("text", "\ud83d"),
        TextPart("text", "\ude00 \u00e9\U0001f600"),
        TextPart("text", " end\0\0"),
    ]
    model = "mod\0el\ud83d"
    async with a_server(
        bench.dsn, ScriptedProvider(*parts, Finished("stop", None, model))
    ) as server:
        run = await bench.ask()
        live = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
        await until(lambda: server.worker.live_log(run.id) is None)
        assert await server.events(bench.viewer, run) == live
    node = await bench.node(run)
    assert (node.status, node.content) == ("solidified", "?? \u00e9\U0001f600 end")
    assert (node.reasoning, node.model) == ("ab", "model?")
    assert text_of(live) == node.content
    assert text_of(live, TextChannel.REASONING) == "ab"
    assert numbers_of(live) == list(range(1, len(live) + 1))


async def test_an_error_message_that_the_database_cannot_hold(bench: Bench) -> None:
    error = ProviderError("PROVIDER_ERROR", "no\0pe \ud83d", retryable=False)
    async with a_server(bench.dsn, ScriptedProvider(error)):
        (run,) = await bench.ended(await bench.ask())
    assert (run.error_code, run.error_message) == ("PROVIDER_ERROR", "nope ?")


async def test_the_prompt_is_the_path_to_the_question(bench: Bench, people: People) -> None:
    async with bench.database.writing() as writing:
        path = await make_talk(writing, people.owner, bench.tree, turns=2)
        _, run = await runs.ask_tree(
            writing,
            people.owner,
            bench.tree.id,
            path[-1].id,
            "Last question",
            provider="scripted",
            model="chosen",
        )
    async with a_server(bench.dsn) as server:
        await bench.ended(run)
        (answer,) = server.provider.answers
    assert answer.request.model == "chosen"
    assert [(each.role, each.text) for each in answer.request.messages[1:]] == [
        ("user", "Question 0"),
        ("assistant", "Answer 0"),
        ("user", "Question 1"),
        ("assistant", "Answer 1"),
        ("user", "Last question"),
    ]


async def test_only_questions_get_another_answer(bench: Bench) -> None:
    async with a_server(bench.dsn):
        (run,) = await bench.ended(await bench.ask())
    assert run.node_id is not None
    async with bench.database.writing() as writing:
        with pytest.raises(Invalid) as caught:
            await runs.regenerate_answer(
                writing, bench.viewer, run.node_id, provider="scripted", model=None
            )
    assert caught.value.code == "NOT_A_QUESTION"


async def test_runs_of_another_provider_are_left_alone(bench: Bench) -> None:
    async with bench.database.writing() as writing:
        _, foreign = await runs.ask_tree(
            writing, bench.viewer, bench.tree.id, None, "Well?", provider="other", model=None
        )
    async with a_server(bench.dsn) as server:
        await bench.ended(await bench.ask())
        assert len(server.provider.answers) == 1
    assert (await bench.run(foreign)).status == "queued"


# Servers that go


async def test_a_lost_run_goes_on_behind_the_reserved_numbers(bench: Bench) -> None:
    """Rule R7. What a subscriber may have seen before the crash keeps its number to itself."""
    async with a_server(bench.dsn, ScriptedProvider(is_held=True)) as server:
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        answer.script.put_nowait(TextPart("text", "kept"))
        await until(lambda: log.last_seq == 5 and not log.unstored())
        stream = server.follow(bench.viewer, run)
        seen = [await anext(stream) for _ in range(5)]
        async with bench.run_row_held(run):
            answer.script.put_nowait(TextPart("text", " shown"))
            seen.append(await asyncio.wait_for(anext(stream), PATIENCE))
            assert log.unstored() == [seen[-1]]
            await until(lambda: someone_waits_for_a_lock(bench))
            # Recovery passes over what somebody else holds.
            async with bench.database.writing() as writing:
                assert await recovering.recover_lost_run(writing) is None
        # As if the server had died here: nothing more of it was stored.
        await stream.aclose()
        await until(lambda: not log.unstored())
        async with bench.database.writing() as writing:
            await recovering.expire_all_leases(writing)
            recovered = await recovering.recover_lost_run(writing)
            assert recovered is not None
            assert recovered.id == run.id
            assert await recovering.recover_lost_run(writing) is None
        last_seq = log.last_seq
        answer.script.put_nowait(TextPart("text", " dropped"))
        await until(lambda: server.worker.live_log(run.id) is None)
        rest = await server.events(bench.viewer, run, last_seq)
        (run,) = await bench.ended(run)
    assert numbers_of(rest) == [6 + RESERVE + 1, 6 + RESERVE + 2]
    assert types_of(rest) == [RunEventType.RUN_WARNING, RunEventType.RUN_FINISHED]
    assert rest[0].code == "EVENTS_LOST"
    assert re.findall(r"\d+", rest[0].message) == ["7", str(6 + RESERVE)]
    assert run.last_seq == rest[-1].seq
    assert (run.status, run.error_code, run.lease_holder) == ("failed", "SERVER_LOST", None)
    node = await bench.node(run)
    assert (node.status, node.content) == ("partial", "kept shown")


async def test_a_run_lost_before_anything_was_stored(bench: Bench) -> None:
    run = await bench.ask()
    async with bench.database.writing() as writing:
        taken = await runs.records.take_next_run(writing, "server_gone", "scripted", LONG_LEASE)
    assert taken is not None
    assert (taken.id, taken.reserved_seq) == (run.id, RESERVE)
    await bench.sql("UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 second'")
    async with a_server(bench.dsn) as server:
        events = await server.events(bench.viewer, run)
        # The seat is free again at once.
        (next_run,) = await bench.ended(await bench.ask("Next?"))
    assert numbers_of(events) == [RESERVE + 1, RESERVE + 2]
    assert re.findall(r"\d+", events[0].message) == ["1", str(RESERVE)]
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
    assert events[-1].error == drained.error
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
