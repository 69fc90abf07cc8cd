"""Imports and exports: look-ups, relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.datastructures import UploadFile

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import EmbryoDraft, Export, ImportItem, ImportJob, Lorebook, LorebookEntry
from resolvers.context import Context
from services import exports, imports, lorebooks
from services import transfers as service
from services.cards.refusals import MAX_FILE_BYTES


async def list_imports(context: Context, request: PageRequest) -> Page[ImportJob]:
    """The viewer's imports."""
    async with context.reading() as reading:
        return await imports.list_imports(reading, context.viewer, request)


async def items_of_jobs(
    context: Context, jobs: Sequence[ImportJob], *, page: PageRequest = FIRST_PAGE
) -> list[Page[ImportItem]]:
    """What was in the file of each import."""
    async with context.reading() as reading:
        return await imports.ITEMS_OF_JOBS.pages(
            reading, [each.id for each in jobs], page, **context.viewer.parameters
        )


async def embryos_of_jobs(context: Context, jobs: Sequence[ImportJob]) -> list[EmbryoDraft | None]:
    """The draft that each import made."""
    async with context.reading() as reading:
        found = await imports.embryos_of_jobs(reading, context.viewer, [each.id for each in jobs])
    return [found.get(each.id) for each in jobs]


async def lorebooks_of_jobs(context: Context, jobs: Sequence[ImportJob]) -> list[Lorebook | None]:
    """The lorebook that each import brought."""
    async with context.reading() as reading:
        found = await lorebooks.books_of_jobs(reading, context.viewer, [each.id for each in jobs])
    return [found.get(each.id) for each in jobs]


async def targets_of_items(
    context: Context, items: Sequence[ImportItem]
) -> list[EmbryoDraft | LorebookEntry | None]:
    """What became of each part."""
    async with context.reading() as reading:
        return await imports.targets_of_items(reading, context.viewer, items)


async def import_card(context: Context, input: Any) -> dict[str, Any]:
    """Read an uploaded card and make a draft of it."""
    card = await service.read_card_file(await _content_of(input.file))
    async with context.writing() as change:
        job, embryo = await service.import_card(
            change.writing, context.viewer, card, file_name=input.file.filename
        )
        return change.answer(embryo=embryo, job=job, warnings=job.warnings)


async def import_lorebook(context: Context, input: Any) -> dict[str, Any]:
    """Read an uploaded lorebook."""
    content = await _content_of(input.file)
    book = await service.read_lorebook_file(content)
    async with context.writing() as change:
        job, lorebook = await service.import_lorebook(
            change.writing,
            context.viewer,
            book,
            file_name=input.file.filename,
            content=content,
            character_id=input.character_id,
        )
        return change.answer(lorebook=lorebook, job=job, warnings=job.warnings)


async def export_card(context: Context, input: Any) -> dict[str, Any]:
    """Write a draft or a character as the file of a card."""
    async with context.reading() as reading:
        card = await service.card_to_export(
            reading, context.viewer, input.embryo_id, input.character_id
        )
    content = await service.write_card_file(card, input.format)
    async with context.writing() as change:
        export = await service.store_card_export(
            change.writing, context.viewer, card, input.format, content
        )
        return change.answer(export=export)


async def find_export(context: Context, id: str) -> tuple[Export, bytes] | None:
    """An export and its content, or None."""
    async with context.reading() as reading:
        return await exports.find_export(reading, context.viewer, id)


async def _content_of(file: UploadFile) -> bytes:
    # One byte too many is enough for the reader to refuse the file.
    return await file.read(MAX_FILE_BYTES + 1)
