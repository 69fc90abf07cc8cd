"""Drafts: look-ups and mutations."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import UploadFile

from db.paging import Page, PageRequest
from db.tables import EmbryoDraft
from resolvers.context import Context
from services import characters as service
from services.cards import read_card
from services.errors import Invalid

# Card files are read into memory; cards of real programs stay below this.
MAX_CARD_BYTES = 16 * 1024 * 1024


async def list_embryos(context: Context, request: PageRequest) -> Page[EmbryoDraft]:
    """The viewer's drafts."""
    async with context.reading() as reading:
        return await service.list_embryos(reading, context.viewer, request)


async def import_card(context: Context, input: Any) -> dict[str, Any]:
    """Read an uploaded card and make a draft of it."""
    file: UploadFile = input.file
    content = await file.read(MAX_CARD_BYTES + 1)
    if len(content) > MAX_CARD_BYTES:
        raise Invalid(
            f"A card has at most {MAX_CARD_BYTES // 2**20} MiB.",
            "CARD_FILE_TOO_LARGE",
            ("input", "file"),
        )
    card = read_card(content)
    async with context.writing() as change:
        embryo = await service.import_card(change.writing, context.viewer, card)
        return change.answer(embryo=embryo, warnings=list(card.warnings))


async def create_embryo(context: Context, input: Any) -> dict[str, Any]:
    """Make a draft by hand."""
    identity = input.identity
    fields = {
        "name": identity.name,
        "nickname": identity.nickname,
        "description": identity.description,
        "personality": identity.personality,
        "scenario": identity.scenario,
        "first_mes": identity.first_message,
        "mes_example": identity.example_messages,
        "system_prompt": identity.system_prompt,
        "forbidden_zone": identity.forbidden_zone,
    }
    async with context.writing() as change:
        embryo = await service.create_embryo(
            change.writing,
            context.viewer,
            input.origin,
            {key: value for key, value in fields.items() if value},
        )
        return change.answer(embryo=embryo)


async def activate_embryo(context: Context, input: Any) -> dict[str, Any]:
    """Turn a draft into a character."""
    async with context.writing() as change:
        character = await service.activate_embryo(
            change.writing, context.viewer, input.embryo_id, input.confirmed
        )
        return change.answer(character=character)
