from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from obstore.store import MemoryStore

from db.engine import Database
from db.settings import Settings
from db.tables import MirrorTree
from resolvers.context import AlreadyDone, Context, Engine
from resolvers.nodes import earlier_payload
from services.assets import FileStore
from services.hub import Hub
from services.providers import ProviderSettings, make_provider
from services.rehearsing import Rehearsals
from services.runs import RunWorker
from tests.conftest import People
from tests.factories import make_tree


@pytest.fixture
async def context(database: Database, people: People) -> AsyncIterator[Context]:
    hub = Hub()
    provider = make_provider(ProviderSettings("demo"))
    worker = RunWorker(database, hub, provider, holder="test", lease_seconds=10, concurrent_runs=1)
    rehearsals = Rehearsals(database, provider, most=1, budget=8_192)
    files = FileStore(MemoryStore(), "tests", None)
    yield Context(Engine(Settings(), database, hub, worker, rehearsals, files), people.owner)
    await provider.close()


class Parent:
    def __init__(self, id: str | None = None) -> None:
        if id is not None:
            self.id = id


async def test_siblings_are_asked_for_together_and_each_once(context: Context) -> None:
    calls: list[tuple[int, str]] = []

    async def names_of_parents(
        _context: Context, parents: Sequence[Any], *, suffix: str = ""
    ) -> list[str]:
        calls.append((len(parents), suffix))
        return [parent.id + suffix for parent in parents]

    first, second, again = Parent("a"), Parent("b"), Parent("a")
    load = context.batcher.load
    assert await asyncio.gather(
        load(names_of_parents, first),
        load(names_of_parents, second),
        load(names_of_parents, again),
        load(names_of_parents, first, {"suffix": "!"}),
    ) == ["a", "b", "a", "a!"]
    assert sorted(calls) == [(1, "!"), (2, "")]


async def test_parents_without_an_id_are_told_apart_by_themselves(context: Context) -> None:
    async def places_of_parents(_context: Context, parents: Sequence[Any]) -> list[int]:
        return list(range(len(parents)))

    load = context.batcher.load
    parent = Parent()
    found = await asyncio.gather(
        load(places_of_parents, parent),
        load(places_of_parents, Parent()),
        load(places_of_parents, parent),
    )
    assert found == [0, 1, 0]


async def test_an_exception_in_one_place_reaches_that_parent_alone(context: Context) -> None:
    async def halves_of_parents(_context: Context, parents: Sequence[Any]) -> list[Any]:
        return [ValueError("odd") if parent.id == "b" else parent.id for parent in parents]

    load = context.batcher.load
    found = await asyncio.gather(
        load(halves_of_parents, Parent("a")),
        load(halves_of_parents, Parent("b")),
        return_exceptions=True,
    )
    assert found[0] == "a"
    assert isinstance(found[1], ValueError)


async def test_what_was_loaded_does_not_outlive_a_commit(
    context: Context, database: Database, people: People
) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner, topic="Before")

    async def topic() -> str:
        (row,) = await context.many(MirrorTree, [tree.id])
        assert row is not None
        return row.topic

    assert await topic() == "Before"
    async with context.writing() as change:
        await change.writing._connection.execute("UPDATE mirror_trees SET topic = 'After'")
        assert await topic() == "Before"
    assert await topic() == "After"


async def test_links_are_followed_in_order_with_gaps(
    context: Context, database: Database, people: People
) -> None:
    async with database.writing() as writing:
        mine = await make_tree(writing, people.owner)
        foreign = await make_tree(writing, people.stranger)
    found = await context.many(MirrorTree, [None, mine.id, foreign.id, mine.id])
    assert [row and row.id for row in found] == [None, mine.id, None, mine.id]


async def test_a_repeat_under_a_key_answers_with_the_same_rows(
    context: Context, people: People
) -> None:
    """Rule I1."""
    context.idempotency_key, context.request_hash, context.root_field = "key", "hash", "treeCreate"
    async with context.writing() as change:
        tree = await make_tree(change.writing, people.owner)
        change.answer(tree=tree, other=None)
    with pytest.raises(AlreadyDone) as done:
        async with context.renewed().writing():
            raise AssertionError("carried out twice")
    payload = await earlier_payload(context, done.value.answer)
    assert payload["tree"].id == tree.id
    assert payload["other"] is None
