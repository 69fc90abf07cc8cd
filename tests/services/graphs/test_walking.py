"""Walks over graphs, against networkx."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import EdgeDirection, TruncationReason
from services.graphs import Edge, MemorySource, Node, Steps, Wanted, stars, walk, whole
from tests.services.graphs.drawn import KINDS, Drawn, graphs

OUT, IN, BOTH = EdgeDirection.OUT, EdgeDirection.IN, EdgeDirection.BOTH
some_kinds = st.none() | st.frozensets(st.sampled_from(KINDS), min_size=1)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 4), st.sampled_from(EdgeDirection), some_kinds)
async def test_a_walk_finds_what_is_so_many_steps_away(
    drawn: Drawn, depth: int, way: EdgeDirection, kinds: frozenset[str] | None
) -> None:
    """Rule J10."""
    starts = [["n0"], ["n1", "n0", "nowhere"], []]
    wanted = Wanted(kinds, None, way)
    walks = await walk(drawn.source, starts, wanted, depth=depth, first=100)
    oracle = drawn.oracle(way, kinds)
    for ids, found in zip(starts, walks, strict=True):
        begin = [each for each in ids if each in oracle]
        distances = (
            nx.multi_source_dijkstra_path_length(oracle, begin, cutoff=depth, weight=lambda *_: 1)
            if begin
            else {}
        )
        in_order = sorted((distance, node) for node, distance in distances.items())
        assert [(each.distance, each.node.id) for each in found.nodes] == in_order
        among = [
            each.id
            for each in drawn.edges
            if each.source in distances and each.target in distances
            if kinds is None or each.kind in kinds
        ]
        assert ([each.id for each in found.edges], found.truncated_by) == (among, None)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 6), st.sampled_from(EdgeDirection))
async def test_a_walk_with_less_room_finds_the_first_of_all(
    drawn: Drawn, first: int, way: EdgeDirection
) -> None:
    """Rule J11."""
    wanted = Wanted(direction=way)
    (all_of_it,) = await walk(drawn.source, [["n0"]], wanted, depth=6, first=100)
    (some,) = await walk(drawn.source, [["n0"]], wanted, depth=6, first=first)
    assert some.nodes == all_of_it.nodes[:first]
    is_cut = len(all_of_it.nodes) > first
    assert some.truncated_by == (TruncationReason.NODES if is_cut else None)
    shown = {each.node.id for each in some.nodes}
    assert some.edges == [e for e in all_of_it.edges if {e.source, e.target} <= shown]


@settings(max_examples=40, deadline=None)
@given(graphs(), st.sampled_from(KINDS))
async def test_nodes_of_other_kinds_are_neither_shown_nor_passed_through(
    drawn: Drawn, kind: str
) -> None:
    """Rule J12."""
    wanted = Wanted(node_kinds=frozenset({kind}))
    (found,) = await walk(drawn.source, [["n0"]], wanted, depth=6, first=100)
    passable = ["n0", *(each.id for each in drawn.nodes if each.kind == kind)]
    oracle = drawn.oracle().subgraph(passable)
    reached = nx.single_source_shortest_path_length(oracle, "n0", cutoff=6)
    assert {each.node.id: each.distance for each in found.nodes} == reached


@settings(max_examples=30, deadline=None)
@given(graphs(), st.sampled_from(EdgeDirection))
async def test_neighbours_are_a_walk_of_one_step_without_its_beginning(
    drawn: Drawn, way: EdgeDirection
) -> None:
    """Rule J16."""
    centres = [each.id for each in drawn.nodes]
    wanted = Wanted(direction=way)
    for centre, star in zip(
        centres, await stars(drawn.source, centres, wanted, first=100), strict=True
    ):
        around = set(drawn.oracle(way)[centre]) - {centre}
        assert [each.node.id for each in star.nodes] == sorted(around)
        touching = [e.id for e in drawn.edges if centre in (e.source, e.target)]
        shown = around | {centre}
        assert [each.id for each in star.edges] == [
            e.id for e in drawn.edges if e.id in touching and {e.source, e.target} <= shown
        ]


async def test_a_whole_graph_has_its_first_nodes_in_the_order_in_which_they_were_made() -> None:
    """Rule J13."""
    nodes = {name: Node(name, "red", name) for name in ("z", "a", "m")}
    edges = [Edge("1", "red", None, "z", "a"), Edge("2", "red", None, "a", "m")]
    source = MemorySource(nodes, edges, {"owner": ["z", "a", "m"], "nobody": []})
    most, none = await whole(source, ["owner", "nobody"], Wanted(), first=2)
    assert [(each.node.id, each.distance) for each in most.nodes] == [("z", None), ("a", None)]
    assert ([each.id for each in most.edges], most.truncated_by) == (["1"], "nodes")
    assert (none.nodes, none.edges, none.truncated_by) == ([], [], None)
    (all_of_it,) = await whole(source, ["owner"], Wanted(), first=3)
    assert (len(all_of_it.nodes), all_of_it.truncated_by) == (3, None)


class _Cut(MemorySource):
    """A source that cannot read everything."""

    hubs: frozenset[str] = frozenset()

    async def steps(self, ids: object, wanted: Wanted, limit: int) -> Steps:  # type: ignore[override]
        found = await super().steps(list(ids), wanted, limit)  # type: ignore[call-overload]
        return Steps(found.ends, self.hubs, not self.hubs)


async def test_a_walk_says_what_kept_it_from_going_on() -> None:
    """Rule J14."""
    nodes = {name: Node(name, "red", name) for name in "ab"}
    edges = [Edge("1", "red", None, "a", "b"), Edge("2", "red", None, "b", "a")]
    source = _Cut(nodes, edges)
    (found,) = await walk(source, [["a"]], Wanted(), depth=1, first=9)
    assert found.truncated_by == TruncationReason.EDGES
    source.hubs = frozenset({"a"})
    (found,) = await walk(source, [["a"]], Wanted(), depth=1, first=9)
    assert found.truncated_by == TruncationReason.HUB
    (found,) = await walk(source, [["b"]], Wanted(), depth=1, first=9)
    assert found.truncated_by is None


async def test_what_is_gone_is_neither_shown_nor_passed_through_and_takes_nobodys_place() -> None:
    """Rules J8, J9."""
    nodes = {name: Node(name, "red", name) for name in "acde"}
    ties = [("a", "b"), ("b", "e"), ("a", "c"), ("a", "d")]
    edges = [Edge(f"{one}{other}", "red", None, one, other) for one, other in ties]
    source = MemorySource(nodes, edges)
    for first, shown, reason in ((2, "ac", TruncationReason.NODES), (3, "acd", None)):
        (found,) = await walk(source, [["a", "b"]], Wanted(), depth=3, first=first)
        assert ("".join(each.node.id for each in found.nodes), found.truncated_by) == (
            shown,
            reason,
        )
    (gone,) = await stars(source, ["b"], Wanted(), first=9)
    assert (gone.nodes, gone.edges, gone.truncated_by) == ([], [], None)


class _Asked(MemorySource):
    """A source that remembers from where it was asked for steps."""

    asked: list[list[str]]

    async def steps(self, ids: object, wanted: Wanted, limit: int) -> Steps:  # type: ignore[override]
        self.asked.append(list(ids))  # type: ignore[call-overload]
        return await super().steps(list(ids), wanted, limit)  # type: ignore[call-overload]


async def test_a_walk_ends_when_it_has_what_is_asked_for() -> None:
    """Rule J9."""
    nodes = {name: Node(name, "red", name) for name in "abcdef"}
    edges = [Edge(one, "red", None, one, other) for one, other in pairwise("abcdef")]
    source = _Asked(nodes, edges)
    for first, asked, reason in (
        (2, [["a"], ["b"]], TruncationReason.NODES),
        (3, [["a"], ["b"], ["c"]], TruncationReason.NODES),
        (6, [[each] for each in "abcdef"], None),
    ):
        source.asked = []
        (found,) = await walk(source, [["a"]], Wanted(), depth=6, first=first)
        assert (len(found.nodes), source.asked, found.truncated_by) == (first, asked, reason)
