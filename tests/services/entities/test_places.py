"""Places: what lies within what, what is gone, what is kept out of prompts."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntryKind, InjectionMode
from db.tables import StoryEntity
from services import deltas, entities
from services.entities.chains import MAX_DEPTH, Link, effective_mode
from services.entities.changing import MAX_SHOWN
from tests.factories import entity_values
from tests.services.entities.worlds import CHARACTER, LOCATION, World, world

__all__ = ["world"]


async def nest(world: World, *names: str) -> list[str]:
    """Places, each within the one before."""
    ids: list[str] = []
    for name in names:
        ids.append(await world.add(LOCATION, name, parent_location_id=ids[-1] if ids else None))
    return ids


async def put_in(world: World, row_id: str, parent: str | None) -> Any:
    return await world.update(row_id, {"parent_location_id": parent})


async def test_no_place_lies_within_itself(world: World) -> None:
    """Rule U8."""
    city, quay, office = await nest(world, "City", "Quay", "Office")
    for inner in (city, quay, office):
        refused = await world.refusal(put_in(world, city, inner))
        assert refused == ("PARENT_CYCLE", "input.state.parent_location_id")
    await put_in(world, office, city)
    assert (await world.state_of(office))["parent_location_id"] == city


async def test_a_circle_from_of_old_is_refused_as_a_parent_and_borne_with(world: World) -> None:
    """Rules U8, U26."""
    one, two = await nest(world, "One", "Two")
    row = await world.row(one)
    state = {**row["state"], "parent_location_id": two}
    await world.edit(StoryEntity, one, state=state)
    hut = await world.add(LOCATION, "Hut")
    broken = ("PARENT_CHAIN_BROKEN", "input.state.parent_location_id")
    assert await world.refusal(put_in(world, hut, one)) == broken
    create = world.create(LOCATION, "New", {"parent_location_id": two})
    assert await world.refusal(create) == broken
    chains = await entities.chains_of_places(
        world.writing, world.people.owner, [world.full(one), world.full(two)]
    )
    assert [[link.row_id for link in chain] for chain in chains] == [[one, two], [two, one]]
    await world.retire(one)
    assert await world.statuses(one, two) == ["retired", "retired"]
    # The way out.
    await put_in(world, one, None)
    assert (await world.state_of(one))["parent_location_id"] is None


async def test_places_lie_in_each_other_a_hundred_deep(world: World) -> None:
    """Rules U8, U26."""
    ids = await nest(world, *(f"Place {number}" for number in range(MAX_DEPTH)))
    deep = await world.create(LOCATION, "Deep", {"parent_location_id": ids[-1]})
    create = world.create(LOCATION, "Deeper", {"parent_location_id": deep.entity.row_id})
    assert (await world.refusal(create))[0] == "PARENT_CHAIN_BROKEN"
    (chain,) = await entities.chains_of_places(world.writing, world.people.owner, [deep.entity.id])
    assert [link.row_id for link in chain] == [deep.entity.row_id, *reversed(ids)]
    (hidden,) = await entities.chains_of_places(
        world.writing, world.people.stranger, [deep.entity.id]
    )
    assert hidden == []


async def test_a_retired_place_takes_those_inside_along_for_its_reason(world: World) -> None:
    """Rules U9, U27."""
    city, quay, office, cellar = await nest(world, "City", "Quay", "Office", "Cellar")
    await world.update(cellar, status="retired", retired_reason="Flooded.")
    await world.update(office, status="staged")
    mira = await world.add(CHARACTER, "Mira", current_location_id=office)
    before, head = await world.state(), await world.head()
    changed = await world.retire(quay, "Burned.")
    assert [each.row_id for each in changed.also_changed] == [office]
    rows = await world.rows()
    assert [
        (rows[each]["status"], rows[each]["retired_reason"])
        for each in (city, quay, office, cellar)
    ] == [
        ("active", None),
        ("retired", "Burned."),
        ("retired", "Burned."),
        ("retired", "Flooded."),
    ]
    assert rows[mira]["state"]["current_location_id"] == office
    assert len(await world.new_deltas(head)) == 2
    await world.undo()
    assert await world.state() == before


async def test_what_is_in_a_retired_place_comes_back_after_it(world: World) -> None:
    """Rule U10."""
    quay, office = await nest(world, "Quay", "Office")
    await world.retire(quay)
    for status in ("active", "staged"):
        refused = await world.refusal(world.update(office, status=status))
        assert refused == ("RETIRED_PARENT", "input.status")
    await world.update(quay, status="active")
    assert await world.statuses(quay, office) == ["active", "retired"]
    await world.update(office, status="staged")
    assert await world.statuses(office) == ["staged"]


async def test_nothing_is_put_into_a_retired_place_but_what_is_retired(world: World) -> None:
    """Rule U10."""
    ruin, hut = await world.add(LOCATION, "Ruin"), await world.add(LOCATION, "Hut")
    await world.retire(ruin)
    inside = {"parent_location_id": ruin}
    refusal = ("RETIRED_PARENT", "input.state.parent_location_id")
    for change in (
        put_in(world, hut, ruin),
        world.create(LOCATION, "New", inside),
        world.create(LOCATION, "New", inside, status="staged"),
    ):
        assert await world.refusal(change) == refusal
    made = await world.create(LOCATION, "Wall", inside, status="retired")
    await world.retire(hut)
    await put_in(world, hut, ruin)
    # In one act out of it and back.
    await world.update(hut, {"parent_location_id": None}, status="active")
    back = world.update(made.entity.row_id, inside, status="active")
    assert await world.refusal(back) == ("RETIRED_PARENT", "input.status")


@pytest.mark.parametrize("inside", [0, 1])
async def test_no_place_is_retired_or_disabled_around_the_story(world: World, inside: int) -> None:
    """Rules U11, U14."""
    quay, office = await nest(world, "Quay", "Office")
    hill, dark = await nest(world, "Hill", "Dark")
    deep = await world.add(LOCATION, "Deep", parent_location_id=dark)
    await world.update(dark, injection_mode="disabled")
    await world.go_to((quay, office)[inside])
    assert await world.refusal(world.retire(quay)) == ("STORY_INSIDE", "input.status")
    disable = world.update(quay, injection_mode="disabled")
    assert await world.refusal(disable) == ("STORY_INSIDE", "input.injectionMode")
    for parent in (dark, deep):
        refused = await world.refusal(put_in(world, quay, parent))
        assert refused == ("STORY_INSIDE", "input.state.parent_location_id")
    await put_in(world, quay, hill)
    # The story is elsewhere.
    await world.go_to(None)
    await put_in(world, quay, deep)
    await world.update(quay, injection_mode="disabled")
    await world.retire(quay)
    assert await world.statuses(quay, office) == ["retired", "retired"]


async def test_a_story_that_walked_into_a_disabled_region_moves_about_in_it(
    world: World,
) -> None:
    """Rule U14."""
    dark, hall, room = await nest(world, "Dark", "Hall", "Room")
    await world.update(dark, injection_mode="disabled")
    await world.go_to(room)
    await put_in(world, room, dark)
    await put_in(world, room, hall)
    assert (await world.state_of(room))["parent_location_id"] == hall


async def test_the_place_of_an_unanswered_action_counts_too(world: World) -> None:
    """Rule U11."""
    quay, hill = await world.add(LOCATION, "Quay"), await world.add(LOCATION, "Hill")
    await world.go_to(quay)
    await world.go_to(hill, kind=EntryKind.USER_ACTION)
    for place in (quay, hill):
        assert (await world.refusal(world.retire(place)))[0] == "STORY_INSIDE"


AUTO, ALWAYS, DISABLED = InjectionMode.AUTO, InjectionMode.ALWAYS, InjectionMode.DISABLED


@pytest.mark.parametrize(
    ("own", "around", "story", "expected"),
    [
        (AUTO, [], [], AUTO),
        (ALWAYS, [AUTO], [], ALWAYS),
        (DISABLED, [], [], DISABLED),
        (ALWAYS, [AUTO, DISABLED], [], DISABLED),
        # The story is in the disabled place around it, or deeper in it, or beside it.
        (ALWAYS, [DISABLED], ["around 0"], ALWAYS),
        (ALWAYS, [AUTO, DISABLED], ["elsewhere", "around 1"], ALWAYS),
        (AUTO, [DISABLED, DISABLED], ["around 1"], DISABLED),
        (AUTO, [DISABLED, DISABLED], ["around 0", "around 1"], AUTO),
        (AUTO, [DISABLED], ["elsewhere"], DISABLED),
        # A disabled place comes in where the story is, not where it is further inside.
        (DISABLED, [], ["place"], AUTO),
        (DISABLED, [], ["elsewhere", "place"], DISABLED),
        (DISABLED, [DISABLED], ["place", "around 0"], AUTO),
    ],
)
def test_the_mode_that_holds_follows_from_the_places_around(
    own: InjectionMode, around: list[InjectionMode], story: list[str], expected: InjectionMode
) -> None:
    """Rule U13."""

    class Place:
        row_id = "place"
        injection_mode = own

    links = [Link(f"around {index}", mode) for index, mode in enumerate(around)]
    chain = [Link(each, AUTO) for each in story]
    place: Any = Place()
    assert effective_mode(place, links, chain) == expected


async def test_an_answer_shows_two_hundred_others_at_most(world: World) -> None:
    city = await world.add(LOCATION, "City")
    values = entity_values(LOCATION, "House", parent_location_id=city)
    await deltas.plant_rows(
        world.writing, world.branch_id, StoryEntity, [values] * (MAX_SHOWN + 1), prefix="loc"
    )
    changed = await world.retire(city)
    assert len(changed.also_changed) == MAX_SHOWN == 200
    assert changed.branch.head == MAX_SHOWN + 2
    made = await entities.create_entity(
        world.writing,
        world.people.owner,
        world.branch_id,
        {**entity_values(LOCATION, "House"), "keywords": []},
    )
    assert len(made[1]) == MAX_SHOWN
