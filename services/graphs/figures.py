"""Figures of the whole graphs of branches or worlds: their communities and their central nodes.

What counts as a graph is the EdgeSource's to say; `analyst.py` computes. Between the two the
database's connection is given back, since computing may take seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from db.enums import CentralityKind
from services.errors import LimitReached
from services.graphs.analysis import Graph
from services.graphs.analyst import Analyst
from services.graphs.walking import EdgeSource, Node, Wanted

# Of all graphs of a question together.
MAX_NODES = 20_000
MAX_EDGES = 100_000
# Nodes times edges: what betweenness takes time as; a few seconds.
MAX_BETWEENNESS = 100_000_000

MAX_ITERATIONS = 1_000
# Of communities, of nodes in one, and of central nodes in an answer.
MAX_SHOWN = 200
MAX_MEMBERS = 1_000


@dataclass(frozen=True, slots=True)
class WholeGraph:
    """All nodes of a branch or world in the order of their ids, and the edges between them by the
    places of their ends, each with the weight 1.
    """

    nodes: Sequence[Node]
    edges: Sequence[tuple[int, int, int]]

    @property
    def as_numbers(self) -> Graph:
        """As `analysis` takes it."""
        return len(self.nodes), self.edges


@dataclass(frozen=True, slots=True)
class Community:
    """Nodes that are tied more among themselves than to others, those with most edges within it
    first. `id` is that of the node that comes first by id, so that it stays while that node does.
    """

    id: str
    members: Sequence[Node]

    @property
    def size(self) -> int:
        """How many nodes it has."""
        return len(self.members)


@dataclass(frozen=True, slots=True)
class Communities:
    """A graph in communities: the first of them, the largest first, and how they were found."""

    communities: Sequence[Community]
    community_count: int
    node_count: int
    edge_count: int
    modularity: float
    iterations: int
    is_converged: bool


@dataclass(frozen=True, slots=True)
class CentralNode:
    """A node with its figure: a number of edges, or a share of shortest paths."""

    node: Node
    figure: float


@dataclass(frozen=True, slots=True)
class Centrality:
    """The most central nodes of a graph, the largest figure first, then by id."""

    by: CentralityKind
    central: Sequence[CentralNode]
    node_count: int
    edge_count: int


async def whole_graphs(
    source: EdgeSource, owners: Sequence[str], wanted: Wanted
) -> list[WholeGraph]:
    """The whole graph of each branch or world. Raises LimitReached (TOO_LARGE)."""
    of_owners = await source.first_nodes(owners, wanted, MAX_NODES + 1)
    ids = sorted({each for found in of_owners for each in found})
    if len(ids) > MAX_NODES:
        raise _too_large(f"There are more than {MAX_NODES:,} nodes", "nodes")
    nodes = await source.nodes(ids)
    edges = await source.edges(nodes, wanted, MAX_EDGES + 1)
    if len(edges) > MAX_EDGES:
        raise _too_large(f"There are more than {MAX_EDGES:,} edges", "edges")
    # Each branch or world has its own nodes, and an edge joins nodes of one.
    kept = [sorted(each for each in found if each in nodes) for found in of_owners]
    owner_of = {each: owner for owner, found in zip(owners, kept, strict=True) for each in found}
    place_of = {each: place for found in kept for place, each in enumerate(found)}
    ties: dict[str, list[tuple[int, int, int]]] = {each: [] for each in owners}
    for edge in edges:
        ties[owner_of[edge.source]].append((place_of[edge.source], place_of[edge.target], 1))
    return [
        WholeGraph([nodes[each] for each in found], ties[owner])
        for owner, found in zip(owners, kept, strict=True)
    ]


async def communities_of_graphs(
    analyst: Analyst, graphs: Sequence[WholeGraph], *, first: int, most_iterations: int
) -> list[Communities]:
    """Each graph in communities, `first` of them. Raises LimitReached (TOO_LARGE)."""
    partitions = await analyst.communities([each.as_numbers for each in graphs], most_iterations)
    return [
        Communities(
            _shown(graph, partition.communities[:first]),
            len(partition.communities),
            len(graph.nodes),
            len(graph.edges),
            partition.modularity,
            partition.iterations,
            partition.is_converged,
        )
        for graph, partition in zip(graphs, partitions, strict=True)
    ]


def _shown(graph: WholeGraph, communities: Sequence[Sequence[int]]) -> list[Community]:
    community_of = {
        number: place for place, numbers in enumerate(communities) for number in numbers
    }
    within = dict.fromkeys(community_of, 0)
    for one, other, weight in graph.edges:
        if one != other and community_of.get(one, -1) == community_of.get(other):
            within[one] += weight
            within[other] += weight
    return [
        Community(
            graph.nodes[numbers[0]].id,
            [
                graph.nodes[number]
                for number in sorted(numbers, key=lambda number: (-within[number], number))
            ],
        )
        for numbers in communities
    ]


async def centrality_of_graphs(
    analyst: Analyst, graphs: Sequence[WholeGraph], by: CentralityKind, *, first: int
) -> list[Centrality]:
    """The `first` most central nodes of each graph. Raises LimitReached (TOO_LARGE)."""
    numbers = [each.as_numbers for each in graphs]
    if by == CentralityKind.DEGREE:
        found = await analyst.degrees(numbers)
    else:
        if sum(count * len(edges) for count, edges in numbers) > MAX_BETWEENNESS:
            raise _too_large("This graph is too large for betweenness", "edges or nodes")
        found = await analyst.betweenness(numbers)
    return [
        Centrality(by, _most_central(graph, figures)[:first], len(graph.nodes), len(graph.edges))
        for graph, figures in zip(graphs, found, strict=True)
    ]


def _most_central(graph: WholeGraph, figures: Sequence[float]) -> list[CentralNode]:
    central = [CentralNode(*each) for each in zip(graph.nodes, figures, strict=True)]
    # Nodes are in the order of their ids, and what is equal stays in its order.
    return sorted(central, key=lambda each: -each.figure)


def _too_large(what: str, of: str) -> LimitReached:
    return LimitReached(f"{what}: ask for fewer kinds of {of}.", "TOO_LARGE")
