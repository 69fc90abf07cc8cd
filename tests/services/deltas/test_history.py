"""The log as people read it: who changed what, from what, to what."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.enums import DeltaSource, EntityKind, LoggedTable
from db.paging import PageRequest
from db.reading import Writing
from db.tables import (
    CharacterRelationship,
    Delta,
    Happening,
    HappeningInvolvement,
    StoryEntity,
    StoryEntry,
)
from services import deltas
from services.access import ANONYMOUS, Viewer
from services.deltas import LOGGED, FieldChange, fields_between
from tests.conftest import People
from tests.factories import entity_values
from tests.services.deltas.desks import PERIODIC, Desk, desk

__all__ = ["desk"]

NOBODY_CHOSEN = {"row_id": None, "table": None, "source": None, "action_id": None}
ENTITIES = LOGGED[LoggedTable.ENTITIES]


async def changes(desk: Desk, *chosen: Delta) -> list[list[tuple[str, Any, Any]]]:
    """What the changes have made, oldest first; of all the log unless some are chosen."""
    asked = chosen or tuple(await desk.log())
    found = await deltas.changes_of_deltas(desk.writing, desk.people.owner, asked)
    return [[(each.path, each.before, each.after) for each in fields] for fields in found]


async def listed(
    writing: Writing, viewer: Viewer, branch_id: str, **chosen: Any
) -> list[tuple[int, str]]:
    (page,) = await deltas.DELTAS_OF_BRANCHES.pages(
        writing, [branch_id], PageRequest(), **{**NOBODY_CHOSEN, **chosen}, **viewer.parameters
    )
    return [(each.log_position, each.target_table) for each in page.nodes]


async def test_a_change_shows_what_was_and_what_came_of_it(desk: Desk) -> None:
    """Rule H6."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira", visual={"hair": "red"})
    state = {**mira["state"], "visual": {"hair": "grey", "eyes": "green"}, "traits": ["dry"]}
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss", state=state)
    state = {**state, "visual": {"eyes": "blue"}, "stackables": {"gold": 3}, "voice": "low"}
    await desk.edit(StoryEntity, mira["id"], state=state)
    await desk.edit(StoryEntity, mira["id"], state={**state, "stackables": {"gold": 5, "oil": 1}})
    await desk.edit(StoryEntity, mira["id"], status="retired", injection_mode="disabled")
    assert await changes(desk) == [
        [
            ("name", "Mira", "Mira Voss"),
            ("state.visual.hair", "red", "grey"),
            ("state.visual.eyes", None, "green"),
            ("state.traits", [], ["dry"]),
        ],
        [
            ("state.visual.hair", "grey", None),
            ("state.visual.eyes", "green", "blue"),
            ("state.voice", None, "low"),
            ("state.stackables.gold", None, 3),
        ],
        [("state.stackables.gold", 3, 5), ("state.stackables.oil", None, 1)],
        [("status", "ACTIVE", "RETIRED"), ("injectionMode", "AUTO", "DISABLED")],
    ]


async def test_a_made_row_is_shown_as_it_was_made_and_a_deleted_one_as_it_was(desk: Desk) -> None:
    """Rule H6."""
    async with desk.act() as action:
        row = await action.create(
            StoryEntity,
            {**entity_values(EntityKind.LOCATION, "Quay"), "state": {"parent_location_id": None}},
            prefix="loc",
        )
    await desk.edit(
        StoryEntity, row["id"], name="Quay Street", state={**row["state"], "condition": "wet"}
    )
    async with desk.act() as action:
        await action.delete(StoryEntity, await action.require(StoryEntity, row["id"]))
    made, changed, deleted = await changes(desk)
    common = [
        ("description", ""),
        ("status", "ACTIVE"),
        ("keywords", []),
        ("injectionMode", "AUTO"),
        ("priority", 50),
        ("nameCollisionFlag", False),
    ]
    assert made == [
        ("kind", None, "LOCATION"),
        ("name", None, "Quay"),
        *((path, None, value) for path, value in common),
        # An object in which nothing is said is shown whole.
        ("state", None, {"parent_location_id": None}),
        ("tags", None, []),
    ]
    assert changed == [("name", "Quay", "Quay Street"), ("state.condition", None, "wet")]
    assert deleted == [
        ("kind", "LOCATION", None),
        ("name", "Quay Street", None),
        *((path, value, None) for path, value in common),
        ("state.condition", "wet", None),
        ("tags", [], None),
    ]


async def test_a_row_that_went_with_another_one_keeps_its_history(desk: Desk) -> None:
    """Rule H7."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    async with desk.act() as action:
        told = await action.create(Happening, {"title": "The lamp goes out"})
        part = await action.create(
            HappeningInvolvement,
            {"happening_id": told["id"], "entity_id": mira["id"], "role": "witness"},
        )
    await desk.edit(HappeningInvolvement, part["id"], role="actor")
    before = (await changes(desk))[1:3]
    async with desk.act() as action:
        await action.delete(Happening, await action.require(Happening, told["id"]))
    assert (await changes(desk))[1:3] == before
    assert before == [
        [
            ("happeningId", None, told["id"]),
            ("entityId", None, mira["id"]),
            ("role", None, "witness"),
        ],
        [("role", "witness", "actor")],
    ]


async def test_what_was_taken_back_is_in_no_history(desk: Desk) -> None:
    """Rule H4."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    await desk.edit(StoryEntity, mira["id"], name="Mira Tann")
    await desk.undo()
    assert await changes(desk) == [[("name", "Mira", "Mira Voss")]]
    await desk.redo()
    assert await changes(desk) == [
        [("name", "Mira", "Mira Voss")],
        [("name", "Mira Voss", "Mira Tann")],
    ]


async def test_of_many_changes_of_a_row_any_can_be_asked_for(desk: Desk) -> None:
    """Rule H6."""
    mira = await desk.plant(EntityKind.CHARACTER, "0")
    for number in range(1, 8):
        await desk.edit(StoryEntity, mira["id"], name=str(number))
    log = await desk.log()
    assert await changes(desk, log[5], log[2]) == [[("name", "5", "6")], [("name", "2", "3")]]
    assert await changes(desk, log[2], log[2]) == [[("name", "2", "3")]] * 2


async def test_a_fork_has_its_own_history(desk: Desk) -> None:
    """Rule H4."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    entry = await desk.turn(2)
    fork_id = await desk.fork(entry["id"])
    await desk.edit(StoryEntity, mira["id"], name="Elsewhere")
    async with desk.act(branch_id=fork_id) as action:
        row = await action.require(StoryEntity, mira["id"])
        await action.update(StoryEntity, row, {"name": "Mira Tann"})
    for branch_id, name in ((desk.branch_id, "Elsewhere"), (fork_id, "Mira Tann")):
        (page,) = await deltas.DELTAS_OF_ROWS.pages(
            desk.writing,
            [f"{branch_id}:{mira['id']}"],
            PageRequest(),
            **desk.people.owner.parameters,
        )
        assert await changes(desk, *page.nodes) == [
            [("name", "Mira Voss", name)],
            [("name", "Mira", "Mira Voss")],
        ]


async def test_the_log_is_listed_newest_first_and_by_what_is_wanted(desk: Desk) -> None:
    """Rule H5."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    entry = await desk.turn(2)
    fact = await desk.fact(entry["id"], "The lamp goes out", mira["id"])
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    log = await desk.log()

    async def found(**chosen: Any) -> list[tuple[int, str]]:
        return await listed(desk.writing, desk.people.owner, desk.branch_id, **chosen)

    assert await found() == [
        (4, "entities"),
        (3, "happening_awareness"),
        (2, "happenings"),
        (1, "story_entries"),
    ]
    assert await found(row_id=mira["id"]) == [(4, "entities")]
    assert await found(row_id=fact["id"]) == [(2, "happenings")]
    assert await found(table="happenings") == [(2, "happenings")]
    assert await found(source=PERIODIC) == [(3, "happening_awareness"), (2, "happenings")]
    assert await found(source=DeltaSource.USER_EDIT, table="entities") == [(4, "entities")]
    assert await found(action_id=log[1].action_id) == [
        (3, "happening_awareness"),
        (2, "happenings"),
    ]
    assert await found(row_id="char_none") == []
    assert [each.anchor for each in log] == [f"{desk.branch_id}:{entry['id']}"] * 3 + [None]


async def test_strangers_and_nobody_read_no_history(desk: Desk, people: People) -> None:
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    await desk.edit(StoryEntity, mira["id"], name="Mira Voss")
    log = await desk.log()
    for viewer in (people.stranger, ANONYMOUS):
        assert await deltas.changes_of_deltas(desk.writing, viewer, log) == [[]]
        assert await listed(desk.writing, viewer, desk.branch_id) == []
        names = {(desk.branch_id, LoggedTable.ENTITIES, mira["id"])}
        assert await deltas.images_of_rows(desk.writing, viewer, names) == {}


async def test_rows_of_all_tables_are_read_at_once(desk: Desk) -> None:
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    odo = await desk.plant(EntityKind.CHARACTER, "Odo")
    entry = await desk.turn(2)
    first, second = sorted((mira["id"], odo["id"]))
    async with desk.act() as action:
        tie = await action.create(
            CharacterRelationship, {"a_id": first, "b_id": second, "kind": "rival"}
        )
    names = {
        (desk.branch_id, LoggedTable.ENTITIES, mira["id"]),
        (desk.branch_id, LoggedTable.STORY_ENTRIES, entry["id"]),
        (desk.branch_id, LoggedTable.CHARACTER_RELATIONSHIPS, tie["id"]),
        # An id of one table leads into no other.
        (desk.branch_id, LoggedTable.LORE, odo["id"]),
    }
    found = await deltas.images_of_rows(desk.writing, desk.people.owner, names)
    assert {name[2]: image for name, image in found.items()} == {
        each["id"]: each for each in (mira, entry, tie)
    }


async def test_an_entry_shows_its_metadata_part_by_part(desk: Desk) -> None:
    """Rule H6."""
    entry = await desk.turn(2, worldTime=60)
    meta = {**entry["metadata"], "worldTime": 90, "tokens": {"prompt": 1, "completion": 2}}
    await desk.edit(StoryEntry, entry["id"], anchor=entry["id"], metadata=meta, content="Edited.")
    assert (await changes(desk))[1] == [
        ("content", "It goes on.", "Edited."),
        ("metadata.worldTime", 60, 90),
        ("metadata.tokens.prompt", None, 1),
        ("metadata.tokens.completion", None, 2),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({"voice": "low"}, {}, [("state.voice", "low", None)]),
        ({"stackables": {}}, {}, [("state.stackables", {}, None)]),
        ({}, {"stackables": {}}, [("state.stackables", None, {})]),
        ({"stackables": {"a": 1}}, {}, [("state.stackables.a", 1, None)]),
        (
            {"stackables": {"a": 1}},
            {"stackables": {"a": 1, "b": 2}},
            [("state.stackables.b", None, 2)],
        ),
        ({"visual": {}}, {"visual": {"hair": "red"}}, [("state.visual.hair", None, "red")]),
        ({"inventory": ["a"]}, {"inventory": ["a", "b"]}, [("state.inventory", ["a"], ["a", "b"])]),
        (
            {"lastSeenAt": None},
            {"lastSeenAt": {"entryId": "e", "locationId": None, "worldTime": 1}},
            [("state.lastSeenAt.entryId", None, "e"), ("state.lastSeenAt.worldTime", None, 1)],
        ),
        ({"voice": "1"}, {"voice": "1"}, []),
    ],
)
def test_two_states_differ_in_these_fields(
    before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, Any, Any]]
) -> None:
    """Rule H6."""
    sides = [{"kind": "character", "state": each} for each in (before, after)]
    assert fields_between(ENTITIES, *sides) == [FieldChange(*each) for each in expected]


def test_no_more_fields_are_shown_than_the_bound() -> None:
    after = {"kind": "character", "state": {"stackables": {f"{n:03}": n for n in range(300)}}}
    before = {"kind": "character", "state": {"stackables": {}}}
    found = fields_between(ENTITIES, before, after)
    assert (len(found), found[-1].path) == (200, "state.stackables.199")


PIECES = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["Mira", "Odo"]),
        "tags": st.lists(st.sampled_from("ab"), max_size=2),
        "voice": st.sampled_from([None, "low", "high"]),
        "hair": st.sampled_from([None, "red", "grey"]),
        "gold": st.sampled_from([None, 0, 3]),
        "faction_id": st.sampled_from([None, "fact_1"]),
        "lastSeenAt": st.sampled_from([None, {"entryId": "e", "locationId": None, "worldTime": 5}]),
    },
)


def _changed(row: dict[str, Any], pieces: dict[str, Any]) -> dict[str, Any]:
    """Columns of a character after a few things were said of it; None takes back."""
    state = {**row["state"], "visual": dict(row["state"]["visual"])}
    holders = {"hair": state["visual"], "voice": state, "gold": dict(state.get("stackables", {}))}
    for key in ("hair", "voice", "gold"):
        if key in pieces:
            holders[key].pop(key, None)
            if pieces[key] is not None:
                holders[key][key] = pieces[key]
    if "gold" in pieces:
        state["stackables"] = holders["gold"]
    state.update({key: pieces[key] for key in ("faction_id", "lastSeenAt") if key in pieces})
    return {**{key: pieces[key] for key in ("name", "tags") if key in pieces}, "state": state}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(PIECES, min_size=1, max_size=5), is_deleted=st.booleans())
async def test_the_way_back_finds_each_state_that_the_row_has_been_in(
    desk: Desk, steps: list[dict[str, Any]], is_deleted: bool
) -> None:
    """Rule H6: what a change shows is what a witness of it would have seen."""
    row = await desk.plant(EntityKind.CHARACTER, "Mira")
    expected = []
    async with desk.act() as action:
        for pieces in steps:
            after = await action.update(StoryEntity, row, _changed(row, pieces))
            if after is not row:
                expected.append(fields_between(ENTITIES, row, after))
            row = after
        if is_deleted:
            await action.delete(StoryEntity, row)
            expected.append(fields_between(ENTITIES, row, None))
    log = [each for each in await desk.log() if each.target_id == row["id"]]
    assert await deltas.changes_of_deltas(desk.writing, desk.people.owner, log) == expected
