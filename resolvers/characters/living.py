"""Characters: look-ups and relations."""

from __future__ import annotations

from collections.abc import Sequence

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Character, MirrorTree, RuntimeSeat, User
from resolvers.context import Context
from services import characters as service
from services import mirrors
from services.access import find_row


async def character_by_id(context: Context, id: str) -> Character | None:
    """One character, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, Character, id)


async def list_characters(context: Context, request: PageRequest) -> Page[Character]:
    """The viewer's characters."""
    async with context.reading() as reading:
        return await service.list_characters(reading, context.viewer, request)


async def custodians_of_characters(
    context: Context, characters: Sequence[Character]
) -> list[User | None]:
    """The user who governs each character."""
    return await context.many(User, [each.custodian_user_id for each in characters])


async def seats_of_characters(
    context: Context, characters: Sequence[Character]
) -> list[RuntimeSeat | None]:
    """The seat of each character."""
    async with context.reading() as reading:
        seats = await service.seats_of_characters(
            reading, context.viewer, [each.id for each in characters]
        )
    return [seats.get(each.id) for each in characters]


async def trees_of_characters(
    context: Context,
    characters: Sequence[Character],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[MirrorTree]]:
    """The mirror trees of each character, newest first."""
    async with context.reading() as reading:
        return await mirrors.TREES_OF_CHARACTERS.pages(
            reading,
            [each.id for each in characters],
            page,
            **context.viewer.parameters,
        )
