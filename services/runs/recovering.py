"""Ends the runs of servers that are gone, keeping the text that they had stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Integer, func, literal, select, update
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlmodel import col

from db.enums import NodeStatus, RunEventType, RunStatus, TextChannel, Visibility
from db.reading import Writing, columns, param, statement
from db.tables import Run, RunError, RunEvent
from services.hub import announce
from services.runs.events import Event, topic_of
from services.runs.records import end_run, finished_payload


@statement(Run)
def _lost_run() -> Any:
    return (
        select(*columns(Run))
        .where(
            col(Run.status) == RunStatus.RUNNING.value,
            col(Run.lease_expires_at) < func.clock_timestamp(),
        )
        .limit(1)
        .with_for_update(skip_locked=True)
    )


@statement(RunEvent)
def _stored_text() -> Any:
    channel = col(RunEvent.payload)["channel"].astext
    return select(
        func.coalesce(
            func.string_agg(
                col(RunEvent.payload)["text"].astext,
                aggregate_order_by(literal(""), col(RunEvent.seq)),
            ),
            "",
        )
    ).where(
        col(RunEvent.run_id) == param("run_id"),
        col(RunEvent.type) == RunEventType.TEXT_DELTA.value,
        channel == param("channel"),
    )


async def recover_lost_run(writing: Writing) -> Run | None:
    """Fail one run whose server has gone, keeping its text; None if there is none.

    What was stored is all that anybody has seen, so the log goes on with the next number.
    """
    run = await writing.first(_lost_run())
    if run is None:
        return None
    holder = run.lease_holder or ""
    texts = {
        channel: await writing.value(_stored_text(), run_id=run.id, channel=channel)
        for channel in TextChannel
    }
    error = RunError(
        "SERVER_LOST",
        "The server that worked on this is gone. The text so far is in the answer; ask again.",
    )
    last = Event(
        run.id,
        run.last_seq + 1,
        datetime.now(UTC),
        RunEventType.RUN_FINISHED,
        Visibility.PUBLIC,
        finished_payload(RunStatus.FAILED, run.node_id, error),
    )
    await end_run(
        writing,
        run,
        holder,
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
    return run


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
