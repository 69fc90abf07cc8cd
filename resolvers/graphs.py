"""Branches as graphs: walks, paths, neighbours; at present or at a moment, whole or as one
character knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import CentralityKind, EdgeDirection, EdgeKind, GraphNodeKind, TruncationReason
from db.reading import Reading
from db.tables import Branch, StoryEntity, StoryEntry
from resolvers import branch_rows
from resolvers.branch_rows import ResolvedAt
from resolvers.context import Context
from services import graphs as service
from services.errors import Invalid, LimitReached
from services.past import Moment
from services.text import refuse_unstorable


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of an answer, as clients see it."""

    id: str
    kind: str
    label: str
    distance: int | None
    node: Any

    @classmethod
    def of(cls, node: service.Node, distance: int | None) -> GraphNode:
        """The node at a distance."""
        return cls(node.id, node.kind, node.label, distance, node.row)


@dataclass(frozen=True, slots=True)
class Graph:
    """A part of the graph of a branch."""

    nodes: list[GraphNode]
    edges: list[service.Edge]
    truncated_by: TruncationReason | None
    resolved_at: ResolvedAt | None

    @property
    def truncated(self) -> bool:
        """Whether there is more."""
        return self.truncated_by is not None


@dataclass(frozen=True, slots=True)
class GraphPath:
    """A way from one node to another."""

    length: int
    nodes: list[GraphNode]
    edges: list[service.Edge]
    truncated: bool


@dataclass(frozen=True, slots=True)
class GraphCommunities:
    """The graph of a branch in communities."""

    communities: Sequence[service.Community]
    community_count: int
    node_count: int
    edge_count: int
    modularity: float
    iterations: int
    is_converged: bool
    resolved_at: ResolvedAt | None


@dataclass(frozen=True, slots=True)
class CentralNode:
    """A node with its figure."""

    node: GraphNode
    figure: float


@dataclass(frozen=True, slots=True)
class GraphCentrality:
    """The most central nodes of the graph of a branch."""

    by: CentralityKind
    nodes: list[CentralNode]
    node_count: int
    edge_count: int
    resolved_at: ResolvedAt | None


def _graph(walk: service.Walk, moment: Moment | None) -> Graph:
    return Graph(
        [GraphNode.of(each.node, each.distance) for each in walk.nodes],
        walk.edges,
        walk.truncated_by,
        branch_rows.shown_moment(moment),
    )


def _checked(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise Invalid(f"{name} lies between {least} and {most}.", "OUT_OF_RANGE", (name,))
    return value


def _wanted(
    edge_kinds: list[EdgeKind] | None,
    kinds: list[GraphNodeKind] | None,
    direction: EdgeDirection,
) -> service.Wanted:
    return service.Wanted(
        None if edge_kinds is None else frozenset(edge_kinds),
        None if kinds is None else frozenset(kinds),
        direction,
    )


def _full(branch_id: str, id: str) -> str:
    """The name outside of a node of a branch, given by that or by its own id."""
    return id if ":" in id else f"{branch_id}:{id}"


async def _sources(
    context: Context,
    reading: Reading,
    parents: Sequence[tuple[str, Moment | None]],
    perspective: str | None,
) -> list[tuple[service.EdgeSource, list[int]]]:
    """What to walk over, each with the places of those parents for which it is. All of the present
    that nobody looks at from a perspective is one.
    """
    grouped: dict[Any, list[int]] = {}
    for place, (branch_id, moment) in enumerate(parents):
        is_shared = moment is None and perspective is None
        grouped.setdefault(None if is_shared else (branch_id, moment), []).append(place)
    return [
        (
            await service.source_of(
                reading, context.viewer, *parents[places[0]], perspective=perspective
            ),
            places,
        )
        for places in grouped.values()
    ]


async def graphs_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    around: list[str] | None = None,
    depth: int = 1,
    first: int = 100,
    edge_kinds: list[EdgeKind] | None = None,
    kinds: list[GraphNodeKind] | None = None,
    direction: EdgeDirection = EdgeDirection.BOTH,
    as_of: Any = None,
    perspective: str | None = None,
) -> list[Graph]:
    """What lies around some nodes of each branch, or the whole branch. Raises Invalid
    (OUT_OF_RANGE, INVALID_TEXT), and what a moment and a perspective raise.
    """
    refuse_unstorable(around, ("around",))
    _checked("depth", depth, 0, service.MAX_DEPTH)
    _checked("first", first, 0, service.MAX_NODES)
    wanted = _wanted(edge_kinds, kinds, direction)
    moments = [await branch_rows.moment_of(context, each, as_of) for each in branches]
    found: list[Any] = [None for _ in branches]
    async with context.reading() as reading:
        parents = [(each.id, moment) for each, moment in zip(branches, moments, strict=True)]
        for source, places in await _sources(context, reading, parents, perspective):
            ids = [parents[place][0] for place in places]
            if around is None:
                walks = await service.whole(source, ids, wanted, first=first)
            else:
                starts = [
                    [
                        each
                        for each in (_full(branch_id, start) for start in around)
                        if each.startswith(f"{branch_id}:")
                    ]
                    for branch_id in ids
                ]
                walks = await service.walk(source, starts, wanted, depth=depth, first=first)
            for place, walked in zip(places, walks, strict=True):
                found[place] = _graph(walked, moments[place])
    return found


async def paths_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    from_: str,
    to: str,
    max_depth: int = 6,
    first: int = 1,
    edge_kinds: list[EdgeKind] | None = None,
    kinds: list[GraphNodeKind] | None = None,
    direction: EdgeDirection = EdgeDirection.BOTH,
    as_of: Any = None,
    perspective: str | None = None,
) -> list[list[GraphPath] | Exception]:
    """The shortest ways from one node of each branch to another. Raises Invalid (OUT_OF_RANGE,
    INVALID_TEXT), LimitReached, and what a moment and a perspective raise.
    """
    refuse_unstorable(from_, ("from",))
    refuse_unstorable(to, ("to",))
    _checked("maxDepth", max_depth, 0, service.MAX_PATH_DEPTH)
    _checked("first", first, 0, service.MAX_PATHS)
    wanted = _wanted(edge_kinds, kinds, direction)
    moments = [await branch_rows.moment_of(context, each, as_of) for each in branches]
    found: list[Any] = [None for _ in branches]
    async with context.reading() as reading:
        parents = [(each.id, moment) for each, moment in zip(branches, moments, strict=True)]
        for source, places in await _sources(context, reading, parents, perspective):
            pairs = []
            for place in places:
                branch_id = parents[place][0]
                ends = (_full(branch_id, from_), _full(branch_id, to))
                is_here = all(each.startswith(f"{branch_id}:") for each in ends)
                pairs.append(ends if is_here else (branch_id, branch_id))
            searched = await service.find_paths(
                source, pairs, wanted, max_depth=max_depth, first=first
            )
            for place, paths in zip(places, searched, strict=True):
                found[place] = _shown_paths(paths)
    return found


def _shown_paths(paths: list[service.Path] | None) -> list[GraphPath] | Exception:
    if paths is None:
        return LimitReached(
            "Too much lies between these two: ask for fewer kinds, or a smaller maxDepth."
        )
    return [_path(each) for each in paths]


def _path(path: service.Path) -> GraphPath:
    nodes = [GraphNode.of(node, distance) for distance, node in enumerate(path.nodes)]
    return GraphPath(path.length, nodes, path.edges, path.is_cut)


async def neighbours_of_entities(
    context: Context,
    entities: Sequence[StoryEntity],
    *,
    first: int = 20,
    edge_kinds: list[EdgeKind] | None = None,
    kinds: list[GraphNodeKind] | None = None,
    direction: EdgeDirection = EdgeDirection.BOTH,
    perspective: str | None = None,
) -> list[Graph]:
    """What each entity is tied to, at the moment of the entity. Raises Invalid (OUT_OF_RANGE), and
    what a perspective raises.
    """
    _checked("first", first, 0, service.MAX_NEIGHBOURS)
    wanted = _wanted(edge_kinds, kinds, direction)
    found: list[Any] = [None for _ in entities]
    async with context.reading() as reading:
        parents = [(each.branch_id, getattr(each, "moment", None)) for each in entities]
        for source, places in await _sources(context, reading, parents, perspective):
            centres = [entities[place].id for place in places]
            stars = await service.stars(source, centres, wanted, first=first)
            for place, star in zip(places, stars, strict=True):
                found[place] = _graph(star, parents[place][1])
    return found


async def entries_of_edges(
    context: Context, edges: Sequence[service.Edge]
) -> list[StoryEntry | None]:
    """The entry at which each edge began."""
    async with context.reading() as reading:
        row_ids = await service.entries_of_edges(reading, context.viewer, edges)
    return await branch_rows.linked(context, StoryEntry, edges, row_ids)


async def _whole_graphs(
    context: Context,
    branches: Sequence[Branch],
    wanted: service.Wanted,
    as_of: Any,
    perspective: str | None,
) -> tuple[list[service.WholeGraph], list[Moment | None]]:
    """All of the graph of each branch, and the moment of which it is; the connection is back before
    anything is computed.
    """
    moments = [await branch_rows.moment_of(context, each, as_of) for each in branches]
    graphs: list[Any] = [None for _ in branches]
    async with context.reading() as reading:
        parents = [(each.id, moment) for each, moment in zip(branches, moments, strict=True)]
        for source, places in await _sources(context, reading, parents, perspective):
            ids = [parents[place][0] for place in places]
            found = await service.whole_graphs(source, ids, wanted)
            for place, graph in zip(places, found, strict=True):
                graphs[place] = graph
    return graphs, moments


async def communities_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    first: int = 20,
    max_iterations: int = service.MAX_ITERATIONS,
    edge_kinds: list[EdgeKind] | None = None,
    kinds: list[GraphNodeKind] | None = None,
    as_of: Any = None,
    perspective: str | None = None,
) -> list[GraphCommunities]:
    """The graph of each branch in communities. Raises Invalid (OUT_OF_RANGE), LimitReached
    (TOO_LARGE), and what a moment and a perspective raise.
    """
    _checked("first", first, 0, service.MAX_SHOWN)
    _checked("maxIterations", max_iterations, 1, service.MAX_ITERATIONS)
    wanted = _wanted(edge_kinds, kinds, EdgeDirection.BOTH)
    graphs, moments = await _whole_graphs(context, branches, wanted, as_of, perspective)
    found = await service.communities_of_graphs(
        context.engine.analyst, graphs, first=first, most_iterations=max_iterations
    )
    return [
        GraphCommunities(
            each.communities,
            each.community_count,
            each.node_count,
            each.edge_count,
            each.modularity,
            each.iterations,
            each.is_converged,
            branch_rows.shown_moment(moment),
        )
        for each, moment in zip(found, moments, strict=True)
    ]


async def nodes_of_communities(
    context: Context, communities: Sequence[service.Community], *, first: int = 20
) -> list[list[GraphNode]]:
    """The nodes of each community. Raises Invalid (OUT_OF_RANGE)."""
    _checked("first", first, 0, service.MAX_MEMBERS)
    return [[GraphNode.of(node, None) for node in each.members[:first]] for each in communities]


async def centrality_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    by: CentralityKind,
    first: int = 20,
    edge_kinds: list[EdgeKind] | None = None,
    kinds: list[GraphNodeKind] | None = None,
    as_of: Any = None,
    perspective: str | None = None,
) -> list[GraphCentrality]:
    """The most central nodes of the graph of each branch. Raises Invalid (OUT_OF_RANGE),
    LimitReached (TOO_LARGE), and what a moment and a perspective raise.
    """
    _checked("first", first, 0, service.MAX_SHOWN)
    wanted = _wanted(edge_kinds, kinds, EdgeDirection.BOTH)
    graphs, moments = await _whole_graphs(context, branches, wanted, as_of, perspective)
    found = await service.centrality_of_graphs(context.engine.analyst, graphs, by, first=first)
    return [
        GraphCentrality(
            each.by,
            [CentralNode(GraphNode.of(one.node, None), one.figure) for one in each.central],
            each.node_count,
            each.edge_count,
            branch_rows.shown_moment(moment),
        )
        for each, moment in zip(found, moments, strict=True)
    ]
