"""Which changes a way back begins with: those of an action, or those behind an entry.

Source: spec aventuras, survival anchor; user-facing undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Integer, Text, and_, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import DeltaOp, DeltaSource, EntryKind, LoggedTable
from db.reading import Reading, any_of, columns, param, statement
from db.tables import Delta, StoryEntry
from services.errors import Conflict

BACKGROUND = DeltaSource.PERIODIC_CLASSIFIER


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a branch is cut: behind the entries up to a position in the story. What was logged
    from `first_log` on goes, unless it is about an entry that is kept.
    """

    kept_position: int
    first_log: int


def _logged(*conditions: Any, selected: Iterable[Any] | None = None) -> Any:
    """Deltas with the position of the entry that each is anchored to, newest first."""
    is_anchor = and_(
        col(StoryEntry.branch_id) == col(Delta.branch_id),
        col(StoryEntry.row_id) == col(Delta.entry_id),
    )
    return (
        select(*(selected or columns(Delta)), col(StoryEntry.position).label("anchor_position"))
        .select_from(Delta)
        .outerjoin(StoryEntry, is_anchor)
        .where(col(Delta.branch_id) == param("branch_id"), *conditions)
        .order_by(col(Delta.log_position).desc())
    )


@statement(Delta)
def _newest_undoable() -> Any:
    return (
        select(col(Delta.action_id))
        .where(col(Delta.branch_id) == param("branch_id"), col(Delta.source) != BACKGROUND.value)
        .order_by(col(Delta.log_position).desc())
        .limit(1)
    )


@statement(Delta)
def _of_actions() -> Any:
    return _logged(any_of(Delta.action_id, "action_ids"))


@statement(Delta)
def _behind(*, is_of_tables: bool = False) -> Any:
    conditions = [col(Delta.log_position) >= param("first_log", BigInteger())]
    if is_of_tables:
        is_delete = col(Delta.op) == DeltaOp.DELETE.value
        conditions.append(or_(any_of(Delta.target_table, "tables"), is_delete))
    return _logged(*conditions)


@statement(Delta)
def _creates_behind() -> Any:
    return _logged(
        col(Delta.log_position) >= param("first_log", BigInteger()),
        col(Delta.op) == DeltaOp.CREATE.value,
        selected=(col(Delta.target_id), col(Delta.entry_id)),
    )


@statement(Delta)
def _of_rows(*, is_of_edits: bool = False) -> Any:
    is_edit = col(Delta.source) == DeltaSource.USER_EDIT.value
    return _logged(any_of(Delta.target_id, "ids"), *([is_edit] if is_of_edits else []))


@statement(Delta)
def _facts_about() -> Any:
    return _logged(col(Delta.source) == BACKGROUND.value, any_of(Delta.entry_id, "entry_ids"))


@statement(Delta)
def _deletes() -> Any:
    return _logged(col(Delta.op) == DeltaOp.DELETE.value)


@statement(StoryEntry)
def _first_behind() -> Any:
    return (
        select(*columns(StoryEntry))
        .where(
            col(StoryEntry.branch_id) == param("branch_id"),
            col(StoryEntry.position) > param("position", Integer()),
            col(StoryEntry.kind) != EntryKind.SYSTEM.value,
        )
        .order_by(col(StoryEntry.position))
        .limit(1)
    )


@statement(Delta)
def _deleted_entries() -> Any:
    position = col(Delta.undo_payload)["position"].as_integer()
    return select(col(Delta.target_id), position.label("position")).where(
        col(Delta.branch_id) == param("branch_id"),
        col(Delta.op) == DeltaOp.DELETE.value,
        col(Delta.target_table) == LoggedTable.STORY_ENTRIES.value,
    )


@statement(Delta)
def _begins_at() -> Any:
    """The first change that belongs to the turns of entries, behind the creates of kept entries."""
    made, other, kept = aliased(Delta), aliased(Delta), aliased(Delta)
    kept_entry = aliased(StoryEntry)
    last_kept = (
        select(func.coalesce(func.max(col(kept.log_position)), 0))
        .select_from(kept)
        .join(
            kept_entry,
            and_(
                col(kept_entry.branch_id) == col(kept.branch_id),
                col(kept_entry.row_id) == col(kept.target_id),
            ),
        )
        .where(
            col(kept.branch_id) == col(made.branch_id),
            col(kept.action_id) == col(made.action_id),
            col(kept.op) == DeltaOp.CREATE.value,
            col(kept_entry.position) <= param("position", Integer()),
        )
        .scalar_subquery()
    )
    return (
        select(func.min(col(other.log_position)))
        .select_from(made)
        .join(
            other,
            and_(
                col(other.branch_id) == col(made.branch_id),
                col(other.action_id) == col(made.action_id),
            ),
        )
        .where(
            col(made.branch_id) == param("branch_id"),
            col(made.target_id) == func.any(param("entry_ids", ARRAY(Text))),
            col(made.op) == DeltaOp.CREATE.value,
            col(other.log_position) > last_kept,
        )
    )


async def newest_undoable(reading: Reading, branch_id: str) -> str | None:
    """The newest action that can be undone; what was done in the background never is one."""
    found: str | None = await reading.value(_newest_undoable(), branch_id=branch_id)
    return found


async def deltas_of_action(reading: Reading, branch_id: str, action_id: str) -> list[Delta]:
    """What was done together, newest first."""
    return await deltas_of_actions(reading, branch_id, [action_id])


async def deltas_of_actions(
    reading: Reading, branch_id: str, action_ids: Iterable[str]
) -> list[Delta]:
    """The same of several actions."""
    wanted = list(action_ids)
    if not wanted:
        return []
    return await reading.all(_of_actions(), branch_id=branch_id, action_ids=wanted)


async def deltas_of_rows(reading: Reading, branch_id: str, ids: Iterable[str]) -> list[Delta]:
    """All changes of these rows, newest first."""
    wanted = list(ids)
    return await reading.all(_of_rows(), branch_id=branch_id, ids=wanted) if wanted else []


async def edits_of_rows(reading: Reading, branch_id: str, ids: Iterable[str]) -> list[Delta]:
    """What people have changed of these rows, newest first."""
    wanted = list(ids)
    if not wanted:
        return []
    return await reading.all(_of_rows(is_of_edits=True), branch_id=branch_id, ids=wanted)


async def facts_about(reading: Reading, branch_id: str, entry_ids: Sequence[str]) -> list[Delta]:
    """What the background has taken from these entries, newest first."""
    return await reading.all(_facts_about(), branch_id=branch_id, entry_ids=list(entry_ids))


async def deletes_of(reading: Reading, branch_id: str) -> list[Delta]:
    """Every delete in the log, newest first: their payloads hold the rows that are gone."""
    return await reading.all(_deletes(), branch_id=branch_id)


async def cut_behind(reading: Reading, branch_id: str, position: int) -> Cut | None:
    """Where to cut so that the entry at a position is the last; None where it is. An entry behind
    it that is deleted and could come back counts as well as the first that is there.

    Raises Conflict (HISTORY_INCOMPLETE) where the log does not know the next entry.
    """
    entry = await reading.first(_first_behind(), branch_id=branch_id, position=position)
    if entry is None:
        return None
    deleted = await _positions_held(reading, branch_id)
    behind = [row_id for row_id, place in deleted.items() if place > position]
    begins = [
        await reading.value(_begins_at(), branch_id=branch_id, entry_ids=ids, position=position)
        for ids in ([entry.row_id], behind)
        if ids
    ]
    if begins[0] is None:
        raise Conflict(
            f"The log of this branch does not say how entry {entry.position} came.",
            "HISTORY_INCOMPLETE",
        )
    return Cut(position, min(each for each in begins if each is not None))


@dataclass(frozen=True, slots=True)
class Behind:
    """What was logged behind a cut, newest first: what it takes away, and what it spares because it
    is about an entry that is kept.
    """

    taken: list[Delta]
    spared: list[Delta]


async def logged_behind(
    reading: Reading,
    branch_id: str,
    cut: Cut,
    tables: Sequence[LoggedTable] | None = None,
) -> Behind:
    """Both. With `tables` only what can touch these."""
    if tables is None:
        wanted, given = _behind(), {}
    else:
        wanted, given = _behind(is_of_tables=True), {"tables": [str(each) for each in tables]}
    found = await reading.all(wanted, branch_id=branch_id, first_log=cut.first_log, **given)
    return await _parted(reading, branch_id, cut, found)


async def _parted(reading: Reading, branch_id: str, cut: Cut, found: Sequence[Any]) -> Behind:
    is_lost = any(each.entry_id is not None and each.anchor_position is None for each in found)
    held = await _positions_held(reading, branch_id) if is_lost and cut.kept_position else {}
    behind = Behind([], [])
    for each in found:
        position = each.anchor_position
        if position is None:
            # By position in the log alone; or of an entry that is deleted, which has one still.
            position = held.get(each.entry_id, cut.kept_position + 1)
        (behind.taken if position > cut.kept_position else behind.spared).append(each)
    return behind


async def deltas_behind(reading: Reading, branch_id: str, cut: Cut) -> list[Delta]:
    """What a cut takes away, newest first: everything logged from there on, but for what is about
    an entry that is kept.
    """
    return (await logged_behind(reading, branch_id, cut)).taken


async def made_behind(reading: Reading, branch_id: str, cut: Cut) -> set[str]:
    """The rows that were made behind a cut and go with it."""
    found = await reading.all(_creates_behind(), branch_id=branch_id, first_log=cut.first_log)
    behind = await _parted(reading, branch_id, cut, found)
    return {each.target_id for each in behind.taken}


async def _positions_held(reading: Reading, branch_id: str) -> dict[str, int]:
    """The positions of entries that were deleted and can come back."""
    rows: list[Any] = await reading.all(_deleted_entries(), branch_id=branch_id)
    return {row.target_id: row.position for row in rows}
