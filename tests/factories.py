"""Makes the things that tests need, through the services that users reach."""

from __future__ import annotations

from typing import Any

from db.enums import NodeStatus, NodeType, Origin, Realm
from db.reading import Writing
from db.tables import Character, MirrorTree, TreeNode
from services import characters, mirrors
from services.access import Viewer

ALL_POINTS = [key for key, _ in characters.CHECKLIST]


async def make_character(writing: Writing, viewer: Viewer, name: str = "Ada") -> Character:
    """An activated character."""
    identity: dict[str, Any] = {
        "name": name,
        "description": f"{name} is a character of the tests. {{{{user}}}} knows {name}.",
    }
    embryo = await characters.create_embryo(writing, viewer, Origin.ORIGINAL, identity)
    return await characters.activate_embryo(writing, viewer, embryo.id, ALL_POINTS)


async def make_tree(
    writing: Writing, viewer: Viewer, character: Character | None = None, topic: str = "Tests"
) -> MirrorTree:
    """An empty tree."""
    character = character or await make_character(writing, viewer)
    return await mirrors.create_tree(writing, viewer, character.id, topic, Realm.REALITY)


async def make_answer(
    writing: Writing,
    question: TreeNode,
    content: str = "An answer.",
    status: NodeStatus = NodeStatus.SOLIDIFIED,
) -> TreeNode:
    """A finished answer that no run wrote."""
    return await writing.insert(
        TreeNode,
        tree_id=question.tree_id,
        parent_node_id=question.id,
        node_type=NodeType.CANDIDATE_ANSWER,
        status=status,
        realm=question.realm,
        content=content,
        model="test",
    )


async def make_talk(
    writing: Writing, viewer: Viewer, tree: MirrorTree, turns: int = 2
) -> list[TreeNode]:
    """Questions and adopted answers in turn, root first."""
    path: list[TreeNode] = []
    for turn in range(turns):
        parent_id = path[-1].id if path else None
        question = await mirrors.add_question(
            writing, viewer, tree.id, parent_id, f"Question {turn}"
        )
        answer = await make_answer(writing, question, f"Answer {turn}")
        await mirrors.adopt_node(writing, viewer, answer.id)
        path += [question, answer]
    return path
