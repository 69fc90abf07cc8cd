"""The actors of a story's world and what they are to each other.

Source: spec aventuras, world-state storage; character-to-character relationships.
"""

from services.entities.chains import (
    MAX_DEPTH,
    Link,
    chain_among,
    chains_of_places,
    effective_mode,
)
from services.entities.changing import (
    PREFIXES,
    Changed,
    create_entity,
    delete_entity,
    retire_entity,
    update_entity,
)
from services.entities.listing import (
    CHILDREN_OF_LOCATIONS,
    ENTITIES_OF_BRANCHES,
    ITEMS_OF_LOCATIONS,
    MEMBERS_OF_FACTIONS,
    OCCUPANTS_OF_LOCATIONS,
    RELATIONSHIPS_OF_BRANCHES,
    RELATIONSHIPS_OF_FIRSTS,
    RELATIONSHIPS_OF_SECONDS,
    TELLING_ENTRIES_OF_BRANCHES,
    EntityFilter,
    holder_among,
    holders_of_items,
    is_telling,
)
from services.entities.merging import merge_entities
from services.entities.moving import move_item, transfer_stackables
from services.entities.relationships import delete_relationship, set_relationship
from services.entities.states import with_plain_quantities

__all__ = [
    "CHILDREN_OF_LOCATIONS",
    "ENTITIES_OF_BRANCHES",
    "ITEMS_OF_LOCATIONS",
    "MAX_DEPTH",
    "MEMBERS_OF_FACTIONS",
    "OCCUPANTS_OF_LOCATIONS",
    "PREFIXES",
    "RELATIONSHIPS_OF_BRANCHES",
    "RELATIONSHIPS_OF_FIRSTS",
    "RELATIONSHIPS_OF_SECONDS",
    "TELLING_ENTRIES_OF_BRANCHES",
    "Changed",
    "EntityFilter",
    "Link",
    "chain_among",
    "chains_of_places",
    "create_entity",
    "delete_entity",
    "delete_relationship",
    "effective_mode",
    "holder_among",
    "holders_of_items",
    "is_telling",
    "merge_entities",
    "move_item",
    "retire_entity",
    "set_relationship",
    "transfer_stackables",
    "update_entity",
    "with_plain_quantities",
]
