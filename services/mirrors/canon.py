"""Canon: paths that count, their corrections, and whether what was confirmed still stands."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import exists, select, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import Realm, TreeEventType
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Canonization, MirrorTree, TreeNode, World
from services.access import Viewer, require_row
from services.accounts import record_act
from services.errors import Conflict, Invalid
from services.mirrors.changes import note_change
from services.mirrors.growing import add_version, check_answer, check_finished, hold_node
from services.mirrors.reading import MAX_PATH, nodes_above, paths_to_nodes
from services.text import checked_text


def path_digest(path: Sequence[TreeNode]) -> str:
    """SHA-256 over the ids and texts of a path, in hexadecimal; equal paths give equal digests."""
    return hashlib.sha256(orjson.dumps([[each.id, each.content] for each in path])).hexdigest()


async def canonize_path(
    writing: Writing, viewer: Viewer, endpoint_id: str, scope: Realm, world_id: str | None = None
) -> Canonization:
    """Make the path from the root to an answer canon.

    Raises NotFound, Invalid (BAD_PARENT_KIND, WORLD_ID_REQUIRED, REALM_MISMATCH) and Conflict
    (PARENT_NOT_FINISHED, ALREADY_CANON, TREE_ARCHIVED).
    """
    tree, endpoint = await hold_node(writing, viewer, endpoint_id, "input", "endpointId")
    check_answer(endpoint, "input", "endpointId")
    if scope is Realm.WORLD and world_id is None:
        raise Invalid(
            "Canon of a world needs that world: name it.",
            "WORLD_ID_REQUIRED",
            ("input", "worldId"),
        )
    if world_id is not None:
        path = ("input", "worldId")
        await require_row(writing, viewer, World, world_id, *path)
        if scope is not Realm.WORLD or tree.world_id != world_id:
            raise Invalid("This path is not of that world.", "REALM_MISMATCH", path)
    if await writing.value(_is_canon(), endpoint_id=endpoint.id, scope=scope):
        raise Conflict(
            "This path is canon in that scope already.", "ALREADY_CANON", ("input", "endpointId")
        )
    return await _record(writing, viewer, tree, endpoint, scope, world_id, None)


@statement(Canonization)
def _is_canon() -> Any:
    return select(
        exists(
            select(1).where(
                col(Canonization.endpoint_node_id) == param("endpoint_id"),
                col(Canonization.scope) == param("scope"),
            )
        )
    )


async def _record(
    writing: Writing,
    viewer: Viewer,
    tree: MirrorTree,
    endpoint: TreeNode,
    scope: Realm,
    world_id: str | None,
    corrects_id: str | None,
) -> Canonization:
    path = (await paths_to_nodes(writing, viewer, [endpoint.id]))[endpoint.id]
    if any(each.realm != scope for each in path):
        raise Invalid(
            f"Parts of this path are not of the realm {scope}, so it cannot count there.",
            "REALM_MISMATCH",
            ("input", "scope"),
        )
    record = await writing.insert(
        Canonization,
        tree_id=tree.id,
        scope=scope,
        world_id=world_id,
        endpoint_node_id=endpoint.id,
        path_length=len(path),
        snapshot_digest=path_digest(path),
        confirmed_by_user_id=viewer.signed_in_id,
        corrects_canonization_id=corrects_id,
    )
    if world_id is not None:
        await writing.run(_count_canon(), world_id=world_id)
    await record_act(writing, viewer, "path_canonized", record.id, {"endpoint_id": endpoint.id})
    await note_change(writing, tree.id, TreeEventType.PATH_CANONIZED, endpoint.id)
    return record


@statement(World)
def _count_canon() -> Any:
    return (
        update(World)
        .where(col(World.id) == param("world_id"))
        .values({col(World.canon_version): col(World.canon_version) + 1})
    )


@statement(Canonization)
def _records_through() -> Any:
    """For each scope the last record of a path through a node."""
    start: Any = select(col(TreeNode.id).label("id")).where(col(TreeNode.id) == param("node_id"))
    below = start.cte("below", recursive=True)
    child = aliased(TreeNode)
    below = below.union(select(col(child.id)).join(below, col(child.parent_node_id) == below.c.id))
    return (
        select(*columns(Canonization))
        .ext(distinct_on(col(Canonization.scope)))
        .join(below, below.c.id == col(Canonization.endpoint_node_id))
        .order_by(
            col(Canonization.scope),
            col(Canonization.confirmed_at).desc(),
            col(Canonization.id).desc(),
        )
    )


async def correct_node(
    writing: Writing, viewer: Viewer, node_id: str, text: str
) -> tuple[TreeNode, list[Canonization]]:
    """Correct a node that is canon: a new version beside it, and for each scope in which it
    counts a new record of the path that ends there. The old node and records stay.

    Raises NotFound, Invalid (TEXT_…) and Conflict (NOT_CANON, NODE_NOT_FINISHED, TREE_ARCHIVED).
    Spec soul-mirror, section 2, invariant 4.
    """
    checked_text(text, "input", "text")
    tree, node = await hold_node(writing, viewer, node_id, "input", "nodeId")
    check_finished(node, "input", "nodeId")
    earlier = await writing.all(_records_through(), node_id=node.id)
    if not earlier:
        raise Conflict(
            "This node is not canon: edit it instead (nodeEdit).", "NOT_CANON", ("input", "nodeId")
        )
    version = await add_version(writing, tree, node, text)
    records = [
        await _record(writing, viewer, tree, version, Realm(each.scope), each.world_id, each.id)
        for each in earlier
    ]
    return version, records


async def intact_flags(
    reading: Reading, viewer: Viewer, records: Sequence[Canonization]
) -> list[bool | None]:
    """Whether the path of each record still has the length and the texts that were confirmed; None
    where texts were erased.
    """
    # Paths of one tree have most of their nodes in common: each node is read once.
    rows = await reading.all(
        _nodes_above(), node_ids=[each.endpoint_node_id for each in records], **viewer.parameters
    )
    nodes = {row.id: row for row in rows}
    flags: list[bool | None] = []
    for record in records:
        path: list[TreeNode] = []
        node = nodes.get(record.endpoint_node_id)
        while node is not None and len(path) < MAX_PATH:
            path.append(node)
            node = nodes.get(node.parent_node_id or "")
        if any(each.is_erased for each in path):
            flags.append(None)
            continue
        is_whole = len(path) == record.path_length
        flags.append(is_whole and path_digest(path[::-1]) == record.snapshot_digest)
    return flags


@statement(TreeNode)
def _nodes_above() -> Any:
    above = nodes_above(any_of(TreeNode.id, "node_ids"))
    return select(*columns(TreeNode)).join(above, col(TreeNode.id) == above.c.id)
