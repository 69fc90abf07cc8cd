"""Figures that are computed in a process of their own."""

from __future__ import annotations

import asyncio

import pytest

from services.errors import LimitReached
from services.graphs.analysis import Partition
from services.graphs.analyst import Analyst

TRIANGLE = [(0, 1, 1), (1, 2, 1), (0, 2, 1)]


async def test_figures_come_back_from_the_other_process() -> None:
    analyst = Analyst()
    assert await analyst.communities([(3, TRIANGLE), (1, [])], 100) == [
        Partition([[0, 1, 2]], 0.0, 3, True),
        Partition([[0]], 0.0, 0, True),
    ]
    assert await analyst.degrees([(4, TRIANGLE), (0, [])]) == [[2, 2, 2, 0], []]
    assert await analyst.betweenness([(3, TRIANGLE[:2])]) == [[0.0, 1.0, 0.0]]


async def test_the_event_loop_goes_on_while_figures_are_computed() -> None:
    """Rule J55. A heartbeat of the loop; a blocked loop would have none until the answer."""
    edges = [(node, (node * step) % 1_500, 1) for node in range(1_500) for step in (2, 3, 5, 7)]
    asked = asyncio.create_task(Analyst().betweenness([(1_500, edges)]))
    beats = 0
    while not asked.done():
        await asyncio.wait({asked}, timeout=0.01)
        beats += 1
    assert len((await asked)[0]) == 1_500
    assert beats > 5


async def test_what_takes_too_long_is_killed_and_refused_and_the_next_is_served() -> None:
    """Rule J55."""
    analyst = Analyst(seconds=0.001)
    with pytest.raises(LimitReached) as refused:
        await analyst.degrees([(3, TRIANGLE)])
    assert refused.value.code == "TOO_LARGE"
    with pytest.raises(LimitReached):
        await analyst.degrees([(3, TRIANGLE)])


async def test_an_operation_that_is_cut_off_leaves_the_turn_to_others() -> None:
    """Rule J55."""
    analyst = Analyst()
    first = asyncio.create_task(analyst.degrees([(3, TRIANGLE)]))
    await asyncio.wait({first}, timeout=0.005)
    waiting = asyncio.create_task(analyst.degrees([(3, TRIANGLE)]))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await waiting == [[2, 2, 2]]


async def test_trouble_of_the_other_process_is_ours() -> None:
    with pytest.raises(RuntimeError, match="ended with 1"):
        await Analyst().degrees([(1, TRIANGLE)])
