"""What redo does again, what it leaves to the background, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import DeltaSource, EntityKind, EntryKind
from db.tables import (
    Happening,
    HappeningAwareness,
    RedoStep,
    StoryEntity,
    StoryEntry,
)
from services import deltas
from services.errors import Conflict
from tests.factories import append_entry
from tests.services.deltas.desks import PERIODIC, Desk, desk
from tests.services.deltas.ledgers import rows_of

__all__ = ["desk"]


async def status(desk: Desk, **changes: Any) -> dict[str, Any]:
    """How far the background has read; it is not logged."""
    if changes:
        await desk.writing._connection.execute(
            "UPDATE branches SET classifier_status = classifier_status || $2 WHERE id = $1",
            desk.branch_id,
            changes,
        )
    return dict((await desk.branch()).classifier_status)


async def rewrite(desk: Desk, entry: dict[str, Any], content: str) -> None:
    """Another text for an entry of the head turn."""
    async with desk.act() as action:
        row = await action.require(StoryEntry, entry["id"])
        scope = {"entryIds": [entry["id"]], "processedThrough": entry["position"] - 1}
        notes = {deltas.INVALIDATION: scope}
        await action.update(StoryEntry, row, {"content": content}, anchor=entry["id"], notes=notes)
        await deltas.invalidate_facts(action, scope["entryIds"], scope["processedThrough"])


async def test_a_redone_change_stands_where_it_stood_below_what_came_later(desk: Desk) -> None:
    """Rules L2, L12."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    await desk.fact(second["id"], "Late")
    state, log = await desk.state(), await desk.log()
    undone = await desk.undo()
    # The fact stays where it is, so the branch is what it never was: so is its head.
    assert [each.log_position for each in await desk.log()] == [1, 3]
    assert undone.branch.head == 4
    redone = await desk.redo()
    assert redone.branch.head == 5
    assert await desk.state() == state
    assert [tuple(each) for each in await desk.log()] == [tuple(each) for each in log]
    # Undo reaches the redone change first, and new ones go behind everything.
    (action,) = (await desk.undo()).reversed
    assert action.changes[0].table == "entities"
    await desk.turn(3)
    assert [each.log_position for each in await desk.log()] == [1, 3, 7]


async def test_whatever_is_logged_ends_redo_also_in_the_background(desk: Desk) -> None:
    """Rule L12."""
    second = await desk.turn(2)
    for source in DeltaSource:
        await desk.edit(StoryEntry, second["id"], anchor=second["id"], content=f"For {source}.")
        await desk.undo()
        assert len(await rows_of(desk.writing, RedoStep, desk.branch_id)) == 1
        async with desk.act(source) as action:
            await action.create(Happening, {"title": str(source)}, anchor=second["id"])
        assert await rows_of(desk.writing, RedoStep, desk.branch_id) == []
    before = await desk.state()
    assert (await desk.redo()).branch.head == (await desk.branch()).head
    assert await desk.state() == before


async def test_a_rollback_ends_redo_and_an_attempt_does_not(desk: Desk) -> None:
    """Rule L12."""
    second, third = await desk.turn(2), await desk.turn(3)
    await desk.edit(StoryEntry, third["id"], anchor=third["id"], content="Reworded.")
    await desk.undo()
    await desk.back_to(second["id"], is_dry_run=True)
    # Nothing is done where the entry is the last one.
    await desk.back_to(third["id"])
    assert len(await rows_of(desk.writing, RedoStep, desk.branch_id)) == 1
    await desk.back_to(second["id"])
    assert await rows_of(desk.writing, RedoStep, desk.branch_id) == []


async def test_redo_of_a_turn_leaves_it_to_be_read_again(desk: Desk) -> None:
    """Rules L9, L12."""
    second = await desk.turn(2)
    await desk.turn(3)
    await status(desk, processedThrough=3, state="idle")
    await desk.fact(second["id"], "Of the second")
    await desk.undo()
    assert await status(desk) == {"processedThrough": 2, "state": "idle"}
    await desk.redo()
    assert await status(desk) == {"processedThrough": 2, "state": "idle"}


async def test_what_was_never_read_stays_unread(desk: Desk) -> None:
    """Rule L9."""
    await desk.turn(2)
    await desk.turn(3)
    for _ in range(2):
        await desk.undo()
        assert await status(desk) == {"processedThrough": 0}
    await desk.turn(2)
    await desk.turn(3)
    await status(desk, processedThrough=1)
    opening = next(
        row
        for row in (await desk.state())["story_entries"].values()
        if row["kind"] == EntryKind.OPENING
    )
    await desk.back_to(opening["id"])
    # It is never raised.
    assert await status(desk) == {"processedThrough": 1}


async def test_undo_of_a_new_text_goes_by_what_was_written_down_then(desk: Desk) -> None:
    """Rule L18."""
    second = await desk.turn(2)
    await desk.fact(second["id"], "Of the first text")
    await rewrite(desk, second, "The second text.")
    third = await desk.turn(3)
    await desk.back_to(second["id"])
    await status(desk, processedThrough=2)
    await desk.fact(second["id"], "Of the second text")
    assert third["position"] == 3
    await desk.undo()
    state = await desk.state()
    assert await desk.titles() == []
    assert state["story_entries"][second["id"]]["content"] == "It goes on."
    assert (await status(desk))["processedThrough"] == 1
    # And redo takes nothing more back, but what was read is to be read again.
    await status(desk, processedThrough=2)
    await desk.redo()
    assert (await desk.state())["story_entries"][second["id"]]["content"] == "The second text."
    assert (await status(desk))["processedThrough"] == 1


async def test_undo_of_a_text_further_up_takes_nothing_back_even_where_it_is_last_by_now(
    desk: Desk,
) -> None:
    """Rule L18."""
    second = await desk.turn(2)
    await desk.turn(3)
    await desk.edit(StoryEntry, second["id"], anchor=second["id"], content="Reworded.")
    await desk.back_to(second["id"])
    await desk.fact(second["id"], "Of the second")
    await status(desk, processedThrough=2)
    await desk.undo()
    assert await desk.titles() == ["Of the second"]
    assert (await status(desk))["processedThrough"] == 2
    assert (await desk.state())["story_entries"][second["id"]]["content"] == "It goes on."


async def test_what_was_done_to_a_fact_is_not_redone_when_the_fact_is_gone(desk: Desk) -> None:
    """Rules L12, L20."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    await rewrite(desk, second, "Another text.")
    made = await desk.fact(second["id"], "A fact")
    async with desk.act() as action:
        ends = {"happening_id": made["id"], "character_id": mira["id"]}
        await action.create(HappeningAwareness, ends)
    await desk.undo()
    await desk.undo()
    assert await desk.titles() == []
    await desk.redo()
    before, log = await desk.state(), await desk.log()
    with pytest.raises(Conflict) as refusal:
        async with desk.writing._connection.transaction():
            await desk.redo()
    assert refusal.value.code == "REVERSAL_BLOCKED"
    assert (await desk.state(), await desk.log()) == (before, log)


async def test_a_deletion_that_is_redone_holds_what_is_there_now(desk: Desk) -> None:
    """Rules L12, L17."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    await rewrite(desk, second, "Another text.")
    await desk.fact(second["id"], "A fact", mira["id"])
    await desk.edit(StoryEntity, mira["id"], PERIODIC, anchor=second["id"], name="Mira of the pier")
    async with desk.act() as action:
        row = await action.require(StoryEntity, mira["id"])
        await action.delete(StoryEntity, row)
    await desk.undo()
    await desk.undo()
    await desk.redo()
    await desk.redo()
    (payload,) = [each.undo_payload for each in await desk.log() if each.op == "delete"]
    assert payload["name"] == "Mira"
    assert "$children" not in payload
    await desk.undo()
    state = await desk.state()
    assert [row["name"] for row in state["entities"].values()] == ["Mira"]
    assert state["happening_awareness"] == {}


async def test_what_one_client_undoes_another_can_redo(desk: Desk) -> None:
    """Rule L12."""
    for number in range(3):
        async with desk.act() as action:
            await append_entry(action, number + 2, EntryKind.USER_ACTION, f"Number {number}.")
    after = await desk.state()
    for _ in range(3):
        await desk.undo()
    steps = await rows_of(desk.writing, RedoStep, desk.branch_id)
    assert [each.number for each in steps] == [1, 2, 3]
    other = Desk(desk.writing, desk.people, desk.branch_id)
    for _ in range(3):
        await other.redo()
    assert await desk.state() == after
    assert (await desk.branch()).head == 3
