"""Places, characters, items and factions for the database in which every relation leads to
something.
"""

from __future__ import annotations

from typing import Any

from db.enums import CollisionReason, EntityKind
from db.reading import Writing
from db.tables import StoryEntity
from services import deltas, entities
from services.access import Viewer
from tests.factories import PREFIXES, entity_values

# Ids of two who are tied, the same in every branch.
MIRA = "char_01900000-0000-7000-8000-00000000000a"
ODO = "char_01900000-0000-7000-8000-00000000000b"


async def make_entities(writing: Writing, owner: Viewer, number: int, branch_id: str) -> None:
    """A place within a place, with a character and an item; what the character has, belongs to and
    sees in another one. One of each kind may be a duplicate.
    """

    async def plant(
        kind: EntityKind, name: str, partner: str | None = None, id: str | None = None, **state: Any
    ) -> str:
        values = entity_values(kind, f"{name} {number}", **state)
        if id is not None:
            values["id"] = id
        if partner is not None:
            values |= {
                "name_collision_flag": True,
                "name_collision_partner_id": partner,
                "name_collision_reason": CollisionReason.ALIKE,
            }
        async with deltas.acting(writing, owner, branch_id) as action:
            row = await action.create(StoryEntity, values, prefix=PREFIXES[kind])
        return str(row["id"])

    quay = await plant(EntityKind.LOCATION, "Quay")
    office = await plant(EntityKind.LOCATION, "Office", quay, parent_location_id=quay)
    await plant(EntityKind.ITEM, "Stone", quay, at_location_id=office)
    lamp, ring = [await plant(EntityKind.ITEM, name) for name in ("Lamp", "Ring")]
    guild = await plant(EntityKind.FACTION, "Guild", quay)
    mira = await plant(
        EntityKind.CHARACTER,
        "Mira",
        quay,
        MIRA,
        current_location_id=office,
        equipped_items=[ring],
        inventory=[lamp],
        faction_id=guild,
        lastSeenAt={"entryId": "entry_1", "locationId": quay, "worldTime": number},
    )
    odo = await plant(EntityKind.CHARACTER, "Odo", id=ODO)
    await entities.set_relationship(
        writing, owner, f"{branch_id}:{mira}", f"{branch_id}:{odo}", "rival"
    )
