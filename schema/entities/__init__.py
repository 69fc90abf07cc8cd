"""The actors of a story's world and what they are to each other."""

from schema.entities.changes import EntityMutation
from schema.entities.rows import (
    CharacterRelationship,
    EntityFilter,
    StoryCharacter,
    StoryEntity,
    StoryFaction,
    StoryItem,
    StoryLocation,
)

# The types of which entities are.
ENTITY_TYPES = (StoryCharacter, StoryLocation, StoryItem, StoryFaction)

__all__ = [
    "ENTITY_TYPES",
    "CharacterRelationship",
    "EntityFilter",
    "EntityMutation",
    "StoryCharacter",
    "StoryEntity",
    "StoryFaction",
    "StoryItem",
    "StoryLocation",
]
