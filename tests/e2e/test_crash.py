"""The server is killed (kill -9) while it writes an answer, again and again, on one database.

The moment of each kill is a number of events that the client has seen, drawn with a fixed seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from gql import Client, gql
from gql.transport.exceptions import TransportError
from gql.transport.websockets import WebsocketsTransport

from db.embedded import start_embedded
from tests.conftest import ServerProcess
from tests.e2e.callers import RUN_EVENTS, Caller, Json, is_opening, numbers_of, text_of
from tests.e2e.ledgers import Ledger

QUESTION = "[demo: rate=200 length=60] What keeps the lamp lit?"
# A whole round: start, recovery once the lease has run out, the end of the stream.
PATIENCE = 60.0

# Kill without following at all.
UNSEEN = -1

pytestmark = pytest.mark.timeout(400)


@dataclass
class Round:
    """One run, and what its client saw of it before and after the kill."""

    killed_after: int
    run: str
    before: list[Json] = field(default_factory=list)
    after: list[Json] = field(default_factory=list)

    @property
    def seen(self) -> list[Json]:
        return self.before + self.after


class Mortal:
    """A server that is killed and started again on the same database."""

    def __init__(self, session: aiohttp.ClientSession, **environment: str) -> None:
        self._session = session
        self._environment = {"MIRRORGRAPH_PROVIDER": "demo", **environment}
        self.server = ServerProcess(**self._environment)
        self.logs = ""

    async def start(self) -> None:
        self.server = await ServerProcess(**self._environment).start()

    @property
    def caller(self) -> Caller:
        return Caller(self.server, self._session)

    async def end(self, signal: int = 15) -> None:
        await self.server.stop(signal)
        self.logs += self.server.output

    async def follow(self, run: str, after: int, kill_after: int | None = None) -> list[Json]:
        """What a client sees until the stream completes, or until the kill cuts it off."""
        seen: list[Json] = []
        url = self.server.socket_url
        transport = WebsocketsTransport(url=url, subprotocols=["graphql-transport-ws"])
        request = gql(RUN_EVENTS)
        request.variable_values = {"run": run, "after": after}
        # Only a kill may break the stream off.
        cut_off = TransportError if kill_after is not None else ()
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(cut_off):
                async with Client(transport=transport) as session:
                    events = session.subscribe(request)
                    following = asyncio.create_task(anext(events, None))
                    if kill_after == 0:
                        self.server.process.kill()
                    has_opened = False
                    while (result := await following) is not None:
                        if has_opened:
                            seen.append(result["runEvents"])
                            if len(seen) == kill_after:
                                self.server.process.kill()
                        else:
                            has_opened = is_opening({"data": result}, after)
                        following = asyncio.create_task(anext(events, None))
        return seen


@contextlib.asynccontextmanager
async def mortal(**environment: str) -> AsyncIterator[Mortal]:
    async with aiohttp.ClientSession() as session:
        server = Mortal(session, **environment)
        await server.start()
        try:
            yield server
        finally:
            await server.end()


async def whole_run(server: Mortal, character: str) -> Round:
    """A run that nothing disturbs."""
    begun = await server.caller.begin(QUESTION, await server.caller.create_tree(character))
    whole = Round(UNSEEN, begun.run, after=await server.follow(begun.run, 0))
    assert numbers_of(whole.seen) == list(range(1, len(whole.seen) + 1))
    assert whole.seen[-1]["status"] == "SUCCEEDED"
    return whole


async def crash(server: Mortal, character: str, kill_after: int) -> Round:
    """Ask, kill, start again, and see the stream to its end."""
    begun = await server.caller.begin(QUESTION, await server.caller.create_tree(character))
    this = Round(kill_after, begun.run)
    if kill_after != UNSEEN:
        this.before = await server.follow(begun.run, 0, kill_after)
    await server.end(9)
    await server.start()
    last = this.before[-1]["seq"] if this.before else 0
    this.after = await server.follow(begun.run, last)
    return this


def moments(whole: int, count: int, seed: int) -> list[int]:
    """When to kill: at both edges of a run of `whole` events, and anywhere between."""
    draw = random.Random(seed)
    chosen = [UNSEEN, 0, 1, whole - 2, whole - 1, whole]
    chosen += [draw.randrange(2, whole - 2) for _ in range(count - len(chosen))]
    draw.shuffle(chosen)
    return chosen


def check_seen(this: Round) -> None:
    """What a subscriber relies on, whatever happened to the server."""
    assert numbers_of(this.seen) == list(range(1, len(this.seen) + 1)), this
    ends = [each["seq"] for each in this.seen if each["__typename"] == "RunFinished"]
    assert ends == [len(this.seen)], this


async def check_stored(ledger: Ledger, rounds: Sequence[Round]) -> int:
    """What the database must hold in the end; how many of the runs were lost with a server."""
    lost = 0
    for this in rounds:
        (run,) = await ledger.rows(
            "SELECT r.*, n.content, n.reasoning, n.status AS node_status"
            " FROM runs r LEFT JOIN tree_nodes n ON n.id = r.node_id WHERE r.id = $1",
            this.run,
        )
        stored = await ledger.rows(
            "SELECT seq, type, payload_json::text AS payload,"
            " payload_json->>'channel' AS channel, text"
            " FROM run_events LEFT JOIN run_event_texts USING (run_id, seq)"
            " WHERE run_id = $1 ORDER BY seq",
            this.run,
        )
        assert numbers_of(stored) == numbers_of(this.seen)
        assert stored[-1]["seq"] == run["last_seq"]
        assert [each["type"] for each in stored].count("run_finished") == 1
        assert stored[-1]["type"] == "run_finished"
        texts = {
            channel: "".join(each["text"] for each in stored if each["channel"] == channel)
            for channel in ("text", "reasoning")
        }
        assert run["content"] == texts["text"]
        assert (run["reasoning"] or "") == texts["reasoning"]
        last = this.seen[-1]
        # Whatever was seen, before the kill or after it, is in the answer.
        assert text_of(this.seen) == last["node"]["content"] == texts["text"]
        if run["status"] == "succeeded":
            assert run["node_status"] == "solidified"
        else:
            lost += 1
            assert (run["status"], run["error_code"]) == ("failed", "SERVER_LOST")
            assert run["node_status"] == "partial"
        assert last["status"] == run["status"].upper()
        assert last["node"]["status"] == run["node_status"].upper()
    assert await ledger.value("SELECT count(*) FROM runs WHERE ended_at IS NULL") == 0
    assert await ledger.value("SELECT count(*) FROM tree_nodes WHERE status = 'bud'") == 0
    assert (
        await ledger.value(
            "SELECT count(*) FROM tree_nodes n JOIN runs r ON r.node_id = n.id"
            " WHERE (n.status = 'solidified') <> (r.status = 'succeeded')"
        )
        == 0
    )
    held = "SELECT count(*) FROM runtime_seats WHERE lease_holder IS NOT NULL"
    assert await ledger.value(held) == 0
    return lost


async def test_killed_servers_of_a_shared_database(dsn: str) -> None:
    """Rules R7, R14, R15.

    The next server cannot know that the last one is dead: it waits for the lease.
    """
    environment = {"DATABASE_URL": dsn, "MIRRORGRAPH_LEASE_SECONDS": "1"}
    async with mortal(**environment) as server:
        character = await server.caller.create_character()
        rounds = [await whole_run(server, character)]
        for moment in moments(len(rounds[0].seen), 12, seed=1):
            rounds.append(await crash(server, character, moment))
            check_seen(rounds[-1])
        rounds.append(await whole_run(server, character))
        lost = await check_stored(Ledger(dsn), rounds)
    # A kill in the middle loses the run, one before the run was taken up or after its end does not.
    assert 6 <= lost <= 11
    assert "Traceback" not in server.logs


@pytest.fixture
def folder() -> Iterator[Path]:
    # Short: the path of the database's socket has about 100 bytes at most.
    folder = Path(tempfile.mkdtemp(prefix="mg"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def test_killed_servers_with_their_own_database(folder: Path) -> None:
    """The folder's lock died with its owner, so the next server recovers at once; sometimes the
    database dies too.
    """
    # A lease that outlasts the test: nothing here may wait for it.
    environment = {"MIRRORGRAPH_DATA_DIR": str(folder), "MIRRORGRAPH_LEASE_SECONDS": "600"}
    try:
        async with mortal(**environment) as server:
            character = await server.caller.create_character()
            rounds = [await whole_run(server, character)]
            for place, moment in enumerate(moments(len(rounds[0].seen), 8, seed=2)):
                if place % 3 == 2:
                    rounds.append(await crash_with_database(server, character, folder, moment))
                else:
                    rounds.append(await crash(server, character, moment))
                check_seen(rounds[-1])
            rounds.append(await whole_run(server, character))
        assert "Traceback" not in server.logs
    finally:
        # Also ends a database whose server could not be started again.
        embedded = start_embedded(folder, exclusively=True)
        try:
            assert await check_stored(Ledger(embedded.dsn), rounds) >= 3
        finally:
            embedded.stop()


async def crash_with_database(
    server: Mortal, character: str, folder: Path, kill_after: int
) -> Round:
    """The same, but every process of the database dies with the server, as in a power cut."""
    begun = await server.caller.begin(QUESTION, await server.caller.create_tree(character))
    this = Round(kill_after, begun.run)
    if kill_after != UNSEEN:
        this.before = await server.follow(begun.run, 0, kill_after)
    await server.end(9)
    postmaster = psutil.Process(int((folder / "postgres/postmaster.pid").read_text().split()[0]))
    dying: list[Any] = [postmaster, *postmaster.children(recursive=True)]
    for process in dying:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(dying, timeout=10)
    await server.start()
    last = this.before[-1]["seq"] if this.before else 0
    this.after = await server.follow(begun.run, last)
    return this
