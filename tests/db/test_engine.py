from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import asyncpg
import pytest
from sqlalchemy import Float, func, select
from sqlmodel import col

from db.engine import (
    CURSOR_KEY,
    FILES_NAME,
    IDENTITY_KEY,
    Database,
    DatabaseUnreachable,
    open_database,
    secret_key,
)
from db.reading import Statement, columns, compile_statement, param, record_class, statement
from db.tables import Setting
from tests.clusters import Cluster
from tests.db.conftest import until

SLEEP: Statement[Any] = compile_statement(
    select(func.pg_sleep(param("seconds", Float()))), record_class(object)
)


@statement(Setting)
def settings_by_key() -> Any:
    return select(*columns(Setting)).where(col(Setting.key) == param("key"))


async def find_setting(database: Database, key: str) -> Setting | None:
    async with database.reading() as reading:
        return await reading.first(settings_by_key(), key=key)


@contextlib.asynccontextmanager
async def opened(dsn: str, **options: Any) -> AsyncIterator[Database]:
    database = await open_database(dsn, **{"pool_size": 5, "statement_timeout": 10, **options})
    try:
        yield database
    finally:
        await database.close()


class Watcher:
    """A connection of its own, to see what the server is doing for others."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def sleepers(self) -> int:
        return await self._connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%pg_sleep%'"
        )

    async def connections(self) -> int:
        return await self._connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )


@pytest.fixture
async def watcher(dsn: str) -> AsyncIterator[Watcher]:
    connection = await asyncpg.connect(dsn)
    yield Watcher(connection)
    await connection.close()


async def test_a_block_that_raises_leaves_nothing(database: Database) -> None:
    class Trouble(Exception):
        pass

    async def write() -> None:
        async with database.writing() as writing:
            await writing.insert(Setting, key="a", value=1)
            await writing.insert(Setting, key="b", value=2)
            raise Trouble

    with pytest.raises(Trouble):
        await write()
    for key in ("a", "b"):
        assert await find_setting(database, key) is None
    async with database.writing() as writing:
        await writing.insert(Setting, key="a", value=3)
    kept = await find_setting(database, "a")
    assert kept is not None
    assert kept.value == 3


async def test_a_statement_that_fails_undoes_those_before_it(database: Database) -> None:
    async def write() -> None:
        async with database.writing() as writing:
            await writing.insert(Setting, key="a", value=1)
            await writing.insert(Setting, key="a", value=2)

    async def write_on() -> None:
        async with database.writing() as writing:
            await writing.insert(Setting, key="a", value=1)
            with contextlib.suppress(asyncpg.UniqueViolationError):
                await writing.insert(Setting, key="a", value=2)
            await writing.insert(Setting, key="b", value=2)

    with pytest.raises(asyncpg.UniqueViolationError):
        await write()
    assert await find_setting(database, "a") is None
    # Not even for a caller who goes on as if nothing had happened.
    with pytest.raises(asyncpg.InFailedSQLTransactionError):
        await write_on()
    assert await find_setting(database, "a") is None


async def test_a_cancelled_writer_leaves_nothing(database: Database, watcher: Watcher) -> None:
    async def write() -> None:
        async with database.writing() as writing:
            await writing.insert(Setting, key="a", value=1)
            await writing.value(SLEEP, seconds=5.0)

    task = asyncio.create_task(write())

    async def sleeps() -> bool:
        return await watcher.sleepers() == 1

    await until(sleeps, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await find_setting(database, "a") is None
    async with database.writing() as writing:
        await writing.insert(Setting, key="a", value=2)


async def test_the_server_ends_a_statement_that_runs_too_long(dsn: str) -> None:
    async with opened(dsn, statement_timeout=0.5) as database:
        async with database.writing() as writing:
            idle = "SHOW idle_in_transaction_session_timeout"
            assert await writing._connection.fetchval(idle) == "500ms"
        for handle in (database.reading, database.writing):
            started = time.monotonic()
            with pytest.raises(asyncpg.QueryCanceledError, match="statement timeout"):
                async with handle() as reading:
                    await reading.value(SLEEP, seconds=5.0)
            assert time.monotonic() - started < 4
        assert await database.is_ready()


async def test_the_shortest_time_out_is_one_millisecond(dsn: str) -> None:
    """Rounded down it would be 0, which PostgreSQL takes for "no limit"."""

    async def is_one_millisecond() -> bool:
        # With so little time any statement may fail, also those that open the database.
        with contextlib.suppress(asyncpg.QueryCanceledError, DatabaseUnreachable):
            async with (
                opened(dsn, statement_timeout=0.0001) as database,
                database.reading() as each,
            ):
                assert await each._connection.fetchval("SHOW statement_timeout") == "1ms"
                return True
        return False

    await until(is_one_millisecond, 10)


@pytest.mark.parametrize("style", ["task", "scope"])
async def test_cancelled_readers_leave_no_busy_server_behind(
    dsn: str, watcher: Watcher, style: str
) -> None:
    """Twelve requests of five seconds on a pool of five, all given up by their callers."""

    async def slow(database: Database) -> None:
        async with database.reading() as reading:
            await reading.value(SLEEP, seconds=5.0)

    async def is_full() -> bool:
        return await watcher.sleepers() == 5

    async def is_quiet() -> bool:
        return await watcher.sleepers() == 0

    async with opened(dsn) as database:
        if style == "task":
            tasks = [asyncio.create_task(slow(database)) for _ in range(12)]
            await until(is_full, 5)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(each) for each in results} == {asyncio.CancelledError}
        else:
            # How ASGI servers end a request: the scope cancels every await again and again.
            async with anyio.create_task_group() as group:
                for _ in range(12):
                    group.start_soon(slow, database)
                await until(is_full, 5)
                group.cancel_scope.cancel()
        await until(is_quiet, 2)
        # All five connections serve again.
        async with asyncio.timeout(5), contextlib.AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(database.reading()) for _ in range(5)]
            for reading in readers:
                assert await reading.first(settings_by_key(), key="none") is None


BROKEN = [
    "postgresql://ada:hunter2@127.0.0.1:1/mirror",
    "postgresql://ada:hunter2@127.0.0.1:port/mirror",
    "postgresql://ada:hun/ter2@127.0.0.1/mirror",
    "postgresql://ada:hunter2@/mirror?host=/no/such/folder",
    "postgresql://ada:hunter2@host.invalid/mirror",
    "postgresql://ada:hunter2@127.0.0.1:1/mirror?sslmode=nonsense",
    "hunter2",
]


@pytest.mark.parametrize("dsn", BROKEN)
async def test_an_unreachable_database_is_told_in_one_line_without_its_password(dsn: str) -> None:
    with pytest.raises(DatabaseUnreachable) as caught:
        await open_database(dsn, pool_size=2, statement_timeout=1)
    for shown in (str(caught.value), repr(caught.value)):
        assert "hun" not in shown
        assert "ter2" not in shown
        assert "\n" not in shown
    assert str(caught.value).startswith("The database does not answer (")
    assert "check DATABASE_URL" in str(caught.value)


async def test_a_database_that_does_not_exist_is_unreachable(cluster: Cluster) -> None:
    with pytest.raises(DatabaseUnreachable, match="InvalidCatalogNameError"):
        await open_database(cluster.dsn_of("nowhere"), pool_size=2, statement_timeout=1)


async def test_a_database_with_room_for_one_pool_only_is_left_alone(
    dsn: str, cluster: Cluster, watcher: Watcher
) -> None:
    """The first pool's connection is given back when the second finds no place."""
    name = dsn.rpartition("/")[2].partition("?")[0]
    await cluster.run(f"CREATE ROLE only_{name} LOGIN CONNECTION LIMIT 1")
    await cluster.run(f"GRANT ALL ON DATABASE {name} TO only_{name}")

    async def is_left() -> bool:
        return await watcher.connections() == 0

    try:
        with pytest.raises(DatabaseUnreachable, match="TooManyConnectionsError"):
            await open_database(
                dsn.replace("postgres:@", f"only_{name}@"), pool_size=2, statement_timeout=1
            )
        await until(is_left, 2)
    finally:
        await cluster.run(f"REVOKE ALL ON DATABASE {name} FROM only_{name}")
        await cluster.run(f"DROP ROLE only_{name}")


async def test_readiness_follows_the_database(dsn: str, watcher: Watcher) -> None:
    database = await open_database(dsn, pool_size=1, statement_timeout=10)
    assert await database.is_ready()
    await watcher._connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )

    async def is_ready() -> bool:
        return await database.is_ready()

    await until(is_ready, 5)
    await database.close()
    assert not await database.is_ready()


async def test_servers_on_one_database_read_each_others_cursors(dsn: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        databases = [await stack.enter_async_context(opened(dsn)) for _ in range(6)]
        await asyncio.gather(*(each.load_secrets() for each in databases))
        signers = []
        for database in databases:
            async with database.reading() as reading:
                signers.append(reading.cursors)
        cursors = {each.write("list", [1, "a"]) for each in signers}
        assert len(cursors) == 1
        assert all(each.read("list", next(iter(cursors))) == [1, "a"] for each in signers)
        async with opened(dsn) as later:
            await later.load_secrets()
            await later.load_secrets()
            async with later.reading() as reading:
                assert reading.cursors.write("list", [1, "a"]) in cursors
        for name in (CURSOR_KEY, IDENTITY_KEY, FILES_NAME):
            key = await find_setting(databases[0], name)
            assert key is not None
            assert len(bytes.fromhex(key.value)) == 32
            for each in databases:
                async with each.reading() as reading:
                    assert await secret_key(reading, name) == bytes.fromhex(key.value)


async def test_two_databases_have_different_keys(database: Database, cluster: Cluster) -> None:
    other_dsn = await cluster.new_database()
    try:
        async with opened(other_dsn) as other:
            await other.load_secrets()
            for name in (CURSOR_KEY, IDENTITY_KEY, FILES_NAME):
                mine, theirs = [await find_setting(each, name) for each in (database, other)]
                assert mine is not None
                assert theirs is not None
                assert mine.value != theirs.value
    finally:
        await cluster.drop(other_dsn)
