"""Graphs that are drawn at random, as sources to walk over and as networkx has them."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
from hypothesis import strategies as st

from services.graphs import Edge, MemorySource, Node

KINDS = ("red", "blue")


@dataclass(frozen=True)
class Drawn:
    """A graph of nodes n0, n1, ... whose edges have kinds, directions and weights."""

    nodes: list[Node]
    edges: list[Edge]
    weights: dict[str, float]

    @property
    def source(self) -> MemorySource:
        owners = {"owner": [each.id for each in self.nodes]}
        return MemorySource({n.id: n for n in self.nodes}, self.edges, owners, self.weights)

    def oracle(self, way: str = "both", kinds: frozenset[str] | None = None) -> nx.DiGraph:
        """What one can step along."""
        graph = nx.DiGraph()
        graph.add_nodes_from(each.id for each in self.nodes)
        for edge in self.edges:
            if kinds is not None and edge.kind not in kinds:
                continue
            ways = [(edge.source, edge.target)] if way != "in" or not edge.is_directed else []
            if way != "out" or not edge.is_directed:
                ways.append((edge.target, edge.source))
            for near, far in ways:
                known = graph.get_edge_data(near, far, {"weight": float("inf")})
                graph.add_edge(near, far, weight=min(known["weight"], self.weights[edge.id]))
        return graph


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> Drawn:
    count = draw(st.integers(2, most))
    ends = st.integers(0, count - 1)
    drawn = draw(
        st.lists(
            st.tuples(ends, ends, st.sampled_from(KINDS), st.booleans(), st.integers(1, 4)),
            max_size=2 * count,
        )
    )
    nodes = [Node(f"n{n}", KINDS[n % 2], f"Node {n}") for n in range(count)]
    edges = [
        Edge(f"e{n:02}", kind, None, f"n{source}", f"n{target}", is_directed)
        for n, (source, target, kind, is_directed, _) in enumerate(drawn)
    ]
    weights = {f"e{n:02}": float(weight) for n, (*_, weight) in enumerate(drawn)}
    return Drawn(nodes, edges, weights)
