"""What happened to branches: their logs, what each change has made, and events as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, BranchEvent, BranchRow, Delta, StoryEntry
from resolvers import branch_rows
from resolvers.context import Context
from services import deltas as service


async def deltas_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    filter: Any = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Delta]]:
    """The log of each branch, newest change first."""
    names = ("row_id", "table", "source", "action_id")
    wanted = {name: getattr(filter, name, None) for name in names}
    if wanted["row_id"] is not None:
        # An id as the rows of the branch show it will do too.
        wanted["row_id"] = wanted["row_id"].rpartition(":")[2]
    async with context.reading() as reading:
        return await service.DELTAS_OF_BRANCHES.pages(
            reading, [each.id for each in branches], page, **wanted, **context.viewer.parameters
        )


async def histories_of_rows(
    context: Context, rows: Sequence[BranchRow], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Delta]]:
    """The changes of each row, newest first. The log is that of the branch as it is, also below a
    row of the past.
    """
    async with context.reading() as reading:
        return await service.DELTAS_OF_ROWS.pages(
            reading, [each.id for each in rows], page, **context.viewer.parameters
        )


async def fields_of_deltas(
    context: Context, deltas: Sequence[Delta]
) -> list[list[service.FieldChange]]:
    """What each change has made of which values."""
    async with context.reading() as reading:
        return await service.changes_of_deltas(reading, context.viewer, deltas)


async def entries_of_deltas(context: Context, deltas: Sequence[Delta]) -> list[StoryEntry | None]:
    """The entry that each change is about."""
    return await branch_rows.linked(context, StoryEntry, deltas, [each.entry_id for each in deltas])


async def branches_of_events(
    context: Context, events: Sequence[BranchEvent]
) -> list[Branch | None]:
    """The branch of each event."""
    return await context.many(Branch, [each.branch_id for each in events])


def branch_events(
    context: Context, branch_id: str, after: int | None
) -> AsyncGenerator[BranchEvent, None]:
    """What happens to a branch behind a number, or from now on."""
    engine = context.engine
    return service.follow_branch(engine.database, engine.hub, context.viewer, branch_id, after)
