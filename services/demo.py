"""What an empty server begins with: one character of our own, a small mirror tree, and a story."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, select
from sqlmodel import col

from db.enums import (
    CitationTarget,
    EntityKind,
    Narration,
    NodeStatus,
    NodeType,
    Origin,
    Realm,
    StoryMode,
)
from db.reading import Writing, statement
from db.tables import Character, MirrorTree, TreeNode
from services import characters, mirrors, stories
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
STORY = stories.NewStory(
    title="The Bell Under the Salt",
    description="A village that was flooded on purpose, and somebody who has come to ask why.",
    tags=("mystery", "sea"),
    definition=stories.NewDefinition(
        mode=StoryMode.ADVENTURE,
        narration=Narration.SECOND,
        genre=stories.NewStyle("Coastal mystery", "Small secrets, patient tides, no monsters."),
        tone=stories.NewStyle("Quiet", "Plain sentences. What matters is said in passing."),
        setting=(
            "The salt flats of Orrin, where a village was given to the sea forty years ago and "
            "comes up again for two hours at the lowest tides of the year."
        ),
        lead_key="tamsin",
        calendar_system_id="earth-gregorian",
        world_time_origin={
            "year": 1911,
            "month": 3,
            "day": 16,
            "hour": 5,
            "minute": 30,
            "second": 0,
        },
    ),
    cast=(
        stories.NewMember("flats", EntityKind.LOCATION, "The salt flats of Orrin"),
        stories.NewMember(
            "tower", EntityKind.LOCATION, "The bell tower", "All that stands.", parent_key="flats"
        ),
        stories.NewMember(
            "tamsin",
            EntityKind.CHARACTER,
            "Tamsin Reed",
            "A surveyor whose grandmother left Orrin with one shoe.",
            location_key="flats",
            keywords=("the surveyor",),
            state={"traits": ["exact", "stubborn"], "drives": ["to know who rang the bell"]},
        ),
        stories.NewMember(
            "hale",
            EntityKind.CHARACTER,
            "Corwin Hale",
            "He rents boats, and has never once sailed over the village.",
            location_key="flats",
        ),
        stories.NewMember("bell", EntityKind.ITEM, "The bell of Orrin", location_key="tower"),
    ),
    lore=(
        stories.NewLore(
            "tide",
            "The lowest tide",
            "Twice a year the sea leaves the village for two hours. Nobody stays for the third.",
            "nature",
            ("tide", "low water"),
        ),
    ),
    opening=stories.NewOpening(
        "The water has gone further out than the almanac allows. You stand where the market was, "
        "with mud to the ankles, and from the tower that lost its bell forty years ago you hear "
        "it strike once.",
        ("tamsin",),
        "flats",
    ),
)


@statement(Character)
def _has_characters() -> Any:
    return select(exists(select(col(Character.id))))


async def is_empty(writing: Writing) -> bool:
    """Whether nobody has made a character yet."""
    return not await writing.value(_has_characters())


async def create_demo(writing: Writing, viewer: Viewer) -> MirrorTree:
    """Make the demo character and its tree: two answers to one question, a citation, a canon; and
    the demo story.
    """
    await stories.create_story(writing, viewer, STORY)
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
