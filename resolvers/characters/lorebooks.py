"""What came with a draft, and the lorebooks of drafts and characters."""

from __future__ import annotations

from collections.abc import Sequence

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Character, EmbryoDraft, ImportJob, Lorebook
from resolvers.context import Context
from services import lorebooks


async def import_jobs_of_embryos(
    context: Context, embryos: Sequence[EmbryoDraft]
) -> list[ImportJob | None]:
    """The import that made each draft."""
    return await context.many(ImportJob, [each.import_job_id for each in embryos])


async def lorebooks_of_embryos(
    context: Context, embryos: Sequence[EmbryoDraft], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Lorebook]]:
    """The books that came with each draft."""
    async with context.reading() as reading:
        return await lorebooks.LOREBOOKS_OF_EMBRYOS.pages(
            reading, [each.id for each in embryos], page, **context.viewer.parameters
        )


async def lorebooks_of_characters(
    context: Context, characters: Sequence[Character], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Lorebook]]:
    """The books of each character."""
    async with context.reading() as reading:
        return await lorebooks.LOREBOOKS_OF_CHARACTERS.pages(
            reading, [each.id for each in characters], page, **context.viewer.parameters
        )
