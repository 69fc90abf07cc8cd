"""Redo: doing again what was undone, from what was kept of it.

Source: spec aventuras, user-facing undo; log_position assignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import Integer, delete
from sqlmodel import col

from db.enums import BranchEventKind, DeltaOp, LoggedTable
from db.reading import Reading, Writing, param, statement
from db.tables import Delta, RedoStep
from services.access import Viewer
from services.deltas.applying import apply_rows, clamp_watermark, settle_head
from services.deltas.closing import VIEWS, held_rows
from services.deltas.events import note_event
from services.deltas.logged import LOGGED, Image, Logged
from services.deltas.reversing import TIES, Reversal, RowKey, restored
from services.deltas.rows import images_by_ids
from services.deltas.undoing import INVALIDATION, Outcome, gone, newest_step
from services.deltas.writing import hold_branch, holding, payload_between
from services.errors import Conflict
from services.shapes import same


@statement(RedoStep)
def _drop_step() -> Any:
    return delete(RedoStep).where(
        col(RedoStep.branch_id) == param("branch_id"),
        col(RedoStep.number) == param("number", Integer()),
    )


async def redo_branch(
    writing: Writing, viewer: Viewer, branch_id: str, *, expected_head: int | None = None
) -> Outcome:
    """Do again what was undone last, each change in the place of the log that it had. Where there
    is nothing to redo, nothing happens.

    Raises NotFound, Conflict (CONFLICT with the head, REVERSAL_BLOCKED).
    """
    branch = await hold_branch(
        writing, viewer, branch_id, "input", "branchId", expected_head=expected_head
    )
    step = await newest_step(writing, branch.id)
    if step is None:
        return Outcome(branch)
    doing = _Doing(branch.id, [_delta_of(branch.id, each) for each in step.deltas])
    await doing.read_rows(writing)
    for delta, kept in zip(doing.deltas, step.deltas, strict=True):
        doing.do(delta, kept["forward"])
    await doing.check_ends(writing)
    await apply_rows(writing, branch.id, doing.reversal)
    try:
        await writing.insert_many(Delta, [_values_of(each) for each in doing.deltas])
    except asyncpg.UniqueViolationError:
        raise Conflict("The log has gone on since this was undone.", "REVERSAL_BLOCKED") from None
    await writing.run(_drop_step(), branch_id=branch.id, number=step.number)
    for delta in doing.deltas:
        scope = (delta.undo_payload or {}).get(INVALIDATION)
        if scope is not None:
            await clamp_watermark(writing, branch.id, scope["processedThrough"])
    lowest = doing.deltas[0].log_position
    branch = await settle_head(writing, branch.id, lowest, is_redo=True)
    own = next(each for each in doing.deltas if each.action_id == step.action_id)
    await note_event(
        writing,
        branch,
        BranchEventKind.REDO,
        action_id=step.action_id,
        source=own.source,
        head=branch.head,
        changes=[
            *((each.target_table, each.op, each.target_id) for each in doing.deltas),
            *gone(doing.reversal.notices),
        ],
    )
    return Outcome(branch)


_COLUMNS = tuple(each for each in Delta.model_fields if each != "branch_id")


def _delta_of(branch_id: str, kept: Mapping[str, Any]) -> Delta:
    values = {name: kept[name] for name in _COLUMNS}
    values["created_at"] = datetime.fromisoformat(values["created_at"])
    return Delta(branch_id=branch_id, **values)


def _values_of(delta: Delta) -> dict[str, Any]:
    return {"branch_id": delta.branch_id, **{name: getattr(delta, name) for name in _COLUMNS}}


class _Doing:
    """Changes that are done again, oldest first, in memory. What undoes each is taken from the rows
    as they now are: what another undo has taken back for good must not come back from here.
    """

    def __init__(self, branch_id: str, deltas: Sequence[Delta]) -> None:
        self.branch_id = branch_id
        self.deltas = deltas
        self.reversal = Reversal()
        self._rows: dict[RowKey, Image | None] = {}
        # What is made, also where a later change of the step deletes it.
        self._made: list[tuple[LoggedTable, Image]] = []

    async def read_rows(self, reading: Reading) -> None:
        """Read every row that the changes touch."""
        wanted: dict[LoggedTable, set[str]] = {}
        for delta in self.deltas:
            for table, row_id in _touched(delta):
                wanted.setdefault(table, set()).add(row_id)
        for table, ids in wanted.items():
            found = await images_by_ids(reading, self.branch_id, table, ids)
            self._rows.update({(table, row_id): found.get(row_id) for row_id in ids})
        self.reversal.before = dict(self._rows)
        self.reversal.after = self._rows

    def do(self, delta: Delta, forward: Image | None) -> None:
        """One change. Raises Conflict (REVERSAL_BLOCKED) where its row is gone."""
        key = (LoggedTable(delta.target_table), delta.target_id)
        row = self._rows[key]
        if delta.op == DeltaOp.CREATE:
            self._rows[key] = forward
            if forward is not None:
                self._made.append((key[0], forward))
        elif row is None:
            raise _blocked()
        elif delta.op == DeltaOp.UPDATE:
            after = restored(LOGGED[key[0]], row, forward or {})
            if key[0] is TIES and all(after[view] is None for view in VIEWS):
                raise _blocked()
            delta.undo_payload = _payload(LOGGED[key[0]], delta.undo_payload or {}, row, after)
            self._rows[key] = after
        else:
            _, *children = _touched(delta)
            found = [(each[0], image) for each in children if (image := self._rows[each])]
            delta.undo_payload = holding(row, found)
            self._rows.update(dict.fromkeys((key, *children)))

    async def check_ends(self, reading: Reading) -> None:
        """Refuse to make rows that name what is nowhere."""
        named = {row[name] for table, row in self._made for name in LOGGED[table].names}
        named -= {row["id"] for _, row in self._made}
        named -= {row_id for (_, row_id), row in self.reversal.before.items() if row is not None}
        for table in LOGGED if named else ():
            named -= (await images_by_ids(reading, self.branch_id, table, named)).keys()
        if named:
            raise _blocked()


def _payload(logged: Logged, kept: Mapping[str, Any], row: Image, after: Image) -> dict[str, Any]:
    """What undoes an update: what did before, as long as it still leads to the row as it is."""
    if same(restored(logged, after, kept), row):
        return dict(kept)
    # Every column that the change had written stays among them.
    columns = {each: row[each] for each in kept if each in row and each not in logged.shapes}
    notes = {each: value for each, value in kept.items() if each.startswith("$")}
    return columns | payload_between(logged, row, after) | notes


def _touched(delta: Delta) -> list[RowKey]:
    """The rows that a change is about; of a delete the row itself comes first."""
    if delta.op == DeltaOp.DELETE:
        return [(table, row["id"]) for table, row in held_rows(delta)]
    return [(LoggedTable(delta.target_table), delta.target_id)]


def _blocked() -> Conflict:
    return Conflict(
        "This cannot be done again: what it was done to is gone since.", "REVERSAL_BLOCKED"
    )
