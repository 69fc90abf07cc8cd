"""What happened to a branch, numbered without gaps: for those who watch it.

The numbers are given under the branch's lock, in the transaction of the change, so they are in the
order of the commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import update
from sqlmodel import col

from db.enums import BranchEventKind, DeltaSource
from db.reading import Writing, columns, param, statement
from db.tables import Branch, BranchEvent
from services.hub import announce

# More changes than this are counted, not listed: read the branch anew.
MAX_CHANGES = 1_000


def branch_topic(branch_id: str) -> str:
    """The topic that is published when something happens to a branch."""
    return f"branch:{branch_id}"


@statement(Branch)
def _next_seq() -> Any:
    return (
        update(Branch)
        .where(col(Branch.id) == param("branch_id"))
        .values(last_event_seq=col(Branch.last_event_seq) + 1)
        .returning(*columns(Branch))
    )


async def note_event(
    writing: Writing,
    branch: Branch,
    kind: BranchEventKind,
    *,
    action_id: str | None,
    source: DeltaSource | None,
    head: int,
    changes: Sequence[tuple[str, str, str]],
) -> None:
    """Note that something happened to a branch that the caller holds; `changes` are table, op and
    id of each row.
    """
    moved = await writing.first(_next_seq(), branch_id=branch.id)
    assert moved is not None
    listed = list(dict.fromkeys(changes))
    await writing.insert(
        BranchEvent,
        branch_id=branch.id,
        seq=moved.last_event_seq,
        kind=kind,
        action_id=action_id,
        source=source,
        head=head,
        changes_json=[
            {"table": str(table), "op": str(op), "id": row_id}
            for table, op, row_id in listed[:MAX_CHANGES]
        ],
        change_count=len(listed),
    )
    await announce(writing, branch_topic(branch.id))
