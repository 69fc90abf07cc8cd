"""Two servers on one database, and a runtime elsewhere: who runs a character."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.conftest import ServerProcess, serving
from tests.e2e.callers import PATIENCE, READS, Caller, numbers_of, text_of
from tests.e2e.ending_documents import ENDING_CHANGES, LIFE
from tests.e2e.whole_lives import act

SLOW = "[demo: rate=20 length=2000] Well?"


@pytest.fixture(scope="module")
async def other(
    server_dsn: str, server: ServerProcess, session: aiohttp.ClientSession
) -> AsyncIterator[Caller]:
    """The same person at a second server."""
    async with serving(DATABASE_URL=server_dsn, MIRRORGRAPH_DEMO_RATE="0") as second:
        yield Caller(second, session)
    assert "Traceback" not in second.output, second.output


async def has_text(caller: Caller, run: str) -> None:
    """Return when a piece of the run's text has been shown."""
    async with asyncio.timeout(PATIENCE), caller.stream(variables={"run": run}) as events:
        async for event in events:
            if event["data"]["runEvents"].get("channel") == "TEXT":
                return


@pytest.mark.parametrize("move", ["SeatMigrate", "SeatHandover"])
async def test_a_seat_that_is_moved_by_one_server_ends_the_run_of_another(
    caller: Caller, other: Caller, move: str
) -> None:
    """Rules R4, S3. Whichever of the two works on it: it is moved by way of both."""
    character = await caller.create_character()
    for mover in (caller, other):
        begun = await caller.begin(SLOW, await caller.create_tree(character))
        await has_text(other, begun.run)
        seat = (await caller.ask(LIFE, {"character": character}))["character"]["seat"]
        assert seat["leaseHolder"].startswith("server_")
        given = {"holder": "phone", "epoch": seat["epoch"]} if move == "SeatHandover" else {}
        moved = (await act(mover, move, character=character, **given))["seat"]
        assert moved["epoch"] == seat["epoch"] + 1
        assert moved["leaseHolder"] == given.get("holder")
        here, there = await asyncio.gather(caller.follow(begun.run), other.follow(begun.run))
        assert here == there
        assert numbers_of(here) == list(range(1, len(here) + 1))
        assert here[-1]["error"]["code"] == "STALE_SEAT_EPOCH"
        run = await caller.read("Run", begun.run)
        assert (run["status"], run["lastSeq"]) == ("FAILED", len(here))
        assert (run["node"]["status"], run["node"]["content"]) == ("PARTIAL", text_of(here))
        assert run["node"]["content"] != ""
        if move == "SeatHandover":
            await act(caller, "SeatRelease", character=character, epoch=moved["epoch"])
    # Nothing of the runs that lost their seat came later.
    assert (await caller.read("Run", begun.run)) == run


async def test_answers_wait_for_a_runtime_elsewhere(caller: Caller, other: Caller) -> None:
    """Rule S2."""
    character = await caller.create_character()
    taken = (await act(caller, "SeatAcquire", character=character, holder="phone"))["seat"]
    waiting = await other.begin("Well?", await caller.create_tree(character))
    # What was asked later of another character is answered: the servers do look.
    await other.follow((await other.begin("And you?")).run)
    assert (await caller.read("Run", waiting.run))["status"] == "QUEUED"
    given = {"character": character, "holder": "desk", "epoch": taken["epoch"]}
    handed = (await act(other, "SeatHandover", **given))["seat"]
    await act(other, "SeatRelease", character=character, epoch=handed["epoch"])
    assert (await caller.follow(waiting.run))[-1]["status"] == "SUCCEEDED"


async def test_a_lease_that_runs_out_frees_the_seat(caller: Caller) -> None:
    """Rule S2. Nobody announces it: the servers look by themselves."""
    character = await caller.create_character()
    await act(caller, "SeatAcquire", character=character, holder="phone", lease=1.0)
    waiting = await caller.begin("Well?", await caller.create_tree(character))
    assert (await caller.follow(waiting.run))[-1]["status"] == "SUCCEEDED"


async def test_a_death_ends_what_another_server_works_on(caller: Caller, other: Caller) -> None:
    """Rules E1, R10. The text so far is kept, and the seat given back."""
    character = await caller.create_character()
    begun = await caller.begin(SLOW, await caller.create_tree(character))
    await has_text(caller, begun.run)
    asked = await act(caller, "DeathRequest", character=character, purpose="Enough.")
    await act(other, "Approve", petition=asked["petition"]["id"])
    events = await other.follow(begun.run)
    assert events[-1]["status"] == "CANCELLED"
    node = (await caller.ask(READS, {"id": begun.run}, "Run"))["run"]["node"]
    assert (node["status"], node["content"]) == ("PARTIAL", text_of(events))
    life = (await caller.ask(LIFE, {"character": character}))["character"]
    assert (life["status"], life["seat"]["leaseHolder"]) == ("DEATH_PENDING", None)
    revoked = await caller.ask(ENDING_CHANGES, {"character": character}, "DeathRevoke")
    assert revoked["deathRevoke"]["character"]["status"] == "ACTIVE"
