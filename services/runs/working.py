"""One run being carried out: its log is stored as it grows, it may be cut, and its end is settled.

Never holds a transaction while a provider is answering. Events are stored, then shown: nobody ever
sees one that a crash could take back. What is done in a run, and what it leaves, is for each kind.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

import structlog

from db.engine import Database
from db.enums import RunEventType, RunStatus
from db.reading import DATABASE_TROUBLE, Reading, Writing
from db.tables import Run, RunError
from services.hub import Hub
from services.providers import Finished, Provider, ProviderError
from services.runs import records
from services.runs.events import Event, LiveLog, topic_of
from services.runs.retrying import Retries
from services.text import storable

# The least time from one batch of events to the next. One commit for each piece of text would keep
# the database busy for nothing.
FLUSH_SECONDS = 0.02
# How many events of a run may wait to be stored; a provider that is further ahead waits.
MAX_WAITING = 256
# How long the end of a run is offered to a database that does not take it, and its beginning asked
# for. Without its end the run is left to its lease; whoever recovers it keeps what was stored.
SETTLE_SECONDS = 10.0

Result = TypeVar("Result")
# An event of a run: its type and what it says.
Said = tuple[RunEventType, dict[str, Any]]

logger = structlog.get_logger("mirrorgraph.runs")


class Stop(Enum):
    """Why a run is cut."""

    CANCELLED = "somebody asked for it"
    STOPPING = "this server is stopping"
    LOST = "another server holds the run's lease"


@dataclass(slots=True)
class Outcome:
    """How a run ended."""

    status: RunStatus
    finished: Finished | None = None
    error: RunError | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its own end."""
        return self.finished is not None and self.finished.reason in {"stop", "other"}


@dataclass(frozen=True, slots=True)
class Asking:
    """How models are asked: the tokens of what they are given, and how often they are asked
    again.
    """

    budget: int = 7_168
    retries: Retries = field(default_factory=Retries)


STANDARD = Asking()


@dataclass(frozen=True, slots=True)
class Means:
    """What all runs of a process are carried out with."""

    database: Database
    hub: Hub
    provider: Provider
    asking: Asking
    # Names the process in leases.
    holder: str


class Work(ABC):
    """One run being carried out."""

    # What the run's error says when the server is stopped.
    stopped_message: str

    def __init__(self, means: Means, run: Run, log: LiveLog) -> None:
        self._database = means.database
        self._provider = means.provider
        self._asking = means.asking
        self._run = run
        self._hub = means.hub
        self._holder = means.holder
        self._log = log
        # What is stored with the next events: how often the provider was asked, and once what for.
        self._attempts = 0
        self._context: dict[str, Any] | None = None
        # Whether events may wait a moment for others, so that they are stored together.
        self._may_wait = False
        # Held while events are stored, which is done in their order.
        self._storing = asyncio.Lock()
        self._has_unstored = asyncio.Event()
        self._room = asyncio.Semaphore(MAX_WAITING)
        self._is_ending = False

    async def carry_out(self, stop: asyncio.Future[Stop]) -> None:
        """From the first event to the last. Raises LeaseLost."""
        storing = asyncio.create_task(self._store_as_it_comes())
        performing = asyncio.create_task(self.perform())
        try:
            ends: set[asyncio.Future[Any]] = {performing, storing, stop}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if storing.done():
                storing.result()  # raises LeaseLost
            if not performing.done():
                performing.cancel()
            outcome = await self._outcome(performing, stop)
            # What was done is not given up for a moment's trouble of the database.
            async with asyncio.timeout(SETTLE_SECONDS):
                # Waited for, not cancelled: a transaction that is cancelled may be committed all
                # the same.
                self._is_ending = True
                self._has_unstored.set()
                await storing
                await self._finish(outcome)
        finally:
            for task in (performing, storing):
                task.cancel()
            await asyncio.gather(performing, storing, return_exceptions=True)

    @abstractmethod
    async def perform(self) -> Outcome:
        """Do what is to be done in the run, from its first event on. Raises ProviderError for what
        fails the run, and LeaseLost.
        """

    @abstractmethod
    async def settle(self, writing: Writing, outcome: Outcome) -> None:
        """Store what the run leaves, and close it, with its last events."""

    def last_words(self, _outcome: Outcome) -> list[Said]:
        """Events before the last one."""
        return []

    def _begin_attempt(self) -> None:
        self._attempts += 1

    async def _warn(self, message: str) -> None:
        payload = {"code": "PROVIDER_RETRY", "message": storable(message)}
        await self._emit(RunEventType.RUN_WARNING, payload)

    async def _outcome(
        self, performing: asyncio.Task[Outcome], stop: asyncio.Future[Stop]
    ) -> Outcome:
        try:
            return await performing
        except ProviderError as error:
            return Outcome(RunStatus.FAILED, error=RunError(error.code, storable(error.message)))
        except asyncio.CancelledError:
            if not stop.done():
                raise  # the whole worker is being cancelled, not this answer
            if stop.result() is Stop.LOST:
                raise records.LeaseLost from None
            if stop.result() is Stop.CANCELLED:
                return Outcome(RunStatus.CANCELLED)
            stopped = RunError("SERVER_STOPPED", self.stopped_message)
            return Outcome(RunStatus.FAILED, error=stopped)
        except records.LeaseLost:
            raise
        except Exception:
            logger.exception("a run failed", run=self._run.id)
            message = "Something went wrong on the server. Say this run's id when you report it."
            return Outcome(RunStatus.FAILED, error=RunError("INTERNAL", message))

    async def _finish(self, outcome: Outcome) -> None:
        for kind, said in self.last_words(outcome):
            self._log.add(kind, said)
        payload = records.finished_payload(outcome.status, self._run.node_id, outcome.error)
        self._log.add(RunEventType.RUN_FINISHED, payload)
        # Trying again is safe: if the commit went through after all, the run is no longer ours
        # (LeaseLost).
        while not await self._settle(outcome):  # noqa: ASYNC110, this tries and waits
            await asyncio.sleep(FLUSH_SECONDS)
        logger.info("run ended", run=self._run.id, status=outcome.status, events=self._log.last_seq)

    async def _settle(self, outcome: Outcome) -> bool:
        """Store the end of the run; whether the database took it."""
        events = self._log.unstored()
        try:
            async with self._database.writing() as writing:
                await self._store_in(writing, events)
                await self.settle(writing, outcome)
        except DATABASE_TROUBLE as error:
            logger.warning("an end waits for the database", error=type(error).__name__)
            return False
        self._show(len(events))
        return True

    async def _read(self, read: Callable[[Reading], Awaitable[Result]]) -> Result:
        """What is read, once the database can be read; waits for SETTLE_SECONDS at most."""
        async with asyncio.timeout(SETTLE_SECONDS):
            while True:
                try:
                    async with self._database.reading() as reading:
                        return await read(reading)
                except DATABASE_TROUBLE as error:
                    logger.warning("a run waits for the database", error=type(error).__name__)
                    await asyncio.sleep(FLUSH_SECONDS)

    async def _change(self, change: Callable[[Writing], Awaitable[list[Said]]]) -> None:
        """Carry out a change, and store the events that it gives with it in one transaction: all
        of it or nothing. Tried again for SETTLE_SECONDS, so that it must be the same when it has
        been done before. Raises LeaseLost.
        """
        doing = asyncio.create_task(self._do_change(change))
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            # Waited for: a transaction that is cancelled may be committed all the same.
            await asyncio.wait([doing])
            raise

    async def _do_change(self, change: Callable[[Writing], Awaitable[list[Said]]]) -> None:
        clock = asyncio.get_running_loop().time
        latest = clock() + SETTLE_SECONDS
        async with self._storing:
            while True:
                new = 0
                try:
                    async with self._database.writing() as writing:
                        said = await change(writing)
                        for kind, payload in said:
                            self._log.add(kind, payload)
                            new += 1
                        events = self._log.unstored()
                        if events:
                            await self._store_in(writing, events)
                except BaseException as error:
                    self._log.take_back(new)
                    if not isinstance(error, DATABASE_TROUBLE) or clock() > latest:
                        raise
                    logger.warning("a change waits for the database", error=type(error).__name__)
                    await asyncio.sleep(FLUSH_SECONDS)
                    continue
                self._show(len(events), at_once=new)
                return

    @contextlib.asynccontextmanager
    async def _phase(self, name: str) -> AsyncIterator[None]:
        await self._emit(RunEventType.PHASE_STARTED, {"name": name})
        yield
        await self._emit(RunEventType.PHASE_FINISHED, {"name": name})

    async def _emit(
        self, type: RunEventType, payload: dict[str, Any], text: str | None = None
    ) -> None:
        await self._room.acquire()
        self._log.add(type, payload, text)
        self._has_unstored.set()

    async def _store_as_it_comes(self) -> None:
        # Events go at once; where they may wait, what comes while a batch is stored, and shortly
        # after, goes together, so that a fast model costs few commits.
        clock = asyncio.get_running_loop().time
        while not self._is_ending:
            await self._has_unstored.wait()
            self._has_unstored.clear()
            began = clock()
            may_wait = self._may_wait
            try:
                await self._store()
            except DATABASE_TROUBLE as error:
                may_wait = True
                self._has_unstored.set()
                logger.warning("events wait for the database", error=type(error).__name__)
            if may_wait and not self._is_ending:
                await asyncio.sleep(began + FLUSH_SECONDS - clock())

    async def _store(self) -> None:
        async with self._storing:
            events = self._log.unstored()
            if events:
                async with self._database.writing() as writing:
                    context = await self._store_in(writing, events)
                if self._context is context:
                    self._context = None  # it is stored, and need not be sent again
                self._show(len(events))

    async def _store_in(self, writing: Writing, events: Sequence[Event]) -> dict[str, Any] | None:
        context = self._context
        await records.store_events(
            writing,
            self._holder,
            self._run.id,
            events,
            attempts=self._attempts,
            context=context,
        )
        return context

    def _show(self, count: int, *, at_once: int = 0) -> None:
        """`at_once` of them took no room, as they were stored as soon as they came."""
        self._log.mark_stored(count)
        for _ in range(count - at_once):
            self._room.release()
        self._hub.publish(topic_of(self._run.id))
