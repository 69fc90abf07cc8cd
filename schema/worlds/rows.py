"""What worlds are made of."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import strawberry
from strawberry.scalars import JSON

from db.enums import Alikeness, MergeEffect, TruncationReason, WorldEntityKind
from resolvers import worlds as resolve
from resolvers.worlds import figures as resolve_figures
from schema.base import Connection, Long, Node, described, enum, field, relation, row_type
from schema.worlds.figures import WorldCentrality, WorldCommunities

if TYPE_CHECKING:
    from schema.characters import Character
    from schema.entities import StoryEntity
    from schema.mirrors import Canonization
    from schema.stories.rows import Story

LazyCanonization = Annotated["Canonization", strawberry.lazy("schema.mirrors")]
LazyStory = Annotated["Story", strawberry.lazy("schema.stories.rows")]
LazyCharacter = Annotated["Character", strawberry.lazy("schema.characters")]
LazyStoryEntity = Annotated["StoryEntity", strawberry.lazy("schema.entities")]
LazyWorld = Annotated["World", strawberry.lazy("schema.worlds.rows")]
LazyCasting = Annotated["Casting", strawberry.lazy("schema.worlds.rows")]
LazyEntity = Annotated["WorldEntity", strawberry.lazy("schema.worlds.rows")]

enum(
    WorldEntityKind,
    CHARACTER="A person, an animal, anything that acts.",
    LOCATION="A place.",
    ITEM="A thing.",
    FACTION="A group that pursues something.",
    CONCEPT="An idea, a custom, a law of this world.",
    EVENT="Something that happened in this world.",
)
enum(
    Alikeness,
    SAME_NAME="Their names are the same.",
    SAME_ALIAS="Another name of the one is a name of the other.",
    CONTAINED="A name of the one stands within a name of the other.",
    SIMILAR="Names of theirs have most of their letters in common.",
)
enum(
    MergeEffect,
    CHANGED="The entity that stays gets what it had not.",
    MERGED="The entity that goes says which one it turned out to be.",
    MOVED="A relation or a casting goes over to the entity that stays.",
    JOINED="A relation of the entity that stays is one with a relation of the other.",
    DROPPED="A relation goes, since it is one with another, or was between the two.",
)

VALID_AT = "Only relations that hold at this moment of the world's time, in seconds."
RELATION_ARGUMENTS = MappingProxyType(
    {"kinds": "Only those of these kinds; all unless given.", "valid_at": VALID_AT}
)
FILTERS = MappingProxyType(
    {
        "edge_kinds": "Only relations of these kinds count; all unless given.",
        "kinds": "Only entities of these kinds are shown and passed through; all unless given.",
        "direction": "Which way relations are followed.",
        "valid_at": VALID_AT,
    }
)
WHOLE_FILTERS = MappingProxyType(
    {
        "edge_kinds": "Only relations of these kinds count; all unless given.",
        "kinds": "Only entities of these kinds count; all unless given.",
        "valid_at": VALID_AT,
    }
)
_LONG: Any = {"valid_at": Long | None}


@row_type
class WorldRelation(Node):
    """What one entity of a world is to another."""

    kind: str = field("What kind of relation it is, in free words.")
    label: str | None = field("What is said of it.")
    weight: float = field("How strong it is; above 0.")
    is_directed: bool = field("Whether it matters which way it leads.")
    valid_from: Long | None = field("From when on it holds, in seconds; null is always.")
    valid_until: Long | None = field("Before when it holds, in seconds; null is for good.")
    confidence: float | None = field("How sure it is, from 0 to 1.")
    sources: list[str] = field("Where it was told.")
    source: LazyEntity | None = relation(resolve.sources_of_relations, "Where it leads from.")
    target: LazyEntity | None = relation(resolve.targets_of_relations, "Where it leads to.")
    created_at: datetime = field("When it was written down.")
    updated_at: datetime | None = field("When it was last changed.")
    version: int = field("Counts its changes, from 1.")


@row_type
class WorldEntity(Node):
    """Somebody or something in a world."""

    kind: WorldEntityKind = field("What it is.")
    name: str = field("What it is called.")
    description: str = field("Who or what it is, in prose.")
    aliases: list[str] = relation(resolve.aliases_of_entities, "Its other names, in order.")
    tags: list[str] = field("Words by which people sort.")
    attributes: JSON = field("Whatever its user keeps of it, by name.")
    sources: list[str] = field("Where it was told.")
    world: LazyWorld | None = relation(resolve.worlds_of_rows, "The world that it is in.")
    merged_into: LazyEntity | None = relation(
        resolve.merged_into_of_entities, "The entity that it turned out to be; null for others."
    )
    outgoing: Connection[WorldRelation] = relation(
        resolve.relations_of_sources,
        "The relations that lead from it, oldest first.",
        arguments=RELATION_ARGUMENTS,
        types=_LONG,
    )
    incoming: Connection[WorldRelation] = relation(
        resolve.relations_of_targets,
        "The relations that lead to it, oldest first.",
        arguments=RELATION_ARGUMENTS,
        types=_LONG,
    )
    castings: Connection[LazyCasting] = relation(
        resolve.castings_of_world_entities, "What was drawn from it for stories, oldest first."
    )
    created_at: datetime = field("When it was written down.")
    updated_at: datetime | None = field("When it was last changed.")
    version: int = field("Counts its changes, from 1.")


@row_type
class WorldMerge(Node):
    """That an entity of a world was found to be another one."""

    kept: WorldEntity | None = relation(resolve.kept_of_merges, "The entity that stayed.")
    merged: WorldEntity | None = relation(resolve.merged_of_merges, "The entity that went.")
    created_at: datetime = field("When they were made one.")
    undone_at: datetime | None = field("When that was taken back.")


@row_type
class Casting(Node):
    """That a character plays an entity of a story, or that the entity was drawn from a world."""

    story: LazyStory | None = relation(resolve.stories_of_castings, "The story.")
    entity_row_id: str = field("The entity's own id, the same in all branches of the story.")
    entity: LazyStoryEntity | None = relation(
        resolve.entities_of_castings,
        "The entity in the branch that is open; null where it is gone from that.",
    )
    character: LazyCharacter | None = relation(
        resolve.characters_of_castings, "The character who plays it; null where it is drawn."
    )
    world_entity: WorldEntity | None = relation(
        resolve.world_entities_of_castings, "What it was drawn from; null where it is played."
    )
    created_at: datetime = field("When it was written down.")


@described
class WorldDuplicate:
    """Two entities that may be one."""

    entity: WorldEntity | None = relation(resolve.entities_of_pairs, "The older one.")
    other: WorldEntity | None = relation(resolve.others_of_pairs, "The younger one.")
    reason: Alikeness = field("Why they may be one.")
    score: float = field("How likely that is, from 0 to 1.")


@described
class WorldGraphNode:
    """An entity, as a node of a graph."""

    id: strawberry.ID = field("The id of the entity.")
    kind: WorldEntityKind = field("What it is.")
    label: str = field("Its name.")
    distance: int | None = field(
        "How many steps it is away from where the walk or path begins; null in a whole graph."
    )
    node: WorldEntity = field("The entity itself.")


@described
class WorldGraphEdge:
    """A relation, as an edge of a graph."""

    id: strawberry.ID = field("The id of the relation.")
    kind: str = field("What kind of relation it is.")
    label: str | None = field("What is said of it.")
    source: strawberry.ID = field("The id of the entity that it leads from.")
    target: strawberry.ID = field("The id of the entity that it leads to.")
    is_directed: bool = field("Whether it matters which way it leads.")
    row: WorldRelation = field("The relation itself.")


@described
class WorldGraph:
    """A part of a world as a graph."""

    nodes: list[WorldGraphNode] = field("Its nodes, nearest first, then by id; 1,000 at most.")
    edges: list[WorldGraphEdge] = field("All edges between these nodes, by id; 10,000 at most.")
    truncated: bool = field("Whether there is more than this.")
    truncated_by: TruncationReason | None = field("Why not all is here; null where all is.")


@described
class WorldPath:
    """A way from one entity to another that comes to none twice."""

    length: int = field("How many steps it has.")
    cost: float = field("The sum of its steps, each 1 divided by its weight where asked for.")
    nodes: list[WorldGraphNode] = field("Its nodes, from the one to the other.")
    edges: list[WorldGraphEdge] = field("For each step the edges along which it can be made.")
    truncated: bool = field("Whether the search ended early: there may be others as good.")


@row_type
class World(Node):
    """A world that outlasts stories."""

    name: str = field("What it is called.")
    background: str = field("What it is like, in prose.")
    rules: list[str] = field("What holds in it.")
    canon_version: int = field("How many records its canon has had.")
    entities: Connection[WorldEntity] = relation(
        resolve.entities_of_worlds,
        "What is in it, oldest first, without what turned out to be something else.",
        arguments={
            "kinds": "Only those of these kinds; all unless given.",
            "search": "Part of a name or an alias, without regard to case and accents.",
        },
    )
    relations: Connection[WorldRelation] = relation(
        resolve.relations_of_worlds,
        "What its entities are to each other, oldest first.",
        arguments=RELATION_ARGUMENTS,
        types=_LONG,
    )
    duplicates: list[WorldDuplicate] = relation(
        resolve.duplicates_of_worlds,
        "Entities that may be one, the likeliest first.",
        arguments={
            "kinds": "Only those of these kinds; all unless given.",
            "first": "How many pairs at most, up to 200.",
        },
    )
    merges: Connection[WorldMerge] = relation(
        resolve.merges_of_worlds, "What was made one, newest first."
    )
    canon: Connection[LazyCanonization] = relation(
        resolve.canon_of_worlds, "What was made canon of it, oldest first."
    )
    stories: Connection[LazyStory] = relation(
        resolve.stories_of_worlds, "The stories that are set in it, oldest first."
    )
    graph: WorldGraph = relation(
        resolve.graphs_of_worlds,
        "It as a graph: what lies around some entities, or the whole.",
        arguments={
            "around": "Ids of entities to begin at; those that are not there are left out. Unless "
            "given, the whole, oldest first.",
            "depth": "How many steps to go, 6 at most.",
            "first": "How many nodes at most, up to 1,000.",
            **FILTERS,
        },
        types={"around": list[strawberry.ID] | None, **_LONG},
    )
    paths: list[WorldPath] = relation(
        resolve.paths_of_worlds,
        "The shortest ways from one of its entities to another, shortest first, then by the ids "
        "of their nodes; none where there is none.",
        arguments={
            "from_": "Where they begin.",
            "to": "Where they end.",
            "max_depth": "How many steps a way may have, 30 at most.",
            "first": "How many ways at most, up to 20.",
            "weighted": "Whether strong relations are short, and the cheapest ways come first.",
            **FILTERS,
        },
        types={"from_": strawberry.ID, "to": strawberry.ID, **_LONG},
    )
    communities: WorldCommunities = relation(
        resolve_figures.communities_of_worlds,
        "All of it in communities, whichever way relations lead; refused with TOO_LARGE beyond "
        "20,000 entities or 100,000 relations.",
        arguments={
            "first": "How many communities to show, up to 200.",
            "max_iterations": "How often to go through the entities at most, up to 1,000.",
            **WHOLE_FILTERS,
        },
        types=_LONG,
    )
    centrality: WorldCentrality = relation(
        resolve_figures.centrality_of_worlds,
        "Its most central entities, whichever way relations lead; refused with TOO_LARGE where "
        "entities times relations are more than 100,000,000 for BETWEENNESS, or beyond 20,000 "
        "entities or 100,000 relations.",
        arguments={
            "by": "By what they are central.",
            "first": "How many entities to show, up to 200.",
            **WHOLE_FILTERS,
        },
        types=_LONG,
    )
    created_at: datetime = field("When it was made.")
    updated_at: datetime | None = field("When it itself was last changed; null before.")
    version: int = field("Counts its own changes, from 1.")
