"""Rows that a deletion holds are treated like those that are there."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntityKind
from db.tables import (
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    StoryEntity,
    StoryEntry,
    Translation,
)
from services import deltas
from services.deltas.closing import close, held_rows
from services.deltas.reversing import compute
from services.errors import Conflict
from tests.factories import entity_values
from tests.services.deltas.desks import PERIODIC, Desk, desk

__all__ = ["desk"]


async def rewrite(desk: Desk, entry: dict[str, Any]) -> None:
    """Another text for the last entry, which takes back what was said of the old one."""
    async with desk.act() as action:
        row = await action.require(StoryEntry, entry["id"])
        scope = {"entryIds": [entry["id"]], "processedThrough": entry["position"] - 1}
        await action.update(
            StoryEntry,
            row,
            {"content": f"{row['content']} Anew."},
            anchor=entry["id"],
            notes={deltas.INVALIDATION: scope},
        )
        await deltas.invalidate_facts(action, [entry["id"]], entry["position"] - 1)


async def delete(desk: Desk, table: Any, row_id: str, **options: Any) -> None:
    async with desk.act(**options) as action:
        await action.delete(table, await action.require(table, row_id))


async def make_character(desk: Desk, name: str, **options: Any) -> dict[str, Any]:
    anchor = options.pop("anchor", None)
    async with desk.act(**options) as action:
        values = entity_values(EntityKind.CHARACTER, name)
        return await action.create(StoryEntity, values, prefix="char", anchor=anchor)


async def held(desk: Desk) -> list[str]:
    """The tables of the rows that deletions hold, newest deletion first."""
    deletes = [each for each in await desk.log() if each.op == "delete"]
    return [str(table) for each in reversed(deletes) for table, _ in held_rows(each)]


async def refused(desk: Desk, doing: Any) -> str:
    """The code with which something is refused; nothing has changed."""
    before, log = await desk.state(), await desk.log()
    with pytest.raises(Conflict) as refusal:
        async with desk.writing._connection.transaction():
            await doing
    assert (await desk.state(), await desk.log()) == (before, log)
    return refusal.value.code


async def test_undo_of_a_character_that_the_background_has_tied_since(desk: Desk) -> None:
    """Rules L12, L14."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    entry = await desk.turn(2)
    empty = await desk.state()
    odo = await make_character(desk, "Odo")
    async with desk.act(PERIODIC) as action:
        made = await action.create(Happening, {"title": "They met"}, anchor=entry["id"])
        ends = {"happening_id": made["id"], "character_id": odo["id"]}
        await action.create(HappeningAwareness, ends, anchor=entry["id"])
        first, second = sorted((mira["id"], odo["id"]))
        tie = {"a_id": first, "b_id": second, "kind": "friend"}
        row = await action.create(CharacterRelationship, tie, anchor=entry["id"])
        said = {"target_kind": "character_relationship", "target_id": row["id"], "field": "kind"}
        await action.create(
            Translation, {**said, "language": "de", "translated_text": "Freund"}, anchor=entry["id"]
        )
    full, log = await desk.state(), await desk.log()
    await desk.undo()
    state = await desk.state()
    # The happening names nobody.
    assert await desk.titles() == ["They met"]
    assert {name: rows for name, rows in state.items() if name != "happenings"} == {
        name: rows for name, rows in empty.items() if name != "happenings"
    }
    await desk.redo()
    assert await desk.state() == full
    assert [tuple(each) for each in await desk.log()] == [tuple(each) for each in log]


async def test_what_a_pass_made_goes_with_what_a_person_tied_to_it(desk: Desk) -> None:
    """Rule L14."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    entry = await desk.turn(2)
    before = await desk.state()
    odo = await make_character(desk, "Odo", source=PERIODIC, anchor=entry["id"])
    first, second = sorted((mira["id"], odo["id"]))
    async with desk.act() as action:
        tie = {"a_id": first, "b_id": second, "kind": "friend"}
        await action.create(CharacterRelationship, tie)
    facts = [each for each in await desk.log() if each.source == PERIODIC]
    closed = await close(desk.writing, desk.branch_id, facts)
    reversal = await compute(desk.writing, closed)
    changed = {(str(table), after) for (table, _), _, after in reversal.changed()}
    assert changed == {("entities", None), ("character_relationships", None)}
    # As a text that is taken back with its turn does.
    await desk.back_to(next(iter(before["story_entries"])))
    assert list((await desk.state())["entities"]) == [mira["id"]]
    assert await desk.log() == []


async def test_a_fact_about_a_deleted_row_is_taken_back_where_the_row_lies(desk: Desk) -> None:
    """Rules L15, L17."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira", voice="low")
    entry = await desk.turn(2)
    said = {**mira["state"], "voice": "hoarse", "stackables": {"gold": 1}}
    await desk.edit(
        StoryEntity, mira["id"], PERIODIC, anchor=entry["id"], state=said, status="staged"
    )
    await desk.edit(StoryEntity, mira["id"], status="retired", tags=["mine"])
    await delete(desk, StoryEntity, mira["id"])
    await rewrite(desk, entry)
    (payload,) = [each.undo_payload for each in await desk.log() if each.op == "delete"]
    assert payload["state"] == mira["state"]
    assert (payload["status"], payload["tags"]) == ("retired", ["mine"])
    await desk.undo()
    await desk.undo()
    row = (await desk.state())["entities"][mira["id"]]
    assert (row["state"], row["status"], row["tags"]) == (mira["state"], "retired", ["mine"])
    await desk.undo()
    row = (await desk.state())["entities"][mira["id"]]
    # What the person's edit overwrote was the machine's word.
    assert (row["state"], row["status"], row["tags"]) == (mira["state"], "staged", [])


async def test_a_text_reworded_after_two_deletions_and_three_undos(desk: Desk) -> None:
    """Rules L14, L17, L18."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    odo = await desk.plant(EntityKind.CHARACTER, "Odo")
    (old,) = await deltas.plant_rows(desk.writing, desk.branch_id, Happening, [{"title": "Old"}])
    entry = await desk.turn(2)
    before = await desk.state()
    async with desk.act(PERIODIC) as action:
        new = await action.create(Happening, {"title": "New"}, anchor=entry["id"])
        for happening in (old, new):
            for character in (mira, odo):
                ends = {"happening_id": happening["id"], "character_id": character["id"]}
                await action.create(HappeningAwareness, ends, anchor=entry["id"])
    await delete(desk, StoryEntity, mira["id"])
    await delete(desk, Happening, old["id"])
    assert await held(desk) == [
        "happenings",
        "happening_awareness",
        "entities",
        "happening_awareness",
        "happening_awareness",
    ]
    await rewrite(desk, entry)
    assert await desk.titles() == []
    assert await held(desk) == ["happenings", "entities"]
    for _ in range(3):
        await desk.undo()
    assert await desk.state() == before
    # And again all three.
    for _ in range(3):
        await desk.redo()
    assert await held(desk) == ["happenings", "entities"]
    assert await desk.titles() == []


async def test_a_deletion_of_what_is_taken_back_leaves_with_it(desk: Desk) -> None:
    """Rule L17."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    entry = await desk.turn(2)
    made = await desk.fact(entry["id"], "A fact", mira["id"])
    await delete(desk, Happening, made["id"])
    await rewrite(desk, entry)
    assert [each.op for each in await desk.log()] == ["create", "update"]
    await desk.undo()
    await desk.undo()
    assert (await desk.state())["happenings"] == {}


async def test_a_held_relationship_loses_what_only_a_machine_said(desk: Desk) -> None:
    """Rules L16, L17."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    odo = await desk.plant(EntityKind.CHARACTER, "Odo")
    ines = await desk.plant(EntityKind.CHARACTER, "Ines")
    entry = await desk.turn(2)
    ties = []
    for other in (odo, ines):
        first, second = sorted((mira["id"], other["id"]))
        async with desk.act(PERIODIC) as action:
            values = {"a_id": first, "b_id": second, "kind": "rival"}
            ties.append(await action.create(CharacterRelationship, values, anchor=entry["id"]))
    await desk.edit(CharacterRelationship, ties[0]["id"], inverse_kind="friend")
    owner = (await desk.log())[-1].action_id
    await delete(desk, StoryEntity, mira["id"])
    await rewrite(desk, entry)
    await desk.undo()
    await desk.undo()
    rows = (await desk.state())["character_relationships"]
    assert {row_id: (row["kind"], row["inverse_kind"]) for row_id, row in rows.items()} == {
        ties[0]["id"]: (None, "friend")
    }
    made = [each for each in await desk.log() if each.target_id == ties[0]["id"]]
    assert [(each.op, each.source, each.action_id) for each in made] == [
        ("create", "user_edit", owner),
        ("update", "user_edit", owner),
    ]


async def test_a_held_relationship_without_any_view_is_held_no_more(desk: Desk) -> None:
    """Rules L16, L17."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    odo = await desk.plant(EntityKind.CHARACTER, "Odo")
    entry = await desk.turn(2)
    first, second = sorted((mira["id"], odo["id"]))
    async with desk.act() as action:
        values = {"a_id": first, "b_id": second, "kind": "rival"}
        tie = await action.create(CharacterRelationship, values)
    await desk.edit(
        CharacterRelationship, tie["id"], PERIODIC, anchor=entry["id"], inverse_kind="friend"
    )
    await desk.edit(CharacterRelationship, tie["id"], kind=None)
    await delete(desk, StoryEntity, mira["id"])
    await rewrite(desk, entry)
    assert await held(desk) == ["entities"]
    assert tie["id"] not in {each.target_id for each in await desk.log()}
    await desk.undo()
    await desk.undo()
    state = await desk.state()
    assert set(state["entities"]) == {mira["id"], odo["id"]}
    assert state["character_relationships"] == {}


async def test_a_deletion_stands_between_while_its_action_names_the_row_elsewhere(
    desk: Desk,
) -> None:
    """Rule L20."""
    pier = await desk.plant(EntityKind.LOCATION, "Pier")
    entry = await desk.turn(2)
    async with desk.act(PERIODIC) as action:
        house = await action.create(
            StoryEntity,
            entity_values(EntityKind.LOCATION, "House"),
            prefix="loc",
            anchor=entry["id"],
        )
    room = await desk.plant(EntityKind.LOCATION, "Room", parent_location_id=house["id"])
    # A place with what is within: the deletion of the room would bring back a room of nowhere.
    async with desk.act() as action:
        await action.delete(StoryEntity, room)
        await action.delete(StoryEntity, house)
    facts = [each for each in await desk.log() if each.source == PERIODIC]
    closed = await close(desk.writing, desk.branch_id, facts)
    assert await refused(desk, compute(desk.writing, closed)) == "REVERSAL_BLOCKED"
    assert list((await desk.state())["entities"]) == [pier["id"]]
    await desk.undo()
    closed = await close(desk.writing, desk.branch_id, facts)
    reversal = await compute(desk.writing, closed)
    assert [after for _, _, after in reversal.changed()] == [None]


async def test_an_undo_that_would_take_from_a_deletion_what_redo_could_not_put_back_is_refused(
    desk: Desk,
) -> None:
    """Rule L20."""
    (old,) = await deltas.plant_rows(desk.writing, desk.branch_id, Happening, [{"title": "Old"}])
    entry = await desk.turn(2)
    odo = await make_character(desk, "Odo")
    async with desk.act(PERIODIC) as action:
        ends = {"happening_id": old["id"], "entity_id": odo["id"]}
        await action.create(HappeningInvolvement, ends, anchor=entry["id"])
    # The background deletes what holds it, and is never undone by itself.
    await delete(desk, Happening, old["id"], source=PERIODIC)
    assert await refused(desk, desk.undo()) == "UNDO_BLOCKED"
    await desk.back_to(next(iter((await desk.state())["story_entries"])))
    state = await desk.state()
    assert await desk.titles() == ["Old"]
    assert (state["entities"], state["happening_involvements"]) == ({}, {})


async def test_what_cannot_come_back_without_its_other_end_waits_where_that_lies(
    desk: Desk,
) -> None:
    """Rules L14, L17."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    odo = await desk.plant(EntityKind.CHARACTER, "Odo")
    second = await desk.turn(2)
    first, other = sorted((mira["id"], odo["id"]))
    async with desk.act() as action:
        values = {"a_id": first, "b_id": other, "kind": "rival"}
        tie = await action.create(CharacterRelationship, values)
        said = {"target_kind": "character_relationship", "target_id": tie["id"], "field": "kind"}
        await action.create(Translation, {**said, "language": "de", "translated_text": "Rivale"})
    before = await desk.state()
    await desk.turn(3)
    await delete(desk, StoryEntity, mira["id"])
    async with desk.act(PERIODIC) as action:
        await action.delete(
            StoryEntity, await action.require(StoryEntity, odo["id"]), anchor=second["id"]
        )
    fork_id = await desk.fork(second["id"])
    await desk.back_to(second["id"])
    for branch_id in (desk.branch_id, fork_id):
        state = await desk.state(branch_id)
        assert list(state["entities"]) == [mira["id"]]
        assert (state["character_relationships"], state["translations"]) == ({}, {})
        # The deletion of the other end would have taken both along, had they been there.
        (payload,) = [
            each.undo_payload for each in await desk.log(branch_id) if each.op == "delete"
        ]
        assert payload["id"] == odo["id"]
        held_ids = {row["id"] for rows in payload["$children"].values() for row in rows}
        assert held_ids == {tie["id"], *before["translations"]}
    # With the end come the others.
    facts = [each for each in await desk.log() if each.source == PERIODIC]
    reversal = await compute(desk.writing, await close(desk.writing, desk.branch_id, facts))
    back = {(str(table), row_id) for (table, row_id), _, after in reversal.changed() if after}
    assert back == {
        ("entities", odo["id"]),
        ("character_relationships", tie["id"]),
        *(("translations", each) for each in before["translations"]),
    }
