"""Rounds of load in which servers take turns, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.figures import ratios, spread
from bench.load import Load, load
from bench.servers import Served

WARM_UP_SECONDS = 3.0

Say = Callable[[str], None]


@dataclass
class Measured:
    """The rounds of one workload, by server."""

    loads: dict[str, list[Load]] = field(default_factory=dict)
    # Milliseconds of the server's processor time for each request, round by round.
    processor: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, load: Load, processor: float | None) -> None:
        """Note one server's part of a round."""
        self.loads.setdefault(name, []).append(load)
        if processor is not None:
            milliseconds = processor / load.requests * 1000
            self.processor.setdefault(name, []).append(milliseconds)

    def summary(self) -> dict[str, Any]:
        """Medians and spread, and the first server against each of the others."""
        first, *others = self.loads
        summed: dict[str, Any] = {}
        for other in others:
            rates = [[each.rate for each in self.loads[name]] for name in (first, other)]
            summed |= ratios(f"vs_{other}", *rates)
        summed["servers"] = {
            name: {
                "requests_per_second": spread([each.rate for each in loads]),
                "median_milliseconds": spread([each.median * 1000 for each in loads]),
                "p99_milliseconds": spread([each.p99 * 1000 for each in loads]),
                "processor_milliseconds": spread(self.processor.get(name, [])),
            }
            for name, loads in self.loads.items()
        }
        return summed


async def in_rounds(
    servers: Sequence[Served],
    name: str,
    bodies: Sequence[bytes],
    rounds: int,
    seconds: float,
    say: Say,
) -> Measured:
    """Ask each server the same for so many seconds in each round, once all are warm."""
    for server in servers:
        await load(server.url, bodies, min(WARM_UP_SECONDS, seconds))
    measured = Measured({each.name: [] for each in servers})
    for number in range(rounds):
        say(f"{name}, round {number + 1} of {rounds}")
        # Each goes first as often as the others.
        turn = number % len(servers)
        for server in [*servers[turn:], *servers[:turn]]:
            before = server.processor_seconds()
            stretch = await load(server.url, bodies, seconds)
            after = server.processor_seconds()
            used = after - before if before is not None and after is not None else None
            measured.add(server.name, stretch, used)
    return measured
