"""Worlds that outlast stories: what is in them, how it hangs together, who plays whom.

Source: spec soul-mirror, section 5; asks, 49, 58 and 60.
"""

from services.worlds.casting import (
    CASTINGS_OF_CHARACTERS,
    CASTINGS_OF_STORIES,
    CASTINGS_OF_WORLD_ENTITIES,
    cast_world_entity,
    castings_of_entities,
    create_casting,
    delete_casting,
)
from services.worlds.duplicates import duplicates_of_worlds
from services.worlds.entities import (
    ENTITIES_OF_WORLDS,
    aliases_of,
    create_world_entity,
    delete_world_entity,
    name_key,
    update_world_entity,
)
from services.worlds.graph import WorldSource
from services.worlds.keeping import (
    STORIES_OF_WORLDS,
    WORLDS,
    create_world,
    delete_world,
    list_worlds,
    update_world,
)
from services.worlds.merging import (
    MERGES_OF_WORLDS,
    MergeChange,
    merge_world_entities,
    unmerge_world_entities,
)
from services.worlds.relations import (
    RELATIONS_OF_SOURCES,
    RELATIONS_OF_TARGETS,
    RELATIONS_OF_WORLDS,
    delete_relation,
    remove_source,
    set_relation,
)
from services.worlds.upserting import Counts, NewEntity, NewRelation, Upserted, upsert

__all__ = [
    "CASTINGS_OF_CHARACTERS",
    "CASTINGS_OF_STORIES",
    "CASTINGS_OF_WORLD_ENTITIES",
    "ENTITIES_OF_WORLDS",
    "MERGES_OF_WORLDS",
    "RELATIONS_OF_SOURCES",
    "RELATIONS_OF_TARGETS",
    "RELATIONS_OF_WORLDS",
    "STORIES_OF_WORLDS",
    "WORLDS",
    "Counts",
    "MergeChange",
    "NewEntity",
    "NewRelation",
    "Upserted",
    "WorldSource",
    "aliases_of",
    "cast_world_entity",
    "castings_of_entities",
    "create_casting",
    "create_world",
    "create_world_entity",
    "delete_casting",
    "delete_relation",
    "delete_world",
    "delete_world_entity",
    "duplicates_of_worlds",
    "list_worlds",
    "merge_world_entities",
    "name_key",
    "remove_source",
    "set_relation",
    "unmerge_world_entities",
    "update_world",
    "update_world_entity",
    "upsert",
]
