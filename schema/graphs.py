"""Branches as graphs: nodes, edges, paths."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import strawberry

from db.enums import CentralityKind, EdgeDirection, EdgeKind, GraphNodeKind, TruncationReason
from resolvers import graphs as resolve
from schema.base import described, enum, field, relation
from schema.branch_rows import AS_OF, AsOfInput, BranchNode, ResolvedAt

if TYPE_CHECKING:
    from schema.stories.entries import StoryEntry

LazyEntry = Annotated["StoryEntry", strawberry.lazy("schema.stories.entries")]

enum(
    EdgeKind,
    RELATIONSHIP="From a character to another one: what the one sees in the other.",
    INVOLVEMENT="From an entity to a happening in which it took part, with its role.",
    AWARENESS="From a character to a happening of which it knows, with how it knows.",
    CONTAINMENT="From a place to the place that it lies within.",
    POSITION="From a character or an item to the place where it is.",
    POSSESSION="From a character to an item: equipped, or in its inventory.",
    MEMBERSHIP="From a character to the faction that it belongs to.",
)
enum(
    GraphNodeKind,
    CHARACTER="A character.",
    LOCATION="A place.",
    ITEM="An item.",
    FACTION="A faction.",
    HAPPENING="Something that happened, goes on or is to come.",
)
enum(
    EdgeDirection,
    OUT="From their source to their target.",
    IN="From their target to their source.",
    BOTH="Either way.",
)
enum(
    TruncationReason,
    NODES="There are more nodes than were asked for.",
    EDGES="There are more edges than are read or shown at once.",
    HUB="A node has more edges of one kind than are read.",
)

PERSPECTIVE = (
    "A character: only what it knows is there, but `node` is whole. Unless given, everything is."
)
FILTERS = MappingProxyType(
    {
        "edge_kinds": "Only edges of these kinds count; all unless given.",
        "kinds": "Only nodes of these kinds are shown and passed through; all unless given.",
        "direction": "Which way edges are followed.",
        "perspective": PERSPECTIVE,
    }
)


@described
class GraphNode:
    """An entity or a happening, as a node of a graph."""

    id: strawberry.ID = field("The id of the row.")
    kind: GraphNodeKind = field("What it is.")
    label: str = field("Its name or title.")
    distance: int | None = field(
        "How many steps it is away from where the walk or path begins; null in a whole graph."
    )
    node: BranchNode = field("The row itself.")


@described
class GraphEdge:
    """What ties two nodes together."""

    id: strawberry.ID = field("Unique, and the same as long as the tie is there.")
    kind: EdgeKind = field("What kind of tie it is.")
    label: str | None = field("What is said of it: a view, a role, how something is known.")
    source: strawberry.ID = field("The id of the node that it leads from.")
    target: strawberry.ID = field("The id of the node that it leads to.")
    is_directed: bool = field("Whether it matters which way it leads.")
    since: LazyEntry | None = relation(
        resolve.entries_of_edges,
        "The entry at which it began; null where neither the row nor the log says so.",
    )


@described
class Graph:
    """A part of the graph of a branch."""

    nodes: list[GraphNode] = field("Its nodes, nearest first, then by id; 1,000 at most.")
    edges: list[GraphEdge] = field("All edges between these nodes, by id; 10,000 at most.")
    truncated: bool = field("Whether there is more than this.")
    truncated_by: TruncationReason | None = field("Why not all is here; null where all is.")
    resolved_at: ResolvedAt | None = field("The moment that was asked for; null for the present.")


@described
class GraphPath:
    """A way from one node to another that comes to no node twice."""

    length: int = field("How many steps it has.")
    nodes: list[GraphNode] = field("Its nodes, from the one to the other.")
    edges: list[GraphEdge] = field("For each step the edges along which it can be made, by id.")
    truncated: bool = field("Whether the search ended early: there may be others as short.")


BRANCH_GRAPH: Any = relation(
    resolve.graphs_of_branches,
    "Its world as a graph: what lies around some nodes, or the whole.",
    arguments={
        "around": "Ids of entities or happenings to begin at; those that are not there are left "
        "out. Unless given, the whole: first the entities, oldest first, then the happenings.",
        "depth": "How many steps to go, 6 at most.",
        "first": "How many nodes at most, up to 1,000.",
        "as_of": AS_OF,
        **FILTERS,
    },
    types={"around": list[strawberry.ID] | None, "as_of": AsOfInput | None},
    ids=["perspective"],
)
BRANCH_PATHS: Any = relation(
    resolve.paths_of_branches,
    "The shortest ways from one of its nodes to another, shortest first, then by the ids of their "
    "nodes; none where there is none.",
    arguments={
        "from_": "Where they begin: an entity or a happening.",
        "to": "Where they end.",
        "max_depth": "How many steps a way may have, 30 at most.",
        "first": "How many ways at most, up to 20.",
        "as_of": AS_OF,
        **FILTERS,
    },
    types={"from_": strawberry.ID, "to": strawberry.ID, "as_of": AsOfInput | None},
    ids=["perspective"],
)
ENTITY_NEIGHBOURS: Any = relation(
    resolve.neighbours_of_entities,
    "What it is tied to, and by what: the nodes one step away, without itself.",
    arguments={"first": "How many at most, up to 200.", **FILTERS},
    ids=["perspective"],
)

enum(
    CentralityKind,
    DEGREE="By how many edges it has.",
    BETWEENNESS="By how many of the shortest ways between all other nodes lead through it.",
)


@described
class GraphCommunity:
    """Nodes that are tied more to each other than to the others: a circle, a region, a plot."""

    id: strawberry.ID = field("The id of the one of its nodes that comes first by id.")
    size: int = field("How many nodes it has.")
    nodes: list[GraphNode] = relation(
        resolve.nodes_of_communities,
        "Its nodes: those with most edges within it first, then by id.",
        arguments={"first": "How many at most, up to 1,000."},
    )


@described
class GraphCommunities:
    """The whole graph of a branch, divided into communities."""

    communities: list[GraphCommunity] = field("The largest first, then by id.")
    community_count: int = field("How many there are; a node without edges is one by itself.")
    node_count: int = field("How many nodes the graph has.")
    edge_count: int = field("How many edges the graph has.")
    modularity: float = field(
        "How well it is divided: by how much the share of edges within communities is larger than "
        "it would be by chance; below 1, and 0 where all are in one."
    )
    iterations: int = field("How often the nodes were gone through.")
    is_converged: bool = field("Whether it was done, and not stopped by maxIterations.")
    resolved_at: ResolvedAt | None = field("The moment that was asked for; null for the present.")


@described
class CentralNode:
    """A node with its figure."""

    node: GraphNode = field("The node.")
    figure: float = field(
        "How many edges it has; or the share, from 0 to 1, of the shortest ways between all other "
        "pairs of nodes that lead through it."
    )


@described
class GraphCentrality:
    """The most central nodes of the whole graph of a branch."""

    by: CentralityKind = field("What the figures are.")
    nodes: list[CentralNode] = field("The largest figure first, then by id.")
    node_count: int = field("How many nodes the graph has.")
    edge_count: int = field("How many edges the graph has.")
    resolved_at: ResolvedAt | None = field("The moment that was asked for; null for the present.")


WHOLE_FILTERS = MappingProxyType(
    {
        "edge_kinds": "Only edges of these kinds count; all unless given.",
        "kinds": "Only nodes of these kinds count; all unless given.",
        "as_of": AS_OF,
        "perspective": PERSPECTIVE,
    }
)
BRANCH_COMMUNITIES: Any = relation(
    resolve.communities_of_branches,
    "Its whole graph in communities, whichever way edges lead; refused with TOO_LARGE beyond "
    "20,000 nodes or 100,000 edges.",
    arguments={
        "first": "How many communities to show, up to 200.",
        "max_iterations": "How often to go through the nodes at most, up to 1,000.",
        **WHOLE_FILTERS,
    },
    types={"as_of": AsOfInput | None},
    ids=["perspective"],
)
BRANCH_CENTRALITY: Any = relation(
    resolve.centrality_of_branches,
    "The most central nodes of its whole graph, whichever way edges lead; refused with TOO_LARGE "
    "where nodes times edges are more than 100,000,000 for BETWEENNESS, or beyond 20,000 nodes or "
    "100,000 edges.",
    arguments={
        "by": "By what they are central.",
        "first": "How many nodes to show, up to 200.",
        **WHOLE_FILTERS,
    },
    types={"as_of": AsOfInput | None},
    ids=["perspective"],
)
