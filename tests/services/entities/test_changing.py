"""Entities: made, changed, retired, deleted."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update
from sqlmodel import col

from db.enums import EntityKind
from db.reading import param, statement
from db.tables import Story, StoryEntity
from services import entities
from services.errors import Conflict, NotFound
from services.shapes import EMPTY_STATES
from tests.factories import DEFINITION, make_branch, plant_entity
from tests.services.entities.worlds import (
    CHARACTER,
    FACTION,
    ITEM,
    LOCATION,
    NOBODY,
    World,
    world,
)

__all__ = ["world"]


@pytest.mark.parametrize("kind", EntityKind)
async def test_an_entity_begins_with_the_empty_state_of_its_kind(
    world: World, kind: EntityKind
) -> None:
    """Rules U1, U27."""
    made = await world.create(kind, "It", description="Old.", tags=["x"], priority=7)
    assert made.entity.state == EMPTY_STATES[kind]
    shown = (made.entity.kind, made.entity.name, made.entity.description, made.entity.tags)
    assert shown == (kind, "It", "Old.", ["x"])
    assert made.entity.row_id.startswith(
        {"character": "char_", "location": "loc_", "item": "item_", "faction": "fact_"}[kind]
    )
    assert (made.branch.head, made.also_changed) == (1, [])
    assert await world.new_deltas(0) == [("create", made.entity.row_id, None)]


async def test_a_state_is_given_as_a_patch(world: World) -> None:
    """Rule U1."""
    patch = {"traits": ["brave"], "visual": {"hair": "red"}, "voice": "low"}
    made = await world.create(CHARACTER, "Mira", patch)
    assert made.entity.state == {**EMPTY_STATES[CHARACTER], **patch}
    patch = {"drives": ["gold"], "visual": {"eyes": "grey", "hair": None}, "voice": None}
    changed = await world.update(made.entity.row_id, patch)
    assert changed.entity.state == {
        **EMPTY_STATES[CHARACTER],
        "traits": ["brave"],
        "drives": ["gold"],
        "visual": {"eyes": "grey"},
    }


@pytest.mark.parametrize(
    ("kind", "patch", "path"),
    [
        (CHARACTER, [], ""),
        (CHARACTER, {"condition": "x"}, "condition"),
        (CHARACTER, {"traits": "brave"}, "traits"),
        (CHARACTER, {"traits": ["x"] * 51}, "traits"),
        (CHARACTER, {"traits": None}, "traits"),
        (CHARACTER, {"voice": "x" * 2_001}, "voice"),
        (CHARACTER, {"visual": {"hair": "x" * 501}}, "visual.hair"),
        (CHARACTER, {"visual": {"shoes": "x"}}, "visual.shoes"),
        (CHARACTER, {"inventory": [1]}, "inventory.0"),
        (CHARACTER, {"stackables": {"gold": -1}}, "stackables.gold"),
        (CHARACTER, {"stackables": {"gold": 1.5}}, "stackables.gold"),
        (CHARACTER, {"stackables": {"gold": False}}, "stackables.gold"),
        (CHARACTER, {"stackables": {"gold": 2**53}}, "stackables.gold"),
        (CHARACTER, {"stackables": {" ": 1}}, "stackables. "),
        (CHARACTER, {"stackables": {"x" * 41: 1}}, f"stackables.{'x' * 41}"),
        (LOCATION, {"condition": 1}, "condition"),
        (LOCATION, {"traits": []}, "traits"),
        (FACTION, {"agenda": ["x"] * 51}, "agenda"),
        (ITEM, {"at_location_id": 1}, "at_location_id"),
    ],
)
async def test_a_state_of_another_shape_is_refused(
    world: World, kind: EntityKind, patch: Any, path: str
) -> None:
    """Rule U1."""
    row_id = await world.add(kind, "It")
    where = f"input.state.{path}" if path else "input.state"
    for change in (world.create(kind, "New", patch), world.update(row_id, patch)):
        assert await world.refusal(change) == ("INVALID_SHAPE", where)


async def test_other_entities_are_named_by_either_id_and_kept_by_their_own(world: World) -> None:
    """Rule U2."""
    quay, guild = await world.add(LOCATION, "Quay"), await world.add(FACTION, "Guild")
    lamp, ledger = await world.add(ITEM, "Lamp"), await world.add(ITEM, "Ledger")
    made = await world.create(
        CHARACTER,
        "Mira",
        {
            "current_location_id": world.full(quay),
            "faction_id": guild,
            "inventory": [world.full(lamp), ledger],
        },
    )
    state = made.entity.state
    assert (state["current_location_id"], state["faction_id"]) == (quay, guild)
    assert state["inventory"] == [lamp, ledger]


async def test_what_is_newly_named_must_be_there_and_of_the_right_kind(world: World) -> None:
    """Rule U2."""
    mira, quay = await world.add(CHARACTER, "Mira"), await world.add(LOCATION, "Quay")
    guild, lamp = await world.add(FACTION, "Guild"), await world.add(ITEM, "Lamp")
    other = await make_branch(world.writing, world.people.owner)
    elsewhere = await plant_entity(world.writing, other.id, LOCATION, "Elsewhere")
    foreign = f"{other.id}:{elsewhere['id']}"
    for row_id, patch, code, path in (
        (mira, {"current_location_id": NOBODY}, "NOT_FOUND", "current_location_id"),
        (mira, {"current_location_id": "x"}, "NOT_FOUND", "current_location_id"),
        (mira, {"current_location_id": foreign}, "NOT_FOUND", "current_location_id"),
        (mira, {"current_location_id": elsewhere["id"]}, "NOT_FOUND", "current_location_id"),
        (mira, {"current_location_id": guild}, "WRONG_KIND", "current_location_id"),
        (mira, {"faction_id": quay}, "WRONG_KIND", "faction_id"),
        (mira, {"inventory": [lamp, quay]}, "WRONG_KIND", "inventory.1"),
        (mira, {"equipped_items": [NOBODY]}, "NOT_FOUND", "equipped_items.0"),
        (quay, {"parent_location_id": mira}, "WRONG_KIND", "parent_location_id"),
        (quay, {"parent_location_id": foreign}, "NOT_FOUND", "parent_location_id"),
        (lamp, {"at_location_id": mira}, "WRONG_KIND", "at_location_id"),
    ):
        where = f"input.state.{path}"
        assert await world.refusal(world.update(row_id, patch)) == (code, where)


async def test_a_name_that_leads_nowhere_from_of_old_is_borne_with(world: World) -> None:
    """Rule U2."""
    lamp = await world.add(ITEM, "Lamp")
    mira = await world.add(
        CHARACTER, "Mira", current_location_id=NOBODY, inventory=[NOBODY], faction_id=NOBODY
    )
    patch = {"current_location_id": NOBODY, "inventory": [NOBODY, lamp], "voice": "low"}
    changed = await world.update(mira, patch)
    assert changed.entity.state["inventory"] == [NOBODY, lamp]


async def test_nobody_writes_when_somebody_was_last_seen(world: World) -> None:
    """Rule U3."""
    mira = await world.add(CHARACTER, "Mira")
    for value in (None, {"entryId": "x", "locationId": None, "worldTime": 1}):
        refused = await world.refusal(world.update(mira, {"lastSeenAt": value}))
        assert refused == ("FIELD_READ_ONLY", "input.state.lastSeenAt")


async def test_a_reason_stays_as_long_as_an_entity_is_retired(world: World) -> None:
    """Rule U4."""
    mira = await world.add(CHARACTER, "Mira", {"status": "staged"})
    refused = await world.refusal(world.update(mira, retired_reason="Killed."))
    assert refused == ("NOT_RETIRED", "input.retiredReason")
    refused = await world.refusal(
        world.update(mira, status="active", retired_reason="Killed by Odo.")
    )
    assert refused == ("NOT_RETIRED", "input.retiredReason")
    for changes, expected in (
        ({"status": "active"}, ("active", None)),
        ({"status": "retired"}, ("retired", None)),
        ({"retired_reason": "Killed."}, ("retired", "Killed.")),
        ({"status": "staged"}, ("staged", None)),
        ({"status": "retired", "retired_reason": "Gone."}, ("retired", "Gone.")),
        ({"retired_reason": None}, ("retired", None)),
    ):
        row = (await world.update(mira, **changes)).entity
        assert (row.status, row.retired_reason) == expected
    row = (await world.retire(mira, "Drowned.")).entity
    assert (row.status, row.retired_reason) == ("retired", "Drowned.")


@pytest.mark.parametrize(
    ("columns", "code", "path"),
    [
        ({"name": " "}, "TEXT_EMPTY", "name"),
        ({"name": "x" * 501}, "TEXT_TOO_LONG", "name"),
        ({"description": "x" * 50_001}, "TEXT_TOO_LONG", "description"),
        ({"keywords": ["x", ""]}, "TEXT_EMPTY", "keywords.1"),
        ({"tags": ["x"] * 51}, "LIMIT_REACHED", "tags"),
        ({"priority": 101}, "OUT_OF_RANGE", "priority"),
        ({"priority": -1}, "OUT_OF_RANGE", "priority"),
        ({"status": "retired", "retired_reason": ""}, "TEXT_EMPTY", "retiredReason"),
    ],
)
async def test_values_have_bounds(
    world: World, columns: dict[str, Any], code: str, path: str
) -> None:
    row_id = await world.add(FACTION, "Guild")
    for change in (
        world.create(FACTION, **{"name": "New", **columns}),
        world.update(row_id, **columns),
    ):
        assert await world.refusal(change) == (code, f"input.{path}")


async def test_what_changes_nothing_is_not_logged(world: World) -> None:
    """Rule U27."""
    mira = await world.add(CHARACTER, "Mira")
    await world.update(mira, {"traits": []}, name="Mira", status="active")
    assert await world.head() == 0


async def test_a_change_is_refused_for_another_head_and_for_others(world: World) -> None:
    """Rule U27."""
    mira = await world.add(CHARACTER, "Mira")
    owner, stranger = world.people.owner, world.people.stranger
    with pytest.raises(Conflict) as refusal:
        await entities.update_entity(
            world.writing, owner, world.full(mira), {"name": "X"}, expected_head=3
        )
    assert refusal.value.details == {"head": 0}
    with pytest.raises(NotFound):
        await entities.update_entity(world.writing, stranger, world.full(mira), {"name": "X"})
    assert (await world.row(mira))["name"] == "Mira"


async def test_deleting_clears_what_named_it_in_one_action(world: World) -> None:
    """Rules U15, U27."""
    quay = await world.add(LOCATION, "Quay")
    office = await world.add(LOCATION, "Office", parent_location_id=quay)
    cellar = await world.add(LOCATION, "Cellar", parent_location_id=office)
    mira = await world.add(CHARACTER, "Mira", current_location_id=office)
    lamp = await world.add(ITEM, "Lamp", at_location_id=office)
    old = await world.go_to(office, mira)
    tail = await world.go_to(office, mira)
    before, head = await world.state(), await world.head()
    deleted_id, changed, branch = await world.delete(office)
    assert deleted_id == world.full(office)
    assert {each.row_id for each in changed} == {cellar, mira, lamp}
    rows = await world.rows()
    assert office not in rows
    assert rows[cellar]["state"]["parent_location_id"] is None
    assert rows[mira]["state"]["current_location_id"] is None
    assert rows[lamp]["state"]["at_location_id"] is None
    entries = await world.rows("story_entries")
    assert entries[tail]["metadata"]["currentLocationId"] is None
    assert entries[old]["metadata"]["currentLocationId"] == office
    logged = await world.new_deltas(head)
    assert [op for op, _, _ in logged] == ["update"] * 4 + ["delete"]
    assert logged[3:] == [("update", tail, tail), ("delete", office, None)]
    assert branch.head == head + 5
    await world.undo()
    assert await world.state() == before


async def test_a_deleted_item_a_deleted_faction_and_a_deleted_holder(world: World) -> None:
    """Rules U6, U15."""
    lamp, ring = await world.add(ITEM, "Lamp"), await world.add(ITEM, "Ring")
    guild = await world.add(FACTION, "Guild")
    mira = await world.add(
        CHARACTER, "Mira", inventory=[lamp, ring], equipped_items=[], faction_id=guild
    )
    odo = await world.add(CHARACTER, "Odo", faction_id=guild)
    await world.relate(mira, odo, "rival")
    tail = await world.go_to(None, mira, lamp)
    before = await world.state()
    await world.delete(lamp)
    await world.delete(guild)
    state = await world.state_of(mira)
    assert (state["inventory"], state["faction_id"]) == ([ring], None)
    assert (await world.state_of(odo))["faction_id"] is None
    await world.delete(mira)
    assert await world.state_of(ring) == {"at_location_id": None}
    assert await world.rows("character_relationships") == {}
    entry = (await world.rows("story_entries"))[tail]
    assert entry["metadata"]["sceneEntities"] == []
    for _ in range(3):
        await world.undo()
    assert await world.state() == before


@statement(Story)
def _set_definition() -> Any:
    definition = col(Story.definition_json)
    return update(Story).values({definition: param("definition", definition.type)})


async def test_the_lead_of_a_story_stays(world: World) -> None:
    """Rules U15, U22."""
    mira, odo = await world.add(CHARACTER, "Mira"), await world.add(CHARACTER, "Odo")
    await world.writing.run(_set_definition(), definition={**DEFINITION, "leadEntityId": mira})
    assert await world.refusal(world.delete(mira)) == ("LEAD_STAYS", "input.entityId")
    assert await world.refusal(world.merge(odo, mira)) == ("LEAD_STAYS", "input.lostId")
    await world.merge(mira, odo)
    assert list(await world.rows()) == [mira]


async def test_creating_tells_of_namesakes_and_marks_nobody(world: World) -> None:
    """Rule U16."""
    older = await world.add(CHARACTER, "Mira Voss")
    exact = await world.add(CHARACTER, "MÍRA")
    known = await world.add(CHARACTER, "The Lamplighter", {"keywords": ["mira"]})
    await world.add(CHARACTER, "Miranda")
    await world.add(FACTION, "Mira")
    values = {"kind": CHARACTER, "name": "Mira", "status": "active", "injection_mode": "auto"}
    changed, namesakes = await entities.create_entity(
        world.writing, world.people.owner, world.branch_id, {**values, "keywords": []}
    )
    assert [each.row_id for each in namesakes] == [exact, older, known]
    assert not changed.entity.name_collision_flag


async def flag(world: World, row_id: str, partner: str, reason: str = "ambiguous") -> None:
    """Mark an entity as a machine does."""
    await world.edit(
        StoryEntity,
        row_id,
        name_collision_flag=True,
        name_collision_partner_id=partner,
        name_collision_reason=reason,
    )


async def flags(world: World) -> dict[str, Any]:
    return {
        row_id: row["name_collision_partner_id"]
        for row_id, row in (await world.rows()).items()
        if row["name_collision_flag"]
    }


async def test_clearing_a_mark_clears_that_of_the_pair_and_no_other(world: World) -> None:
    """Rule U17."""
    one, two, three, four = [await world.add(CHARACTER, name) for name in "ABCD"]
    await flag(world, one, two)
    await flag(world, two, one)
    await flag(world, three, two)
    await flag(world, four, NOBODY)
    await world.update(one, clears_collision=True)
    assert await flags(world) == {three: two, four: NOBODY}
    await world.edit(StoryEntity, two, name_collision_flag=True, name_collision_partner_id=four)
    await world.update(three, clears_collision=True)
    # The pair of two is another one, which is there: that mark stays.
    assert await flags(world) == {two: four, four: NOBODY}
    await world.update(two, clears_collision=True)
    # The pair of four is gone.
    assert await flags(world) == {}
    row = await world.row(four)
    assert (row["name_collision_flag"], row["name_collision_reason"]) == (False, None)


async def test_places_that_are_parted_are_no_duplicates(world: World) -> None:
    """Rule U18."""
    quay, hill = await world.add(LOCATION, "Quay"), await world.add(LOCATION, "Hill")
    inn, tavern, bar, den = [
        await world.add(LOCATION, name, parent_location_id=quay)
        for name in ("Inn", "Tavern", "Bar", "Den")
    ]
    await flag(world, inn, tavern, "same-parent")
    await flag(world, bar, tavern, "same-parent")
    await flag(world, den, tavern, "alike")
    await world.update(inn, {"parent_location_id": quay, "condition": "burned"})
    assert await flags(world) == {inn: tavern, bar: tavern, den: tavern}
    await world.update(bar, {"parent_location_id": hill})
    assert await flags(world) == {inn: tavern, den: tavern}
    await world.update(tavern, {"parent_location_id": hill})
    assert await flags(world) == {den: tavern}


async def test_a_changed_name_is_still_to_be_embedded(world: World) -> None:
    mira = await world.add(CHARACTER, "Mira", {"embedding_stale": False})
    assert (await world.update(mira, name="Mira Voss")).entity.embedding_stale
