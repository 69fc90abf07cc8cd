"""Transplants: a new tree that remembers the node it grew from. Trees refer, they never merge."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.enums import TreeEventType, TreeStatus
from db.reading import Reading, Writing, param, statement
from db.tables import MirrorTree, TreeNode, TreeTransplant
from services.access import Viewer
from services.accounts import record_act
from services.mirrors.changes import note_change
from services.mirrors.growing import check_finished, hold_node
from services.mirrors.reading import paths_to_nodes
from services.text import MAX_LINE, checked_text

# How many trees back a talk is told; more would fill any model's context anyway.
MAX_LINEAGE = 20


async def transplant_tree(writing: Writing, viewer: Viewer, node_id: str, topic: str) -> MirrorTree:
    """Begin a new tree with the same character that goes on from a finished node of another tree.

    The new tree is empty: what was said up to the node is referred to, not copied. Raises
    NotFound, Invalid (TEXT_…) and Conflict (NODE_NOT_FINISHED, TREE_ARCHIVED).
    """
    topic = checked_text(topic, "input", "topic", max_length=MAX_LINE)
    source, node = await hold_node(writing, viewer, node_id, "input", "nodeId")
    check_finished(node, "input", "nodeId")
    tree = await writing.insert(
        MirrorTree,
        character_id=source.character_id,
        topic=topic,
        realm=source.realm,
        world_id=source.world_id,
        status=TreeStatus.ACTIVE,
    )
    await writing.insert(
        TreeTransplant,
        new_tree_id=tree.id,
        source_tree_id=source.id,
        source_node_id=node.id,
        source_version=node.content_version,
    )
    await record_act(writing, viewer, "tree_transplanted", tree.id, {"node_id": node.id})
    await note_change(writing, source.id, TreeEventType.TREE_TRANSPLANTED, node.id)
    return tree


@statement(TreeTransplant)
def _lineage() -> Any:
    """From a tree back through the trees that it grew from, nearest first."""
    start = (
        select(
            col(TreeTransplant.source_tree_id),
            col(TreeTransplant.source_node_id),
        )
        .where(col(TreeTransplant.new_tree_id) == param("tree_id"))
        .cte("lineage", recursive=True)
    )
    chain = start.union_all(
        select(col(TreeTransplant.source_tree_id), col(TreeTransplant.source_node_id)).join(
            start, col(TreeTransplant.new_tree_id) == start.c.source_tree_id
        )
    )
    return select(chain.c.source_node_id).limit(MAX_LINEAGE)


async def talk_to_node(reading: Reading, viewer: Viewer, node: TreeNode) -> list[TreeNode]:
    """What was said up to a node, oldest first: its path, and before it the paths to the nodes
    that its tree was transplanted from.
    """
    lineage: list[Any] = await reading.all(_lineage(), tree_id=node.tree_id)
    ends = [*(row.source_node_id for row in reversed(lineage)), node.id]
    paths = await paths_to_nodes(reading, viewer, ends)
    return [each for end in ends for each in paths.get(end, [])]
