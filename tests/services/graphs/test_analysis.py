"""Communities, degree and betweenness of graphs of many shapes, against another library."""

from __future__ import annotations

import random

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.communities import (
    Edges,
    adjusted_rand_index,
    attached,
    chain,
    hub,
    planted,
    triangles,
)
from services.graphs.analysis import (
    Partition,
    betweenness_of,
    degrees_of,
    find_communities,
)

# More than any of these graphs takes.
MANY = 10_000

graphs = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(
            st.tuples(
                st.integers(0, count - 1), st.integers(0, count - 1), st.sampled_from([1, 1, 3])
            ),
            max_size=30,
        ),
    )
)


def as_networkx(count: int, edges: Edges) -> networkx.MultiGraph:
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(count))
    graph.add_weighted_edges_from(each for each in edges if each[0] != each[1])
    return graph


def test_no_nodes_have_no_communities() -> None:
    assert find_communities(0, [], MANY) == Partition([], 0.0, 0, True)
    assert betweenness_of(0, []) == []


def test_nodes_without_edges_are_communities_by_themselves() -> None:
    assert find_communities(3, [(1, 1, 5)], MANY) == Partition([[0], [1], [2]], 0.0, 0, True)


def test_the_largest_community_is_first_and_equal_ones_go_by_their_first_nodes() -> None:
    edges = [(5, 6, 1), (3, 4, 1), (0, 1, 1), (1, 2, 1), (0, 2, 1)]
    found = find_communities(7, edges, MANY)
    assert found.communities == [[0, 1, 2], [3, 4], [5, 6]]
    assert found.is_converged


def test_balanced_triangles_come_to_rest() -> None:
    """Rule J52. Two triangles on one edge, and a ring of them, where every choice is a tie."""
    two = [(0, 1, 1), (1, 2, 1), (0, 2, 1), (3, 4, 1), (4, 5, 1), (3, 5, 1), (2, 3, 1)]
    assert find_communities(6, two, MANY).communities == [[0, 1, 2], [3, 4, 5]]
    found = find_communities(30, triangles(10), MANY)
    assert found.is_converged
    assert all(
        any({corner, corner + 1, corner + 2} <= set(nodes) for nodes in found.communities)
        for corner in range(0, 30, 3)
    )


def test_parallel_edges_weigh_together() -> None:
    """Rule J51."""
    parallel = [(0, 1, 1)] * 5 + [(1, 2, 1)] + [(2, 3, 1)] * 5
    assert find_communities(4, parallel, MANY).communities == [[0, 1], [2, 3]]
    assert find_communities(4, parallel, MANY) == find_communities(
        4, [(1, 0, 5), (2, 1, 1), (3, 2, 5)], MANY
    )


@pytest.mark.parametrize(
    ("groups", "size", "inside", "outside"), [(10, 40, 0.3, 0.01), (20, 50, 0.3, 0.005)]
)
def test_planted_communities_are_found_again(
    groups: int, size: int, inside: float, outside: float
) -> None:
    count = groups * size
    found = find_communities(count, planted(groups, size, inside, outside), MANY)
    assert found.is_converged
    assert adjusted_rand_index(found.communities, [node // size for node in range(count)]) > 0.99


def test_communities_are_as_good_as_those_of_another_library() -> None:
    edges = attached(1_000, 4)
    graph = as_networkx(1_000, edges)
    found = find_communities(1_000, edges, MANY)
    theirs = networkx.community.louvain_communities(graph, seed=1)
    assert found.modularity == pytest.approx(
        networkx.community.modularity(graph, found.communities)
    )
    assert found.modularity > networkx.community.modularity(graph, theirs) - 0.02


def test_the_order_of_edges_and_of_their_ends_does_not_matter() -> None:
    """Rule J52."""
    edges = attached(400, 4)
    found = find_communities(400, edges, MANY)
    between = betweenness_of(400, edges)
    for seed in range(10):
        chance = random.Random(seed)
        shuffled = [
            (one, other, weight) if chance.random() < 0.5 else (other, one, weight)
            for one, other, weight in chance.sample(edges, len(edges))
        ]
        assert find_communities(400, shuffled, MANY) == found
        assert betweenness_of(400, shuffled) == between


def test_many_nodes_come_to_rest_in_few_iterations() -> None:
    """Rule J52. The worst shapes: newer nodes that prefer hubs, one hub, one long chain."""
    assert find_communities(5_001, hub(5_001), MANY).communities == [[*range(5_001)]]
    line = find_communities(2_000, chain(2_000), MANY)
    assert line.is_converged
    assert line.iterations < 1_000
    assert line.modularity > 0.95
    grown = find_communities(5_000, attached(5_000, 4), MANY)
    assert grown.is_converged
    assert grown.iterations < 1_000


def test_iterations_have_an_end_that_is_said() -> None:
    """Rule J52."""
    edges = attached(400, 4)
    cut = find_communities(400, edges, 2)
    assert (cut.iterations, cut.is_converged) == (2, False)
    assert sorted(node for nodes in cut.communities for node in nodes) == list(range(400))
    assert cut.modularity < find_communities(400, edges, MANY).modularity


@given(graphs)
@settings(max_examples=100, deadline=None)
def test_of_any_graph_communities_are_connected_and_all_of_it(
    graph: tuple[int, Edges],
) -> None:
    count, edges = graph
    found = find_communities(count, edges, MANY)
    theirs = as_networkx(count, edges)
    assert found.is_converged
    assert sorted(node for nodes in found.communities for node in nodes) == list(range(count))
    assert all(networkx.is_connected(theirs.subgraph(nodes)) for nodes in found.communities)
    if theirs.number_of_edges():
        modularity = networkx.community.modularity(theirs, found.communities)
        assert found.modularity == pytest.approx(modularity)
        apart = networkx.community.modularity(theirs, [{node} for node in theirs])
        assert modularity >= apart - 1e-9


@given(graphs)
@settings(max_examples=50, deadline=None)
def test_degree_and_betweenness_are_those_of_another_library(graph: tuple[int, Edges]) -> None:
    """Rules J53, J54."""
    count, edges = graph
    theirs = as_networkx(count, edges)
    assert degrees_of(count, edges) == [theirs.degree(node) for node in range(count)]
    between = networkx.betweenness_centrality(networkx.Graph(theirs))
    assert betweenness_of(count, edges) == pytest.approx([between[node] for node in range(count)])
