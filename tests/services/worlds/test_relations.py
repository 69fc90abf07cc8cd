from __future__ import annotations

from typing import Any

import pytest

from services import worlds
from tests.services.worlds.made import Made, made, make_world

__all__ = ["made"]


async def test_a_relation_is_told_apart_by_ends_kind_and_beginning(made: Made) -> None:
    """Rules O5, O6."""
    mira, odo = await made.add("Mira"), await made.add("Odo")
    first = await made.tie("Mira", "Odo", label="friend", weight=2.0, sources=["ch. 1"])
    assert await made.tie("Mira", "Odo", confidence=0.5) == first
    later = await made.tie("Mira", "Odo", valid_from=10, valid_until=20)
    back = await made.tie("Odo", "Mira")
    (row, *others) = await made.relations()
    assert (row.label, row.weight, row.confidence, row.version) == ("friend", 2.0, 0.5, 2)
    assert row.updated_at is not None
    assert [each.id for each in others] == [later, back]
    assert [(each.source_id, each.target_id) for each in others] == [(mira, odo), (odo, mira)]
    assert await made.tie("Mira", "Odo", label="friend") == first
    assert (await made.relations())[0].version == 2
    assert [each.id for each in await made.relations(valid_at=9)] == [first, back]
    assert [each.id for each in await made.relations(valid_at=19)] == [first, later, back]
    assert [each.id for each in await made.relations(valid_at=20)] == [first, back]
    assert await made.relations(kinds=["hates"]) == []


async def test_without_a_direction_it_is_one_whichever_end_is_named_first(made: Made) -> None:
    """Rule O5."""
    ends = sorted([await made.add("Mira"), await made.add("Odo")])
    one = await made.tie("Odo", "Mira", "sibling", is_directed=False)
    assert await made.tie("Mira", "Odo", "sibling", is_directed=False) == one
    (row,) = await made.relations()
    assert [row.source_id, row.target_id] == ends


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({"weight": 0.0}, ("OUT_OF_RANGE", ("input", "weight"))),
        ({"weight": 1e10}, ("OUT_OF_RANGE", ("input", "weight"))),
        ({"weight": float("nan")}, ("OUT_OF_RANGE", ("input", "weight"))),
        ({"confidence": 1.1}, ("OUT_OF_RANGE", ("input", "confidence"))),
        ({"valid_from": 5, "valid_until": 5}, ("VALID_BACKWARDS", ("input", "validUntil"))),
        ({"label": " "}, ("TEXT_EMPTY", ("input", "label"))),
    ],
)
async def test_what_makes_no_sense_is_refused(
    made: Made, values: dict[str, Any], refused: tuple[str, tuple[str, ...]]
) -> None:
    """Rule O6."""
    ends = [await made.add("Mira"), await made.add("Odo")]
    assert await made.refusal(worlds.set_relation, *ends, "knows", values) == refused


async def test_ends_are_two_and_of_one_world(made: Made) -> None:
    """Rule O5."""
    mira = await made.add("Mira")
    other_world = await made.change(make_world, "Boreas")
    here, made.id = made.id, other_world
    far = await made.add("Far")
    made.id = here
    path = ("input", "targetId")
    assert await made.refusal(worlds.set_relation, mira, mira, "is", {}) == ("SAME_ENTITY", path)
    assert await made.refusal(worlds.set_relation, mira, far, "is", {}) == ("OTHER_WORLD", path)
    assert await made.refusal(worlds.set_relation, mira, far, "is", {}, viewer=made.stranger) == (
        "NOT_FOUND",
        ("input", "sourceId"),
    )


async def test_a_relation_goes_with_its_last_source(made: Made) -> None:
    """Rule O7."""
    await made.add("Mira", sources=["ch. 1", "ch. 2"])
    await made.add("Odo", sources=["ch. 1"])
    gone = await made.tie("Mira", "Odo", sources=["ch. 1"])
    stays = await made.tie("Odo", "Mira", sources=["ch. 1", "ch. 2"])
    untold = await made.tie("Mira", "Odo", "meets")
    _, *numbers = await made.change(worlds.remove_source, made.id, "ch. 1")
    assert numbers == [2, 1, 1]
    assert [each.sources for each in await made.entities()] == [["ch. 2"], []]
    assert [(each.id, each.sources) for each in await made.relations()] == [
        (stays, ["ch. 2"]),
        (untold, []),
    ]
    assert await made.refusal(worlds.delete_relation, gone) == (
        "NOT_FOUND",
        ("input", "relationId"),
    )
    assert await made.change(worlds.delete_relation, stays) == stays
    assert [each.id for each in await made.relations()] == [untold]
