"""B4, W3, W5 and W10 at tiny sizes: what is found is right, and what a person is shown of it."""

from __future__ import annotations

from bench import growth, meaning, vectors
from bench.load import Load
from bench.report import table
from bench.stage import staged
from bench.turns import Measured
from bench.vectors import Cloud
from bench.workloads import W3
from tests.acceptance import document
from tests.bench.results import result

SMALL = Cloud(300, 8, is_clustered=True)


def quietly(_: str) -> None:
    pass


def test_the_same_seed_draws_the_same_vectors() -> None:
    kept, asked = SMALL.drawn(5)
    again, _ = SMALL.drawn(5)
    assert (kept.shape, asked.shape) == ((300, 8), (5, 8))
    assert kept.tobytes() == again.tobytes()
    assert (abs((kept**2).sum(axis=1) - 1) < 1e-5).all()


async def test_b4_finds_all_of_the_nearest_by_the_services(dsn: str) -> None:
    found = await vectors.measure(dsn, 1, quietly, [SMALL], [0.1, 1.0], 3)
    measured = found["clouds"][SMALL.name]
    assert measured["branches"] == {"10.0%": 30, "100.0%": 300}
    for parts in measured["shares"].values():
        assert len(parts) == 2 + 9
        for name in ("services", "exact"):
            assert (parts[name]["recall"], parts[name]["fewest_rows"]) == (1.0, 10)
    assert "100.0% services " in table(result(B4=found))


async def test_w5_finds_the_nearest_over_graphql(dsn: str) -> None:
    found = await meaning.measure(dsn, 1, quietly, SMALL, [0.1], 2)
    part = found["shares"]["10.0%"]
    assert (part["rows"], part["recall"]) == (30, 1.0)
    assert part["milliseconds"]["request"]["times"] == 2
    assert "10.0% (30 rows): recall 1.000" in table(result(W5=found))


def test_w3_is_the_acceptance_document_and_is_shown() -> None:
    query = document("24-branch-page.graphql")
    assert " ".join(W3.query.split()) in " ".join(query.split())
    measured = Measured()
    for name, rate in (("mirrorgraph", 40), ("hand_written", 50)):
        measured.add(name, Load(rate, 1.0, 0.01, 0.02, 0), 0.5)
    found = {"rows": 820, "response_bytes": 900, **measured.summary()}
    shown = table(result(W3=found))
    assert "W3, pages of a branch of 820 rows: 0.80 of hand_written; 900 bytes" in shown


async def test_w10_asks_of_rows_all_over_a_database(dsn: str) -> None:
    async with staged(dsn) as stage:
        asked = await growth.fill(stage, "http://127.0.0.1:1/v1", 2_100)
        nodes = await stage.bare.fetchval("SELECT count(*) FROM tree_nodes")
        vectors_kept = await stage.bare.fetchval("SELECT count(*) FROM vectors")
    assert (nodes, vectors_kept) == (2_100, 2_100)
    assert {name: len(set(bodies)) for name, bodies in asked.items()} == {
        "W1": 3,
        "W3": 1,
        "W5": 20,
    }
    taken = {"median": 9.0, "p95": 10.0}
    figures = {"milliseconds": {"1000": taken, "100000": taken}, "latency": {"100000": 1.02}}
    assert table(result(W10={"W1": figures})).endswith(
        "W1: 1,000 rows 9.0 ms (p95 10.0), 100,000 rows 9.0 ms (p95 10.0); 1.02 times"
    )
