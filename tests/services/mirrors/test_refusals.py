"""What every change of a tree refuses alike, and that a refused change leaves nothing behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from db.engine import Database
from db.enums import CitationTarget, Realm
from db.reading import Writing
from services import mirrors, runs
from services.access import Viewer
from services.errors import Conflict, Invalid, NotFound
from tests.conftest import People
from tests.trees import Grown, grown, refused, run_sql

# A change of the thing with an id, made by a viewer.
Change = Callable[[Writing, Viewer, str], Awaitable[Any]]
PROVIDER: dict[str, Any] = {"provider": "demo", "model": None}
RANGE = {"start": 0, "end": 3}

OF_TREES: dict[str, Change] = {
    "ask": lambda w, v, it: runs.ask_tree(w, v, it, None, "Well?", **PROVIDER),
    "prune": lambda w, v, it: mirrors.prune_tree(w, v, it, [], is_dry_run=False),
    "look at what would be pruned": lambda w, v, it: mirrors.prune_tree(
        w, v, it, [], is_dry_run=True
    ),
}
OF_ANSWERS: dict[str, Change] = {
    "adopt": lambda w, v, it: mirrors.adopt_node(w, v, it),
    "continue": lambda w, v, it: runs.continue_node(w, v, it, **PROVIDER),
}
OF_NODES: dict[str, Change] = {
    "edit": lambda w, v, it: mirrors.edit_node(w, v, it, "New."),
    "correct": lambda w, v, it: mirrors.correct_node(w, v, it, "New."),
    "transplant": lambda w, v, it: mirrors.transplant_tree(w, v, it, "New"),
    "cite": lambda w, v, it: mirrors.cite(w, v, it, CitationTarget.TEXT_RANGE, it, RANGE),
}
CANONIZE: Change = lambda w, v, it: mirrors.canonize_path(w, v, it, Realm.REALITY)  # noqa: E731
REGENERATE: Change = lambda w, v, it: runs.regenerate_answer(w, v, it, **PROVIDER)  # noqa: E731

# Each with the path of the field that names the thing, and which thing of a grown tree it is for.
CHANGES: dict[str, tuple[Change, str, str]] = {
    **{name: (change, "treeId", "tree") for name, change in OF_TREES.items()},
    **{name: (change, "nodeId", "last") for name, change in OF_ANSWERS.items()},
    **{name: (change, "nodeId", "last") for name, change in OF_NODES.items()},
    "canonize": (CANONIZE, "endpointId", "last"),
    "regenerate": (REGENERATE, "questionId", "first"),
}
STATES = {
    "TREE_ARCHIVED": "UPDATE mirror_trees SET status = 'archived'",
    "CHARACTER_READ_ONLY": "UPDATE characters SET status = 'deceased'",
}


def id_of(tree: Grown, thing: str) -> str:
    return str(getattr(tree, thing).id)


@pytest.mark.parametrize("name", CHANGES)
async def test_a_thing_that_is_not_there_for_the_viewer_is_not_found(
    database: Database, people: People, name: str
) -> None:
    tree = await grown(database, people)
    change, field, thing = CHANGES[name]
    wrong = id_of(tree, "last" if thing == "tree" else "tree")
    own, absent = id_of(tree, thing), id_of(tree, thing)[:-4] + "0000"
    for viewer, it in (
        (people.stranger, own),
        (people.anonymous, own),
        (people.owner, absent),
        (people.owner, wrong),
        (people.owner, ""),
    ):
        await refused(
            database,
            NotFound,
            "NOT_FOUND",
            ("input", field),
            lambda writing, viewer=viewer, it=it: change(writing, viewer, it),
        )


@pytest.mark.parametrize("code", STATES)
@pytest.mark.parametrize("name", CHANGES)
async def test_what_can_only_be_read_does_not_change(
    database: Database, people: People, name: str, code: str
) -> None:
    tree = await grown(database, people)
    change, field, thing = CHANGES[name]
    await run_sql(database, STATES[code])
    await refused(
        database,
        Conflict,
        code,
        ("input", field),
        lambda writing: change(writing, people.owner, id_of(tree, thing)),
    )


@pytest.mark.parametrize("name", ["edit", "correct", "transplant"])
async def test_a_text_that_is_still_being_written_is_no_ground(
    database: Database, people: People, name: str
) -> None:
    tree = await grown(database, people)
    await refused(
        database,
        Conflict,
        "NODE_NOT_FINISHED",
        ("input", "nodeId"),
        lambda writing: OF_NODES[name](writing, people.owner, tree.bud.id),
    )


@pytest.mark.parametrize("name", ["adopt", "continue", "canonize"])
async def test_an_answer_is_finished_and_no_question(
    database: Database, people: People, name: str
) -> None:
    tree = await grown(database, people)
    change, field, _ = CHANGES[name]
    for it, kind, code in (
        (tree.bud.id, Conflict, "PARENT_NOT_FINISHED"),
        (tree.second.id, Invalid, "BAD_PARENT_KIND"),
    ):
        await refused(
            database,
            kind,
            code,
            ("input", field),
            lambda writing, it=it: change(writing, people.owner, it),
        )


TEXTS = (
    ("a\0b", "INVALID_TEXT"),
    ("\ud83d", "INVALID_TEXT"),
    ("  \n", "TEXT_EMPTY"),
)


@pytest.mark.parametrize(("text", "code"), [*TEXTS, ("x" * 1_000_001, "TEXT_TOO_LONG")])
async def test_a_text_is_checked_before_the_database_sees_it(
    database: Database, people: People, text: str, code: str
) -> None:
    tree = await grown(database, people)
    owner = people.owner
    changes: list[Callable[[Writing], Awaitable[Any]]] = [
        lambda writing: mirrors.add_question(writing, owner, tree.tree.id, tree.last.id, text),
        lambda writing: mirrors.edit_node(writing, owner, tree.last.id, text),
        lambda writing: mirrors.correct_node(writing, owner, tree.last.id, text),
    ]
    for change in changes:
        await refused(database, Invalid, code, ("input", "text"), change)


@pytest.mark.parametrize(("topic", "code"), [*TEXTS, ("x" * 501, "TEXT_TOO_LONG")])
async def test_a_topic_is_one_short_text(
    database: Database, people: People, topic: str, code: str
) -> None:
    tree = await grown(database, people)
    await refused(
        database,
        Invalid,
        code,
        ("input", "topic"),
        lambda writing: mirrors.transplant_tree(writing, people.owner, tree.last.id, topic),
    )
