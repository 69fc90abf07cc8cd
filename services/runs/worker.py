"""Takes up the runs of one server process, keeps their leases, hears of those that are to stop.

What is done in a run is for the `Work` of its kind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from weakref import WeakValueDictionary

import structlog

from db.engine import Database
from db.enums import RunKind
from db.reading import DATABASE_TROUBLE
from db.tables import Run
from services.errors import Unavailable
from services.hub import Hub, Subscription
from services.providers import Provider
from services.runs import records, recovering
from services.runs.answering import Answering
from services.runs.events import LiveLog, cancel_topic_of, topic_of
from services.runs.starting import QUEUE_TOPIC
from services.runs.working import FLUSH_SECONDS, STANDARD, Asking, Means, Stop, Work

# What is done in runs of each kind, beside which `RunWorker` may be given more.
ANSWERS: Mapping[RunKind, type[Work]] = dict.fromkeys(records.ANSWERING, Answering)

logger = structlog.get_logger("mirrorgraph.runs")


class RunWorker:
    """The worker of one server process. `holder` names the process in leases; `works` says what is
    done in runs, by their kind: those of other kinds are left to other servers.
    """

    def __init__(
        self,
        database: Database,
        hub: Hub,
        provider: Provider,
        *,
        holder: str,
        lease_seconds: float,
        concurrent_runs: int,
        asking: Asking = STANDARD,
        works: Mapping[RunKind, type[Work]] = ANSWERS,
    ) -> None:
        self._database = database
        self._hub = hub
        self._provider = provider
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._concurrent_runs = concurrent_runs
        self._means = Means(database, hub, provider, asking, holder)
        self._works = works
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
                writing,
                self._holder,
                self._provider.name,
                self._lease_seconds,
                self._works.keys(),
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
            work = self._works[RunKind(run.kind)](self._means, run, log)
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
