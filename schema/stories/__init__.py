"""Stories, their branches and entries."""

from __future__ import annotations

import strawberry

from resolvers import stories as resolve
from schema.base import Connection, root_list, root_row
from schema.stories.changes import StoryMutation
from schema.stories.rows import Branch, Story

__all__ = ["Branch", "Story", "StoryMutation", "StoryQuery"]


@strawberry.type
class StoryQuery:
    """Root fields about stories."""

    story: Story | None = root_row(resolve.story_by_id, "One story.")
    branch: Branch | None = root_row(resolve.branch_by_id, "One branch of a story.")
    stories: Connection[Story] = root_list(
        resolve.list_stories,
        "The viewer's stories: favourites first, then those that were opened last.",
        arguments={
            "status": "Only those of this status.",
            "search": "Only those with this in title, description or tags, whatever the case.",
        },
    )
