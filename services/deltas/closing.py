"""Closing a set of changes over the rows that it removes: whatever names a removed row goes with
it, wherever it is, so that nothing is left that names what is nowhere.

Source: spec aventuras, the reversal set closes over the rows its creates delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from db.enums import DeltaOp, DeltaSource, LoggedTable
from db.reading import Reading
from db.tables import Delta
from services.deltas.logged import DEPENDENT, LOGGED, Image
from services.deltas.rows import ids_naming, images_by_ids
from services.deltas.selecting import deletes_of, deltas_of_rows
from services.deltas.writing import CHILDREN
from services.errors import Conflict

VIEWS = ("kind", "inverse_kind")


@dataclass(slots=True)
class KeptTie:
    """A relationship that a machine made and a person has written to since: it stays, with what the
    person said.
    """

    views: frozenset[str]
    # The oldest of the person's writes: its action owns the row from now on.
    owner_action_id: str


@dataclass(slots=True)
class Closed:
    """A set of changes to be taken back."""

    branch_id: str
    deltas: dict[str, Delta] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    kept_ties: dict[str, KeptTie] = field(default_factory=dict)
    # The deletes of the whole log, newest first.
    deletes: list[Delta] = field(default_factory=list)

    @property
    def newest_first(self) -> list[Delta]:
        """The changes in the order in which they are taken back."""
        return sorted(self.deltas.values(), key=lambda each: -each.log_position)


def held_rows(delta: Delta) -> Iterable[tuple[LoggedTable, Image]]:
    """The rows that a delete has taken out: its target, then what went with it."""
    payload: dict[str, Any] = delta.undo_payload or {}
    yield LoggedTable(delta.target_table), payload
    for name, rows in payload.get(CHILDREN, {}).items():
        for row in rows:
            yield LoggedTable(name), row


async def close(
    reading: Reading,
    branch_id: str,
    selected: Sequence[Delta],
    *,
    spares_entities: bool = False,
) -> Closed:
    """The set with everything that goes with it. With `spares_entities` the creates of entities are
    left out: an edited text takes back what was said of the cast, not the cast.

    Raises Conflict (HISTORY_INCOMPLETE) where a row that goes has no create in the log.
    """
    closed = Closed(branch_id, deletes=await deletes_of(reading, branch_id))
    closed.deltas = {
        each.row_id: each
        for each in selected
        if not (
            spares_entities
            and each.op == DeltaOp.CREATE
            and each.target_table == LoggedTable.ENTITIES
        )
    }
    await keep_ties(reading, closed)
    made = {each.target_id for each in closed.deltas.values() if each.op == DeltaOp.CREATE}
    await _remove(reading, closed, made - closed.kept_ties.keys())
    return closed


async def close_over(reading: Reading, closed: Closed, ids: set[str]) -> bool:
    """Close a set over rows that go without their creates being taken back; whether it grew.

    Raises Conflict like `close`.
    """
    naming = await _naming(reading, closed, ids) - closed.removed
    await _remove(reading, closed, naming)
    return bool(naming)


async def _remove(reading: Reading, closed: Closed, fresh: set[str]) -> None:
    """Take these rows along, with all that names them."""
    removed: set[str] = set()
    while fresh:
        removed |= fresh
        closed.removed |= fresh
        for each in await deltas_of_rows(reading, closed.branch_id, fresh):
            if each.op != DeltaOp.DELETE:
                closed.deltas[each.row_id] = each
        fresh = await _naming(reading, closed, fresh) - closed.removed
    for row_id in removed & closed.kept_ties.keys():
        del closed.kept_ties[row_id]
    made = {each.target_id for each in closed.deltas.values() if each.op == DeltaOp.CREATE}
    if removed - made:
        raise Conflict(
            "The log of this branch does not say how a row came that would have to go.",
            "HISTORY_INCOMPLETE",
        )


async def _naming(reading: Reading, closed: Closed, ids: set[str]) -> set[str]:
    """The rows that name any of these, live or held by a delete."""
    found: set[str] = set()
    for logged in DEPENDENT:
        found |= await ids_naming(reading, closed.branch_id, logged.name, ids)
    for delete in closed.deletes:
        for table, row in held_rows(delete):
            if any(row[column] in ids for column in LOGGED[table].names):
                found.add(row["id"])
    return found


async def keep_ties(reading: Reading, closed: Closed) -> None:
    """Find the relationships that machines made and people have written to."""
    table = LoggedTable.CHARACTER_RELATIONSHIPS
    made = [
        each.target_id
        for each in closed.deltas.values()
        if each.target_table == table
        and each.op == DeltaOp.CREATE
        and each.source != DeltaSource.USER_EDIT
    ]
    if not made:
        return
    written: dict[str, list[Delta]] = {}
    for each in await deltas_of_rows(reading, closed.branch_id, made):
        is_persons = each.source == DeltaSource.USER_EDIT and each.op == DeltaOp.UPDATE
        if is_persons and each.row_id not in closed.deltas and _views_in(each):
            written.setdefault(each.target_id, []).append(each)
    present = await images_by_ids(reading, closed.branch_id, table, written)
    for delete in closed.deletes:
        for held_table, row in held_rows(delete):
            if held_table == table:
                present.setdefault(row["id"], row)
    for row_id, writes in written.items():
        views = frozenset(view for each in writes for view in _views_in(each))
        image = present.get(row_id)
        if image is not None and any(image[view] is not None for view in views):
            closed.kept_ties[row_id] = KeptTie(views, writes[-1].action_id)


def _views_in(delta: Delta) -> list[str]:
    return [view for view in VIEWS if view in (delta.undo_payload or {})]
