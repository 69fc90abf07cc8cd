"""Closed sets of values of worlds that outlast stories.

Source: spec soul-mirror, section 5.
"""

from __future__ import annotations

from enum import StrEnum


class WorldEntityKind(StrEnum):
    """What an entity of a world is."""

    CHARACTER = "character"
    LOCATION = "location"
    ITEM = "item"
    FACTION = "faction"
    CONCEPT = "concept"
    EVENT = "event"


class Alikeness(StrEnum):
    """Why two entities of a world may be one."""

    SAME_NAME = "same_name"
    SAME_ALIAS = "same_alias"
    CONTAINED = "contained"
    SIMILAR = "similar"


class MergeEffect(StrEnum):
    """What becomes of a row when two entities of a world are made one."""

    CHANGED = "changed"
    MERGED = "merged"
    MOVED = "moved"
    JOINED = "joined"
    DROPPED = "dropped"
