"""Communities and central entities of worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import CentralityKind
from resolvers.worlds import figures as resolve
from schema.base import described, field, relation

if TYPE_CHECKING:
    from schema.worlds.rows import WorldGraphNode

LazyNode = Annotated["WorldGraphNode", strawberry.lazy("schema.worlds.rows")]


@described
class WorldCommunity:
    """Entities that are tied more to each other than to the others."""

    id: strawberry.ID = field("The id of the one of its entities that comes first by id.")
    size: int = field("How many entities it has.")
    nodes: list[LazyNode] = relation(
        resolve.world_nodes_of_communities,
        "Its entities: those with most relations within it first, then by id.",
        arguments={"first": "How many at most, up to 1,000."},
    )


@described
class WorldCommunities:
    """A whole world, divided into communities."""

    communities: list[WorldCommunity] = field("The largest first, then by id.")
    community_count: int = field(
        "How many there are; an entity without relations is one by itself."
    )
    node_count: int = field("How many entities count.")
    edge_count: int = field("How many relations count.")
    modularity: float = field(
        "How well it is divided: by how much the share of relations within communities is larger "
        "than it would be by chance; below 1, and 0 where all are in one."
    )
    iterations: int = field("How often the entities were gone through.")
    is_converged: bool = field("Whether it was done, and not stopped by maxIterations.")


@described
class WorldCentralNode:
    """An entity with its figure."""

    node: LazyNode = field("The entity.")
    figure: float = field(
        "How many relations it has; or the share, from 0 to 1, of the shortest ways between all "
        "other pairs of entities that lead through it."
    )


@described
class WorldCentrality:
    """The most central entities of a world."""

    by: CentralityKind = field("What the figures are.")
    nodes: list[WorldCentralNode] = field("The largest figure first, then by id.")
    node_count: int = field("How many entities count.")
    edge_count: int = field("How many relations count.")
