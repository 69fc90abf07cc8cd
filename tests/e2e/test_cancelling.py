"""Whoever leaves takes their statements along: the database stops working for them, the pool is
whole, and nothing half done is kept. The statements are real ones, held up by a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import asyncpg
import psutil
import pytest

from tests.conftest import ServerProcess, serving
from tests.e2e.callers import EMBRYO_CREATE, PATIENCE, RUN_EVENTS, Begun, Caller, Json, event_of
from tests.e2e.ledgers import Ledger
from tests.figures import Figures, read_figures
from tests.schema.wire.leaving import (
    TRANSPORTS,
    ByBatch,
    ByEvents,
    ByOneStream,
    ByParts,
    ByPost,
    BySocket,
    Client,
)

POOL = 5
# More than the pool has connections, so some are still waiting for one.
MANY = 12
SLOW_RUN = "Tell me everything. [demo: rate=100 length=10000]"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_POOL_SIZE": str(POOL)}


@pytest.fixture(scope="module")
async def hasty(server_dsn: str, session: aiohttp.ClientSession) -> AsyncIterator[Caller]:
    """A caller of another server on the same database, which gives operations little time."""
    environment = {
        "MIRRORGRAPH_POOL_SIZE": str(POOL),
        "MIRRORGRAPH_OPERATION_TIMEOUT": "0.2",
        # A server of another provider takes up none of the runs here.
        "MIRRORGRAPH_PROVIDER": "openai",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }
    async with serving(DATABASE_URL=server_dsn, **environment) as server:
        yield Caller(server, session)
    assert "Traceback" not in server.output, server.output


@pytest.fixture(scope="module")
async def run(caller: Caller) -> Begun:
    """A run that has ended."""
    begun = await caller.begin("Well?")
    await caller.follow(begun.run)
    return begun


@pytest.fixture(scope="module")
async def idle(caller: Caller, run: Begun) -> Figures:
    """The figures of a server of which nothing is asked."""
    return await at_rest(caller)


async def figures(caller: Caller) -> Figures:
    """What the server tells of what is open: gauges without those that only rise."""
    answer = await caller.request("GET", "/metrics")
    assert answer.status == 200
    kept = ("_running_operations", "_connections{transport", "state=busy}", "_hub_subscriptions")
    return {
        name: value
        for name, value in read_figures(answer.body).items()
        if any(each in name for each in kept)
    }


async def at_rest(caller: Caller) -> Figures:
    """The same at a moment in which the server's own work needs no connection either."""
    found: Figures = {}

    async def is_at_rest() -> bool:
        nonlocal found
        found = await figures(caller)
        return not any(value for name, value in found.items() if "state=busy" in name)

    await until(is_at_rest)
    return found


async def until(claim: Callable[[], Awaitable[bool]]) -> None:
    """Return when the claim holds."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if await claim():
                return
            await asyncio.sleep(0.01)


class Lock:
    """A lock on a table that holds up whoever reads it, and a view of who is held up."""

    def __init__(self, connection: Any, holder: int) -> None:
        # Not the holder's: within one transaction the view would not change.
        self._connection = connection
        self._holder = holder

    async def busy(self) -> list[str]:
        """What other connections are doing."""
        rows = await self._connection.fetch(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid NOT IN (pg_backend_pid(), $1) AND backend_type = 'client backend' "
            "AND state <> 'idle'",
            self._holder,
        )
        return [row["query"] for row in rows]

    async def waiting(self) -> int:
        """How many wait for the lock."""
        return int(
            await self._connection.fetchval(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "
                "(SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        )

    async def holds_up(self, number: int) -> None:
        """Return when so many wait."""

        async def is_waiting() -> bool:
            return await self.waiting() == number

        await until(is_waiting)

    async def is_idle(self) -> bool:
        """Whether nobody works."""
        return await self.busy() == []


@contextlib.asynccontextmanager
async def locked(ledger: Ledger, table: str) -> AsyncIterator[Lock]:
    """Hold a lock until the block ends."""
    holding = await asyncpg.connect(ledger.dsn)
    looking = await asyncpg.connect(ledger.dsn)
    try:
        async with holding.transaction():
            await holding.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            yield Lock(looking, holding.get_server_pid())
    finally:
        await holding.close()
        await looking.close()


@dataclass(frozen=True)
class Work:
    """What is asked for, the table whose lock holds it up, and how many connections it takes."""

    query: str
    table: str
    connections: int = POOL
    is_streamed: bool = False


WORK: dict[str, Work] = {
    "queries": Work("{ characters(first: 5) { nodes { name } } }", "characters"),
    "batch functions": Work(
        "{ runs(first: 5) { nodes { id question { content } } } }", "tree_nodes"
    ),
    "mutations": Work(
        'mutation { embryoCreate(input: {identity: {name: "Never"}}) { embryo { id } } }',
        "audit_events",
    ),
    "events of subscriptions": Work(
        'subscription { runEvents(runId: "%s")'
        " { ... on RunStarted { run { question { content } } } } }",
        "tree_nodes",
        is_streamed=True,
    ),
    "sources of subscriptions": Work(
        'subscription { runEvents(runId: "%s") { seq } }', "run_events", is_streamed=True
    ),
}

LEAVING: list[tuple[type[Client], str]] = [
    (ByPost, "abort"),
    (ByPost, "close"),
    (ByBatch, "abort"),
    (ByEvents, "abort"),
    (ByEvents, "half_close"),
    (ByParts, "abort"),
    (ByParts, "close"),
    (ByOneStream, "complete"),
    (ByOneStream, "abort"),
    (BySocket, "complete"),
    (BySocket, "complete_and_abort"),
    (BySocket, "say_goodbye"),
    (BySocket, "abort"),
]
CASES = [
    (name, transport, end)
    for name, work in WORK.items()
    for transport, end in LEAVING
    if transport.CARRIES_STREAMS or not work.is_streamed
    if transport is not ByParts or work.is_streamed
]


def named(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


@pytest.mark.parametrize(("name", "transport", "end"), CASES, ids=named)
async def test_statements_end_with_whoever_wanted_them(
    caller: Caller,
    ledger: Ledger,
    idle: Figures,
    run: Begun,
    name: str,
    transport: type[Client],
    end: str,
) -> None:
    """Rules T5, T17, T52."""
    work = WORK[name]
    before = await ledger.fingerprint()
    asked = await _documents(caller, work, run)
    async with locked(ledger, work.table) as lock:
        clients = await _ask_many(caller.server, transport, asked)
        await lock.holds_up(work.connections)
        for client in clients:
            await _leave(client, end)
        await until(lock.is_idle)
        assert await lock.waiting() == 0
        await _comes_to_rest(caller, idle)
    for client in clients:
        await client.gone()
    # A mutation that was cancelled has changed nothing.
    assert await ledger.fingerprint() == before
    if not work.is_streamed and name != "mutations":
        await asyncio.gather(*(caller.ask(work.query) for _ in range(POOL + 1)))
    assert len(await caller.follow(run.run)) > 3
    await _comes_to_rest(caller, idle)


async def _documents(caller: Caller, work: Work, run: Begun) -> list[str]:
    """What each of many clients asks; the server knows the documents already.

    Of streams each has a document of its own: those who ask alike share what is executed.
    """
    if not work.is_streamed:
        return [work.query] * MANY
    documents = [f"{work.query % run.run} # {number}" for number in range(MANY)]
    for each in documents:
        assert (await caller.post(each)).codes == ["STREAM_REQUIRED"]
    return documents


async def _ask_many(
    server: ServerProcess, transport: type[Client], queries: list[str]
) -> list[Client]:
    if issubclass(transport, ByOneStream | BySocket):
        client = transport(server.address)
        for number, each in enumerate(queries):
            await client.begin(each, id=str(number))
        return [client]
    clients = [transport(server.address) for _ in range(MANY)]
    for client, each in zip(clients, queries, strict=True):
        await client.begin(each)
    return clients


async def _leave(client: Client, end: str) -> None:
    if isinstance(client, ByOneStream | BySocket) and end.startswith("complete"):
        for number in range(MANY):
            await client.send_complete(str(number))
        await (client.abort if end == "complete_and_abort" else client.close)()
        return
    await getattr(client, end)()


async def _comes_to_rest(caller: Caller, idle: Figures) -> None:
    last: Figures = {}

    async def is_idle() -> bool:
        nonlocal last
        last = await figures(caller)
        return last == idle

    with contextlib.suppress(TimeoutError):
        await until(is_idle)
    assert last == idle


@pytest.mark.parametrize("name", ["queries", "batch functions", "mutations"])
async def test_statements_end_when_the_time_is_up(
    hasty: Caller, ledger: Ledger, run: Begun, name: str
) -> None:
    """Rule T52. Those that wait for a connection are told as well."""
    work = WORK[name]
    before = await ledger.fingerprint()
    idle = await at_rest(hasty)
    async with locked(ledger, work.table) as lock:
        answers = await asyncio.gather(*(hasty.post(work.query) for _ in range(MANY)))
        assert [(each.status, each.codes) for each in answers] == [
            (503, ["OPERATION_TIMEOUT"])
        ] * MANY
        await until(lock.is_idle)
        await _comes_to_rest(hasty, idle)
    assert await ledger.fingerprint() == before
    if name != "mutations":
        answers = await asyncio.gather(*(hasty.post(work.query) for _ in range(POOL)))
        assert [each.status for each in answers] == [200] * POOL


async def test_leaving_at_the_moment_when_the_time_is_up_does_no_harm(
    hasty: Caller, ledger: Ledger, run: Begun
) -> None:
    """Rule T52. Two reasons to stop come one upon the other, in the middle of a clean-up."""
    before = await ledger.fingerprint()
    idle = await at_rest(hasty)
    dice = random.Random(17)
    kinds = ("queries", "batch functions", "mutations")
    async with (
        locked(ledger, "characters"),
        locked(ledger, "tree_nodes"),
        locked(ledger, "audit_events") as lock,
    ):
        holders = 2  # of the other locks

        async def come_and_go(_: int) -> None:
            transport = dice.choice([ByPost, ByEvents, ByOneStream, BySocket])
            client = transport(hasty.server.address)
            await client.begin(WORK[dice.choice(kinds)].query)
            # The moment of leaving is the scenario: about when the time is up.
            await asyncio.sleep(dice.gauss(0.2, 0.01))
            await client.abort()
            await client.gone()

        await asyncio.gather(*map(come_and_go, range(100)))

        async def is_idle() -> bool:
            return len(await lock.busy()) == holders

        await until(is_idle)
        await _comes_to_rest(hasty, idle)
    assert await ledger.fingerprint() == before
    answers = await asyncio.gather(*(hasty.post(WORK["queries"].query) for _ in range(POOL)))
    assert [each.status for each in answers] == [200] * POOL


async def test_a_mutation_that_was_cancelled_is_carried_out_when_it_is_sent_again(
    caller: Caller, ledger: Ledger, idle: Figures
) -> None:
    """Rule T52. Its key is free again as well."""
    asked = {
        "query": EMBRYO_CREATE,
        "variables": {"identity": {"name": "Twice"}},
        "headers": {"Idempotency-Key": "cancelled once"},
    }
    count = "SELECT count(*) FROM embryo_drafts WHERE provisional_identity_json->>'name' = 'Twice'"
    async with locked(ledger, "audit_events") as lock:
        asking = asyncio.create_task(caller.post(**asked))
        await lock.holds_up(1)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        await until(lock.is_idle)
        await _comes_to_rest(caller, idle)
    assert await ledger.value(count) == 0
    answers = [(await caller.post(**asked)).data for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["embryoCreate"]["errors"] == []
    assert await ledger.value(count) == 1


async def test_an_event_whose_time_is_up_ends_the_stream(
    hasty: Caller, ledger: Ledger, run: Begun
) -> None:
    """Rule T52."""
    query = WORK["events of subscriptions"].query % run.run
    async with locked(ledger, "tree_nodes") as lock, hasty.stream(query) as results:
        assert event_of(await anext(results)) == {}  # the opening
        stopped = await anext(results)
        (error,) = stopped["errors"]
        assert error["extensions"] == {"code": "OPERATION_TIMEOUT", "retryable": True}
        assert [each async for each in results] == []
        await until(lock.is_idle)


# Anything at once


def _asked_of(transport: type[Client], live: str, tree: str) -> Sequence[tuple[str, Json | None]]:
    embryo = {"identity": {"name": "Maybe"}}
    single: list[tuple[str, Json | None]] = [
        (WORK["queries"].query, None),
        (WORK["batch functions"].query, None),
        ("query Q($id: ID!) { mirrorTree(id: $id) { topic nodes { totalCount } } }", {"id": tree}),
        (EMBRYO_CREATE, embryo),
    ]
    streams: list[tuple[str, Json | None]] = [
        (RUN_EVENTS, {"run": live}),
        (RUN_EVENTS, {"run": live, "after": 20}),
        (WORK["events of subscriptions"].query % live, None),
    ]
    if transport is ByParts:
        return streams
    return [*single, *streams] if transport.CARRIES_STREAMS else single


async def test_a_thousand_clients_that_come_and_go_in_any_order_leave_nothing(
    caller: Caller, ledger: Ledger, idle: Figures, run: Begun
) -> None:
    """Rules T1, T3, T17. The memory of the server stays the same from round to round."""
    live = await caller.begin(SLOW_RUN)
    async with caller.stream(variables={"run": live.run}) as results:
        await anext(results)
    following = {**idle, "mirrorgraph_hub_subscriptions": idle["mirrorgraph_hub_subscriptions"] + 1}
    dice = random.Random(11)
    process = psutil.Process(caller.server.process.pid)
    memory = []

    async def go_on(plans: Any) -> None:
        for transport, end, (query, variables), pause in plans:
            client = transport(caller.server.address)
            await client.begin(query, variables)
            if pause is not None:
                # Part of the scenario: clients leave at any moment. Nothing is waited for here.
                await asyncio.sleep(pause)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await getattr(client, end)()
            await client.gone()

    for _ in range(3):
        plans = []
        for _ in range(350):
            transport = dice.choice(TRANSPORTS)
            plans.append(
                (
                    transport,
                    dice.choice(transport.ENDS),
                    dice.choice(_asked_of(transport, live.run, run.tree)),
                    dice.choice([None, 0.0, 0.002, 0.02]),
                )
            )
        remaining = iter(plans)
        async with asyncio.timeout(2 * PATIENCE):
            await asyncio.gather(*(go_on(remaining) for _ in range(20)))
        await _comes_to_rest(caller, following)
        memory.append(process.memory_info().rss)
    print(f"memory after each round: {[each // 1024 for each in memory]} KiB")
    await caller.change("RunCancel", run=live.run)
    await caller.follow(live.run)
    await _comes_to_rest(caller, idle)
    async with locked(ledger, "settings") as lock:
        await until(lock.is_idle)
    # The first round fills caches. Connections that are kept would be more than a megabyte.
    assert memory[2] - memory[1] < 1024 * 1024
    assert (await caller.read("Tree", run.tree))["topic"] == "Tests"
