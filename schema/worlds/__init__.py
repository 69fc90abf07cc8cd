"""Worlds that outlast stories."""

from __future__ import annotations

import strawberry

from resolvers import worlds as resolve
from schema.base import Connection, root_list, root_row
from schema.worlds.changes import WorldMutation
from schema.worlds.rows import Casting, World, WorldEntity, WorldMerge, WorldRelation

__all__ = [
    "Casting",
    "World",
    "WorldEntity",
    "WorldMerge",
    "WorldMutation",
    "WorldQuery",
    "WorldRelation",
]


@strawberry.type
class WorldQuery:
    """Reading worlds."""

    world: World | None = root_row(
        resolve.world_by_id, "A world by its id; null when it is not there for the viewer."
    )
    worlds: Connection[World] = root_list(resolve.list_worlds, "Your worlds, newest first.")
