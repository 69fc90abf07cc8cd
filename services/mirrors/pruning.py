"""Pruning: dead branches of a tree are removed in one act, after a look at what would go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, or_, select
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import NodeStatus, TreeEventType
from db.reading import Writing, any_of, param, statement
from db.tables import Canonization, Citation, MirrorTree, Run, TreeNode, TreeTransplant
from services.access import Viewer, checked_id, require_row, rows_by_ids
from services.accounts import record_act
from services.errors import Conflict, Invalid, LimitReached, NotFound
from services.mirrors.changes import note_change
from services.mirrors.growing import hold_tree

# How many nodes may be named as to be kept.
MAX_KEPT = 100
# How many of the removed are listed.
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class Pruning:
    """What was removed from a tree, or would be."""

    removed_count: int
    # The first MAX_LISTED, oldest first.
    removed_ids: list[str]
    kept_count: int


def _is_leant_on() -> ColumnElement[bool]:
    """What must stay: canon, what is still being written or waited for, what other trees grew
    from, and what the caller names.
    """
    node = col(TreeNode.id)
    return or_(
        any_of(TreeNode.id, "keep_ids"),
        col(TreeNode.status) == NodeStatus.BUD.value,
        exists(select(1).where(col(Canonization.endpoint_node_id) == node)),
        exists(select(1).where(col(TreeTransplant.source_node_id) == node)),
        exists(select(1).where(col(Run.question_node_id) == node, col(Run.ended_at).is_(None))),
    )


def _dead() -> Any:
    # The working entry and all that grows from it are alive.
    alive = (
        select(col(TreeNode.id).label("id")).where(
            col(TreeNode.id) == param("entry_id"), col(TreeNode.tree_id) == param("tree_id")
        )
    ).cte("alive", recursive=True)
    below = aliased(TreeNode)
    alive = alive.union(select(col(below.id)).join(alive, col(below.parent_node_id) == alive.c.id))
    # And with every node that stays: the one above it, and the one that it is a version of.
    start = (
        select(
            col(TreeNode.id).label("id"),
            col(TreeNode.parent_node_id).label("parent_id"),
            col(TreeNode.supersedes_node_id).label("supersedes_id"),
        )
        .where(
            col(TreeNode.tree_id) == param("tree_id"),
            or_(_is_leant_on(), col(TreeNode.id).in_(select(alive.c.id))),
        )
        .cte("kept", recursive=True)
    )
    above = aliased(TreeNode)
    kept = start.union(
        select(col(above.id), col(above.parent_node_id), col(above.supersedes_node_id)).join(
            start, or_(col(above.id) == start.c.parent_id, col(above.id) == start.c.supersedes_id)
        )
    )
    return (
        select(col(TreeNode.id), col(TreeNode.created_at))
        .where(
            col(TreeNode.tree_id) == param("tree_id"),
            col(TreeNode.id).not_in(select(kept.c.id)),
        )
        .order_by(col(TreeNode.created_at), col(TreeNode.id))
    )


@statement(TreeNode)
def _dead_nodes() -> Any:
    return _dead()


@statement(TreeNode)
def _count_nodes() -> Any:
    return select(func.count()).where(col(TreeNode.tree_id) == param("tree_id"))


@statement(Citation)
def _delete_citations() -> Any:
    return delete(Citation).where(any_of(Citation.node_id, "node_ids"))


@statement(TreeNode)
def _delete_nodes() -> Any:
    return delete(TreeNode).where(any_of(TreeNode.id, "node_ids"))


async def prune_tree(
    writing: Writing, viewer: Viewer, tree_id: str, keep_ids: Sequence[str], *, is_dry_run: bool
) -> tuple[MirrorTree, Pruning]:
    """Remove every branch on which nothing alive stands: not the adopted path with what grows from
    it, not canon, not what is being written, not what a tree was transplanted from, not `keep_ids`,
    and nothing that any of these hangs on or is a version of. With `is_dry_run` nothing changes.

    Runs keep their events; their removed nodes read as null. Raises NotFound, Invalid
    (MALFORMED_ID), LimitReached and Conflict (NOTHING_ADOPTED, TREE_ARCHIVED, CHARACTER_READ_ONLY).
    """
    if len(keep_ids) > MAX_KEPT:
        raise LimitReached(f"Name at most {MAX_KEPT} nodes.", path=("input", "keep"))
    tree = await hold_tree(writing, viewer, tree_id, "input", "treeId")
    if tree.working_entry_node_id is None:
        raise Conflict(
            "Nothing in this tree is adopted yet, so all of it would go: adopt an answer first.",
            "NOTHING_ADOPTED",
            ("input", "treeId"),
        )
    kept_ids = await _nodes_to_keep(writing, viewer, tree, keep_ids)
    dead: list[Any] = await writing.all(
        _dead_nodes(),
        tree_id=tree.id,
        entry_id=tree.working_entry_node_id,
        keep_ids=kept_ids,
    )
    node_ids = [row.id for row in dead]
    total = await writing.value(_count_nodes(), tree_id=tree.id)
    if node_ids and not is_dry_run:
        await writing.run(_delete_citations(), node_ids=node_ids)
        # Sets the nodes of ended runs to null. Whoever holds such a run waits for no tree, so this
        # keeps the order of locks.
        await writing.run(_delete_nodes(), node_ids=node_ids)
        await record_act(writing, viewer, "tree_pruned", tree.id, {"removed": len(node_ids)})
        await note_change(writing, tree.id, TreeEventType.TREE_PRUNED)
        tree = await require_row(writing, viewer, MirrorTree, tree.id)
    return tree, Pruning(len(node_ids), node_ids[:MAX_LISTED], total - len(node_ids))


async def _nodes_to_keep(
    writing: Writing, viewer: Viewer, tree: MirrorTree, ids: Sequence[str]
) -> list[str]:
    """The ids as the database has them. Raises Invalid (MALFORMED_ID), NotFound."""
    checked = []
    for index, each in enumerate(ids):
        row_id = checked_id(each, TreeNode)
        if row_id is None:
            raise Invalid("This is no id of a node.", "MALFORMED_ID", ("input", "keep", index))
        checked.append(row_id)
    rows = await rows_by_ids(writing, viewer, TreeNode, checked)
    for index, row in enumerate(rows):
        if row is None or row.tree_id != tree.id:
            raise NotFound("There is no such TreeNode in this tree.", path=("input", "keep", index))
    return checked
