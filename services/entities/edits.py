"""The entities that one action changes: each is read once, changed here, and written once.

An act on one entity often touches others: what holds an item, what lies within a place. Each of
them gets one line in the log, whatever the number of its changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text
from sqlmodel import col

from db.enums import EntityKind, LoggedTable
from db.reading import any_of, param, statement
from db.tables import StoryEntity
from services.deltas import Action, Image
from services.deltas.rows import images_by_ids
from services.entities.listing import SLOTS, held_items, in_state
from services.shapes import same


@statement(object)
def _naming(key: str) -> Any:
    return select(col(StoryEntity.row_id).label("row_id")).where(
        col(StoryEntity.branch_id) == param("branch_id"),
        in_state(key) == func.any(param("ids", ARRAY(Text))),
    )


@statement(object)
def _holding() -> Any:
    item = func.jsonb_array_elements_text(held_items()).column_valued("item")
    return select(col(StoryEntity.row_id).label("row_id")).where(
        col(StoryEntity.branch_id) == param("branch_id"),
        col(StoryEntity.kind) == EntityKind.CHARACTER.value,
        item == func.any(param("ids", ARRAY(Text))),
    )


@statement(object)
def _partners() -> Any:
    return select(col(StoryEntity.row_id).label("row_id")).where(
        col(StoryEntity.branch_id) == param("branch_id"),
        any_of(StoryEntity.name_collision_partner_id, "ids"),
    )


@dataclass(slots=True)
class Edits:
    """What an action makes of some entities. Images are those of the rows as they will be."""

    action: Action
    _stored: dict[str, Image] = field(default_factory=dict)
    _changes: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def load(self, row_ids: Iterable[str]) -> dict[str, Image]:
        """Entities by their own ids; those that are not there are left out."""
        wanted = list(dict.fromkeys(row_ids))
        missing = [each for each in wanted if each not in self._stored]
        if missing:
            branch_id = self.action.branch.id
            self._stored.update(
                await images_by_ids(self.action.writing, branch_id, LoggedTable.ENTITIES, missing)
            )
        return {each: self.get(each) for each in wanted if each in self._stored}

    def get(self, row_id: str) -> Image:
        """An entity that was loaded, as it will be."""
        return {**self._stored[row_id], **self._changes.get(row_id, {})}

    async def find(self, row_id: str) -> Image | None:
        """One entity, or None."""
        return (await self.load([row_id])).get(row_id)

    def change(self, row_id: str, **columns: Any) -> None:
        """Change columns of an entity that was loaded."""
        self._changes.setdefault(row_id, {}).update(columns)

    def change_state(self, row_id: str, **keys: Any) -> None:
        """Change keys of its state."""
        self.change(row_id, state={**self.get(row_id)["state"], **keys})

    async def naming(self, key: str, row_ids: Iterable[str]) -> list[Image]:
        """The entities whose state names any of these under a key."""
        wanted = set(row_ids)
        found = await self._found(_naming(key), wanted)
        return [each for each in found if each["state"].get(key) in wanted]

    async def holding(self, item_ids: Iterable[str]) -> list[Image]:
        """The characters that wear or carry any of these items."""
        wanted = set(item_ids)
        found = await self._found(_holding(), wanted)
        return [
            each
            for each in found
            if any(wanted & set(each["state"].get(slot, ())) for slot in SLOTS)
        ]

    async def partners(self, row_id: str) -> list[Image]:
        """The entities that were marked as possible duplicates of one."""
        found = await self._found(_partners(), [row_id])
        return [each for each in found if each["name_collision_partner_id"] == row_id]

    async def _found(self, statement: Any, row_ids: Iterable[str]) -> list[Image]:
        """The rows that a statement finds, and those that were changed here already."""
        rows = await self.action.writing.all(
            statement, branch_id=self.action.branch.id, ids=list(row_ids)
        )
        return list((await self.load([*(row.row_id for row in rows), *self._changes])).values())

    def changed(self) -> list[str]:
        """The ids of the entities that will differ from what is stored."""
        return [
            row_id
            for row_id, changes in self._changes.items()
            if any(not same(self._stored[row_id][key], value) for key, value in changes.items())
        ]

    async def write(self) -> list[str]:
        """Write what has changed; the ids of these entities."""
        written = []
        for row_id, changes in self._changes.items():
            stored = self._stored[row_id]
            row = await self.action.update(StoryEntity, stored, changes)
            if row is not stored:
                written.append(row_id)
                self._stored[row_id] = row
        self._changes.clear()
        return written
