"""The log of a branch: how to go back, what was taken back, and what happened when.

Source: spec aventuras, entry mutability and rollback; survival anchor.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint, text

from db.columns import (
    BranchRow,
    Table,
    branch_column,
    created_at_column,
    enum_column,
    integer_column,
    json_column,
    link_column,
    long_column,
    number_column,
    one_of,
    row_id_column,
)
from db.enums import BranchEventKind, DeltaOp, DeltaSource, LoggedTable


@dataclass(frozen=True, slots=True)
class RowChange:
    """That a row was changed; `id` is its name outside."""

    table: LoggedTable
    op: DeltaOp
    id: str


class Delta(BranchRow, table=True):
    """One change of one row, with what it takes to undo it."""

    __tablename__ = "deltas"
    __table_args__ = (
        one_of("source", DeltaSource),
        one_of("target_table", LoggedTable),
        one_of("op", DeltaOp),
        UniqueConstraint("branch_id", "log_position"),
        Index("ix_deltas_chain", "branch_id", "target_id", "log_position"),
        Index(None, "branch_id", "action_id"),
        Index(None, "branch_id", "entry_id"),
        # What was deleted and can come back.
        Index(
            "ix_deltas_deletes",
            "branch_id",
            "log_position",
            postgresql_where=text("op = 'delete'"),
        ),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    # The survival anchor: this is reversed exactly when that entry is. Null goes by position.
    entry_id: str | None = link_column(nullable=True)
    # What was done together is undone together.
    action_id: str = link_column()
    # Increasing in the order in which changes were first made; with gaps.
    log_position: int = long_column()
    source: DeltaSource = enum_column()
    target_table: LoggedTable = enum_column()
    target_id: str = link_column()
    op: DeltaOp = enum_column()
    # Null for a create; the changed parts as they were for an update; the whole row for a delete.
    undo_payload: dict[str, Any] | None = json_column("undo_payload", nullable=True)
    encoding_version: int = integer_column(default=1)
    created_at: datetime = created_at_column()

    @property
    def anchor(self) -> str | None:
        """The name of the anchor outside."""
        return None if self.entry_id is None else f"{self.branch_id}:{self.entry_id}"


class RedoStep(Table, table=True):
    """An undone action that can be done again; the newest of a branch is done first."""

    __tablename__ = "redo_steps"

    branch_id: str = branch_column()
    # 1 for the first that was undone.
    number: int = number_column()
    action_id: str = link_column()
    # The deltas that were taken out, oldest first, each with what does it again.
    deltas: list[dict[str, Any]] = json_column("deltas")
    created_at: datetime = created_at_column()


class BranchEvent(Table, table=True):
    """One thing that happened to a branch, numbered without gaps."""

    __tablename__ = "branch_events"
    __table_args__ = (one_of("kind", BranchEventKind),)

    branch_id: str = branch_column()
    seq: int = number_column()
    kind: BranchEventKind = enum_column()
    action_id: str | None = link_column(nullable=True)
    source: DeltaSource | None = enum_column(nullable=True)
    # The head after it.
    head: int = long_column()
    # [{table, op, id}], with bare ids; the first of them where there are very many.
    changes_json: list[dict[str, str]] = json_column("changes")
    change_count: int = integer_column()
    created_at: datetime = created_at_column()

    @property
    def changes(self) -> list[RowChange]:
        """The rows that were changed, in the order in which they were."""
        return [
            RowChange(
                LoggedTable(each["table"]), DeltaOp(each["op"]), f"{self.branch_id}:{each['id']}"
            )
            for each in self.changes_json
        ]
