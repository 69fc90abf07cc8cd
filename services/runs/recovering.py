"""Ends runs of servers that are gone or have lost the seat; the text that they stored is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Integer, func, select, update
from sqlmodel import col

from db.enums import NodeStatus, RunEventType, RunStatus, TextChannel, Visibility
from db.reading import Writing, columns, param, statement
from db.tables import Run, RunError, RunEvent, RunEventText, RuntimeSeat
from services.hub import announce
from services.runs.events import Event, topic_of
from services.runs.records import close_run, end_run, finished_payload
from services.runs.replaying import text_of_channel, with_text

SERVER_LOST = RunError(
    "SERVER_LOST",
    "The server that worked on this is gone. The text so far is in the answer; ask again.",
)
TRANSLATION_LOST = RunError(
    "SERVER_LOST",
    "The server that worked on this is gone. What it has said is kept; translate again for the "
    "rest.",
)
STALE_SEAT_EPOCH = RunError(
    "STALE_SEAT_EPOCH",
    "The character's seat was taken from the server that worked on this. The text so far is in "
    "the answer; ask again.",
)


@statement(Run)
def _lost_run() -> Any:
    return (
        select(*columns(Run))
        .where(
            col(Run.status) == RunStatus.RUNNING.value,
            col(Run.ended_at).is_(None),  # for the index of open runs
            col(Run.lease_expires_at) < func.clock_timestamp(),
        )
        .limit(1)
        .with_for_update(skip_locked=True)
    )


@statement(RunEvent)
def _stored_text() -> Any:
    return (
        select(text_of_channel())
        .select_from(RunEvent)
        .join(RunEventText, with_text())
        .where(col(RunEvent.run_id) == param("run_id"))
    )


async def recover_lost_run(writing: Writing) -> Run | None:
    """Fail one run whose server has gone, keeping its text; None if there is none.

    What was stored is all that anybody has seen, so the log goes on with the next number.
    """
    run = await writing.first(_lost_run())
    if run is None:
        return None
    if run.character_id is None:
        await end_abandoned(writing, run, TRANSLATION_LOST)
        return run
    is_stale = await writing.value(_is_stale(), run_id=run.id)
    await end_abandoned(writing, run, STALE_SEAT_EPOCH if is_stale else SERVER_LOST)
    return run


@statement(Run)
def _is_stale() -> Any:
    return (
        select(col(RuntimeSeat.epoch) > col(Run.seat_epoch))
        .select_from(Run)
        .join(RuntimeSeat, col(RuntimeSeat.character_id) == col(Run.character_id))
        .where(col(Run.id) == param("run_id"))
    )


async def end_abandoned(writing: Writing, run: Run, error: RunError) -> None:
    """Fail a run in work, whose row the caller holds, for its server: what that one had stored is
    the answer, and it can commit nothing more.
    """
    last = Event(
        run.id,
        run.last_seq + 1,
        datetime.now(UTC),
        RunEventType.RUN_FINISHED,
        Visibility.PUBLIC,
        finished_payload(RunStatus.FAILED, run.node_id, error),
    )
    if run.character_id is None:
        await close_run(writing, run, status=RunStatus.FAILED, model=run.model, error=error)
    else:
        texts = {
            channel: await writing.value(_stored_text(), run_id=run.id, channel=channel)
            for channel in TextChannel
        }
        await end_run(
            writing,
            run,
            run.lease_holder or "",
            status=RunStatus.FAILED,
            node_status=NodeStatus.PARTIAL,
            content=texts[TextChannel.TEXT],
            reasoning=texts[TextChannel.REASONING],
            model=run.model,
            error=error,
        )
    await writing.run(_set_last_seq(), of_id=run.id, new_last_seq=last.seq)
    await writing.insert_many(RunEvent, [last.to_row()])
    await announce(writing, topic_of(run.id))


@statement(Run)
def _set_last_seq() -> Any:
    return (
        update(Run)
        .where(col(Run.id) == param("of_id"))
        .values(last_seq=param("new_last_seq", Integer()))
    )


@statement(Run)
def _expire_all() -> Any:
    return (
        update(Run)
        .where(col(Run.status) == RunStatus.RUNNING.value)
        .values(lease_expires_at=func.clock_timestamp() - timedelta(seconds=1))
    )


async def expire_all_leases(writing: Writing) -> int:
    """Declare every running run lost: for a server that knows it is the database's only one."""
    return await writing.run(_expire_all())
