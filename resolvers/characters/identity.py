"""Identity records: relations, changes to who a character is, and exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Character, IdentityRecord, IdentityRecordVersion, Petition
from resolvers.characters.drafts import card_fields
from resolvers.context import Context
from resolvers.inputs import given
from services import characters as service


async def identity_signer(context: Context) -> str:
    """The public key of this server's identity records."""
    async with context.reading() as reading:
        return await service.identity_signer(reading, context.viewer)


async def records_of_characters(
    context: Context, characters: Sequence[Character]
) -> list[IdentityRecord | None]:
    """The identity record of each character."""
    async with context.reading() as reading:
        found = await service.records_of_characters(
            reading, context.viewer, [each.id for each in characters]
        )
    return [found.get(each.id) for each in characters]


async def characters_of_records(
    context: Context, records: Sequence[IdentityRecord]
) -> list[Character | None]:
    """Who each record is about."""
    return await context.many(Character, [each.character_id for each in records])


async def versions_of_records(
    context: Context, records: Sequence[IdentityRecord], *, page: PageRequest = FIRST_PAGE
) -> list[Page[IdentityRecordVersion]]:
    """The versions of each record, newest first."""
    async with context.reading() as reading:
        return await service.VERSIONS_OF_RECORDS.pages(
            reading, [each.id for each in records], page, **context.viewer.parameters
        )


async def current_versions_of_records(
    context: Context, records: Sequence[IdentityRecord]
) -> list[IdentityRecordVersion | None]:
    """The newest version of each record."""
    async with context.reading() as reading:
        found = await service.current_versions(
            reading, context.viewer, [each.id for each in records]
        )
    return [found.get(each.id) for each in records]


async def records_of_versions(
    context: Context, versions: Sequence[IdentityRecordVersion]
) -> list[IdentityRecord | None]:
    """The record of each version."""
    return await context.many(IdentityRecord, [each.identity_record_id for each in versions])


async def petitions_of_versions(
    context: Context, versions: Sequence[IdentityRecordVersion]
) -> list[Petition | None]:
    """The confirmed act behind each version."""
    return await context.many(Petition, [each.petition_id for each in versions])


async def packages_of_versions(
    context: Context, versions: Sequence[IdentityRecordVersion]
) -> list[dict[str, Any] | None]:
    """What each version states, where it was not erased."""
    async with context.reading() as reading:
        found = await service.packages_of_versions(
            reading, context.viewer, [each.id for each in versions]
        )
    return [found.get(each.id) for each in versions]


async def authentic_flags_of_versions(
    context: Context, versions: Sequence[IdentityRecordVersion]
) -> list[bool]:
    """Whether each version is what this server once signed."""
    async with context.reading() as reading:
        authentic = await service.authentic_versions(
            reading, context.viewer, [each.id for each in versions]
        )
    return [each.id in authentic for each in versions]


async def ask_identity_change(context: Context, input: Any) -> dict[str, Any]:
    """Open the petition for a change of a baseline."""
    async with context.writing() as change:
        petition = await service.ask_identity_change(
            change.writing,
            context.viewer,
            input.character_id,
            card_fields(given(input.identity)),
            input.purpose,
            input.expected_version,
        )
        return change.answer(petition=petition)


async def export_identity(context: Context, input: Any) -> dict[str, Any]:
    """Write an identity record to a file."""
    async with context.writing() as change:
        export = await service.export_identity(
            change.writing, context.viewer, input.character_id, input.sections
        )
        return change.answer(export=export)
