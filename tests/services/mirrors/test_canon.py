"""Canon: records that never change, their corrections, and whether they still stand."""

from __future__ import annotations

import hashlib
import json

import asyncpg
import pytest

from db.engine import Database
from db.enums import Realm
from db.tables import Canonization
from services import mirrors
from services.errors import Conflict, Invalid, NotFound
from tests.conftest import People
from tests.trees import Grown, events_of, fetch, grown, refused, run_sql, tree_now


async def canonize(
    database: Database, people: People, node_id: str, scope: Realm = Realm.REALITY
) -> Canonization:
    async with database.writing() as writing:
        return await mirrors.canonize_path(writing, people.owner, node_id, scope)


async def trunk(
    database: Database, people: People, tree: Grown, scope: Realm = Realm.REALITY
) -> list[str]:
    async with database.reading() as reading:
        found = await mirrors.canon_trunks_of_trees(reading, people.owner, [tree.tree.id], scope)
    return [node.id for node in found[tree.tree.id]]


async def test_a_record_says_what_was_confirmed(database: Database, people: People) -> None:
    """Rule M4. The digest can be made again by anybody who has the path."""
    tree = await grown(database, people)
    record = await canonize(database, people, tree.last.id)
    path = [tree.first, tree.chosen, tree.second, tree.last]
    text = json.dumps(
        [[node.id, node.content] for node in path], ensure_ascii=False, separators=(",", ":")
    )
    assert (record.tree_id, record.scope, record.world_id) == (tree.tree.id, "reality", None)
    assert (record.endpoint_node_id, record.path_length) == (tree.last.id, 4)
    assert record.snapshot_digest == hashlib.sha256(text.encode()).hexdigest()
    assert record.snapshot_digest == mirrors.path_digest(path)
    assert record.confirmed_by_user_id == people.owner.user_id
    assert record.corrects_canonization_id is None
    assert (await events_of(database, tree.tree))[-1] == (5, "path_canonized", tree.last.id)


async def test_canon_is_a_union_of_paths_and_adoption_leaves_it_alone(
    database: Database, people: People
) -> None:
    """Rules M3, M4. Spec soul-mirror, section 2, invariants 3 and 4."""
    tree = await grown(database, people)
    await canonize(database, people, tree.chosen.id)
    records = await fetch(database, "SELECT * FROM canonizations")
    async with database.writing() as writing:
        await mirrors.adopt_node(writing, people.owner, tree.other.id)
    assert await fetch(database, "SELECT * FROM canonizations") == records
    assert await trunk(database, people, tree) == [tree.first.id, tree.chosen.id]
    assert await trunk(database, people, tree, Realm.SIMULATION) == []
    await canonize(database, people, tree.other.id)
    assert await trunk(database, people, tree) == [tree.first.id, tree.chosen.id, tree.other.id]
    await canonize(database, people, tree.last.id)
    assert await trunk(database, people, tree) == [
        each.id for each in (tree.first, tree.chosen, tree.other, tree.second, tree.last)
    ]
    for change in ("DELETE FROM canonizations", "UPDATE canonizations SET path_length = 9"):
        with pytest.raises(asyncpg.PostgresError, match="never change"):
            await run_sql(database, change)


async def test_a_path_counts_once_and_in_its_own_realm(database: Database, people: People) -> None:
    tree = await grown(database, people)
    await canonize(database, people, tree.last.id)
    for scope, world, kind, code, field in (
        (Realm.REALITY, None, Conflict, "ALREADY_CANON", "endpointId"),
        (Realm.SIMULATION, None, Invalid, "REALM_MISMATCH", "scope"),
        (Realm.WORLD, None, Invalid, "WORLD_ID_REQUIRED", "worldId"),
        (Realm.WORLD, "world_1", NotFound, "NOT_FOUND", "worldId"),
        (Realm.REALITY, "world_1", NotFound, "NOT_FOUND", "worldId"),
    ):
        await refused(
            database,
            kind,
            code,
            ("input", field),
            lambda writing, scope=scope, world=world: mirrors.canonize_path(
                writing, people.owner, tree.last.id, scope, world
            ),
        )


async def test_canon_in_a_world_needs_that_world(database: Database, people: People) -> None:
    """Rule M5, held by the database."""
    tree = await grown(database, people)
    with pytest.raises(asyncpg.CheckViolationError, match="ck_canonizations_world_id"):
        async with database.writing() as writing:
            await writing.insert(
                Canonization,
                tree_id=tree.tree.id,
                scope=Realm.WORLD,
                endpoint_node_id=tree.last.id,
                path_length=4,
                snapshot_digest="x",
                confirmed_by_user_id=people.owner.user_id,
            )


@pytest.mark.parametrize("name", ["first", "chosen", "second", "last"])
async def test_a_correction_is_a_new_node_and_a_new_record(
    database: Database, people: People, name: str
) -> None:
    """Rule M10. Spec soul-mirror, section 2, invariant 4."""
    tree = await grown(database, people)
    earlier = await canonize(database, people, tree.last.id)
    old = getattr(tree, name)
    rows = await fetch(database, "SELECT * FROM tree_nodes UNION ALL SELECT * FROM tree_nodes")
    async with database.writing() as writing:
        node, records = await mirrors.correct_node(writing, people.owner, old.id, "Put right.")
        again, later = await mirrors.correct_node(writing, people.owner, node.id, "Once more.")
    place = [tree.first, tree.chosen, tree.second, tree.last].index(old) + 1
    assert (node.supersedes_node_id, node.parent_node_id) == (old.id, old.parent_node_id)
    assert (again.supersedes_node_id, again.content_version) == (node.id, 3)
    for version, (record,), put_right in ((node, records, earlier), (again, later, records[0])):
        assert record.corrects_canonization_id == put_right.id
        assert (record.endpoint_node_id, record.path_length) == (version.id, place)
        assert record.scope == "reality"
    assert set(rows) <= set(await fetch(database, "SELECT * FROM tree_nodes"))
    found = await trunk(database, people, tree)
    assert set(found) == {
        each.id for each in (tree.first, tree.chosen, tree.second, tree.last, node, again)
    }
    assert (await events_of(database, tree.tree))[-4:] == [
        (6, "node_planted", node.id),
        (7, "path_canonized", node.id),
        (8, "node_planted", again.id),
        (9, "path_canonized", again.id),
    ]
    now = await tree_now(database, people.owner, tree.tree)
    assert now.working_entry_node_id == tree.last.id


async def test_of_several_records_of_a_scope_the_last_is_put_right(
    database: Database, people: People
) -> None:
    tree = await grown(database, people)
    await canonize(database, people, tree.last.id)
    last = await canonize(database, people, tree.chosen.id)
    # A second scope, as an importer might bring it.
    async with database.writing() as writing:
        other = await writing.insert(
            Canonization,
            tree_id=tree.tree.id,
            scope=Realm.SIMULATION,
            endpoint_node_id=tree.other.id,
            path_length=2,
            snapshot_digest="x",
            confirmed_by_user_id=people.owner.user_id,
        )
    async with database.writing() as writing:
        _, records = await mirrors.correct_node(writing, people.owner, tree.chosen.id, "Right.")
    assert [each.corrects_canonization_id for each in records] == [last.id]
    # A node that counts in a realm that is not its own cannot be put right there.
    await refused(
        database,
        Invalid,
        "REALM_MISMATCH",
        ("input", "scope"),
        lambda writing: mirrors.correct_node(writing, people.owner, tree.other.id, "Right."),
    )
    assert other.scope == "simulation"


async def test_what_is_not_canon_is_edited_instead(database: Database, people: People) -> None:
    tree = await grown(database, people)
    await canonize(database, people, tree.chosen.id)
    for node in (tree.other, tree.second, tree.last):
        await refused(
            database,
            Conflict,
            "NOT_CANON",
            ("input", "nodeId"),
            lambda writing, node=node: mirrors.correct_node(writing, people.owner, node.id, "No."),
        )


async def test_a_record_is_intact_while_its_path_is_what_was_confirmed(
    database: Database, people: People
) -> None:
    """Rule M4: the digest is looked at again, not believed."""
    tree = await grown(database, people)
    records = [
        await canonize(database, people, node.id) for node in (tree.chosen, tree.other, tree.last)
    ]

    async def flags() -> list[bool]:
        async with database.reading() as reading:
            return await mirrors.intact_flags(reading, people.owner, [*records, records[0]])

    assert await flags() == [True] * 4
    async with database.reading() as reading:
        assert await mirrors.intact_flags(reading, people.stranger, records) == [False] * 3
        assert await mirrors.intact_flags(reading, people.owner, []) == []
    # Somebody with all rights goes around the trigger.
    await run_sql(database, "ALTER TABLE tree_nodes DISABLE TRIGGER tree_nodes_no_update")
    await run_sql(database, "UPDATE tree_nodes SET content = '!' WHERE id = $1", tree.other.id)
    assert await flags() == [True, False, True, True]
    await run_sql(database, "UPDATE tree_nodes SET content = '!' WHERE id = $1", tree.first.id)
    assert await flags() == [False] * 4
