"""B9 at a small size: figures of every graph, and what a person is shown of them."""

from __future__ import annotations

from bench import communities
from bench.report import table
from tests.bench.results import result


async def test_communities_are_the_same_in_every_order_and_planted_ones_are_found() -> None:
    measured = await communities.measure("", 1, lambda _: None, size=200, orders=2)
    figures = measured["graphs"]
    assert (figures["attached"]["nodes"], figures["attached"]["edges"]) == (200, 790)
    assert figures["hub"]["communities"] == 1
    planted = [each["adjusted_rand_index"] for each in figures.values()]
    assert [each for each in planted if each is not None] == [1.0, 1.0]
    assert "B9, communities; the same in 2 orders of the rows" in table(result(B9=measured))
