"""Drafts: look-ups and mutations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import fields as fields_of
from typing import Any

from db.paging import Page, PageRequest
from db.tables import EmbryoDraft
from resolvers.context import Context
from resolvers.inputs import given
from services import characters as service
from services.rehearsing import RehearsalDelta, RehearsalFinished

# What a field of an input is called in a card, where that is another name.
_CARD_NAMES = {"first_message": "first_mes", "example_messages": "mes_example"}


async def list_embryos(context: Context, request: PageRequest) -> Page[EmbryoDraft]:
    """The viewer's drafts."""
    async with context.reading() as reading:
        return await service.list_embryos(reading, context.viewer, request)


async def create_embryo(context: Context, input: Any) -> dict[str, Any]:
    """Make a draft by hand."""
    fields = {each.name: getattr(input.identity, each.name) for each in fields_of(input.identity)}
    async with context.writing() as change:
        embryo = await service.create_embryo(
            change.writing,
            context.viewer,
            input.origin,
            card_fields(fields),
        )
        return change.answer(embryo=embryo)


async def activate_embryo(context: Context, input: Any) -> dict[str, Any]:
    """Turn a draft into a character."""
    async with context.writing() as change:
        character = await service.activate_embryo(
            change.writing, context.viewer, input.embryo_id, input.confirmed
        )
        return change.answer(character=character)


async def update_embryo(context: Context, input: Any) -> dict[str, Any]:
    """Change a draft, confirm points of its checklist, or both."""
    changes = given(input, "identity", "confirmed")
    identity = changes.get("identity")
    async with context.writing() as change:
        embryo = await service.update_embryo(
            change.writing,
            context.viewer,
            input.embryo_id,
            identity=card_fields(given(identity)) if identity else None,
            confirmed=changes.get("confirmed"),
            expected_version=input.expected_version,
        )
        return change.answer(embryo=embryo)


async def abandon_embryo(context: Context, input: Any) -> dict[str, Any]:
    """Delete a draft."""
    async with context.writing() as change:
        deleted = await service.abandon_embryo(change.writing, context.viewer, input.embryo_id)
        return change.answer(deleted_id=deleted)


async def clear_rehearsal(context: Context, input: Any) -> dict[str, Any]:
    """Forget the trial talk of a draft."""
    async with context.writing() as change:
        embryo = await service.clear_rehearsal(change.writing, context.viewer, input.embryo_id)
        return change.answer(embryo=embryo)


def embryo_rehearsal(
    context: Context, embryo_id: str, text: str
) -> AsyncGenerator[RehearsalDelta | RehearsalFinished, None]:
    """One turn of trial talk with a draft."""
    return context.engine.rehearsals.rehearse(context.viewer, embryo_id, text)


def card_fields(written: Mapping[str, Any]) -> dict[str, Any]:
    """An input's fields by their names in a card."""
    return {_CARD_NAMES.get(name, name): value for name, value in written.items()}
