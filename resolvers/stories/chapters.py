"""Chapters of stories: lists, relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, Chapter, Story, StoryEntry
from resolvers import branch_rows
from resolvers.context import Context
from resolvers.inputs import given
from services import stories as service

_FIELDS = ("title", "summary", "theme", "keywords")


async def chapters_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    as_of: Any = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Chapter]]:
    """The chapters of each branch, in the order of the text."""
    return await branch_rows.pages(
        context, service.CHAPTERS_OF_BRANCHES, branches, page, as_of=as_of
    )


async def open_regions_of_branches(
    context: Context, branches: Sequence[Branch]
) -> list[service.OpenRegion]:
    """What belongs to no chapter of each branch yet."""
    stories = await context.many(Story, [each.story_id for each in branches])
    of_branches = {
        branch.id: story
        for branch, story in zip(branches, stories, strict=True)
        if story is not None  # whose branch is seen, it is
    }
    async with context.reading() as reading:
        regions = await service.open_regions_of_branches(reading, context.viewer, of_branches)
    found = dict(zip(of_branches, regions, strict=True))
    return [found[each.id] for each in branches]


async def entries_of_chapters(
    context: Context, chapters: Sequence[Chapter], *, page: PageRequest = FIRST_PAGE
) -> list[Page[StoryEntry]]:
    """The entries of each chapter, in the order of the text."""
    return await branch_rows.pages(context, service.ENTRIES_OF_CHAPTERS, chapters, page)


async def starts_of_chapters(
    context: Context, chapters: Sequence[Chapter]
) -> list[StoryEntry | None]:
    """The entry with which each chapter begins."""
    return await branch_rows.linked(
        context, StoryEntry, chapters, [each.start_entry_id for each in chapters]
    )


async def ends_of_chapters(
    context: Context, chapters: Sequence[Chapter]
) -> list[StoryEntry | None]:
    """The entry with which each chapter ends."""
    return await branch_rows.linked(
        context, StoryEntry, chapters, [each.end_entry_id for each in chapters]
    )


async def create_chapter(context: Context, input: Any) -> dict[str, Any]:
    """Close a chapter."""
    values = {name: getattr(input, name) for name in _FIELDS}
    async with context.writing() as change:
        chapter, branch = await service.create_chapter(
            change.writing,
            context.viewer,
            input.branch_id,
            input.end_entry_id,
            values,
            input.expected_head,
        )
        return change.answer(chapter=chapter, branch=branch)


async def update_chapter(context: Context, input: Any) -> dict[str, Any]:
    """Change what a chapter says of itself."""
    async with context.writing() as change:
        chapter, branch = await service.update_chapter(
            change.writing,
            context.viewer,
            input.chapter_id,
            given(input, *_FIELDS),
            input.expected_head,
        )
        return change.answer(chapter=chapter, branch=branch)


async def delete_chapter(context: Context, input: Any) -> dict[str, Any]:
    """Open the last chapter again."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_chapter(
            change.writing, context.viewer, input.chapter_id, input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)
