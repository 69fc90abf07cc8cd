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


# Not frozen: thousands are made for one answer, and making those takes six times as long.
@dataclass(slots=True)
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
class Steps:
    """Where one can get in one step: for each node its ends, with what it costs at least to get
    there, above 0. `hubs` are nodes that have more, and `is_cut` says that the whole was too much.
    """

    ends: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
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
        MAX_EDGES_PER_NODE edges for each node, kind and direction, `limit` in all. Ends may be of
        any kind, or be gone.
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
    """How far one walk has come; `ahead` is what it comes to next, by id."""

    distances: dict[str, int | None]
    frontier: list[str]
    ahead: list[str] = field(default_factory=list)
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
    nodes = dict(await source.nodes(sorted({each for ids in starts for each in ids})))
    walks = []
    for ids in starts:
        found = sorted({each for each in ids if each in nodes})
        reached = _Reached(dict.fromkeys(found[:first], 0), found[:first])
        if len(found) > first:
            reached.cut(TruncationReason.NODES)
        walks.append(reached)
    for distance in range(1, depth + 1):
        if not any(reached.frontier for reached in walks):
            break
        await _go_on(source, walks, nodes, wanted, distance, first)
    return await _shown(source, walks, nodes, wanted)


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
    nodes = await source.nodes(sorted({each for reached in walks for each in reached.distances}))
    return await _shown(source, walks, nodes, wanted)


async def stars(
    source: EdgeSource, centres: Sequence[str], wanted: Wanted, *, first: int
) -> list[Walk]:
    """The neighbours of each node, `first` at most, and the edges that lead to them: without the
    node itself. A node that is not there has none.
    """
    nodes = dict(await source.nodes(sorted(set(centres))))
    walks = [_Reached({each: 0}, [each] if each in nodes else []) for each in centres]
    await _go_on(source, walks, nodes, wanted, 1, first + 1, asks_kinds=True)
    found = await _shown(source, walks, nodes, wanted)
    return [
        Walk(
            [each for each in star.nodes if each.node.id != centre],
            [each for each in star.edges if centre in (each.source, each.target)],
            star.truncated_by,
        )
        for centre, star in zip(centres, found, strict=True)
    ]


async def _go_on(
    source: EdgeSource,
    walks: Sequence[_Reached],
    nodes: dict[str, Node],
    wanted: Wanted,
    distance: int,
    first: int,
    *,
    asks_kinds: bool = False,
) -> None:
    """All walks go one step further. `nodes` has those that are known to be there. Where kinds are
    asked for, also what is gone is known at once: the number of statements is always the same.
    """
    frontier = sorted({each for reached in walks for each in reached.frontier})
    found = await source.steps(frontier, wanted, MAX_STEPS)
    kinds = wanted.node_kinds
    passable: set[str] | None = None
    if asks_kinds or kinds is not None:
        ends = sorted({end for ends in found.ends.values() for end in ends})
        there = await source.kinds(ends)
        passable = {each for each, kind in there.items() if kinds is None or kind in kinds}
    for reached in walks:
        if found.is_cut and reached.frontier:
            reached.cut(TruncationReason.EDGES)
        if not found.hubs.isdisjoint(reached.frontier):
            reached.cut(TruncationReason.HUB)
        new: set[str] = set()
        for near in reached.frontier:
            new.update(found.ends.get(near, ()))
        new -= reached.distances.keys()
        reached.ahead = sorted(new if passable is None else new & passable)
    await _look_ahead(source, walks, nodes, first)
    for reached in walks:
        room = first - len(reached.distances)
        if len(reached.ahead) > room:
            reached.cut(TruncationReason.NODES)
        new_ids = reached.ahead[:room]
        reached.distances |= dict.fromkeys(new_ids, distance)
        is_over = len(reached.distances) == first and reached.truncated_by is not None
        reached.frontier = [] if is_over else new_ids


async def _look_ahead(
    source: EdgeSource, walks: Sequence[_Reached], nodes: dict[str, Node], first: int
) -> None:
    """Get the nodes that the walks come to, and the one that shows that there are more. What is
    gone is ahead of nobody.
    """
    while True:
        asked = {
            each
            for reached in walks
            for each in reached.ahead[: first - len(reached.distances) + 1]
            if each not in nodes
        }
        nodes.update(await source.nodes(sorted(asked)))
        gone = asked - nodes.keys()
        for reached in walks:
            reached.ahead = [each for each in reached.ahead if each not in gone]
        if not gone:
            return


async def _shown(
    source: EdgeSource, walks: Sequence[_Reached], nodes: Mapping[str, Node], wanted: Wanted
) -> list[Walk]:
    """The walks with the edges between their nodes."""
    ids = {each for reached in walks for each in reached.distances if each in nodes}
    edges = await source.edges({each: nodes[each] for each in sorted(ids)}, wanted, MAX_EDGES + 1)
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
        found: dict[str, dict[str, float]] = {}
        count = 0
        for near in ids:
            ends = found.setdefault(near, {})
            for edge in self._touching.get(near, ()):
                if wanted.edge_kinds is not None and edge.kind not in wanted.edge_kinds:
                    continue
                is_source = edge.source == near
                way = EdgeDirection.OUT if is_source else EdgeDirection.IN
                if edge.is_directed and wanted.direction not in (EdgeDirection.BOTH, way):
                    continue
                count += 1
                if count > limit:
                    return Steps(found, is_cut=True)
                far = edge.target if is_source else edge.source
                weight = self.weights.get(edge.id, 1.0)
                ends[far] = min(weight, ends.get(far, weight))
        return Steps(found)

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
