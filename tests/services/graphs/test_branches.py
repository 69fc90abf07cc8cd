"""Branches as graphs: what ties their rows together, at present, in the past, for one character."""

from __future__ import annotations

import random
from typing import Any

import pytest

from db.enums import EdgeDirection, EdgeKind, TruncationReason
from db.tables import Happening, HappeningAwareness, HappeningInvolvement, StoryEntity
from services import graphs, past, perspectives
from services.graphs import MemorySource, Wanted, edges, find_paths, stars, walk, walking, whole
from services.past import AsOf
from tests.services.entities.worlds import CHARACTER, FACTION, ITEM, LOCATION, World, world

__all__ = ["world"]

Tie = tuple[str, str | None, str, str]


async def happen(
    world: World, title: str, involved: dict[str, str | None], aware: dict[str, Any], **columns: Any
) -> str:
    """Something that happened, who took part in it as what, and who knows of it and how."""
    async with world.act() as action:
        made = await action.create(Happening, {"title": title, **columns})
        for entity, role in involved.items():
            values = {"happening_id": made["id"], "entity_id": entity, "role": role}
            await action.create(HappeningInvolvement, values)
        for character, how in aware.items():
            values = {"happening_id": made["id"], "character_id": character, **how}
            await action.create(HappeningAwareness, values)
    return str(made["id"])


async def source(world: World, as_of: AsOf | None = None, perspective: str | None = None) -> Any:
    viewer, branch_id = world.people.owner, world.branch_id
    moment = as_of and await past.resolve_moment(world.writing, viewer, branch_id, as_of)
    return await graphs.source_of(world.writing, viewer, branch_id, moment, perspective)


async def whole_of(world: World, as_of: AsOf | None = None, perspective: str | None = None) -> Any:
    (found,) = await whole(
        await source(world, as_of, perspective), [world.branch_id], Wanted(), first=1_000
    )
    return found


def ties(world: World, found: Any) -> set[Tie]:
    def own(id: str) -> str:
        return id.removeprefix(f"{world.branch_id}:")

    return {(each.kind, each.label, own(each.source), own(each.target)) for each in found}


async def test_each_tie_of_a_branch_is_one_edge(world: World) -> None:
    """Rules J7, J8."""
    town = await world.add(LOCATION, "Town")
    mill = await world.add(LOCATION, "Mill", parent_location_id=town)
    guild = await world.add(FACTION, "Guild")
    coat, rope, sack = [await world.add(ITEM, each) for each in ("Coat", "Rope", "Sack")]
    await world.update(sack, {"at_location_id": mill})
    mira = await world.add(
        CHARACTER,
        "Mira",
        current_location_id=mill,
        equipped_items=[coat],
        inventory=[rope],
        faction_id=guild,
    )
    tomas = await world.add(CHARACTER, "Tomas")
    await world.relate(mira, tomas, "a friend")
    await world.relate(tomas, mira, "a debtor")
    fire = await happen(world, "Fire", {mill: "site"}, {mira: {"source": "saw it"}})
    expected = {
        ("containment", None, mill, town),
        ("position", None, mira, mill),
        ("position", None, sack, mill),
        ("possession", "equipped", mira, coat),
        ("possession", "inventory", mira, rope),
        ("membership", None, mira, guild),
        ("relationship", "a friend", mira, tomas),
        ("relationship", "a debtor", tomas, mira),
        ("involvement", "site", mill, fire),
        ("awareness", "saw it", mira, fire),
    }
    found = await whole_of(world)
    assert ties(world, found.edges) == expected
    assert len({each.id for each in found.edges}) == len(expected)
    assert [(each.node.kind, each.node.label) for each in found.nodes] == [
        ("location", "Town"),
        ("location", "Mill"),
        ("faction", "Guild"),
        ("item", "Coat"),
        ("item", "Rope"),
        ("item", "Sack"),
        ("character", "Mira"),
        ("character", "Tomas"),
        ("happening", "Fire"),
    ]
    then = await whole_of(world, AsOf(log_position=await world.head()))
    assert (then.nodes[0].node.id, then.edges) != (None, [])
    assert [each.id for each in then.edges] == [each.id for each in found.edges]
    assert ties(world, then.edges) == expected


async def some_world(world: World, chance: random.Random) -> list[str]:
    """A world with ties of all kinds, drawn at random; the ids of its characters."""
    places = [await world.add(LOCATION, "Town")]
    for number in range(3):
        around = chance.choice(places)
        places.append(await world.add(LOCATION, f"Place {number}", parent_location_id=around))
    factions = [await world.add(FACTION, f"Faction {number}") for number in range(2)]
    items = [await world.add(ITEM, f"Item {number}") for number in range(4)]
    lying = chance.choice(items)
    await world.update(lying, {"at_location_id": chance.choice(places)})
    free = [each for each in items if each != lying]
    characters = []
    for number in range(5):
        held = [free.pop()] if free else []
        state = {
            "current_location_id": chance.choice([None, *places]),
            "faction_id": chance.choice([None, *factions]),
            chance.choice(["equipped_items", "inventory"]): held,
        }
        characters.append(await world.add(CHARACTER, f"Character {number}", **state))
    for _ in range(5):
        subject, other = chance.sample(characters, 2)
        await world.relate(subject, other, chance.choice(["friend", "rival"]))
    everybody = [*characters, *places, *items, *factions]
    for number in range(5):
        await world.go_to(None, *chance.sample(characters, 2))
        involved = dict.fromkeys(chance.sample(everybody, 2))
        is_common = number == 4
        aware = {} if is_common else {each: {} for each in chance.sample(characters, 2)}
        await happen(world, f"Canary {number}", involved, aware, common_knowledge=is_common)
    return characters


def shape(found: Any) -> Any:
    return (
        [(each.node.id, each.node.kind, each.node.label, each.distance) for each in found.nodes],
        [(e.id, e.kind, e.label, e.source, e.target, e.entry_id) for e in found.edges],
        found.truncated_by,
    )


async def test_statements_and_memory_walk_alike(world: World) -> None:
    """Rule J9."""
    chance = random.Random(7)
    characters = await some_world(world, chance)
    live = await source(world)
    held = await source(world, AsOf(log_position=await world.head()))
    assert isinstance(held, MemorySource)
    starts = [[world.full(each)] for each in characters]
    for way in EdgeDirection:
        for kinds in (
            None,
            *((each,) for each in EdgeKind),
            (EdgeKind.AWARENESS, EdgeKind.POSITION),
        ):
            wanted = Wanted(kinds and frozenset(kinds), None, way)
            for depth in (0, 2):
                one = await walk(live, starts, wanted, depth=depth, first=100)
                other = await walk(held, starts, wanted, depth=depth, first=100)
                assert [shape(each) for each in one] == [shape(each) for each in other]
    for wanted in (Wanted(), Wanted(node_kinds=frozenset({"character", "happening"}))):
        both = [
            [
                shape(each)
                for each in await stars(each_source, [s for (s,) in starts], wanted, first=3)
            ]
            for each_source in (live, held)
        ]
        assert both[0] == both[1]
        pairs = [(starts[0][0], starts[number][0]) for number in range(1, 5)]
        found = [
            [
                [[node.id for node in path.nodes] for path in each or ()]
                for each in await find_paths(each_source, pairs, wanted, max_depth=6, first=3)
            ]
            for each_source in (live, held)
        ]
        assert found[0] == found[1]
        assert any(found[0])
    assert shape(await whole_of(world)) == shape(
        await whole_of(world, AsOf(log_position=await world.head()))
    )


async def test_nothing_later_or_unknown_is_in_a_graph_and_nothing_known_is_missing(
    world: World,
) -> None:
    """Rules J6, J17, J18."""
    chance = random.Random(11)
    characters = await some_world(world, chance)
    rows = (await world.state())["happenings"]
    made = {
        each.target_id: each.log_position
        for each in await world.log()
        if each.target_id in rows and each.op == "create"
    }
    aware = (await world.state())["happening_awareness"].values()
    for moment in [None, *chance.sample(range(await world.head() + 1), 4)]:
        as_of = None if moment is None else AsOf(log_position=moment)
        for character in chance.sample(characters, 3):
            expected = {
                row_id
                for row_id, row in rows.items()
                if moment is None or made[row_id] <= moment
                if row["common_knowledge"]
                or any(
                    each["character_id"] == character and each["happening_id"] == row_id
                    for each in aware
                )
            }
            # A moment may lie between a happening and the note of who knows of it.
            known = await known_at(world, character, as_of)
            found = await whole_of(world, as_of, character)
            shown = {each.node.row.row_id for each in found.nodes}
            assert shown == known.happenings | known.entities
            assert known.happenings <= expected
            if moment is None:
                assert known.happenings == expected
            for kind, _, source_id, target_id in ties(world, found.edges):
                assert {source_id, target_id} <= shown
                if kind in ("awareness", "relationship", "possession", "membership"):
                    assert source_id == character
            ends = [each for each in characters if each != character][:2]
            (walked,) = await walk(
                await source(world, as_of, character),
                [[world.full(each) for each in ends]],
                Wanted(),
                depth=6,
                first=100,
            )
            assert {each.node.row.row_id for each in walked.nodes} <= shown


async def known_at(world: World, character: str, as_of: AsOf | None) -> perspectives.Knowledge:
    viewer, branch_id = world.people.owner, world.branch_id
    moment = as_of and await past.resolve_moment(world.writing, viewer, branch_id, as_of)
    return await perspectives.knowledge_of(world.writing, viewer, branch_id, character, moment)


async def test_a_hub_is_not_read_whole_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule J14."""
    monkeypatch.setattr(edges, "MAX_EDGES_PER_NODE", 3)
    mira = await world.add(CHARACTER, "Mira")
    for number in range(4):
        await happen(world, f"Happening {number}", {}, {mira: {}})
    direction = EdgeDirection.OUT
    wanted = Wanted(frozenset({EdgeKind.AWARENESS}), None, direction)
    (found,) = await walk(await source(world), [[world.full(mira)]], wanted, depth=1, first=100)
    assert (len(found.nodes), found.truncated_by) == (4, TruncationReason.HUB)
    monkeypatch.setattr(walking, "MAX_STEPS", 2)
    (found,) = await walk(await source(world), [[world.full(mira)]], wanted, depth=1, first=100)
    assert found.truncated_by == TruncationReason.EDGES


async def test_strangers_have_no_graph(world: World) -> None:
    """Rule J7."""
    mira = await world.add(CHARACTER, "Mira")
    mill = await world.add(LOCATION, "Mill")
    await world.update(mira, {"current_location_id": mill})
    theirs = await graphs.source_of(
        world.writing, world.people.stranger, world.branch_id, None, None
    )
    start = world.full(mira)
    assert [
        shape(each)
        for each in (
            *await whole(theirs, [world.branch_id], Wanted(), first=9),
            *await walk(theirs, [[start]], Wanted(), depth=2, first=9),
            *await stars(theirs, [start], Wanted(), first=9),
        )
    ] == [([], [], None)] * 3
    assert await find_paths(
        theirs, [(start, world.full(mill))], Wanted(), max_depth=3, first=1
    ) == [[]]
    assert (await theirs.steps([start], Wanted(), 9)).ends == {}


async def test_an_edge_says_since_which_entry_it_is_there(world: World) -> None:
    """Rule J15."""
    mill = await world.add(LOCATION, "Mill")
    coat, rope = [await world.add(ITEM, each) for each in ("Coat", "Rope")]
    mira, tomas = [await world.add(CHARACTER, each) for each in ("Mira", "Tomas")]
    first, second, third = [await world.go_to(None) for _ in range(3)]

    async def edit(anchor: str, **state: Any) -> None:
        before = await world.state_of(mira)
        await world.edit(StoryEntity, mira, anchor=anchor, state={**before, **state})

    await edit(first, current_location_id=mill, inventory=[coat])
    then = await world.head()
    await edit(second, inventory=[coat, rope])
    await edit(third, inventory=[rope], equipped_items=[coat])
    await world.relate(mira, tomas, "a friend")
    fire = await happen(
        world,
        "Fire",
        {tomas: None},
        {mira: {"learned_at_entry_id": third}},
        occurred_at_entry_id=first,
    )

    async def since(as_of: AsOf | None = None) -> dict[Any, str | None]:
        found = (await whole_of(world, as_of)).edges
        entries = await graphs.entries_of_edges(world.writing, world.people.owner, found)
        return {
            (each.source.partition(":")[2], each.target.partition(":")[2]): entry
            for each, entry in zip(found, entries, strict=True)
        }

    expected = {
        (mira, mill): first,
        (mira, coat): first,
        (mira, rope): second,
        (mira, tomas): None,
        (tomas, fire): first,
        (mira, fire): third,
    }
    assert await since() == expected
    assert await since(AsOf(log_position=await world.head())) == expected
    assert await since(AsOf(log_position=then)) == {(mira, mill): first, (mira, coat): first}
