"""Reading trees: lists of nodes and canon records, paths, and what nodes quote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, exists, func, literal_column, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import NodeType, Realm
from db.paging import PagedList, SortKey
from db.reading import Reading, any_of, columns, param, statement
from db.tables import Canonization, Citation, MirrorTree, TreeNode, TreeTransplant
from services.access import Viewer, visible

# The deepest path that is followed; also keeps a broken chain of parents from running on.
MAX_PATH = 10_000

TREES_OF_CHARACTERS = PagedList(
    "trees_of_character",
    MirrorTree,
    parent=col(MirrorTree.character_id),
    sort=[
        SortKey(col(MirrorTree.created_at), is_descending=True),
        SortKey(col(MirrorTree.id), is_descending=True),
    ],
    where=lambda: visible(MirrorTree),
)
_NODE_ORDER = [SortKey(col(TreeNode.created_at)), SortKey(col(TreeNode.id))]
NODES_OF_TREES = PagedList(
    "nodes_of_tree",
    TreeNode,
    parent=col(TreeNode.tree_id),
    sort=_NODE_ORDER,
    where=lambda: visible(TreeNode),
)
CHILDREN_OF_NODES = PagedList(
    "children_of_node",
    TreeNode,
    parent=col(TreeNode.parent_node_id),
    sort=_NODE_ORDER,
    where=lambda: visible(TreeNode),
)


ROOTS_OF_TREES = PagedList(
    "roots_of_tree",
    TreeNode,
    parent=col(TreeNode.tree_id),
    sort=_NODE_ORDER,
    where=lambda: visible(TreeNode) & col(TreeNode.parent_node_id).is_(None),
)
# Copies made by editing and correcting, of each node.
VERSIONS_OF_NODES = PagedList(
    "versions_of_node",
    TreeNode,
    parent=col(TreeNode.supersedes_node_id),
    sort=_NODE_ORDER,
    where=lambda: visible(TreeNode),
)


def _is_candidate() -> ColumnElement[bool]:
    return col(TreeNode.node_type) == NodeType.CANDIDATE_ANSWER.value


CANDIDATES_OF_NODES = PagedList(
    "candidates_of_node",
    TreeNode,
    parent=col(TreeNode.parent_node_id),
    sort=_NODE_ORDER,
    where=lambda: visible(TreeNode) & _is_candidate(),
)
CANONIZATIONS_OF_TREES = PagedList(
    "canonizations_of_tree",
    Canonization,
    parent=col(Canonization.tree_id),
    sort=[SortKey(col(Canonization.confirmed_at)), SortKey(col(Canonization.id))],
    where=lambda: visible(Canonization),
)

# What was made canon in each world.
CANON_OF_WORLDS = PagedList(
    "canon_of_worlds",
    Canonization,
    parent=col(Canonization.world_id),
    sort=[SortKey(col(Canonization.confirmed_at)), SortKey(col(Canonization.id))],
    where=lambda: visible(Canonization),
)

TRANSPLANTS_OF_TREES = PagedList(
    "transplants_of_tree",
    TreeTransplant,
    parent=col(TreeTransplant.source_tree_id),
    sort=[SortKey(col(TreeTransplant.created_at)), SortKey(col(TreeTransplant.id))],
    where=lambda: visible(TreeTransplant),
)

# A node quotes a handful of sources; the bound keeps a broken importer from flooding a page.
MAX_CITATIONS = 100


@statement(Citation)
def _citations_of_nodes() -> Any:
    place = (
        func.row_number()
        .over(
            partition_by=col(Citation.node_id),
            order_by=[col(Citation.created_at), col(Citation.id)],
        )
        .label("place")
    )
    numbered = (
        select(*columns(Citation), place)
        .where(any_of(Citation.node_id, "node_ids"), visible(Citation))
        .subquery()
    )
    return (
        select(*[numbered.c[column.name] for column in columns(Citation)])
        .where(numbered.c.place <= MAX_CITATIONS)
        .order_by(numbered.c.node_id, numbered.c.place)
    )


async def citations_of_nodes(
    reading: Reading, viewer: Viewer, node_ids: Sequence[str]
) -> dict[str, list[Citation]]:
    """The citations of each node, oldest first, at most MAX_CITATIONS each, by node id."""
    found: dict[str, list[Citation]] = {each: [] for each in node_ids}
    rows = await reading.all(_citations_of_nodes(), node_ids=list(node_ids), **viewer.parameters)
    for row in rows:
        found[row.node_id].append(row)
    return found


def _paths(endpoints: ColumnElement[bool]) -> Any:
    """Every node between the roots and the endpoints, with the endpoint and the steps to it."""
    start = (
        select(
            col(TreeNode.id).label("endpoint_id"),
            col(TreeNode.id).label("node_id"),
            col(TreeNode.parent_node_id).label("parent_id"),
            literal_column("0").label("steps"),
        )
        .where(endpoints, visible(TreeNode))
        .cte("path", recursive=True)
    )
    above = aliased(TreeNode)
    return start.union_all(
        select(start.c.endpoint_id, col(above.id), col(above.parent_node_id), start.c.steps + 1)
        .join(start, col(above.id) == start.c.parent_id)
        .where(start.c.steps + 1 < MAX_PATH)
    )


@statement(TreeNode)
def _path_rows() -> Any:
    path = _paths(any_of(TreeNode.id, "endpoint_ids"))
    return (
        select(*columns(TreeNode), path.c.endpoint_id)
        .join(path, col(TreeNode.id) == path.c.node_id)
        .order_by(path.c.endpoint_id, path.c.steps.desc())
    )


async def paths_to_nodes(
    reading: Reading, viewer: Viewer, node_ids: Sequence[str]
) -> dict[str, list[TreeNode]]:
    """The nodes from the root to each node, both included, the last MAX_PATH at most, by the id
    of the last.
    """
    rows: list[Any] = await reading.all(
        _path_rows(), endpoint_ids=list(dict.fromkeys(node_ids)), **viewer.parameters
    )
    found: dict[str, list[TreeNode]] = {}
    for row in rows:
        found.setdefault(row.endpoint_id, []).append(row)
    return found


def nodes_above(*endpoints: ColumnElement[bool]) -> Any:
    """The ids of the endpoints and of all nodes above them, each once, however many paths share it.

    A part of a statement.
    """
    start = (
        select(col(TreeNode.id).label("id"), col(TreeNode.parent_node_id).label("parent_id"))
        .where(*endpoints, visible(TreeNode))
        .cte("above", recursive=True)
    )
    above = aliased(TreeNode)
    return start.union(
        select(col(above.id), col(above.parent_node_id)).join(
            start, col(above.id) == start.c.parent_id
        )
    )


def ends_canon(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a node is the endpoint of a canon record under these conditions."""
    is_endpoint = col(Canonization.endpoint_node_id) == col(TreeNode.id)
    return exists(select(1).where(is_endpoint, *conditions))


@statement(TreeNode)
def _canon_trunks() -> Any:
    trunk = nodes_above(
        any_of(TreeNode.tree_id, "tree_ids"), ends_canon(col(Canonization.scope) == param("scope"))
    )
    place = (
        func.row_number()
        .over(
            partition_by=col(TreeNode.tree_id),
            order_by=[col(TreeNode.created_at), col(TreeNode.id)],
        )
        .label("place")
    )
    numbered = (
        select(*columns(TreeNode), place).join(trunk, col(TreeNode.id) == trunk.c.id).subquery()
    )
    return (
        select(*[numbered.c[column.name] for column in columns(TreeNode)])
        .where(numbered.c.place <= MAX_PATH)
        .order_by(numbered.c.tree_id, numbered.c.place)
    )


async def canon_trunks_of_trees(
    reading: Reading, viewer: Viewer, tree_ids: Sequence[str], scope: Realm
) -> dict[str, list[TreeNode]]:
    """The union of the paths made canon in a scope, oldest node first, at most MAX_PATH of each
    tree, by tree id.
    """
    found: dict[str, list[TreeNode]] = {each: [] for each in tree_ids}
    rows = await reading.all(
        _canon_trunks(), tree_ids=list(found), scope=scope, **viewer.parameters
    )
    for row in rows:
        found[row.tree_id].append(row)
    return found


@statement(TreeTransplant)
def _transplants_into() -> Any:
    return select(*columns(TreeTransplant)).where(
        any_of(TreeTransplant.new_tree_id, "tree_ids"), visible(TreeTransplant)
    )


async def transplants_into_trees(
    reading: Reading, viewer: Viewer, tree_ids: Sequence[str]
) -> dict[str, TreeTransplant]:
    """Where each transplanted tree comes from, by the new tree's id."""
    rows = await reading.all(_transplants_into(), tree_ids=list(tree_ids), **viewer.parameters)
    return {row.new_tree_id: row for row in rows}


@statement(TreeNode)
def _newest_versions() -> Any:
    """The end of each chain of corrections and edits that begins at a node."""
    start = (
        select(
            col(TreeNode.supersedes_node_id).label("source_id"),
            col(TreeNode.id).label("node_id"),
            literal_column("1").label("steps"),
        )
        .where(any_of(TreeNode.supersedes_node_id, "node_ids"), visible(TreeNode))
        .cte("version", recursive=True)
    )
    later = aliased(TreeNode)
    chain = start.union_all(
        select(start.c.source_id, col(later.id), start.c.steps + 1)
        .join(start, col(later.supersedes_node_id) == start.c.node_id)
        .where(start.c.steps + 1 < MAX_PATH)
    )
    return (
        select(*columns(TreeNode), chain.c.source_id)
        .ext(distinct_on(chain.c.source_id))
        .join(chain, col(TreeNode.id) == chain.c.node_id)
        .order_by(
            chain.c.source_id,
            chain.c.steps.desc(),
            col(TreeNode.created_at).desc(),
            col(TreeNode.id).desc(),
        )
    )


async def newest_versions_of_nodes(
    reading: Reading, viewer: Viewer, node_ids: Sequence[str]
) -> dict[str, TreeNode]:
    """The last version of each node that has later ones, by the id of the node."""
    rows: list[Any] = await reading.all(
        _newest_versions(), node_ids=list(dict.fromkeys(node_ids)), **viewer.parameters
    )
    return {row.source_id: row for row in rows}
