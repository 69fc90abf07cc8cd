"""A branch whose rows have vectors of our choice: angles on a circle, so that likeness is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import update
from sqlmodel import col

from db.enums import EntityKind, EntryKind, InjectionMode, ThreadStatus
from db.reading import param, statement
from db.tables import (
    Chapter,
    Happening,
    HappeningAwareness,
    Lore,
    Story,
    StoryEntity,
    StoryEntry,
    Thread,
)
from services import deltas, embedding
from services.embedding import storing
from services.retrieval.gathering import World, read_world
from services.retrieval.meaning import BranchMeaning
from services.retrieval.retrieving import Retrieved, action_of, queries_in, retrieve
from tests.factories import PREFIXES, entity_values
from tests.services.deltas.desks import Desk

MODEL = "circle"
assert embedding.LOCAL_MODEL != MODEL


def at(degrees: float) -> list[float]:
    """The direction of an angle."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


class Hall:
    """What tests plant in a branch, and retrieve from it."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.writing, self.branch_id = desk, desk.writing, desk.branch_id
        self.viewer = desk.people.owner

    async def plant(self, table: Any, prefix: str | None = None, **values: Any) -> str:
        (row,) = await deltas.plant_rows(
            self.writing, self.branch_id, table, [values], prefix=prefix
        )
        return str(row["id"])

    async def entity(
        self,
        name: str,
        kind: EntityKind = EntityKind.CHARACTER,
        state: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> str:
        return await self.plant(
            StoryEntity, PREFIXES[kind], **{**entity_values(kind, name, **(state or {})), **values}
        )

    async def lore(self, title: str, body: str = "", **values: Any) -> str:
        rest = {"injection_mode": InjectionMode.AUTO, "priority": 50, "keywords": [], "tags": []}
        return await self.plant(Lore, title=title, body=body, **{**rest, **values})

    async def thread(self, title: str, status: ThreadStatus, **values: Any) -> str:
        mode = {"injection_mode": InjectionMode.AUTO}
        return await self.plant(Thread, title=title, status=status, **{**mode, **values})

    async def happening(self, title: str, knower: str | None = None, **values: Any) -> str:
        awareness = values.pop("awareness", {})
        made = await self.plant(Happening, title=title, **values)
        if knower is not None:
            await self.plant(
                HappeningAwareness, happening_id=made, character_id=knower, **awareness
            )
        return made

    async def entry(
        self,
        position: int,
        kind: EntryKind = EntryKind.AI_REPLY,
        content: str = "It goes on.",
        chapter_id: str | None = None,
        **meta: Any,
    ) -> str:
        values = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0, **meta}
        return await self.plant(
            StoryEntry,
            position=position,
            kind=kind,
            content=content,
            chapter_id=chapter_id,
            metadata=values,
        )

    async def chapter(self, number: int, title: str, **values: Any) -> str:
        return await self.plant(
            Chapter,
            sequence_number=number,
            title=title,
            start_entry_id="",
            end_entry_id="",
            **{"keywords": [], **values},
        )

    async def set(self, **settings: Any) -> None:
        story_id = (await self.desk.branch()).story_id
        await self.writing.run(_set(), story_id=story_id, settings=settings)

    async def embed(self, angles: Mapping[str, float]) -> None:
        """Rows whose text begins with these words point there; the others stay stale."""
        waiting = [
            (row, next(angle for words, angle in angles.items() if row.text.startswith(words)))
            for row in await deltas.texts_to_embed(self.writing, self.branch_id, MODEL)
            if any(row.text.startswith(words) for words in angles)
        ]
        await storing.keep_vectors(
            self.writing, MODEL, 2, {row.text_hash: at(angle) for row, angle in waiting}
        )
        rows = [row for row, _ in waiting]
        await deltas.note_embedded(self.writing, self.branch_id, MODEL, 2, rows)
        await deltas.mark_fresh(
            self.writing, self.branch_id, MODEL, list({row.kind for row in rows})
        )

    async def world(self) -> World:
        return await read_world(self.writing, self.viewer, self.branch_id)

    async def retrieve(
        self, text: str | None = "I look.", angles: Sequence[float] | None = (0,)
    ) -> Retrieved:
        """What a prompt would carry, the queries pointing at these angles, the last for the rest;
        None has no embedder.
        """
        world = await self.world()
        action = action_of(world, text)
        queries = queries_in(world, action)
        meaning = None
        if angles is not None and queries:
            directions = [at(angles[min(n, len(angles) - 1)]) for n in range(len(queries))]
            meaning = BranchMeaning(MODEL, directions)
        return await retrieve(self.writing, self.viewer, world, action, queries, meaning)


@statement(Story)
def _set() -> Any:
    return (
        update(Story)
        .where(col(Story.id) == param("story_id"))
        .values(settings=param("settings", Story.__table__.c.settings.type))  # type: ignore[attr-defined]
    )


def seated(found: Retrieved) -> dict[str, list[str]]:
    """The names of what was seated, by kind."""
    return {
        str(pool.kind): [each.candidate.name for each in pool.seated]
        for pool in found.pools
        if pool.seated
    }


def pooled(found: Retrieved) -> dict[str, set[str]]:
    """The names of what was ranked, by kind."""
    return {
        str(pool.kind): {each.candidate.name for each in pool.ranked}
        for pool in found.pools
        if pool.ranked
    }
