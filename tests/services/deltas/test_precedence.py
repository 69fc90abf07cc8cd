"""What people have said since stands when what a machine said is taken back."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import DeltaSource, EntityKind
from db.tables import (
    CharacterRelationship,
    Happening,
    HappeningInvolvement,
    StoryEntity,
    StoryEntry,
    Translation,
)
from services import deltas
from services.errors import Conflict
from tests.factories import entity_values
from tests.services.deltas.desks import PERIODIC, Desk, desk

__all__ = ["desk"]

TIE = CharacterRelationship


async def take_back_facts(desk: Desk, entry: dict[str, Any]) -> None:
    """What an edit of a text does to what was said of it."""
    async with desk.act() as action:
        row = await action.require(StoryEntry, entry["id"])
        await action.update(StoryEntry, row, {"content": "Anew."}, anchor=entry["id"])
        await deltas.invalidate_facts(action, [entry["id"]], entry["position"] - 1)


async def pair(desk: Desk) -> tuple[str, str]:
    rows = [await desk.plant(EntityKind.CHARACTER, name) for name in ("Mira", "Odo")]
    first, second = sorted(each["id"] for each in rows)
    return first, second


async def tie(
    desk: Desk, source: DeltaSource = PERIODIC, *, anchor: str | None = None, **views: str
) -> str:
    first, second = await pair(desk)
    async with desk.act(source) as action:
        made = await action.create(TIE, {"a_id": first, "b_id": second, **views}, anchor=anchor)
        return str(made["id"])


async def views(desk: Desk, tie_id: str) -> tuple[str | None, str | None] | None:
    row = (await desk.state())["character_relationships"].get(tie_id)
    return row and (row["kind"], row["inverse_kind"])


async def owner(desk: Desk, tie_id: str) -> tuple[str, str | None, str]:
    """Source, anchor and action of the change that made a relationship."""
    log = [each for each in await desk.log() if each.target_id == tie_id]
    made = next(each for each in log if each.op == "create")
    return made.source, made.entry_id, made.action_id


async def test_parts_of_a_state_are_restored_whoever_wrote_them_last(desk: Desk) -> None:
    """Rule L15."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira", voice="low", visual={"hair": "red"})
    entry = await desk.turn(2)
    said = {**mira["state"], "voice": "hoarse", "visual": {"hair": "grey"}}
    await desk.edit(
        StoryEntity, mira["id"], PERIODIC, anchor=entry["id"], state=said, status="staged"
    )
    mine = {**said, "voice": "clear", "traits": ["dry"]}
    await desk.edit(StoryEntity, mira["id"], state=mine, status="retired")
    await take_back_facts(desk, entry)
    row = (await desk.state())["entities"][mira["id"]]
    # The column is the person's; of the state, what the machine had changed is what it was.
    assert row["status"] == "retired"
    assert row["state"] == {**mira["state"], "traits": ["dry"]}


async def test_undo_of_a_protected_edit_brings_back_what_it_overwrote(desk: Desk) -> None:
    """Rule L15."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    entry = await desk.turn(2)
    await desk.edit(StoryEntity, mira["id"], PERIODIC, anchor=entry["id"], name="Mira of the pier")
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    await take_back_facts(desk, entry)
    sources = [(each.source, each.op) for each in await desk.log()]
    assert sources == [("user_edit", "create"), ("user_edit", "update"), ("user_edit", "update")]
    assert (await desk.state())["entities"][mira["id"]]["name"] == "Mira Voss"
    await desk.undo()  # the edit of the text
    await desk.undo()
    assert (await desk.state())["entities"][mira["id"]]["name"] == "Mira of the pier"


async def test_a_rollback_over_both_goes_back_before_both(desk: Desk) -> None:
    """Rules L13, L15."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    opening = next(iter((await desk.state())["story_entries"]))
    entry = await desk.turn(2)
    before = (await desk.state())["entities"]
    await desk.edit(StoryEntity, mira["id"], PERIODIC, anchor=entry["id"], name="Mira of the pier")
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    await desk.back_to(opening)
    assert (await desk.state())["entities"] == before


async def test_what_a_machine_made_goes_with_all_that_was_done_to_it(desk: Desk) -> None:
    """Rule L14."""
    entry = await desk.turn(2)
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    made = await desk.fact(entry["id"], "A fact", mira["id"])
    await desk.edit(Happening, made["id"], title="In my words")
    async with desk.act() as action:
        ends = {"happening_id": made["id"], "entity_id": mira["id"]}
        await action.create(HappeningInvolvement, {**ends, "role": "actor"})
    await take_back_facts(desk, entry)
    state = await desk.state()
    for table in ("happenings", "happening_awareness", "happening_involvements"):
        assert state[table] == {}
    assert {each.target_table for each in await desk.log()} == {"story_entries"}


async def test_the_view_that_a_person_has_given_stays_and_is_the_persons(desk: Desk) -> None:
    """Rule L16."""
    entry = await desk.turn(2)
    tie_id = await tie(desk, anchor=entry["id"], kind="rival", inverse_kind="debtor")
    await desk.edit(TIE, tie_id, inverse_kind="friend")
    first = (await desk.log())[-1].action_id
    await desk.edit(TIE, tie_id, inverse_kind="brother")
    await take_back_facts(desk, entry)
    assert await views(desk, tie_id) == (None, "brother")
    assert await owner(desk, tie_id) == ("user_edit", None, first)
    # The edit of the text, the newer word, and the older one, which owns the row now.
    await desk.undo()
    assert await views(desk, tie_id) == (None, "brother")
    await desk.undo()
    assert await views(desk, tie_id) == (None, "friend")
    await desk.undo()
    assert await views(desk, tie_id) is None
    for expected in ((None, "friend"), (None, "brother")):
        await desk.redo()
        assert await views(desk, tie_id) == expected


async def test_both_views_of_a_person_keep_the_whole(desk: Desk) -> None:
    """Rule L16."""
    entry = await desk.turn(2)
    tie_id = await tie(desk, anchor=entry["id"], kind="rival")
    await desk.edit(TIE, tie_id, kind="sister", inverse_kind="brother")
    await take_back_facts(desk, entry)
    assert await views(desk, tie_id) == ("sister", "brother")


async def test_what_only_set_a_view_that_is_gone_leaves_with_it(desk: Desk) -> None:
    """Rule L16."""
    second, third = await desk.turn(2), await desk.turn(3)
    tie_id = await tie(desk, anchor=third["id"], kind="rival")
    await desk.edit(TIE, tie_id, inverse_kind="friend")
    # Another machine's write, of another entry, to the view that the first one had given.
    await desk.edit(TIE, tie_id, PERIODIC, anchor=second["id"], kind="enemy")
    await take_back_facts(desk, third)
    assert await views(desk, tie_id) == (None, "friend")
    left = [(each.source, each.op) for each in await desk.log() if each.target_id == tie_id]
    assert left == [("user_edit", "create"), ("user_edit", "update")]


async def test_a_relationship_goes_with_a_character_whatever_a_person_said_of_it(
    desk: Desk,
) -> None:
    """Rules L14, L16."""
    second = await desk.turn(2)
    third = await desk.turn(3)
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    async with desk.act(PERIODIC) as action:
        odo = await action.create(
            StoryEntity,
            entity_values(EntityKind.CHARACTER, "Odo"),
            prefix="char",
            anchor=third["id"],
        )
        first, other = sorted((mira["id"], odo["id"]))
        made = await action.create(
            TIE, {"a_id": first, "b_id": other, "kind": "rival"}, anchor=second["id"]
        )
    # About the second entry, which is kept, and of a person; still it has no second end.
    await desk.edit(TIE, made["id"], anchor=second["id"], inverse_kind="friend")
    await desk.back_to(second["id"])
    state = await desk.state()
    assert state["character_relationships"] == {}
    assert list(state["entities"]) == [mira["id"]]
    assert {each.target_id for each in await desk.log()} == {second["id"]}


async def test_a_relationship_that_ends_takes_its_translations_along(desk: Desk) -> None:
    """Rules L14, L16."""
    entry = await desk.turn(2)
    tie_id = await tie(desk, DeltaSource.USER_EDIT, kind="rival")
    await desk.edit(TIE, tie_id, PERIODIC, anchor=entry["id"], inverse_kind="friend")
    async with desk.act() as action:
        await action.create(
            Translation,
            {
                "target_kind": "character_relationship",
                "target_id": tie_id,
                "field": "inverse_kind",
                "language": "de",
                "translated_text": "Freund",
            },
            anchor=entry["id"],
        )
    await desk.edit(TIE, tie_id, kind=None)
    await take_back_facts(desk, entry)
    state = await desk.state()
    assert (state["character_relationships"], state["translations"]) == ({}, {})
    assert {each.target_table for each in await desk.log()} == {"story_entries"}


async def test_an_undo_that_would_end_a_relationship_for_good_is_refused(desk: Desk) -> None:
    """Rules L16, L20."""
    opening = next(iter((await desk.state())["story_entries"]))
    tie_id = await tie(desk, DeltaSource.USER_EDIT, kind="rival")
    second = await desk.turn(2)
    await desk.edit(TIE, tie_id, PERIODIC, anchor=second["id"], inverse_kind="friend")
    await desk.edit(TIE, tie_id, PERIODIC, anchor=opening, kind=None)
    before, log = await desk.state(), await desk.log()
    with pytest.raises(Conflict) as refusal:
        await desk.undo()
    assert refusal.value.code == "UNDO_BLOCKED"
    assert (await desk.state(), await desk.log()) == (before, log)
    # A rollback need not be redone.
    await desk.back_to(opening)
    assert (await desk.state())["character_relationships"] == {}
    assert await desk.log() == []
