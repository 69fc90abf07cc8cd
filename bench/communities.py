"""B9: communities of graphs of many shapes, as the server finds them: in a process of their own,
which must leave the event loop alone, and the same whatever the order of the rows.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence
from math import comb
from typing import Any

from bench.figures import spread
from services.graphs import MAX_ITERATIONS, Analyst
from services.graphs.analysis import Graph

Json = dict[str, Any]
Edges = list[tuple[int, int, int]]
ORDERS = 10
_BEAT_SECONDS = 0.005


def attached(count: int, each: int) -> Edges:
    """A graph whose newer nodes prefer those that have many edges: `each` edges of each."""
    chance = random.Random(1)
    ends, edges = [0], []
    for node in range(1, count):
        for _ in range(min(node, each)):
            other = chance.choice(ends)
            edges.append((node, other, 1))
            ends += [node, other]
    return edges


def planted(groups: int, size: int, inside: float, outside: float) -> Edges:
    """Groups of nodes, tied with one chance within a group and with another beyond it."""
    chance = random.Random(3)
    return [
        (one, other, 1)
        for one, other in itertools.combinations(range(groups * size), 2)
        if chance.random() < (inside if one // size == other // size else outside)
    ]


def triangles(count: int) -> Edges:
    """A ring of triangles, where every choice is a tie."""
    corners = range(0, 3 * count, 3)
    within = [(each + one, each + other, 1) for each in corners for one, other in _SIDES]
    return within + [(each + 2, (each + 3) % (3 * count), 1) for each in corners]


_SIDES = ((0, 1), (1, 2), (0, 2))


def chain(count: int) -> Edges:
    """One long line."""
    return [(node, node + 1, 1) for node in range(count - 1)]


def hub(count: int) -> Edges:
    """One node that all others hang on."""
    return [(0, node, 1) for node in range(1, count)]


def adjusted_rand_index(found: Sequence[Sequence[int]], truth: Sequence[int]) -> float:
    """How alike two divisions are: 1 where they are the same, about 0 where only by chance."""
    label = {node: number for number, nodes in enumerate(found) for node in nodes}

    def pairs(counts: Counter[Any]) -> int:
        return sum(comb(each, 2) for each in counts.values())

    both = pairs(Counter((label[node], group) for node, group in enumerate(truth)))
    one, other = pairs(Counter(label.values())), pairs(Counter(truth))
    by_chance = one * other / comb(len(truth), 2)
    return (both - by_chance) / ((one + other) / 2 - by_chance)


def graphs(size: int) -> dict[str, tuple[Graph, list[int] | None]]:
    """The graphs by name, the largest of so many nodes, with the truth where there is one."""
    shapes: dict[str, tuple[Graph, list[int] | None]] = {
        "attached, a tenth": ((size // 10, attached(size // 10, 4)), None),
        "attached": ((size, attached(size, 4)), None),
        "hub": ((size // 4, hub(size // 4)), None),
        "chain": ((size // 2, chain(size // 2)), None),
        "triangles": ((size // 10 * 3, triangles(size // 10)), None),
        "parallel": ((size // 10, chain(size // 10) * 4), None),
    }
    for groups, members, inside, outside in ((10, 40, 0.3, 0.01), (20, 50, 0.3, 0.005)):
        count = groups * members
        truth = [node // members for node in range(count)]
        graph = (count, planted(groups, members, inside, outside))
        shapes[f"planted, {groups} of {members}"] = (graph, truth)
    return shapes


async def measure(
    _dsn: str, rounds: int, say: Any, size: int = 20_000, orders: int = ORDERS
) -> Json:
    """B9. Raises RuntimeError where an order of rows makes a difference or the search is cut."""
    measured: Json = {}
    for name, (graph, truth) in graphs(size).items():
        say(f"B9, {name}")
        measured[name] = await _measured(graph, truth, rounds, orders)
    return {"orders": orders, "graphs": measured}


async def _measured(graph: Graph, truth: list[int] | None, rounds: int, orders: int) -> Json:
    count, edges = graph
    times, gaps, found = [], [], []
    for order in range(max(rounds, orders)):
        chance = random.Random(order)
        shuffled = chance.sample(edges, len(edges))
        async with _Heartbeat() as heart:
            began = time.perf_counter()
            (partition,) = await Analyst().communities([(count, shuffled)], MAX_ITERATIONS)
            times.append(time.perf_counter() - began)
        gaps.append(heart.longest * 1_000)
        found.append(partition)
        if partition != found[0]:
            raise RuntimeError("another order of the rows led to other communities")
    if not found[0].is_converged:
        raise RuntimeError("the search was cut off")
    return {
        "nodes": count,
        "edges": len(edges),
        "communities": len(found[0].communities),
        "modularity": round(found[0].modularity, 4),
        "iterations": found[0].iterations,
        "seconds": spread(times),
        "longest_wait_of_the_loop_milliseconds": spread(gaps),
        "adjusted_rand_index": truth and round(adjusted_rand_index(found[0].communities, truth), 4),
    }


class _Heartbeat:
    """The longest time in which the event loop did nothing else, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> _Heartbeat:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._beating.cancel()
        await asyncio.wait({self._beating})

    async def _beat(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last - _BEAT_SECONDS)
            last = now
