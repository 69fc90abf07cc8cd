"""Walking over anything that has nodes and edges, level by level, within bounds.

Knows no table: what is walked over is an EdgeSource. Several walks are made at once, so that their
number does not change the number of questions to the source.
Source: design, api (one graph), benchmarks B8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from db.enums import EdgeDirection, TruncationReason

MAX_DEPTH = 6
MAX_NODES = 1_000
MAX_NEIGHBOURS = 200
# Of one kind, in one direction, at one node: whoever has more is a hub and is not read whole.
MAX_EDGES_PER_NODE = 500
# Read for one level of a walk, and shown in one answer.
MAX_STEPS = 20_000
MAX_EDGES = 10_000


@dataclass(frozen=True, slots=True)
class Node:
    """A thing that edges join. `id` is its name outside, `kind` and `label` are what people read,
    `row` is the thing itself.
    """

    id: str
    kind: str
    label: str
    row: Any = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A tie of two nodes, which `source` and `target` name. `id` is unique and stays the same as
    long as the tie does. `row` is where it is written down, `part` where in it; `entry_id` is the
    entry at which it began, where the row says so.
    """

    id: str
    kind: str
    label: str | None
    source: str
    target: str
    is_directed: bool = True
    row: Any = None
    part: str | None = None
    entry_id: str | None = None

    @property
    def branch_id(self) -> Any:
        """The branch of the row."""
        return self.row.branch_id

    @property
    def moment(self) -> Any:
        """The moment of the row; None for the present."""
        return getattr(self.row, "moment", None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which edges and nodes count; None is all. Edges are followed OUT from their source, IN from
    their target, or BOTH; an edge without a direction is followed both ways.
    """

    edge_kinds: frozenset[str] | None = None
    node_kinds: frozenset[str] | None = None
    direction: EdgeDirection = EdgeDirection.BOTH


@dataclass(frozen=True, slots=True)
class Step:
    """That one can get from one node to another; `weight` is what it costs, above 0."""

    near: str
    far: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps from some nodes; `hubs` are those that have more, and `is_cut` says that the whole
    was too much.
    """

    steps: Sequence[Step] = ()
    hubs: frozenset[str] = frozenset()
    is_cut: bool = False


class EdgeSource(Protocol):
    """What can be walked over. Nodes are named by their ids outside. What the viewer may not see,
    and what is not to be seen from the perspective that was asked for, is not there.
    """

    async def first_nodes(
        self, owners: Sequence[str], wanted: Wanted, limit: int
    ) -> list[list[str]]:
        """For each branch or world the ids of its first nodes of the wanted kinds, in the order
        in which they were made.
        """

    async def steps(self, ids: Sequence[str], wanted: Wanted, limit: int) -> Steps:
        """One step further from each of these nodes, along wanted edges in the wanted direction:
        MAX_EDGES_PER_NODE for each node, kind and direction, `limit` in all. Ends may be of any
        kind, or be gone.
        """

    async def kinds(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The kind of each of these nodes that is there."""

    async def nodes(self, ids: Sequence[str]) -> Mapping[str, Node]:
        """The nodes with these ids that are there."""

    async def edges(self, nodes: Mapping[str, Node], wanted: Wanted, limit: int) -> list[Edge]:
        """The wanted edges that have both ends among these nodes, in whatever direction, by their
        ids; `limit` at most.
        """


@dataclass(frozen=True, slots=True)
class Found:
    """A node of a walk, and how many steps it is away; None where the walk began nowhere."""

    node: Node
    distance: int | None


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk has found: nodes by distance and id, all edges between them by id, and what kept
    it from finding more within the depth that was asked for.
    """

    nodes: list[Found]
    edges: list[Edge]
    truncated_by: TruncationReason | None = None


@dataclass(slots=True)
class _Reached:
    """How far one walk has come."""

    distances: dict[str, int | None]
    frontier: list[str]
    truncated_by: TruncationReason | None = None

    def cut(self, reason: TruncationReason) -> None:
        self.truncated_by = self.truncated_by or reason


async def walk(
    source: EdgeSource,
    starts: Sequence[Sequence[str]],
    wanted: Wanted,
    *,
    depth: int,
    first: int,
) -> list[Walk]:
    """Breadth first from the nodes of each of `starts`: every node at most `depth` steps away,
    `first` nodes at most. Nodes of other kinds are neither shown nor passed through; those that
    it starts from may be of any kind.
    """
    there = await source.kinds(sorted({each for ids in starts for each in ids}))
    walks = []
    for ids in starts:
        found = sorted({each for each in ids if each in there})
        reached = _Reached(dict.fromkeys(found[:first], 0), found[:first])
        if len(found) > first:
            reached.cut(TruncationReason.NODES)
        walks.append(reached)
    for distance in range(1, depth + 1):
        frontier = sorted({each for reached in walks for each in reached.frontier})
        if not frontier:
            break
        further = await _further(source, frontier, wanted)
        for reached in walks:
            _go_on(reached, further, distance, first)
    return await _shown(source, walks, wanted)


async def whole(
    source: EdgeSource, owners: Sequence[str], wanted: Wanted, *, first: int
) -> list[Walk]:
    """Each branch or world without a place to begin: its first nodes and what is between them."""
    walks = []
    for ids in await source.first_nodes(owners, wanted, first + 1):
        reached = _Reached(dict.fromkeys(ids[:first]), [])
        if len(ids) > first:
            reached.cut(TruncationReason.NODES)
        walks.append(reached)
    return await _shown(source, walks, wanted)


async def stars(
    source: EdgeSource, centres: Sequence[str], wanted: Wanted, *, first: int
) -> list[Walk]:
    """The neighbours of each node, `first` at most, and the edges that lead to them: without the
    node itself. A node that is not there has none.
    """
    walks = [_Reached({each: 0}, [each]) for each in centres]
    further = await _further(source, sorted(set(centres)), wanted)
    for reached in walks:
        _go_on(reached, further, 1, first + 1)
    found = await _shown(source, walks, wanted)
    return [
        Walk(
            [each for each in star.nodes if each.node.id != centre],
            [each for each in star.edges if centre in (each.source, each.target)],
            star.truncated_by,
        )
        for centre, star in zip(centres, found, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Further:
    """What one level leads to: the wanted nodes one step from each, and where it was cut."""

    ends: Mapping[str, Iterable[str]]
    hubs: frozenset[str]
    is_cut: bool


async def _further(source: EdgeSource, frontier: Sequence[str], wanted: Wanted) -> _Further:
    found = await source.steps(frontier, wanted, MAX_STEPS)
    there = await source.kinds(sorted({each.far for each in found.steps}))
    ends: dict[str, set[str]] = {}
    for step in found.steps:
        kind = there.get(step.far)
        if kind is not None and (wanted.node_kinds is None or kind in wanted.node_kinds):
            ends.setdefault(step.near, set()).add(step.far)
    return _Further(ends, found.hubs, found.is_cut)


def _go_on(reached: _Reached, further: _Further, distance: int, first: int) -> None:
    if not reached.frontier:
        return
    if further.is_cut:
        reached.cut(TruncationReason.EDGES)
    if not further.hubs.isdisjoint(reached.frontier):
        reached.cut(TruncationReason.HUB)
    new = sorted(
        {end for each in reached.frontier for end in further.ends.get(each, ())}
        - reached.distances.keys()
    )
    room = first - len(reached.distances)
    if len(new) > room:
        reached.cut(TruncationReason.NODES)
        new = new[:room]
    reached.distances |= dict.fromkeys(new, distance)
    reached.frontier = new


async def _shown(source: EdgeSource, walks: Sequence[_Reached], wanted: Wanted) -> list[Walk]:
    """The walks with their nodes, and the edges between these."""
    nodes = await source.nodes(sorted({each for reached in walks for each in reached.distances}))
    edges = await source.edges(nodes, wanted, MAX_EDGES + 1)
    is_cut = len(edges) > MAX_EDGES
    leaving: dict[str, list[Edge]] = {}
    for edge in edges[:MAX_EDGES]:
        leaving.setdefault(edge.source, []).append(edge)
    shown = []
    for reached in walks:
        if is_cut:
            reached.cut(TruncationReason.EDGES)
        shown.append(
            Walk(
                [
                    Found(nodes[each], distance)
                    for each, distance in reached.distances.items()
                    if each in nodes
                ],
                sorted(
                    (
                        edge
                        for each in reached.distances
                        for edge in leaving.get(each, ())
                        if edge.target in reached.distances
                    ),
                    key=lambda edge: edge.id,
                ),
                reached.truncated_by,
            )
        )
    return shown


@dataclass(slots=True)
class MemorySource:
    """An EdgeSource of nodes and edges that are at hand. `owners` has the nodes of each branch or
    world in the order in which they were made, `weights` those of edges that have one.
    """

    known: Mapping[str, Node]
    ties: Iterable[Edge]
    owners: Mapping[str, Sequence[str]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    _touching: dict[str, list[Edge]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for edge in self.ties:
            for end in {edge.source, edge.target}:
                self._touching.setdefault(end, []).append(edge)

    async def first_nodes(
        self, owners: Sequence[str], wanted: Wanted, limit: int
    ) -> list[list[str]]:
        """As EdgeSource says."""
        return [
            [
                each
                for each in self.owners.get(owner, ())
                if wanted.node_kinds is None or self.known[each].kind in wanted.node_kinds
            ][:limit]
            for owner in owners
        ]

    async def steps(self, ids: Sequence[str], wanted: Wanted, limit: int) -> Steps:
        """As EdgeSource says. Nothing is read, so a hub is no trouble; the whole is bounded."""
        steps = []
        for near in ids:
            for edge in self._touching.get(near, ()):
                if wanted.edge_kinds is not None and edge.kind not in wanted.edge_kinds:
                    continue
                is_source = edge.source == near
                far = edge.target if is_source else edge.source
                way = EdgeDirection.OUT if is_source else EdgeDirection.IN
                if not edge.is_directed or wanted.direction in (EdgeDirection.BOTH, way):
                    steps.append(Step(near, far, self.weights.get(edge.id, 1.0)))
        return Steps(steps[:limit], is_cut=len(steps) > limit)

    async def kinds(self, ids: Sequence[str]) -> Mapping[str, str]:
        """As EdgeSource says."""
        return {each: self.known[each].kind for each in ids if each in self.known}

    async def nodes(self, ids: Sequence[str]) -> Mapping[str, Node]:
        """As EdgeSource says."""
        return {each: self.known[each] for each in ids if each in self.known}

    async def edges(self, nodes: Mapping[str, Node], wanted: Wanted, limit: int) -> list[Edge]:
        """As EdgeSource says."""
        found = {
            edge.id: edge
            for each in nodes
            for edge in self._touching.get(each, ())
            if edge.source in nodes and edge.target in nodes
            if wanted.edge_kinds is None or edge.kind in wanted.edge_kinds
        }
        return [found[each] for each in sorted(found)[:limit]]
