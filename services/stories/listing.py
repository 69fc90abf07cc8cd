"""Lists of stories and of branches."""

from __future__ import annotations

from sqlmodel import col

from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading
from db.tables import Branch, Story
from services.access import Viewer, visible

STORIES = PagedList(
    "stories",
    Story,
    sort=[
        SortKey(col(Story.is_favorite), is_descending=True),
        SortKey(col(Story.last_opened_at), is_descending=True),
        SortKey(col(Story.id), is_descending=True),
    ],
    where=lambda: visible(Story),
)
BRANCHES_OF_STORIES = PagedList(
    "branches",
    Branch,
    sort=[SortKey(col(Branch.created_at)), SortKey(col(Branch.id))],
    parent=col(Branch.story_id),
    where=lambda: visible(Branch),
)


async def list_stories(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[Story]:
    """The viewer's stories: favourites first, then those that were opened last."""
    return await STORIES.page(reading, request, **viewer.parameters)
