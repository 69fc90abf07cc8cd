"""Growing trees: beginning one, asking, adopting, editing. Nothing that is final ever changes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, func, select, update
from sqlmodel import col

from db.enums import NodeStatus, NodeType, Realm, TreeEventType, TreeStatus
from db.reading import Writing, columns, param, statement
from db.tables import MirrorTree, TreeNode, World
from services.access import Viewer, hold_row, require_row
from services.accounts import record_act
from services.characters import hold_alive
from services.errors import Conflict, Invalid, NotFound
from services.mirrors.changes import note_change
from services.mirrors.reading import paths_to_nodes
from services.text import MAX_LINE, checked_text


async def create_tree(
    writing: Writing,
    viewer: Viewer,
    character_id: str,
    topic: str,
    realm: Realm,
    world_id: str | None = None,
) -> MirrorTree:
    """Begin a tree with a character; one in a world names that. Raises NotFound, Invalid
    (WORLD_ID_REQUIRED, REALM_MISMATCH, TEXT_…), Conflict (CHARACTER_READ_ONLY).
    """
    topic = checked_text(topic, "input", "topic", max_length=MAX_LINE)
    character = await hold_alive(writing, viewer, character_id, "input", "characterId")
    if realm is Realm.WORLD and world_id is None:
        raise Invalid(
            "A tree in a world needs that world: name it.", "WORLD_ID_REQUIRED", ("input", "realm")
        )
    if world_id is not None:
        await require_row(writing, viewer, World, world_id, "input", "worldId")
        if realm is not Realm.WORLD:
            told = "Only a tree of the realm of worlds is in one."
            raise Invalid(told, "REALM_MISMATCH", ("input", "worldId"))
    tree = await writing.insert(
        MirrorTree,
        character_id=character.id,
        topic=topic,
        realm=realm,
        world_id=world_id,
        status=TreeStatus.ACTIVE,
    )
    await record_act(writing, viewer, "tree_created", tree.id, {"character_id": character.id})
    return tree


async def hold_tree(writing: Writing, viewer: Viewer, tree_id: str, *path: str | int) -> MirrorTree:
    """The tree, held against other writers until the transaction ends.

    Raises NotFound, Conflict (TREE_ARCHIVED, CHARACTER_READ_ONLY).
    """
    tree = await require_row(writing, viewer, MirrorTree, tree_id, *path)
    await hold_alive(writing, viewer, tree.character_id, *path)
    tree = await hold_row(writing, viewer, MirrorTree, tree.id, *path)
    if tree.status != TreeStatus.ACTIVE:
        raise Conflict("This tree is archived and grows no more.", "TREE_ARCHIVED", path)
    return tree


async def hold_node(
    writing: Writing, viewer: Viewer, node_id: str, *path: str | int
) -> tuple[MirrorTree, TreeNode]:
    """A node and its tree, which is held as by hold_tree, so that the node stays as it is.

    Raises NotFound, Conflict (TREE_ARCHIVED, CHARACTER_READ_ONLY).
    """
    node = await require_row(writing, viewer, TreeNode, node_id, *path)
    tree = await hold_tree(writing, viewer, node.tree_id, *path)
    # Read anew: it may have been pruned, or have got its text, while the tree was waited for.
    return tree, await require_row(writing, viewer, TreeNode, node.id, *path)


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
    question = await writing.insert(
        TreeNode,
        tree_id=tree.id,
        parent_node_id=parent and parent.id,
        node_type=NodeType.QUESTION,
        status=NodeStatus.SOLIDIFIED,
        realm=tree.realm,
        content=text,
    )
    await note_change(writing, tree.id, TreeEventType.NODE_PLANTED, question.id)
    return question


async def require_continuable(
    writing: Writing, viewer: Viewer, node_id: str, path: tuple[str, ...]
) -> TreeNode:
    """An adopted answer that the character may go on from by itself; its tree is held.

    Raises NotFound, Invalid (BAD_PARENT_KIND) and Conflict (PARENT_NOT_ADOPTED,
    PARENT_NOT_FINISHED, TREE_ARCHIVED, CHARACTER_READ_ONLY).
    """
    tree, node = await hold_node(writing, viewer, node_id, *path)
    return await _require_adopted(writing, viewer, tree, node.id, path)


async def edit_node(writing: Writing, viewer: Viewer, node_id: str, text: str) -> TreeNode:
    """Put a new text beside a finished node, which stays as it is: same parent, same kind, one
    version more. Spec soul-mirror, section 2: editing what was sent makes a fork.

    Raises NotFound, Invalid (TEXT_…) and Conflict (NODE_NOT_FINISHED, TREE_ARCHIVED).
    """
    checked_text(text, "input", "text")
    tree, node = await hold_node(writing, viewer, node_id, "input", "nodeId")
    check_finished(node, "input", "nodeId")
    return await add_version(writing, tree, node, text)


async def add_version(writing: Writing, tree: MirrorTree, node: TreeNode, text: str) -> TreeNode:
    """A new version of a node in a tree that the caller holds."""
    version = await writing.insert(
        TreeNode,
        tree_id=tree.id,
        parent_node_id=node.parent_node_id,
        node_type=node.node_type,
        status=NodeStatus.SOLIDIFIED,
        realm=node.realm,
        content=text,
        content_version=node.content_version + 1,
        supersedes_node_id=node.id,
    )
    await note_change(writing, tree.id, TreeEventType.NODE_PLANTED, version.id)
    return version


def check_finished(node: TreeNode, *path: str) -> None:
    """Refuse a node whose text is not final, with NODE_NOT_FINISHED."""
    if node.status == NodeStatus.BUD:
        raise Conflict(
            "This text is still being written: wait for its run to finish.",
            "NODE_NOT_FINISHED",
            path,
        )


async def _require_adopted(
    writing: Writing,
    viewer: Viewer,
    tree: MirrorTree,
    node_id: str,
    path: tuple[str, ...],
) -> TreeNode:
    node = await require_row(writing, viewer, TreeNode, node_id, *path)
    if node.tree_id != tree.id:
        raise NotFound("There is no such TreeNode in this tree.", path=path)
    check_answer(node, *path)
    entry = tree.working_entry_node_id
    adopted = (await paths_to_nodes(writing, viewer, [entry])).get(entry, []) if entry else []
    if node.id not in {each.id for each in adopted}:
        raise Conflict(
            "This answer is not on the adopted path: adopt it first (nodeAdopt).",
            "PARENT_NOT_ADOPTED",
            path,
        )
    return node


def check_answer(node: TreeNode, *path: str) -> None:
    """Refuse all but a finished answer, with BAD_PARENT_KIND or PARENT_NOT_FINISHED."""
    if node.node_type == NodeType.QUESTION:
        raise Invalid("This is a question: name an answer.", "BAD_PARENT_KIND", path)
    if node.status == NodeStatus.BUD:
        raise Conflict(
            "This answer is still being written: wait for its run to finish.",
            "PARENT_NOT_FINISHED",
            path,
        )


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
    tree, node = await hold_node(writing, viewer, node_id, "input", "nodeId")
    check_answer(node, "input", "nodeId")
    return await move_working_entry(writing, tree.id, node.id)


async def move_working_entry(writing: Writing, tree_id: str, node_id: str) -> MirrorTree:
    """Set the working entry of a tree that the caller holds."""
    await note_change(writing, tree_id, TreeEventType.ENTRY_MOVED, node_id)
    tree = await writing.first(_move_working_entry(), of_id=tree_id, node_id=node_id)
    assert tree is not None
    return tree
