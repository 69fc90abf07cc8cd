"""What was changed in a branch, and by whom: its log, the log of one row, and what each change has
made of which value.

The log stores what was before a change and never what came of it. That is found on the way back
from the row as it is, or from the delete that holds it, through its newer changes.
Source: spec aventuras, entry mutability and rollback; reverse-replay (1.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import BigInteger, Text, exists, func, literal_column, select, true, union_all
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import DeltaOp, LoggedTable
from db.paging import PagedList, SortKey
from db.reading import Reading, any_of, columns, param, statement
from db.tables import Delta
from services.access import Viewer, visible
from services.deltas.closing import held_rows
from services.deltas.differing import FieldChange, fields_between
from services.deltas.logged import LOGGED, Image
from services.deltas.reversing import restored
from services.deltas.writing import CHILDREN

# A row as the log names it: its branch, its table, its own id.
RowName = tuple[str, LoggedTable, str]


def _only(column: Any, name: str) -> Any:
    """The column has a value where one is given."""
    return param(name).is_(None) | (column == param(name))


_NEWEST_FIRST = [SortKey(col(Delta.log_position), is_descending=True)]
DELTAS_OF_BRANCHES = PagedList(
    "deltas",
    Delta,
    sort=_NEWEST_FIRST,
    parent=col(Delta.branch_id),
    where=lambda: (
        visible(Delta)
        & _only(col(Delta.target_id), "row_id")
        & _only(col(Delta.target_table), "table")
        & _only(col(Delta.source), "source")
        & _only(col(Delta.action_id), "action_id")
    ),
)
DELTAS_OF_ROWS = PagedList(
    "history",
    Delta,
    sort=_NEWEST_FIRST,
    parent=col(Delta.target_id),
    within=col(Delta.branch_id),
    where=lambda: visible(Delta),
)


@statement(object)
def _images() -> Any:
    wanted = (
        func.unnest(
            param("branch_ids", ARRAY(Text)),
            param("tables", ARRAY(Text)),
            param("row_ids", ARRAY(Text)),
        )
        .table_valued("branch_id", "table_name", "row_id", name="wanted")
        .render_derived()
    )
    found = []
    for logged in LOGGED.values():
        table = logged.table
        is_wanted = (
            (wanted.c.table_name == str(logged.name))
            & (col(table.branch_id) == wanted.c.branch_id)
            & (col(table.row_id) == wanted.c.row_id)
        )
        found.append(
            select(
                literal_column(f"'{logged.name}'").label("table_name"),
                func.to_jsonb(literal_column(str(logged.name))).label("image"),
            )
            .select_from(wanted)
            .join(table, is_wanted)
            .where(visible(table))
        )
    return union_all(*found)


async def images_of_rows(
    reading: Reading, viewer: Viewer, names: Collection[RowName]
) -> dict[RowName, Image]:
    """Those of the rows that are there for the viewer, of whichever tables and branches."""
    wanted = list(names)
    rows: list[Any] = await reading.all(
        _images(),
        branch_ids=[branch_id for branch_id, _, _ in wanted],
        tables=[str(table) for _, table, _ in wanted],
        row_ids=[row_id for _, _, row_id in wanted],
        **viewer.parameters,
    )
    return {
        (row.image["branch_id"], LoggedTable(row.table_name), row.image["id"]): row.image
        for row in rows
    }


@statement(Delta)
def _chains() -> Any:
    wanted = (
        func.unnest(
            param("branch_ids", ARRAY(Text)),
            param("row_ids", ARRAY(Text)),
            param("positions", ARRAY(BigInteger)),
        )
        .table_valued("branch_id", "row_id", "position", name="wanted")
        .render_derived()
    )
    return (
        select(*columns(Delta))
        .select_from(wanted)
        .join(
            Delta,
            (col(Delta.branch_id) == wanted.c.branch_id)
            & (col(Delta.target_id) == wanted.c.row_id)
            & (col(Delta.log_position) >= wanted.c.position),
        )
        .where(visible(Delta))
        .order_by(col(Delta.log_position).desc())
    )


@statement(Delta)
def _deletes_with_children() -> Any:
    tables = func.jsonb_each(col(Delta.undo_payload)[CHILDREN]).table_valued("key", "value")
    rows = func.jsonb_array_elements(tables.c.value).table_valued("value", name="held")
    row_id = rows.c.value.op("->>")("id")
    holds = exists(
        select(1).select_from(tables.join(rows, true())).where(any_of(row_id, "row_ids"))
    )
    return select(*columns(Delta)).where(
        any_of(Delta.branch_id, "branch_ids"),
        col(Delta.op) == DeltaOp.DELETE.value,
        holds,
        visible(Delta),
    )


async def changes_of_deltas(
    reading: Reading, viewer: Viewer, deltas: Sequence[Delta]
) -> list[list[FieldChange]]:
    """What each change has made of which values, MAX_FIELDS of each at most. A create shows the row
    as it was made, a delete as it was.
    """
    asked = {(each.branch_id, each.row_id) for each in deltas}
    since: dict[RowName, int] = {}
    for each in deltas:
        name = _row_of(each)
        since[name] = min(since.get(name, each.log_position), each.log_position)
    chains: dict[RowName, list[Delta]] = {}
    for each in await reading.all(
        _chains(),
        branch_ids=[branch_id for branch_id, _, _ in since],
        row_ids=[row_id for _, _, row_id in since],
        positions=list(since.values()),
        **viewer.parameters,
    ):
        chains.setdefault(_row_of(each), []).append(each)
    images = await images_of_rows(reading, viewer, since)
    lost = {
        name
        for name in since
        if name not in images and chains.get(name) and chains[name][0].op != DeltaOp.DELETE
    }
    images |= await _held_images(reading, viewer, lost)
    found: dict[tuple[str, str], list[FieldChange]] = {}
    for name, chain in chains.items():
        logged = LOGGED[name[1]]
        for delta, before, after in _walk_back(images.get(name), chain):
            if (delta.branch_id, delta.row_id) in asked:
                found[delta.branch_id, delta.row_id] = fields_between(logged, before, after)
    return [found.get((each.branch_id, each.row_id), []) for each in deltas]


def _walk_back(
    image: Image | None, chain: Iterable[Delta]
) -> Iterable[tuple[Delta, Image | None, Image | None]]:
    """The changes of a row, newest first, each with the row before and after it."""
    for delta in chain:
        after = image
        payload = delta.undo_payload or {}
        if delta.op == DeltaOp.CREATE:
            image = None
        elif delta.op == DeltaOp.DELETE:
            after = None
            image = {key: value for key, value in payload.items() if not key.startswith("$")}
        elif image is None:
            # Nobody knows it: the row is neither there nor held.
            return
        else:
            image = restored(LOGGED[LoggedTable(delta.target_table)], image, payload)
        yield delta, image, after


async def _held_images(
    reading: Reading, viewer: Viewer, names: Collection[RowName]
) -> dict[RowName, Image]:
    """Rows that went with one that they named: the delete of that one holds them."""
    if not names:
        return {}
    deletes = await reading.all(
        _deletes_with_children(),
        branch_ids=list({branch_id for branch_id, _, _ in names}),
        row_ids=[row_id for _, _, row_id in names],
        **viewer.parameters,
    )
    held = {
        (delete.branch_id, table, row["id"]): row
        for delete in deletes
        for table, row in held_rows(delete)
    }
    return {name: held[name] for name in names if name in held}


def _row_of(delta: Delta) -> RowName:
    return delta.branch_id, LoggedTable(delta.target_table), delta.target_id
