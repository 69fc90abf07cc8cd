"""Keeps what runs when a character's seat is taken from its server: the run ends, its text stays.

Whoever takes the seat raises its epoch; from then on the server that had it can commit nothing.
Locks go from the runs to the seat, so the runs are held before the seat is moved.
Source: spec soul-mirror, section 1 (seat).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.enums import RunStatus
from db.reading import Writing, columns, param, statement
from db.tables import Run
from services.access import Viewer, visible
from services.runs.records import cancel_run
from services.runs.recovering import STALE_SEAT_EPOCH, end_abandoned


def _open_runs(*conditions: Any) -> Any:
    return (
        select(*columns(Run))
        .where(
            col(Run.character_id) == param("character_id"),
            col(Run.ended_at).is_(None),
            visible(Run),
            *conditions,
        )
        .order_by(col(Run.id))
    )


def _runs_in_work() -> Any:
    return _open_runs(col(Run.status) == RunStatus.RUNNING.value)


@statement(Run)
def _held() -> Any:
    return _runs_in_work().with_for_update()


@statement(Run)
def _in_work() -> Any:
    return _runs_in_work()


@statement(Run)
def _all_open() -> Any:
    return _open_runs()


async def hold_runs_in_work(writing: Writing, viewer: Viewer, character_id: str) -> list[Run]:
    """The runs of a character that a server works on, held: to be done before its seat is moved."""
    return await writing.all(_held(), character_id=character_id, **viewer.parameters)


async def end_fenced(writing: Writing, runs: list[Run]) -> None:
    """Fail runs with STALE_SEAT_EPOCH that `hold_runs_in_work` held, after their seat was moved."""
    for run in runs:
        await end_abandoned(writing, run, STALE_SEAT_EPOCH)


async def cancel_runs_of_character(
    writing: Writing, viewer: Viewer, character_id: str, *, in_work_only: bool
) -> bool:
    """Stop every open run of a character, or those that a server works on; whether a server has
    still to hear of it, which then keeps the text so far and gives the seat back.
    """
    which = _in_work() if in_work_only else _all_open()
    runs = await writing.all(which, character_id=character_id, **viewer.parameters)
    stopped = [await cancel_run(writing, viewer, run.id) for run in runs]
    return any(run.ended_at is None for run in stopped)
