"""Undo, redo, rollback and forks, scenario by scenario."""

from __future__ import annotations

import pytest

from db.enums import EntityKind, EntryKind
from db.tables import (
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    RedoStep,
    StoryEntity,
    StoryEntry,
    Translation,
)
from services import deltas
from services.errors import Conflict
from tests.factories import entity_values
from tests.services.deltas.desks import PERIODIC, Desk, desk
from tests.services.deltas.ledgers import rows_of

__all__ = ["desk"]


async def test_undo_of_an_edit_and_redo_bring_back_every_byte(desk: Desk) -> None:
    """Rules L8, L12."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    await desk.turn(2)
    before = await desk.state()
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss", tags=["lamp"])
    after, log = await desk.state(), await desk.log()
    undone = await desk.undo()
    assert await desk.state() == before
    assert [each.op for each in await desk.log()] == ["create"]
    assert [(each.table, each.op) for each in undone.reversed[0].changes] == [
        ("entities", "update")
    ]
    assert undone.branch.head == 1
    redone = await desk.redo()
    assert await desk.state() == after
    assert [tuple(each) for each in await desk.log()] == [tuple(each) for each in log]
    assert redone.branch.head == 2
    assert await rows_of(desk.writing, RedoStep, desk.branch_id) == []


async def test_undo_of_a_turn_takes_along_what_came_of_it(desk: Desk) -> None:
    """Rules L9, L12."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    before = await desk.state()
    third = await desk.turn(3)
    await desk.fact(third["id"], "Of the third", mira["id"])
    await desk.fact(second["id"], "Of the second, late")
    await desk.undo()
    state = await desk.state()
    assert await desk.titles() == ["Of the second, late"]
    assert state["story_entries"] == before["story_entries"]
    assert state["happening_awareness"] == {}
    await desk.redo()
    # The background reads the turn again: its facts are not brought back.
    assert await desk.titles() == ["Of the second, late"]
    assert len((await desk.state())["story_entries"]) == 3


async def test_the_background_is_never_undone_by_itself(desk: Desk) -> None:
    """Rules L10, L11."""
    second = await desk.turn(2)
    await desk.fact(second["id"], "A fact")
    outcome = await desk.undo()
    assert {each.source for each in outcome.reversed} == {"user_edit", "periodic_classifier"}
    assert await desk.titles() == []
    assert (await desk.undo()).reversed == []
    assert (await desk.branch()).head == 0


async def test_rollback_spares_what_is_about_kept_entries(desk: Desk) -> None:
    """Rule L13."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second, third = await desk.turn(2), await desk.turn(3)
    await desk.turn(4)
    meta = {**second["metadata"], "worldTime": 60}
    await desk.edit(StoryEntry, second["id"], anchor=second["id"], metadata=meta)
    await desk.fact(second["id"], "Of the second")
    await desk.fact(third["id"], "Of the third")
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    tried = await desk.back_to(second["id"], is_dry_run=True)
    assert len((await desk.state())["story_entries"]) == 4
    done = await desk.back_to(second["id"])
    assert done.reversed == tried.reversed
    assert [each.code for each in done.warnings] == ["WORLD_EDITS_LOST"]
    state = await desk.state()
    assert sorted(each["position"] for each in state["story_entries"].values()) == [1, 2]
    assert state["story_entries"][second["id"]]["metadata"]["worldTime"] == 60
    assert await desk.titles() == ["Of the second"]
    assert state["entities"][mira["id"]]["name"] == "Mira"
    assert (await desk.redo()).branch.head == done.branch.head


async def test_a_fact_of_a_kept_entry_goes_with_a_row_that_it_names(desk: Desk) -> None:
    """Rule L14."""
    second = await desk.turn(2)
    third = await desk.turn(3)
    async with desk.act(PERIODIC) as action:
        odo = await action.create(
            StoryEntity,
            entity_values(EntityKind.CHARACTER, "Odo"),
            prefix="char",
            anchor=third["id"],
        )
        known = await action.create(Happening, {"title": "Old news"}, anchor=second["id"])
        await action.create(
            HappeningAwareness,
            {"happening_id": known["id"], "character_id": odo["id"]},
            anchor=second["id"],
        )
    fork_id = await desk.fork(second["id"])
    await desk.back_to(second["id"])
    state = await desk.state()
    assert await desk.titles() == ["Old news"]
    assert state["happening_awareness"] == {}
    assert state["entities"] == {}
    assert await desk.state(fork_id) == state


async def test_a_fork_at_an_entry_is_the_parent_rolled_back_to_it(desk: Desk) -> None:
    """Rule L21."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    third = await desk.turn(3)
    await desk.fact(second["id"], "Late")
    await desk.fact(third["id"], "Third")
    await desk.edit(StoryEntity, mira["id"], description="Lights lamps.")
    fork_id = await desk.fork(second["id"])
    whole_id = await desk.fork(third["id"])
    assert await desk.state(whole_id) == await desk.state()
    await desk.back_to(second["id"])
    assert await desk.state(fork_id) == await desk.state()
    assert [(each.row_id, each.log_position) for each in await desk.log(fork_id)] == [
        (each.row_id, each.log_position) for each in await desk.log()
    ]


async def test_a_persons_later_word_stands_when_a_fact_goes(desk: Desk) -> None:
    """Rules L15, L18."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    second = await desk.turn(2)
    await desk.edit(
        StoryEntity, mira["id"], PERIODIC, anchor=second["id"], status="staged", tags=["a"]
    )
    await desk.edit(StoryEntity, mira["id"], tags=["b"])
    async with desk.act() as action:
        row = await action.require(StoryEntry, second["id"])
        await action.update(
            StoryEntry,
            row,
            {"content": "Anew."},
            anchor=second["id"],
            notes={deltas.INVALIDATION: {"entryIds": [second["id"]], "processedThrough": 1}},
        )
        await deltas.invalidate_facts(action, [second["id"]], 1)
    row = (await desk.state())["entities"][mira["id"]]
    assert (row["status"], row["tags"]) == ("active", ["b"])
    # The edit of the text is undone by itself; the tags are the person's until that is undone.
    await desk.undo()
    state = await desk.state()
    assert state["story_entries"][second["id"]]["content"] == "It goes on."
    assert state["entities"][mira["id"]]["tags"] == ["b"]
    await desk.undo()
    assert (await desk.state())["entities"][mira["id"]]["tags"] == ["a"]


async def test_a_relationship_keeps_what_a_person_said(desk: Desk) -> None:
    """Rule L16."""
    first, second = sorted(
        [(await desk.plant(EntityKind.CHARACTER, name))["id"] for name in ("A", "B")]
    )
    entry = await desk.turn(2)
    async with desk.act(PERIODIC) as action:
        tie = await action.create(
            CharacterRelationship,
            {"a_id": first, "b_id": second, "kind": "rival"},
            anchor=entry["id"],
        )
    await desk.edit(CharacterRelationship, tie["id"], inverse_kind="friend")
    async with desk.act() as action:
        await deltas.invalidate_facts(action, [entry["id"]], 1)
    row = (await desk.state())["character_relationships"][tie["id"]]
    assert (row["kind"], row["inverse_kind"]) == (None, "friend")
    made = next(
        each for each in await desk.log() if each.op == "create" and each.target_id == tie["id"]
    )
    edited = next(each for each in await desk.log() if each.op == "update")
    assert (made.source, made.entry_id, made.action_id) == ("user_edit", None, edited.action_id)
    await desk.undo()
    assert (await desk.state())["character_relationships"] == {}


async def test_what_a_deletion_holds_loses_what_is_taken_back(desk: Desk) -> None:
    """Rule L17."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    entry = await desk.turn(2)
    made = await desk.fact(entry["id"], "Known", mira["id"])
    async with desk.act() as action:
        await action.delete(StoryEntity, await action.require(StoryEntity, mira["id"]))
    async with desk.act() as action:
        await deltas.invalidate_facts(action, [entry["id"]], 1)
    assert made["id"] not in (await desk.state())["happenings"]
    await desk.undo()
    state = await desk.state()
    assert list(state["entities"]) == [mira["id"]]
    assert state["happening_awareness"] == {}


async def test_translations_go_with_what_they_translate(desk: Desk) -> None:
    """Rule L19."""
    second = await desk.turn(2)
    third = await desk.turn(3)
    made = await desk.fact(second["id"], "Old")
    await desk.edit(Happening, made["id"], title="New words")
    async with desk.act() as action:
        anchor = await deltas.newest_anchor(action, made["id"])
        assert anchor is None
        await action.create(
            Translation,
            {
                "target_kind": "happening",
                "target_id": made["id"],
                "field": "title",
                "language": "de",
                "translated_text": "Neu",
            },
            anchor=anchor,
        )
    assert third["position"] == 3
    await desk.back_to(second["id"])
    state = await desk.state()
    assert await desk.titles() == ["Old"]
    assert state["translations"] == {}


async def test_positions_are_never_given_twice(desk: Desk) -> None:
    """Rules L2, L7."""
    await desk.turn(2)
    await desk.undo()
    assert (await desk.branch()).head == 0
    await desk.turn(2)
    assert [each.log_position for each in await desk.log()] == [2]
    with pytest.raises(Conflict) as refusal:
        await deltas.undo_branch(desk.writing, desk.people.owner, desk.branch_id, expected_head=1)
    assert refusal.value.details == {"head": 2}


async def test_an_action_ends_every_redo(desk: Desk) -> None:
    """Rule L12."""
    await desk.turn(2)
    await desk.undo()
    await desk.turn(2, worldTime=5)
    assert (await desk.redo()).branch.head == 2
    rows = (await desk.state())["story_entries"].values()
    replies = [row for row in rows if row["kind"] == EntryKind.AI_REPLY]
    assert [row["metadata"]["worldTime"] for row in replies] == [5]
