"""What a character knows: at present and at a moment, nothing more and nothing less."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntityStatus, EntryKind, InjectionMode
from db.tables import Happening, HappeningAwareness, HappeningInvolvement, Lore
from services import past, perspectives
from services.access import Viewer
from services.errors import Invalid, NotFound
from services.past import AsOf
from services.perspectives import Knowledge, Learned
from tests.services.entities.worlds import CHARACTER, FACTION, ITEM, LOCATION, NOBODY, World, world

__all__ = ["world"]


async def known(world: World, character: str, as_of: AsOf | None = None) -> Knowledge:
    """What a character knows. What the present says is what its moment says."""
    viewer, branch_id = world.people.owner, world.branch_id
    if as_of is None:
        now = await known(world, character, AsOf(log_position=await world.head()))
    moment = as_of and await past.resolve_moment(world.writing, viewer, branch_id, as_of)
    found = await perspectives.knowledge_of(world.writing, viewer, branch_id, character, moment)
    assert as_of is not None or found == now
    return found


async def happen(
    world: World, title: str, *, involved: Any = (), aware: Any = (), **columns: Any
) -> str:
    """Something that happened, who took part, and who knows of it: each with how."""
    async with world.act() as action:
        made = await action.create(Happening, {"title": title, **columns})
        for each in involved:
            await action.create(
                HappeningInvolvement, {"happening_id": made["id"], "entity_id": each}
            )
        for each, how in dict(aware).items():
            values = {"happening_id": made["id"], "character_id": each, **how}
            await action.create(HappeningAwareness, values)
    return str(made["id"])


async def test_nothing_is_known_but_oneself(world: World) -> None:
    """Rule J1."""
    mira, tomas = [await world.add(CHARACTER, each) for each in ("Mira", "Tomas")]
    await happen(world, "A secret", involved=[mira], aware={tomas: {}})
    found = await known(world, mira)
    assert found == Knowledge(
        mira, frozenset(), frozenset({mira}), frozenset(), frozenset(), frozenset({mira}), {}
    )


async def test_happenings_are_known_with_whoever_took_part(world: World) -> None:
    """Rule J2."""
    mira, tomas = [await world.add(CHARACTER, each) for each in ("Mira", "Tomas")]
    mill = await world.add(LOCATION, "Mill")
    entry = await world.go_to(None)
    told = {"learned_at_entry_id": entry, "source": "told by Tomas"}
    fire = await happen(world, "Fire", involved=[tomas, mill], aware={mira: told})
    king = await happen(world, "The king is dead", common_knowledge=True)
    await happen(world, "Theft", involved=[tomas], aware={tomas: {}})
    found = await known(world, mira)
    assert found.learned == {fire: Learned(entry, "told by Tomas"), king: Learned()}
    assert found.happenings == {fire, king}
    assert found.entities == {mira, tomas, mill}


async def test_what_one_has_and_where_one_is_is_known(world: World) -> None:
    """Rule J3."""
    land = await world.add(LOCATION, "Land")
    town = await world.add(LOCATION, "Town", parent_location_id=land)
    mill = await world.add(LOCATION, "Mill", parent_location_id=town)
    cellar = await world.add(LOCATION, "Cellar", parent_location_id=mill)
    guild = await world.add(FACTION, "Guild")
    coat, rope, sack = [await world.add(ITEM, each) for each in ("Coat", "Rope", "Sack")]
    mira = await world.add(
        CHARACTER,
        "Mira",
        current_location_id=mill,
        equipped_items=[coat],
        inventory=[rope],
        faction_id=guild,
    )
    lying = await world.add(ITEM, "Lying", at_location_id=mill)
    tomas = await world.add(CHARACTER, "Tomas", current_location_id=mill, inventory=[sack])
    gone = {"status": EntityStatus.RETIRED}
    await world.add(CHARACTER, "Gone", gone, current_location_id=mill)
    staged = {"status": EntityStatus.STAGED}
    await world.add(CHARACTER, "To come", staged, current_location_id=mill)
    await world.add(CHARACTER, "Elsewhere", current_location_id=cellar)
    found = await known(world, mira)
    assert found.beside == {mira, tomas, lying}
    assert found.entities == {mira, coat, rope, guild, mill, town, land, tomas, lying}


async def test_who_is_seen_is_known_and_who_only_sees_is_not(world: World) -> None:
    """Rule J4."""
    mira, tomas, jorin = [await world.add(CHARACTER, each) for each in ("Mira", "Tomas", "Jorin")]
    await world.relate(mira, tomas, "a friend")
    await world.relate(jorin, mira, "a rival")
    assert (await known(world, mira)).entities == {mira, tomas}
    assert (await known(world, jorin)).entities == {jorin, mira}


async def test_scenes_are_known_to_whom_was_there_and_lore_to_all_where_it_says_so(
    world: World,
) -> None:
    """Rule J5."""
    mira = await world.add(CHARACTER, "Mira")
    there = await world.go_to(None, mira)
    await world.go_to(None)
    await world.go_to(None, mira, kind=EntryKind.SYSTEM)
    async with world.act() as action:
        common, _ = [
            await action.create(
                Lore,
                {"title": "T", "body": "B", "tags": tags, "injection_mode": InjectionMode.AUTO},
            )
            for tags in (["old", "common"], ["commonplace"])
        ]
    found = await known(world, mira)
    assert (found.entries, found.lore) == ({there}, {common["id"]})


async def test_what_was_known_then(world: World) -> None:
    """Rule J6."""
    mira, tomas = [await world.add(CHARACTER, each) for each in ("Mira", "Tomas")]
    first = await happen(world, "First", involved=[tomas], aware={mira: {}})
    then = await world.head()
    later = await happen(world, "Later", aware={mira: {}})
    await world.relate(mira, tomas, "a friend")
    assert (await known(world, mira)).happenings == {first, later}
    assert (await known(world, mira, AsOf(log_position=then))).happenings == {first}
    before = await known(world, mira, AsOf(log_position=0))
    assert (before.happenings, before.entities) == (frozenset(), {mira})


async def test_only_characters_of_the_branch_have_a_perspective(world: World) -> None:
    """Rule J1."""
    mill, mira = await world.add(LOCATION, "Mill"), await world.add(CHARACTER, "Mira")

    async def refusal(character: str, viewer: Viewer | None = None) -> tuple[str, Any]:
        with pytest.raises((Invalid, NotFound)) as caught:
            await perspectives.knowledge_of(
                world.writing, viewer or world.people.owner, world.branch_id, character, None
            )
        return caught.value.code, caught.value.path

    path = ("perspective",)
    assert await refusal(mill) == ("NOT_A_CHARACTER", path)
    assert await refusal(NOBODY) == ("NOT_FOUND", path)
    assert await refusal("mira") == ("NOT_FOUND", path)
    assert await refusal(mira, world.people.stranger) == ("NOT_FOUND", path)
    assert (await known(world, world.full(mira))).character_id == mira
