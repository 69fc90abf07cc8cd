"""W6: one run, many subscribers, against graphql-ws on Node that streams the same events.

All hear every event once and in order, or nothing is measured. As fast as can be, it counts
deliveries a second; at a fixed rate, how long an event takes to its last subscriber.
"""

from __future__ import annotations

import random
import statistics
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from bench import generator, prose
from bench.figures import nanoseconds, p99, ratios, spread
from bench.servers import GRAPHQL_WS, MIRRORGRAPH, Served, serving
from bench.subscribers import Heard, listening
from bench.workloads import RUN_CANCEL, RUN_EVENTS, RUN_STATUS, TREE_ASK, TREE_CREATE, request
from db.engine import open_database

Say = Callable[[str], None]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """How many subscribers; how many pieces of text the answer has when it comes as fast as can be,
    and how many when it comes at `rate` pieces a second.
    """

    subscribers: int
    fast: int
    paced: int
    rate: int


# At both rates 10,000 events a second are to be delivered.
SIZES = (Size(200, 400, 200, 50), Size(1_000, 100, 40, 10))
_LONGEST = 600
_WARM_UP_SUBSCRIBERS = 50

# A run waits for the one before it, which is not ended before all subscribers are there; and on a
# busy machine figures are worse, but no event runs out of time.
_PATIENT = MIRRORGRAPH.set_to(
    MIRRORGRAPH_CONCURRENT_RUNS="1",
    MIRRORGRAPH_FIRST_TOKEN_TIMEOUT="3600",
    MIRRORGRAPH_OPERATION_TIMEOUT="600",
)


class Source(Protocol):
    """A server with a run that waits to be started."""

    server: Served

    async def prepare(self, pieces: int, rate: int) -> str:
        """The id of a run of so many pieces of text, so many a second; 0 is as fast as can be."""
        ...

    async def begin(self) -> None:
        """Start the run that was prepared last."""
        ...


class Asked:
    """Our server. It works on one run at a time: the next waits until the last is cancelled."""

    def __init__(self, server: Served, character: str) -> None:
        self.server = server
        self._character = character
        self._busy_with = ""
        self._next = ""

    async def prepare(self, pieces: int, rate: int) -> str:
        """See Source."""
        self._busy_with = await self._ask("[demo: fault=silence]")
        self._next = await self._ask(f"[demo: rate={rate} length={pieces}]")
        return self._next

    async def begin(self) -> None:
        """See Source. Raises RuntimeError when it has begun already."""
        asked = orjson.dumps(request(RUN_STATUS, run=self._next))
        answer: Any = await self.server.answer(asked)
        if answer["data"]["run"]["status"] != "QUEUED":
            raise RuntimeError("a run began before all its subscribers were there")
        await self.server.change(request(RUN_CANCEL, run=self._busy_with))

    async def _ask(self, text: str) -> str:
        create = request(TREE_CREATE, character=self._character, topic="Fan-out")
        tree = (await self.server.change(create))["tree"]["id"]
        asked = await self.server.change(request(TREE_ASK, tree=tree, parent=None, text=text))
        run: str = asked["run"]["id"]
        return run


class Replayed:
    """The peer, which is given the events of one of our runs."""

    def __init__(self, server: Served, recorded: dict[int, list[Json]]) -> None:
        self.server = server
        self._recorded = recorded
        self._next: Json = {}

    async def prepare(self, pieces: int, rate: int) -> str:
        """See Source."""
        run = str(uuid.uuid4())
        self._next = {"run": run, "events": self._recorded[pieces], "rate": rate}
        return run

    async def begin(self) -> None:
        """See Source."""
        await self.server.answer(orjson.dumps(self._next), "/play")


@dataclass(frozen=True, slots=True)
class Delivered:
    """One run at all its subscribers. Times are in seconds, memory is in MiB."""

    heard: Heard
    processor: float | None
    memory: float | None

    @property
    def rate(self) -> float:
        """Deliveries a second."""
        return self.heard.deliveries / self.heard.seconds

    def delays(self) -> list[float]:
        """From when each event happened until the last subscriber had it."""
        happened = [nanoseconds(event["at"]) for event in events_of(self.heard)]
        return [(last - at) / 1e9 for at, last in zip(happened, self.heard.last_at, strict=True)]

    def spreads(self) -> list[float]:
        """From when the first subscriber had each event until the last one had it."""
        pairs = zip(self.heard.first_at, self.heard.last_at, strict=True)
        return [(last - first) / 1e9 for first, last in pairs]


def events_of(heard: Heard) -> list[Json]:
    """The events of a run as one subscriber heard them."""
    return [orjson.loads(each)["payload"]["data"]["runEvents"] for each in heard.messages]


def comparable(events: list[Json]) -> list[Json]:
    """The events without what differs from run to run: times, and the ids of run and answer.

    Raises RuntimeError when they do not have the numbers from 1 without gaps up to RunFinished.
    """
    numbers = [each["seq"] for each in events]
    if numbers != list(range(1, len(events) + 1)) or events[-1]["__typename"] != "RunFinished":
        raise RuntimeError(f"the events of a run are numbered {numbers}")
    text = orjson.dumps([{**each, "at": None} for each in events]).decode()
    for own in (events[0]["run"]["id"], events[-1]["node"]["id"]):
        text = text.replace(own, "id")
    compared: list[Json] = orjson.loads(text)
    return compared


def check_equal(heard: Heard, recorded: list[Json], name: str) -> None:
    """Raise RuntimeError unless these are the events that were recorded."""
    expected, events = comparable(recorded), comparable(events_of(heard))
    if len(events) != len(expected):
        raise RuntimeError(f"{name} delivers {len(events)} events instead of {len(expected)}")
    for event, other in zip(events, expected, strict=True):
        if event != other:
            raise RuntimeError(f"{name} delivers {event} where {other} was expected")


@dataclass
class Measured:
    """The rounds of one server."""

    fast: list[Delivered] = field(default_factory=list)
    paced: list[Delivered] = field(default_factory=list)

    @property
    def costs(self) -> list[float]:
        """Seconds of the server's processor for 1,000 deliveries, as fast as can be."""
        return _per_1000(self.fast)

    def summary(self) -> Json:
        """Medians and spread."""
        fast, paced = self.fast, self.paced
        memory = fast[0].memory
        messages = fast[0].heard.messages
        return {
            "deliveries_per_second": spread([each.rate for each in fast]),
            "message_bytes": round(statistics.mean(len(each.encode()) for each in messages), 1),
            "processor_seconds_per_1000": spread(self.costs),
            "generator_processor_seconds_per_1000": spread(
                [each.heard.processor_seconds / each.heard.deliveries * 1e3 for each in fast]
            ),
            # Near 1, it is the subscribers' own process that was measured.
            "generator_core_share": spread(
                [each.heard.processor_seconds / each.heard.seconds for each in fast]
            ),
            "resident_kib_per_subscriber": memory
            and round(memory * 1024 / fast[0].heard.subscribers, 1),
            "paced": {
                "deliveries_per_second": spread([each.rate for each in paced]),
                "processor_seconds_per_1000": spread(_per_1000(paced)),
                "to_last_milliseconds": _milliseconds([each.delays() for each in paced]),
                "first_to_last_milliseconds": _milliseconds([each.spreads() for each in paced]),
            },
        }


def _per_1000(rounds: list[Delivered]) -> list[float]:
    return [
        each.processor / each.heard.deliveries * 1e3
        for each in rounds
        if each.processor is not None
    ]


def _milliseconds(rounds: list[list[float]]) -> Json:
    return {
        "median": spread([statistics.median(each) * 1e3 for each in rounds]),
        "p99": spread([p99(each) * 1e3 for each in rounds]),
    }


async def measure(dsn: str, rounds: int, say: Say) -> Json:
    """W6 at every size, on an empty migrated database; by the number of subscribers. The packages
    of the peers must be installed.
    """
    character = await create_character(dsn)
    return {
        str(size.subscribers): await measure_size(dsn, character, size, rounds, say)
        for size in SIZES
    }


async def create_character(dsn: str) -> str:
    """The id of a character of one long sentence: all its answers of a length are equal."""
    draw = random.Random(0)
    description = ", ".join(prose.topic(draw) for _ in range(_LONGEST // 5))
    database = await open_database(dsn, pool_size=1, statement_timeout=60)
    try:
        identity = {"name": generator.IDENTITY["name"], "description": description}
        return await generator.create_character(database, identity)
    finally:
        await database.close()


async def measure_size(dsn: str, character: str, size: Size, rounds: int, say: Say) -> Json:
    """Both servers in turn, with processes of their own for each size."""
    async with AsyncExitStack() as running:
        ours, theirs = [
            await running.enter_async_context(serving(contender, dsn))
            for contender in (_PATIENT, GRAPHQL_WS)
        ]
        asked = Asked(ours, character)
        recorded: dict[int, list[Json]] = {}
        for pieces in (size.fast, size.paced):
            recorded[pieces] = events_of((await _deliver(asked, 1, pieces, 0)).heard)
        sources: list[Source] = [asked, Replayed(theirs, recorded)]
        measured = {each.server.name: Measured() for each in sources}

        async def deliver(source: Source, subscribers: int, pieces: int, rate: int) -> Delivered:
            delivered = await _deliver(source, subscribers, pieces, rate)
            check_equal(delivered.heard, recorded[pieces], source.server.name)
            return delivered

        for source in sources:
            await deliver(source, min(size.subscribers, _WARM_UP_SUBSCRIBERS), size.fast, 0)
        for number in range(rounds):
            say(f"W6, {size.subscribers:,} subscribers, round {number + 1} of {rounds}")
            # Each goes first as often as the other.
            turns = sources if number % 2 == 0 else sources[::-1]
            for source in turns:
                delivered = await deliver(source, size.subscribers, size.fast, 0)
                measured[source.server.name].fast.append(delivered)
            for source in turns:
                delivered = await deliver(source, size.subscribers, size.paced, size.rate)
                measured[source.server.name].paced.append(delivered)
        peak = {each.server.name: each.server.peak_memory() for each in sources}
    first, other = measured
    rates = [[each.rate for each in measured[name].fast] for name in (first, other)]
    costs = [measured[name].costs for name in (first, other)]
    return {
        "events": len(recorded[size.fast]),
        "paced_events": len(recorded[size.paced]),
        "paced_events_per_second": size.rate,
        **ratios(f"vs_{other}", *rates),
        # Others on the machine take time from both, but hardly change what a delivery costs.
        **(ratios(f"processor_vs_{other}", *costs) if all(costs) else {}),
        "servers": {name: each.summary() for name, each in measured.items()},
        "peak_memory_mib": peak,
    }


async def _deliver(source: Source, subscribers: int, pieces: int, rate: int) -> Delivered:
    server = source.server
    run = await source.prepare(pieces, rate)
    alone = server.memory()
    async with listening(server.url, request(RUN_EVENTS, run=run), subscribers) as all_of_them:
        # Having said the opening, a server may still look for what happened before.
        await server.settle()
        together = server.memory()
        before = server.processor_seconds()
        await source.begin()
        heard = await all_of_them.heard()
        after = server.processor_seconds()
    return Delivered(
        heard,
        after - before if before is not None and after is not None else None,
        together - alone if together is not None and alone is not None else None,
    )
