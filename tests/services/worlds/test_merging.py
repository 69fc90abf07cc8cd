from __future__ import annotations

from typing import Any

import pytest

from db.enums import Alikeness, MergeEffect
from db.tables import WorldEntity, WorldMerge
from services import worlds
from services.worlds.duplicates import Named, find_pairs
from tests.services.worlds.made import LOCATION, Made, made, make_world

__all__ = ["made"]


async def twins(made: Made) -> dict[str, str]:
    """Two who are one, tied to two others; the ids of the relations."""
    await made.add("Mira", aliases=["M."], tags=["a"], attributes={"age": 30}, sources=["1"])
    await made.add(
        "Mirabel",
        aliases=["Bel"],
        tags=["b"],
        attributes={"age": 31, "hair": "red"},
        description="Tall.",
        sources=["2"],
    )
    await made.add("Odo")
    await made.add("Ana")
    return {
        "own": await made.tie("Mira", "Odo", weight=1.0, sources=["1"]),
        "same": await made.tie("Mirabel", "Odo", weight=3.0, label="well", sources=["2"]),
        "moved": await made.tie("Ana", "Mirabel", "fears"),
        "between": await made.tie("Mira", "Mirabel", "is"),
        "other": await made.tie("Odo", "Ana"),
    }


async def merged(made: Made, kept: str, lost: str, **named: Any) -> Any:
    return await made.change(worlds.merge_world_entities, made.ids[kept], made.ids[lost], **named)


async def test_the_one_that_stays_gets_what_it_has_not_and_parting_brings_all_back(
    made: Made,
) -> None:
    """Rules O10, O11, O12."""
    ties = await twins(made)
    before = await made.state()
    _, nothing, told = await merged(made, "Mira", "Mirabel", is_dry=True)
    assert (nothing, await made.state()) == (None, before)
    kept, merge, changes = await merged(made, "Mira", "Mirabel")
    assert changes == told
    assert {(each.effect, each.id) for each in changes} == {
        (MergeEffect.MERGED, made.ids["Mirabel"]),
        (MergeEffect.CHANGED, made.ids["Mira"]),
        (MergeEffect.DROPPED, ties["same"]),
        (MergeEffect.JOINED, ties["own"]),
        (MergeEffect.MOVED, ties["moved"]),
        (MergeEffect.DROPPED, ties["between"]),
    }
    assert (kept.name, kept.description, kept.tags) == ("Mira", "Tall.", ["a", "b"])
    assert (kept.attributes, kept.sources) == ({"age": 30, "hair": "red"}, ["1", "2"])
    assert await made.aliases("Mira") == ["M.", "Mirabel", "Bel"]
    assert await made.names() == ["Mira", "Odo", "Ana"]
    rows = {row.id: row for row in await made.relations()}
    assert set(rows) == {ties["own"], ties["moved"], ties["other"]}
    own = rows[ties["own"]]
    assert (own.label, own.weight, own.sources) == ("well", 3.0, ["1", "2"])
    assert rows[ties["moved"]].target_id == made.ids["Mira"]
    lost = await made.row(WorldEntity, made.ids["Mirabel"])
    assert lost.merged_into_id == made.ids["Mira"]
    again = await made.change(worlds.unmerge_world_entities, merge.id)
    assert [each.name for each in again[:2]] == ["Mira", "Mirabel"]
    assert again[2].undone_at is not None
    assert await made.state() == before
    assert await made.refusal(worlds.unmerge_world_entities, merge.id) == (
        "ALREADY_UNMERGED",
        ("input", "mergeId"),
    )


async def test_merges_are_parted_in_the_order_in_which_they_hang_on_each_other(
    made: Made,
) -> None:
    """Rule O12."""
    await twins(made)
    before = await made.state()
    _, first, _ = await merged(made, "Mira", "Mirabel")
    between = await made.state()
    _, second, _ = await merged(made, "Odo", "Mira")
    assert await made.refusal(worlds.unmerge_world_entities, first.id) == (
        "CHANGED_SINCE",
        ("input", "mergeId"),
    )
    await made.change(worlds.unmerge_world_entities, second.id)
    assert await made.state() == between
    await made.change(worlds.unmerge_world_entities, first.id)
    assert await made.state() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.change(
            worlds.update_world_entity, made.ids["Mira"], {"aliases": ["Other"]}
        ),
        lambda made: made.tie("Mira", "Odo", confidence=0.1),
        lambda made: made.change(worlds.delete_world_entity, made.ids["Ana"]),
    ],
)
async def test_what_was_changed_since_is_not_parted(made: Made, change: Any) -> None:
    """Rule O12."""
    await twins(made)
    _, merge, _ = await merged(made, "Mira", "Mirabel")
    await change(made)
    assert await made.refusal(worlds.unmerge_world_entities, merge.id) == (
        "CHANGED_SINCE",
        ("input", "mergeId"),
    )


async def test_who_was_found_to_be_another_takes_part_in_nothing(made: Made) -> None:
    """Rule O10."""
    await twins(made)
    lost, odo = made.ids["Mirabel"], made.ids["Odo"]
    await merged(made, "Mira", "Mirabel")
    path = ("input", "worldEntityId")
    assert await made.refusal(worlds.update_world_entity, lost, {"name": "x"}) == (
        "ENTITY_MERGED",
        path,
    )
    assert await made.refusal(worlds.delete_world_entity, lost) == ("ENTITY_MERGED", path)
    assert await made.refusal(worlds.set_relation, odo, lost, "x", {}) == (
        "ENTITY_MERGED",
        ("input", "targetId"),
    )
    assert await made.refusal(worlds.merge_world_entities, odo, lost) == (
        "ENTITY_MERGED",
        ("input", "mergedId"),
    )


async def test_two_of_a_kind_and_of_a_world_are_made_one(made: Made) -> None:
    """Rule O10."""
    mira, quay = await made.add("Mira"), await made.add("Quay", LOCATION)
    here, made.id = made.id, await made.change(make_world, "Boreas")
    far = await made.add("Far")
    made.id = here
    path = ("input", "mergedId")
    for other, code in ((mira, "SAME_ENTITY"), (quay, "WRONG_KIND"), (far, "OTHER_WORLD")):
        assert await made.refusal(worlds.merge_world_entities, mira, other) == (code, path)
    assert await made.refusal(worlds.merge_world_entities, mira, quay, viewer=made.stranger) == (
        "NOT_FOUND",
        ("input", "keptId"),
    )
    assert await made.row(WorldMerge, "wmrg_01ARZ3NDEKTSV4RRFFQ69G5FAV") is None


async def test_those_who_may_be_one_are_found(made: Made) -> None:
    """Rule O13."""
    for name in ("Mira", "MÍRA", "Mirabel", "司馬相如", "司馬相茹", "Odo"):
        await made.add(name)
    await made.add("Ode", LOCATION)
    await made.add("Grey", aliases=["Odo"])
    async with made.database.reading() as reading:
        (pairs,) = await worlds.duplicates_of_worlds(reading, made.owner, [made.id], None, 200)
        (few,) = await worlds.duplicates_of_worlds(
            reading, made.owner, [made.id], ["location"], 200
        )
    names = {each.id: each.name for each in await made.entities()}
    found = [(names[each.entity_id], names[each.other_id], each.reason) for each in pairs]
    assert found[:2] == [
        ("Mira", "MÍRA", Alikeness.SAME_NAME),
        ("Odo", "Grey", Alikeness.SAME_ALIAS),
    ]
    assert ("司馬相如", "司馬相茹", Alikeness.SIMILAR) in found
    assert few == []


def test_pairs_are_found_without_looking_at_every_two() -> None:
    """Rule O13."""
    crowd = [Named(f"went_{n:04}", "character", ("the same",)) for n in range(3_000)]
    crowd += [
        Named("went_x", "character", ("kaelen vey",)),
        Named("went_y", "character", ("kaelen", "k")),
        Named("went_z", "character", ("相如司馬", "司馬相如")),
        Named("went_zz", "character", ("司馬相如公",)),
    ]
    pairs = find_pairs(crowd)
    assert len(pairs) == 3_001
    assert {(each.entity_id, each.score) for each in pairs[:2_999]} == {("went_0000", 1.0)}
    assert [(each.entity_id, each.other_id, each.reason, each.score) for each in pairs[2_999:]] == [
        ("went_x", "went_y", Alikeness.CONTAINED, 0.8),
        ("went_z", "went_zz", Alikeness.CONTAINED, 0.8),
    ]
