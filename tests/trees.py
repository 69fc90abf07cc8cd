"""What tests of mirror trees share: a grown tree, refusals that change nothing, plain SQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from db.engine import Database
from db.enums import NodeStatus, NodeType, Realm
from db.ids import new_id
from db.reading import Writing
from db.tables import MirrorTree, TreeNode
from services import mirrors
from services.access import Viewer, require_row
from services.errors import DomainError
from tests.conftest import People
from tests.e2e.callers import PATIENCE
from tests.e2e.ledgers import Ledger
from tests.factories import make_answer, make_tree


@dataclass(frozen=True)
class Grown:
    """A tree with a branch beside its adopted path, and a bud at the end.

    first - chosen - second - last (the working entry)
          \\ other          \\ bud
    """

    tree: MirrorTree
    first: TreeNode
    chosen: TreeNode
    other: TreeNode
    second: TreeNode
    last: TreeNode
    bud: TreeNode


async def grow(writing: Writing, viewer: Viewer, tree: MirrorTree | None = None) -> Grown:
    tree = tree or await make_tree(writing, viewer)
    first = await mirrors.add_question(writing, viewer, tree.id, None, "First?")
    chosen = await make_answer(writing, first, "The chosen answer.")
    other = await make_answer(writing, first, "The other answer.")
    await mirrors.adopt_node(writing, viewer, chosen.id)
    second = await mirrors.add_question(writing, viewer, tree.id, chosen.id, "Second?")
    last = await make_answer(writing, second, "The last answer.")
    bud = await make_answer(writing, second, "", NodeStatus.BUD)
    tree = await mirrors.adopt_node(writing, viewer, last.id)
    return Grown(tree, first, chosen, other, second, last, bud)


async def grown(database: Database, people: People) -> Grown:
    """The same, committed."""
    async with database.writing() as writing:
        return await grow(writing, people.owner)


async def refused(
    database: Database,
    kind: type[DomainError],
    code: str,
    path: tuple[str | int, ...],
    work: Callable[[Writing], Awaitable[Any]],
) -> None:
    """Assert that the work is refused with exactly this, and that nothing at all has changed."""
    ledger = Ledger(database.dsn)
    before = await ledger.fingerprint()
    with pytest.raises(DomainError) as caught:
        async with database.writing() as writing:
            await work(writing)
    assert (type(caught.value), caught.value.code, caught.value.path) == (kind, code, path)
    assert await ledger.fingerprint() == before


async def run_sql(database: Database, sql: str, *values: Any) -> None:
    async with database.writing() as writing:
        await writing._connection.execute(sql, *values)


async def fetch(database: Database, sql: str, *values: Any) -> list[Any]:
    async with database.reading() as reading:
        return [tuple(row) for row in await reading._connection.fetch(sql, *values)]


async def until_somebody_waits(database: Database) -> None:
    """Return when a transaction waits for a lock of another one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            ((waiting,),) = await fetch(database, "SELECT count(*) FROM pg_locks WHERE NOT granted")
            if waiting:
                return
            await asyncio.sleep(0.005)


async def events_of(database: Database, tree: MirrorTree) -> list[tuple[int, str, str | None]]:
    """Number, type and node of every event of a tree, as they are stored."""
    return await fetch(
        database,
        "SELECT seq, type, node_id FROM tree_events WHERE tree_id = $1 ORDER BY seq",
        tree.id,
    )


async def tree_now(database: Database, viewer: Viewer, tree: MirrorTree) -> MirrorTree:
    async with database.reading() as reading:
        return await require_row(reading, viewer, MirrorTree, tree.id)


# Random trees: for each node a place (which node it hangs on, or is a version of) and a choice.
SHAPES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 11)), min_size=1, max_size=40)
_VERSION, _THOUGHT, _BUD = 0, (1, 2, 3), 3


def planned(tree_id: str, shape: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """The rows of a random tree, each parent before its children."""
    rows: list[dict[str, Any]] = []
    for place, choice in shape:
        at = rows[place % len(rows)] if rows else None
        earlier = at if choice == _VERSION else None
        if at is None:
            parent_id, kind = None, NodeType.QUESTION
        elif earlier is not None:
            parent_id, kind = at["parent_node_id"], at["node_type"]
        elif at["node_type"] is NodeType.QUESTION:
            parent_id, kind = at["id"], NodeType.CANDIDATE_ANSWER
        else:
            kind = NodeType.CONTINUED_THOUGHT if choice in _THOUGHT else NodeType.QUESTION
            parent_id = at["id"]
        is_bud = choice == _BUD and kind is not NodeType.QUESTION
        rows.append(
            {
                "id": new_id("tree_nodes"),
                "tree_id": tree_id,
                "parent_node_id": parent_id,
                "node_type": kind,
                "status": NodeStatus.BUD if is_bud else NodeStatus.SOLIDIFIED,
                "realm": Realm.REALITY,
                "content": "" if is_bud else f"Text {len(rows)}. " * (1 + choice),
                "content_version": earlier["content_version"] + 1 if earlier else 1,
                "supersedes_node_id": earlier["id"] if earlier else None,
            }
        )
    return rows


def above(rows: Iterable[Mapping[str, Any]], *ends: str | None) -> set[str]:
    """The ends and all nodes above them, by a plain walk."""
    parents = {row["id"]: row["parent_node_id"] for row in rows}
    found = set()
    for end in ends:
        node = end
        while node is not None and node not in found:
            found.add(node)
            node = parents[node]
    return found
