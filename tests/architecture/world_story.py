"""Stories, branches and drafts for the database in which every relation leads to something."""

from __future__ import annotations

from db.enums import AssetKind, EntityKind, Narration, StoryMode
from db.reading import Writing
from db.tables import Asset, Branch
from services import calendars, deltas, stories
from services.access import Viewer, require_row
from tests.factories import append_entry


async def make_story(writing: Writing, owner: Viewer, number: int) -> Branch:
    """A story with a picture, a calendar of its owner's, a lead, and a fork in which something was
    undone; the branch from which that was forked, whose log has one turn.
    """
    style = stories.NewStyle("Test", "Short.")
    calendar = await calendars.clone_calendar(writing, owner, "stardate")
    definition = stories.NewDefinition(
        StoryMode.ADVENTURE,
        Narration.SECOND,
        style,
        style,
        lead_key="lead",
        calendar_system_id=calendar.id,
    )
    new = stories.NewStory(
        f"Story {number}",
        definition,
        cast=[stories.NewMember("lead", EntityKind.CHARACTER, f"Lead {number}")],
        opening=stories.NewOpening("It begins.", ["lead"]),
    )
    story, _ = await stories.create_story(writing, owner, new)
    cover = await writing.insert(
        Asset,
        owner_user_id=owner.signed_in_id,
        kind=AssetKind.IMAGE,
        mime_type="image/png",
        file_path=f"covers/{number}",
        size_bytes=1,
        content_hash=f"cover {number}",
    )
    await stories.update_story(writing, owner, story.id, {"cover_asset_id": cover.id})
    branch_id = story.current_branch_id
    assert branch_id is not None
    async with deltas.acting(writing, owner, branch_id) as action:
        entry = await append_entry(action, 2)
    fork = await deltas.fork_branch(writing, owner, branch_id, entry["id"], f"Fork {number}")
    for position in (3, 4):
        async with deltas.acting(writing, owner, fork.branch.id) as action:
            await append_entry(action, position)
    await deltas.undo_branch(writing, owner, fork.branch.id)
    return await require_row(writing, owner, Branch, branch_id)
