"""Law 7: what a branch is made of changes through the delta log only, and the database itself
guards the tables that only grow.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

import asyncpg
import pytest

from db.tables import metadata
from tests.architecture.declared import table_classes
from tests.architecture.sources import Source, snippet, sources
from tests.architecture.world import World

APPEND_ONLY = (
    "run_events",
    "audit_events",
    "factual_records",
    "canonizations",
    "identity_record_versions",
    "covenant_events",
    "tree_events",
)
EXISTING = [name for name in APPEND_ONLY if name in metadata.tables]
OTHER_TRIGGERS = {
    ("characters", "characters_keep_their_identity", "check_identity_baseline"),
    ("tree_nodes", "tree_nodes_no_update", "refuse_change"),
    ("tree_nodes", "tree_nodes_stand_in_order", "check_tree_nodes"),
    ("tree_nodes", "tree_nodes_of_the_living", "check_lives"),
}
WRITES = {"insert", "insert_many", "update", "delete"}
# The delta log's writer; and captures, which no log has.
WRITES_BRANCHES = ("services.deltas", "services.retrieval.capturing")


def classes_in_branches() -> set[str]:
    """Table classes whose rows belong to a branch: its id is part of their key."""
    return {
        name
        for name, table in table_classes().items()
        if "branch_id" in metadata.tables[str(table.__tablename__)].primary_key.columns
    }


def writes(source: Source, classes: Collection[str]) -> list[str]:
    """Statements and calls that change rows of these classes."""
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
            function, target = node.func, node.args[0].id
            name = function.attr if isinstance(function, ast.Attribute) else None
            name = function.id if isinstance(function, ast.Name) else name
            # What an action of the log does is logged.
            of_the_log = isinstance(function, ast.Attribute) and _is_action(function.value)
            if name in WRITES and target in classes and not of_the_log:
                found.append(source.at(node, f"{name} {target}"))
    return found


def _is_action(value: ast.expr) -> bool:
    return ast.unparse(value).rpartition(".")[2] == "action"


@pytest.mark.parametrize("table", EXISTING)
async def test_a_table_that_only_grows_refuses_everything_else(world: World, table: str) -> None:
    async with world.database.writing() as writing:
        rows = await writing._connection.fetchval(f"SELECT count(*) FROM {table}")
    assert rows > 0  # triggers for each row say nothing about an empty table
    column = next(iter(metadata.tables[table].columns)).name
    for change in (
        f"UPDATE {table} SET {column} = {column}",
        f"DELETE FROM {table}",
        f"TRUNCATE {table} CASCADE",
    ):
        with pytest.raises(asyncpg.PostgresError) as refused:
            async with world.database.writing() as writing:
                await writing._connection.execute(change)
        assert refused.value.sqlstate == "MG001", change
    async with world.database.writing() as writing:
        assert await writing._connection.fetchval(f"SELECT count(*) FROM {table}") == rows


async def test_the_triggers_are_these(world: World) -> None:
    async with world.database.reading() as reading:
        found = await reading._connection.fetch(
            """
            SELECT class.relname, trigger.tgname, function.proname, trigger.tgenabled
            FROM pg_trigger AS trigger
            JOIN pg_class AS class ON class.oid = trigger.tgrelid
            JOIN pg_proc AS function ON function.oid = trigger.tgfoid
            WHERE NOT trigger.tgisinternal
            """
        )
    expected = {
        (table, f"{table}_{what}", "refuse_change")
        for table in EXISTING
        for what in ("append_only", "no_truncate")
    }
    assert EXISTING
    assert {tuple(each)[:3] for each in found} == expected | OTHER_TRIGGERS
    assert {each["tgenabled"] for each in found} == {b"O"}


def test_branches_are_written_by_the_delta_log_only() -> None:
    inside = classes_in_branches()
    found = [
        each
        for source in sources("services", "resolvers")
        if not source.name.startswith(WRITES_BRANCHES)
        for each in writes(source, inside)
    ]
    assert found == []


def test_a_write_around_the_delta_log_is_noticed() -> None:
    text = (
        "async def f(writing):\n"
        "    await writing.insert(StoryEntry, content='x')\n"
        "    await writing.run(update(Entity).values(name='x'))\n"
        "    await writing.insert(Run, kind='x')\n"
        "    await writing.insert_many(StoryEntry, [])\n"
        "    await action.update(StoryEntry, row, {})\n"
        "    await self.action.delete(StoryEntry, row)\n"
    )
    assert writes(snippet(text), {"StoryEntry", "Entity"}) == [
        "services.sample:2: insert StoryEntry",
        "services.sample:5: insert_many StoryEntry",
        "services.sample:3: update Entity",
    ]
