"""Files of users: look-ups, relations, mutations, and their bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from db.paging import Page, PageRequest
from db.tables import Asset, EntryAsset, StoryEntry
from resolvers import branch_rows
from resolvers.context import Context
from services import assets as service
from services import attachments
from services.access import find_row


async def list_assets(context: Context, request: PageRequest) -> Page[Asset]:
    """The viewer's files."""
    async with context.reading() as reading:
        return await service.list_assets(reading, context.viewer, request)


async def asset_by_id(context: Context, id: str) -> Asset | None:
    """One file, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, Asset, id)


async def bytes_of_asset(
    context: Context, asset: Asset, start: int, end: int
) -> AsyncIterator[bytes] | None:
    """The bytes of a file from `start` to before `end`; None where they were lost. Raises
    Unavailable.
    """
    return await context.engine.files.read(asset.file_path, start, end)


async def assets_of_entries(
    context: Context, entries: Sequence[StoryEntry]
) -> list[list[EntryAsset]]:
    """What each entry shows, in order."""
    return await branch_rows.lists(context, attachments.ASSETS_OF_ENTRIES, entries)


async def assets_of_links(context: Context, links: Sequence[EntryAsset]) -> list[Asset | None]:
    """The file of each link; None where it was swept."""
    return await context.many(Asset, [each.asset_id for each in links])


async def entries_of_links(
    context: Context, links: Sequence[EntryAsset]
) -> list[StoryEntry | None]:
    """The entry of each link."""
    return await branch_rows.linked(context, StoryEntry, links, [each.entry_id for each in links])


async def upload_asset(context: Context, input: Any) -> dict[str, Any]:
    """Take a file in. Its bytes are stored before the transaction begins."""
    _ = context.viewer.signed_in_id
    most = context.engine.settings.assets_max_bytes
    # One byte too many is enough to refuse it.
    file = await service.read_file(await input.file.read(most + 1), input.kind, most=most)
    async with context.reading() as reading:
        known = await service.find_by_content(reading, context.viewer, file)
    name = await service.store_bytes(context.engine.files, file, known)
    async with context.writing() as change:
        asset = await service.keep_file(change.writing, context.viewer, file, name, known)
        return change.answer(asset=asset)


async def delete_asset(context: Context, input: Any) -> dict[str, Any]:
    """Delete a file; what is left of it where the store fails is swept."""
    async with context.writing() as change:
        asset = await service.delete_asset(change.writing, context.viewer, input.asset_id)
        answer = change.answer(deleted_id=asset.id)
    await service.remove_bytes(context.engine.files, asset)
    return answer


async def attach_asset(context: Context, input: Any) -> dict[str, Any]:
    """Have an entry show a file."""
    async with context.writing() as change:
        link, branch = await attachments.attach_asset(
            change.writing,
            context.viewer,
            entry_id=input.entry_id,
            asset_id=input.asset_id,
            role=input.role,
            position=input.position,
            expected_head=input.expected_head,
        )
        return change.answer(entry_asset=link, branch=branch)


async def detach_asset(context: Context, input: Any) -> dict[str, Any]:
    """Take a file off its entry."""
    async with context.writing() as change:
        deleted_id, branch = await attachments.detach_asset(
            change.writing, context.viewer, input.entry_asset_id, input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)
