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
from services.deltas.closing import VIEWS, Closed, KeptTie, close_over, held_rows
from services.deltas.logged import LOGGED, ORDER, Image, Logged
from services.deltas.rows import images_by_ids
from services.deltas.selecting import deltas_of_actions, deltas_of_rows, edits_of_rows
from services.deltas.writing import CHILDREN, payload_between
from services.errors import Conflict
from services.shapes import overlay, same

RowKey = tuple[LoggedTable, str]
MAX_POSITION = 2**63 - 1
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
    # What was taken back: the row of a create, and of an update the row before and after that.
    unmade: dict[str, Image] = field(default_factory=dict)
    unchanged: dict[str, tuple[Logged, Image, Image]] = field(default_factory=dict)
    # Deltas that cannot be done again, with all that has become of them.
    without_return: set[str] = field(default_factory=set)
    # Relationships that go because nobody's view of them is left.
    ended: set[str] = field(default_factory=set)
    # The lowest position of the log at which something is changed.
    lowest: int = MAX_POSITION
    # Entries of kind system that went.
    notices: list[str] = field(default_factory=list)

    def forward(self, delta_id: str) -> dict[str, Any] | None:
        """What does a delta again that was taken back: a row, a payload, or nothing for a delete.
        Worked out when it is asked for, because only undo needs it.
        """
        if delta_id in self.unchanged:
            return payload_between(*self.unchanged[delta_id])
        return self.unmade.get(delta_id)

    def changed(self) -> Iterable[tuple[RowKey, Image | None, Image | None]]:
        """The rows that differ, with both sides."""
        for key, after in self.after.items():
            before = self.before.get(key)
            if before is not after and not same(before, after):
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
            self._touch(delta)
        self._end_ties_without_views()
        self.result.pruned |= self.closed.deltas.keys() - self.result.reowned.keys()
        self.result.after = self._rows
        return self.result

    def _touch(self, delta: Delta) -> None:
        self.result.lowest = min(self.result.lowest, delta.log_position)

    def _prune(self, delta: Delta) -> None:
        """Take a change out of the log that is not among those taken back."""
        self._touch(delta)
        self.result.pruned.add(delta.row_id)

    def _undo_create(self, delta: Delta, key: RowKey) -> None:
        row, tie = self._rows.get(key), self.closed.kept_ties.get(delta.target_id)
        if tie is not None:
            self._keep_tie(delta, key, tie)
        elif row is not None:
            self.result.unmade[delta.row_id] = row
            self._rows[key] = None
        elif key in self._holders:
            self._strip(key)
            self.result.without_return.add(delta.row_id)

    def _undo_update(self, delta: Delta, key: RowKey) -> None:
        row = self._rows.get(key)
        if row is not None:
            restored = self._restored(delta, key[0], row)
            self.result.unchanged[delta.row_id] = (LOGGED[key[0]], row, restored)
            self._rows[key] = restored
        elif key in self._holders:
            held = self._held(key)
            held.update(self._restored(delta, key[0], held))
            self.result.without_return.add(delta.row_id)

    def _undo_delete(self, delta: Delta, key: RowKey) -> None:
        for table, row in held_rows(delta):
            if self._rows.get((table, row["id"])) is None:
                self._rows[table, row["id"]] = {
                    column: value for column, value in row.items() if not column.startswith("$")
                }

    def _restored(self, delta: Delta, table: LoggedTable, row: Image) -> Image:
        """The row with what the delta has overwritten; a person's later write to a column stays.
        Of JSON that is restored part by part, the parts are restored all the same.
        """
        payload = delta.undo_payload or {}
        kept: set[str] = set()
        if delta.source != DeltaSource.USER_EDIT:
            for later in self._protected.get(delta.target_id, ()):
                if later.log_position > delta.log_position:
                    kept |= _written(later, row) - LOGGED[table].shapes.keys()
        return restored(LOGGED[table], row, payload, without=kept)

    def _keep_tie(self, delta: Delta, key: RowKey, tie: KeptTie) -> None:
        """A relationship that a person has written to loses what only machines said."""
        row = self._rows.get(key)
        gone = {view for view in VIEWS if view not in tie.views}
        if row is not None:
            self._rows[key] = {**row, **dict.fromkeys(gone)}
        elif key in self._holders:
            self._held(key).update(dict.fromkeys(gone))
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
                self._prune(other)

    def _held(self, key: RowKey) -> dict[str, Any]:
        """The copy of a row in the payload of the delete that holds it, to be changed."""
        holder = self._holders[key]
        self._touch(holder)
        payload = self._payload(holder)
        if key == (LoggedTable(holder.target_table), holder.target_id):
            return payload
        rows: list[dict[str, Any]] = payload[CHILDREN][str(key[0])]
        return next(row for row in rows if row["id"] == key[1])

    def _payload(self, holder: Delta) -> dict[str, Any]:
        payloads = self.result.payloads
        if holder.row_id not in payloads:
            payloads[holder.row_id] = copy.deepcopy(holder.undo_payload or {})
        return payloads[holder.row_id]

    def _strip(self, key: RowKey) -> None:
        """Take a row out of the delete that holds it; where it is the delete's own, that goes."""
        held, holder = self._held(key), self._holders.pop(key)
        payload = self.result.payloads[holder.row_id]
        if held is payload:
            del self.result.payloads[holder.row_id]
            self._prune(holder)
            return
        children = payload[CHILDREN]
        children[str(key[0])].remove(held)
        if not children[str(key[0])]:
            del children[str(key[0])]
        if not children:
            del payload[CHILDREN]

    def hold(self, rows: Iterable[tuple[LoggedTable, Image]]) -> None:
        """Rows that cannot come back because a delete that stays holds what they name: it would
        have taken them along, had they been there, and holds them from now on.
        """
        for table, row in rows:
            named = {row[column] for column in LOGGED[table].names}
            holder = next((each for key, each in self._holders.items() if key[1] in named), None)
            if holder is not None:
                self._touch(holder)
                payload = self._payload(holder)
                payload.setdefault(CHILDREN, {}).setdefault(str(table), []).append(row)
                self._holders[table, row["id"]] = holder

    def _end_ties_without_views(self) -> None:
        """A relationship of which neither view is left goes, and the rest of its log with it."""
        touched = {each.target_id: each for each in self.closed.deltas.values()}
        for row_id in (each for each in touched if touched[each].target_table == TIES):
            key = (TIES, row_id)
            row = self._rows.get(key)
            is_held = row is None and key in self._holders
            image = self._held(key) if is_held else row
            if image is None or any(image[view] is not None for view in VIEWS):
                continue
            self.result.ended.add(row_id)
            if is_held:
                self._strip(key)
            else:
                self._rows[key] = None
            for other in self._others.get(row_id, ()):
                self._prune(other)
            for each in self.closed.deltas.values():
                if each.target_id == row_id:
                    self.result.reowned.pop(each.row_id, None)
                    self.result.without_return.add(each.row_id)


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


def _mentions(value: Any, ids: set[str]) -> bool:
    if isinstance(value, dict):
        return any(_mentions(each, ids) for each in value.values())
    if isinstance(value, list):
        return any(_mentions(each, ids) for each in value)
    return isinstance(value, str) and value in ids


async def compute(reading: Reading, closed: Closed) -> Reversal:
    """What taking back a closed set does; it is closed over relationships that end by it. Raises
    Conflict (REVERSAL_BLOCKED, HISTORY_INCOMPLETE).
    """
    reverser = await _reverser(reading, closed)
    while (ended := reverser.run().ended) and await close_over(reading, closed, ended):
        reverser = await _reverser(reading, closed)
    reversal = reverser.result
    await _check_dropped_deletes(reading, closed, reversal)
    reverser.hold(await drop_loose_ends(reading, closed.branch_id, reversal))
    return reversal


async def _reverser(reading: Reading, closed: Closed) -> Reverser:
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
    for each in await deltas_of_rows(reading, closed.branch_id, ties):
        if each.row_id not in closed.deltas:
            others.setdefault(each.target_id, []).append(each)
    protected: dict[str, list[Delta]] = {}
    for each in await edits_of_rows(reading, closed.branch_id, by_machines | ties):
        if each.row_id not in closed.deltas:
            protected.setdefault(each.target_id, []).append(each)
    return Reverser(closed, rows, protected, others)


async def _check_dropped_deletes(reading: Reading, closed: Closed, reversal: Reversal) -> None:
    """Refuse to drop a delete whose action has taken the row's id out of other rows as well:
    undoing the rest of that action would name a row that is nowhere.
    """
    dropped = [
        each
        for each in closed.deletes
        if each.row_id in reversal.pruned and each.row_id not in closed.deltas
    ]
    actions: dict[str, set[str]] = {}
    for each in dropped:
        actions.setdefault(each.action_id, set()).add(each.target_id)
    for each in await deltas_of_actions(reading, closed.branch_id, actions):
        payload = reversal.payloads.get(each.row_id, each.undo_payload)
        if each.row_id not in reversal.pruned and _mentions(payload, actions[each.action_id]):
            raise Conflict(
                "This cannot be taken back while what was deleted since can come back: undo "
                "the deletion first.",
                "REVERSAL_BLOCKED",
            )


async def drop_loose_ends(
    reading: Reading, branch_id: str, reversal: Reversal
) -> list[tuple[LoggedTable, Image]]:
    """Leave out rows that would come back naming what is not there; these rows."""
    back = {
        key: after
        for key, before, after in reversal.changed()
        if before is None and after is not None and LOGGED[key[0]].names
    }
    if not back:
        return []
    present = {key[1] for key, after in reversal.after.items() if after is not None}
    gone = {key[1] for key, after in reversal.after.items() if after is None}
    named = {row[column] for key, row in back.items() for column in LOGGED[key[0]].names} - present
    unknown = named - gone
    for table in LOGGED if unknown else ():
        unknown -= (await images_by_ids(reading, branch_id, table, unknown)).keys()
    gone |= unknown
    dropped = []
    # A row that is left out may be named by others, of the tables behind its own.
    for key, row in sorted(back.items(), key=lambda each: ORDER.index(each[0][0])):
        if any(row[column] in gone for column in LOGGED[key[0]].names):
            reversal.after[key] = None
            gone.add(key[1])
            dropped.append((key[0], row))
    return dropped
