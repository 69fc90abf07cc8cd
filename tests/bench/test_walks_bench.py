"""W4 and B8 at a small size: walks find what networkx finds, and a person is shown how fast."""

from __future__ import annotations

from graphql import build_schema, parse, validate

from bench import tied, walks
from bench.report import table
from db.enums import EdgeKind
from db.settings import PROJECT_ROOT
from tests.bench.results import result

SMALL = walks.Size(
    attached=(120,),
    hub=510,
    chain=30,
    cliques=2,
    depths=(1, 2, 4),
    starts=2,
    pairs=2,
    requests=0,
    patience=0.01,
)


def quietly(_: str) -> None:
    pass


async def test_w4_finds_the_same_as_a_bare_statement(dsn: str) -> None:
    figures = await walks.measure(dsn, 1, quietly, 100, 200, 2)
    assert (figures["entities"], figures["relations"]) == (100, 200)
    assert figures["nodes_found"] > 2
    assert list(figures["seconds"]) == ["services", "bare_sql"]
    assert "W4, neighbourhoods of depth 3 in 100 entities and 200 relations: " in table(
        result(W4=figures)
    )


async def test_b8_walks_find_what_networkx_finds_and_hubs_say_that_there_is_more(dsn: str) -> None:
    figures = await walks.measure_grid(dsn, 1, quietly, SMALL)
    of_hub = figures["walks"]["hub, branch"]["depths"]
    assert {each["most_nodes"] for each in of_hub.values()} == {501}
    assert [each["truncated"] for each in of_hub.values()] == [1, 2, 2]
    of_chain = figures["walks"]["chain, world"]["depths"]
    assert [each["truncated"] for each in of_chain.values()] == [0, 0, 0]
    printed = table(result(B8=figures))
    assert "B8, walks that find what networkx finds" in printed
    assert "known to a character, branch" in printed


def test_b8_asks_a_server_what_it_understands() -> None:
    schema = build_schema((PROJECT_ROOT / "schema" / "schema.graphql").read_text())
    for what in ("branch", "world"):
        assert validate(schema, parse(walks.DOCUMENT % what)) == []


def test_a_mixed_graph_has_all_that_can_tie_rows_of_a_branch() -> None:
    graph = tied.mixed(500, 4)
    assert {kind for kind, _, _ in graph.edges} == set(EdgeKind)
    assert len(set(graph.edges)) == len(graph.edges)
    assert graph == tied.mixed(500, 4)


def test_what_a_character_knows_of_a_graph() -> None:
    kinds = ["character", "character", "happening", "location", "location", "item"]
    graph = tied.Graph(
        kinds,
        [
            (EdgeKind.RELATIONSHIP, 1, 0),
            (EdgeKind.AWARENESS, 0, 2),
            (EdgeKind.INVOLVEMENT, 5, 2),
            (EdgeKind.POSITION, 0, 3),
            (EdgeKind.CONTAINMENT, 3, 4),
            (EdgeKind.POSITION, 5, 4),
        ],
    )
    known, pairs = walks.known_by(graph, 0)
    assert known == [0, 2, 3, 4, 5]
    assert pairs == [(0, 2), (5, 2), (0, 3), (3, 4)]
