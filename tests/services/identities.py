"""Characters with identity records for tests: made, changed, looked at, and written to by SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from db.engine import Database
from db.enums import PetitionDecision
from db.paging import PageRequest
from db.tables import Character, IdentityRecordVersion, Petition
from services import characters
from services.access import Viewer
from services.decisions import decide_petition
from tests.factories import make_character

APPROVE, DENY = PetitionDecision.APPROVE, PetitionDecision.DENY


async def made(database: Database, viewer: Viewer, name: str = "Ada") -> Character:
    async with database.writing() as writing:
        return await make_character(writing, viewer, name)


async def ask(
    database: Database,
    viewer: Viewer,
    character: Character,
    changes: dict[str, Any],
    *,
    purpose: str = "She has grown.",
    expected_version: int | None = None,
) -> Petition:
    async with database.writing() as writing:
        return await characters.ask_identity_change(
            writing, viewer, character.id, changes, purpose, expected_version
        )


async def decide(
    database: Database, viewer: Viewer, petition: Petition, decision: PetitionDecision = APPROVE
) -> Petition:
    async with database.writing() as writing:
        return await decide_petition(writing, viewer, petition.id, decision)


async def forged(
    database: Database, viewer: Viewer, character: Character, changes: dict[str, Any]
) -> Petition:
    petition = await ask(database, viewer, character, changes)
    return await decide(database, viewer, petition)


async def present(database: Database, character: Character) -> dict[str, Any]:
    """A character as it is now, in all its columns."""
    async with database.reading() as reading:
        row = await reading._connection.fetchrow(
            "SELECT * FROM characters WHERE id = $1", character.id
        )
    return dict(row)


async def versions_of(
    database: Database, viewer: Viewer, character: Character
) -> list[IdentityRecordVersion]:
    """All versions, oldest first."""
    async with database.reading() as reading:
        records = await characters.records_of_characters(reading, viewer, [character.id])
        (page,) = await characters.VERSIONS_OF_RECORDS.pages(
            reading, [records[character.id].id], PageRequest(), **viewer.parameters
        )
    return page.nodes[::-1]


async def packages_of(database: Database, viewer: Viewer, character: Character) -> list[Any]:
    versions = await versions_of(database, viewer, character)
    async with database.reading() as reading:
        found = await characters.packages_of_versions(
            reading, viewer, [each.id for each in versions]
        )
    return [found.get(each.id) for each in versions]


async def authentic(database: Database, viewer: Viewer, character: Character) -> list[bool]:
    """Which versions are authentic, oldest first."""
    versions = await versions_of(database, viewer, character)
    async with database.reading() as reading:
        found = await characters.authentic_versions(reading, viewer, [each.id for each in versions])
    return [each.id in found for each in versions]


@asynccontextmanager
async def bare(database: Database) -> AsyncIterator[Any]:
    """A connection on which an intruder writes SQL, each statement a transaction."""
    connection = await asyncpg.connect(database.dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def everything(database: Database) -> dict[str, list[Any]]:
    """All rows that a refused change might have touched."""
    tables = (
        "characters",
        "confirmations",
        "identity_records",
        "identity_record_versions",
        "identity_packages",
        "audit_events",
        "exports",
    )
    async with database.reading() as reading:
        return {
            table: [tuple(row) for row in await reading._connection.fetch(f"TABLE {table}")]
            for table in tables
        }
