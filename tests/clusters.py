"""A PostgreSQL server of the tests, and its migrated databases, which are used again and again."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg

from db.embedded import start_embedded
from db.migrating import migrate

# A database that grew by more is not wiped: what is deleted would slow down who comes next.
_GROWTH = 4_000_000

# All that a test may have changed besides rows.
_SHAPE = """
SELECT md5(string_agg(part, ',' ORDER BY part)) FROM (
    SELECT concat_ws(' ', relname, relkind, attname, atttypid, attnotnull) FROM pg_class
    JOIN pg_attribute ON attrelid = pg_class.oid WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', tgrelid::regclass, tgname, tgenabled, tgfoid::regproc)
    FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT concat_ws(' ', proname, prosrc) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, convalidated) FROM pg_constraint
    UNION ALL SELECT version_num FROM alembic_version
    UNION ALL SELECT setconfig::text FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS parts (part)
"""
_HANG_UP = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
AND NOT relispartition AND relname <> 'alembic_version' ORDER BY relname
"""


class Cluster:
    """A PostgreSQL server with a migrated template database."""

    def __init__(self) -> None:
        # Short: socket paths have about 100 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="mg"))
        self._embedded = start_embedded(self._folder, exclusively=True)
        self.dsn = self._embedded.dsn
        self._numbers: Iterator[int] = itertools.count()
        self._clean: list[str] = []
        asyncio.run(self._prepare())

    def stop(self) -> None:
        self._embedded.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _prepare(self) -> None:
        # Nothing here outlives the session, so nothing is made to wait for the disk.
        await self.run("ALTER SYSTEM SET fsync = off")
        await self.run("SELECT pg_reload_conf()")
        await self.run("CREATE DATABASE migrated")
        dsn = self.dsn_of("migrated")
        await migrate(dsn)
        connection = await asyncpg.connect(dsn)
        try:
            self._shape, self._size = await _shape_and_size(connection)
            self._tables = [row[0] for row in await connection.fetch(_TABLES)]
        finally:
            await connection.close()

    def dsn_of(self, name: str) -> str:
        return self.dsn.replace("/postgres?", f"/{name}?")

    async def run(self, sql: str) -> None:
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    async def new_database(self, template: str = "migrated") -> str:
        """A database like the template: a fresh one, or one that was wiped."""
        if template == "migrated" and self._clean:
            return self._clean.pop()
        name = f"test_{next(self._numbers)}"
        await self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.dsn_of(name)

    async def drop(self, dsn: str) -> None:
        """Take a database back from whoever uses it."""
        if await self._wiped(dsn):
            self._clean.append(dsn)
        else:
            name = dsn.partition("/test_")[2].partition("?")[0]
            await self.run(f"DROP DATABASE IF EXISTS test_{name} WITH (FORCE)")

    async def _wiped(self, dsn: str) -> bool:
        """Delete all rows, which takes a tenth of the time of making a database; False where one
        is not what it was.
        """
        try:
            connection = await asyncpg.connect(dsn)
        except asyncpg.PostgresError:
            return False
        try:
            await connection.execute(_HANG_UP)
            shape, size = await _shape_and_size(connection)
            if shape != self._shape or size > self._size + _GROWTH:
                return False
            used = await connection.fetch(
                " UNION ALL ".join(
                    f"SELECT '{each}' WHERE EXISTS (SELECT FROM {each})" for each in self._tables
                )
            )
            deletions = (f"DELETE FROM {row[0]};" for row in used)
            # As a replica does: no trigger says that something never changes or is referred to.
            await connection.execute(
                f"BEGIN; SET LOCAL session_replication_role = replica; {''.join(deletions)} COMMIT"
            )
            return True
        except asyncpg.PostgresError:
            return False
        finally:
            await connection.close()


async def _shape_and_size(connection: Any) -> tuple[str, int]:
    return (
        await connection.fetchval(_SHAPE),
        await connection.fetchval("SELECT pg_database_size(current_database())"),
    )
