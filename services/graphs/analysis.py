"""Figures of whole graphs: communities, degree, betweenness. Plain functions of numbers.

Nodes are numbers from 0 in the order of their ids, edges are (node, node, weight) with a whole
weight of at least 1. Direction does not count, parallel edges add up, loops are left out. What
comes out is the same whatever the order of the edges.

Run as a program, it answers one question from standard input on standard output: `analyst.py` asks
it so, in a process of its own, because the library that finds betweenness holds the interpreter's
lock for as long as it works. So this module imports nothing of the project.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import rustworkx

Edge = Sequence[int]
# The number of nodes, and the edges.
Graph = tuple[int, Sequence[Edge]]
# The edges of each node: its neighbours with the sums of the weights.
Adjacency = list[dict[int, int]]

# Digits behind the point of betweenness: sums of fractions are not more exact than that.
DIGITS = 12


@dataclass(frozen=True, slots=True)
class Partition:
    """A graph in communities.

    `communities` has the nodes of each in ascending order, the largest first, then that with the
    smallest node. `modularity` is between -0.5 and 1, 0 where there are no edges. `iterations` is
    how often all nodes were gone through; `is_converged` says that no node was left that would
    have moved.
    """

    communities: list[list[int]]
    modularity: float
    iterations: int
    is_converged: bool


def adjacency_of(count: int, edges: Iterable[Edge]) -> Adjacency:
    """The neighbours of `count` nodes; parallel edges are one, loops none."""
    adjacency: Adjacency = [{} for _ in range(count)]
    for one, other, weight in edges:
        if one != other:
            adjacency[one][other] = adjacency[one].get(other, 0) + weight
            adjacency[other][one] = adjacency[other].get(one, 0) + weight
    return adjacency


def find_communities(count: int, edges: Iterable[Edge], most_iterations: int) -> Partition:
    """Communities by modularity (the method of Leiden, without chance), each of them connected.

    A node moves only where that makes modularity larger. All is counted in whole numbers, so each
    move is a gain by at least one and the search ends by itself; `most_iterations` ends it sooner.
    Nodes are gone through in their order, and of equal gains the community that comes first wins.
    """
    adjacency = adjacency_of(count, edges)
    community_of = list(range(count))
    iterations = 0
    is_converged = False
    while not is_converged and iterations < most_iterations:
        community_of, is_converged, gone_through = _climb(
            adjacency, community_of, most_iterations - iterations
        )
        iterations += gone_through
    communities = _connected_parts(adjacency, community_of)
    communities.sort(key=lambda nodes: (-len(nodes), nodes[0]))
    return Partition(communities, _modularity(adjacency, communities), iterations, is_converged)


def _climb(
    adjacency: Adjacency, community_of: list[int], most_iterations: int
) -> tuple[list[int], bool, int]:
    """Move nodes, then groups of nodes, then groups of these, from the given communities on.

    Returns the communities, whether nothing moved at all, and the iterations.
    """
    level = _Level(adjacency, [0] * len(adjacency), community_of)
    # In which node of the level each node of the graph is.
    place_of = list(range(len(adjacency)))
    iterations = 0
    has_moved = False
    while True:
        while level.waiting and iterations < most_iterations:
            has_moved = level.go_through() or has_moved
            iterations += 1
        groups = level.refined()
        if level.waiting or max(groups, default=-1) + 1 == len(groups):
            is_at_rest = not has_moved and not level.waiting
            return [level.community_of[each] for each in place_of], is_at_rest, iterations
        place_of = [groups[each] for each in place_of]
        level = level.joined(groups)


class _Level:
    """The nodes of one level and the communities that they are moved between.

    `within` is twice the weight inside each node, which may be a group of nodes of the level below.
    """

    def __init__(self, adjacency: Adjacency, within: list[int], community_of: list[int]) -> None:
        self.adjacency = adjacency
        self.within = within
        self.degrees = [
            sum(near.values()) + inside for near, inside in zip(adjacency, within, strict=True)
        ]
        self.all_ends = sum(self.degrees)
        self.community_of = _numbered(community_of)
        self.totals = [0] * len(adjacency)
        for node, community in enumerate(self.community_of):
            self.totals[community] += self.degrees[node]
        # The nodes of which a neighbour has moved since they were looked at.
        self.waiting = {node for node, near in enumerate(adjacency) if near}

    def go_through(self) -> bool:
        """Look at every waiting node once and move it to where it gains most; whether any moved."""
        waiting, self.waiting = sorted(self.waiting), set()
        has_moved = False
        for node in waiting:
            left = self.community_of[node]
            joined = self._best_for(node, self.community_of, self.totals)
            if joined != left:
                has_moved = True
                self.totals[left] -= self.degrees[node]
                self.totals[joined] += self.degrees[node]
                self.community_of[node] = joined
                self.waiting.update(
                    other for other in self.adjacency[node] if self.community_of[other] != joined
                )
        return has_moved

    def _best_for(
        self, node: int, groups: list[int], totals: list[int], within: list[int] | None = None
    ) -> int:
        """The group where a node adds most to modularity: its own unless another is better.

        With `within` only groups of nodes of the same community there.
        """
        links: dict[int, int] = {}
        for other, weight in self.adjacency[node].items():
            if within is None or within[other] == within[node]:
                there = groups[other]
                links[there] = links.get(there, 0) + weight
        degree, all_ends = self.degrees[node], self.all_ends
        best = own = groups[node]
        gain = links.pop(own, 0) * all_ends - degree * (totals[own] - degree)
        for group, weight in links.items():
            there = weight * all_ends - degree * totals[group]
            if there > gain or (there == gain and best != own and group < best):
                best, gain = group, there
        return best

    def refined(self) -> list[int]:
        """Groups within the communities, by which the next level is made: nodes alone are put
        together where that is a gain, so that a community whose parts do better apart can part.

        The communities themselves where nothing could be put together.
        """
        groups = list(range(len(self.adjacency)))
        totals = self.degrees.copy()
        is_alone = [True] * len(groups)
        for node in range(len(groups)):
            if is_alone[node]:
                joined = self._best_for(node, groups, totals, self.community_of)
                if joined != node:
                    totals[joined] += self.degrees[node]
                    totals[node] = 0
                    groups[node] = joined
                    is_alone[node] = is_alone[joined] = False
        numbered = _numbered(groups)
        if max(numbered, default=-1) + 1 == len(numbered):
            return _numbered(self.community_of)
        return numbered

    def joined(self, groups: list[int]) -> _Level:
        """The next level, whose nodes are groups of this one's, each still in its community."""
        count = max(groups) + 1
        adjacency: Adjacency = [{} for _ in range(count)]
        within = [0] * count
        community_of = [0] * count
        for node, near in enumerate(self.adjacency):
            here = groups[node]
            within[here] += self.within[node]
            community_of[here] = self.community_of[node]
            for other, weight in near.items():
                there = groups[other]
                if there == here:
                    within[here] += weight
                else:
                    adjacency[here][there] = adjacency[here].get(there, 0) + weight
        return _Level(adjacency, within, community_of)


def _numbered(labels: Iterable[int]) -> list[int]:
    """The same division, numbered in the order of first nodes."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(each, len(numbers)) for each in labels]


def _connected_parts(adjacency: Adjacency, community_of: list[int]) -> list[list[int]]:
    """The communities in ascending order of their nodes, cut where no edge holds them together:
    the node that did may have moved on. A cut never makes modularity smaller.
    """
    parts = []
    seen = [False] * len(adjacency)
    for first in range(len(adjacency)):
        if seen[first]:
            continue
        seen[first] = True
        part = [first]
        for node in part:
            for other in adjacency[node]:
                if not seen[other] and community_of[other] == community_of[first]:
                    seen[other] = True
                    part.append(other)
        parts.append(sorted(part))
    return parts


def _modularity(adjacency: Adjacency, communities: Iterable[Sequence[int]]) -> float:
    all_ends = sum(sum(near.values()) for near in adjacency)
    if all_ends == 0:
        return 0.0
    twice = 0
    for nodes in communities:
        inside = frozenset(nodes)
        within = sum(
            weight for node in nodes for other, weight in adjacency[node].items() if other in inside
        )
        total = sum(sum(adjacency[node].values()) for node in nodes)
        twice += within * all_ends - total * total
    return twice / (all_ends * all_ends)


def degrees_of(count: int, edges: Iterable[Edge]) -> list[int]:
    """How many edges each node has; weights do not count, parallel edges do."""
    degrees = [0] * count
    for one, other, _ in edges:
        if one != other:
            degrees[one] += 1
            degrees[other] += 1
    return degrees


def betweenness_of(count: int, edges: Iterable[Edge]) -> list[float]:
    """The share of the shortest paths between all other pairs that lead through each node, from 0
    to 1: every edge counts as one step. Takes time as nodes times edges.
    """
    graph: rustworkx.PyGraph[int, None] = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(count))
    # Sorted, since the order of the sums shows in their last digits.
    graph.add_edges_from_no_data(
        sorted({(min(one, other), max(one, other)) for one, other, _ in edges if one != other})
    )
    # With several threads the order would be theirs, and the server has the other processors.
    found = rustworkx.betweenness_centrality(graph, normalized=True, parallel_threshold=count + 1)
    return [round(found[node], DIGITS) for node in range(count)]


def answer(question: dict[str, Any]) -> list[Any]:
    """What `analyst.py` asks: `wanted` names one of the three, `graphs` are pairs of the number of
    nodes and the edges. One answer for each graph.
    """
    graphs = question["graphs"]
    match question["wanted"]:
        case "communities":
            most = question["most_iterations"]
            return [asdict(find_communities(count, edges, most)) for count, edges in graphs]
        case "degrees":
            return [degrees_of(count, edges) for count, edges in graphs]
        case _:
            return [betweenness_of(count, edges) for count, edges in graphs]


if __name__ == "__main__":
    # It makes much and throws little away, and ends with its answer.
    gc.disable()
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
