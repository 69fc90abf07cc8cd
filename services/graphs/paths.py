"""Paths between two nodes: the shortest ones, or the cheapest, found from both ends.

Both ends go out level by level, the one with less before it first, until what lies between them is
known; the paths are then read off in memory, best first. Several searches are made at once.
Source: design, api (one graph), benchmarks B8.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from db.enums import EdgeDirection
from services.graphs.walking import Edge, EdgeSource, Node, Wanted

MAX_PATH_DEPTH = 30
MAX_PATHS = 20
# Edges that are shown for one step of a path.
MAX_PARALLEL = 20
# Nodes from which one search goes on, and steps that all searches of one level read.
MAX_VISITED = 20_000
MAX_PATH_STEPS = 200_000
# Beginnings of paths that are tried.
MAX_TRIED = 20_000
_BACK = {
    EdgeDirection.OUT: EdgeDirection.IN,
    EdgeDirection.IN: EdgeDirection.OUT,
    EdgeDirection.BOTH: EdgeDirection.BOTH,
}


@dataclass(frozen=True, slots=True)
class Path:
    """A way from one node to another that comes to no node twice: its nodes in order, and for each
    step the edges along which it can be made, by their ids. `cost` is the sum of the weights, or
    the length. `is_cut` says that the search ended early, so that there may be others as good.
    """

    nodes: list[Node]
    edges: list[Edge]
    cost: float
    is_cut: bool

    @property
    def length(self) -> int:
        """How many steps it has."""
        return len(self.nodes) - 1


@dataclass(slots=True)
class _End:
    """One end of a search, and how far it has come."""

    start: str
    seen: set[str]
    frontier: list[str]
    depth: int = 0


@dataclass(slots=True)
class _Search:
    """One search. `ways` has, for each node, where one can get from it and at what cost."""

    ends: tuple[_End, _End]
    ways: dict[str, dict[str, float]] = field(default_factory=dict)
    visited: int = 0
    is_cut: bool = False
    is_over: bool = False
    found: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)

    @property
    def covered(self) -> int:
        """All paths of this length are known."""
        return self.ends[0].depth + self.ends[1].depth

    def nearer_end(self) -> int:
        """Which end goes on: that with less before it."""
        ahead, behind = self.ends
        return 0 if len(ahead.frontier) <= len(behind.frontier) else 1


async def find_paths(
    source: EdgeSource,
    pairs: Sequence[tuple[str, str]],
    wanted: Wanted,
    *,
    max_depth: int,
    first: int,
    is_weighted: bool = False,
) -> list[list[Path] | None]:
    """For each pair of nodes its `first` best paths of `max_depth` steps at most: the shortest
    ones, or with `is_weighted` the cheapest; those as good by the ids of their nodes. None where a
    search had to end before it had found any.
    """
    ids = sorted({each for pair in pairs for each in pair})
    there = await source.kinds(ids)
    searches = [
        _Search(
            (_End(start, {start}, [start]), _End(end, {end}, [end])),
            is_over=not (start in there and end in there),
        )
        for start, end in pairs
    ]
    if first > 0:
        await _search(source, searches, wanted, max_depth, first, is_weighted=is_weighted)
    return await _shown(source, searches, wanted)


async def _search(
    source: EdgeSource,
    searches: Sequence[_Search],
    wanted: Wanted,
    max_depth: int,
    first: int,
    *,
    is_weighted: bool,
) -> None:
    for level in range(max_depth + 1):
        for each in searches:
            if not each.is_over:
                _read_off(each, level, max_depth, first, is_weighted=is_weighted)
        going = [each for each in searches if not each.is_over]
        if not going:
            return
        sides = [each.nearer_end() for each in going]
        for side in (0, 1):
            ends = [each for each, chosen in zip(going, sides, strict=True) if chosen == side]
            if ends:
                await _go_on(source, ends, side, wanted)


async def _go_on(
    source: EdgeSource, searches: Sequence[_Search], side: int, wanted: Wanted
) -> None:
    """One end of each search goes one step further."""
    way = wanted.direction if side == 0 else _BACK[wanted.direction]
    asked = Wanted(wanted.edge_kinds, wanted.node_kinds, way)
    frontier = sorted({near for each in searches for near in each.ends[side].frontier})
    found = await source.steps(frontier, asked, MAX_PATH_STEPS)
    there = await source.kinds(sorted({far for ends in found.ends.values() for far in ends}))
    for search in searches:
        end = search.ends[side]
        other = search.ends[1 - side].start
        end.depth += 1
        search.visited += len(end.frontier)
        if found.is_cut or not found.hubs.isdisjoint(end.frontier):
            search.is_cut = True
        further = set()
        for near in end.frontier:
            for far, weight in found.ends.get(near, {}).items():
                kind = there.get(far)
                if kind is None:
                    continue
                if not _may_pass(kind, wanted) and far not in (end.start, other):
                    continue
                before, behind = (near, far) if side == 0 else (far, near)
                ways = search.ways.setdefault(before, {})
                ways[behind] = min(weight, ways.get(behind, weight))
                further.add(far)
        end.frontier = sorted(further - end.seen)
        end.seen |= further


def _may_pass(kind: str, wanted: Wanted) -> bool:
    return wanted.node_kinds is None or kind in wanted.node_kinds


def _read_off(
    search: _Search, level: int, max_depth: int, first: int, *, is_weighted: bool
) -> None:
    """Look what is found by now, and whether it is over."""
    ahead, behind = search.ends
    is_known = not (ahead.frontier and behind.frontier) or ahead.start == behind.start
    is_last = level == max_depth or is_known
    if search.visited >= MAX_VISITED and not is_last:
        search.is_cut = is_last = True
    if not is_last and (is_weighted or ahead.seen.isdisjoint(behind.seen)):
        return
    longest = max_depth if is_last else search.covered
    search.found, is_whole = best_paths(
        search.ways,
        ahead.start,
        behind.start,
        longest=longest,
        first=first,
        is_weighted=is_weighted,
    )
    search.is_cut = search.is_cut or not is_whole
    search.is_over = is_last or len(search.found) >= first or not is_whole


def best_paths(
    ways: Mapping[str, Mapping[str, float]],
    start: str,
    end: str,
    *,
    longest: int,
    first: int,
    is_weighted: bool,
) -> tuple[list[tuple[float, tuple[str, ...]]], bool]:
    """The `first` best paths of at most `longest` steps that come to no node twice, each with its
    cost: best first, those as good by their nodes. And whether nothing was left untried.

    A beginning is taken up in the order of what it will cost at least, so that the first paths that
    come to the end are the best ones.
    """
    costs = _costs_to(ways, end, is_weighted=is_weighted)
    found: list[tuple[float, tuple[str, ...]]] = []
    if start not in costs:
        return found, True
    steps_left = costs if not is_weighted else _costs_to(ways, end, is_weighted=False)
    # Costs at least, nodes, costs so far. Those that promise the same come by their nodes, so a
    # beginning is gone through to its end before the next one is taken up.
    open_: list[tuple[float, tuple[str, ...], float]] = [(costs[start], (start,), 0.0)]
    for _ in range(MAX_TRIED):
        if not open_ or len(found) >= first:
            return found, True
        _, path, cost = heapq.heappop(open_)
        near = path[-1]
        if near == end:
            found.append((cost, path))
            continue
        for far, weight in ways.get(near, {}).items():
            if far in path or far not in costs or len(path) + steps_left[far] > longest:
                continue
            paid = cost + (weight if is_weighted else 1.0)
            longer = (*path, far)
            heapq.heappush(open_, (paid + costs[far], longer, paid))
    return found, not open_ or len(found) >= first


def _costs_to(
    ways: Mapping[str, Mapping[str, float]], end: str, *, is_weighted: bool
) -> dict[str, float]:
    """What it costs at least to get from each node to the end."""
    back: dict[str, list[tuple[str, float]]] = {}
    for near, ends in ways.items():
        for far, weight in ends.items():
            back.setdefault(far, []).append((near, weight))
    return _cheapest(back, end) if is_weighted else _fewest(back, end)


def _fewest(back: Mapping[str, Sequence[tuple[str, float]]], end: str) -> dict[str, float]:
    """How many steps there are."""
    steps = {end: 0.0}
    # Grows while it is gone through.
    reached = [end]
    for node in reached:
        further = steps[node] + 1
        for before, _ in back.get(node, ()):
            if before not in steps:
                steps[before] = further
                reached.append(before)
    return steps


def _cheapest(back: Mapping[str, Sequence[tuple[str, float]]], end: str) -> dict[str, float]:
    """What the steps cost."""
    costs: dict[str, float] = {}
    open_ = [(0.0, end)]
    while open_:
        cost, node = heapq.heappop(open_)
        if node in costs:
            continue
        costs[node] = cost
        for before, weight in back.get(node, ()):
            if before not in costs:
                heapq.heappush(open_, (cost + weight, before))
    return costs


async def _shown(
    source: EdgeSource, searches: Sequence[_Search], wanted: Wanted
) -> list[list[Path] | None]:
    """The paths with their nodes and edges."""
    ids = sorted({each for search in searches for _, path in search.found for each in path})
    nodes = await source.nodes(ids)
    # As many as lie between so few nodes: all of them.
    edges = await source.edges(nodes, wanted, MAX_PATH_STEPS)
    between: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        # An edge can be followed from its source, from its target, or from both.
        if not edge.is_directed or wanted.direction != EdgeDirection.IN:
            between.setdefault((edge.source, edge.target), []).append(edge)
        if not edge.is_directed or wanted.direction != EdgeDirection.OUT:
            between.setdefault((edge.target, edge.source), []).append(edge)
    return [
        None
        if search.is_cut and not search.found
        else [
            Path(
                [nodes[each] for each in path],
                [edge for step in pairwise(path) for edge in between.get(step, [])[:MAX_PARALLEL]],
                cost,
                search.is_cut,
            )
            for cost, path in search.found
            if all(each in nodes for each in path)
        ]
        for search in searches
    ]
