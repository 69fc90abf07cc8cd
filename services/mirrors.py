"""Mirror trees: growing and reading conversation trees, the working entry, and canon.

Source: spec soul-mirror, section 2 and its four invariants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, exists, func, literal_column, select, update
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import CitationTarget, NodeStatus, NodeType, Realm, TreeStatus
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Canonization, Character, Citation, MirrorTree, TreeNode
from services.access import Viewer, hold_row, require_row, visible
from services.accounts import record_act
from services.characters import require_alive
from services.errors import Conflict, Invalid, NotFound
from services.text import MAX_LINE, checked_text

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


@statement(TreeNode)
def _canon_trunks() -> Any:
    is_endpoint = exists(
        select(1).where(
            any_of(Canonization.tree_id, "tree_ids"),
            col(Canonization.scope) == param("scope"),
            col(Canonization.endpoint_node_id) == col(TreeNode.id),
        )
    )
    path = _paths(is_endpoint)
    trunk = select(path.c.node_id).distinct().subquery()
    place = (
        func.row_number()
        .over(
            partition_by=col(TreeNode.tree_id),
            order_by=[col(TreeNode.created_at), col(TreeNode.id)],
        )
        .label("place")
    )
    numbered = (
        select(*columns(TreeNode), place)
        .join(trunk, col(TreeNode.id) == trunk.c.node_id)
        .subquery()
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


async def create_tree(
    writing: Writing, viewer: Viewer, character_id: str, topic: str, realm: Realm
) -> MirrorTree:
    """Begin a tree with a character. Raises NotFound, Invalid, Conflict (CHARACTER_READ_ONLY)."""
    topic = checked_text(topic, "input", "topic", max_length=MAX_LINE)
    character = await require_row(writing, viewer, Character, character_id, "input", "characterId")
    require_alive(character, "input", "characterId")
    if realm is Realm.WORLD:
        raise Invalid(
            "A tree in a world needs that world, and this server has no worlds yet.",
            "WORLD_ID_REQUIRED",
            ("input", "realm"),
        )
    tree = await writing.insert(
        MirrorTree,
        character_id=character.id,
        topic=topic,
        realm=realm,
        status=TreeStatus.ACTIVE,
    )
    await record_act(writing, viewer, "tree_created", tree.id, {"character_id": character.id})
    return tree


async def hold_tree(writing: Writing, viewer: Viewer, tree_id: str, *path: str | int) -> MirrorTree:
    """The tree, held against other writers until the transaction ends.

    Raises NotFound, Conflict (TREE_ARCHIVED, CHARACTER_READ_ONLY).
    """
    tree = await hold_row(writing, viewer, MirrorTree, tree_id, *path)
    if tree.status != TreeStatus.ACTIVE:
        raise Conflict("This tree is archived and grows no more.", "TREE_ARCHIVED", path)
    require_alive(await require_row(writing, viewer, Character, tree.character_id, *path), *path)
    return tree


@statement(TreeNode)
def _has_nodes() -> Any:
    return select(exists(select(1).where(col(TreeNode.tree_id) == param("tree_id"))))


async def add_question(
    writing: Writing, viewer: Viewer, tree_id: str, parent_id: str | None, text: str
) -> TreeNode:
    """Put a question under an adopted answer, or at the root of an empty tree.

    Raises NotFound, Invalid (BAD_PARENT_KIND, PARENT_REQUIRED, TEXT_…) and Conflict
    (PARENT_NOT_ADOPTED, PARENT_NOT_FINISHED, TREE_ARCHIVED). Spec soul-mirror, section 2,
    invariant 2: what follows hangs on the answer that was really adopted.
    """
    checked_text(text, "input", "text")
    tree = await hold_tree(writing, viewer, tree_id, "input", "treeId")
    if parent_id is None:
        if await writing.value(_has_nodes(), tree_id=tree.id):
            raise Invalid(
                "This tree has begun: name the answer under which the question stands, "
                "such as its working entry.",
                "PARENT_REQUIRED",
                ("input", "parentId"),
            )
        parent = None
    else:
        parent = await _require_adopted(writing, viewer, tree, parent_id, ("input", "parentId"))
    return await writing.insert(
        TreeNode,
        tree_id=tree.id,
        parent_node_id=parent and parent.id,
        node_type=NodeType.QUESTION,
        status=NodeStatus.SOLIDIFIED,
        realm=tree.realm,
        content=text,
    )


async def _require_adopted(
    writing: Writing,
    viewer: Viewer,
    tree: MirrorTree,
    node_id: str,
    path: tuple[str, ...],
) -> TreeNode:
    node = await require_answer(writing, viewer, node_id, path)
    if node.tree_id != tree.id:
        raise NotFound("There is no such TreeNode in this tree.", path=path)
    entry = tree.working_entry_node_id
    adopted = (await paths_to_nodes(writing, viewer, [entry])).get(entry, []) if entry else []
    if node.id not in {each.id for each in adopted}:
        raise Conflict(
            "This answer is not on the adopted path: adopt it first (nodeAdopt).",
            "PARENT_NOT_ADOPTED",
            path,
        )
    return node


async def require_answer(
    reading: Reading, viewer: Viewer, node_id: str, path: tuple[str, ...]
) -> TreeNode:
    """A finished answer. Raises NotFound, Invalid (BAD_PARENT_KIND), Conflict."""
    node = await require_row(reading, viewer, TreeNode, node_id, *path)
    if node.node_type == NodeType.QUESTION:
        raise Invalid("This is a question: name an answer.", "BAD_PARENT_KIND", path)
    if node.status == NodeStatus.BUD:
        raise Conflict(
            "This answer is still being written: wait for its run to finish.",
            "PARENT_NOT_FINISHED",
            path,
        )
    return node


@statement(MirrorTree)
def _move_working_entry() -> Any:
    return (
        update(MirrorTree)
        .where(col(MirrorTree.id) == param("of_id"))
        .values(
            working_entry_node_id=param("node_id"),
            updated_at=func.clock_timestamp(),
            version=col(MirrorTree.version) + 1,
        )
        .returning(*columns(MirrorTree))
    )


async def adopt_node(writing: Writing, viewer: Viewer, node_id: str) -> MirrorTree:
    """Make an answer the place where the talk continues; canon is not touched.

    Raises NotFound, Invalid (BAD_PARENT_KIND), Conflict (PARENT_NOT_FINISHED, TREE_ARCHIVED).
    """
    node = await require_answer(writing, viewer, node_id, ("input", "nodeId"))
    tree = await hold_tree(writing, viewer, node.tree_id, "input", "nodeId")
    return await move_working_entry(writing, tree.id, node.id)


async def move_working_entry(writing: Writing, tree_id: str, node_id: str) -> MirrorTree:
    """Set the working entry of a tree that the caller holds."""
    tree = await writing.first(_move_working_entry(), of_id=tree_id, node_id=node_id)
    assert tree is not None
    return tree


async def cite(
    writing: Writing, viewer: Viewer, node_id: str, source_id: str, start: int, end: int
) -> Citation:
    """Quote characters `start` to `end` of one node's text in another node.

    Raises NotFound, Invalid (EMPTY_QUOTE).
    """
    node = await require_row(writing, viewer, TreeNode, node_id, "input", "nodeId")
    source = await require_row(writing, viewer, TreeNode, source_id, "input", "sourceId")
    quote = source.content[start:end]
    if not quote:
        raise Invalid("The range holds no text.", "EMPTY_QUOTE", ("input", "start"))
    return await writing.insert(
        Citation,
        node_id=node.id,
        target_kind=CitationTarget.TEXT_RANGE,
        target={"start": start, "end": start + len(quote)},
        quote=quote,
        source_id=source.id,
        source_version=source.content_version,
    )


def path_digest(path: Sequence[TreeNode]) -> str:
    """SHA-256 over the ids and texts of a path, in hexadecimal; equal paths give equal digests."""
    return hashlib.sha256(orjson.dumps([[each.id, each.content] for each in path])).hexdigest()


async def canonize_path(
    writing: Writing, viewer: Viewer, endpoint_id: str, scope: Realm
) -> Canonization:
    """Make the path from the root to a node canon. Raises NotFound, Conflict, Invalid."""
    endpoint = await require_answer(writing, viewer, endpoint_id, ("input", "endpointId"))
    if scope is Realm.WORLD:
        raise Invalid("Name the world.", "WORLD_ID_REQUIRED", ("input", "worldId"))
    path = (await paths_to_nodes(writing, viewer, [endpoint.id]))[endpoint.id]
    record = await writing.insert(
        Canonization,
        tree_id=endpoint.tree_id,
        scope=scope,
        endpoint_node_id=endpoint.id,
        path_length=len(path),
        snapshot_digest=path_digest(path),
        confirmed_by_user_id=viewer.signed_in_id,
    )
    await record_act(writing, viewer, "path_canonized", record.id, {"endpoint_id": endpoint.id})
    return record
