"""What an empty server begins with: one character of our own and a small mirror tree."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, select
from sqlmodel import col

from db.enums import CitationTarget, NodeStatus, NodeType, Origin, Realm
from db.reading import Writing, statement
from db.tables import Character, MirrorTree, TreeNode
from services import characters, mirrors
from services.access import Viewer

IDENTITY = {
    "name": "Ilse Marrow",
    "description": (
        "Ilse Marrow keeps the tide library on the island of Venn: a round tower whose lower "
        "shelves flood twice a day. She is sixty-one, walks with a stick made from an oar, and "
        "knows which books can swim. She lends to anyone who can say what they are afraid of."
    ),
    "personality": (
        "Dry, exact and kind in that order. She answers a question with the shelf it belongs to "
        "before she answers it. She never lies about the water."
    ),
    "scenario": (
        "It is the hour before high tide. The lamps of the upper gallery are lit, and the sea is "
        "already at the second step."
    ),
    "first_mes": (
        "Mind the second step, it belongs to the sea until four. Now: what did you come to ask "
        "that you could not ask on dry land?"
    ),
    "mes_example": (
        "Books about storms stand on the lowest shelf. It seemed fair to let them meet. "
        "A promise is only a map; somebody still has to walk."
    ),
    "forbidden_zone": ["Ilse never leaves the island.", "Nobody drowns in the library."],
}
TOPIC = "What the tide takes"
FIRST_QUESTION = "Why do you keep the storm books where the water comes in?"
ANSWERS = (
    "Shelf one, weather. Because a book that has never been wet has no business telling you "
    "what a storm is. I dry them on Sundays. Some of them have improved.",
    "Shelf one, weather. The builder put them there as a joke, and the sea has never returned "
    "one late. I keep to arrangements that work.",
)
SECOND_QUESTION = "Has the water ever taken one you wanted back?"
LAST_ANSWER = (
    "Shelf nine, letters. Once. A small green book in which my mother had written down every "
    "lamp on the coast. The sea kept it for eleven years and then laid it on the second step. "
    "“I dry them on Sundays”, I told you. That one I have not dried."
)


@statement(Character)
def _has_characters() -> Any:
    return select(exists(select(col(Character.id))))


async def is_empty(writing: Writing) -> bool:
    """Whether nobody has made a character yet."""
    return not await writing.value(_has_characters())


async def create_demo(writing: Writing, viewer: Viewer) -> MirrorTree:
    """Make the demo character and its tree: two answers to one question, a citation, a canon."""
    embryo = await characters.create_embryo(writing, viewer, Origin.ORIGINAL, IDENTITY)
    character = await characters.activate_embryo(
        writing, viewer, embryo.id, [key for key, _ in characters.CHECKLIST]
    )
    tree = await mirrors.create_tree(writing, viewer, character.id, TOPIC, Realm.REALITY)
    first = await mirrors.add_question(writing, viewer, tree.id, None, FIRST_QUESTION)
    chosen, _ = [await _answer(writing, first, text) for text in ANSWERS]
    await mirrors.adopt_node(writing, viewer, chosen.id)
    second = await mirrors.add_question(writing, viewer, tree.id, chosen.id, SECOND_QUESTION)
    last = await _answer(writing, second, LAST_ANSWER)
    start = chosen.content.index("I dry them")
    target = {"start": start, "end": start + len("I dry them on Sundays")}
    await mirrors.cite(writing, viewer, last.id, CitationTarget.TEXT_RANGE, chosen.id, target)
    await mirrors.canonize_path(writing, viewer, chosen.id, Realm.REALITY)
    return await mirrors.adopt_node(writing, viewer, last.id)


async def _answer(writing: Writing, question: TreeNode, text: str) -> TreeNode:
    return await writing.insert(
        TreeNode,
        tree_id=question.tree_id,
        parent_node_id=question.id,
        node_type=NodeType.CANDIDATE_ANSWER,
        status=NodeStatus.SOLIDIFIED,
        realm=question.realm,
        content=text,
        model="written by hand",
    )
