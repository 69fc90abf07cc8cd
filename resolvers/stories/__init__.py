"""Stories, branches, entries: look-ups, relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, Story
from resolvers.context import Context
from services import stories as service
from services.access import find_row


async def list_stories(context: Context, request: PageRequest) -> Page[Story]:
    """The viewer's stories."""
    async with context.reading() as reading:
        return await service.list_stories(reading, context.viewer, request)


async def story_by_id(context: Context, id: str) -> Story | None:
    """One story, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, Story, id)


async def branch_by_id(context: Context, id: str) -> Branch | None:
    """One branch, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, Branch, id)


async def branches_of_stories(
    context: Context, stories: Sequence[Story], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Branch]]:
    """The branches of each story, oldest first."""
    async with context.reading() as reading:
        return await service.BRANCHES_OF_STORIES.pages(
            reading, [each.id for each in stories], page, **context.viewer.parameters
        )


async def stories_of_branches(context: Context, branches: Sequence[Branch]) -> list[Story | None]:
    """The story of each branch."""
    return await context.many(Story, [each.story_id for each in branches])
