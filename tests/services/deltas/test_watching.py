"""Watching a branch: what was, then what comes, from every server, each event once and in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from db.engine import Database, open_database
from db.enums import BranchEventKind, DeltaOp, EntityKind, LoggedTable
from db.listening import Listener
from db.tables import Branch, BranchEvent, Lore, RowChange, StoryEntity
from services import deltas
from services.access import Viewer, require_row
from services.errors import Invalid, NotFound, Unavailable
from services.hub import CHANNEL, Hub
from tests.conftest import People
from tests.e2e.callers import PATIENCE
from tests.factories import entity_values, make_branch
from tests.services.deltas.ledgers import rows_of
from tests.trees import run_sql, until_somebody_waits


@dataclass
class Server:
    """What a server has for following branches."""

    database: Database
    hub: Hub

    def follow(self, viewer: Viewer, branch: Branch, after: int | None = 0) -> Any:
        return deltas.follow_branch(self.database, self.hub, viewer, branch.id, after)


@contextlib.asynccontextmanager
async def a_server(dsn: str) -> AsyncIterator[Server]:
    database = await open_database(dsn, pool_size=4, statement_timeout=10)
    hub = Hub()
    listener = Listener(dsn, CHANNEL, hub.publish, lambda: None)
    await listener.start()
    try:
        yield Server(database, hub)
    finally:
        await listener.close()
        await database.close()


@pytest.fixture
async def server(dsn: str) -> AsyncIterator[Server]:
    async with a_server(dsn) as server:
        yield server


@pytest.fixture
async def branch(database: Database, people: People) -> Branch:
    async with database.writing() as writing:
        return await make_branch(writing, people.owner)


async def add_lore(database: Database, viewer: Viewer, branch: Branch, title: str) -> str:
    """One action with one change; the id of the row."""
    async with database.writing() as writing, deltas.acting(writing, viewer, branch.id) as action:
        row = await action.create(
            Lore, {"title": title, "body": "It is so.", "injection_mode": "auto"}
        )
        return str(row["id"])


async def take(stream: Any, count: int) -> list[BranchEvent]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(stream) for _ in range(count)]


async def listening(server: Server) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if server.hub.open_subscriptions:
                return
            await asyncio.sleep(0.005)


def told(events: list[BranchEvent]) -> list[tuple[int, list[str]]]:
    return [(event.seq, [each.id for each in event.changes]) for event in events]


async def test_what_was_comes_first_and_then_what_happens(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rule H1."""
    first = await add_lore(database, people.owner, branch, "Oil")
    stream = server.follow(people.owner, branch)
    (event,) = await take(stream, 1)
    assert (event.seq, event.kind, event.source) == (1, BranchEventKind.ACTION, "user_edit")
    assert (event.head, event.change_count) == (1, 1)
    assert event.changes == [RowChange(LoggedTable.LORE, DeltaOp.CREATE, f"{branch.id}:{first}")]
    waiting = asyncio.create_task(take(stream, 2))
    second = await add_lore(database, people.owner, branch, "Wicks")
    async with database.writing() as writing:
        await deltas.undo_branch(writing, people.owner, branch.id)
    action, undo = await waiting
    assert told([action]) == [(2, [f"{branch.id}:{second}"])]
    assert (undo.seq, undo.kind, undo.action_id) == (3, BranchEventKind.UNDO, action.action_id)
    assert (action.head, undo.head) == (2, 1)
    await stream.aclose()
    assert server.hub.open_subscriptions == 0


async def test_an_event_names_every_row_of_its_action(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rule H2."""
    async with (
        database.writing() as writing,
        deltas.acting(writing, people.owner, branch.id) as action,
    ):
        entity = await action.create(
            StoryEntity, entity_values(EntityKind.CHARACTER, "Mira"), prefix="char"
        )
        await action.update(StoryEntity, entity, {"name": "Odo"})
    stream = server.follow(people.owner, branch)
    (event,) = await take(stream, 1)
    name = f"{branch.id}:{entity['id']}"
    assert event.action_id == action.id
    assert [(each.table, each.op, each.id) for each in event.changes] == [
        ("entities", "create", name),
        ("entities", "update", name),
    ]
    await stream.aclose()


async def test_without_a_number_only_what_comes_is_told(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rule H1."""
    await add_lore(database, people.owner, branch, "Oil")
    stream = server.follow(people.owner, branch, None)
    waiting = asyncio.create_task(take(stream, 1))
    await listening(server)
    second = await add_lore(database, people.owner, branch, "Wicks")
    assert told(await waiting) == [(2, [f"{branch.id}:{second}"])]
    await stream.aclose()


@pytest.mark.parametrize("after", range(4))
async def test_who_comes_back_goes_on_behind_the_last_number(
    server: Server, database: Database, people: People, branch: Branch, after: int
) -> None:
    """Rule H1."""
    for title in ("Oil", "Wicks", "Lamps"):
        await add_lore(database, people.owner, branch, title)
    stream = server.follow(people.owner, branch, after)
    await add_lore(database, people.owner, branch, "Ledgers")
    assert [event.seq for event in await take(stream, 4 - after)] == list(range(after + 1, 5))
    await stream.aclose()


@pytest.mark.parametrize("after", [-1, 1, 2**31 - 1])
async def test_a_number_that_the_branch_has_not_come_to_is_refused(
    server: Server, people: People, branch: Branch, after: int
) -> None:
    with pytest.raises(Invalid) as caught:
        await anext(server.follow(people.owner, branch, after))
    assert (caught.value.code, caught.value.path) == ("INVALID_CURSOR", ("after",))
    assert server.hub.open_subscriptions == 0


async def test_strangers_and_nobody_watch_nothing(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    await add_lore(database, people.owner, branch, "Oil")
    for viewer in (people.stranger, people.anonymous):
        with pytest.raises(NotFound) as caught:
            await anext(server.follow(viewer, branch))
        assert caught.value.path == ("branchId",)
        async with server.database.reading() as reading:
            assert await deltas.events_after(reading, viewer, branch.id, 0) == []
    assert server.hub.open_subscriptions == 0


async def test_who_loses_the_branch_is_told_so(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rule H3."""
    stream = server.follow(people.owner, branch)
    waiting = asyncio.create_task(take(stream, 1))
    await listening(server)
    await run_sql(database, "UPDATE stories SET owner_user_id = $1", people.stranger.user_id)
    await add_lore(database, people.stranger, branch, "Oil")
    with pytest.raises(NotFound):
        await waiting
    assert server.hub.open_subscriptions == 0


async def test_the_end_of_a_branch_is_the_end_of_the_stream(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rule H3."""
    stream = server.follow(people.owner, branch)
    waiting = asyncio.create_task(take(stream, 1))
    await listening(server)
    async with database.writing() as writing:
        await deltas.drop_branches(writing, [branch.id])
        await writing._connection.execute("DELETE FROM branches WHERE id = $1", branch.id)
    with pytest.raises(NotFound):
        await waiting
    assert server.hub.open_subscriptions == 0


async def test_a_change_on_one_server_is_seen_on_the_others(
    dsn: str, people: People, branch: Branch
) -> None:
    """Rule H1."""
    async with a_server(dsn) as first, a_server(dsn) as second:
        streams = [each.follow(people.owner, branch, None) for each in (first, second)]
        waiting = [asyncio.create_task(take(each, 2)) for each in streams]
        await listening(first)
        await listening(second)
        rows = [
            await add_lore(each.database, people.owner, branch, "Oil") for each in (first, second)
        ]
        expected = [(seq, [f"{branch.id}:{row}"]) for seq, row in enumerate(rows, start=1)]
        assert [told(await each) for each in waiting] == [expected] * 2
        for stream in streams:
            await stream.aclose()


async def test_numbers_are_in_the_order_of_the_commits(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rule H2: a writer waits for the one before, so no number is passed over and filled later."""
    stream = server.follow(people.owner, branch, None)
    waiting = asyncio.create_task(take(stream, 2))
    await listening(server)
    async with database.writing() as writing:
        async with deltas.acting(writing, people.owner, branch.id) as action:
            first = await action.create(
                Lore, {"title": "First", "body": "It is so.", "injection_mode": "auto"}
            )
        second = asyncio.create_task(add_lore(database, people.owner, branch, "Second"))
        await until_somebody_waits(database)
    expected = [(1, [f"{branch.id}:{first['id']}"]), (2, [f"{branch.id}:{await second}"])]
    assert told(await waiting) == expected
    await stream.aclose()


async def test_many_writers_at_once_leave_no_gap_and_nobody_sees_one(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rules H1, H2."""
    titles = [f"Lore {number}" for number in range(30)]

    async def come_and_go() -> list[tuple[int, list[str]]]:
        """Read all events, hanging up after every seventh."""
        seen: list[tuple[int, list[str]]] = []
        while len(seen) < len(titles):
            stream = server.follow(people.owner, branch, len(seen))
            seen += told(await take(stream, min(7, len(titles) - len(seen))))
            await stream.aclose()
        return seen

    async def give_up() -> None:
        with contextlib.suppress(LookupError):
            async with database.writing() as writing:
                async with deltas.acting(writing, people.owner, branch.id) as action:
                    await action.create(
                        Lore, {"title": "Lost", "body": "No.", "injection_mode": "auto"}
                    )
                raise LookupError

    readers = [asyncio.create_task(come_and_go()) for _ in range(2)]
    await asyncio.gather(
        *(add_lore(database, people.owner, branch, title) for title in titles), give_up()
    )
    async with database.reading() as reading:
        stored = told(await rows_of(reading, BranchEvent, branch.id))
        now = await require_row(reading, people.owner, Branch, branch.id)
    assert [seq for seq, _ in stored] == list(range(1, 31))
    assert [await each for each in readers] == [stored, stored]
    assert now.last_event_seq == 30
    assert server.hub.open_subscriptions == 0


async def test_a_slow_reader_misses_nothing_and_holds_no_connection(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    await add_lore(database, people.owner, branch, "Lore 0")
    slow = server.follow(people.owner, branch)
    assert [event.seq for event in await take(slow, 1)] == [1]
    async with database.writing() as writing:
        for number in range(1, 130):
            async with deltas.acting(writing, people.owner, branch.id) as action:
                await action.create(
                    Lore, {"title": f"{number}", "body": "So.", "injection_mode": "auto"}
                )
    assert [event.seq for event in await take(slow, 129)] == list(range(2, 131))
    size, idle = server.database.pool_use()["reading"]
    assert size == idle
    await slow.aclose()


async def test_of_very_many_changes_the_first_are_listed_and_all_are_counted(
    server: Server, database: Database, people: People, branch: Branch
) -> None:
    """Rule H2."""
    async with database.writing() as writing:
        held = await deltas.hold_branch(writing, people.owner, branch.id)
        changes = [("lore", "create", f"lore_{number}") for number in range(1_005)]
        await deltas.note_event(
            writing,
            held,
            BranchEventKind.NOTICE,
            action_id=None,
            source=None,
            head=0,
            changes=changes,
        )
    stream = server.follow(people.owner, branch)
    (event,) = await take(stream, 1)
    assert (len(event.changes), event.change_count) == (1_000, 1_005)
    assert event.changes[-1].id == f"{branch.id}:lore_999"
    await stream.aclose()


async def test_hanging_up_ends_the_subscription(
    server: Server, people: People, branch: Branch
) -> None:
    task = asyncio.create_task(take(server.follow(people.owner, branch, None), 1))
    await listening(server)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.hub.open_subscriptions == 0


async def test_a_server_that_stops_says_when_to_come_back(
    server: Server, people: People, branch: Branch
) -> None:
    """Rule H3."""
    task = asyncio.create_task(take(server.follow(people.owner, branch, None), 1))
    await listening(server)
    server.hub.close("SERVER_STOPPING", "The server stops.")
    with pytest.raises(Unavailable) as caught:
        await task
    assert (caught.value.code, caught.value.is_retryable) == ("SERVER_STOPPING", True)
    assert server.hub.open_subscriptions == 0
