"""Makes the things that tests need, through the services that users reach."""

from __future__ import annotations

from typing import Any

from sqlalchemy import update
from sqlmodel import col

from db.enums import (
    EntityKind,
    EntityStatus,
    EntryKind,
    InjectionMode,
    NodeStatus,
    NodeType,
    Origin,
    Realm,
    StoryStatus,
)
from db.ids import new_id
from db.reading import Writing, param, statement
from db.tables import Branch, Character, MirrorTree, Story, StoryEntity, StoryEntry, TreeNode
from services import characters, deltas, mirrors
from services.access import Viewer
from services.shapes import EMPTY_STATES

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


DEFINITION: dict[str, Any] = {
    "mode": "creative",
    "leadEntityId": None,
    "narration": "third",
    "genre": {"label": "Test", "promptBody": "Short."},
    "tone": {"label": "Plain", "promptBody": "Plain."},
    "setting": "A place for tests.",
    "calendarSystemId": "earth-gregorian",
    "worldTimeOrigin": {"year": 2024, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0},
}
PREFIXES = {
    EntityKind.CHARACTER: "char",
    EntityKind.LOCATION: "loc",
    EntityKind.ITEM: "item",
    EntityKind.FACTION: "fact",
}


async def make_branch(writing: Writing, viewer: Viewer, title: str = "A story") -> Branch:
    """A story with one branch and its opening, planted without a log."""
    story = await writing.insert(
        Story,
        owner_user_id=viewer.signed_in_id,
        title=title,
        status=StoryStatus.ACTIVE,
        definition_json=DEFINITION,
        settings={},
    )
    branch = await writing.insert(Branch, story_id=story.id, name="Main")
    await writing.run(_open_branch(), story_id=story.id, branch_id=branch.id)
    meta = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0}
    await deltas.plant_rows(
        writing,
        branch.id,
        StoryEntry,
        [{"position": 1, "kind": EntryKind.OPENING, "content": "It begins.", "metadata": meta}],
    )
    return branch


@statement(Story)
def _open_branch() -> Any:
    return (
        update(Story)
        .where(col(Story.id) == param("story_id"))
        .values(current_branch_id=param("branch_id"))
    )


def entity_values(kind: EntityKind, name: str, **state: Any) -> dict[str, Any]:
    """The columns of a new entity."""
    return {
        "kind": kind,
        "name": name,
        "status": EntityStatus.ACTIVE,
        "injection_mode": InjectionMode.AUTO,
        "state": {**EMPTY_STATES[kind], **state},
    }


async def plant_entity(
    writing: Writing, branch_id: str, kind: EntityKind, name: str, **state: Any
) -> dict[str, Any]:
    """An entity that a branch begins with, as an image."""
    (row,) = await deltas.plant_rows(
        writing,
        branch_id,
        StoryEntity,
        [entity_values(kind, name, **state)],
        prefix=PREFIXES[kind],
    )
    return row


async def append_entry(
    action: deltas.Action,
    position: int,
    kind: EntryKind = EntryKind.AI_REPLY,
    content: str = "It goes on.",
    **meta: Any,
) -> dict[str, Any]:
    """An entry at a position, logged as a turn: anchored to itself."""
    entry_id = new_id("story_entries")
    values = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0, **meta}
    return await action.create(
        StoryEntry,
        {
            "id": entry_id,
            "position": position,
            "kind": kind,
            "content": content,
            "metadata": values,
        },
        anchor=entry_id,
    )
