"""A branch to try things on, and what one does to it."""

from __future__ import annotations

from typing import Any

import pytest

from db.engine import Database
from db.enums import DeltaSource, EntityKind
from db.reading import Writing
from db.tables import Branch, Delta, Happening, HappeningAwareness
from services import deltas
from services.access import require_row
from tests.conftest import People
from tests.factories import append_entry, make_branch, plant_entity
from tests.services.deltas.ledgers import rows_of, state_of

PERIODIC = DeltaSource.PERIODIC_CLASSIFIER


class Desk:
    """One branch and what one does to it."""

    def __init__(self, writing: Writing, people: People, branch_id: str) -> None:
        self.writing, self.people, self.branch_id = writing, people, branch_id

    def act(self, source: DeltaSource = DeltaSource.USER_EDIT, branch_id: str | None = None) -> Any:
        return deltas.acting(
            self.writing, self.people.owner, branch_id or self.branch_id, source=source
        )

    async def plant(self, kind: EntityKind, name: str, **state: Any) -> dict[str, Any]:
        """An entity that the branch begins with."""
        return await plant_entity(self.writing, self.branch_id, kind, name, **state)

    async def turn(self, position: int, **meta: Any) -> dict[str, Any]:
        async with self.act() as action:
            return await append_entry(action, position, **meta)

    async def edit(
        self,
        table: Any,
        row_id: str,
        source: DeltaSource = DeltaSource.USER_EDIT,
        *,
        anchor: str | None = None,
        **changes: Any,
    ) -> dict[str, Any]:
        async with self.act(source) as action:
            row = await action.require(table, row_id)
            return await action.update(table, row, changes, anchor=anchor)

    async def fact(
        self, anchor: str, title: str, character_id: str | None = None
    ) -> dict[str, Any]:
        """What the background says about an entry, and who knows it."""
        async with self.act(PERIODIC) as action:
            made = await action.create(Happening, {"title": title}, anchor=anchor)
            if character_id is not None:
                await action.create(
                    HappeningAwareness,
                    {"happening_id": made["id"], "character_id": character_id},
                    anchor=anchor,
                )
            return made

    async def undo(self) -> deltas.Outcome:
        return await deltas.undo_branch(self.writing, self.people.owner, self.branch_id)

    async def redo(self) -> deltas.Outcome:
        return await deltas.redo_branch(self.writing, self.people.owner, self.branch_id)

    async def back_to(self, entry_id: str, **options: Any) -> deltas.Outcome:
        return await deltas.roll_back_branch(
            self.writing, self.people.owner, self.branch_id, entry_id, **options
        )

    async def fork(self, entry_id: str) -> str:
        made = await deltas.fork_branch(
            self.writing, self.people.owner, self.branch_id, entry_id, "Fork"
        )
        return made.branch.id

    async def state(self, branch_id: str | None = None) -> dict[str, dict[str, Any]]:
        found = await state_of(self.writing, branch_id or self.branch_id)
        for rows in found.values():
            for row in rows.values():
                del row["branch_id"]
        return found

    async def titles(self) -> list[str]:
        return sorted(row["title"] for row in (await self.state())["happenings"].values())

    async def log(self, branch_id: str | None = None) -> list[Any]:
        return await rows_of(self.writing, Delta, branch_id or self.branch_id)

    async def branch(self) -> Branch:
        return await require_row(self.writing, self.people.owner, Branch, self.branch_id)


@pytest.fixture
async def desk(database: Database, people: People) -> Any:
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        yield Desk(writing, people, branch.id)
