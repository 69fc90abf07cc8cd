"""Lists of stories and of branches."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlmodel import col

from db.enums import StoryStatus
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, param
from db.tables import Branch, Story
from services.access import Viewer, visible
from services.text import MAX_LINE, checked_prose


def _says(text: Any) -> ColumnElement[bool]:
    return func.strpos(func.lower(text), func.lower(param("search"))) > 0


def _wanted() -> ColumnElement[bool]:
    tag = func.jsonb_array_elements_text(col(Story.tags)).table_valued("value").alias("tag")
    is_found = or_(
        _says(col(Story.title)),
        _says(col(Story.description)),
        exists(select(1).select_from(tag).where(_says(tag.c.value))),
    )
    has_status = or_(param("status").is_(None), col(Story.status) == param("status"))
    return visible(Story) & has_status & or_(param("search").is_(None), is_found)


STORIES = PagedList(
    "stories",
    Story,
    sort=[
        SortKey(col(Story.is_favorite), is_descending=True),
        SortKey(col(Story.last_opened_at), is_descending=True),
        SortKey(col(Story.id), is_descending=True),
    ],
    where=_wanted,
)
BRANCHES_OF_STORIES = PagedList(
    "branches",
    Branch,
    sort=[SortKey(col(Branch.created_at)), SortKey(col(Branch.id))],
    parent=col(Branch.story_id),
    where=lambda: visible(Branch),
)


async def list_stories(
    reading: Reading,
    viewer: Viewer,
    request: PageRequest,
    status: StoryStatus | None = None,
    search: str | None = None,
) -> Page[Story]:
    """The viewer's stories: favourites first, then those that were opened last. With `search` those
    in whose title, description or tags it stands, whatever the case. Raises Invalid (TEXT_…).
    """
    if search is not None:
        checked_prose(search, "search", max_length=MAX_LINE)
    return await STORIES.page(reading, request, status=status, search=search, **viewer.parameters)
