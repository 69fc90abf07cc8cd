"""Figures of graphs that are at hand, and how much is too much."""

from __future__ import annotations

import random

import pytest

from db.enums import CentralityKind
from services.errors import DomainError
from services.graphs import figures as service
from services.graphs.analyst import Analyst
from services.graphs.walking import Edge, MemorySource, Node, Wanted

EVERYTHING = Wanted()


def source(owners: dict[str, str], ties: str) -> MemorySource:
    """Nodes named by letters, capital ones places; ties such as `a-b`."""
    nodes = {
        letter: Node(letter, "location" if letter.isupper() else "character", letter.upper())
        for letters in owners.values()
        for letter in letters
    }
    edges = [
        Edge(f"{number}", "relationship", None, tie[0], tie[2])
        for number, tie in enumerate(ties.split())
    ]
    return MemorySource(nodes, edges, {owner: [*letters] for owner, letters in owners.items()})


async def test_communities_are_named_after_their_first_node_and_most_tied_members_lead() -> None:
    """Rules J50, J51."""
    graphs = await service.whole_graphs(
        source({"br_1": "fedcba", "br_2": "xzy"}, "c-a c-b c-a d-e e-f d-f a-d x-z"),
        ["br_1", "br_2"],
        EVERYTHING,
    )
    one, other = await service.communities_of_graphs(Analyst(), graphs, first=2, most_iterations=99)
    assert [(each.id, each.size) for each in one.communities] == [("a", 3), ("d", 3)]
    assert [[node.id for node in each.members] for each in one.communities] == [
        ["c", "a", "b"],
        ["d", "e", "f"],
    ]
    assert (one.community_count, one.node_count, one.edge_count) == (2, 6, 7)
    assert one.is_converged
    assert [each.id for each in other.communities] == ["x", "y"]
    assert (other.community_count, other.node_count, other.edge_count) == (2, 3, 1)


async def test_only_wanted_nodes_and_edges_count() -> None:
    """Rule J50."""
    tied = source({"br_1": "abCD"}, "a-b a-C C-D")
    (graph,) = await service.whole_graphs(
        tied, ["br_1"], Wanted(node_kinds=frozenset({"character"}))
    )
    assert ([each.id for each in graph.nodes], [*graph.edges]) == (["a", "b"], [(0, 1, 1)])
    (graph,) = await service.whole_graphs(tied, ["br_1"], Wanted(edge_kinds=frozenset()))
    assert (len(graph.nodes), [*graph.edges]) == (4, [])


async def test_central_nodes_go_by_their_figures_then_by_their_ids() -> None:
    """Rules J53, J54."""
    graphs = await service.whole_graphs(
        source({"br_1": "dcba"}, "b-a b-c b-d c-c a-b"), ["br_1"], EVERYTHING
    )
    (degree,) = await service.centrality_of_graphs(
        Analyst(), graphs, CentralityKind.DEGREE, first=3
    )
    assert [(each.node.id, each.figure) for each in degree.central] == [
        ("b", 4),
        ("a", 2),
        ("c", 1),
    ]
    (between,) = await service.centrality_of_graphs(
        Analyst(), graphs, CentralityKind.BETWEENNESS, first=3
    )
    assert [(each.node.id, each.figure) for each in between.central] == [
        ("b", 1.0),
        ("a", 0.0),
        ("c", 0.0),
    ]
    assert (between.node_count, between.edge_count) == (4, 5)


async def test_the_order_of_rows_changes_nothing() -> None:
    """Rule J52."""
    letters = "abcdefghijklmnop"
    chance = random.Random(5)
    ties = [f"{chance.choice(letters)}-{chance.choice(letters)}" for _ in range(30)]
    seen = set()
    for seed in range(10):
        shuffled = random.Random(seed).sample(ties, len(ties))
        nodes = "".join(random.Random(seed).sample(letters, len(letters)))
        graphs = await service.whole_graphs(
            source({"br_1": nodes}, " ".join(shuffled)), ["br_1"], EVERYTHING
        )
        (found,) = await service.communities_of_graphs(
            Analyst(), graphs, first=200, most_iterations=1_000
        )
        seen.add(repr(found))
    assert len(seen) == 1


@pytest.mark.parametrize("bound", ["MAX_NODES", "MAX_EDGES", "MAX_BETWEENNESS"])
async def test_what_is_too_large_is_refused(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule J55."""
    tied = source({"br_1": "abc"}, "a-b b-c a-c")
    monkeypatch.setattr(service, bound, 2)
    with pytest.raises(DomainError) as refused:
        await service.centrality_of_graphs(
            Analyst(),
            await service.whole_graphs(tied, ["br_1"], EVERYTHING),
            CentralityKind.BETWEENNESS,
            first=1,
        )
    assert (type(refused.value).__name__, refused.value.code) == ("LimitReached", "TOO_LARGE")
