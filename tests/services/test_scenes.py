"""Where a story stands: its tail, its head turn, its tail scene."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntityKind, EntryKind
from db.tables import StoryEntry
from services import deltas, scenes
from services.scenes import TailScene
from tests.services.deltas.desks import Desk, desk

__all__ = ["desk"]

ACTION, REPLY, SYSTEM = EntryKind.USER_ACTION, EntryKind.AI_REPLY, EntryKind.SYSTEM


async def build_notice(desk: Desk, position: int) -> None:
    meta: dict[str, Any] = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0}
    row = {"position": position, "kind": SYSTEM, "content": "!", "metadata": meta}
    await deltas.plant_rows(desk.writing, desk.branch_id, StoryEntry, [row])


async def build(desk: Desk, kinds: list[EntryKind]) -> None:
    """Entries of these kinds behind the opening."""
    for position, kind in enumerate(kinds, start=2):
        if kind is SYSTEM:
            await build_notice(desk, position)
        else:
            await desk.turn(position, kind=kind)


@pytest.mark.parametrize(
    ("kinds", "tail", "turn"),
    [
        ([], 1, [1]),
        ([ACTION], 2, [2]),
        ([REPLY], 2, [2]),
        ([ACTION, REPLY], 3, [2, 3]),
        ([REPLY, REPLY], 3, [3]),
        ([ACTION, REPLY, ACTION], 4, [4]),
        ([ACTION, ACTION, REPLY], 4, [3, 4]),
        ([ACTION, REPLY, SYSTEM], 3, [2, 3]),
        ([SYSTEM], 1, [1]),
    ],
)
async def test_the_tail_and_the_head_turn_look_past_notices(
    desk: Desk, kinds: list[EntryKind], tail: int, turn: list[int]
) -> None:
    """Rule B30."""
    await build(desk, kinds)
    last = await scenes.narrative_tail(desk.writing, desk.branch_id)
    assert last is not None
    assert last.position == tail
    found = await scenes.head_turn(desk.writing, desk.branch_id)
    assert [each.position for each in found] == turn
    end, notice = await scenes.ends_of(desk.writing, desk.branch_id)
    assert end == last
    assert (notice is not None) == (SYSTEM in kinds)


async def test_a_branch_without_entries_stands_nowhere(desk: Desk) -> None:
    nowhere = "br_01900000-0000-7000-8000-000000000000"
    assert await scenes.narrative_tail(desk.writing, nowhere) is None
    assert await scenes.head_turn(desk.writing, nowhere) == []
    assert await scenes.ends_of(desk.writing, nowhere) == (None, None)
    assert await scenes.tail_scene(desk.writing, nowhere) == TailScene(None, (), None, frozenset())


async def test_the_tail_scene_is_the_latest_replys_and_an_action_at_the_tail_counts_as_a_place(
    desk: Desk,
) -> None:
    """Rule B31."""
    quay, office = [
        (await desk.plant(EntityKind.LOCATION, name))["id"] for name in ("Quay", "Office")
    ]
    mira = (await desk.plant(EntityKind.CHARACTER, "Mira"))["id"]
    told = await desk.turn(2, kind=REPLY, currentLocationId=quay, sceneEntities=[mira])
    scene = TailScene(told["id"], (mira,), quay, frozenset({quay}))
    assert await scenes.tail_scene(desk.writing, desk.branch_id) == scene
    await desk.turn(3, kind=ACTION, currentLocationId=office)
    both = TailScene(told["id"], (mira,), quay, frozenset({quay, office}))
    assert await scenes.tail_scene(desk.writing, desk.branch_id) == both
    await build_notice(desk, 4)
    assert await scenes.tail_scene(desk.writing, desk.branch_id) == both
