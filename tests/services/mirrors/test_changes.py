"""Watching a tree: what was, then what comes, from every server, each change once and in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from db.engine import Database, open_database
from db.enums import TreeEventType
from db.listening import Listener
from db.tables import MirrorTree, TreeEvent
from services import mirrors
from services.access import Viewer
from services.errors import Invalid, NotFound, Unavailable
from services.hub import CHANNEL, Hub
from tests.conftest import People
from tests.e2e.callers import PATIENCE
from tests.factories import make_tree
from tests.trees import events_of, grown, run_sql, tree_now, until_somebody_waits


@dataclass
class Server:
    """What a server has for following trees."""

    database: Database
    hub: Hub

    def follow(self, viewer: Viewer, tree: MirrorTree, after: int | None = 0) -> Any:
        return mirrors.follow_tree(self.database, self.hub, viewer, tree.id, after)


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


async def take(stream: Any, count: int) -> list[TreeEvent]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(stream) for _ in range(count)]


def told(events: list[TreeEvent]) -> list[tuple[int, str, str | None]]:
    return [(event.seq, event.type, event.node_id) for event in events]


async def listening(server: Server) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if server.hub.open_subscriptions:
                return
            await asyncio.sleep(0.005)


async def note(database: Database, tree: MirrorTree, node_id: str) -> None:
    async with database.writing() as writing:
        await mirrors.note_change(writing, tree.id, TreeEventType.NODE_CITED, node_id)


async def test_what_was_comes_first_and_then_what_happens(
    server: Server, database: Database, people: People
) -> None:
    """Rule M15."""
    tree = await grown(database, people)
    stream = server.follow(people.owner, tree.tree)
    assert told(await take(stream, 4)) == [
        (1, "node_planted", tree.first.id),
        (2, "entry_moved", tree.chosen.id),
        (3, "node_planted", tree.second.id),
        (4, "entry_moved", tree.last.id),
    ]
    waiting = asyncio.create_task(take(stream, 2))
    async with database.writing() as writing:
        edited = await mirrors.edit_node(writing, people.owner, tree.other.id, "Edited.")
        await mirrors.adopt_node(writing, people.owner, edited.id)
    assert told(await waiting) == [(5, "node_planted", edited.id), (6, "entry_moved", edited.id)]
    await stream.aclose()
    assert server.hub.open_subscriptions == 0


async def test_without_a_number_only_what_comes_is_told(
    server: Server, database: Database, people: People
) -> None:
    tree = await grown(database, people)
    stream = server.follow(people.owner, tree.tree, None)
    waiting = asyncio.create_task(take(stream, 1))
    await listening(server)
    await note(database, tree.tree, "node_x")
    assert told(await waiting) == [(5, "node_cited", "node_x")]
    await stream.aclose()


@pytest.mark.parametrize("after", range(5))
async def test_who_comes_back_goes_on_behind_the_last_number(
    server: Server, database: Database, people: People, after: int
) -> None:
    tree = await grown(database, people)
    stream = server.follow(people.owner, tree.tree, after)
    await note(database, tree.tree, "node_x")
    found = await take(stream, 5 - after)
    assert [event.seq for event in found] == list(range(after + 1, 6))
    await stream.aclose()


@pytest.mark.parametrize("after", [-1, 5, 2**31 - 1])
async def test_a_number_that_the_tree_has_not_come_to_is_refused(
    server: Server, database: Database, people: People, after: int
) -> None:
    tree = await grown(database, people)
    with pytest.raises(Invalid) as caught:
        await anext(server.follow(people.owner, tree.tree, after))
    assert (caught.value.code, caught.value.path) == ("INVALID_CURSOR", ("after",))
    assert server.hub.open_subscriptions == 0


async def test_strangers_and_nobody_watch_nothing(
    server: Server, database: Database, people: People
) -> None:
    tree = await grown(database, people)
    for viewer in (people.stranger, people.anonymous):
        with pytest.raises(NotFound) as caught:
            await anext(server.follow(viewer, tree.tree))
        assert caught.value.path == ("treeId",)
        async with server.database.reading() as reading:
            assert await mirrors.events_after(reading, viewer, tree.tree.id, 0) == []
    assert server.hub.open_subscriptions == 0


async def test_who_loses_the_tree_is_told_so(
    server: Server, database: Database, people: People
) -> None:
    tree = await grown(database, people)
    stream = server.follow(people.owner, tree.tree)
    await take(stream, 4)
    await run_sql(database, "UPDATE characters SET custodian_user_id = $1", people.stranger.user_id)
    await note(database, tree.tree, "node_x")
    with pytest.raises(NotFound):
        await take(stream, 1)
    assert server.hub.open_subscriptions == 0


async def test_a_change_on_one_server_is_seen_on_the_others(
    dsn: str, database: Database, people: People
) -> None:
    """Rule M15."""
    tree = await grown(database, people)
    async with a_server(dsn) as first, a_server(dsn) as second:
        streams = [each.follow(people.owner, tree.tree, None) for each in (first, second)]
        waiting = [asyncio.create_task(take(each, 2)) for each in streams]
        await listening(first)
        await listening(second)
        await note(first.database, tree.tree, "node_from_first")
        await note(second.database, tree.tree, "node_from_second")
        expected = [(5, "node_cited", "node_from_first"), (6, "node_cited", "node_from_second")]
        assert [told(await each) for each in waiting] == [expected] * 2
        for stream in streams:
            await stream.aclose()


async def test_numbers_are_in_the_order_of_the_commits(
    server: Server, database: Database, people: People
) -> None:
    """Rule M16: a writer waits for the one before, so no number is passed over and filled later."""
    tree = await grown(database, people)
    stream = server.follow(people.owner, tree.tree, None)
    waiting = asyncio.create_task(take(stream, 2))
    await listening(server)
    async with database.writing() as writing:
        await mirrors.note_change(writing, tree.tree.id, TreeEventType.NODE_CITED, "node_1")
        second = asyncio.create_task(note(database, tree.tree, "node_2"))
        await until_somebody_waits(database)
    await second
    assert told(await waiting) == [(5, "node_cited", "node_1"), (6, "node_cited", "node_2")]
    await stream.aclose()


async def test_many_writers_at_once_leave_no_gap_and_nobody_sees_one(
    server: Server, database: Database, people: People
) -> None:
    """Rule M16."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
    names = [f"node_{number}" for number in range(60)]

    async def come_and_go() -> list[tuple[int, str, str | None]]:
        """Read all events, hanging up after every seventh."""
        seen: list[tuple[int, str, str | None]] = []
        while len(seen) < len(names):
            stream = server.follow(people.owner, tree, len(seen))
            seen += told(await take(stream, min(7, len(names) - len(seen))))
            await stream.aclose()
        return seen

    steady = server.follow(people.owner, tree)
    readers = [
        asyncio.create_task(come_and_go()),
        asyncio.create_task(come_and_go()),
    ]
    watched = asyncio.create_task(take(steady, len(names)))

    async def give_up(name: str) -> None:
        with contextlib.suppress(LookupError):
            async with database.writing() as writing:
                await mirrors.note_change(writing, tree.id, TreeEventType.NODE_CITED, name)
                raise LookupError

    await asyncio.gather(*(note(database, tree, name) for name in names), give_up("node_lost"))
    stored = await events_of(database, tree)
    assert [seq for seq, _, _ in stored] == list(range(1, 61))
    assert sorted(str(node) for _, _, node in stored) == sorted(names)
    assert [await each for each in readers] == [stored, stored]
    assert told(await watched) == stored
    assert (await tree_now(database, people.owner, tree)).last_seq == 60
    await steady.aclose()
    assert server.hub.open_subscriptions == 0


async def test_a_slow_reader_misses_nothing_and_holds_nobody_up(
    server: Server, database: Database, people: People
) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        await mirrors.note_change(writing, tree.id, TreeEventType.NODE_CITED, "node_0")
    slow, quick = (server.follow(people.owner, tree) for _ in range(2))
    assert [event.seq for event in await take(slow, 1)] == [1]
    async with database.writing() as writing:
        for number in range(1, 1_200):
            await mirrors.note_change(writing, tree.id, TreeEventType.NODE_CITED, f"node_{number}")
    assert [event.seq for event in await take(quick, 1_200)] == list(range(1, 1_201))
    assert [event.seq for event in await take(slow, 1_199)] == list(range(2, 1_201))
    # No connection of the pool is held while a reader does something else.
    assert server.database.pool_use()["reading"][0] >= 1
    size, idle = server.database.pool_use()["reading"]
    assert size == idle
    await slow.aclose()
    await quick.aclose()


async def test_hanging_up_ends_the_subscription(
    server: Server, database: Database, people: People
) -> None:
    tree = await grown(database, people)
    task = asyncio.create_task(take(server.follow(people.owner, tree.tree, None), 1))
    await listening(server)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.hub.open_subscriptions == 0


async def test_a_server_that_stops_says_when_to_come_back(
    server: Server, database: Database, people: People
) -> None:
    tree = await grown(database, people)
    task = asyncio.create_task(take(server.follow(people.owner, tree.tree, None), 1))
    await listening(server)
    server.hub.close("SERVER_STOPPING", "The server stops.")
    with pytest.raises(Unavailable) as caught:
        await task
    assert (caught.value.code, caught.value.is_retryable) == ("SERVER_STOPPING", True)
    assert server.hub.open_subscriptions == 0
