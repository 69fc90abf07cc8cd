"""Death, its withdrawal, erasure, and custodianship: relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.tables import Character, Custodianship, User
from resolvers.context import Context
from services import characters as service
from services import endings, erasing


async def custodianships_of_characters(
    context: Context, characters: Sequence[Character]
) -> list[Custodianship | None]:
    """The custodianship of each character."""
    async with context.reading() as reading:
        found = await service.custodianships_of_characters(
            reading, context.viewer, [each.id for each in characters]
        )
    return [found.get(each.id) for each in characters]


async def users_of_custodianships(
    context: Context, custodianships: Sequence[Custodianship]
) -> list[User | None]:
    """Who governs, or governed, by each custodianship."""
    return await context.many(User, [each.user_id for each in custodianships])


async def request_death(context: Context, input: Any) -> dict[str, Any]:
    """Ask for a character's death."""
    async with context.writing() as change:
        petition = await endings.request_death(
            change.writing,
            context.viewer,
            input.character_id,
            input.purpose,
            context.engine.settings.cooling_off_days,
        )
        return change.answer(petition=petition)


async def revoke_death(context: Context, input: Any) -> dict[str, Any]:
    """Take a death back."""
    async with context.writing() as change:
        character = await endings.revoke_death(change.writing, context.viewer, input.character_id)
        return change.answer(character=character)


async def erase_character(context: Context, input: Any) -> dict[str, Any]:
    """Erase what is left of a character."""
    async with context.writing() as change:
        character = await erasing.erase_character(
            change.writing, context.viewer, input.character_id, input.name
        )
        return change.answer(character=character)
