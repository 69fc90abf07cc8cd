"""Fetching things of any kind by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.ids import MalformedId
from resolvers.context import Context
from services.errors import Invalid, LimitReached

MAX_IDS = 100


async def row_by_id(context: Context, id: str) -> Any:
    """Whatever an id leads to, or None. Raises Invalid (MALFORMED_ID)."""
    (row,) = await _rows(context, [id], "id")
    return row


async def rows_by_ids(context: Context, ids: Sequence[str]) -> list[Any]:
    """The same for several. Raises Invalid (MALFORMED_ID), LimitReached."""
    if len(ids) > MAX_IDS:
        raise LimitReached(f"Ask for {MAX_IDS} ids at most.", path=("ids",))
    return await _rows(context, ids, "ids")


async def _rows(context: Context, ids: Sequence[str], argument: str) -> list[Any]:
    try:
        return await context.rows_of_ids(ids)
    except MalformedId as error:
        raise Invalid(str(error), "MALFORMED_ID", (argument,)) from None
