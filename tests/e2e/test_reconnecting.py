"""Clients that are cut off again and again, by themselves and by servers that are killed, and come
back each time to whichever server is up.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeAlias

import aiohttp
import pytest
import websockets

from tests.conftest import ServerProcess
from tests.e2e.callers import (
    RUN_EVENTS,
    Caller,
    Json,
    event_of,
    numbers_of,
    text_of,
)
from tests.e2e.ledgers import Ledger
from tests.e2e.plain_streams import plain_events

KILLS, DISCONNECTS = 20, 200
QUESTION = "Go on. [demo: rate=150 length=60]"
# For the whole test on a slow machine.
PATIENCE = 240.0
# What a caller hears whose server is killed, or not there yet.
CUT = (aiohttp.ClientError, OSError, EOFError, websockets.WebSocketException)

pytestmark = pytest.mark.timeout(400)


class Fleet:
    """Two servers on one database; while one is killed and comes back, the other one serves."""

    def __init__(self, session: aiohttp.ClientSession, dsn: str, draw: random.Random) -> None:
        self._session = session
        self._environment = {"DATABASE_URL": dsn, "MIRRORGRAPH_LEASE_SECONDS": "0.6"}
        self._draw = draw
        self._up: list[ServerProcess] = []
        self.output = ""

    async def start_one(self) -> None:
        """One more server."""
        self._up.append(await ServerProcess(**self._environment).start())

    async def kill_one(self) -> None:
        """Kill either, and start another in its place."""
        victim = self._up.pop(self._draw.randrange(len(self._up)))
        await self._end(victim, 9)
        await self.start_one()

    async def stop(self) -> None:
        """Stop all in order."""
        while self._up:
            await self._end(self._up.pop(), 15)

    async def _end(self, server: ServerProcess, signal: int) -> None:
        await server.stop(signal)
        self.output += server.output

    def any(self) -> Caller:
        """A caller of either."""
        return Caller(self._draw.choice(self._up), self._session)


Stream: TypeAlias = Callable[[Caller, str, int], AsyncGenerator[Json, None]]


async def by_socket(caller: Caller, run: str, after: int) -> AsyncGenerator[Json, None]:
    async with caller.socket() as socket:
        async for result in await socket.start(RUN_EVENTS, {"run": run, "after": after}):
            yield event_of(result)


async def by_graphql_events(caller: Caller, run: str, after: int) -> AsyncGenerator[Json, None]:
    async with caller.stream(variables={"run": run, "after": after}) as results:
        async for result in results:
            yield event_of(result)


async def by_plain_events(caller: Caller, run: str, after: int) -> AsyncGenerator[Json, None]:
    async for event in plain_events(caller, run, after):
        if event["__typename"] == "StreamOpened":
            assert event["seq"] == after
        else:
            yield event


STREAMS: list[Stream] = [by_socket, by_graphql_events, by_plain_events]


@dataclass(eq=False)
class Follower:
    """One client that wants to see a run to its end."""

    fleet: Fleet
    draw: random.Random
    stream: Stream
    run: str
    seen: list[Json] = field(default_factory=list)
    disconnects: int = 0

    async def follow(self) -> None:
        """Come back until the end is seen."""
        while not self.seen or self.seen[-1]["__typename"] != "RunFinished":
            with contextlib.suppress(*CUT):
                await self._visit()
            if self.seen and self.seen[-1]["__typename"] == "RunFinished":
                return
            self.disconnects += 1
            # Part of the scenario: clients come back after a while of any length.
            await asyncio.sleep(self.draw.uniform(0.0, 0.05))

    async def _visit(self) -> None:
        enough = self.draw.randrange(1, 12)
        last = self.seen[-1]["seq"] if self.seen else 0
        async with aclosing(self.stream(self.fleet.any(), self.run, last)) as events:
            async for event in events:
                self.seen.append(event)
                enough -= 1
                if not enough:
                    return


class Lane:
    """One character, asked one question after another; each answer has a follower of each kind."""

    def __init__(self, fleet: Fleet, character: str, draw: random.Random) -> None:
        self._fleet = fleet
        self._character = character
        self._draw = draw
        self.rounds: list[list[Follower]] = []

    @property
    def followers(self) -> list[Follower]:
        """All so far."""
        return [each for followers in self.rounds for each in followers]

    async def go_on(self, is_over: Callable[[], bool]) -> None:
        """Ask and follow until it is over."""
        while not is_over():
            try:
                caller = self._fleet.any()
                begun = await caller.begin(QUESTION, await caller.create_tree(self._character))
            except CUT:
                await asyncio.sleep(0.02)
                continue
            followers = [Follower(self._fleet, self._draw, stream, begun.run) for stream in STREAMS]
            self.rounds.append(followers)
            await asyncio.gather(*(each.follow() for each in followers))


@pytest.fixture
async def fleet(dsn: str) -> AsyncIterator[Fleet]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        fleet = Fleet(session, dsn, random.Random(3))
        try:
            await asyncio.gather(fleet.start_one(), fleet.start_one())
            yield fleet
        finally:
            await fleet.stop()


async def test_whoever_comes_back_sees_each_event_once_whatever_dies(
    fleet: Fleet, dsn: str
) -> None:
    """Rules R7, R9, R14, R15, T6, T7."""
    draw = random.Random(4)
    killed = 0
    lanes = [Lane(fleet, await fleet.any().create_character(), draw) for _ in "12"]

    def seen() -> int:
        return sum(len(each.seen) for lane in lanes for each in lane.followers)

    def disconnects(stream: Stream) -> int:
        followers = [each for lane in lanes for each in lane.followers if each.stream is stream]
        return sum(each.disconnects for each in followers)

    def is_over() -> bool:
        return killed == KILLS and sum(map(disconnects, STREAMS)) >= DISCONNECTS

    async def kill() -> None:
        nonlocal killed
        while killed < KILLS:
            # In the middle of something.
            until = seen() + draw.randrange(1, 60)
            while seen() < until:  # noqa: ASYNC110, what happens is elsewhere
                await asyncio.sleep(0.005)
            await fleet.kill_one()
            killed += 1

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(kill())
        for lane in lanes:
            group.create_task(lane.go_on(is_over))

    assert all(disconnects(stream) > DISCONNECTS / 10 for stream in STREAMS)
    lost = [await check(Ledger(dsn), each) for lane in lanes for each in lane.rounds]
    assert any(lost)
    assert not all(lost)
    assert "Traceback" not in fleet.output


async def check(ledger: Ledger, followers: Sequence[Follower]) -> bool:
    """What everybody saw of one run is what is stored; whether it was lost with its server."""
    first, *others = [each.seen for each in followers]
    assert others == [first] * len(others)
    assert numbers_of(first) == list(range(1, len(first) + 1))
    assert [each["__typename"] for each in first].count("RunFinished") == 1
    (run,) = await ledger.rows(
        "SELECT r.status, r.error_code, r.last_seq, n.content, n.status AS node_status,"
        " (SELECT array_agg(seq ORDER BY seq) FROM run_events WHERE run_id = r.id) AS numbers"
        " FROM runs r JOIN tree_nodes n ON n.id = r.node_id WHERE r.id = $1",
        followers[0].run,
    )
    assert run["numbers"] == numbers_of(first)
    assert run["last_seq"] == len(first)
    assert run["content"] == text_of(first) == first[-1]["node"]["content"]
    if run["status"] == "succeeded":
        assert run["node_status"] == "solidified"
        return False
    assert (run["status"], run["error_code"]) == ("failed", "SERVER_LOST")
    assert run["node_status"] == "partial"
    return True
