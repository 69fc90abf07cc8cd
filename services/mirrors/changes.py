"""The log of what changes in a tree, for clients that have it open.

Numbers are given under the lock of the tree's row, so they have no gaps and are in the order of
the commits: whoever has read up to a number misses nothing behind it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from sqlalchemy import Integer, select, update
from sqlmodel import col

from db.engine import Database
from db.enums import TreeEventType
from db.reading import Reading, Writing, columns, param, statement
from db.tables import MirrorTree, TreeEvent
from services.access import Viewer, require_row, visible
from services.errors import Invalid
from services.hub import Hub, announce

# Stored events read in one go.
_CHUNK = 500


def tree_topic(tree_id: str) -> str:
    """What is announced when a tree changes."""
    return f"tree:{tree_id}"


@statement(MirrorTree)
def _next_seq() -> Any:
    return (
        update(MirrorTree)
        .where(col(MirrorTree.id) == param("of_id"))
        .values(last_seq=col(MirrorTree.last_seq) + 1)
        .returning(col(MirrorTree.last_seq))
    )


async def note_change(
    writing: Writing, tree_id: str, type: TreeEventType, node_id: str | None = None
) -> None:
    """Log a change of a tree in the transaction that makes it, and wake who watches."""
    seq = await writing.value(_next_seq(), of_id=tree_id)
    event = {"tree_id": tree_id, "seq": seq, "type": type, "node_id": node_id}
    await writing.insert_many(TreeEvent, [event])
    await announce(writing, tree_topic(tree_id))


@statement(TreeEvent)
def _events_after() -> Any:
    return (
        select(*columns(TreeEvent))
        .where(
            col(TreeEvent.tree_id) == param("tree_id"),
            col(TreeEvent.seq) > param("after", Integer()),
            visible(TreeEvent),
        )
        .order_by(col(TreeEvent.seq))
        .limit(_CHUNK)
    )


async def events_after(reading: Reading, viewer: Viewer, tree_id: str, seq: int) -> list[TreeEvent]:
    """Changes of a tree behind a number, at most 500."""
    return await reading.all(_events_after(), tree_id=tree_id, after=seq, **viewer.parameters)


async def follow_tree(
    database: Database, hub: Hub, viewer: Viewer, tree_id: str, after: int | None
) -> AsyncGenerator[TreeEvent, None]:
    """Every change of a tree behind a number, or from now on; ends when the tree was erased.

    Raises NotFound, also when the tree goes out of the viewer's sight, Invalid (INVALID_CURSOR)
    for a number that the tree has not come to, and Unavailable when the stream must end early:
    come back with the last number seen.
    """
    async with database.reading() as reading:
        tree = await require_row(reading, viewer, MirrorTree, tree_id, "treeId")
    if after is not None and not 0 <= after <= tree.last_seq:
        raise Invalid(
            "after is the number of an event of this tree, or 0 for all.",
            "INVALID_CURSOR",
            ("after",),
        )
    # What happens between that look and this is found by its number below.
    subscription = hub.subscribe(tree_topic(tree.id))
    try:
        seq = tree.last_seq if after is None else after
        while True:
            async with database.reading() as reading:
                await require_row(reading, viewer, MirrorTree, tree.id, "treeId")
                events = await events_after(reading, viewer, tree.id, seq)
            for event in events:
                seq = event.seq
                yield event
                if event.type == TreeEventType.TREE_ERASED:
                    return
            if not events:
                await subscription.wait()
    finally:
        subscription.close()
