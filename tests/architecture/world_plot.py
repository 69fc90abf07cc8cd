"""Lore, threads, happenings and translations for the database in which every relation leads to
something.
"""

from __future__ import annotations

from db.enums import EntityKind, InjectionMode, ThreadStatus
from db.reading import Writing
from db.tables import StoryEntry
from services import deltas, plot, translations
from services.access import Viewer
from tests.factories import plant_entity


async def make_plot(writing: Writing, owner: Viewer, number: int, branch_id: str) -> None:
    """One of each, tied to an entry and to an entity of each kind."""
    entities = {
        kind: (await plant_entity(writing, branch_id, kind, f"Tied {kind} {number}"))["id"]
        for kind in EntityKind
    }
    (entry,) = await deltas.plant_rows(
        writing,
        branch_id,
        StoryEntry,
        [
            {
                "position": 1000,
                "kind": "ai_reply",
                "content": f"It happens, {number}.",
                "metadata": {"sceneEntities": [], "currentLocationId": None, "worldTime": 0},
            }
        ],
    )
    lore, _ = await plot.create_lore(
        writing,
        owner,
        branch_id,
        {
            "title": f"Lore {number}",
            "body": "So it is.",
            "injection_mode": InjectionMode.AUTO,
        },
    )
    await translations.set_translation(
        writing, owner, target_id=lore.id, field="title", language="fr", text=f"Savoir {number}"
    )
    await plot.create_thread(
        writing,
        owner,
        branch_id,
        {
            "title": f"Thread {number}",
            "status": ThreadStatus.RESOLVED,
            "injection_mode": InjectionMode.AUTO,
            "triggered_at_entry_id": entry["id"],
            "resolved_at_entry_id": entry["id"],
        },
    )
    await plot.create_happening(
        writing,
        owner,
        branch_id,
        {"title": f"Happening {number}", "occurred_at_entry_id": entry["id"]},
        [plot.Involvement(each, "there") for each in entities.values()],
        [plot.Awareness(entities[EntityKind.CHARACTER], "saw it", entry["id"])],
    )
