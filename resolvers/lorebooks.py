"""Lorebooks: look-ups, relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from db.enums import ReviewStatus
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Character, EmbryoDraft, Lorebook, LorebookEntry
from resolvers.context import Context
from resolvers.inputs import given
from services import lorebooks as service
from services import transfers

# What can be changed of an entry, by the names of the input.
_CHANGEABLE = (
    *("name", "keys", "secondary_keys", "selective_logic", "is_constant", "position", "depth"),
    *("insertion_order", "probability", "sticky", "cooldown", "delay", "recursion"),
    *("content", "is_enabled"),
)


async def list_lorebooks(context: Context, request: PageRequest) -> Page[Lorebook]:
    """The viewer's lorebooks."""
    async with context.reading() as reading:
        return await service.list_lorebooks(reading, context.viewer, request)


async def entries_of_lorebooks(
    context: Context,
    lorebooks: Sequence[Lorebook],
    *,
    review_status: ReviewStatus | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[LorebookEntry]]:
    """The entries of each book, or those of one status."""
    async with context.reading() as reading:
        return await service.ENTRIES_OF_LOREBOOKS.pages(
            reading,
            [each.id for each in lorebooks],
            page,
            review_status=review_status,
            **context.viewer.parameters,
        )


async def characters_of_lorebooks(
    context: Context, lorebooks: Sequence[Lorebook]
) -> list[Character | None]:
    """The character that each book belongs to."""
    return await context.many(Character, [each.character_id for each in lorebooks])


async def embryos_of_lorebooks(
    context: Context, lorebooks: Sequence[Lorebook]
) -> list[EmbryoDraft | None]:
    """The draft that each book came with."""
    return await context.many(EmbryoDraft, [each.embryo_draft_id for each in lorebooks])


async def lorebooks_of_entries(
    context: Context, entries: Sequence[LorebookEntry]
) -> list[Lorebook | None]:
    """The book of each entry."""
    return await context.many(Lorebook, [each.lorebook_id for each in entries])


async def review_entries(context: Context, input: Any) -> dict[str, Any]:
    """Decide about entries."""
    async with context.writing() as change:
        entries = await transfers.review_entries(
            change.writing, context.viewer, input.entry_ids, input.decision
        )
        return change.answer(entries=entries)


async def update_entry(context: Context, input: Any) -> dict[str, Any]:
    """Change an entry."""
    changes = given(input, *_CHANGEABLE)
    if "recursion" in changes:
        changes["recursion_values"] = asdict(changes.pop("recursion"))
    async with context.writing() as change:
        entry = await transfers.update_entry(
            change.writing, context.viewer, input.entry_id, changes, input.expected_version
        )
        return change.answer(entry=entry)


async def delete_lorebook(context: Context, input: Any) -> dict[str, Any]:
    """Delete a book."""
    async with context.writing() as change:
        deleted_id = await transfers.delete_lorebook(
            change.writing, context.viewer, input.lorebook_id
        )
        return change.answer(deleted_id=deleted_id)
