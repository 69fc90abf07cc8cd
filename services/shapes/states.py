"""The state of an entity, by kind. The bounds are far above what people write: they keep a value
that has gone wild from breaking readers.

Source: spec aventuras, CharacterState, LocationState, ItemState, FactionState; soft caps.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from db.enums import EntityKind
from services.calendars import MAX_WORLD_TIME
from services.shapes.entries import ABSENT

Short = Annotated[str, StringConstraints(max_length=500)]
Note = Annotated[str, StringConstraints(max_length=2_000)]
Listed = Annotated[list[str], Field(max_length=50)]
# Exact in every reader of JSON.
MAX_COUNT = 2**53 - 1
Quantity = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class VisualState(_Closed):
    """How a character looks, in free words."""

    physique: Short = Field(default=ABSENT)
    face: Short = Field(default=ABSENT)
    hair: Short = Field(default=ABSENT)
    eyes: Short = Field(default=ABSENT)
    attire: Short = Field(default=ABSENT)
    distinguishing: Short = Field(default=ABSENT)


class LastSeen(_Closed):
    """Where and when a character was last present."""

    entryId: str
    locationId: str | None
    worldTime: Annotated[int, Field(ge=0, le=MAX_WORLD_TIME)]


class CharacterState(_Closed):
    """Of a character."""

    visual: VisualState
    traits: Listed
    drives: Listed
    voice: Note = Field(default=ABSENT)
    current_location_id: str | None
    equipped_items: list[str]
    inventory: list[str]
    stackables: dict[Quantity, Annotated[int, Field(ge=0, le=MAX_COUNT)]] = Field(default=ABSENT)
    faction_id: str | None
    lastSeenAt: LastSeen | None


class LocationState(_Closed):
    """Of a location."""

    parent_location_id: str | None
    condition: Short = Field(default=ABSENT)


class ItemState(_Closed):
    """Of an item: where it lies, if it lies somewhere; who holds it is in the holder's state."""

    at_location_id: str | None
    condition: Short = Field(default=ABSENT)


class FactionState(_Closed):
    """Of a faction."""

    standing: Short = Field(default=ABSENT)
    agenda: Listed = Field(default=ABSENT)


STATES: dict[EntityKind, type[BaseModel]] = {
    EntityKind.CHARACTER: CharacterState,
    EntityKind.LOCATION: LocationState,
    EntityKind.ITEM: ItemState,
    EntityKind.FACTION: FactionState,
}
# What nothing is said of yet.
EMPTY_STATES: dict[EntityKind, dict[str, Any]] = {
    EntityKind.CHARACTER: {
        "visual": {},
        "traits": [],
        "drives": [],
        "current_location_id": None,
        "equipped_items": [],
        "inventory": [],
        "faction_id": None,
        "lastSeenAt": None,
    },
    EntityKind.LOCATION: {"parent_location_id": None},
    EntityKind.ITEM: {"at_location_id": None},
    EntityKind.FACTION: {},
}
