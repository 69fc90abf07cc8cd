"""Voices: relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Character, User, VoiceProfile
from resolvers.context import Context
from services import characters as service


async def voices_of_characters(
    context: Context, characters: Sequence[Character], *, page: PageRequest = FIRST_PAGE
) -> list[Page[VoiceProfile]]:
    """The voices of each character, oldest first."""
    async with context.reading() as reading:
        return await service.VOICES_OF_CHARACTERS.pages(
            reading, [each.id for each in characters], page, **context.viewer.parameters
        )


async def current_voices_of_characters(
    context: Context, characters: Sequence[Character]
) -> list[VoiceProfile | None]:
    """The voice that each character speaks with."""
    async with context.reading() as reading:
        found = await service.current_voices_of_characters(
            reading, context.viewer, [each.id for each in characters]
        )
    return [found.get(each.id) for each in characters]


async def authorizers_of_voices(
    context: Context, voices: Sequence[VoiceProfile]
) -> list[User | None]:
    """Who noted the permission for each voice."""
    return await context.many(User, [each.authorized_by_user_id for each in voices])


async def add_voice(context: Context, input: Any) -> dict[str, Any]:
    """Add a voice."""
    async with context.writing() as change:
        voice = await service.add_voice(
            change.writing,
            context.viewer,
            input.character_id,
            name=input.name,
            source_kind=input.source_kind,
            source_ref=input.source_ref,
        )
        return change.answer(voice=voice)


async def authorize_clone(context: Context, input: Any) -> dict[str, Any]:
    """Note a permission."""
    async with context.writing() as change:
        voice = await service.authorize_clone(
            change.writing,
            context.viewer,
            input.voice_id,
            authorization_ref=input.authorization_ref,
            expires_at=input.expires_at,
        )
        return change.answer(voice=voice)


async def revoke_clone(context: Context, input: Any) -> dict[str, Any]:
    """Take a permission back."""
    async with context.writing() as change:
        voice = await service.revoke_clone(change.writing, context.viewer, input.voice_id)
        return change.answer(voice=voice)


async def read_authorization(context: Context, input: Any) -> dict[str, Any]:
    """Show what proves a permission."""
    async with context.writing() as change:
        voice = await service.read_authorization(change.writing, context.viewer, input.voice_id)
        # The row, not its text: a payload is kept for a repeat, and this is to be in one place.
        return change.answer(voice=voice, authorization=voice)


async def select_voice(context: Context, input: Any) -> dict[str, Any]:
    """Choose the voice to speak with."""
    async with context.writing() as change:
        voice = await service.select_voice(change.writing, context.viewer, input.voice_id)
        return change.answer(voice=voice)


async def remove_voice(context: Context, input: Any) -> dict[str, Any]:
    """Remove a voice."""
    async with context.writing() as change:
        character = await service.remove_voice(change.writing, context.viewer, input.voice_id)
        return change.answer(character=character)
