"""Every kind of row: made, changed, deleted, each of these undone and redone, to the last byte."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntityKind, LoggedTable
from db.tables import Happening, StoryEntity
from services import deltas
from services.deltas import LOGGED, Action
from tests.factories import append_entry, entity_values
from tests.services.deltas.desks import Desk, desk

__all__ = ["desk"]

MODE = {"injection_mode": "auto"}
# What a row of each table says, besides what it names, and what is then said otherwise: texts,
# numbers, lists, nulls that become values and values that become nulls.
SAID: dict[LoggedTable, tuple[dict[str, Any], dict[str, Any]]] = {
    LoggedTable.STORY_ENTRIES: (
        {},
        {
            "content": "Said otherwise.",
            "metadata": {
                "sceneEntities": ["char_1"],
                "currentLocationId": "loc_1",
                "worldTime": 7,
                "summary": "Short.",
                "tokens": {"prompt": 1, "completion": 2},
            },
        },
    ),
    LoggedTable.ENTITIES: (
        entity_values(EntityKind.CHARACTER, "Ines", visual={"hair": "red"}, voice="low"),
        {
            "name": "Ines Voss",
            "status": "retired",
            "retired_reason": "She left.",
            "keywords": ["the tall one"],
            "state": {
                "visual": {"eyes": "grey"},
                "traits": ["dry"],
                "drives": [],
                "current_location_id": "loc_1",
                "equipped_items": ["item_1"],
                "inventory": [],
                "stackables": {"gold": 3},
                "faction_id": None,
                "lastSeenAt": {"entryId": "entry_1", "locationId": None, "worldTime": 7},
            },
        },
    ),
    LoggedTable.LORE: (
        {"title": "Oil", "body": "Burns.", **MODE},
        {"title": "Oil of fish", "category": "the light", "tags": ["a"], "priority": 99},
    ),
    LoggedTable.THREADS: (
        {"title": "The debt", "status": "active", **MODE},
        {"status": "failed", "icon": "coin", "resolved_at_entry_id": "entry_1"},
    ),
    LoggedTable.HAPPENINGS: (
        {"title": "A fire", "temporal": "long ago"},
        {"temporal": None, "occurred_at_entry_id": "entry_1", "common_knowledge": True},
    ),
    LoggedTable.HAPPENING_INVOLVEMENTS: ({"role": "actor"}, {"role": None}),
    LoggedTable.HAPPENING_AWARENESS: (
        {"source": "overheard"},
        {"source": None, "decay_resistance": 0.1, "retrieval_count": 3},
    ),
    LoggedTable.CHARACTER_RELATIONSHIPS: (
        {"kind": "rival"},
        {"kind": None, "inverse_kind": "friend"},
    ),
    LoggedTable.CHAPTERS: (
        {"sequence_number": 1, "title": "One", "start_entry_id": "e", "end_entry_id": "e"},
        {"title": "First", "summary": "It began.", "keywords": ["fog"], "token_count": 12},
    ),
    LoggedTable.ENTRY_ASSETS: ({"asset_id": "asset_1", "role": "background"}, {"position": 4}),
    LoggedTable.TRANSLATIONS: (
        {"target_kind": "entity", "field": "name", "language": "de", "translated_text": "Mira"},
        {"translated_text": "Mirabella"},
    ),
    LoggedTable.BRANCH_ERA_FLIPS: (
        {"at_worldtime": 5, "era_name": "Old"},
        {"at_worldtime": 10**11, "era_name": "New"},
    ),
}


async def ends(desk: Desk) -> dict[str, str]:
    """What rows of any table may name, by the columns."""
    pair = [await desk.plant(EntityKind.CHARACTER, name) for name in ("Mira", "Odo")]
    first, second = sorted(each["id"] for each in pair)
    opening = next(iter((await desk.state())["story_entries"]))
    (happening,) = await deltas.plant_rows(
        desk.writing, desk.branch_id, Happening, [{"title": "A debt"}]
    )
    return {
        "happening_id": happening["id"],
        "entity_id": first,
        "character_id": second,
        "a_id": first,
        "b_id": second,
        "entry_id": opening,
        "target_id": first,
    }


async def make(desk: Desk, action: Action, name: LoggedTable) -> dict[str, Any]:
    named = await ends(desk)
    if name is LoggedTable.STORY_ENTRIES:
        return await append_entry(action, 2)
    values = {**SAID[name][0], **{column: named[column] for column in LOGGED[name].names}}
    prefix = "char" if name is LoggedTable.ENTITIES else None
    return await action.create(LOGGED[name].table, values, prefix=prefix)


def test_every_table_is_tried() -> None:
    assert list(SAID) == list(LOGGED)


@pytest.mark.parametrize("name", LOGGED)
async def test_whatever_was_done_to_a_row_is_undone_and_redone(
    desk: Desk, name: LoggedTable
) -> None:
    """Rules L3, L8, L12."""
    table, said = LOGGED[name].table, SAID[name][1]
    async with desk.act() as action:
        row = await make(desk, action, name)
    states = [await desk.state()]
    # Before it was made there was what it names.
    states.insert(0, {each: dict(rows) for each, rows in states[0].items()})
    del states[0][str(name)][row["id"]]
    async with desk.act() as action:
        assert await action.update(table, row, {each: row[each] for each in said}) is row
        await action.update(table, row, said)
    states.append(await desk.state())
    async with desk.act() as action:
        await action.delete(table, await action.require(table, row["id"]))
    states.append(await desk.state())
    changed = states[2][str(name)][row["id"]]
    assert {column: changed[column] for column in said} == said
    create, update, delete = await desk.log()
    assert [each.op for each in (create, update, delete)] == ["create", "update", "delete"]
    assert create.undo_payload is None
    assert update.undo_payload.keys() - {"updated_at"} == said.keys()
    assert delete.undo_payload == {**changed, "branch_id": desk.branch_id}
    log = [tuple(each) for each in (create, update, delete)]
    # Twice, so that what an undo brings back is itself deleted, changed and unmade again.
    for _ in range(2):
        for state in reversed(states[:-1]):
            assert (await desk.undo()).reversed
            assert await desk.state() == state
        assert await desk.log() == []
        for state in states[1:]:
            await desk.redo()
            assert await desk.state() == state
        assert [tuple(each) for each in await desk.log()] == log


async def test_two_parts_of_one_state_changed_together_are_undone_together(desk: Desk) -> None:
    """Rules L4, L8."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira", visual={"hair": "red"})
    before = await desk.state()
    async with desk.act() as action:
        row = await action.update(
            StoryEntity, mira, {"state": {**mira["state"], "visual": {"hair": "grey"}}}
        )
        state = {**row["state"], "visual": {"hair": "grey", "eyes": "blue"}, "voice": "low"}
        row = await action.update(StoryEntity, row, {"state": state})
        await action.update(StoryEntity, row, {"state": {**state, "stackables": {"gold": 1}}})
    after = await desk.state()
    payloads = [each.undo_payload["state"] for each in await desk.log()]
    assert payloads == [
        {"visual": {"hair": "red"}},
        {"visual": {"eyes": None}, "voice": None},
        {"stackables": None},
    ]
    await desk.undo()
    assert await desk.state() == before
    await desk.redo()
    assert await desk.state() == after
