"""Where items are: one place at most. Quantities: never less than none."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.enums import ItemSlot
from db.tables import StoryEntity
from services import entities
from services.access import require_row
from services.errors import DomainError
from tests.services.entities.worlds import CHARACTER, ITEM, LOCATION, NOBODY, World, world

__all__ = ["world"]

EQUIPPED, INVENTORY = ItemSlot.EQUIPPED, ItemSlot.INVENTORY


async def positions(world: World) -> dict[str, list[str]]:
    """Where each item is, by name: every place and slot that has it."""
    rows = await world.rows()
    found: dict[str, list[str]] = {row["name"]: [] for row in rows.values() if row["kind"] == ITEM}
    for row in rows.values():
        state = row["state"]
        if state.get("at_location_id"):
            found[row["name"]].append(rows[state["at_location_id"]]["name"])
        for slot in ItemSlot:
            for each in state.get(slot.value, ()):
                found[rows[each]["name"]].append(f"{row['name']}.{slot.name}")
    return found


async def test_a_moved_item_leaves_wherever_it_was(world: World) -> None:
    """Rules U5, U27."""
    quay, lamp = await world.add(LOCATION, "Quay"), await world.add(ITEM, "Lamp")
    mira, odo = await world.add(CHARACTER, "Mira"), await world.add(CHARACTER, "Odo")
    for to, expected, logged in (
        ({"location_id": world.full(quay)}, ["Quay"], 1),
        ({"holder_id": mira, "slot": EQUIPPED}, ["Mira.EQUIPPED"], 2),
        ({"holder_id": mira}, ["Mira.INVENTORY"], 1),
        ({"holder_id": mira}, ["Mira.INVENTORY"], 0),
        ({"holder_id": odo, "slot": EQUIPPED}, ["Odo.EQUIPPED"], 2),
        ({"location_id": quay}, ["Quay"], 2),
        ({}, [], 1),
        ({}, [], 0),
    ):
        head = await world.head()
        changed = await world.move(lamp, **to)
        assert await positions(world) == {"Lamp": expected}
        assert len(await world.new_deltas(head)) == logged
        assert changed.entity.row_id == lamp
        assert lamp not in [each.row_id for each in changed.also_changed]


async def test_an_item_that_was_doubled_from_of_old_is_in_one_place_once_moved(
    world: World,
) -> None:
    """Rule U5."""
    quay, lamp = await world.add(LOCATION, "Quay"), await world.add(ITEM, "Lamp")
    await world.update(lamp, {"at_location_id": quay})
    mira = await world.add(CHARACTER, "Mira", equipped_items=[lamp], inventory=[lamp, lamp])
    odo = await world.add(CHARACTER, "Odo", inventory=[lamp])
    assert len((await positions(world))["Lamp"]) == 5
    # One of them is shown: the oldest.
    rows = [
        await require_row(world.writing, world.people.owner, StoryEntity, world.full(each))
        for each in (mira, lamp, odo)
    ]
    asked = entities.holders_of_items(world.writing, world.people.owner, rows[1:2])
    assert await asked == [mira]
    assert entities.holder_among(rows[::-1], lamp) == mira
    # What says nothing of it leaves it as it is.
    await world.update(mira, {"voice": "low"})
    assert len((await positions(world))["Lamp"]) == 5
    await world.move(lamp, holder_id=mira)
    assert await positions(world) == {"Lamp": ["Mira.INVENTORY"]}


async def test_a_state_moves_the_items_that_it_names(world: World) -> None:
    """Rules U5, U6."""
    quay = await world.add(LOCATION, "Quay")
    lamp, ring = await world.add(ITEM, "Lamp", at_location_id=quay), await world.add(ITEM, "Ring")
    odo = await world.add(CHARACTER, "Odo", equipped_items=[ring])
    made = await world.create(CHARACTER, "Mira", {"inventory": [lamp, ring]})
    mira = made.entity.row_id
    assert {each.row_id for each in made.also_changed} == {lamp, odo}
    inventory = {"Lamp": ["Mira.INVENTORY"], "Ring": ["Mira.INVENTORY"]}
    assert await positions(world) == inventory
    # Into the other slot of the same character, of which the patch says nothing.
    await world.update(mira, {"equipped_items": [ring]})
    assert await positions(world) == {"Lamp": ["Mira.INVENTORY"], "Ring": ["Mira.EQUIPPED"]}
    await world.update(mira, {"equipped_items": [lamp], "inventory": [ring]})
    assert await positions(world) == {"Lamp": ["Mira.EQUIPPED"], "Ring": ["Mira.INVENTORY"]}
    # Let go: nowhere in particular.
    await world.update(mira, {"equipped_items": []})
    assert await positions(world) == {"Lamp": [], "Ring": ["Mira.INVENTORY"]}
    changed = await world.update(ring, {"at_location_id": quay})
    assert [each.row_id for each in changed.also_changed] == [mira]
    assert await positions(world) == {"Lamp": [], "Ring": ["Quay"]}
    before = await world.state()
    await world.undo()
    assert await positions(world) == {"Lamp": [], "Ring": ["Mira.INVENTORY"]}
    await world.redo()
    assert await world.state() == before


async def test_an_item_is_named_once(world: World) -> None:
    """Rule U5."""
    lamp, ring = await world.add(ITEM, "Lamp"), await world.add(ITEM, "Ring")
    mira = await world.add(CHARACTER, "Mira")
    for patch, path in (
        ({"inventory": [lamp, ring, lamp]}, "inventory.2"),
        ({"inventory": [ring, lamp], "equipped_items": [lamp]}, "equipped_items.0"),
    ):
        refused = await world.refusal(world.update(mira, patch))
        assert refused == ("ITEM_TWICE", f"input.state.{path}")


async def test_only_items_move_and_only_to_where_they_can(world: World) -> None:
    """Rules U5, U12."""
    quay, lamp = await world.add(LOCATION, "Quay"), await world.add(ITEM, "Lamp")
    mira = await world.add(CHARACTER, "Mira")
    ruin = await world.add(LOCATION, "Ruin", {"status": "retired"})
    for row_id, to, expected in (
        (mira, {"location_id": quay}, ("WRONG_KIND", "input.itemId")),
        (NOBODY, {"location_id": quay}, ("NOT_FOUND", "input.itemId")),
        (lamp, {"location_id": mira}, ("WRONG_KIND", "input.locationId")),
        (lamp, {"location_id": ruin}, ("RETIRED_PLACE", "input.locationId")),
        (lamp, {"holder_id": quay}, ("WRONG_KIND", "input.holderId")),
        (lamp, {"holder_id": NOBODY}, ("NOT_FOUND", "input.holderId")),
        (lamp, {"holder_id": mira, "location_id": quay}, ("ONE_POSITION", "input.locationId")),
    ):
        assert await world.refusal(world.move(row_id, **to)) == expected


async def test_a_retired_place_keeps_who_is_there_and_lets_nobody_in(world: World) -> None:
    """Rule U12."""
    quay = await world.add(LOCATION, "Quay")
    mira = await world.add(CHARACTER, "Mira", current_location_id=quay)
    lamp = await world.add(ITEM, "Lamp", at_location_id=quay)
    odo, ring = await world.add(CHARACTER, "Odo"), await world.add(ITEM, "Ring")
    await world.retire(quay)
    assert (await world.state_of(mira))["current_location_id"] == quay
    await world.update(mira, {"current_location_id": quay, "voice": "low"})
    await world.update(lamp, {"at_location_id": quay, "condition": "broken"})
    await world.move(lamp, location_id=quay)
    for row_id, key in ((odo, "current_location_id"), (ring, "at_location_id")):
        refused = await world.refusal(world.update(row_id, {key: quay}))
        assert refused == ("RETIRED_PLACE", f"input.state.{key}")
    refused = await world.refusal(world.create(CHARACTER, "X", {"current_location_id": quay}))
    assert refused == ("RETIRED_PLACE", "input.state.current_location_id")


async def test_quantities_are_kept_in_lower_case_and_nothing_of_none(world: World) -> None:
    """Rule U7."""
    made = await world.create(CHARACTER, "Mira", {"stackables": {" Gold ": 5, "Arrows": 0}})
    assert made.entity.state["stackables"] == {"gold": 5}
    mira = made.entity.row_id
    await world.update(mira, {"stackables": {"ARROWS": 3, "gold": 7}})
    assert (await world.state_of(mira))["stackables"] == {"gold": 7, "arrows": 3}
    await world.update(mira, {"stackables": {"Gold": 0, "arrows": None}})
    assert (await world.state_of(mira))["stackables"] == {}
    refused = await world.refusal(world.update(mira, {"stackables": {"gold": 1, "Gold": 2}}))
    assert refused == ("KEY_TWICE", "input.state.stackables.Gold")


async def test_a_quantity_goes_from_one_to_the_other_in_one_action(world: World) -> None:
    """Rules U7, U27."""
    mira = await world.add(CHARACTER, "Mira", stackables={"gold": 50})
    odo = await world.add(CHARACTER, "Odo")
    giver, receiver, branch = await world.pay("GOLD", 30, mira, odo)
    assert (giver.row_id, receiver.row_id, branch.head) == (mira, odo, 2)
    assert [op for op, _, _ in await world.new_deltas(0)] == ["update", "update"]
    assert [giver.state["stackables"], receiver.state["stackables"]] == [{"gold": 20}, {"gold": 30}]
    giver, receiver, _ = await world.pay("gold", 20, mira, odo)
    assert [giver.state["stackables"], receiver.state["stackables"]] == [{}, {"gold": 50}]
    giver, receiver, _ = await world.pay("arrows", 2, None, mira)
    assert (giver, receiver.state["stackables"]) == (None, {"arrows": 2})
    giver, receiver, _ = await world.pay("arrows", 1, mira, None)
    assert (giver.state["stackables"], receiver) == ({"arrows": 1}, None)


async def test_nobody_gives_what_nobody_has(world: World) -> None:
    """Rule U7."""
    mira = await world.add(CHARACTER, "Mira", stackables={"gold": 5})
    odo = await world.add(CHARACTER, "Odo", stackables={"gold": 2**53 - 1})
    quay = await world.add(LOCATION, "Quay")
    for key, amount, giver, receiver, expected in (
        ("gold", 6, mira, odo, ("NOT_ENOUGH", "input.amount")),
        ("silver", 1, mira, odo, ("NOT_ENOUGH", "input.amount")),
        ("gold", 0, mira, odo, ("OUT_OF_RANGE", "input.amount")),
        ("gold", -5, mira, odo, ("OUT_OF_RANGE", "input.amount")),
        ("gold", 1, mira, odo, ("OUT_OF_RANGE", "input.amount")),
        ("gold", 1, None, None, ("NO_CHARACTER", "input")),
        ("gold", 1, mira, mira, ("SAME_ENTITY", "input.receiverId")),
        ("gold", 1, quay, mira, ("WRONG_KIND", "input.giverId")),
        ("gold", 1, mira, quay, ("WRONG_KIND", "input.receiverId")),
        ("gold", 1, mira, NOBODY, ("NOT_FOUND", "input.receiverId")),
        (" ", 1, mira, odo, ("INVALID_SHAPE", "input.key")),
        ("x" * 41, 1, mira, odo, ("INVALID_SHAPE", "input.key")),
    ):
        assert await world.refusal(world.pay(key, amount, giver, receiver)) == expected


ITEMS, HOLDERS, PLACES = range(3), range(3), range(2)
MOVES = st.lists(
    st.one_of(
        st.tuples(
            st.just("hold"),
            st.sampled_from(ITEMS),
            st.sampled_from(HOLDERS),
            st.sampled_from(ItemSlot),
        ),
        st.tuples(st.just("lay"), st.sampled_from(ITEMS), st.sampled_from(PLACES)),
        st.tuples(st.just("drop"), st.sampled_from(ITEMS)),
        st.tuples(
            st.just("slots"),
            st.sampled_from(HOLDERS),
            st.lists(st.sampled_from(ITEMS), max_size=2),
            st.none() | st.lists(st.sampled_from(ITEMS), max_size=2),
        ),
        st.tuples(st.just("at"), st.sampled_from(ITEMS), st.none() | st.sampled_from(PLACES)),
        st.tuples(st.just("merge"), st.sampled_from(ITEMS), st.sampled_from(ITEMS)),
        st.tuples(st.just("join"), st.sampled_from(HOLDERS), st.sampled_from(HOLDERS)),
        st.tuples(st.just("create"), st.lists(st.sampled_from(ITEMS), max_size=2, unique=True)),
        st.tuples(st.just("undo")),
    ),
    max_size=12,
)


async def make_move(world: World, ids: dict[str, list[str]], move: tuple[Any, ...]) -> None:
    items, holders, places = ids["items"], ids["holders"], ids["places"]
    match move:
        case ("hold", item, holder, slot):
            await world.move(items[item], holder_id=holders[holder], slot=slot)
        case ("lay", item, place):
            await world.move(items[item], location_id=places[place])
        case ("drop", item):
            await world.move(items[item])
        case ("slots", holder, equipped, inventory):
            patch = {"equipped_items": [items[each] for each in equipped]}
            if inventory is not None:
                patch["inventory"] = [items[each] for each in inventory]
            await world.update(holders[holder], patch)
        case ("at", item, place):
            at = None if place is None else places[place]
            await world.update(items[item], {"at_location_id": at})
        case ("merge", kept, lost):
            await world.merge(items[kept], items[lost])
        case ("join", kept, lost):
            await world.merge(holders[kept], holders[lost])
        case ("create", carried):
            await world.create(CHARACTER, "More", {"inventory": [items[each] for each in carried]})
        case _:
            await world.undo()


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(moves=MOVES)
async def test_whatever_is_done_an_item_is_in_one_place_at_most(
    world: World, moves: list[tuple[Any, ...]]
) -> None:
    """Rules U5, U20: and nobody's purse is ever below zero, and every undo leads back."""
    ids = {
        "items": [await world.add(ITEM, f"Item {number} of {id(moves)}") for number in ITEMS],
        "holders": [await world.add(CHARACTER, f"Holder {number}") for number in HOLDERS],
        "places": [await world.add(LOCATION, f"Place {number}") for number in PLACES],
    }
    for move in moves:
        before = await world.state()
        try:
            await make_move(world, ids, move)
        except DomainError as fault:
            # Things that were merged away, and the same item named twice.
            assert fault.code in {"NOT_FOUND", "SAME_ENTITY", "ITEM_TWICE"}  # noqa: PT017
            assert await world.state() == before
        rows = await world.rows()
        counted = Counter(
            each
            for row in rows.values()
            for slot in ItemSlot
            for each in row["state"].get(slot.value, ())
        )
        for item in ids["items"]:
            if item in rows:
                counted[item] += rows[item]["state"]["at_location_id"] is not None
            assert counted[item] <= (1 if item in rows else 0)
