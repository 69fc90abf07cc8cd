"""The events of a branch, for clients that have it open.

Numbers are given under the lock of the branch's row, so they have no gaps and are in the order of
the commits: whoever has read up to a number misses nothing behind it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from sqlalchemy import BigInteger, select
from sqlmodel import col

from db.engine import Database
from db.reading import Reading, columns, param, statement
from db.tables import Branch, BranchEvent
from services.access import Viewer, require_row, visible
from services.deltas.events import branch_topic
from services.errors import Invalid
from services.hub import Hub

# Stored events read in one go. Each holds the changes of an action, so fewer than of a tree's.
_CHUNK = 100


@statement(BranchEvent)
def _events_after() -> Any:
    return (
        select(*columns(BranchEvent))
        .where(
            col(BranchEvent.branch_id) == param("branch_id"),
            col(BranchEvent.seq) > param("after", BigInteger()),
            visible(BranchEvent),
        )
        .order_by(col(BranchEvent.seq))
        .limit(_CHUNK)
    )


async def events_after(
    reading: Reading, viewer: Viewer, branch_id: str, seq: int
) -> list[BranchEvent]:
    """What happened to a branch behind a number, at most 100 events."""
    return await reading.all(_events_after(), branch_id=branch_id, after=seq, **viewer.parameters)


async def follow_branch(
    database: Database, hub: Hub, viewer: Viewer, branch_id: str, after: int | None
) -> AsyncGenerator[BranchEvent, None]:
    """All that happens to a branch behind a number, or from now on.

    Raises NotFound, also when the branch is deleted or goes out of the viewer's sight, Invalid
    (INVALID_CURSOR) for a number that the branch has not come to, and Unavailable when the stream
    must end early: come back with the last number seen.
    """
    async with database.reading() as reading:
        branch = await require_row(reading, viewer, Branch, branch_id, "branchId")
    if after is not None and not 0 <= after <= branch.last_event_seq:
        raise Invalid(
            "after is the number of an event of this branch, or 0 for all.",
            "INVALID_CURSOR",
            ("after",),
        )
    # What happens between that look and this is found by its number below.
    subscription = hub.subscribe(branch_topic(branch.id))
    try:
        seq = branch.last_event_seq if after is None else after
        while True:
            async with database.reading() as reading:
                await require_row(reading, viewer, Branch, branch.id, "branchId")
                events = await events_after(reading, viewer, branch.id, seq)
            for event in events:
                seq = event.seq
                yield event
            if not events:
                await subscription.wait()
    finally:
        subscription.close()
