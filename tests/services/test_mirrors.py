from __future__ import annotations

import asyncpg
import pytest

from db.engine import Database
from db.enums import NodeStatus, NodeType, Realm
from db.tables import Canonization, TreeNode
from services import mirrors
from services.errors import Conflict, DomainError, Invalid, NotFound
from tests.conftest import People
from tests.factories import make_answer, make_character, make_talk, make_tree


async def refused(expected: type[DomainError], code: str, work: object) -> DomainError:
    with pytest.raises(expected) as caught:
        await work  # type: ignore[misc]
    assert caught.value.code == code
    return caught.value


async def test_a_talk_grows_along_the_adopted_path(database: Database, people: People) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        path = await make_talk(writing, people.owner, tree, turns=3)
        found = await mirrors.paths_to_nodes(writing, people.owner, [path[-1].id, path[2].id])
    assert [node.id for node in found[path[-1].id]] == [node.id for node in path]
    assert [node.id for node in found[path[2].id]] == [node.id for node in path[:3]]


async def test_a_question_needs_an_adopted_answer_above_it(
    database: Database, people: People
) -> None:
    """Rule M2. Spec soul-mirror, section 2, invariant 2 (child_follows_adopted_candidate)."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        question, chosen = await make_talk(writing, people.owner, tree, turns=1)
        other = await make_answer(writing, question, "Another answer.")

        async def ask(parent_id: str | None) -> object:
            return await mirrors.add_question(writing, people.owner, tree.id, parent_id, "And?")

        error = await refused(Conflict, "PARENT_NOT_ADOPTED", ask(other.id))
        assert error.path == ("input", "parentId")
        await refused(Invalid, "BAD_PARENT_KIND", ask(question.id))
        await refused(Invalid, "PARENT_REQUIRED", ask(None))
        await refused(NotFound, "NOT_FOUND", ask(tree.id))
        await mirrors.adopt_node(writing, people.owner, other.id)
        await ask(other.id)
        await refused(Conflict, "PARENT_NOT_ADOPTED", ask(chosen.id))


async def test_a_bud_can_be_neither_adopted_nor_asked_under(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        question = await mirrors.add_question(writing, people.owner, tree.id, None, "Well?")
        bud = await make_answer(writing, question, "", NodeStatus.BUD)
        await refused(
            Conflict, "PARENT_NOT_FINISHED", mirrors.adopt_node(writing, people.owner, bud.id)
        )


async def test_what_is_solid_never_changes(database: Database, people: People) -> None:
    """Rule M1 (spec soul-mirror, section 2, invariant 1), held by the database."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        path = await make_talk(writing, people.owner, tree, turns=1)
    for change in ("content = 'other'", "status = 'bud'", "parent_node_id = NULL"):
        with pytest.raises(asyncpg.PostgresError) as caught:
            async with database.writing() as writing:
                await writing._connection.execute(
                    f"UPDATE tree_nodes SET {change} WHERE id = $1", path[1].id
                )
        assert caught.value.sqlstate == "MG001"


async def test_canon_is_a_union_of_paths_and_adoption_leaves_it_alone(
    database: Database, people: People
) -> None:
    """Rules M3, M4. Spec soul-mirror, section 2, invariants 3 and 4."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        path = await make_talk(writing, people.owner, tree, turns=2)
        record = await mirrors.canonize_path(writing, people.owner, path[1].id, Realm.REALITY)
        assert record.path_length == 2
        assert record.snapshot_digest == mirrors.path_digest(path[:2])
        other = await make_answer(writing, path[0], "Another answer.")
        await mirrors.adopt_node(writing, people.owner, other.id)

        async def trunk(scope: Realm) -> list[str]:
            found = await mirrors.canon_trunks_of_trees(writing, people.owner, [tree.id], scope)
            return [node.id for node in found[tree.id]]

        assert await trunk(Realm.REALITY) == [node.id for node in path[:2]]
        assert await trunk(Realm.SIMULATION) == []
        await mirrors.canonize_path(writing, people.owner, other.id, Realm.REALITY)
        assert await trunk(Realm.REALITY) == [path[0].id, path[1].id, other.id]
    with pytest.raises(asyncpg.PostgresError, match="never change"):
        async with database.writing() as writing:
            await writing._connection.execute("DELETE FROM canonizations")


async def test_canon_in_a_world_needs_that_world(database: Database, people: People) -> None:
    """Rule M5."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        path = await make_talk(writing, people.owner, tree, turns=1)
        canonize = mirrors.canonize_path(writing, people.owner, path[1].id, Realm.WORLD)
        await refused(Invalid, "WORLD_ID_REQUIRED", canonize)
        with pytest.raises(asyncpg.CheckViolationError, match="ck_canonizations_world_id"):
            await writing.insert(
                Canonization,
                tree_id=tree.id,
                scope=Realm.WORLD,
                endpoint_node_id=path[1].id,
                path_length=2,
                snapshot_digest=mirrors.path_digest(path),
                confirmed_by_user_id=people.owner.user_id,
            )


async def test_a_parent_stands_in_the_same_tree(database: Database, people: People) -> None:
    """Rule M6, held by the database."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        path = await make_talk(writing, people.owner, tree, turns=1)
        other = await make_tree(writing, people.owner)
        with pytest.raises(asyncpg.ForeignKeyViolationError, match="parent_node_id"):
            await writing.insert(
                TreeNode,
                tree_id=other.id,
                parent_node_id=path[1].id,
                node_type=NodeType.QUESTION,
                status=NodeStatus.SOLIDIFIED,
                realm=Realm.REALITY,
            )


async def test_strangers_see_no_tree_and_change_none(database: Database, people: People) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        path = await make_talk(writing, people.owner, tree, turns=1)
        for viewer in (people.stranger, people.anonymous):
            assert await mirrors.paths_to_nodes(writing, viewer, [path[-1].id]) == {}
            await refused(
                NotFound,
                "NOT_FOUND",
                mirrors.add_question(writing, viewer, tree.id, path[-1].id, "Mine now?"),
            )
            await refused(NotFound, "NOT_FOUND", mirrors.adopt_node(writing, viewer, path[-1].id))
            await refused(
                NotFound,
                "NOT_FOUND",
                mirrors.canonize_path(writing, viewer, path[-1].id, Realm.REALITY),
            )


async def test_text_is_checked_before_the_database_sees_it(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        character = await make_character(writing, people.owner)
        tree = await make_tree(writing, people.owner, character)
        for text, code in (
            ("a\0b", "INVALID_TEXT"),
            ("\ud83d", "INVALID_TEXT"),
            ("  \n", "TEXT_EMPTY"),
            ("x" * 1_000_001, "TEXT_TOO_LONG"),
        ):
            error = await refused(
                Invalid, code, mirrors.add_question(writing, people.owner, tree.id, None, text)
            )
            assert error.path == ("input", "text")
