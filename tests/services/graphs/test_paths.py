"""Paths between two nodes, against networkx."""

from __future__ import annotations

from itertools import islice, pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import EdgeDirection
from services.graphs import Edge, MemorySource, Node, Wanted, find_paths, paths
from tests.services.graphs.drawn import KINDS, Drawn, graphs


@settings(max_examples=80, deadline=None)
@given(
    graphs(),
    st.sampled_from(EdgeDirection),
    st.integers(0, 6),
    st.integers(1, 5),
    st.none() | st.frozensets(st.sampled_from(KINDS), min_size=1),
)
async def test_the_shortest_paths_are_found_shortest_first(
    drawn: Drawn,
    way: EdgeDirection,
    max_depth: int,
    first: int,
    kinds: frozenset[str] | None,
) -> None:
    """Rule J20."""
    wanted = Wanted(kinds, None, way)
    oracle = drawn.oracle(way, kinds)
    pairs = [("n0", "n1"), ("n1", "n0")]
    found = await find_paths(drawn.source, pairs, wanted, max_depth=max_depth, first=first)
    for (start, end), each in zip(pairs, found, strict=True):
        simple = nx.all_simple_paths(oracle, start, end, cutoff=max_depth) if max_depth else ()
        best = sorted(simple, key=lambda path: (len(path), path))[:first]
        assert each is not None
        assert [[node.id for node in path.nodes] for path in each] == best
        assert [(path.length, path.is_cut) for path in each] == [
            (len(path) - 1, False) for path in best
        ]
        for path in each:
            steps = list(pairwise(node.id for node in path.nodes))
            assert all(oracle.has_edge(*step) for step in steps)
            assert {frozenset((edge.source, edge.target)) for edge in path.edges} == {
                frozenset(step) for step in steps
            }


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 4))
async def test_the_cheapest_paths_are_found_on_request(drawn: Drawn, first: int) -> None:
    """Rule J21."""
    (found,) = await find_paths(
        drawn.source, [("n0", "n1")], Wanted(), max_depth=9, first=first, is_weighted=True
    )
    oracle = drawn.oracle()
    costs: list[float] = []
    if nx.has_path(oracle, "n0", "n1"):
        best = islice(nx.shortest_simple_paths(oracle, "n0", "n1", weight="weight"), first)
        costs = [nx.path_weight(oracle, path, "weight") for path in best]
    assert found is not None
    assert [path.cost for path in found] == costs


async def test_a_path_from_a_node_to_itself_has_no_steps() -> None:
    """Rule J20."""
    source = MemorySource({"a": Node("a", "red", "A")}, [Edge("1", "red", None, "a", "a")])
    (found,) = await find_paths(source, [("a", "a")], Wanted(), max_depth=6, first=3)
    assert found is not None
    assert [(path.length, len(path.nodes), path.edges) for path in found] == [(0, 1, [])]
    (none,) = await find_paths(source, [("a", "gone")], Wanted(), max_depth=6, first=3)
    assert none == []


async def test_a_search_that_had_to_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule J22."""
    names = [f"n{number}" for number in range(9)]
    nodes = {each: Node(each, "red", each) for each in names}
    chain = [Edge(f"e{n}", "red", None, *step) for n, step in enumerate(pairwise(names))]
    around = Edge("short", "red", None, "n0", "n8")
    monkeypatch.setattr(paths, "MAX_VISITED", 3)
    far = MemorySource(nodes, chain)
    assert await find_paths(far, [("n0", "n8")], Wanted(), max_depth=9, first=1) == [None]
    near = MemorySource(nodes, [*chain, around])
    (found,) = await find_paths(near, [("n0", "n8")], Wanted(), max_depth=9, first=2)
    assert found is not None
    assert [(path.length, path.is_cut) for path in found] == [(1, True)]
