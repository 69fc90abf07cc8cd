"""Eras: when they begin, and what they do to the times of a story."""

from __future__ import annotations

from typing import Any

import pytest

from db.tables import Branch, EraFlip
from services import calendars, stories
from services.errors import DomainError
from services.stories import labels_of_times
from tests.services.deltas.desks import Desk, desk
from tests.services.deltas.ledgers import rows_of

__all__ = ["desk"]

MOST = 100_000_000_000
NOTHING: dict[str, Any] = {}


async def flip(desk: Desk, era_name: str, **when: Any) -> tuple[EraFlip, Branch]:
    return await stories.flip_era(desk.writing, desk.people.owner, era_name, **when)


async def refusal(desk: Desk, attempt: Any) -> tuple[str, tuple[str | int, ...]]:
    """The code and path of what is refused; nothing has changed."""
    before, log = await desk.state(), await desk.log()
    with pytest.raises(DomainError) as refused:
        await attempt
    assert (await desk.state(), await desk.log()) == (before, log)
    return refused.value.code, refused.value.path


async def test_an_era_begins_at_an_entry_or_at_a_time(desk: Desk) -> None:
    """Rule B60."""
    turn = await desk.turn(2, worldTime=60)
    before = await desk.state()
    at_entry, branch = await flip(
        desk, "Showa", entry_id=f"{desk.branch_id}:{turn['id']}", expected_head=1
    )
    assert (at_entry.at_world_time, at_entry.era_name, branch.head) == (60, "Showa", 2)
    first, _ = await flip(desk, "Taisho", branch_id=desk.branch_id, at_world_time=0)
    assert (first.at_world_time, first.branch_id) == (0, desk.branch_id)
    log = (await desk.log())[1:]
    assert [(each.target_table, each.op, each.entry_id, each.source) for each in log] == [
        ("branch_era_flips", "create", None, "user_edit")
    ] * 2
    await desk.undo()
    await desk.undo()
    assert await desk.state() == before


async def test_an_era_is_renamed_moved_and_taken_back(desk: Desk) -> None:
    """Rule B60."""
    branch_id, owner = desk.branch_id, desk.people.owner
    first, second = [
        (await flip(desk, str(at), branch_id=branch_id, at_world_time=at))[0] for at in (1, 2)
    ]
    moved, branch = await stories.update_flip(
        desk.writing, owner, second.id, {"era_name": "Late", "at_world_time": MOST}, 2
    )
    assert (moved.era_name, moved.at_world_time, branch.head) == ("Late", MOST, 3)
    # Its own moment is no other one's.
    same, branch = await stories.update_flip(
        desk.writing, owner, second.id, {"at_world_time": MOST}
    )
    assert (same, branch.head) == (moved, 3)
    deleted_id, branch = await stories.delete_flip(desk.writing, owner, first.id, 3)
    assert (deleted_id, branch.head) == (first.id, 4)
    rows = await rows_of(desk.writing, EraFlip, branch_id)
    assert [each.era_name for each in rows] == ["Late"]
    assert {each.entry_id for each in await desk.log()} == {None}
    for _ in range(2):
        await desk.undo()
    rows = await rows_of(desk.writing, EraFlip, branch_id)
    assert sorted((each.at_worldtime, each.era_name) for each in rows) == [(1, "1"), (2, "2")]


async def test_what_is_no_beginning_of_an_era_is_refused(desk: Desk) -> None:
    """Rule B60."""
    branch_id, owner = desk.branch_id, desk.people.owner
    turn = await desk.turn(2, worldTime=60)
    entry_id = f"{branch_id}:{turn['id']}"
    here: dict[str, Any] = {"branch_id": branch_id, "at_world_time": 60}
    taken, _ = await flip(desk, "Showa", **here)
    other, _ = await flip(desk, "Heisei", branch_id=branch_id, at_world_time=61)
    at = ("input", "atWorldTime")
    for when, name, code, path in (
        (here, "x", "ERA_FLIP_EXISTS", at),
        ({"entry_id": entry_id}, "x", "ERA_FLIP_EXISTS", ("input", "entryId")),
        ({**here, "at_world_time": -1}, "x", "OUT_OF_RANGE", at),
        ({**here, "at_world_time": MOST + 1}, "x", "OUT_OF_RANGE", at),
        ({**here, "expected_head": 1}, "x", "CONFLICT", ("input", "expectedHead")),
        ({"branch_id": branch_id}, "x", "INVALID", ("input",)),
        ({"at_world_time": 1}, "x", "INVALID", ("input",)),
        ({**here, "entry_id": entry_id}, "x", "INVALID", ("input",)),
        (NOTHING, "x", "INVALID", ("input",)),
        ({"entry_id": turn["id"]}, "x", "NOT_FOUND", ("input", "entryId")),
        ({**here, "branch_id": "br_1"}, "x", "NOT_FOUND", ("input", "branchId")),
        (here, " ", "TEXT_EMPTY", ("input", "eraName")),
        (here, "x" * 501, "TEXT_TOO_LONG", ("input", "eraName")),
    ):
        assert await refusal(desk, flip(desk, name, **when)) == (code, path)
    for changes, code, path in (
        ({"at_world_time": 60}, "ERA_FLIP_EXISTS", at),
        ({"at_world_time": -1}, "OUT_OF_RANGE", at),
        ({"era_name": ""}, "TEXT_EMPTY", ("input", "eraName")),
    ):
        attempt = stories.update_flip(desk.writing, owner, other.id, changes)
        assert await refusal(desk, attempt) == (code, path)
    stranger, path = desk.people.stranger, ("input", "eraFlipId")
    refused = await refusal(desk, stories.update_flip(desk.writing, stranger, taken.id, {}))
    assert refused == ("NOT_FOUND", path)
    refused = await refusal(desk, stories.delete_flip(desk.writing, stranger, taken.id))
    assert refused == ("NOT_FOUND", path)


async def test_a_branch_has_as_many_eras_as_one_list_shows(desk: Desk) -> None:
    """Rule B60."""
    async with desk.act() as action:
        for at in range(200):
            await action.create(EraFlip, {"at_worldtime": at, "era_name": str(at)})
    attempt = flip(desk, "x", branch_id=desk.branch_id, at_world_time=200)
    assert await refusal(desk, attempt) == ("LIMIT_REACHED", ())


# --- what times are called ---

JAPAN = calendars.BUILT_INS["imperial-japan"].definition
MEIJI = {"year": 1868, "month": 10, "day": 23}


def eras(*flips: tuple[int, str]) -> list[EraFlip]:
    return [EraFlip(branch_id="", row_id="", at_worldtime=at, era_name=name) for at, name in flips]


def test_times_are_called_by_the_era_that_has_begun() -> None:
    """Rules B45, B61."""
    taisho = 1_381_104_000
    flips = eras((taisho, "Taisho"))
    plain = labels_of_times(JAPAN, MEIJI, [0, taisho], [])
    labels = labels_of_times(JAPAN, MEIJI, [0, taisho - 1, taisho, 0], flips)
    assert list(labels) == [0, taisho - 1, taisho]
    assert labels[0] == plain[0]
    assert ("Meiji" in labels[taisho - 1], "Taisho" in labels[taisho]) == (True, True)
    assert labels[taisho] != plain[taisho]
    earth = calendars.BUILT_INS["earth-gregorian"].definition
    origin = {"year": 2024, "month": 1, "day": 1}
    assert labels_of_times(earth, origin, [0], eras((0, "x"))) == {0: "January 1, 2024 AD 00:00"}


def test_a_time_that_cannot_be_called_anything_is_a_number() -> None:
    """Rule B45."""
    assert labels_of_times(None, MEIJI, [5], []) == {5: "5"}
    assert labels_of_times(JAPAN, {"count": 1}, [5], []) == {5: "5"}


def test_any_number_of_times_has_labels() -> None:
    """One page has few of them, a level of many branches has many."""
    labels = labels_of_times(JAPAN, MEIJI, range(450), [])
    assert list(labels) == list(range(450))
