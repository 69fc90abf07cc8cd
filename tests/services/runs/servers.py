"""Servers of one process or several with all that they have of runs, and a bench to ask them from.

Real PostgreSQL; the provider is an object of the tests' own that says what it is told to say.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from db.engine import Database, open_database
from db.enums import RunEventType, RunKind, TextChannel
from db.listening import Listener
from db.tables import MirrorTree, Run, TreeNode
from services import mirrors, runs
from services.access import Viewer, require_row
from services.hub import CHANNEL, Hub
from services.providers import Finished, Part, Request, TextPart, Usage
from services.runs import (
    ANSWERS,
    Asking,
    Event,
    OpenRuns,
    Retries,
    RunWorker,
    StreamOpening,
    Work,
)

# Longer than anything here takes on a slow machine: a test that hits it has failed.
PATIENCE = 20.0
# Outlasts every test that is not about leases.
LONG_LEASE = 60.0
SHORT_LEASE = 0.6

# Most tests are not about them.
NO_LIMITS = OpenRuns(1_000, 1_000, 1_000)
ASKED_ONCE = Asking(retries=Retries(0))

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

    async def follow(self, viewer: Viewer, run: Run, after: int = 0) -> AsyncGenerator[Event, None]:
        """The events of a stream, whose opening is checked and left out."""
        whole = runs.follow_run(self.database, self.hub, self.worker, viewer, run.id, after)
        async with contextlib.aclosing(whole) as stream:
            opening = await anext(stream)
            assert isinstance(opening, StreamOpening)
            assert (opening.run_id, opening.seq) == (run.id, after)
            async for event in stream:
                assert isinstance(event, Event)
                yield event

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
    asking: Asking = ASKED_ONCE,
    kinds: Mapping[RunKind, type[Work]] = ANSWERS,
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
        asking=asking,
        works=kinds,
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

    async def ask(
        self, text: str = "Well?", tree: MirrorTree | None = None, limits: OpenRuns = NO_LIMITS
    ) -> Run:
        """The first question of a tree, by default of a new one of the same character."""
        async with self.database.writing() as writing:
            tree = tree or await mirrors.create_tree(
                writing, self.viewer, self.tree.character_id, "Tests", self.tree.realm
            )
            _, run = await runs.ask_tree(
                writing,
                self.viewer,
                tree.id,
                None,
                text,
                provider="scripted",
                model=None,
                limits=limits,
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
    async def run_row_held(self, run: Run) -> AsyncIterator[Any]:
        """Nothing of the run can be stored while the block runs, but by the connection that the
        block is given.
        """
        connection = await asyncpg.connect(self.dsn)
        try:
            async with connection.transaction():
                await connection.execute("SELECT 1 FROM runs WHERE id = $1 FOR UPDATE", run.id)
                yield connection
        finally:
            await connection.close()


def types_of(events: Sequence[Event]) -> list[RunEventType]:
    return [event.type for event in events]


def numbers_of(events: Sequence[Event]) -> list[int]:
    return [event.seq for event in events]


def text_of(events: Sequence[Event], channel: TextChannel = TextChannel.TEXT) -> str:
    deltas = [event for event in events if event.type is RunEventType.TEXT_DELTA]
    return "".join(event.text for event in deltas if event.channel is channel)


async def someone_waits_for_a_lock(bench: Bench) -> bool:
    rows = await bench.sql(
        "SELECT 1 FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return bool(rows)
