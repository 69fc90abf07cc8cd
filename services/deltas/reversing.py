"""Taking changes back: computed in memory, newest first, on the rows as they are. Nothing is
written here: what comes of it is a `Reversal`, for the present branch, a fork or a reader.

Source: spec aventuras, entry mutability and rollback; reverse-replay.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from db.enums import DeltaOp, DeltaSource, LoggedTable
from db.reading import Reading
from db.tables import Delta
from services.deltas.closing import VIEWS, Closed, KeptTie, held_rows
from services.deltas.logged import LOGGED, Image, Logged
from services.deltas.rows import images_by_ids
from services.deltas.selecting import deltas_of_action, deltas_of_rows
from services.deltas.writing import CHILDREN, payload_between
from services.errors import Conflict
from services.shapes import overlay

RowKey = tuple[LoggedTable, str]
TIES = LoggedTable.CHARACTER_RELATIONSHIPS


@dataclass(slots=True)
class Reversal:
    """What a way back does: to rows, and to the log."""

    # Rows as they are and as they will be; None where there is none.
    before: dict[RowKey, Image | None] = field(default_factory=dict)
    after: dict[RowKey, Image | None] = field(default_factory=dict)
    # Deltas that go from the log, by id; those that it does not take back, but that are about a row
    # that is gone, are among them.
    pruned: set[str] = field(default_factory=set)
    # New payloads of deletes that hold rows to which something was taken back.
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Creates of rows that a person's write keeps: the action that owns them from now on.
    reowned: dict[str, str] = field(default_factory=dict)
    # What does a delta again that was taken back: a row, or a payload.
    forwards: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    # Deltas that cannot be done again, with all that has become of them.
    without_return: set[str] = field(default_factory=set)

    def changed(self) -> Iterable[tuple[RowKey, Image | None, Image | None]]:
        """The rows that differ, with both sides."""
        for key, after in self.after.items():
            before = self.before.get(key)
            if before is not after and before != after:
                yield key, before, after


class Reverser:
    """Works through a closed set. `protected` has, by row, the writes of people that stay; `others`
    all changes that stay of the rows that may need them.
    """

    def __init__(
        self,
        closed: Closed,
        rows: Mapping[RowKey, Image],
        protected: Mapping[str, list[Delta]],
        others: Mapping[str, list[Delta]],
    ) -> None:
        self.closed = closed
        self.result = Reversal(before=dict(rows))
        self._protected = protected
        self._others = others
        self._rows: dict[RowKey, Image | None] = dict(rows)
        # For each row that is gone, the delete that holds it and is not taken back.
        self._holders: dict[RowKey, Delta] = {}
        for delete in reversed(closed.deletes):
            if delete.row_id not in closed.deltas:
                for table, row in held_rows(delete):
                    self._holders[table, row["id"]] = delete

    def run(self) -> Reversal:
        """Everything, newest first."""
        for delta in self.closed.newest_first:
            key = (LoggedTable(delta.target_table), delta.target_id)
            if delta.op == DeltaOp.CREATE:
                self._undo_create(delta, key)
            elif delta.op == DeltaOp.UPDATE:
                self._undo_update(delta, key)
            else:
                self._undo_delete(delta, key)
            if delta.row_id not in self.result.reowned:
                self.result.pruned.add(delta.row_id)
        self._end_ties_without_views()
        self.result.after = self._rows
        return self.result

    def _undo_create(self, delta: Delta, key: RowKey) -> None:
        row, tie = self._rows.get(key), self.closed.kept_ties.get(delta.target_id)
        if tie is not None:
            self._keep_tie(delta, key, tie)
        elif row is not None:
            self.result.forwards[delta.row_id] = row
            self._rows[key] = None
        elif key in self._holders:
            self._strip(delta, key)

    def _undo_update(self, delta: Delta, key: RowKey) -> None:
        row = self._rows.get(key)
        if row is not None:
            restored = self._restored(delta, key[0], row)
            self.result.forwards[delta.row_id] = payload_between(LOGGED[key[0]], row, restored)
            self._rows[key] = restored
        elif key in self._holders:
            holder = self._holders[key]
            held = self._held(holder, key)
            restored = self._restored(delta, key[0], held)
            held.update(restored)
            self.result.without_return.add(delta.row_id)

    def _undo_delete(self, delta: Delta, key: RowKey) -> None:
        self.result.forwards[delta.row_id] = None
        for table, row in held_rows(delta):
            if self._rows.get((table, row["id"])) is None:
                self._rows[table, row["id"]] = {
                    column: value for column, value in row.items() if not column.startswith("$")
                }

    def _restored(self, delta: Delta, table: LoggedTable, row: Image) -> Image:
        """The row with what the delta has overwritten; a person's later write to a column stays."""
        payload = delta.undo_payload or {}
        kept: set[str] = set()
        if delta.source != DeltaSource.USER_EDIT:
            for later in self._protected.get(delta.target_id, ()):
                if later.log_position > delta.log_position:
                    kept |= _written(later, row)
        return restored(LOGGED[table], row, payload, without=kept)

    def _keep_tie(self, delta: Delta, key: RowKey, tie: KeptTie) -> None:
        """A relationship that a person has written to loses what only machines said."""
        row = self._rows.get(key)
        held = row is None and key in self._holders
        image = self._held(self._holders[key], key) if held else dict(row or {})
        gone = {view for view in VIEWS if view not in tie.views}
        for view in gone:
            image[view] = None
        if not held:
            self._rows[key] = image
        self.result.reowned[delta.row_id] = tie.owner_action_id
        self.result.without_return.add(delta.row_id)
        # Later machine writes that only set what is gone now would bring it back when undone.
        for other in self._others.get(delta.target_id, ()):
            if (
                other.row_id not in self.closed.deltas
                and other.op == DeltaOp.UPDATE
                and other.source != DeltaSource.USER_EDIT
                and _columns(other) <= gone
            ):
                self.result.pruned.add(other.row_id)

    def _held(self, holder: Delta, key: RowKey) -> dict[str, Any]:
        """The copy of a row in the payload of the delete that holds it, to be changed."""
        payload = self.result.payloads.setdefault(
            holder.row_id, copy.deepcopy(holder.undo_payload or {})
        )
        if key == (LoggedTable(holder.target_table), holder.target_id):
            return payload
        rows: list[dict[str, Any]] = payload[CHILDREN][str(key[0])]
        return next(row for row in rows if row["id"] == key[1])

    def _strip(self, delta: Delta, key: RowKey) -> None:
        """Take a row out of the delete that holds it; where it is the delete's own, that goes."""
        holder = self._holders.pop(key)
        self.result.without_return.add(delta.row_id)
        if key == (LoggedTable(holder.target_table), holder.target_id):
            self.result.payloads.pop(holder.row_id, None)
            self.result.pruned.add(holder.row_id)
            return
        held = self._held(holder, key)
        children = self.result.payloads[holder.row_id][CHILDREN]
        children[str(key[0])].remove(held)
        if not children[str(key[0])]:
            del children[str(key[0])]

    def _end_ties_without_views(self) -> None:
        """A relationship of which neither view is left goes, and the rest of its log with it."""
        for key, row in self._rows.items():
            if key[0] is TIES and row is not None and all(row[view] is None for view in VIEWS):
                self._rows[key] = None
                rest = {each.row_id for each in self._others.get(key[1], ())}
                if rest:
                    self.result.without_return |= {
                        each.row_id
                        for each in self.closed.deltas.values()
                        if each.target_id == key[1]
                    }
                self.result.pruned |= rest
                for delta_id in rest & self.result.reowned.keys():
                    del self.result.reowned[delta_id]


def restored(
    logged: Logged, row: Image, payload: Mapping[str, Any], without: Collection[str] = ()
) -> Image:
    """A row with what an update's payload holds put back, but for some columns."""
    result = dict(row)
    for column, value in payload.items():
        if column.startswith("$") or column in without:
            continue
        shape = logged.shapes.get(column)
        if shape is not None and isinstance(value, dict) and isinstance(row.get(column), dict):
            result[column] = overlay(row[column], value, shape(row))
        else:
            result[column] = value
    return result


def _columns(delta: Delta) -> set[str]:
    """The columns that an update has changed."""
    payload = delta.undo_payload or {}
    return {each for each in payload if not each.startswith("$") and each != "updated_at"}


def _written(delta: Delta, row: Image) -> set[str]:
    """The columns that a change has written: all of them where it made the row."""
    return set(row) if delta.op == DeltaOp.CREATE else set(delta.undo_payload or {})


def _mentions(value: Any, row_id: str) -> bool:
    if isinstance(value, dict):
        return any(_mentions(each, row_id) for each in value.values())
    if isinstance(value, list):
        return any(_mentions(each, row_id) for each in value)
    return bool(value == row_id)


async def compute(reading: Reading, closed: Closed) -> Reversal:
    """What taking back a closed set does. Raises Conflict (REVERSAL_BLOCKED)."""
    wanted: dict[LoggedTable, set[str]] = {}
    for delta in closed.deltas.values():
        wanted.setdefault(LoggedTable(delta.target_table), set()).add(delta.target_id)
        if delta.op == DeltaOp.DELETE:
            for table, row in held_rows(delta):
                wanted.setdefault(table, set()).add(row["id"])
    rows: dict[RowKey, Image] = {}
    for table, ids in wanted.items():
        found = await images_by_ids(reading, closed.branch_id, table, ids)
        rows.update({(table, row_id): image for row_id, image in found.items()})
    ties = wanted.get(TIES, set())
    by_machines = {
        each.target_id
        for each in closed.deltas.values()
        if each.op == DeltaOp.UPDATE and each.source != DeltaSource.USER_EDIT
    }
    others: dict[str, list[Delta]] = {}
    for each in await deltas_of_rows(reading, closed.branch_id, by_machines | ties):
        if each.row_id not in closed.deltas:
            others.setdefault(each.target_id, []).append(each)
    protected = {
        row_id: [each for each in deltas if each.source == DeltaSource.USER_EDIT]
        for row_id, deltas in others.items()
    }
    reversal = Reverser(closed, rows, protected, others).run()
    await _check_dropped_deletes(reading, closed, reversal)
    await _drop_loose_ends(reading, closed.branch_id, reversal)
    return reversal


async def _check_dropped_deletes(reading: Reading, closed: Closed, reversal: Reversal) -> None:
    """Refuse to drop a delete whose action has taken the row's id out of other rows as well:
    undoing the rest of that action would name a row that is nowhere.
    """
    for delete in closed.deletes:
        if delete.row_id not in reversal.pruned or delete.row_id in closed.deltas:
            continue
        for each in await deltas_of_action(reading, closed.branch_id, delete.action_id):
            if (
                each.row_id not in reversal.pruned
                and each.op == DeltaOp.UPDATE
                and _mentions(each.undo_payload, delete.target_id)
            ):
                raise Conflict(
                    "This cannot be taken back while what was deleted since can come back: undo "
                    "the deletion first.",
                    "REVERSAL_BLOCKED",
                )


async def _drop_loose_ends(reading: Reading, branch_id: str, reversal: Reversal) -> None:
    """Leave out rows that would come back naming what is nowhere."""
    back = {
        key: after
        for key, before, after in reversal.changed()
        if before is None and after is not None and LOGGED[key[0]].names
    }
    if not back:
        return
    present = {key[1] for key, after in reversal.after.items() if after is not None}
    gone = {key[1] for key, after in reversal.after.items() if after is None}
    named = {row[column] for key, row in back.items() for column in LOGGED[key[0]].names} - present
    unknown = named - gone
    for table in LOGGED if unknown else ():
        unknown -= (await images_by_ids(reading, branch_id, table, unknown)).keys()
    gone |= unknown
    for key, row in back.items():
        if any(row[column] in gone for column in LOGGED[key[0]].names):
            reversal.after[key] = None
