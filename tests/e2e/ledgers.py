"""The database behind a server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from tests.e2e.callers import Json


class Ledger:
    """The database behind a server, looked at from outside."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    async def rows(self, sql: str, *values: Any) -> list[Json]:
        """Rows of one statement."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return [dict(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    async def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row."""
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetchval(sql, *values)
        finally:
            await connection.close()

    async def run(self, sql: str, *values: Any) -> None:
        """Change something behind the server's back."""
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(sql, *values)
        finally:
            await connection.close()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """An open transaction on a connection of its own."""
        connection = await asyncpg.connect(self.dsn)
        try:
            async with connection.transaction():
                yield connection
        finally:
            await connection.close()

    async def fingerprint(self) -> dict[str, str]:
        """A digest of every table's rows, by table: equal when nothing at all has changed."""
        digest = "coalesce(md5(string_agg(r::text, '|' ORDER BY r::text)), '')"
        connection = await asyncpg.connect(self.dsn)
        try:
            tables = await connection.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            )
            return {
                name: await connection.fetchval(f"SELECT count(*) || ' ' || {digest} FROM {name} r")
                for (name,) in tables
            }
        finally:
            await connection.close()
