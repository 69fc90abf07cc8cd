"""Asking, adopting, editing and continuing, and the rules that the database itself holds."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from db.engine import Database
from db.enums import NodeStatus, NodeType, Realm
from db.ids import new_id
from db.paging import FIRST_PAGE
from db.tables import TreeNode
from services import mirrors, runs
from services.errors import Conflict, Invalid, NotFound
from tests.conftest import People
from tests.factories import make_answer, make_character, make_talk, make_tree
from tests.trees import events_of, fetch, grown, refused, tree_now

PROVIDER: dict[str, Any] = {"provider": "demo", "model": None}


async def test_a_talk_grows_along_the_adopted_path(database: Database, people: People) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        path = await make_talk(writing, people.owner, tree, turns=3)
        found = await mirrors.paths_to_nodes(writing, people.owner, [path[-1].id, path[2].id])
    assert [node.id for node in found[path[-1].id]] == [node.id for node in path]
    assert [node.id for node in found[path[2].id]] == [node.id for node in path[:3]]


async def test_a_tree_in_a_world_needs_that_world(database: Database, people: People) -> None:
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
    await refused(
        database,
        Invalid,
        "WORLD_ID_REQUIRED",
        ("input", "realm"),
        lambda writing: mirrors.create_tree(
            writing, people.owner, character.id, "Where?", Realm.WORLD
        ),
    )


async def test_a_question_needs_an_adopted_answer_above_it(
    database: Database, people: People
) -> None:
    """Rule M2. Spec soul-mirror, section 2, invariant 2 (child_follows_adopted_candidate)."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        elsewhere = await make_talk(writing, people.owner, await make_tree(writing, people.owner))
    for parent_id, kind, code in (
        (tree.other.id, Conflict, "PARENT_NOT_ADOPTED"),
        (tree.second.id, Invalid, "BAD_PARENT_KIND"),
        (tree.bud.id, Conflict, "PARENT_NOT_FINISHED"),
        (None, Invalid, "PARENT_REQUIRED"),
        (tree.tree.id, NotFound, "NOT_FOUND"),
        (elsewhere[-1].id, NotFound, "NOT_FOUND"),
    ):
        await refused(
            database,
            kind,
            code,
            ("input", "parentId"),
            lambda writing, parent_id=parent_id: mirrors.add_question(
                writing, people.owner, tree.tree.id, parent_id, "And?"
            ),
        )
    async with database.writing() as writing:
        await mirrors.adopt_node(writing, people.owner, tree.other.id)
        question = await mirrors.add_question(
            writing, people.owner, tree.tree.id, tree.other.id, "And?"
        )
    assert question.parent_node_id == tree.other.id
    await refused(
        database,
        Conflict,
        "PARENT_NOT_ADOPTED",
        ("input", "parentId"),
        lambda writing: mirrors.add_question(
            writing, people.owner, tree.tree.id, tree.chosen.id, "And?"
        ),
    )


async def test_an_edit_stands_beside_what_it_was_made_from(
    database: Database, people: People
) -> None:
    """Rule M7."""
    tree = await grown(database, people)
    before = await fetch(database, "SELECT * FROM tree_nodes ORDER BY id")
    async with database.writing() as writing:
        for old in (tree.first, tree.chosen, tree.second, tree.last):
            new = await mirrors.edit_node(writing, people.owner, old.id, f"{old.content} Edited.")
            assert (new.parent_node_id, new.node_type, new.realm, new.status) == (
                old.parent_node_id,
                old.node_type,
                old.realm,
                NodeStatus.SOLIDIFIED,
            )
            assert (new.content, new.content_version) == (f"{old.content} Edited.", 2)
            assert (new.supersedes_node_id, new.model, new.run_id) == (old.id, None, None)
        third = await mirrors.edit_node(writing, people.owner, new.id, "Once more.")
    assert (third.content_version, third.supersedes_node_id) == (3, new.id)
    after = await fetch(database, "SELECT * FROM tree_nodes ORDER BY id")
    assert [row for row in after if row in before] == before
    assert len(after) == len(before) + 5
    now = await tree_now(database, people.owner, tree.tree)
    assert (now.working_entry_node_id, now.version) == (tree.last.id, tree.tree.version)


async def test_an_edited_answer_can_be_adopted_and_an_edited_question_answered(
    database: Database, people: People
) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        answer = await mirrors.edit_node(writing, people.owner, tree.chosen.id, "Better.")
        question = await mirrors.edit_node(writing, people.owner, tree.first.id, "Better?")
        await mirrors.adopt_node(writing, people.owner, answer.id)
        run = await runs.regenerate_answer(writing, people.owner, question.id, **PROVIDER)
        below = await mirrors.add_question(
            writing, people.owner, tree.tree.id, answer.id, "And then?"
        )
    assert run.question_node_id == question.id
    assert below.parent_node_id == answer.id


async def test_only_an_adopted_answer_is_gone_on_from(database: Database, people: People) -> None:
    """Rule M8."""
    tree = await grown(database, people)
    await refused(
        database,
        Conflict,
        "PARENT_NOT_ADOPTED",
        ("input", "nodeId"),
        lambda writing: runs.continue_node(writing, people.owner, tree.other.id, **PROVIDER),
    )
    async with database.writing() as writing:
        for node in (tree.chosen, tree.last):
            run = await runs.continue_node(writing, people.owner, node.id, **PROVIDER)
            assert (run.question_node_id, run.node_id) == (node.id, None)


async def test_only_a_question_is_answered_again(database: Database, people: People) -> None:
    tree = await grown(database, people)
    await refused(
        database,
        Invalid,
        "NOT_A_QUESTION",
        ("input", "questionId"),
        lambda writing: runs.regenerate_answer(writing, people.owner, tree.last.id, **PROVIDER),
    )


async def test_each_change_is_an_event(database: Database, people: People) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        edited = await mirrors.edit_node(writing, people.owner, tree.last.id, "Edited.")
    assert await events_of(database, tree.tree) == [
        (1, "node_planted", tree.first.id),
        (2, "entry_moved", tree.chosen.id),
        (3, "node_planted", tree.second.id),
        (4, "entry_moved", tree.last.id),
        (5, "node_planted", edited.id),
    ]
    assert (await tree_now(database, people.owner, tree.tree)).last_seq == 5


async def test_what_is_final_never_changes(database: Database, people: People) -> None:
    """Rule M1 (spec soul-mirror, section 2, invariant 1), held by the database."""
    tree = await grown(database, people)
    changes = ("content = 'other'", "status = 'bud'", "parent_node_id = NULL")
    for node, change in [
        *((tree.last, each) for each in changes),
        (tree.bud, "node_type = 'question'"),
        (tree.bud, "parent_node_id = NULL"),
    ]:
        with pytest.raises(asyncpg.PostgresError) as caught:
            async with database.writing() as writing:
                await writing._connection.execute(
                    f"UPDATE tree_nodes SET {change} WHERE id = $1", node.id
                )
        assert caught.value.sqlstate == "MG001"


async def test_a_parent_stands_in_the_same_tree(database: Database, people: People) -> None:
    """Rule M6, held by the database."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        other = await make_tree(writing, people.owner)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with database.writing() as writing:
            await writing.insert(TreeNode, **_row(other.id, tree.last.id, NodeType.QUESTION))


QUESTION, ANSWER, THOUGHT = NodeType
VERSION = "a version stands where the node stands that it is a version of"


def _row(
    tree_id: str, parent_id: str | None, kind: NodeType, supersedes: str | None = None
) -> dict[str, Any]:
    return {
        "id": new_id("tree_nodes"),
        "tree_id": tree_id,
        "parent_node_id": parent_id,
        "node_type": kind,
        "status": NodeStatus.SOLIDIFIED,
        "realm": Realm.REALITY,
        "content": "Text.",
        "supersedes_node_id": supersedes,
    }


@pytest.mark.parametrize(
    ("parent", "kind", "supersedes", "trouble"),
    [
        (None, ANSWER, None, "a tree begins with a question"),
        (None, THOUGHT, None, "a tree begins with a question"),
        ("first", QUESTION, None, "no question stands below a question"),
        ("first", THOUGHT, None, "no continued_thought stands below a question"),
        ("last", ANSWER, None, "no candidate_answer stands below a candidate_answer"),
        ("second", ANSWER, "last", None),
        ("second", ANSWER, "chosen", VERSION),
        ("last", QUESTION, "second", VERSION),
        (None, QUESTION, "second", VERSION),
        ("chosen", THOUGHT, "second", VERSION),
        (None, QUESTION, "first", None),
        ("last", QUESTION, None, None),
        ("last", THOUGHT, None, None),
        ("first", ANSWER, None, None),
    ],
)
async def test_the_database_knows_what_stands_below_what(
    database: Database,
    people: People,
    parent: str | None,
    kind: NodeType,
    supersedes: str | None,
    trouble: str | None,
) -> None:
    """Rule M9, whether rows come alone or many at once."""
    tree = await grown(database, people)
    parent_id = parent and getattr(tree, parent).id
    earlier_id = supersedes and getattr(tree, supersedes).id
    good = _row(tree.tree.id, tree.last.id, QUESTION)
    bad = _row(tree.tree.id, parent_id, kind, earlier_id)
    ((before,),) = await fetch(database, "SELECT count(*) FROM tree_nodes")
    for rows in ([bad], [good, bad]):
        rows = [{**row, "id": new_id("tree_nodes")} for row in rows]
        if trouble is None:
            async with database.writing() as writing:
                await writing.insert_many(TreeNode, rows)
            continue
        with pytest.raises(asyncpg.PostgresError) as caught:
            async with database.writing() as writing:
                await writing.insert_many(TreeNode, rows)
        assert (caught.value.sqlstate, str(caught.value)) == ("MG002", trouble)
    ((count,),) = await fetch(database, "SELECT count(*) FROM tree_nodes")
    assert count == before + (0 if trouble else 3)


async def test_a_version_stands_in_the_tree_of_what_it_was_made_from(
    database: Database, people: People
) -> None:
    """Rule M9."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        other = await make_tree(writing, people.owner)
    with pytest.raises(asyncpg.PostgresError, match=VERSION):
        async with database.writing() as writing:
            await writing.insert(TreeNode, **_row(other.id, None, QUESTION, tree.first.id))


@pytest.mark.parametrize("is_parent_first", [True, False])
async def test_rows_of_one_statement_are_judged_together(
    database: Database, people: People, is_parent_first: bool
) -> None:
    """Rule M9: a child that is listed before its parent is no way around the rule."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
    question = _row(tree.id, None, QUESTION)
    for kind, is_allowed in ((QUESTION, False), (ANSWER, True)):
        below = _row(tree.id, question["id"], kind)
        rows = [question, below] if is_parent_first else [below, question]
        values = ", ".join(
            f"('{row['id']}', '{tree.id}', {parent}, '{row['node_type']}', 'solidified', "
            "'reality', 'Text.', 1)"
            for row in rows
            for parent in [f"'{row['parent_node_id']}'" if row["parent_node_id"] else "NULL"]
        )
        sql = (
            "INSERT INTO tree_nodes (id, tree_id, parent_node_id, node_type, status, realm,"
            f" content, content_version) VALUES {values}"
        )
        if is_allowed:
            async with database.writing() as writing:
                await writing._connection.execute(sql)
        else:
            with pytest.raises(asyncpg.PostgresError) as caught:
                async with database.writing() as writing:
                    await writing._connection.execute(sql)
            assert caught.value.sqlstate == "MG002"
    assert await fetch(database, "SELECT count(*) FROM tree_nodes") == [(2,)]


async def test_siblings_versions_and_roots_are_listed_in_order(
    database: Database, people: People
) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        versions = [
            await mirrors.edit_node(writing, people.owner, tree.first.id, f"Version {number}?")
            for number in range(2)
        ]
        partial = await make_answer(writing, tree.first, "Half an", NodeStatus.PARTIAL)
        given = (FIRST_PAGE,)
        viewer = people.owner.parameters
        (roots,) = await mirrors.ROOTS_OF_TREES.pages(writing, [tree.tree.id], *given, **viewer)
        (made,) = await mirrors.VERSIONS_OF_NODES.pages(writing, [tree.first.id], *given, **viewer)
        (below,) = await mirrors.CHILDREN_OF_NODES.pages(writing, [tree.first.id], *given, **viewer)
    assert [node.id for node in roots.nodes] == [tree.first.id, *(each.id for each in versions)]
    assert [node.id for node in made.nodes] == [each.id for each in versions]
    assert [node.id for node in below.nodes] == [tree.chosen.id, tree.other.id, partial.id]
