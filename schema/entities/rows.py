"""What a story's world is made of: characters, locations, items, factions, relationships."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import CollisionReason, EntityKind, EntityStatus, InjectionMode
from resolvers import entities as resolve
from resolvers import plot as resolve_plot
from resolvers import worlds as resolve_worlds
from schema.base import (
    Connection,
    Long,
    described,
    described_input,
    enum,
    field,
    relation,
    row_type,
    row_type_of_kind,
)
from schema.embedding import Embeddable
from schema.graphs import ENTITY_NEIGHBOURS, Graph
from schema.translations import Translatable

if TYPE_CHECKING:
    from schema.plot import HappeningAwareness, HappeningInvolvement
    from schema.worlds import Casting

LazyInvolvement = Annotated["HappeningInvolvement", strawberry.lazy("schema.plot")]
LazyCasting = Annotated["Casting", strawberry.lazy("schema.worlds")]
LazyAwareness = Annotated["HappeningAwareness", strawberry.lazy("schema.plot")]

enum(
    EntityKind,
    CHARACTER="A person, an animal, anything that acts.",
    LOCATION="A place.",
    ITEM="A thing of which there is one.",
    FACTION="A group that pursues something.",
)
enum(
    EntityStatus,
    STAGED="Prepared, and not yet come into the story.",
    ACTIVE="In the story.",
    RETIRED="Gone for good: dead, dissolved, out of reach.",
)
enum(
    CollisionReason,
    ALIKE="The descriptions are alike.",
    AMBIGUOUS="The descriptions are somewhat alike.",
    DISTINCT="The name is the same, the descriptions differ.",
    IN_SCENE="The namesake was present in the scene.",
    NO_SIGNAL="The descriptions could not be compared.",
    SAME_PARENT="A similar place lies within the same place.",
)


@described_input
class EntityFilter:
    """Which entities are wanted; what is left out asks for nothing."""

    kinds: list[EntityKind] | None = field("Only those of these kinds.", default=None)
    statuses: list[EntityStatus] | None = field("Only those of these statuses.", default=None)


@strawberry.interface(description="An actor of a story's world.")
class StoryEntity(Embeddable):
    """What all kinds of entities have."""

    kind: EntityKind = field("What it is.")
    name: str = field("What it is called.")
    description: str = field("Who or what it is, in prose.")
    status: EntityStatus = field("Whether it has come into the story, or gone for good.")
    retired_reason: str | None = field("Why it is gone, where it is retired.")
    keywords: list[str] = field("Other names that it goes by.")
    tags: list[str] = field("Words by which people sort.")
    injection_mode: InjectionMode = field("When it comes into a prompt, by its own setting.")
    priority: int = field("From 0 to 100: what comes first where not all fit into a prompt.")
    state: JSON = field(
        "All that is kept in fields, by kind. Ids in it are own ids, as rowId shows them."
    )
    name_collision_flag: bool = field("Whether it may be a duplicate of a namesake.")
    name_collision_partner: StoryEntity | None = relation(
        resolve.partners_of_entities, "The namesake; null also where it is gone."
    )
    name_collision_reason: CollisionReason | None = field("Why it was thought a duplicate.")
    involvements: Connection[LazyInvolvement] = relation(
        resolve_plot.involvements_of_entities, "What it took part in, in the order it was noted."
    )
    neighbours: Graph = ENTITY_NEIGHBOURS
    castings: list[LazyCasting] = relation(
        resolve_worlds.castings_of_entities,
        "Who plays it, and what it was drawn from: one of each at most.",
    )
    embedding_stale: bool = field("Whether its name and description are still to be embedded.")
    created_at: datetime = field("When it was made.")
    updated_at: datetime | None = field("When it was last changed.")


@described
class Visual:
    """How a character looks; null for what nobody has said."""

    physique: str | None = field("Height and build.")
    face: str | None = field("Features, complexion, expression.")
    hair: str | None = field("Colour, style, state.")
    eyes: str | None = field("Colour and what is distinctive.")
    attire: str | None = field("What the character wears now.")
    distinguishing: str | None = field("Scars, gait, posture, scent and the like.")


@described
class Stackable:
    """A quantity of something that comes in numbers."""

    key: str = field("What it is, in lower case: gold, arrows.")
    count: Long = field("How many.")


@described
class RelationshipView:
    """A relationship, from where one of its two characters stands."""

    other: StoryCharacter | None = relation(resolve.others_of_views, "The other character.")
    self_to_other: str | None = field("What this character sees in the other; null if unknown.")
    other_to_self: str | None = field("What the other sees in this one; null if unknown.")
    relationship: CharacterRelationship = field("The relationship, which belongs to both.")


@row_type_of_kind("StoryEntity", EntityKind.CHARACTER)
class StoryCharacter(StoryEntity):
    """A character of a story."""

    traits: list[str] = field("What the character is like.")
    drives: list[str] = field("What moves the character: goals, fears, sore spots.")
    voice: str | None = field("How the character speaks.")
    visual: Visual = field("How the character looks.")
    current_location: StoryLocation | None = relation(
        resolve.locations_of_characters, "Where the character is, or was seen last if gone."
    )
    equipped_items: list[StoryItem] = relation(
        resolve.equipped_items_of_characters, "What the character wears and wields."
    )
    inventory: list[StoryItem] = relation(
        resolve.inventories_of_characters, "What the character carries besides."
    )
    stackables: list[Stackable] = field("What the character has in numbers, by key.")
    faction: StoryFaction | None = relation(
        resolve.factions_of_characters, "What the character belongs to."
    )
    last_seen_location: StoryLocation | None = relation(
        resolve.last_locations_of_characters, "Where the character was last present."
    )
    last_seen_world_time: Long | None = field(
        "When the character was last present, in seconds since the beginning of the story."
    )
    relationships: list[RelationshipView] = relation(
        resolve.views_of_characters, "What the character and others are to each other: 200 at most."
    )
    knows: Connection[LazyAwareness] = relation(
        resolve_plot.awareness_of_characters,
        "What the character knows of, in the order it was noted; not what everybody knows.",
    )


@row_type_of_kind("StoryEntity", EntityKind.LOCATION)
class StoryLocation(StoryEntity):
    """A place of a story."""

    condition: str | None = field("What has become of it.")
    parent: StoryLocation | None = relation(resolve.parents_of_locations, "What it lies within.")
    children: list[StoryLocation] = relation(
        resolve.children_of_locations, "The places right inside it: 200 at most."
    )
    path: list[StoryLocation] = relation(
        resolve.paths_of_locations,
        "The places that it lies within, the nearest first, the outermost last.",
    )
    occupants: list[StoryCharacter] = relation(
        resolve.occupants_of_locations, "The characters at this place itself: 200 at most."
    )
    items: Connection[StoryItem] = relation(
        resolve.items_of_locations, "The items that lie at this place itself, oldest first."
    )
    effective_injection_mode: InjectionMode = relation(
        resolve.injection_modes_of_locations,
        "When it comes into a prompt, with the places around it considered: a disabled place "
        "takes those inside it along, unless the story is inside it.",
    )


@row_type_of_kind("StoryEntity", EntityKind.ITEM)
class StoryItem(StoryEntity):
    """A thing of a story, of which there is one."""

    condition: str | None = field("What has become of it.")
    holder: StoryCharacter | None = relation(
        resolve.holders_of_items, "The character that wears or carries it."
    )
    location: StoryLocation | None = relation(resolve.locations_of_items, "Where it lies.")


@row_type_of_kind("StoryEntity", EntityKind.FACTION)
class StoryFaction(StoryEntity):
    """A group of a story that pursues something."""

    standing: str | None = field("How it stands.")
    agenda: list[str] = field("What it is after.")
    members: Connection[StoryCharacter] = relation(
        resolve.members_of_factions, "The characters that belong to it, oldest first."
    )


@row_type
class CharacterRelationship(Translatable):
    """What two characters are to each other: one for the two, with the view of each."""

    a: StoryCharacter | None = relation(resolve.firsts_of_relationships, "The one.")
    b: StoryCharacter | None = relation(resolve.seconds_of_relationships, "The other.")
    kind: str | None = field("What the one sees in the other; null if unknown.")
    inverse_kind: str | None = field("What the other sees in the one; null if unknown.")
    created_at: datetime = field("When it was first noted.")
    updated_at: datetime | None = field("When it was last changed.")
