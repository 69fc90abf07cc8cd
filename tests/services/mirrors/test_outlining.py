"""Outlines against a plain model on random trees, and on trees that are large in each direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import NodeStatus, Realm
from db.reading import Reading
from db.tables import MirrorTree, TreeNode
from services import mirrors
from services.mirrors.outlining import LABEL, MAX_OUTLINE, OutlineNode, outlines_of_trees
from tests.architecture.world import WatchedConnection
from tests.conftest import People
from tests.factories import make_tree
from tests.trees import SHAPES, above, grown, planned, run_sql, tree_now

DEEPEST = mirrors.MAX_DEPTH


async def outline(
    database: Database,
    people: People,
    tree: MirrorTree,
    max_depth: int = DEEPEST,
    *,
    collapses: bool = False,
) -> mirrors.TreeOutline:
    async with database.reading() as reading:
        (found,) = await outlines_of_trees(
            reading, people.owner, [tree], max_depth, collapse_chains=collapses
        )
    return found


async def test_an_outline_shows_the_shape_without_the_texts(
    database: Database, people: People
) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        await mirrors.canonize_path(writing, people.owner, tree.other.id, Realm.REALITY)
        edited = await mirrors.edit_node(writing, people.owner, tree.first.id, "x" * 200)
    found = await outline(database, people, tree.tree)

    def shown(
        node: TreeNode, depth: int, children: int, label: str, *, adopted: bool, canon: bool
    ) -> OutlineNode:
        return OutlineNode(
            id=node.id,
            parent_id=node.parent_node_id,
            depth=depth,
            node_type=node.node_type,
            status=node.status,
            label=label,
            child_count=children,
            collapsed=0,
            is_adopted=adopted,
            is_canon=canon,
            supersedes_id=node.supersedes_node_id,
            created_at=node.created_at,
        )

    assert found.is_truncated is False
    assert found.nodes == [
        shown(tree.first, 1, 2, "First?", adopted=True, canon=True),
        shown(edited, 1, 0, "x" * LABEL, adopted=False, canon=False),
        shown(tree.chosen, 2, 1, "The chosen answer.", adopted=True, canon=False),
        shown(tree.other, 2, 0, "The other answer.", adopted=False, canon=True),
        shown(tree.second, 3, 2, "Second?", adopted=True, canon=False),
        shown(tree.last, 4, 0, "The last answer.", adopted=True, canon=False),
        shown(tree.bud, 4, 0, "", adopted=False, canon=False),
    ]
    shallow = await outline(database, people, tree.tree, 2)
    assert shallow.nodes == found.nodes[:4]


def modelled(
    rows: Sequence[dict[str, Any]], entry: str, canon: Sequence[str], max_depth: int
) -> list[tuple[Any, ...]]:
    """Each shown node with its parent in the drawing and how many are left out between them."""
    by_id = {row["id"]: row for row in rows}
    children: dict[Any, list[str]] = {}
    depths: dict[Any, int] = {None: 0}
    for row in rows:
        children.setdefault(row["parent_node_id"], []).append(row["id"])
        depths[row["id"]] = depths[row["parent_node_id"]] + 1
    adopted, counts = above(rows, entry), above(rows, *canon)

    def is_left_out(node: str) -> bool:
        parent, below = by_id[node]["parent_node_id"], children.get(node, [])
        return (
            parent is not None
            and len(children[parent]) == 1
            and len(below) == 1
            and depths[below[0]] <= max_depth
            and node != entry
            and by_id[node]["status"] is not NodeStatus.BUD
            and (node in adopted) == (below[0] in adopted)
            and (node in counts) == (below[0] in counts)
        )

    drawing = []
    for row in sorted(rows, key=lambda row: depths[row["id"]]):
        if depths[row["id"]] > max_depth or is_left_out(row["id"]):
            continue
        parent, left_out = row["parent_node_id"], 0
        while parent is not None and is_left_out(parent):
            parent, left_out = by_id[parent]["parent_node_id"], left_out + 1
        drawing.append((row["id"], parent, depths[row["id"]], left_out))
    return drawing


# Shapes that are mostly chains: most places lead to the node before.
CHAINS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 11)), min_size=1, max_size=30).map(
    lambda steps: [(max(i - 1 - max(back - 2, 0), 0), c) for i, (back, c) in enumerate(steps)]
)


@given(
    shape=SHAPES | CHAINS,
    entry=st.integers(0, 10_000),
    canon=st.lists(st.integers(0, 10_000), max_size=2),
    max_depth=st.integers(1, 8) | st.just(DEEPEST),
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_chains_are_collapsed_as_a_plain_model_does(
    database: Database,
    people: People,
    shape: list[tuple[int, int]],
    entry: int,
    canon: list[int],
    max_depth: int,
) -> None:
    """Rule M13."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        rows = planned(tree.id, shape)
        await writing.insert_many(TreeNode, rows)
        tree = await mirrors.move_working_entry(writing, tree.id, rows[entry % len(rows)]["id"])
        ends = list(dict.fromkeys(rows[each % len(rows)]["id"] for each in canon))
        for end in ends:
            await writing._connection.execute(
                "INSERT INTO canonizations (id, tree_id, scope, endpoint_node_id, path_length,"
                " snapshot_digest, confirmed_by_user_id)"
                " VALUES ($1, $2, 'reality', $3, 1, 'x', $4)",
                f"canon_{end[-26:]}",
                tree.id,
                end,
                people.owner.user_id,
            )
    entry_id = tree.working_entry_node_id
    assert entry_id is not None
    found = await outline(database, people, tree, max_depth, collapses=True)
    drawn = [(node.id, node.parent_id, node.depth, node.collapsed) for node in found.nodes]
    assert drawn == modelled(rows, entry_id, ends, max_depth)
    adopted, counts = above(rows, entry_id), above(rows, *ends)
    assert {node.id for node in found.nodes if node.is_adopted} == adopted & {
        node.id for node in found.nodes
    }
    assert {node.id for node in found.nodes if node.is_canon} == counts & {
        node.id for node in found.nodes
    }
    # Nothing is lost: what is not shown is counted.
    whole = await outline(database, people, tree, max_depth)
    assert len(found.nodes) + sum(node.collapsed for node in found.nodes) == len(whole.nodes)


ANSWERS = """
INSERT INTO tree_nodes (id, tree_id, parent_node_id, node_type, status, realm, content)
SELECT 'node_' || lpad(i::text, 26, '0'), $1, $2, 'candidate_answer', 'solidified', 'reality', 'A'
FROM generate_series($3::int, $4::int) AS i
"""
CHAIN = """
INSERT INTO tree_nodes (id, tree_id, parent_node_id, node_type, status, realm, content)
SELECT 'node_' || lpad(i::text, 26, '0'), $1,
    CASE WHEN i > 1 THEN 'node_' || lpad((i - 1)::text, 26, '0') END,
    CASE WHEN i % 2 = 1 THEN 'question' ELSE 'candidate_answer' END,
    'solidified', 'reality', 'Level ' || i
FROM generate_series(1, $2::int) AS i
"""


async def test_an_outline_stops_at_its_bound(database: Database, people: People) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        question = await mirrors.add_question(writing, people.owner, tree.id, None, "How many?")
    await run_sql(database, ANSWERS, tree.id, question.id, 1, MAX_OUTLINE - 1)
    found = await outline(database, people, tree)
    assert (len(found.nodes), found.is_truncated) == (5_000, False)
    assert found.nodes[0].child_count == 4_999
    await run_sql(database, ANSWERS, tree.id, question.id, MAX_OUTLINE, MAX_OUTLINE)
    found = await outline(database, people, tree)
    assert (len(found.nodes), found.is_truncated) == (5_000, True)
    assert found.nodes[0].child_count == 5_000


async def test_a_tree_may_be_nine_thousand_levels_deep(database: Database, people: People) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
    await run_sql(database, CHAIN, tree.id, 9_000)
    deep = "node_" + "9000".zfill(26)
    async with database.writing() as writing:
        tree = await mirrors.adopt_node(writing, people.owner, deep)
        records = [
            await mirrors.canonize_path(writing, people.owner, end, Realm.REALITY)
            for end in (deep, "node_" + "100".zfill(26))
        ]
        path = (await mirrors.paths_to_nodes(writing, people.owner, [deep]))[deep]
        flags = await mirrors.intact_flags(writing, people.owner, records)
        _, pruning = await mirrors.prune_tree(writing, people.owner, tree.id, [], is_dry_run=False)
    assert [node.content for node in path] == [f"Level {level}" for level in range(1, 9_001)]
    assert [record.path_length for record in records] == [9_000, 100]
    assert flags == [True, True]
    assert (pruning.removed_count, pruning.kept_count) == (0, 9_000)
    found = await outline(database, people, tree, 4_000, collapses=True)
    assert found.is_truncated is False
    assert [(node.label, node.collapsed) for node in found.nodes] == [
        ("Level 1", 0),
        ("Level 4000", 3_998),
    ]
    whole = await outline(database, people, tree)
    assert (len(whole.nodes), whole.is_truncated) == (5_000, True)
    assert all(node.is_adopted and node.is_canon for node in whole.nodes)


@pytest.mark.parametrize("count", [1, 10])
async def test_many_trees_take_three_statements(
    database: Database, people: People, count: int
) -> None:
    trees = [(await grown(database, people)).tree for _ in range(count)]
    seen: list[str] = []
    async with database.reading() as reading:
        watched = Reading(WatchedConnection(reading._connection, seen), reading.cursors)
        # A tree that is asked for twice is answered twice.
        found = await outlines_of_trees(
            watched, people.owner, [*trees, trees[0]], DEEPEST, collapse_chains=False
        )
        hidden = await outlines_of_trees(
            reading, people.stranger, trees, DEEPEST, collapse_chains=False
        )
    assert len(seen) == 3
    assert [len(each.nodes) for each in found] == [6] * (count + 1)
    assert {node.id for each in found[:count] for node in each.nodes} == {
        node.id for tree in trees for node in (await outline(database, people, tree)).nodes
    }
    assert hidden == [mirrors.TreeOutline([], False)] * count


async def test_a_tree_without_nodes_has_an_empty_outline(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
    found = await outline(database, people, await tree_now(database, people.owner, tree))
    assert found == mirrors.TreeOutline([], False)
