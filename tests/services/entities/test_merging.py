"""Two entities become one."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntityKind
from db.tables import HappeningAwareness, HappeningInvolvement, StoryEntity
from services import translations
from tests.services.entities.test_relationships import views
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


async def told_and_done(world: World, kept: str, lost: str) -> Any:
    """What a merge answers: a dry run before it has told the same and written nothing, and undoing
    it leads back.
    """
    before, head = await world.state(), await world.head()
    _, told = await world.merge(kept, lost, is_dry=True)
    assert (await world.state(), await world.head()) == (before, head)
    changed, done = await world.merge(kept, lost)
    assert done == told
    after = await world.state()
    logged = {(op, row_id) for op, row_id, _ in await world.new_deltas(head)}
    # Links that are gone went with the entity; scenes are told by their entries alone.
    updated = {("update", each.id.partition(":")[2]) for each in done if each.op == "update"}
    scenes = {each for each in logged if each[1].startswith("entry_")}
    assert logged - scenes == updated | {("delete", lost)}
    await world.undo()
    assert await world.state() == before
    await world.redo()
    assert await world.state() == after
    return changed


async def test_the_one_that_stays_gets_what_it_has_not(world: World) -> None:
    """Rules U19, U21."""
    quay, hill = await world.add(LOCATION, "Quay"), await world.add(LOCATION, "Hill")
    guild = await world.add(FACTION, "Guild")
    lamp, ring, coat = [await world.add(ITEM, name) for name in ("Lamp", "Ring", "Coat")]
    kept = await world.add(
        CHARACTER,
        "Mira",
        {"status": "staged", "keywords": ["M."], "description": "Short.", "tags": ["a"]},
        traits=["brave"],
        visual={"hair": "red"},
        inventory=[ring],
        current_location_id=quay,
        stackables={"gold": 5},
    )
    lost = await world.add(
        CHARACTER,
        "Mira Voss",
        {"keywords": ["the lamplighter", "m."], "description": "Long.", "tags": ["b"]},
        traits=["timid"],
        drives=["money"],
        voice="low",
        visual={"hair": "brown", "eyes": "grey"},
        inventory=[lamp],
        equipped_items=[coat],
        current_location_id=hill,
        faction_id=guild,
        stackables={"gold": 2, "arrows": 1},
    )
    row = (await told_and_done(world, kept, lost)).entity
    assert lost not in await world.rows()
    shown = (row.row_id, row.name, row.description, row.status, row.tags)
    assert shown == (kept, "Mira", "Short.", "active", ["a"])
    assert row.keywords == ["M.", "Mira Voss", "the lamplighter"]
    assert row.state == {
        "traits": ["brave"],
        "drives": ["money"],
        "voice": "low",
        "visual": {"hair": "red", "eyes": "grey"},
        "inventory": [ring, lamp],
        "equipped_items": [coat],
        "current_location_id": quay,
        "faction_id": guild,
        "lastSeenAt": None,
        "stackables": {"gold": 7, "arrows": 1},
    }


async def test_relationships_of_both_become_those_of_one(world: World) -> None:
    """Rules U20, U21."""
    people = sorted([await world.add(CHARACTER, name) for name in "ABCDE"])
    # The one that stays is the last by the bytes of its id, the one that goes the first: every pair
    # is turned.
    lost, ally, foe, friend, kept = people
    await world.relate(kept, lost, "twin")
    await world.relate(kept, ally, "ally")
    await world.relate(lost, ally, "spy")
    await world.relate(ally, lost, "boss")
    await world.relate(lost, foe, "foe")
    await world.relate(friend, lost, "friend")
    await told_and_done(world, kept, lost)
    assert await views(world) == {
        (kept, ally): "ally",
        (ally, kept): "boss",
        (kept, foe): "foe",
        (friend, kept): "friend",
    }


async def say(world: World, target: str, field: str, language: str, text: str) -> None:
    await translations.set_translation(
        world.writing,
        world.people.owner,
        target_id=world.full(target),
        field=field,
        language=language,
        text=text,
    )


async def test_translations_go_with_the_views_that_they_say(world: World) -> None:
    """Rules U20, U21."""
    lost, other, kept = sorted([await world.add(CHARACTER, name) for name in "ABC"])
    row = await world.relate(lost, other, "rival")
    await world.relate(other, lost, "friend")
    await say(world, row.row_id, "kind", "de", "Rivale")
    await say(world, row.row_id, "inverse_kind", "de", "Freund")
    await say(world, row.row_id, "kind", "fr", "rival")
    await say(world, lost, "name", "de", "A.")
    await told_and_done(world, kept, lost)
    assert await views(world) == {(kept, other): "rival", (other, kept): "friend"}
    said = {
        (each["target_id"], each["field"], each["language"]): each["translated_text"]
        for each in (await world.rows("translations")).values()
    }
    # The other one is the first of the pair now.
    assert said == {
        (row.row_id, "kind", "de"): "Freund",
        (row.row_id, "inverse_kind", "de"): "Rivale",
        (row.row_id, "inverse_kind", "fr"): "rival",
    }


async def test_who_took_part_and_who_knows_are_one_for_each_happening(world: World) -> None:
    """Rules U20, U21."""
    kept, lost = await world.add(CHARACTER, "Mira"), await world.add(CHARACTER, "Mira V.")
    entry = await world.turn(2)
    both, alone, plain = [await world.fact(entry["id"], title) for title in ("B", "A", "P")]
    async with world.act() as action:
        for row_id, happening, role in (
            (kept, both, None),
            (lost, both, "target"),
            (lost, alone, "actor"),
            (kept, plain, "site"),
            (lost, plain, "actor"),
        ):
            tie = {"happening_id": happening["id"], "entity_id": row_id, "role": role}
            await action.create(HappeningInvolvement, tie)
        for row_id, happening, known in (
            (kept, both, {"source": None, "decay_resistance": 0.2, "retrieval_count": 1}),
            (lost, both, {"source": "heard", "decay_resistance": 0.7, "retrieval_count": 2}),
            (lost, alone, {"source": "seen"}),
        ):
            tie = {"happening_id": happening["id"], "character_id": row_id, **known}
            await action.create(HappeningAwareness, {"learned_at_entry_id": entry["id"], **tie})
    await told_and_done(world, kept, lost)
    parts = (await world.rows("happening_involvements")).values()
    assert {(each["happening_id"], each["entity_id"], each["role"]) for each in parts} == {
        (both["id"], kept, "target"),
        (alone["id"], kept, "actor"),
        (plain["id"], kept, "site"),
    }
    known_now = (await world.rows("happening_awareness")).values()
    assert {
        (
            each["happening_id"],
            each["character_id"],
            each["source"],
            each["decay_resistance"],
            each["retrieval_count"],
        )
        for each in known_now
    } == {(both["id"], kept, "heard", 0.7, 3), (alone["id"], kept, "seen", 0.0, 0)}


async def test_what_named_the_one_that_goes_names_the_other(world: World) -> None:
    """Rules U20, U21."""
    kept, lost = await world.add(LOCATION, "Quay"), await world.add(LOCATION, "Quay Street")
    office = await world.add(LOCATION, "Office", parent_location_id=lost)
    mira = await world.add(CHARACTER, "Mira", current_location_id=lost)
    lamp = await world.add(ITEM, "Lamp", at_location_id=lost)
    await world.go_to(lost)
    old = await world.go_to(lost)
    tail = await world.go_to(lost, mira)
    await told_and_done(world, kept, lost)
    rows, entries = await world.rows(), await world.rows("story_entries")
    assert rows[office]["state"]["parent_location_id"] == kept
    assert rows[mira]["state"]["current_location_id"] == kept
    assert rows[lamp]["state"]["at_location_id"] == kept
    assert entries[tail]["metadata"]["currentLocationId"] == kept
    assert entries[old]["metadata"]["currentLocationId"] == lost


async def test_one_of_two_who_are_present_is_present_once(world: World) -> None:
    """Rule U20."""
    kept, lost = await world.add(CHARACTER, "Mira"), await world.add(CHARACTER, "Mira V.")
    tail = await world.go_to(None, lost, kept)
    await told_and_done(world, kept, lost)
    entry = (await world.rows("story_entries"))[tail]
    assert entry["metadata"]["sceneEntities"] == [kept]


async def test_members_of_two_factions_are_those_of_one(world: World) -> None:
    """Rule U20."""
    kept = await world.add(FACTION, "Guild", agenda=["light"])
    lost = await world.add(FACTION, "Wick Guild", agenda=["oil"], standing="rich")
    mira = await world.add(CHARACTER, "Mira", faction_id=lost)
    changed = await told_and_done(world, kept, lost)
    assert changed.entity.state == {"agenda": ["light"], "standing": "rich"}
    assert (await world.state_of(mira))["faction_id"] == kept


@pytest.mark.parametrize(
    ("kept_at", "lost_at", "expected"),
    [
        ("nowhere", "nowhere", "nowhere"),
        ("nowhere", "place", "place"),
        ("nowhere", "held", "held"),
        ("place", "held", "place"),
        ("held", "place", "held"),
        ("held", "held", "held"),
    ],
)
async def test_an_item_of_two_stays_where_it_is(
    world: World, kept_at: str, lost_at: str, expected: str
) -> None:
    """Rules U5, U20."""
    quay = await world.add(LOCATION, "Quay")
    ids = []
    holders = {}
    for at in (kept_at, lost_at):
        item = await world.add(ITEM, "Lamp", at_location_id=quay if at == "place" else None)
        ids.append(item)
        if at == "held":
            holders[item] = await world.add(CHARACTER, "Holder", equipped_items=[item])
    kept, lost = ids
    await told_and_done(world, kept, lost)
    rows = await world.rows()
    lies = rows[kept]["state"]["at_location_id"]
    held = [row["id"] for row in rows.values() if kept in row["state"].get("equipped_items", ())]
    assert lost not in str([row["state"] for row in rows.values()])
    own = holders.get(kept) or holders.get(lost)
    assert (lies, held) == {
        "nowhere": (None, []),
        "place": (quay, []),
        "held": (None, [own]),
    }[expected]


async def test_marks_of_duplicates_are_settled(world: World) -> None:
    """Rule U19."""
    kept, lost, third = [await world.add(CHARACTER, name) for name in "ABC"]
    for flagged, partner in ((kept, lost), (lost, kept), (third, lost)):
        await world.edit(
            StoryEntity,
            flagged,
            name_collision_flag=True,
            name_collision_partner_id=partner,
            name_collision_reason="alike",
        )
    await told_and_done(world, kept, lost)
    rows = await world.rows()
    partners = [rows[each]["name_collision_partner_id"] for each in (kept, third)]
    assert partners == [None, kept]
    assert [rows[each]["name_collision_flag"] for each in (kept, third)] == [False, True]


@pytest.mark.parametrize("kind", EntityKind)
async def test_two_that_are_bare_leave_one_with_two_names(world: World, kind: EntityKind) -> None:
    """Rule U19."""
    kept, lost = await world.add(kind, "One"), await world.add(kind, "Two")
    changed = await told_and_done(world, kept, lost)
    assert (changed.entity.name, changed.entity.keywords) == ("One", ["Two"])
    assert list(await world.rows()) == [kept]


async def test_what_cannot_be_one_is_refused(world: World) -> None:
    """Rule U22."""
    mira, quay = await world.add(CHARACTER, "Mira"), await world.add(LOCATION, "Quay")
    for kept, lost, expected in (
        (mira, mira, ("SAME_ENTITY", "input.lostId")),
        (mira, quay, ("WRONG_KIND", "input.lostId")),
        (mira, NOBODY, ("NOT_FOUND", "input.lostId")),
        (NOBODY, mira, ("NOT_FOUND", "input.keptId")),
    ):
        for is_dry in (False, True):
            assert await world.refusal(world.merge(kept, lost, is_dry=is_dry)) == expected


async def test_places_that_lie_in_each_other_become_one(world: World) -> None:
    """Rules U20, U22."""
    city = await world.add(LOCATION, "City")
    outer = await world.add(LOCATION, "Outer", parent_location_id=city)
    inner = await world.add(LOCATION, "Inner", parent_location_id=outer)
    room = await world.add(LOCATION, "Room", parent_location_id=inner)
    # A room cannot keep what is around it, and a place between.
    assert await world.refusal(world.merge(room, outer)) == ("PARENT_CYCLE", "input.lostId")
    await told_and_done(world, inner, outer)
    assert (await world.state_of(inner))["parent_location_id"] == city
    assert (await world.state_of(room))["parent_location_id"] == inner
    await told_and_done(world, city, room)
    assert (await world.state_of(inner))["parent_location_id"] == city
    await told_and_done(world, city, inner)
    assert (await world.state_of(city))["parent_location_id"] is None


async def test_nothing_and_no_story_comes_into_a_retired_or_disabled_place(world: World) -> None:
    """Rule U22."""
    ruin, quay = await world.add(LOCATION, "Ruin"), await world.add(LOCATION, "Quay")
    dark = await world.add(LOCATION, "Dark")
    deep = await world.add(LOCATION, "Deep", parent_location_id=dark)
    office = await world.add(LOCATION, "Office", parent_location_id=quay)
    await world.retire(ruin)
    await world.update(dark, injection_mode="disabled")
    assert await world.refusal(world.merge(ruin, quay)) == ("RETIRED_PARENT", "input.lostId")
    await world.go_to(office)
    for kept in (dark, deep):
        assert await world.refusal(world.merge(kept, quay)) == ("STORY_INSIDE", "input.lostId")
    await world.go_to(quay)
    await world.update(office, status="retired")
    assert await world.refusal(world.merge(ruin, quay)) == ("STORY_INSIDE", "input.lostId")
    await world.go_to(None)
    await world.merge(ruin, quay)
    assert (await world.state_of(office))["parent_location_id"] == ruin
    await world.merge(deep, ruin)
