"""What characters are to each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services import entities
from services.entities.relationships import pair_of
from services.errors import NotFound
from tests.services.entities.worlds import CHARACTER, LOCATION, NOBODY, World, world

__all__ = ["world"]


async def views(world: World) -> dict[tuple[str, str], str]:
    """What each sees in the other, by who sees whom; every row is as rows must be."""
    found = {}
    for row in (await world.rows("character_relationships")).values():
        assert row["a_id"].encode() < row["b_id"].encode()
        for pair, column in (
            ((row["a_id"], row["b_id"]), "kind"),
            ((row["b_id"], row["a_id"]), "inverse_kind"),
        ):
            if row[column] is not None:
                assert pair not in found
                found[pair] = row[column]
    return found


async def test_each_view_is_written_by_itself_into_one_row(world: World) -> None:
    """Rules U23, U27."""
    mira, odo = await world.add(CHARACTER, "Mira"), await world.add(CHARACTER, "Odo")
    first = await world.relate(mira, odo, " sister ")
    assert await views(world) == {(mira, odo): "sister"}
    second = await world.relate(odo, mira, "rival")
    assert first.row_id == second.row_id
    assert await views(world) == {(mira, odo): "sister", (odo, mira): "rival"}
    await world.relate(mira, odo, None)
    assert await views(world) == {(odo, mira): "rival"}
    head = await world.head()
    await world.relate(odo, mira, "rival ")
    assert await world.relate(mira, odo, "") is not None
    assert await world.head() == head
    # The last view takes the row along.
    assert await world.relate(odo, mira, " ") is None
    assert await world.rows("character_relationships") == {}
    assert [op for op, _, _ in await world.new_deltas(head)] == ["delete"]
    assert await world.relate(odo, mira, None) is None
    await world.undo()
    assert await views(world) == {(odo, mira): "rival"}


async def test_only_two_characters_of_one_branch_are_something_to_each_other(
    world: World,
) -> None:
    """Rule U24."""
    mira, quay = await world.add(CHARACTER, "Mira"), await world.add(LOCATION, "Quay")
    for subject, other, kind, expected in (
        (mira, mira, "x", ("SAME_ENTITY", "input.objectId")),
        (mira, quay, "x", ("WRONG_KIND", "input.objectId")),
        (quay, mira, "x", ("WRONG_KIND", "input.subjectId")),
        (mira, NOBODY, "x", ("NOT_FOUND", "input.objectId")),
        (NOBODY, mira, "x", ("NOT_FOUND", "input.subjectId")),
        (mira, quay, "x" * 501, ("TEXT_TOO_LONG", "input.kind")),
    ):
        assert await world.refusal(world.relate(subject, other, kind)) == expected


async def test_a_relationship_is_forgotten_as_a_whole(world: World) -> None:
    """Rule U24."""
    mira, odo = await world.add(CHARACTER, "Mira"), await world.add(CHARACTER, "Odo")
    row = await world.relate(mira, odo, "sister")
    for viewer in (world.people.stranger, world.people.anonymous):
        with pytest.raises(NotFound):
            await entities.delete_relationship(world.writing, viewer, row.id)
    deleted_id, branch = await entities.delete_relationship(
        world.writing, world.people.owner, row.id
    )
    assert (deleted_id, branch.head) == (row.id, 2)
    assert await views(world) == {}
    assert await world.refusal(
        entities.delete_relationship(world.writing, world.people.owner, row.id)
    ) == ("NOT_FOUND", "input.relationshipId")


async def test_retired_characters_keep_what_they_were(world: World) -> None:
    """Rule U24."""
    mira, odo = await world.add(CHARACTER, "Mira"), await world.add(CHARACTER, "Odo")
    await world.relate(mira, odo, "sister")
    await world.retire(odo)
    assert await views(world) == {(mira, odo): "sister"}


NAMES = range(3)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.sampled_from(NAMES), st.none() | st.sampled_from(["x", "y"])
    ),
    max_size=12,
)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
async def test_views_are_as_if_each_were_kept_by_itself(
    world: World, steps: list[tuple[int, int, Any]]
) -> None:
    """Rule U23: and undoing all of it leads back to nothing."""
    ids = [await world.add(CHARACTER, f"Character {number}") for number in NAMES]
    before = await world.rows("character_relationships")
    head = await world.head()
    expected: dict[tuple[str, str], str] = {}
    for subject, other, kind in steps:
        if subject == other:
            continue
        await world.relate(ids[subject], ids[other], kind)
        expected.pop((ids[subject], ids[other]), None)
        if kind is not None:
            expected[ids[subject], ids[other]] = kind
        seen = await views(world)
        assert {pair: view for pair, view in seen.items() if set(pair) <= set(ids)} == expected
    while await world.head() > head:
        await world.undo()
    assert await world.rows("character_relationships") == before


def test_a_pair_is_kept_in_the_order_of_bytes() -> None:
    """Rule U23."""
    assert pair_of("char_B", "char_a") == ("char_B", "char_a", "kind")
    assert pair_of("char_a", "char_B") == ("char_B", "char_a", "inverse_kind")
