"""A world to try things on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from db.engine import Database
from db.enums import WorldEntityKind
from db.paging import PageRequest
from db.reading import Writing
from db.tables import WorldEntity, WorldRelation
from services import worlds
from services.access import Viewer, rows_by_ids
from services.errors import DomainError
from tests.conftest import People

CHARACTER, LOCATION = WorldEntityKind.CHARACTER, WorldEntityKind.LOCATION


@dataclass
class Made:
    """A world of the owner's, in which entities have names."""

    database: Database
    owner: Viewer
    stranger: Viewer
    id: str
    ids: dict[str, str] = field(default_factory=dict)

    async def add(self, name: str, kind: WorldEntityKind = CHARACTER, **values: Any) -> str:
        async with self.database.writing() as writing:
            row = await worlds.create_world_entity(
                writing, self.owner, self.id, {"kind": kind, "name": name, **values}
            )
        self.ids[name] = row.id
        return row.id

    async def tie(self, source: str, target: str, kind: str = "knows", **values: Any) -> str:
        async with self.database.writing() as writing:
            row = await worlds.set_relation(
                writing, self.owner, self.ids[source], self.ids[target], kind, values
            )
        return row.id

    async def change(self, act: Callable[..., Awaitable[Any]], *args: Any, **named: Any) -> Any:
        """One transaction of the owner's."""
        async with self.database.writing() as writing:
            return await act(writing, self.owner, *args, **named)

    async def refusal(
        self,
        act: Callable[..., Awaitable[Any]],
        *args: Any,
        viewer: Viewer | None = None,
        **named: Any,
    ) -> tuple[str, tuple[str | int, ...]]:
        """Code and path of what is refused, which has changed nothing."""
        before = await self.state()
        with pytest.raises(DomainError) as caught:
            async with self.database.writing() as writing:
                await act(writing, viewer or self.owner, *args, **named)
        assert await self.state() == before
        return caught.value.code, caught.value.path

    async def entities(self, **values: Any) -> list[WorldEntity]:
        async with self.database.reading() as reading:
            pages = await worlds.ENTITIES_OF_WORLDS.pages(
                reading,
                [self.id],
                PageRequest(first=200),
                **{"kinds": None, "search": None, **values},
                **self.owner.parameters,
            )
        return pages[0].nodes

    async def relations(self, **values: Any) -> list[WorldRelation]:
        async with self.database.reading() as reading:
            pages = await worlds.RELATIONS_OF_WORLDS.pages(
                reading,
                [self.id],
                PageRequest(first=200),
                **{"kinds": None, "valid_at": None, **values},
                **self.owner.parameters,
            )
        return pages[0].nodes

    async def names(self, **values: Any) -> list[str]:
        return [each.name for each in await self.entities(**values)]

    async def aliases(self, name: str) -> list[str]:
        async with self.database.reading() as reading:
            found = await worlds.aliases_of(reading, self.owner, [self.ids[name]])
        return list(found[self.ids[name]].values())

    async def row(self, table: Any, id: str) -> Any:
        async with self.database.reading() as reading:
            return (await rows_by_ids(reading, self.owner, table, [id]))[0]

    async def state(self) -> list[Any]:
        """All that is said of the world, without versions and times."""
        entities = await self.entities()
        async with self.database.reading() as reading:
            aliases = await worlds.aliases_of(reading, self.owner, [each.id for each in entities])
        told = [
            (
                each.id,
                each.name,
                each.kind,
                each.description,
                each.tags,
                each.attributes,
                each.sources,
                list(aliases[each.id].values()),
            )
            for each in entities
        ]
        relations = [
            (
                each.id,
                each.source_id,
                each.target_id,
                each.kind,
                each.label,
                each.weight,
                each.is_directed,
                each.valid_from,
                each.valid_until,
                each.confidence,
                each.sources,
                each.created_at,
            )
            for each in await self.relations()
        ]
        return [*told, *relations]


async def make_world(writing: Writing, viewer: Viewer, name: str = "Aster") -> str:
    return (await worlds.create_world(writing, viewer, {"name": name})).id


@pytest.fixture
async def made(database: Database, people: People) -> Made:
    async with database.writing() as writing:
        world_id = await make_world(writing, people.owner)
    return Made(database, people.owner, people.stranger, world_id)
