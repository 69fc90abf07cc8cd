from __future__ import annotations

import pytest

from db.paging import PageRequest
from db.tables import World, WorldEntity
from services import worlds
from services.worlds import name_key
from tests.services.worlds.made import LOCATION, Made, made, make_world

__all__ = ["made"]
PATH = ("input", "worldEntityId")


async def test_worlds_are_listed_newest_first_and_change_by_what_is_given(made: Made) -> None:
    """Rule O1."""
    other = await made.change(make_world, "Boreas")
    async with made.database.reading() as reading:
        page = await worlds.list_worlds(reading, made.owner, PageRequest())
    assert [each.name for each in page.nodes] == ["Boreas", "Aster"]
    changed = await made.change(worlds.update_world, other, {"rules": ["No magic."]}, 1)
    assert (changed.name, changed.rules, changed.version) == ("Boreas", ["No magic."], 2)
    again = await made.change(worlds.update_world, other, {"name": "Boreas"})
    assert again.version == 2
    assert await made.refusal(worlds.update_world, other, {"name": "x"}, 1) == (
        "CONFLICT",
        ("input", "expectedVersion"),
    )
    assert await made.refusal(worlds.update_world, other, {"name": " "}) == (
        "TEXT_EMPTY",
        ("input", "name"),
    )


@pytest.mark.parametrize(
    "act",
    [
        lambda made: (worlds.update_world, made.id, {"name": "x"}),
        lambda made: (worlds.delete_world, made.id),
        lambda made: (worlds.upsert, made.id, [], []),
        lambda made: (worlds.remove_source, made.id, "x"),
        lambda made: (worlds.create_world_entity, made.id, {"kind": LOCATION, "name": "x"}),
    ],
)
async def test_a_stranger_finds_no_world(made: Made, act: object) -> None:
    """Rule O1."""
    do, *args = act(made)  # type: ignore[operator]
    assert await made.refusal(do, *args, viewer=made.stranger) == (
        "NOT_FOUND",
        ("input", "worldId"),
    )
    assert await made.row(World, made.id) is not None


async def test_names_and_aliases_are_found_in_every_script(made: Made) -> None:
    """Rules O2, O3."""
    await made.add("Éowyn of Rohan", aliases=["Dernhelm", "EOWYN OF ROHAN", "dernhelm"])
    await made.add("司馬相如", aliases=["長卿"])
    await made.add("Ёлка")
    await made.add("Quay", LOCATION)
    assert await made.aliases("Éowyn of Rohan") == ["Dernhelm"]
    for search, found in {
        "eowyn": ["Éowyn of Rohan"],
        "DERN": ["Éowyn of Rohan"],
        "相如": ["司馬相如"],
        "長卿": ["司馬相如"],
        "елка": ["Ёлка"],
        "": ["Éowyn of Rohan", "司馬相如", "Ёлка", "Quay"],
        "nobody": [],
    }.items():
        assert await made.names(search=name_key(search)) == found
    assert await made.names(kinds=["location"]) == ["Quay"]


async def test_an_entity_changes_by_what_is_given(made: Made) -> None:
    """Rule O2."""
    entity = await made.add("Mira", aliases=["M."], attributes={"age": 30}, sources=["ch. 1"])
    change = {"name": "Mirabel", "aliases": ["Mira"], "attributes": {"age": 31}}
    row = await made.change(worlds.update_world_entity, entity, change, 1)
    assert (row.name, row.attributes, row.version) == ("Mirabel", {"age": 31}, 2)
    made.ids["Mirabel"] = entity
    assert await made.aliases("Mirabel") == ["Mira"]
    # Whose alias becomes the name has it once.
    row = await made.change(worlds.update_world_entity, entity, {"name": "Mira"})
    assert (row.version, await made.aliases("Mirabel")) == (3, [])
    same = await made.change(worlds.update_world_entity, entity, {"name": "Mira"})
    assert same.version == 3
    assert await made.refusal(worlds.update_world_entity, entity, {"attributes": [1]}) == (
        "INVALID_SHAPE",
        ("input", "attributes"),
    )
    assert await made.refusal(
        worlds.update_world_entity, entity, {"attributes": {"a": "x" * 100_000}}
    ) == ("LIMIT_REACHED", ("input", "attributes"))
    assert await made.refusal(
        worlds.update_world_entity, entity, {"name": "x"}, viewer=made.stranger
    ) == ("NOT_FOUND", PATH)


async def test_deleting_an_entity_takes_its_relations_along(made: Made) -> None:
    """Rule O4."""
    for name in ("Mira", "Odo", "Ana"):
        await made.add(name)
    await made.tie("Mira", "Odo")
    await made.tie("Odo", "Ana")
    assert await made.change(worlds.delete_world_entity, made.ids["Mira"]) == made.ids["Mira"]
    assert await made.names() == ["Odo", "Ana"]
    assert [each.source_id for each in await made.relations()] == [made.ids["Odo"]]
    assert await made.change(worlds.delete_world, made.id) == made.id
    assert await made.row(WorldEntity, made.ids["Odo"]) is None
