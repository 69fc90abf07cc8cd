"""The connection to PostgreSQL: two pools, one that can only read and one for transactions."""

from __future__ import annotations

import math
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import col

from db.cancelling import Connection
from db.cursors import CursorSigner
from db.ids import new_id
from db.reading import (
    DATABASE_TROUBLE,
    Reading,
    Writing,
    param,
    prepare_connection,
    statement,
)
from db.tables.accounts import Setting

# Statements per connection that stay prepared; each shape of each list is one.
_STATEMENT_CACHE = 512


# What all servers on a database share, by its name in the table of settings: 32 random bytes each,
# in hexadecimal. The keys are neither shown nor logged.
CURSOR_KEY = "cursor_key"
IDENTITY_KEY = "identity_key"
# Tells this database from others that keep files in the same place.
FILES_NAME = "files_name"

# What a driver raises that cannot connect, or not with this address.
NO_CONNECTION = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError)


class DatabaseUnreachable(Exception):
    """The database does not answer; the message is one line without its password."""


def unreachable(error: Exception) -> DatabaseUnreachable:
    """What to tell of an error of NO_CONNECTION."""
    return DatabaseUnreachable(
        f"The database does not answer ({type(error).__name__}): check DATABASE_URL, "
        "or unset it to use the embedded PostgreSQL."
    )


class Database:
    """An open database: hands out reading and writing handles."""

    def __init__(self, dsn: str, reading_pool: Any, writing_pool: Any) -> None:
        self.dsn = dsn
        self._reading_pool = reading_pool
        self._writing_pool = writing_pool
        self._cursors = CursorSigner(b"")

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Reading]:
        """Borrow a connection that can only read."""
        async with self._reading_pool.acquire() as connection:
            yield Reading(connection, self._cursors)

    @asynccontextmanager
    async def writing(self, *, sees_one_state: bool = False) -> AsyncIterator[Writing]:
        """One transaction: committed when the block ends, rolled back when it raises.

        With `sees_one_state` all its statements see the database as it was at the first of them
        (repeatable read): what it reads need not be held against others. It may end with
        asyncpg's SerializationError, and can then be tried again.
        """
        isolation = "repeatable_read" if sees_one_state else "read_committed"
        async with (
            self._writing_pool.acquire() as connection,
            connection.transaction(isolation=isolation),
        ):
            yield Writing(connection, self._cursors)

    async def load_secrets(self) -> None:
        """Take the key that signs cursors from the database; the first server makes every key."""
        async with self.writing() as writing:
            for name in (CURSOR_KEY, IDENTITY_KEY, FILES_NAME):
                await writing.run(
                    _keep_setting(), id=new_id("settings"), key=name, value=secrets.token_hex(32)
                )
            self._cursors = CursorSigner(await secret_key(writing, CURSOR_KEY))

    def pool_use(self) -> dict[str, tuple[int, int]]:
        """For each pool by name: how many connections it has, and how many of them are idle."""
        pools = {"reading": self._reading_pool, "writing": self._writing_pool}
        return {name: (each.get_size(), each.get_idle_size()) for name, each in pools.items()}

    async def is_ready(self) -> bool:
        """Whether a statement gets an answer."""
        try:
            async with self._reading_pool.acquire(timeout=2) as connection:
                return bool(await connection.fetchval("SELECT true", timeout=2))
        except DATABASE_TROUBLE:
            return False

    async def close(self) -> None:
        """Give all connections back; waits for running statements."""
        await self._reading_pool.close()
        await self._writing_pool.close()


async def open_database(dsn: str, *, pool_size: int, statement_timeout: float) -> Database:
    """Connect both pools. `statement_timeout` is in seconds. Raises DatabaseUnreachable."""
    # The server ends a statement that runs too long even where the client has gone.
    # Rounded up, because 0 milliseconds would mean no limit.
    limits = {"statement_timeout": str(math.ceil(statement_timeout * 1000))}
    reading_pool = None
    try:
        reading_pool = await asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=pool_size,
            connection_class=Connection,
            init=prepare_connection,
            # Reads never change the state of a session, so a connection needs no reset, which
            # would cost a round trip for every loan.
            reset=_no_reset,
            statement_cache_size=_STATEMENT_CACHE,
            server_settings={**limits, "default_transaction_read_only": "on"},
        )
        writing_pool = await asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=pool_size,
            connection_class=Connection,
            init=prepare_connection,
            statement_cache_size=_STATEMENT_CACHE,
            server_settings={
                **limits,
                "idle_in_transaction_session_timeout": limits["statement_timeout"],
            },
        )
    except NO_CONNECTION as error:
        if reading_pool is not None:
            await reading_pool.close()
        raise unreachable(error) from error
    return Database(dsn, reading_pool, writing_pool)


async def files_folder(reading: Reading) -> str:
    """The name of the folder that holds the files of this database, once `load_secrets` has made
    it: 16 letters and digits.
    """
    return (await secret_key(reading, FILES_NAME)).hex()[:16]


async def secret_key(reading: Reading, name: str) -> bytes:
    """A key that servers share, once `load_secrets` has made it."""
    return bytes.fromhex(await reading.value(_setting_value(), key=name))


async def _no_reset(connection: Any) -> None:
    return None


@statement(Setting)
def _keep_setting() -> Any:
    return (
        insert(Setting)
        .values(id=param("id"), key=param("key"), value_json=param("value", JSONB()))
        .on_conflict_do_nothing(index_elements=["key"])
    )


@statement(Setting)
def _setting_value() -> Any:
    return select(col(Setting.value)).where(col(Setting.key) == param("key"))
