"""Looks at all that belongs to a branch."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.reading import Reading, columns, compile_statement, param, record_class
from db.tables import Table
from services import deltas
from services.deltas.rows import all_images

ORDERS = {"deltas": "log_position", "branch_events": "seq", "redo_steps": "number"}


async def rows_of(reading: Reading, table: Any, branch_id: str) -> list[Any]:
    """The rows of a branch in a table, in the table's own order."""
    order = ORDERS.get(table.__tablename__, "row_id")
    wanted = (
        select(*columns(table))
        .where(col(table.branch_id) == param("branch_id"))
        .order_by(getattr(table, order))
    )
    rows: list[Table] = await reading.all(
        compile_statement(wanted, record_class(table)), branch_id=branch_id
    )
    return rows


async def state_of(reading: Reading, branch_id: str) -> dict[str, dict[str, Any]]:
    """Everything in the logged tables of a branch, as images by table and id."""
    return {str(name): await all_images(reading, branch_id, name) for name in deltas.LOGGED}
