"""A branch with a world in it, and what people do to that world."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from db.engine import Database
from db.enums import EntityKind, EntryKind, LoggedTable
from services import deltas, entities
from services.errors import DomainError
from tests.conftest import People
from tests.factories import make_branch
from tests.services.deltas.desks import Desk

CHARACTER, LOCATION = EntityKind.CHARACTER, EntityKind.LOCATION
ITEM, FACTION = EntityKind.ITEM, EntityKind.FACTION
NOBODY = "char_01900000-0000-7000-8000-000000000000"


class World(Desk):
    """Entities are named by their own ids here."""

    def full(self, row_id: str) -> str:
        return f"{self.branch_id}:{row_id}"

    async def add(self, kind: EntityKind, name: str, columns: Any = None, **state: Any) -> str:
        """An entity that the branch begins with: its id."""
        row = await self.plant(kind, name, **state)
        if columns:
            async with self.act() as action:
                await action.update(deltas.LOGGED[LoggedTable.ENTITIES].table, row, columns)
        return str(row["id"])

    async def create(
        self, kind: EntityKind, name: str = "New", state: Any = None, **columns: Any
    ) -> Any:
        values = {
            "kind": kind,
            "name": name,
            "status": "active",
            "injection_mode": "auto",
            "keywords": [],
            **columns,
        }
        changed, _ = await entities.create_entity(
            self.writing, self.people.owner, self.branch_id, values, state
        )
        return changed

    async def update(self, row_id: str, state: Any = None, **columns: Any) -> Any:
        options = {"clears_collision": columns.pop("clears_collision", False)}
        return await entities.update_entity(
            self.writing, self.people.owner, self.full(row_id), columns, state, **options
        )

    async def retire(self, row_id: str, reason: str | None = None) -> Any:
        return await entities.retire_entity(
            self.writing, self.people.owner, self.full(row_id), reason
        )

    async def delete(self, row_id: str) -> Any:
        return await entities.delete_entity(self.writing, self.people.owner, self.full(row_id))

    async def move(self, row_id: str, **to: Any) -> Any:
        return await entities.move_item(self.writing, self.people.owner, self.full(row_id), **to)

    async def pay(
        self, key: str, amount: int, giver: str | None = None, receiver: str | None = None
    ) -> Any:
        giver_id, receiver_id = (each and self.full(each) for each in (giver, receiver))
        return await entities.transfer_stackables(
            self.writing,
            self.people.owner,
            giver_id=giver_id,
            receiver_id=receiver_id,
            key=key,
            amount=amount,
        )

    async def relate(self, subject: str, other: str, kind: str | None) -> Any:
        row, _ = await entities.set_relationship(
            self.writing, self.people.owner, self.full(subject), other, kind
        )
        return row

    async def merge(self, kept: str, lost: str, **options: Any) -> Any:
        return await entities.merge_entities(
            self.writing, self.people.owner, self.full(kept), lost, **options
        )

    async def go_to(
        self, place: str | None, *present: str, kind: EntryKind = EntryKind.AI_REPLY
    ) -> str:
        """Let the story go on somewhere; the entry's id."""
        position = len((await self.state())["story_entries"]) + 1
        entry = await self.turn(
            position, kind=kind, currentLocationId=place, sceneEntities=list(present)
        )
        return str(entry["id"])

    async def rows(self, table: str = "entities") -> dict[str, Any]:
        return (await self.state())[table]

    async def row(self, row_id: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.rows())[row_id]
        return found

    async def state_of(self, row_id: str) -> dict[str, Any]:
        state: dict[str, Any] = (await self.row(row_id))["state"]
        return state

    async def statuses(self, *row_ids: str) -> list[str]:
        rows = await self.rows()
        return [rows[each]["status"] for each in row_ids]

    async def new_deltas(self, head: int) -> list[tuple[str, str, str | None]]:
        """What was logged behind a head: op, id of the row, anchor. All of it is one action."""
        log = [each for each in await self.log() if each.log_position > head]
        assert len({each.action_id for each in log}) <= 1
        return [(each.op, each.target_id, each.entry_id) for each in log]

    async def head(self) -> int:
        return (await self.branch()).head

    async def refusal(self, change: Awaitable[Any]) -> tuple[str, str]:
        """The code and the path of a refusal, after which everything is as it was."""
        before = await self.state(), await self.log()
        with pytest.raises(DomainError) as caught:
            await change
        assert (await self.state(), await self.log()) == before
        return caught.value.code, ".".join(str(each) for each in caught.value.path)


@pytest.fixture
async def world(database: Database, people: People) -> Any:
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        yield World(writing, people, branch.id)
