"""Entries, a chapter and an era for the database in which every relation leads to something."""

from __future__ import annotations

from db.enums import EntityKind, EntryKind
from db.reading import Writing
from services import stories
from services.access import Viewer
from tests.factories import plant_entity


async def make_entries(writing: Writing, owner: Viewer, number: int, branch_id: str) -> None:
    """An entry with a scene and a place, which ends a chapter; one behind it; an era."""
    scene, place = [
        (await plant_entity(writing, branch_id, kind, f"{kind} {number} of a scene"))["id"]
        for kind in (EntityKind.CHARACTER, EntityKind.LOCATION)
    ]
    changes = {"world_time": 60, "scene_entity_ids": [scene], "current_location_id": place}
    told, _ = await stories.append_entry(
        writing, owner, branch_id, EntryKind.AI_REPLY, f"It goes on, {number}.", changes
    )
    await stories.create_chapter(
        writing, owner, branch_id, told.row_id, {"title": f"Chapter {number}"}
    )
    await stories.append_entry(
        writing, owner, branch_id, EntryKind.USER_ACTION, f"And on, {number}.", {"world_time": 0}
    )
    await stories.flip_era(writing, owner, f"Era {number}", entry_id=told.id)
