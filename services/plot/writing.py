"""Making, changing and deleting lore and threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from db.columns import BranchRow
from db.reading import Writing
from db.tables import Branch, Lore, Thread
from services import deltas
from services.access import Viewer, require_row
from services.plot.fields import answered, checked, with_entries

_ENTRIES_OF_THREADS = ("triggered_at_entry_id", "resolved_at_entry_id")


async def create_lore(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    values: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Lore, Branch]:
    """Write down something that is so in the world; `values` by the names of columns.

    Raises NotFound, Conflict, Invalid (TEXT_…, OUT_OF_RANGE), LimitReached.
    """
    columns = checked(values)
    async with deltas.acting(writing, viewer, branch_id, expected_head=expected_head) as action:
        row = await action.create(Lore, columns)
    return await answered(writing, viewer, Lore, row)


async def update_lore(
    writing: Writing,
    viewer: Viewer,
    lore_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Lore, Branch]:
    """Change what is given. Raises what `create_lore` raises."""
    columns = checked(changes)
    async with deltas.acting_on(
        writing, viewer, Lore, lore_id, "input", "loreId", expected_head=expected_head
    ) as (action, before):
        row = await action.update(Lore, before, columns)
    return await answered(writing, viewer, Lore, row)


async def create_thread(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    values: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Thread, Branch]:
    """Begin a strand of the plot; `values` by the names of columns.

    Raises NotFound, also for an entry that is not there, Conflict, Invalid (TEXT_…).
    """
    columns = checked(values)
    async with deltas.acting(writing, viewer, branch_id, expected_head=expected_head) as action:
        row = await action.create(Thread, await with_entries(action, columns, *_ENTRIES_OF_THREADS))
    return await answered(writing, viewer, Thread, row)


async def update_thread(
    writing: Writing,
    viewer: Viewer,
    thread_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Thread, Branch]:
    """Change what is given; any status may follow any. Raises what `create_thread` raises."""
    columns = checked(changes)
    async with deltas.acting_on(
        writing, viewer, Thread, thread_id, "input", "threadId", expected_head=expected_head
    ) as (action, before):
        found = await with_entries(action, columns, *_ENTRIES_OF_THREADS)
        row = await action.update(Thread, before, found)
    return await answered(writing, viewer, Thread, row)


async def delete_row(
    writing: Writing,
    viewer: Viewer,
    table: type[BranchRow],
    id: str,
    field: str,
    expected_head: int | None = None,
) -> tuple[str, Branch]:
    """Delete a row of the plot with all that names it; its id. `field` is where the input has the
    id. Raises NotFound, Conflict.
    """
    async with deltas.acting_on(
        writing, viewer, table, id, "input", field, expected_head=expected_head
    ) as (action, before):
        await action.delete(table, before)
    branch_id = action.branch.id
    return f"{branch_id}:{before['id']}", await require_row(writing, viewer, Branch, branch_id)
