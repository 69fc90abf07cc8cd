"""What a branch must have looked like: told anew from its beginning, change by change, with those
that count at that moment. It shares nothing with the services, which go back from the present.
"""

from __future__ import annotations

from typing import Any

from bench.ledger import Change, Rows, take
from bench.shapes import Told
from db.enums import DeltaOp
from services.deltas import LOGGED
from services.deltas.logged import STALE

# Whether a text is still to be embedded follows from what has been embedded since.
_NOT_COMPARED = ("branch_id", STALE)


class Replay:
    """Goes through the moments of a story; each must be asked for behind the one before."""

    def __init__(self, told: Told) -> None:
        self._changes = told.ledger.changes
        self._places = {entry: place for place, entry in enumerate(told.entries, 1)}
        self._rows: Rows = {name: dict(rows) for name, rows in told.ledger.planted.items()}
        self._done = 0
        # Where each entry begins in the log; the opening is not there.
        self._begins: dict[int, int] = {}
        for change in self._changes:
            if change.anchor is not None:
                self._begins.setdefault(self._places[change.anchor], change.position)

    def logged_before(self, entry: int) -> int:
        """The position of the last change before the entry behind this one begins."""
        return self._begins.get(entry + 1, len(self._changes) + 1) - 1

    def logged_up_to(self, position: int) -> Rows:
        """Everything as it was when the log had come to a position."""
        for change in self._changes[self._done : position]:
            _apply(self._rows, change)
        self._done = max(self._done, position)
        return {name: dict(rows) for name, rows in self._rows.items()}

    def as_of(self, entry: int) -> Rows:
        """Everything as a fork at an entry has it, which its position names: what was said later of
        entries that are kept counts too.
        """
        logged = self.logged_before(entry)
        rows = self.logged_up_to(logged)
        for change in self._changes[logged:]:
            if change.anchor is not None and self._places[change.anchor] <= entry:
                _apply(rows, change)
        return rows


def _apply(rows: Rows, change: Change) -> None:
    """Do what can be done: what names a row that is not there is not there either."""
    table = rows[change.table]
    if change.op is DeltaOp.CREATE:
        names = [change.values[column] for column in LOGGED[change.table].names]
        if all(any(each in there for there in rows.values()) for each in names):
            table[change.row_id] = dict(change.values)
    elif change.row_id in table:
        if change.op is DeltaOp.UPDATE:
            table[change.row_id] = {**table[change.row_id], **change.values}
        else:
            take(rows, change.table, change.row_id)


def compared(image: Any) -> dict[str, Any]:
    """What of a row is compared."""
    return {column: value for column, value in image.items() if column not in _NOT_COMPARED}


def differences(expected: Rows, found: Rows) -> list[str]:
    """Where two states differ: table and id of each row."""
    return [
        f"{name} {row_id}"
        for name in LOGGED
        for row_id in expected[name].keys() | found[name].keys()
        if row_id not in expected[name]
        or row_id not in found[name]
        or compared(expected[name][row_id]) != compared(found[name][row_id])
    ]
