"""Heads: who has seen one has seen the branch, and changes nothing else by mistake."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from db.engine import Database
from db.enums import DeltaSource, EntityKind
from db.tables import Branch, BranchEvent, StoryEntity, StoryEntry
from services import deltas
from services.access import require_row
from services.errors import Conflict
from tests.conftest import People
from tests.factories import append_entry, make_branch, plant_entity
from tests.services.deltas.desks import Desk, desk
from tests.services.deltas.ledgers import rows_of

__all__ = ["desk"]


async def test_taking_off_the_end_of_the_log_leads_back_to_the_head_before(desk: Desk) -> None:
    """Rule L2."""
    heads = [0]
    for position in (2, 3, 4):
        await desk.turn(position)
        heads.append((await desk.branch()).head)
    assert heads == [0, 1, 2, 3]
    for head in (2, 1, 0):
        assert (await desk.undo()).branch.head == head
    for head in (1, 2, 3):
        assert (await desk.redo()).branch.head == head


async def test_an_undo_below_something_that_stays_is_seen_by_who_comes_second(desk: Desk) -> None:
    """Rules L2, L7."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    for name in ("Mira Voss", "Mira of the pier"):
        await desk.edit(StoryEntity, mira["id"], name=name)
    await desk.fact(second["id"], "Late")
    seen = (await desk.branch()).head

    async def undo() -> deltas.Outcome:
        return await deltas.undo_branch(
            desk.writing, desk.people.owner, desk.branch_id, expected_head=seen
        )

    # As a button that is pressed twice.
    undone = await undo()
    with pytest.raises(Conflict) as refusal:
        await undo()
    assert refusal.value.details == {"head": undone.branch.head}
    assert undone.branch.head > seen
    assert (await desk.state())["entities"][mira["id"]]["name"] == "Mira Voss"


async def test_facts_taken_back_by_a_new_text_leave_no_head_that_was(desk: Desk) -> None:
    """Rule L2."""
    second = await desk.turn(2)
    await desk.fact(second["id"], "Of the old text")
    async with desk.act() as action:
        row = await action.require(StoryEntry, second["id"])
        await action.update(StoryEntry, row, {"content": "Anew."}, anchor=second["id"])
        await deltas.invalidate_facts(action, [second["id"]], 1)
    # There was a head 2, with the fact and the old text, and a head 1 that is like what is now
    # but for what the edit did.
    assert (await desk.branch()).head == 3
    assert (await desk.undo()).branch.head == 4


async def test_of_many_at_once_nobody_writes_on_what_was_not_seen(
    database: Database, people: People
) -> None:
    """Rules L2, L7."""
    async with database.writing() as writing:
        branch_id = (await make_branch(writing, people.owner)).id
        mira = await plant_entity(writing, branch_id, EntityKind.CHARACTER, "Mira")
        async with deltas.acting(writing, people.owner, branch_id) as action:
            await append_entry(action, 2)

    async def edit(writing: Any, head: int | None, source: DeltaSource, **values: Any) -> None:
        async with deltas.acting(
            writing, people.owner, branch_id, expected_head=head, source=source
        ) as action:
            row = await action.require(StoryEntity, mira["id"])
            await action.update(StoryEntity, row, values)

    async def head_now(reading: Any) -> int:
        return (await require_row(reading, people.owner, Branch, branch_id)).head

    async def client(way: str, head: int, said: str) -> bool:
        """Whether it did something."""
        try:
            async with database.writing() as writing:
                if way == "edit":
                    await edit(writing, head, DeltaSource.USER_EDIT, name=said)
                elif way == "undo":
                    await deltas.undo_branch(writing, people.owner, branch_id, expected_head=head)
                else:
                    await deltas.redo_branch(writing, people.owner, branch_id, expected_head=head)
                return await head_now(writing) != head
        except Conflict:
            return False

    async def background(said: str) -> bool:
        """Somebody who asks nobody what the head is."""
        async with database.writing() as writing:
            await edit(writing, None, DeltaSource.PERIODIC_CLASSIFIER, description=said)
        return True

    draw, done = random.Random(7), 0
    for number in range(12):
        async with database.reading() as reading:
            head = await head_now(reading)
        ways = [draw.choice(("edit", "undo", "redo")) for _ in range(4)]
        clients = [client(way, head, f"{number} {place}") for place, way in enumerate(ways)]
        others = [background(str(number))] if number % 3 == 0 else []
        did = await asyncio.gather(*clients, *others)
        # One of those who have seen this head, or none if somebody else came first.
        assert sum(did) <= 1 + len(others)
        done += sum(did)
        if "edit" in ways and not others:
            assert sum(did) == 1
    async with database.reading() as reading:
        events = await rows_of(reading, BranchEvent, branch_id)
    # The turn, and everything that somebody was told of having done.
    assert len(events) == 1 + done
