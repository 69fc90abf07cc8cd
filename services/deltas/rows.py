"""Rows of branches as JSON images: read, put in, changed and taken out, many at once.

An image is what PostgreSQL's `to_jsonb` makes of a row, and `jsonb_populate_recordset` makes a row
of it again, so that a row that comes back is the same to the last bit. The statements are text,
because they are the same for every logged table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from db.enums import LoggedTable
from db.reading import Reading, Record, Statement, Writing
from services.deltas.logged import LOGGED, Image


class _ImageRow(Record):
    __slots__ = ()


def _statement(sql: str, *names: str) -> Statement[Any]:
    return Statement(sql, names, {}, _ImageRow)


@functools.cache
def _by_ids(table: LoggedTable) -> Statement[Any]:
    return _statement(
        f"SELECT to_jsonb(t) AS image FROM {table} t WHERE branch_id = $1 AND id = ANY($2::text[])",
        "branch_id",
        "ids",
    )


@functools.cache
def _all_of(table: LoggedTable) -> Statement[Any]:
    return _statement(
        f"SELECT to_jsonb(t) AS image FROM {table} t WHERE branch_id = $1", "branch_id"
    )


@functools.cache
def _naming(table: LoggedTable, *, is_of_ids: bool = False) -> Statement[Any]:
    wanted = "t.id" if is_of_ids else "to_jsonb(t) AS image"
    names = " OR ".join(f"{column} = ANY($2::text[])" for column in LOGGED[table].names)
    return _statement(
        f"SELECT {wanted} FROM {table} t WHERE branch_id = $1 AND ({names})",
        "branch_id",
        "ids",
    )


@functools.cache
def _put(table: LoggedTable, columns: tuple[str, ...]) -> Statement[Any]:
    listed = ", ".join(columns)
    return _statement(
        f"INSERT INTO {table} AS t ({listed}) SELECT {listed} "
        f"FROM jsonb_populate_recordset(NULL::{table}, $1) RETURNING to_jsonb(t) AS image",
        "images",
    )


@functools.cache
def _change(table: LoggedTable, columns: tuple[str, ...]) -> Statement[Any]:
    changed = ", ".join(f"{column} = r.{column}" for column in columns)
    return _statement(
        f"UPDATE {table} AS t SET {changed} "
        f"FROM jsonb_populate_recordset(NULL::{table}, $1) AS r "
        "WHERE t.branch_id = r.branch_id AND t.id = r.id RETURNING to_jsonb(t) AS image",
        "images",
    )


@functools.cache
def _take(table: LoggedTable) -> Statement[Any]:
    return _statement(
        f"DELETE FROM {table} WHERE branch_id = $1 AND id = ANY($2::text[])", "branch_id", "ids"
    )


async def images_by_ids(
    reading: Reading, branch_id: str, table: LoggedTable, ids: Iterable[str]
) -> dict[str, Image]:
    """The rows with these ids, by id; what is not there is left out."""
    wanted = list(ids)
    if not wanted:
        return {}
    rows = await reading.all(_by_ids(table), branch_id=branch_id, ids=wanted)
    return {row.image["id"]: row.image for row in rows}


async def all_images(reading: Reading, branch_id: str, table: LoggedTable) -> dict[str, Image]:
    """Every row of a branch in a table, by id."""
    rows = await reading.all(_all_of(table), branch_id=branch_id)
    return {row.image["id"]: row.image for row in rows}


async def images_naming(
    reading: Reading, branch_id: str, table: LoggedTable, ids: Iterable[str]
) -> dict[str, Image]:
    """The rows that name any of these ids, by their own id."""
    rows = await reading.all(_naming(table), branch_id=branch_id, ids=list(ids))
    return {row.image["id"]: row.image for row in rows}


async def ids_naming(
    reading: Reading, branch_id: str, table: LoggedTable, ids: Iterable[str]
) -> set[str]:
    """The ids of the rows that name any of these."""
    rows = await reading.all(_naming(table, is_of_ids=True), branch_id=branch_id, ids=list(ids))
    return {row.id for row in rows}


async def put_images(
    writing: Writing, table: LoggedTable, images: Sequence[Mapping[str, Any]]
) -> list[Image]:
    """Put rows in, all with the same columns; those left out get their defaults. The whole rows."""
    if not images:
        return []
    columns = tuple(sorted(images[0]))
    rows = await writing.all(_put(table, columns), images=list(images))
    return [row.image for row in rows]


async def change_images(
    writing: Writing, table: LoggedTable, columns: Iterable[str], images: Sequence[Image]
) -> list[Image]:
    """Set columns of rows, which images with `branch_id`, `id` and these columns name."""
    chosen = tuple(sorted(columns))
    if not images or not chosen:
        return []
    rows = await writing.all(_change(table, chosen), images=list(images))
    return [row.image for row in rows]


async def take_rows(
    writing: Writing, branch_id: str, table: LoggedTable, ids: Iterable[str]
) -> int:
    """Delete rows; how many there were."""
    wanted = list(ids)
    if not wanted:
        return 0
    return await writing.run(_take(table), branch_id=branch_id, ids=wanted)
