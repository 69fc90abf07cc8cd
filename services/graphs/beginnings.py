"""Since when there is an edge: the entry at which it began, as its row says or the log.

Source: design, api (one graph: a provenance entry for each edge); spec aventuras, survival anchor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Text, and_, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import DeltaOp, EdgeKind
from db.reading import Reading, param, statement
from db.tables import Delta, StoryEntry
from services.access import Viewer, visible
from services.graphs.ties import SLOTS
from services.graphs.walking import Edge

# The parts of rows that edges are written in.
_PARTS = ("kind", "inverse_kind", "state")


@statement(Delta)
def _changes() -> Any:
    asked = (
        func.unnest(param("branch_ids", ARRAY(Text)), param("row_ids", ARRAY(Text)))
        .table_valued("branch_id", "id", name="asked")
        .render_derived()
    )
    is_anchor = and_(
        col(StoryEntry.branch_id) == col(Delta.branch_id),
        col(StoryEntry.row_id) == col(Delta.entry_id),
    )
    return (
        select(
            col(Delta.branch_id).label("branch_id"),
            col(Delta.target_id).label("target_id"),
            col(Delta.log_position).label("log_position"),
            col(Delta.op).label("op"),
            col(Delta.undo_payload).label("undo_payload"),
            col(Delta.entry_id).label("entry_id"),
            col(StoryEntry.position).label("anchor_position"),
        )
        .select_from(asked)
        .join(
            Delta,
            and_(col(Delta.branch_id) == asked.c.branch_id, col(Delta.target_id) == asked.c.id),
        )
        .outerjoin(StoryEntry, is_anchor)
        .where(
            or_(
                col(Delta.op) == DeltaOp.CREATE.value,
                col(Delta.undo_payload).op("?|")(param("parts", ARRAY(Text))),
            ),
            visible(Delta),
        )
        .order_by(col(Delta.log_position).desc())
    )


async def entries_of_edges(
    reading: Reading, viewer: Viewer, edges: Sequence[Edge]
) -> list[str | None]:
    """The own id of the entry at which each edge began, or None where nobody has said."""
    asked = sorted({(each.row.branch_id, each.row.row_id) for each in edges})
    rows: list[Any] = await reading.all(
        _changes(),
        branch_ids=[branch_id for branch_id, _ in asked],
        row_ids=[row_id for _, row_id in asked],
        parts=list(_PARTS),
        **viewer.parameters,
    )
    changes: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        changes.setdefault((row.branch_id, row.target_id), []).append(row)
    return [
        each.entry_id
        if each.part is None
        else _begun(each, changes.get((each.row.branch_id, each.row.row_id), ()))
        for each in edges
    ]


def _begun(edge: Edge, changes: Sequence[Any]) -> str | None:
    """The anchor of the newest change that made it what it is, else of what made the row."""
    held = {slot: edge.row.state.get(slot, ()) for slot in SLOTS} if _is_held(edge) else {}
    for change in changes:
        if not _is_of_moment(change, edge.moment):
            continue
        if change.op == DeltaOp.CREATE:
            return _entry(change)
        before = change.undo_payload
        if _is_held(edge):
            # A list holds many ties: it may have changed for the sake of another one.
            was = before.get("state") or {}
            held |= {slot: was[slot] or () for slot in SLOTS if slot in was}
            if not any(edge.part in items for items in held.values()):
                return _entry(change)
        elif edge.kind == EdgeKind.RELATIONSHIP:
            if edge.part in before:
                return _entry(change)
        elif edge.part in (before.get("state") or {}):
            return _entry(change)
    return None


def _is_held(edge: Edge) -> bool:
    return edge.kind == EdgeKind.POSSESSION


def _is_of_moment(change: Any, moment: Any) -> bool:
    """Whether a change counts at the moment of an edge."""
    if moment is None or moment.cut is None or change.log_position < moment.cut.first_log:
        return True
    position = change.anchor_position
    return position is not None and position <= moment.cut.kept_position


def _entry(change: Any) -> str | None:
    entry_id: str | None = change.entry_id
    return entry_id
