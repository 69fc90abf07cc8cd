"""However much a way back goes over, it takes the same statements: nothing is asked row by row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from db.engine import Database
from db.enums import EntityKind
from db.tables import (
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    StoryEntity,
    StoryEntry,
)
from services import deltas, past
from services.past import AsOf
from tests.conftest import People
from tests.factories import append_entry, entity_values, make_branch, plant_entity
from tests.services.deltas.desks import PERIODIC

Way = Callable[[Any, Any, str, str], Awaitable[Any]]


async def tell(writing: Any, people: People, size: int) -> tuple[str, str]:
    """A branch in which everything happens so many times: the branch and its first turn."""
    owner = people.owner
    branch_id = (await make_branch(writing, owner)).id
    mira = await plant_entity(writing, branch_id, EntityKind.CHARACTER, "Mira")
    async with deltas.acting(writing, owner, branch_id) as action:
        first = await append_entry(action, 2)
    async with deltas.acting(writing, owner, branch_id, source=PERIODIC) as action:
        made = [
            await action.create(Happening, {"title": f"{number}"}, anchor=first["id"])
            for number in range(size)
        ]
    async with deltas.acting(writing, owner, branch_id) as action:
        # One action, so that undo goes over all of it.
        for number in range(size):
            await append_entry(action, 3 + number)
            odo = await action.create(
                StoryEntity, entity_values(EntityKind.CHARACTER, f"{number}"), prefix="char"
            )
            one, other = sorted((mira["id"], odo["id"]))
            tie = {"a_id": one, "b_id": other, "kind": "friend"}
            await action.create(CharacterRelationship, tie)
            ends = {"happening_id": made[number]["id"], "character_id": odo["id"]}
            await action.create(HappeningAwareness, ends)
            await action.update(Happening, made[number], {"title": f"{number} again"})
    # Facts about what the user deletes: they are taken back where the rows lie.
    async with deltas.acting(writing, owner, branch_id, source=PERIODIC) as action:
        for happening in made:
            row = await action.require(Happening, happening["id"])
            await action.update(Happening, row, {"description": "Told."}, anchor=first["id"])
    return branch_id, first["id"]


async def undo(writing: Any, viewer: Any, branch_id: str, _entry_id: str) -> None:
    await deltas.undo_branch(writing, viewer, branch_id)


async def redo(writing: Any, viewer: Any, branch_id: str, _entry_id: str) -> None:
    await deltas.redo_branch(writing, viewer, branch_id)


async def roll_back(writing: Any, viewer: Any, branch_id: str, entry_id: str) -> None:
    await deltas.roll_back_branch(writing, viewer, branch_id, entry_id)


async def fork(writing: Any, viewer: Any, branch_id: str, entry_id: str) -> None:
    await deltas.fork_branch(writing, viewer, branch_id, entry_id, "Fork")


async def look_back(writing: Any, viewer: Any, branch_id: str, entry_id: str) -> None:
    moment = await past.resolve_moment(writing, viewer, branch_id, AsOf(entry_id=entry_id))
    for table in deltas.LOGGED:
        await past.images_at(writing, moment, table)


async def reword(writing: Any, viewer: Any, branch_id: str, entry_id: str) -> None:
    """Everything that the background said goes, also of rows that are deleted."""
    async with deltas.acting(writing, viewer, branch_id) as action:
        row = await action.require(StoryEntry, entry_id)
        await action.update(StoryEntry, row, {"content": "Anew."}, anchor=entry_id)
        await deltas.invalidate_facts(action, [entry_id], 1)


WAYS: dict[str, Way] = {
    "fork": fork,
    "look back": look_back,
    "undo": undo,
    "redo": redo,
    "reword": reword,
    "roll back": roll_back,
}


@pytest.mark.parametrize("deleted", [False, True])
async def test_the_statements_of_a_way_back_do_not_depend_on_how_far_it_goes(
    database: Database, people: People, *, deleted: bool
) -> None:
    """Rule L26."""
    counts: dict[str, list[int]] = {}
    for size in (2, 9):
        async with database.writing() as writing:
            branch_id, first_id = await tell(writing, people, size)
            if deleted:
                async with deltas.acting(writing, people.owner, branch_id) as action:
                    for row in (
                        await deltas.all_images(
                            writing, branch_id, deltas.logged_of(Happening).name
                        )
                    ).values():
                        await action.delete(Happening, row)
            for name, way in WAYS.items():
                sent: list[Any] = []
                with writing._connection.query_logger(sent.append):
                    await way(writing, people.owner, branch_id, first_id)
                counts.setdefault(name, []).append(len(sent))
    assert {name: low for name, (low, high) in counts.items() if low != high} == {}
    assert max(low for low, _ in counts.values()) < 150
