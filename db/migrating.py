"""Brings a database to the newest schema, and makes new migrations.

Migrations are numbered with three digits. Many servers may start at once: an advisory lock lets one
of them migrate while the others wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import asyncpg
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from db.engine import NO_CONNECTION, unreachable
from db.settings import PROJECT_ROOT
from db.tables import metadata

VERSIONS = PROJECT_ROOT / "migrations" / "versions"
_LOCK = 7_240_311  # any number, as long as it is this one everywhere


class SchemaTooNew(Exception):
    """The database was migrated by a newer version of this program."""


def newest_revision() -> str:
    """The number of the last migration in the source tree."""
    return max(path.name[:3] for path in VERSIONS.glob("[0-9][0-9][0-9]_*.py"))


async def current_revision(dsn: str) -> str | None:
    """The number of the last migration that the database has seen. Raises DatabaseUnreachable."""
    try:
        connection = await asyncpg.connect(dsn)
    except NO_CONNECTION as error:
        raise unreachable(error) from error
    try:
        if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
            return None
        revision: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
        return revision
    finally:
        await connection.close()


async def migrate(dsn: str, revision: str = "head") -> None:
    """Bring the database to `revision`; raises SchemaTooNew, DatabaseUnreachable."""
    current = await current_revision(dsn)
    newest = newest_revision()
    if current is not None and current > newest:
        raise SchemaTooNew(
            f"The database is at migration {current}, this program knows {newest}: "
            "start the newer version that made it."
        )
    if revision == "head" and current == newest:
        return

    def upgrade(connection: Connection) -> None:
        # Held until the migration's own transaction ends.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        command.upgrade(_config(connection), revision)

    await _on_connection(dsn, upgrade)


async def downgrade(dsn: str, revision: str) -> None:
    """Take the database back to `revision` (`base` for an empty one)."""
    await _on_connection(dsn, lambda each: command.downgrade(_config(each), revision))


async def differences(dsn: str) -> list[str]:
    """What the tables in the code have and the migrated database has not, and the reverse."""
    found: list[str] = []

    def compare(connection: Connection) -> None:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        found.extend(str(each) for each in compare_metadata(context, metadata))

    await _on_connection(dsn, compare)
    return found


async def write_revision(dsn: str, message: str) -> Path:
    """Write the next migration from the difference to a fully migrated database."""
    number = f"{int(newest_revision()) + 1:03}" if any(VERSIONS.glob("*.py")) else "000"
    await migrate(dsn)

    def write(connection: Connection) -> None:
        command.revision(_config(connection), message, autogenerate=True, rev_id=number)

    await _on_connection(dsn, write)
    (path,) = VERSIONS.glob(f"{number}_*.py")
    return path


async def _on_connection(dsn: str, work: Callable[[Connection], None]) -> None:
    url = re.sub(r"^postgres(ql)?://", "postgresql+asyncpg://", dsn)
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            await connection.run_sync(work)
            await connection.commit()
    finally:
        await engine.dispose()


def _config(connection: Connection) -> Config:
    config = Config(str(PROJECT_ROOT / "alembic.ini"))
    config.attributes["connection"] = connection
    return config
