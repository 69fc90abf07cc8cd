"""Law 6: services never commit, and a handle for reading cannot write."""

from __future__ import annotations

import ast
from typing import Any

import asyncpg
import pytest
from sqlalchemy import delete, insert, update
from sqlmodel import col

from db.reading import Reading, Writing, compile_statement, param, record_class
from db.tables import Role, Setting, User
from tests.architecture.sources import Source, method_calls, snippet, sources
from tests.architecture.world import World

ENDINGS = {"commit", "rollback", "transaction", "begin", "begin_nested", "savepoint"}
ENDING_WORDS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "START TRANSACTION")
# Works on its own account, without an operation that would open a transaction for it.
OPENS_TRANSACTIONS = {
    # Keep what was embedded as soon as it is, between calls of a model.
    "services.embedding.swapping",
    "services.embedding.syncing",
    "services.housekeeping",
    "services.rehearsing",
    "services.runs.worker",
    "services.runs.working",
    # Keeps the words of texts that are looked into for the first time.
    "services.searching.texts",
}


def endings(source: Source) -> list[str]:
    """Everything that begins or ends a transaction."""
    found = [source.at(call, name) for call, name in method_calls(source) if name in ENDINGS]
    return found + [
        source.at(node, node.value)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.strip().upper().startswith(ENDING_WORDS)
        if node.value.strip().partition(" ")[0].isupper()
    ]


def opens_transactions(source: Source) -> bool:
    return any(name == "writing" for _, name in method_calls(source))


def public_names(kind: type[Any]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_services_and_resolvers_never_commit() -> None:
    assert [each for source in sources("services", "resolvers") for each in endings(source)] == []


def test_a_commit_is_noticed() -> None:
    text = (
        "async def f(writing):\n"
        "    await writing.commit()\n"
        "    await session.rollback()\n"
        "    async with connection.transaction():\n"
        "        await connection.execute('COMMIT')\n"
        "        raise Invalid('Begin with a letter.')\n"
    )
    assert endings(snippet(text)) == [
        "services.sample:2: commit",
        "services.sample:3: rollback",
        "services.sample:4: transaction",
        "services.sample:5: COMMIT",
    ]


def test_services_open_no_transactions() -> None:
    found = {source.name for source in sources("services") if opens_transactions(source)}
    assert found == OPENS_TRANSACTIONS
    opening = "async def f(database):\n    async with database.writing() as w: ...\n"
    assert opens_transactions(snippet(opening))


def test_a_reading_handle_has_nothing_to_write_with() -> None:
    assert public_names(Reading) == {"all", "first", "value"}
    assert public_names(Writing) - public_names(Reading) == {
        "insert",
        "insert_many",
        "notify",
        "run",
    }


@pytest.mark.parametrize(
    "change",
    [
        insert(Role).values(id=param("id"), name="member").returning(col(Role.id)),
        update(User).values(name=param("id")).returning(col(User.id)),
        delete(Setting).where(col(Setting.id) != param("id")).returning(col(Setting.id)),
    ],
    ids=["insert", "update", "delete"],
)
async def test_the_database_refuses_a_write_through_a_reading_handle(
    world: World, change: Any
) -> None:
    statement = compile_statement(change, record_class(object))
    async with world.database.reading() as reading:
        for read in (reading.all, reading.first, reading.value):
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await read(statement, id="sample")


async def test_what_raises_leaves_nothing_behind(world: World) -> None:
    async def break_off() -> None:
        async with world.database.writing() as writing:
            await writing.insert(Role, name="member")
            raise ZeroDivisionError

    before = await world.all_rows(Role)
    with pytest.raises(ZeroDivisionError):
        await break_off()
    assert await world.all_rows(Role) == before
