"""Entries of stories: lists, relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.enums import EntityKind
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, Chapter, StoryEntity, StoryEntry
from resolvers import branch_rows
from resolvers.context import Context
from resolvers.inputs import given
from services import stories as service


async def entries_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    filter: Any = None,
    as_of: Any = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[StoryEntry]]:
    """The entries of each branch, in the order of the text; all, or those of some kinds."""
    kinds = getattr(filter, "kinds", None)
    return await branch_rows.pages(
        context,
        service.ENTRIES_OF_BRANCHES,
        branches,
        page,
        as_of=as_of,
        keep=lambda each: kinds is None or each.kind in kinds,
        kinds=None if kinds is None else tuple(kinds),
    )


async def scenes_of_entries(
    context: Context, entries: Sequence[StoryEntry]
) -> list[list[StoryEntity]]:
    """Who and what is present in each entry."""
    return await branch_rows.linked_lists(
        context, StoryEntity, entries, [each.scene_entity_ids for each in entries]
    )


async def locations_of_entries(
    context: Context, entries: Sequence[StoryEntry]
) -> list[StoryEntity | None]:
    """Where each entry happens."""
    found = await branch_rows.linked(
        context, StoryEntity, entries, [each.current_location_id for each in entries]
    )
    return [
        each if each is not None and each.kind == EntityKind.LOCATION else None for each in found
    ]


async def chapters_of_entries(
    context: Context, entries: Sequence[StoryEntry]
) -> list[Chapter | None]:
    """The chapter that each entry belongs to."""
    return await branch_rows.linked(
        context, Chapter, entries, [each.chapter_id for each in entries]
    )


async def append_entry(context: Context, input: Any) -> dict[str, Any]:
    """Put an entry behind the last one."""
    changes = given(
        input,
        "world_time",
        "world_time_delta",
        "scene_entity_ids",
        "current_location_id",
        "model",
        "summary",
    )
    async with context.writing() as change:
        entry, branch = await service.append_entry(
            change.writing,
            context.viewer,
            input.branch_id,
            input.kind,
            input.content,
            changes,
            input.expected_head,
        )
        return change.answer(entry=entry, branch=branch)


async def edit_entry(context: Context, input: Any) -> dict[str, Any]:
    """Give an entry another text."""
    async with context.writing() as change:
        entry, branch = await service.edit_entry(
            change.writing, context.viewer, input.entry_id, input.content, input.expected_head
        )
        return change.answer(entry=entry, branch=branch)


async def update_meta(context: Context, input: Any) -> dict[str, Any]:
    """Correct the time, scene, place or summary of an entry."""
    changes = given(input, "world_time", "scene_entity_ids", "current_location_id", "summary")
    async with context.writing() as change:
        entry, branch = await service.update_meta(
            change.writing, context.viewer, input.entry_id, changes, input.expected_head
        )
        return change.answer(entry=entry, branch=branch)


async def delete_entry(context: Context, input: Any) -> dict[str, Any]:
    """Take an entry out."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_entry(
            change.writing, context.viewer, input.entry_id, input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)
