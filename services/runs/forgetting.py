"""Erases the texts of runs' events: after their time, or with all else of a character.

The events stay, they are append-only; how far the texts are gone stands on the run.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, func, select, update
from sqlalchemy import delete as delete_from
from sqlmodel import col

from db.reading import Writing, param, statement
from db.tables import Run, RunEventText

# How many runs are done in one transaction; each may have some thousands of texts.
RUNS_AT_ONCE = 20


def _erase(which: Any, *, skip_locked: bool) -> Any:
    runs = which.limit(RUNS_AT_ONCE).with_for_update(skip_locked=skip_locked).cte("ended")
    gone = (
        delete_from(RunEventText)
        .where(col(RunEventText.run_id).in_(select(runs.c.id)))
        .returning(col(RunEventText.run_id), col(RunEventText.seq))
        .cte("gone")
    )
    last = select(func.max(gone.c.seq)).where(gone.c.run_id == col(Run.id)).scalar_subquery()
    return (
        update(Run)
        .where(col(Run.id).in_(select(runs.c.id)))
        .values(texts_until_seq=func.coalesce(last, 0))
    )


def _with_texts(*conditions: Any) -> Any:
    # As the partial index has it.
    kept = col(Run.ended_at).is_not(None) & col(Run.texts_until_seq).is_(None)
    return select(col(Run.id)).where(kept, *conditions)


@statement(Run)
def _erase_old() -> Any:
    age = func.make_interval(0, 0, 0, param("days", Integer()))
    is_old = col(Run.ended_at) < func.clock_timestamp() - age
    return _erase(_with_texts(is_old), skip_locked=True)


@statement(Run)
def _erase_of_character() -> Any:
    is_theirs = col(Run.character_id) == param("character_id")
    return _erase(_with_texts(is_theirs), skip_locked=False)


async def forget_old_texts(writing: Writing, days: int) -> int:
    """A step of a chore: erase the texts of some of the runs that ended longer ago than so many
    days; how many runs that were. With 0 days all are kept for ever.
    """
    return await writing.run(_erase_old(), days=days) if days else 0


async def forget_texts_of_character(writing: Writing, character_id: str) -> int:
    """Erase the texts of all ended runs of a character, whom the caller holds; of how many."""
    done = 0
    while step := await writing.run(_erase_of_character(), character_id=character_id):
        done += step
    return done
