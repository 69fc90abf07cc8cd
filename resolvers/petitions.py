"""Petitions: look-ups, relations, deciding, and the stream of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from db.enums import PetitionStatus
from db.paging import Page, PageRequest
from db.tables import Character, Petition, Run, User
from resolvers.context import Context
from services import petitions as service
from services.access import find_row
from services.decisions import decide_petition as decide
from services.errors import Conflict


async def petition_by_id(context: Context, id: str) -> Petition | None:
    """One petition, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, Petition, id)


async def list_petitions(
    context: Context, request: PageRequest, *, status: PetitionStatus | None = None
) -> Page[Petition]:
    """Petitions about the viewer's characters."""
    async with context.reading() as reading:
        return await service.list_petitions(reading, context.viewer, request, status)


async def characters_of_petitions(
    context: Context, petitions: Sequence[Petition]
) -> list[Character | None]:
    """Who each petition is about."""
    return await context.many(Character, [each.character_id for each in petitions])


async def runs_of_petitions(context: Context, petitions: Sequence[Petition]) -> list[Run | None]:
    """The run that waits for each petition."""
    return await context.many(Run, [each.run_id for each in petitions])


async def requesters_of_petitions(
    context: Context, petitions: Sequence[Petition]
) -> list[User | None]:
    """Who asked for each."""
    return await context.many(User, [each.requested_by_user_id for each in petitions])


async def decide_petition(context: Context, input: Any) -> dict[str, Any]:
    """Approve or deny a petition."""
    try:
        async with context.writing() as change:
            petition = await decide(
                change.writing, context.viewer, input.petition_id, input.decision
            )
            character = await find_row(
                change.writing, context.viewer, Character, petition.character_id
            )
            return change.answer(petition=petition, character=character)
    except Conflict as refusal:
        if refusal.code == service.PETITION_EXPIRED:
            # The refusal took its own transaction back; that the time ran out is kept.
            async with context.engine.database.writing() as writing:
                await service.expire_if_overdue(writing, context.viewer, input.petition_id)
        raise


def petitions(context: Context) -> AsyncGenerator[Petition, None]:
    """What waits for the viewer now, then each that is opened, decided or expires."""
    engine = context.engine
    return service.follow_petitions(engine.database, engine.hub, context.viewer)
