"""Does the work of runs: takes them up, lets a provider answer, keeps the log, ends them.

Never holds a transaction while a provider is answering. Events are stored, then shown: nobody ever
sees one that a crash could take back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any
from weakref import WeakValueDictionary

import structlog

from db.engine import Database
from db.enums import NodeStatus, RunEventType, RunStatus, TextChannel
from db.reading import DATABASE_TROUBLE, Writing
from db.tables import Run, RunError
from services.access import Viewer
from services.errors import Unavailable
from services.hub import Hub, Subscription
from services.providers import Finished, Provider, ProviderError, Request, TextPart
from services.runs import records, recovering
from services.runs.events import Event, LiveLog, cancel_topic_of, topic_of
from services.runs.prompting import Assembly
from services.runs.requesting import build_request
from services.runs.retrying import Retries, parts_of_answer
from services.runs.starting import QUEUE_TOPIC
from services.text import storable

# The least time from one batch of events to the next. One commit for each piece of text would keep
# the database busy for nothing.
FLUSH_SECONDS = 0.02
# How many events of a run may wait to be stored; a provider that is further ahead waits.
MAX_WAITING = 256
# How long the end of a run is offered to a database that does not take it, and its beginning asked
# for. Without its end the run is left to its lease; whoever recovers it keeps what was stored.
SETTLE_SECONDS = 10.0

_TOO_LONG = RunError(
    "CONTEXT_TOO_LONG",
    "Who the character is and what is asked do not fit into MIRRORGRAPH_CONTEXT_TOKENS. Shorten "
    "them, or raise that setting if the model can read more.",
)

logger = structlog.get_logger("mirrorgraph.runs")


class Stop(Enum):
    """Why an answer is cut."""

    CANCELLED = "somebody asked for it"
    STOPPING = "this server is stopping"
    LOST = "another server holds the run's lease"


@dataclass(slots=True)
class Outcome:
    """How the stream of one answer ended."""

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


class RunWorker:
    """The worker of one server process. `holder` names the process in leases."""

    def __init__(
        self,
        database: Database,
        hub: Hub,
        provider: Provider,
        *,
        holder: str,
        lease_seconds: float,
        concurrent_runs: int,
        asking: Asking = Asking(),
    ) -> None:
        self._database = database
        self._hub = hub
        self._provider = provider
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._concurrent_runs = concurrent_runs
        self._asking = asking
        self._logs: dict[str, LiveLog] = {}
        # Of runs that have ended, for as long as somebody who follows one is not through with it:
        # many who are would else all read the rest from the database, each for themselves.
        self._ended_logs: WeakValueDictionary[str, LiveLog] = WeakValueDictionary()
        self._stops: dict[str, asyncio.Future[Stop]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []

    @property
    def running_count(self) -> int:
        """How many runs this worker works on."""
        return len(self._work)

    def live_log(self, run_id: str) -> LiveLog | None:
        """The log of a run that this process works on, or of one that it has ended, while somebody
        holds that still.
        """
        return self._logs.get(run_id) or self._ended_logs.get(run_id)

    async def start(self, *, is_only_server: bool) -> None:
        """Recover what an earlier server left, then begin to take up runs.

        `is_only_server` says that every running run must be a dead server's.
        """
        if is_only_server:
            async with self._database.writing() as writing:
                await recovering.expire_all_leases(writing)
        await self._recover()
        self._loops = [
            asyncio.create_task(self._forever(self._take_runs), name="take runs"),
            asyncio.create_task(self._forever(self._keep_leases), name="keep leases"),
        ]

    async def drain(self) -> None:
        """Take up nothing more; cut what is being answered and keep its text. Queued runs wait
        for the next server.
        """
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        for run_id in list(self._stops):
            self._stop(run_id, Stop.STOPPING)
        await asyncio.gather(*self._work, return_exceptions=True)
        await self._provider.close()

    async def _forever(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
                continue
            except DATABASE_TROUBLE as error:
                logger.warning("run worker lost the database", error=type(error).__name__)
            except Exception:
                # Whatever it was: a server that takes up no more runs would look alive.
                logger.exception("run worker stumbled")
            await asyncio.sleep(self._lease_seconds / 10)

    async def _take_runs(self) -> None:
        subscription = self._hub.subscribe(QUEUE_TOPIC)
        try:
            while True:
                while len(self._work) < self._concurrent_runs and await self._take_one():
                    pass
                # Seats also become free by expiry, which nobody announces.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._lease_seconds / 3):
                        await subscription.wait()
        except Unavailable:
            await asyncio.sleep(FLUSH_SECONDS)  # the listener was lost: subscribe anew
        finally:
            subscription.close()

    async def _take_one(self) -> bool:
        async with self._database.writing() as writing:
            run = await records.take_next_run(
                writing, self._holder, self._provider.name, self._lease_seconds
            )
        if run is None:
            return False
        log = LiveLog(run.id, run.last_seq)
        self._logs[run.id] = log
        self._stops[run.id] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._carry_out(run, log), name=f"run {run.id}")
        self._work.add(task)
        task.add_done_callback(self._finished_work)
        return True

    def _finished_work(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        self._hub.publish(QUEUE_TOPIC)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._lease_seconds / 3)
            if self._logs:
                async with self._database.writing() as writing:
                    lost = await records.renew_leases(
                        writing, self._holder, list(self._logs), self._lease_seconds
                    )
                for run_id in lost:
                    self._stop(run_id, Stop.LOST)
                # A run that was asked for while the seats were held may have been passed over.
                self._hub.publish(QUEUE_TOPIC)
            await self._recover()

    async def _recover(self) -> None:
        while True:
            async with self._database.writing() as writing:
                run = await recovering.recover_lost_run(writing)
            if run is None:
                return
            logger.warning("failed a run whose server has gone", run=run.id)

    def _stop(self, run_id: str, reason: Stop) -> None:
        stop = self._stops.get(run_id)
        if stop is not None and not stop.done():
            stop.set_result(reason)

    async def _carry_out(self, run: Run, log: LiveLog) -> None:
        cancellation = self._hub.subscribe(cancel_topic_of(run.id))
        watcher = asyncio.create_task(self._watch_for_cancel(run.id, cancellation))
        try:
            work = _Work(
                self._database, self._hub, self._provider, self._asking, self._holder, run, log
            )
            await work.carry_out(self._stops[run.id])
        except records.LeaseLost:
            logger.warning("another server took this run over", run=run.id)
        except Exception:
            # Nobody renews the lease from here on, so the run is failed when it expires.
            logger.exception("a run broke off", run=run.id)
        finally:
            watcher.cancel()
            cancellation.close()
            del self._logs[run.id], self._stops[run.id]
            if log.is_whole:
                self._ended_logs[run.id] = log
            # Whoever followed a log that another server goes on with reads on from the database.
            self._hub.publish(topic_of(run.id))

    async def _watch_for_cancel(self, run_id: str, cancellation: Subscription) -> None:
        while True:
            try:
                async with self._database.reading() as reading:
                    if await records.is_cancel_requested(reading, run_id):
                        self._stop(run_id, Stop.CANCELLED)
                        return
                await cancellation.wait()
            except (Unavailable, *DATABASE_TROUBLE):
                await asyncio.sleep(self._lease_seconds / 3)


class _Work:
    """One run being carried out."""

    def __init__(
        self,
        database: Database,
        hub: Hub,
        provider: Provider,
        asking: Asking,
        holder: str,
        run: Run,
        log: LiveLog,
    ) -> None:
        self._database = database
        self._hub = hub
        self._provider = provider
        self._asking = asking
        self._holder = holder
        self._run = run
        self._log = log
        self._texts: dict[TextChannel, list[str]] = {channel: [] for channel in TextChannel}
        # What is stored with the next events: how often the provider was asked, and once what for.
        self._attempts = 0
        self._context: dict[str, Any] | None = None
        self._has_unstored = asyncio.Event()
        self._room = asyncio.Semaphore(MAX_WAITING)
        self._is_ending = False

    async def carry_out(self, stop: asyncio.Future[Stop]) -> None:
        """From the first event to the last. Raises LeaseLost."""
        storing = asyncio.create_task(self._store_as_it_comes())
        answering = asyncio.create_task(self._answer())
        try:
            ends: set[asyncio.Future[Any]] = {answering, storing, stop}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if storing.done():
                storing.result()  # raises LeaseLost
            if not answering.done():
                answering.cancel()
            outcome = await self._outcome(answering, stop)
            # A whole answer is not given up for a moment's trouble of the database.
            async with asyncio.timeout(SETTLE_SECONDS):
                # Waited for, not cancelled: a transaction that is cancelled may be committed all
                # the same.
                self._is_ending = True
                self._has_unstored.set()
                await storing
                await self._finish(outcome)
        finally:
            for task in (answering, storing):
                task.cancel()
            await asyncio.gather(answering, storing, return_exceptions=True)

    async def _request_once_readable(self) -> tuple[Request | None, Assembly]:
        viewer = Viewer(self._run.requested_by_user_id)
        async with asyncio.timeout(SETTLE_SECONDS):
            while True:
                try:
                    async with self._database.reading() as reading:
                        return await build_request(reading, viewer, self._run, self._asking.budget)
                except DATABASE_TROUBLE as error:
                    logger.warning("a run waits for the database", error=type(error).__name__)
                    await asyncio.sleep(FLUSH_SECONDS)

    async def _answer(self) -> Outcome:
        await self._emit(RunEventType.RUN_STARTED, {})
        async with self._phase("context"):
            request, assembly = await self._request_once_readable()
            self._context = assembly.record()
        if request is None:
            return Outcome(RunStatus.FAILED, error=_TOO_LONG)
        finished: Finished | None = None
        parts = parts_of_answer(
            self._provider,
            request,
            self._asking.retries,
            begin=self._begin_attempt,
            warn=self._warn,
        )
        async with self._phase("answer"), contextlib.aclosing(parts):
            async for part in parts:
                if isinstance(part, TextPart):
                    await self._emit_text(part)
                else:
                    finished = part
        if finished is not None and finished.reason == "refused":
            error = RunError("REFUSED", "The provider declined to go on with this answer.")
            return Outcome(RunStatus.FAILED, finished, error)
        return Outcome(RunStatus.SUCCEEDED, finished)

    def _begin_attempt(self) -> None:
        self._attempts += 1

    async def _warn(self, message: str) -> None:
        payload = {"code": "PROVIDER_RETRY", "message": storable(message)}
        await self._emit(RunEventType.RUN_WARNING, payload)

    async def _outcome(
        self, answering: asyncio.Task[Outcome], stop: asyncio.Future[Stop]
    ) -> Outcome:
        try:
            return await answering
        except ProviderError as error:
            return Outcome(RunStatus.FAILED, error=RunError(error.code, storable(error.message)))
        except asyncio.CancelledError:
            if not stop.done():
                raise  # the whole worker is being cancelled, not this answer
            if stop.result() is Stop.LOST:
                raise records.LeaseLost from None
            if stop.result() is Stop.CANCELLED:
                return Outcome(RunStatus.CANCELLED)
            message = "The server was stopped. The text so far is in the answer; ask again."
            return Outcome(RunStatus.FAILED, error=RunError("SERVER_STOPPED", message))
        except records.LeaseLost:
            raise
        except Exception:
            logger.exception("an answer failed", run=self._run.id)
            message = "Something went wrong on the server. Say this run's id when you report it."
            return Outcome(RunStatus.FAILED, error=RunError("INTERNAL", message))

    async def _finish(self, outcome: Outcome) -> None:
        if outcome.status is RunStatus.SUCCEEDED and not outcome.is_whole:
            warning = {
                "code": "ANSWER_CUT",
                "message": "The model reached its length limit: the answer is kept as partial.",
            }
            self._log.add(RunEventType.RUN_WARNING, warning)
        payload = records.finished_payload(outcome.status, self._run.node_id, outcome.error)
        self._log.add(RunEventType.RUN_FINISHED, payload)
        # Trying again is safe: if the commit went through after all, the run is no longer ours
        # (LeaseLost).
        while not await self._settle(outcome):  # noqa: ASYNC110, this tries and waits
            await asyncio.sleep(FLUSH_SECONDS)
        logger.info("run ended", run=self._run.id, status=outcome.status, events=self._log.last_seq)

    async def _settle(self, outcome: Outcome) -> bool:
        """Store the end of the run; whether the database took it."""
        run, finished = self._run, outcome.finished
        is_solid = outcome.status is RunStatus.SUCCEEDED and outcome.is_whole
        events = self._log.unstored()
        try:
            async with self._database.writing() as writing:
                await self._store_in(writing, events)
                await records.end_run(
                    writing,
                    run,
                    self._holder,
                    status=outcome.status,
                    node_status=NodeStatus.SOLIDIFIED if is_solid else NodeStatus.PARTIAL,
                    content="".join(self._texts[TextChannel.TEXT]),
                    reasoning="".join(self._texts[TextChannel.REASONING]),
                    model=(finished and finished.model and storable(finished.model))
                    or run.model
                    or self._provider.default_model,
                    usage=asdict(finished.usage) if finished and finished.usage else None,
                    finish_reason=finished.reason if finished else None,
                    error=outcome.error,
                )
        except DATABASE_TROUBLE as error:
            logger.warning("an end waits for the database", error=type(error).__name__)
            return False
        self._show(len(events))
        return True

    @contextlib.asynccontextmanager
    async def _phase(self, name: str) -> AsyncIterator[None]:
        await self._emit(RunEventType.PHASE_STARTED, {"name": name})
        yield
        await self._emit(RunEventType.PHASE_FINISHED, {"name": name})

    async def _emit_text(self, part: TextPart) -> None:
        channel = TextChannel(part.channel)
        # What the database cannot hold is left out of events and answer alike.
        text = storable(part.text)
        if text:
            self._texts[channel].append(text)
            payload = {"channel": channel, "target_id": self._run.node_id}
            await self._emit(RunEventType.TEXT_DELTA, payload, text)

    async def _emit(
        self, type: RunEventType, payload: dict[str, Any], text: str | None = None
    ) -> None:
        await self._room.acquire()
        self._log.add(type, payload, text)
        self._has_unstored.set()

    async def _store_as_it_comes(self) -> None:
        # Until the first piece of text is out, events go at once; then what comes while a batch is
        # stored, and shortly after, goes together, so that a fast model costs few commits.
        clock = asyncio.get_running_loop().time
        while not self._is_ending:
            await self._has_unstored.wait()
            self._has_unstored.clear()
            began = clock()
            may_wait = any(self._texts.values())
            try:
                await self._store()
            except DATABASE_TROUBLE as error:
                may_wait = True
                self._has_unstored.set()
                logger.warning("events wait for the database", error=type(error).__name__)
            if may_wait and not self._is_ending:
                await asyncio.sleep(began + FLUSH_SECONDS - clock())

    async def _store(self) -> None:
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

    def _show(self, count: int) -> None:
        self._log.mark_stored(count)
        for _ in range(count):
            self._room.release()
        self._hub.publish(topic_of(self._run.id))
