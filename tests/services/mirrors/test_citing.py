"""Quoting: five kinds of places, the original as it was, and never across characters."""

from __future__ import annotations

from typing import Any

import pytest

from db.engine import Database
from db.enums import CitationTarget, Realm
from db.tables import Citation
from services import mirrors
from services.errors import DomainError, Forbidden, Invalid, LimitReached, NotFound
from tests.conftest import People
from tests.factories import make_character, make_talk, make_tree
from tests.trees import events_of, fetch, grow, grown, refused

TEXT, IMAGE, PDF, ATTACHMENT, MEDIA = CitationTarget
BOX = {"x": 0.25, "y": 0, "width": 0.75, "height": 1}


@pytest.mark.parametrize(
    ("target", "kept", "quote"),
    [
        ({"start": 4, "end": 10}, {"start": 4, "end": 10}, "chosen"),
        ({"start": 4.0, "end": 10.0}, {"start": 4, "end": 10}, "chosen"),
        ({"start": 11, "end": 2_000}, {"start": 11, "end": 18}, "answer."),
        ({"start": 0, "end": 18}, {"start": 0, "end": 18}, "The chosen answer."),
    ],
)
async def test_a_text_is_quoted_as_it_is_now(
    database: Database, people: People, target: dict[str, Any], kept: dict[str, int], quote: str
) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        # What a caller says of a node's text and version is not believed.
        made = await mirrors.cite(
            writing, people.owner, tree.last.id, TEXT, tree.chosen.id, target, "Invented", 7
        )
    assert (made.target, made.quote) == (kept, quote)
    assert {type(each) for each in made.target.values()} == {int}
    assert (made.source_id, made.source_version) == (tree.chosen.id, 1)
    assert (await events_of(database, tree.tree))[-1] == (5, "node_cited", tree.last.id)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (IMAGE, BOX),
        (IMAGE, {"x": 0.9, "y": 0.7, "width": 0.1, "height": 0.3}),
        (PDF, {**BOX, "page": 3}),
        (ATTACHMENT, {}),
        (MEDIA, {"start": 0.5, "end": 7.25}),
    ],
)
async def test_a_place_elsewhere_is_quoted_as_it_is_given(
    database: Database, people: People, kind: CitationTarget, target: dict[str, Any]
) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        made = await mirrors.cite(
            writing, people.owner, tree.last.id, kind, "notes.pdf", target, "As it says.", 2
        )
    assert (made.target_kind, made.target, made.quote) == (kind, target, "As it says.")
    assert (made.source_id, made.source_version) == ("notes.pdf", 2)


TARGET = ("input", "target")
BAD: list[tuple[CitationTarget, Any, tuple[str, ...]]] = [
    (TEXT, None, TARGET),
    (TEXT, [], TARGET),
    (TEXT, "0-3", TARGET),
    (TEXT, {"start": 0}, TARGET),
    (TEXT, {"start": 0, "end": 3, "page": 1}, TARGET),
    (TEXT, {"start": "0", "end": 3}, (*TARGET, "start")),
    (TEXT, {"start": True, "end": 3}, (*TARGET, "start")),
    (TEXT, {"start": -1, "end": 3}, (*TARGET, "start")),
    (TEXT, {"start": 0, "end": 10**400}, (*TARGET, "end")),
    (TEXT, {"start": 0, "end": float("inf")}, (*TARGET, "end")),
    (TEXT, {"start": 0, "end": float("nan")}, (*TARGET, "end")),
    (TEXT, {"start": 0.5, "end": 3}, (*TARGET, "start")),
    (TEXT, {"start": 3, "end": 3}, (*TARGET, "end")),
    (IMAGE, {**BOX, "width": 0.8}, TARGET),
    (IMAGE, {**BOX, "height": 0}, TARGET),
    (IMAGE, {**BOX, "page": 1}, TARGET),
    (PDF, BOX, TARGET),
    (PDF, {**BOX, "page": 0}, (*TARGET, "page")),
    (PDF, {**BOX, "page": 1.5}, (*TARGET, "page")),
    (ATTACHMENT, {"start": 0, "end": 1}, TARGET),
    (MEDIA, {"start": 2, "end": 1.5}, (*TARGET, "end")),
]


@pytest.mark.parametrize(("kind", "target", "path"), BAD)
async def test_a_place_that_is_none_is_refused(
    database: Database, people: People, kind: CitationTarget, target: Any, path: tuple[str, ...]
) -> None:
    tree = await grown(database, people)
    await refused(
        database,
        Invalid,
        "BAD_TARGET",
        path,
        lambda writing: mirrors.cite(
            writing, people.owner, tree.last.id, kind, tree.chosen.id, target, "Quoted"
        ),
    )


RANGE = {"start": 0, "end": 3}


@pytest.mark.parametrize(
    ("kind", "source", "target", "quote", "error", "code", "path"),
    [
        (TEXT, "bud", RANGE, None, Invalid, "EMPTY_QUOTE", TARGET),
        (TEXT, "last", {"start": 99, "end": 100}, None, Invalid, "EMPTY_QUOTE", TARGET),
        (TEXT, "tree", RANGE, None, NotFound, "NOT_FOUND", ("input", "sourceId")),
        (IMAGE, "", BOX, "Quoted", Invalid, "TEXT_EMPTY", ("input", "sourceId")),
        (IMAGE, "x" * 501, BOX, "Quoted", Invalid, "TEXT_TOO_LONG", ("input", "sourceId")),
        (IMAGE, "x", BOX, None, Invalid, "TEXT_EMPTY", ("input", "quote")),
        (IMAGE, "x", BOX, "a\0b", Invalid, "INVALID_TEXT", ("input", "quote")),
    ],
)
async def test_a_source_and_a_quote_must_be_there(
    database: Database,
    people: People,
    kind: CitationTarget,
    source: str,
    target: dict[str, Any],
    quote: str | None,
    error: type[DomainError],
    code: str,
    path: tuple[str, ...],
) -> None:
    tree = await grown(database, people)
    thing = getattr(tree, source, None)
    source_id = thing.id if thing else source
    await refused(
        database,
        error,
        code,
        path,
        lambda writing: mirrors.cite(
            writing, people.owner, tree.last.id, kind, source_id, target, quote
        ),
    )


async def test_what_was_said_with_another_character_stays_there(
    database: Database, people: People
) -> None:
    """Glossary, section 10, no_cross_character_join."""
    async with database.writing() as writing:
        character = await make_character(writing, people.owner, "Ada")
        tree = await grow(writing, people.owner, await make_tree(writing, people.owner, character))
        near = await make_tree(writing, people.owner, character)
        near_path = await make_talk(writing, people.owner, near, turns=1)
        far = await make_tree(writing, people.owner)
        far_path = await make_talk(writing, people.owner, far, turns=1)
        hidden = await make_talk(
            writing, people.stranger, await make_tree(writing, people.stranger)
        )
        made = await mirrors.cite(writing, people.owner, tree.last.id, TEXT, near_path[1].id, RANGE)
    assert made.quote == "Ans"
    for source, kind, code in (
        (far_path[1], Forbidden, "PERSONA_AUTHORIZATION_REQUIRED"),
        (hidden[1], NotFound, "NOT_FOUND"),
    ):
        await refused(
            database,
            kind,
            code,
            ("input", "sourceId"),
            lambda writing, source=source: mirrors.cite(
                writing, people.owner, tree.last.id, TEXT, source.id, RANGE
            ),
        )


async def test_a_node_quotes_no_more_than_can_be_shown(database: Database, people: People) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        row = {
            "node_id": tree.last.id,
            "target_kind": TEXT,
            "target": RANGE,
            "quote": "The",
            "source_id": tree.chosen.id,
            "source_version": 1,
        }
        await writing.insert_many(
            Citation, [{**row, "id": f"cite_{number:026}"} for number in range(99)]
        )
        await mirrors.cite(writing, people.owner, tree.last.id, TEXT, tree.chosen.id, RANGE)
        found = await mirrors.citations_of_nodes(writing, people.owner, [tree.last.id])
    assert len(found[tree.last.id]) == mirrors.MAX_CITATIONS == 100
    await refused(
        database,
        LimitReached,
        "LIMIT_REACHED",
        ("input", "nodeId"),
        lambda writing: mirrors.cite(
            writing, people.owner, tree.last.id, TEXT, tree.chosen.id, RANGE
        ),
    )


async def test_a_quote_stays_as_it_was_when_its_source_is_put_right(
    database: Database, people: People
) -> None:
    """Rule M11."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        made = await mirrors.cite(
            writing, people.owner, tree.last.id, TEXT, tree.chosen.id, {"start": 0, "end": 10}
        )
        await mirrors.canonize_path(writing, people.owner, tree.chosen.id, Realm.REALITY)
        edited = await mirrors.edit_node(writing, people.owner, tree.chosen.id, "Edited.")
        right, _ = await mirrors.correct_node(writing, people.owner, tree.chosen.id, "Right.")
        later = await mirrors.edit_node(writing, people.owner, edited.id, "Edited again.")
        ids = [tree.chosen.id, edited.id, right.id, tree.last.id]
        newest = await mirrors.newest_versions_of_nodes(writing, people.owner, ids)
        hidden = await mirrors.newest_versions_of_nodes(writing, people.stranger, ids)
    assert await fetch(database, "SELECT quote, source_version FROM citations") == [
        ("The chosen", 1)
    ]
    assert made.quote == "The chosen"
    # The longest chain leads; of equal ones the last that was made.
    assert {key: node.id for key, node in newest.items()} == {
        tree.chosen.id: later.id,
        edited.id: later.id,
    }
    assert hidden == {}
