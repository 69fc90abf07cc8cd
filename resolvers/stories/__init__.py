"""Stories, branches, entries: look-ups, relations and mutations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from db.enums import StoryStatus
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Asset, Branch, Calendar, Story, StoryDefinition, StoryEntity, StoryEntry
from resolvers import branch_rows
from resolvers.context import Context
from resolvers.inputs import given
from services import calendars
from services import stories as service
from services.access import find_row
from services.shapes import loaded_settings

T = TypeVar("T")


async def list_stories(
    context: Context,
    request: PageRequest,
    *,
    status: StoryStatus | None = None,
    search: str | None = None,
) -> Page[Story]:
    """The viewer's stories."""
    async with context.reading() as reading:
        return await service.list_stories(reading, context.viewer, request, status, search)


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


async def current_branches_of_stories(
    context: Context, stories: Sequence[Story]
) -> list[Branch | None]:
    """The branch of each story that is open."""
    return await context.many(Branch, [each.current_branch_id for each in stories])


async def covers_of_stories(context: Context, stories: Sequence[Story]) -> list[Asset | None]:
    """The picture of each story."""
    return await context.many(Asset, [each.cover_asset_id for each in stories])


async def calendars_of_stories(context: Context, stories: Sequence[Story]) -> list[Calendar | None]:
    """The calendar of each story: one of the server's or of the viewer's."""
    ids = [each.definition.calendar_system_id for each in stories]
    built_in = [calendars.find_built_in(context.viewer, each) for each in ids]
    wanted = [
        None if known else calendar_id for calendar_id, known in zip(ids, built_in, strict=True)
    ]
    own = await context.many(Calendar, wanted)
    return [known or found for known, found in zip(built_in, own, strict=True)]


async def settings_of_stories(context: Context, stories: Sequence[Story]) -> list[dict[str, Any]]:
    """How each story is written, with defaults for what it has not."""
    return [loaded_settings(each.settings, each.definition.mode) for each in stories]


async def leads_of_definitions(
    context: Context, definitions: Sequence[StoryDefinition]
) -> list[StoryEntity | None]:
    """The lead of each story in the branch that is open; None where it is not there."""
    leads = [each.lead_entity_id if each.branch_id else None for each in definitions]
    return await branch_rows.linked(context, StoryEntity, definitions, leads)


async def stories_of_branches(context: Context, branches: Sequence[Branch]) -> list[Story | None]:
    """The story of each branch."""
    return await context.many(Story, [each.story_id for each in branches])


async def parents_of_branches(context: Context, branches: Sequence[Branch]) -> list[Branch | None]:
    """What each branch was forked from."""
    return await context.many(Branch, [each.parent_branch_id for each in branches])


async def fork_entries_of_branches(
    context: Context, branches: Sequence[Branch]
) -> list[StoryEntry | None]:
    """The last entry that each branch has in common with its parent, as it stands in the branch."""
    ids = [
        f"{each.id}:{each.fork_entry_id}" if each.fork_entry_id is not None else None
        for each in branches
    ]
    return await context.many(StoryEntry, ids)


async def children_of_branches(
    context: Context, branches: Sequence[Branch], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Branch]]:
    """What was forked from each branch, oldest first."""
    async with context.reading() as reading:
        return await service.CHILDREN_OF_BRANCHES.pages(
            reading, [each.id for each in branches], page, **context.viewer.parameters
        )


async def undoability_of_branches(context: Context, branches: Sequence[Branch]) -> list[bool]:
    """Whether there is something to undo in each branch."""
    async with context.reading() as reading:
        return await service.can_undo(reading, context.viewer, [each.id for each in branches])


async def redoability_of_branches(context: Context, branches: Sequence[Branch]) -> list[bool]:
    """Whether there is something to do again in each branch."""
    async with context.reading() as reading:
        return await service.can_redo(reading, context.viewer, [each.id for each in branches])


def _as(kind: Callable[..., T], input: Any, **read: Any) -> T:
    """An input as what the service takes: the same names, with those given in `read` instead."""
    values = {each.name: getattr(input, each.name) for each in fields(input)}
    return kind(**{**values, **read})


async def create_story(context: Context, input: Any) -> dict[str, Any]:
    """Make a story with all that it begins with."""
    definition = _as(
        service.NewDefinition,
        input.definition,
        genre=_as(service.NewStyle, input.definition.genre),
        tone=_as(service.NewStyle, input.definition.tone),
    )
    new = _as(
        service.NewStory,
        input,
        definition=definition,
        cast=[_as(service.NewMember, each) for each in input.cast],
        lore=[_as(service.NewLore, each) for each in input.lore],
        opening=input.opening and _as(service.NewOpening, input.opening),
    )
    async with context.writing() as change:
        story, keys = await service.create_story(change.writing, context.viewer, new)
        return change.answer(story=story, keys=keys)


async def update_story(context: Context, input: Any) -> dict[str, Any]:
    """Change a story."""
    changes = given(
        input,
        "title",
        "description",
        "tags",
        "accent_color",
        "cover_asset_id",
        "world_id",
        "status",
        "is_favorite",
        "definition",
        "settings",
    )
    if "definition" in changes:
        changes["definition"] = given(changes["definition"])
    opening = input.opening and _as(service.FirstEntry, input.opening)
    async with context.writing() as change:
        story = await service.update_story(
            change.writing,
            context.viewer,
            input.story_id,
            changes,
            expected_version=input.expected_version,
            opening=opening,
        )
        return change.answer(story=story)


async def open_story(context: Context, input: Any) -> dict[str, Any]:
    """Note that a story was opened."""
    async with context.writing() as change:
        story = await service.open_story(
            change.writing, context.viewer, input.story_id, input.branch_id
        )
        return change.answer(story=story)


async def delete_story(context: Context, input: Any) -> dict[str, Any]:
    """Delete a story."""
    async with context.writing() as change:
        deleted_id = await service.delete_story(change.writing, context.viewer, input.story_id)
        return change.answer(deleted_id=deleted_id)


async def rename_branch(context: Context, input: Any) -> dict[str, Any]:
    """Give a branch another name."""
    async with context.writing() as change:
        branch = await service.rename_branch(
            change.writing, context.viewer, input.branch_id, input.name
        )
        return change.answer(branch=branch)


async def delete_branch(context: Context, input: Any) -> dict[str, Any]:
    """Delete a branch."""
    async with context.writing() as change:
        deleted_id, story = await service.delete_branch(
            change.writing, context.viewer, input.branch_id
        )
        return change.answer(deleted_id=deleted_id, story=story)
