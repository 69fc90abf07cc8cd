"""Stories that tests begin with."""

from __future__ import annotations

from typing import Any

from db.enums import EntityKind, EntityStatus, Narration, StoryMode
from services.stories import (
    NewDefinition,
    NewLore,
    NewMember,
    NewOpening,
    NewStory,
    NewStyle,
)

EARTH_ORIGIN = {"year": 1872, "month": 10, "day": 3, "hour": 19, "minute": 0, "second": 0}
CAST = (
    NewMember("quay", EntityKind.LOCATION, "Quay Street"),
    NewMember("office", EntityKind.LOCATION, "The Tally Office", parent_key="quay"),
    NewMember(
        "mira",
        EntityKind.CHARACTER,
        "Mira Voss",
        "A lamplighter.",
        location_key="quay",
        faction_key="guild",
        keywords=("the lamplighter",),
        tags=("lead",),
        priority=80,
        state={"traits": ["patient"], "visual": {"eyes": "grey"}, "stackables": {"wick": 3}},
    ),
    NewMember("odo", EntityKind.CHARACTER, "Odo Tann", status=EntityStatus.STAGED),
    NewMember("guild", EntityKind.FACTION, "The Wick Guild"),
    NewMember("ledger", EntityKind.ITEM, "The Night Ledger", location_key="office"),
)
LORE = (NewLore("oil", "Whale oil", "Oil is taxed by the lamp.", "economy", ("oil", "tax")),)


def definition(**changes: Any) -> NewDefinition:
    """An adventure on Earth, told as you."""
    given: dict[str, Any] = {
        "mode": StoryMode.ADVENTURE,
        "narration": Narration.SECOND,
        "genre": NewStyle("Gaslamp mystery", "Fog and brass."),
        "tone": NewStyle("Wry", ""),
        "setting": "A harbour city.",
        "lead_key": "mira",
        "calendar_system_id": "earth-gregorian",
        "world_time_origin": EARTH_ORIGIN,
    }
    return NewDefinition(**{**given, **changes})


def lamplighter(**changes: Any) -> NewStory:
    """A story with one of everything; `changes` of its fields."""
    given: dict[str, Any] = {
        "title": "The Lamplighter",
        "definition": definition(),
        "cast": CAST,
        "lore": LORE,
        "opening": NewOpening("The seventh lamp will not light.", ("mira", "ledger"), "quay"),
    }
    return NewStory(**{**given, **changes})


def plain(**changes: Any) -> NewStory:
    """A story without anybody in it, told from outside."""
    whole = definition(
        mode=StoryMode.CREATIVE, narration=Narration.THIRD, lead_key=None, world_time_origin=None
    )
    given: dict[str, Any] = {
        "title": "Plain",
        "definition": whole,
        "opening": NewOpening("It begins."),
    }
    return NewStory(**{**given, **changes})
