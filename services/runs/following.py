"""Following a run: its stored events, then what happens, each event once and in order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime

from db.engine import Database
from db.enums import RunEventType, Visibility
from db.tables import Run
from services.access import Viewer, require_row
from services.errors import Invalid
from services.hub import Hub
from services.runs.events import Event, StreamOpening, topic_of
from services.runs.replaying import events_after
from services.runs.worker import RunWorker


async def follow_run(
    database: Database, hub: Hub, worker: RunWorker, viewer: Viewer, run_id: str, after: int
) -> AsyncGenerator[Event | StreamOpening, None]:
    """Every event of a run with a number behind `after`, an opening before them; ends when the
    run has ended.

    A run that this process works on is read from its log in memory, any other from the database,
    so there is nothing between the two that could be missed or seen twice. Raises NotFound,
    Invalid (OUT_OF_WINDOW) for a number behind which texts are erased, and Unavailable when the
    stream must end early: come back with the last number seen.
    """
    async with database.reading() as reading:
        run = await require_row(reading, viewer, Run, run_id, "runId")
    _check_window(run, after)
    run_id = run.id
    subscription = hub.subscribe(topic_of(run_id))
    try:
        seq = after
        yield StreamOpening(run_id, seq, datetime.now(UTC))
        while True:
            # Held until all of it is through, though the run may have ended.
            log = worker.live_log(run_id)
            if log is not None and log.covers(seq):
                events, is_over = log.after(seq), log.is_whole
            else:
                events, is_over = await _stored_behind(database, viewer, run_id, seq)
            for event in events:
                seq = event.seq
                if event.visibility is not Visibility.INTERNAL:
                    yield event
                if event.type is RunEventType.RUN_FINISHED:
                    return
            if not events:
                if is_over:
                    return
                await subscription.wait()
    finally:
        subscription.close()


async def _stored_behind(
    database: Database, viewer: Viewer, run_id: str, seq: int
) -> tuple[Sequence[Event], bool]:
    async with database.reading() as reading:
        # The run first: when it has ended by now, the events read next are all there will be.
        run = await require_row(reading, viewer, Run, run_id, "runId")
        events = await events_after(reading, viewer, run_id, seq)
        if any(event.is_erased for event in events):
            # Erased while this stream was catching up, perhaps since the run was read.
            _check_window(await require_row(reading, viewer, Run, run_id, "runId"), seq)
    return events, run.ended_at is not None


def _check_window(run: Run, after: int) -> None:
    oldest = run.texts_until_seq or 0
    if after < oldest:
        raise Invalid(
            f"The texts of this run up to event {oldest} are no longer kept: follow it behind that "
            "number, or read its answer.",
            "OUT_OF_WINDOW",
            ("after",),
            details={"oldest": oldest},
        )
