"""What changes a branch without the log: making a story, forking, importing, deleting, and entries
of kind system.

Source: spec aventuras, wizard creation is exempt; system entries are not delta-logged; story
deletion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from db.ids import new_id
from db.reading import Record, Statement, Writing
from db.tables import BranchRow
from services.deltas.events import branch_topic
from services.deltas.logged import LOGGED, Image, logged_of
from services.deltas.rows import put_images, take_rows
from services.hub import announce

# Every other table whose rows belong to a branch, children first.
OTHERS = ("embeddings", "probe_captures", "redo_steps", "branch_events", "deltas")


async def plant_rows(
    writing: Writing,
    branch_id: str,
    table: type[BranchRow],
    rows: Sequence[Mapping[str, Any]],
    *,
    prefix: str | None = None,
) -> list[Image]:
    """Put rows into a branch as what it begins with. All have the same columns, with missing ids
    made; the whole rows.
    """
    logged = logged_of(table)
    images = [
        {"id": new_id(logged.name, prefix) if "id" not in row else row["id"], **row} for row in rows
    ]
    return await put_images(
        writing, logged.name, [{**image, "branch_id": branch_id} for image in images]
    )


async def uproot_rows(
    writing: Writing, branch_id: str, table: type[BranchRow], row_ids: Sequence[str]
) -> None:
    """Take rows out that the log does not know: entries of kind system."""
    await take_rows(writing, branch_id, logged_of(table).name, row_ids)


async def drop_branches(writing: Writing, branch_ids: Sequence[str]) -> list[str]:
    """Delete all that belongs to branches, which the caller holds, but their own rows: every table,
    children first. The ids of the files that entries have shown: to be settled afterwards.
    """
    shown = await writing.all(_statement(_SHOWN), branch_ids=list(branch_ids))
    # Runs stay, as their log does; what a provider said of its trouble may quote a text.
    await writing.run(_statement(_FORGET_TROUBLE), branch_ids=list(branch_ids))
    for table in (*OTHERS, *reversed(LOGGED)):
        await writing.run(
            _statement(f"DELETE FROM {table} WHERE branch_id = ANY($1::text[])"),
            branch_ids=list(branch_ids),
        )
    for each in branch_ids:
        await announce(writing, branch_topic(each))
    return [row.asset_id for row in shown]


_FORGET_TROUBLE = "UPDATE runs SET error_message = NULL WHERE branch_id = ANY($1::text[])"
_SHOWN = "SELECT DISTINCT asset_id FROM entry_assets WHERE branch_id = ANY($1::text[])"


def _statement(sql: str) -> Statement[Any]:
    return Statement(sql, ("branch_ids",), {}, Record)
