"""What a way back takes and what it spares: changes go with the entry that they are about."""

from __future__ import annotations

from typing import Any

from db.enums import DeltaSource, EntityKind, EntryKind
from db.ids import new_id
from db.tables import Happening, HappeningAwareness, Lore, StoryEntity, StoryEntry
from services import deltas
from tests.factories import append_entry
from tests.services.deltas.desks import Desk, desk

__all__ = ["desk"]

PIGGYBACK = DeltaSource.PIGGYBACK_TAGGED_BLOCK


async def positions(desk: Desk, branch_id: str | None = None) -> list[int]:
    entries = (await desk.state(branch_id))["story_entries"].values()
    return sorted(row["position"] for row in entries if row["kind"] != EntryKind.SYSTEM)


async def drop(desk: Desk, entry: dict[str, Any]) -> None:
    async with desk.act() as action:
        row = await action.require(StoryEntry, entry["id"])
        await action.delete(StoryEntry, row, anchor=entry["id"])


async def give_notice(desk: Desk, position: int) -> None:
    meta = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0}
    row = {"position": position, "kind": "system", "content": "It failed.", "metadata": meta}
    await deltas.plant_rows(desk.writing, desk.branch_id, StoryEntry, [row])


async def test_late_facts_stay_with_their_entries_whatever_was_told_meanwhile(desk: Desk) -> None:
    """Rules L9, L13."""
    second, third, fourth = [await desk.turn(position) for position in (2, 3, 4)]
    await desk.fact(second["id"], "Of the second")
    await desk.fact(fourth["id"], "Of the fourth")
    await desk.fact(third["id"], "Of the third")
    await desk.undo()
    assert await desk.titles() == ["Of the second", "Of the third"]
    await desk.turn(4)
    await desk.back_to(third["id"])
    assert await desk.titles() == ["Of the second", "Of the third"]
    await desk.back_to(second["id"])
    assert await desk.titles() == ["Of the second"]
    assert await positions(desk) == [1, 2]


async def test_edits_of_entries_stay_with_them_and_edits_of_the_world_do_not(desk: Desk) -> None:
    """Rule L13."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second, third = await desk.turn(2), await desk.turn(3)
    await desk.edit(StoryEntity, mira["id"], name="Before")
    fourth = await desk.turn(4)
    for entry in (second, third, fourth):
        await desk.edit(StoryEntry, entry["id"], anchor=entry["id"], content="Reworded.")
    await desk.edit(StoryEntity, mira["id"], name="After")
    await desk.back_to(third["id"])
    state = await desk.state()
    texts = {row["position"]: row["content"] for row in state["story_entries"].values()}
    assert texts == {1: "It begins.", 2: "Reworded.", 3: "Reworded."}
    assert state["entities"][mira["id"]]["name"] == "Before"
    # What was spared can still be undone, newest first.
    for text in ("It goes on.", "It goes on."):
        (action,) = (await desk.undo()).reversed
        assert action.changes[0].op == "update"
        assert text in {row["content"] for row in (await desk.state())["story_entries"].values()}


async def test_what_a_turn_does_before_its_reply_is_there_goes_with_the_reply(desk: Desk) -> None:
    """Rules L9, L13."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    (known,) = await deltas.plant_rows(desk.writing, desk.branch_id, Happening, [{"title": "Old"}])
    (aware,) = await deltas.plant_rows(
        desk.writing,
        desk.branch_id,
        HappeningAwareness,
        [{"happening_id": known["id"], "character_id": mira["id"]}],
    )

    async def tell(position: int) -> dict[str, Any]:
        """What the user does and the reply to it, in one action."""
        reply = new_id("story_entries")
        async with desk.act(PIGGYBACK) as action:
            made = await append_entry(action, position, EntryKind.USER_ACTION)
            row = await action.require(HappeningAwareness, aware["id"])
            changes = {"retrieval_count": row["retrieval_count"] + 1}
            await action.update(HappeningAwareness, row, changes, anchor=reply)
            values = {"id": reply, "position": position + 1, "kind": "ai_reply"}
            await action.create(
                StoryEntry,
                {**values, "content": "So.", "metadata": made["metadata"]},
                anchor=reply,
            )
        return made

    async def count() -> int:
        rows = (await desk.state())["happening_awareness"]
        return int(rows[aware["id"]]["retrieval_count"])

    made = await tell(2)
    assert (await count(), await positions(desk)) == (1, [1, 2, 3])
    # The reply alone, as when it is to be written anew.
    await desk.back_to(made["id"])
    assert (await count(), await positions(desk)) == (0, [1, 2])
    await desk.undo()
    assert await positions(desk) == [1]
    # And the whole of it.
    await tell(2)
    await desk.undo()
    assert (await count(), await positions(desk)) == (0, [1])
    await desk.redo()
    assert (await count(), await positions(desk)) == (1, [1, 2, 3])


async def test_an_entry_that_was_deleted_behind_the_kept_one_does_not_come_back(
    desk: Desk,
) -> None:
    """Rules L13, L21."""
    second, third = await desk.turn(2), await desk.turn(3)
    await desk.fact(third["id"], "Of the third")
    await desk.turn(4)
    await drop(desk, third)
    assert await positions(desk) == [1, 2, 4]
    fork_id = await desk.fork(second["id"])
    await desk.back_to(second["id"])
    for branch_id in (desk.branch_id, fork_id):
        assert await positions(desk, branch_id) == [1, 2]
        assert (await desk.state(branch_id))["happenings"] == {}
        assert [each.target_id for each in await desk.log(branch_id)] == [second["id"]]


async def test_what_is_about_a_deleted_entry_that_is_kept_is_kept(desk: Desk) -> None:
    """Rule L13."""
    second, third = await desk.turn(2), await desk.turn(3)
    await desk.turn(4)
    await desk.fact(second["id"], "Of the second")
    await drop(desk, second)
    fork_id = await desk.fork(third["id"])
    await desk.back_to(third["id"])
    assert await positions(desk) == [1, 3]
    assert await desk.titles() == ["Of the second"]
    assert await desk.state(fork_id) == await desk.state()
    await desk.undo()
    assert await positions(desk) == [1, 2, 3]


async def test_undo_of_a_turn_leaves_the_deletion_before_it_alone(desk: Desk) -> None:
    """Rule L9."""
    await desk.turn(2)
    third = await desk.turn(3)
    await drop(desk, third)
    async with desk.act() as action:
        await action.create(Lore, {"title": "Oil", "body": "Burns.", "injection_mode": "auto"})
    await desk.turn(3, worldTime=5)
    await desk.undo()
    state = await desk.state()
    assert await positions(desk) == [1, 2]
    assert [row["title"] for row in state["lore"].values()] == ["Oil"]
    assert [each.op for each in await desk.log()] == ["create", "create", "delete", "create"]


async def test_a_notice_gives_way_to_entries_and_goes_with_the_end_that_it_is_about(
    desk: Desk,
) -> None:
    """Rule L27."""
    second, third = await desk.turn(2), await desk.turn(3)
    await drop(desk, third)
    # It stands where the deleted entry has its place.
    await give_notice(desk, 3)
    await desk.undo()
    state = await desk.state()
    assert await positions(desk) == [1, 2, 3]
    assert len(state["story_entries"]) == 3
    await give_notice(desk, 4)
    for way in (desk.undo, desk.redo, lambda: desk.back_to(second["id"])):
        await way()
        kinds = {row["kind"] for row in (await desk.state())["story_entries"].values()}
        assert "system" not in kinds
        await give_notice(desk, 5)
    # One that stays in its place does not stop an edit from being undone.
    await desk.edit(StoryEntry, second["id"], anchor=second["id"], content="Reworded.")
    await desk.undo()
    assert len((await desk.state())["story_entries"]) == 3
