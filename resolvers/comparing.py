"""Two branches of a story side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.enums import LoggedTable
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import StoryEntry
from resolvers.context import Context
from services import carrying
from services import comparing as service


async def find_diff(context: Context, left: str, right: str) -> service.BranchDiff | None:
    """Two branches, or None where the viewer sees not both."""
    async with context.reading() as reading:
        return await service.find_diff(reading, context.viewer, left, right)


async def common_entries_of_diffs(
    context: Context, diffs: Sequence[service.BranchDiff]
) -> list[StoryEntry | None]:
    """The last entry that the branches of each pair have in common."""
    async with context.reading() as reading:
        return await service.common_entries(reading, context.viewer, diffs)


async def changes_of_diffs(
    context: Context,
    diffs: Sequence[service.BranchDiff],
    *,
    tables: list[LoggedTable] | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Any]]:
    """What differs in each pair."""
    async with context.reading() as reading:
        return await service.differences_of_diffs(reading, context.viewer, diffs, page, tables)


async def carry_change(context: Context, input: Any) -> dict[str, Any]:
    """Make a row of one branch like it is in another."""
    async with context.writing() as change:
        done = await carrying.carry_row(
            change.writing,
            context.viewer,
            input.from_branch_id,
            input.to_branch_id,
            input.row_id,
            input.expected_head,
        )
        return change.answer(kind=done.kind, row=done.row, branch=done.branch)
