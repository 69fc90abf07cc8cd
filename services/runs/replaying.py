"""Reading what is stored of a run's events, with their texts as far as these are not erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Integer, Text, case, func, literal, select
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import RunEventType, TextChannel
from db.reading import Reading, columns, param, statement
from db.tables import Run, RunEvent, RunEventText, TreeNode
from services.access import Viewer, visible
from services.runs.events import Event

# Stored events that one statement brings while a stream catches up.
REPLAY_CHUNK = 500


def with_text() -> ColumnElement[bool]:
    """The join from an event to its text; a part of a statement."""
    return (col(RunEventText.run_id) == col(RunEvent.run_id)) & (
        col(RunEventText.seq) == col(RunEvent.seq)
    )


@statement(RunEvent)
def _events_after() -> Any:
    return (
        select(*columns(RunEvent), col(RunEventText.text))
        .outerjoin(RunEventText, with_text())
        .where(
            col(RunEvent.run_id) == param("run_id"),
            col(RunEvent.seq) > param("after", Integer()),
            visible(RunEvent),
        )
        .order_by(col(RunEvent.seq))
        .limit(REPLAY_CHUNK)
    )


async def events_after(reading: Reading, viewer: Viewer, run_id: str, seq: int) -> list[Event]:
    """Stored events behind `seq` that the viewer may see, at most REPLAY_CHUNK."""
    rows: list[Any] = await reading.all(
        _events_after(), run_id=run_id, after=seq, **viewer.parameters
    )
    return [Event.from_row(row, row.text) for row in rows]


def text_of_channel() -> ColumnElement[str]:
    """The pieces of text of a channel, joined in their order; a part of a statement."""
    joined = func.string_agg(
        col(RunEventText.text), aggregate_order_by(literal(""), col(RunEvent.seq))
    )
    is_of_channel = col(RunEvent.payload)["channel"].astext == param("channel")
    return func.coalesce(joined.filter(is_of_channel), "")


@statement(RunEvent)
def _texts_until() -> Any:
    asked = (
        func.unnest(param("run_ids", ARRAY(Text)), param("seqs", ARRAY(Integer)))
        .table_valued("run_id", "seq")
        .render_derived("asked")
    )
    run, answer = aliased(Run), aliased(TreeNode)
    # Behind the last piece of text the answer itself has all of them, for as long as it is there.
    is_over = col(run.texts_until_seq) > 0
    is_text = param("channel") == TextChannel.TEXT.value
    whole = func.coalesce(case((is_text, col(answer.content)), else_=col(answer.reasoning)), "")
    return (
        select(
            asked.c.run_id,
            asked.c.seq,
            case((is_over, whole), else_=text_of_channel()).label("text"),
        )
        .join(
            RunEvent, (col(RunEvent.run_id) == asked.c.run_id) & (col(RunEvent.seq) <= asked.c.seq)
        )
        .join(run, col(run.id) == asked.c.run_id)
        .outerjoin(answer, col(answer.id) == col(run.node_id))
        .outerjoin(RunEventText, with_text())
        .where(col(RunEvent.type) == RunEventType.TEXT_DELTA.value, visible(RunEvent))
        .group_by(asked.c.run_id, asked.c.seq, col(run.id), col(answer.id))
    )


async def texts_until(
    reading: Reading, viewer: Viewer, places: Sequence[tuple[str, int]], channel: TextChannel
) -> list[str]:
    """For each run and number: the text of a channel up to that event. Where texts are erased, it
    is told of numbers behind which the run can be followed, and empty once the answer is gone too.
    """
    different = set(places)
    rows: list[Any] = await reading.all(
        _texts_until(),
        run_ids=[run_id for run_id, _ in different],
        seqs=[seq for _, seq in different],
        channel=channel,
        **viewer.parameters,
    )
    found = {(row.run_id, row.seq): row.text for row in rows}
    return [found.get(place, "") for place in places]
