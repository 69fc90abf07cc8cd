"""Outlines: a tree's shape for drawing, thousands of nodes at once and no texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, Text, func, literal_column, select, true
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import NodeStatus, NodeType
from db.reading import Reading, any_of, param, statement
from db.tables import MirrorTree, TreeNode
from services.access import Viewer, visible
from services.mirrors.reading import ends_canon, nodes_above

MAX_OUTLINE = 5_000
MAX_DEPTH = 10_000
# How much of a text stands for it.
LABEL = 80


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """A node of a drawing. `collapsed` nodes between it and its parent are left out."""

    id: str
    parent_id: str | None
    depth: int
    node_type: NodeType
    status: NodeStatus
    label: str
    child_count: int
    collapsed: int
    is_adopted: bool
    is_canon: bool
    supersedes_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TreeOutline:
    """The shape of a tree, level by level. `is_truncated` when MAX_OUTLINE nodes were not all."""

    nodes: list[OutlineNode]
    is_truncated: bool


@statement(TreeNode)
def _shapes() -> Any:
    tree = func.unnest(param("tree_ids", ARRAY(Text))).table_valued("id").render_derived("tree")
    child = aliased(TreeNode)
    start = (
        select(
            col(TreeNode.id).label("id"),
            col(TreeNode.parent_node_id).label("parent_id"),
            literal_column("1").label("depth"),
        )
        .where(
            col(TreeNode.tree_id) == tree.c.id,
            col(TreeNode.parent_node_id).is_(None),
            visible(TreeNode),
        )
        .correlate(tree)
        .cte("shape", recursive=True, nesting=True)
    )
    shape = start.union_all(
        select(col(child.id), col(child.parent_node_id), start.c.depth + 1)
        .join(start, col(child.parent_node_id) == start.c.id)
        .where(start.c.depth < param("max_depth", Integer()))
    )
    # A recursive query gives its rows level by level and stops when enough have been taken.
    taken = (
        select(shape.c.id, shape.c.parent_id, shape.c.depth).limit(MAX_OUTLINE + 1).lateral("taken")
    )
    below = aliased(TreeNode)
    child_count = (
        select(func.count()).where(col(below.parent_node_id) == taken.c.id).scalar_subquery()
    )
    return (
        select(
            tree.c.id.label("tree_id"),
            taken.c.id,
            taken.c.parent_id,
            taken.c.depth,
            col(TreeNode.node_type),
            col(TreeNode.status),
            func.left(col(TreeNode.content), LABEL).label("label"),
            col(TreeNode.supersedes_node_id).label("supersedes_id"),
            col(TreeNode.created_at),
            child_count.label("child_count"),
        )
        .select_from(tree)
        .join(taken, true())
        .join(TreeNode, col(TreeNode.id) == taken.c.id)
        .order_by(tree.c.id, taken.c.depth, col(TreeNode.created_at), col(TreeNode.id))
    )


@statement(TreeNode)
def _adopted_ids() -> Any:
    return select(nodes_above(any_of(TreeNode.id, "entry_ids")).c.id)


@statement(TreeNode)
def _canon_ids() -> Any:
    return select(nodes_above(any_of(TreeNode.tree_id, "tree_ids"), ends_canon()).c.id)


async def outlines_of_trees(
    reading: Reading,
    viewer: Viewer,
    trees: Sequence[MirrorTree],
    max_depth: int,
    *,
    collapse_chains: bool,
) -> list[TreeOutline]:
    """The shape of each tree down to a depth (the root's is 1), in three statements for all."""
    tree_ids = list(dict.fromkeys(each.id for each in trees))
    rows: list[Any] = await reading.all(
        _shapes(), tree_ids=tree_ids, max_depth=max_depth, **viewer.parameters
    )
    entries = [each.working_entry_node_id for each in trees if each.working_entry_node_id]
    adopted = {
        row.id for row in await reading.all(_adopted_ids(), entry_ids=entries, **viewer.parameters)
    }
    canon = {
        row.id for row in await reading.all(_canon_ids(), tree_ids=tree_ids, **viewer.parameters)
    }
    found: dict[str, list[OutlineNode]] = {each: [] for each in tree_ids}
    for row in rows:
        found[row.tree_id].append(
            OutlineNode(
                id=row.id,
                parent_id=row.parent_id,
                depth=row.depth,
                node_type=NodeType(row.node_type),
                status=NodeStatus(row.status),
                label=row.label,
                child_count=row.child_count,
                collapsed=0,
                is_adopted=row.id in adopted,
                is_canon=row.id in canon,
                supersedes_id=row.supersedes_id,
                created_at=row.created_at,
            )
        )
    outlines = []
    for tree in trees:
        nodes = found[tree.id]
        is_truncated = len(nodes) > MAX_OUTLINE
        nodes = nodes[:MAX_OUTLINE]
        if collapse_chains:
            nodes = _collapsed(nodes, tree.working_entry_node_id)
        outlines.append(TreeOutline(nodes, is_truncated))
    return outlines


def _collapsed(nodes: list[OutlineNode], entry_id: str | None) -> list[OutlineNode]:
    """Leave out what a line tells as well: an only child with one child, unless the talk goes on
    there, it is still growing, or canon or the adopted path ends there.
    """
    child_counts = {each.id: each.child_count for each in nodes}
    # The child of each node, which is its only one where that matters.
    child_of = {each.parent_id: each for each in nodes}
    shown = []
    # For each node left out: the nearest shown node above it, and how many lie between.
    hidden: dict[str, tuple[str | None, int]] = {}
    for node in nodes:
        parent_id, collapsed = node.parent_id, 0
        if parent_id in hidden:
            parent_id, collapsed = hidden[parent_id]
        child = child_of.get(node.id)
        is_plain = (
            child_counts.get(node.parent_id or "") == 1
            and node.child_count == 1
            and child is not None
            and node.id != entry_id
            and node.status is not NodeStatus.BUD
            and (node.is_canon, node.is_adopted) == (child.is_canon, child.is_adopted)
        )
        if is_plain:
            hidden[node.id] = (parent_id, collapsed + 1)
        else:
            shown.append(replace(node, parent_id=parent_id, collapsed=collapsed))
    return shown
