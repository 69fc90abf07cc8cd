"""Entries: what is inherited, what is logged, what is refused, and what an edit takes back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import EntityKind, EntityStatus, EntryKind
from db.tables import Branch, BranchEvent, StoryEntity, StoryEntry
from services import deltas, stories
from services.access import require_row
from services.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from services.stories import NewStory
from tests.conftest import People
from tests.factories import append_entry, make_branch
from tests.services.deltas.desks import PERIODIC, Desk, desk
from tests.services.deltas.ledgers import rows_of
from tests.services.stories.stories import plain

__all__ = ["desk"]

ACTION, REPLY, SYSTEM = EntryKind.USER_ACTION, EntryKind.AI_REPLY, EntryKind.SYSTEM
OPENING = EntryKind.OPENING
MOST = 100_000_000_000
NOWHERE = "char_01900000-0000-7000-8000-000000000000"
BARE: dict[str, Any] = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0}


async def append(
    desk: Desk, kind: EntryKind = REPLY, content: str = "It goes on.", **changes: Any
) -> StoryEntry:
    entry, _ = await stories.append_entry(
        desk.writing, desk.people.owner, desk.branch_id, kind, content, changes
    )
    return entry


async def edit(desk: Desk, entry: StoryEntry, content: str) -> StoryEntry:
    edited, _ = await stories.edit_entry(desk.writing, desk.people.owner, entry.id, content)
    return edited


async def correct(desk: Desk, entry: StoryEntry, **changes: Any) -> StoryEntry:
    corrected, _ = await stories.update_meta(desk.writing, desk.people.owner, entry.id, changes)
    return corrected


async def delete(desk: Desk, entry: StoryEntry) -> Branch:
    deleted_id, branch = await stories.delete_entry(desk.writing, desk.people.owner, entry.id)
    assert deleted_id == entry.id
    return branch


async def entries(desk: Desk) -> list[tuple[int, str, str]]:
    rows = await rows_of(desk.writing, StoryEntry, desk.branch_id)
    return sorted((each.position, str(each.kind), each.content) for each in rows)


async def refusal(desk: Desk, attempt: Any) -> tuple[str, tuple[str | int, ...]]:
    """The code and path of what is refused; nothing has changed."""
    before, log = await desk.state(), await desk.log()
    with pytest.raises(DomainError) as refused:
        await attempt
    assert (await desk.state(), await desk.log()) == (before, log)
    return refused.value.code, refused.value.path


async def test_an_entry_stands_behind_the_last_one_with_its_scene_place_and_time(
    desk: Desk,
) -> None:
    """Rules B32, B33."""
    quay = (await desk.plant(EntityKind.LOCATION, "Quay"))["id"]
    mira = (await desk.plant(EntityKind.CHARACTER, "Mira"))["id"]
    report = {"layer": "per_turn_classifier"}
    told = await desk.turn(
        2,
        kind=REPLY,
        sceneEntities=[mira],
        currentLocationId=quay,
        worldTime=60,
        summary="Fog.",
        model="m",
        stateReport=report,
        nextTurnSuggestions={"items": [], "source": "refresh"},
        retrievalQueries=["lamps"],
    )
    action, branch = await stories.append_entry(
        desk.writing, desk.people.owner, desk.branch_id, ACTION, "I climb.", {}, expected_head=1
    )
    scene = {"sceneEntities": [mira], "currentLocationId": quay, "worldTime": 60}
    assert (action.position, action.kind, action.content) == (3, "user_action", "I climb.")
    assert (action.meta, action.chapter_id, branch.head) == (scene, None, 2)
    reply = await append(
        desk,
        world_time_delta=30,
        scene_entity_ids=[],
        current_location_id=None,
        model="other",
        summary="She climbs.",
    )
    assert reply.meta == {**BARE, "worldTime": 90, "model": "other", "summary": "She climbs."}
    log = await desk.log()
    assert [(each.op, each.target_id, each.entry_id, each.source) for each in log] == [
        ("create", each, each, "user_edit") for each in (told["id"], action.row_id, reply.row_id)
    ]
    assert len({each.action_id for each in log}) == 3
    undone = await desk.undo()
    assert [(each.table, each.op, each.row_id) for each in undone.reversed[0].changes] == [
        ("story_entries", "create", reply.id)
    ]
    assert [position for position, _, _ in await entries(desk)] == [1, 2, 3]


async def test_ids_of_a_scene_come_bare_or_with_their_branch_and_count_once(desk: Desk) -> None:
    """Rule B36."""
    mira, key = [
        (await desk.plant(kind, name))["id"]
        for kind, name in ((EntityKind.CHARACTER, "Mira"), (EntityKind.ITEM, "Key"))
    ]
    retired = await desk.plant(EntityKind.CHARACTER, "Odo")
    await desk.edit(StoryEntity, retired["id"], status=EntityStatus.RETIRED)
    given_ids = [f"{desk.branch_id}:{key}", mira, key, retired["id"]]
    entry = await append(desk, scene_entity_ids=given_ids)
    assert entry.scene_entity_ids == [key, mira, retired["id"]]


async def test_last_seen_is_left_to_the_classifier(desk: Desk) -> None:
    """Rule B39."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    await append(desk, scene_entity_ids=[mira["id"]])
    state = await desk.state()
    assert state["entities"][mira["id"]]["state"]["lastSeenAt"] is None


@pytest.mark.parametrize(
    ("kind", "content", "changes", "code", "field"),
    [
        (OPENING, "Again.", {}, "OPENING_EXISTS", ("kind",)),
        (REPLY, " \n", {}, "TEXT_EMPTY", ("content",)),
        (REPLY, "x" * 1_000_001, {}, "TEXT_TOO_LONG", ("content",)),
        (ACTION, "x", {"model": "m"}, "WRONG_KIND", ("model",)),
        (REPLY, "x", {"model": " "}, "TEXT_EMPTY", ("model",)),
        (REPLY, "x", {"summary": "x" * 2_001}, "TEXT_TOO_LONG", ("summary",)),
        (REPLY, "x", {"world_time": -1}, "OUT_OF_RANGE", ("worldTime",)),
        (REPLY, "x", {"world_time": MOST + 1}, "OUT_OF_RANGE", ("worldTime",)),
        (REPLY, "x", {"world_time_delta": -1}, "OUT_OF_RANGE", ("worldTimeDelta",)),
        (REPLY, "x", {"world_time_delta": MOST + 1}, "OUT_OF_RANGE", ("worldTimeDelta",)),
        (
            REPLY,
            "x",
            {"world_time": 1, "world_time_delta": 1},
            "INVALID",
            ("worldTimeDelta",),
        ),
        (REPLY, "x", {"scene_entity_ids": [NOWHERE]}, "NOT_FOUND", ("sceneEntityIds", 0)),
        (REPLY, "x", {"scene_entity_ids": ["x"]}, "NOT_FOUND", ("sceneEntityIds", 0)),
        (REPLY, "x", {"scene_entity_ids": [NOWHERE] * 201}, "LIMIT_REACHED", ("sceneEntityIds",)),
        (REPLY, "x", {"current_location_id": NOWHERE}, "NOT_FOUND", ("currentLocationId",)),
    ],
)
async def test_what_cannot_be_appended_is_refused(
    desk: Desk,
    kind: EntryKind,
    content: str,
    changes: Mapping[str, Any],
    code: str,
    field: tuple[str | int, ...],
) -> None:
    """Rules B34, B35, B36."""
    refused = await refusal(desk, append(desk, kind, content, **changes))
    assert refused == (code, ("input", *field))


async def test_only_characters_and_items_are_present_and_only_places_entered(desk: Desk) -> None:
    """Rules B36, B37."""
    quay, guild = [
        (await desk.plant(kind, kind))["id"] for kind in (EntityKind.LOCATION, EntityKind.FACTION)
    ]
    mira = (await desk.plant(EntityKind.CHARACTER, "Mira"))["id"]
    entry = await append(desk)
    for number, ids in ((0, [quay]), (1, [mira, guild])):
        for attempt in (
            append(desk, scene_entity_ids=ids),
            correct(desk, entry, scene_entity_ids=ids),
        ):
            path = ("input", "sceneEntityIds", number)
            assert await refusal(desk, attempt) == ("WRONG_KIND", path)
    for attempt in (
        append(desk, current_location_id=mira),
        correct(desk, entry, current_location_id=mira),
    ):
        assert await refusal(desk, attempt) == ("WRONG_KIND", ("input", "currentLocationId"))


async def test_nothing_enters_a_retired_place_and_what_is_there_stays(desk: Desk) -> None:
    """Rule B37."""
    quay = (await desk.plant(EntityKind.LOCATION, "Quay"))["id"]
    first = await append(desk)
    there = await append(desk, current_location_id=quay)
    await desk.edit(StoryEntity, quay, status=EntityStatus.RETIRED)
    for attempt in (correct(desk, first, current_location_id=quay),):
        refused = await refusal(desk, attempt)
        assert refused == ("RETIRED_PLACE", ("input", "currentLocationId"))
    # Saying again where it is already enters nothing; and the next entry is there too.
    again = await correct(desk, there, current_location_id=quay, world_time=5)
    assert (again.current_location_id, again.world_time) == (quay, 5)
    assert (await append(desk, current_location_id=quay)).current_location_id == quay
    assert (await append(desk)).current_location_id == quay
    left = await append(desk, current_location_id=None)
    assert left.current_location_id is None
    refused = await refusal(desk, append(desk, current_location_id=quay))
    assert refused == ("RETIRED_PLACE", ("input", "currentLocationId"))


async def test_who_has_seen_another_head_appends_nothing(desk: Desk) -> None:
    await append(desk)
    for attempt in (
        stories.append_entry(
            desk.writing, desk.people.owner, desk.branch_id, REPLY, "x", {}, expected_head=0
        ),
        stories.append_entry(
            desk.writing, desk.people.owner, desk.branch_id, SYSTEM, "x", {}, expected_head=0
        ),
    ):
        assert await refusal(desk, attempt) == ("CONFLICT", ("input", "expectedHead"))


async def test_a_draft_without_opening_takes_no_entry(database: Database, people: People) -> None:
    """Rule B34."""
    async with database.writing() as writing:
        draft: NewStory = plain(is_draft=True, opening=None)
        story, _ = await stories.create_story(writing, people.owner, draft)
        assert story.current_branch_id is not None
        for kind in (ACTION, SYSTEM):
            with pytest.raises(DomainError) as refused:
                await stories.append_entry(
                    writing, people.owner, story.current_branch_id, kind, "x", {}
                )
            assert refused.value.code == "OPENING_REQUIRED"
            assert refused.value.path == ("input", "branchId")


async def test_strangers_change_nothing(desk: Desk) -> None:
    entry, stranger = await append(desk), desk.people.stranger
    for attempt, field in (
        (
            stories.append_entry(desk.writing, stranger, desk.branch_id, REPLY, "x", {}),
            "branchId",
        ),
        (stories.edit_entry(desk.writing, stranger, entry.id, "x"), "entryId"),
        (stories.update_meta(desk.writing, stranger, entry.id, {}), "entryId"),
        (stories.delete_entry(desk.writing, stranger, entry.id), "entryId"),
    ):
        assert await refusal(desk, attempt) == ("NOT_FOUND", ("input", field))


# --- notices ---


async def events(desk: Desk) -> list[tuple[str, int, list[dict[str, str]]]]:
    rows = await rows_of(desk.writing, BranchEvent, desk.branch_id)
    return [(str(each.kind), each.head, each.changes_json) for each in rows]


def changed(op: str, entry: StoryEntry) -> dict[str, str]:
    return {"table": "story_entries", "op": op, "id": entry.row_id}


async def test_a_notice_is_the_last_entry_and_the_only_one_and_not_in_the_log(
    desk: Desk,
) -> None:
    """Rule B38."""
    first = await append(desk, SYSTEM, "No model.", world_time=7)
    assert (first.position, first.meta) == (2, {**BARE, "worldTime": 7})
    second, branch = await stories.append_entry(
        desk.writing, desk.people.owner, desk.branch_id, SYSTEM, "No key.", {}, expected_head=0
    )
    assert (second.position, branch.head, await desk.log()) == (2, 0, [])
    assert await entries(desk) == [(1, "opening", "It begins."), (2, "system", "No key.")]
    # What it says of time and place is not handed on.
    action = await append(desk, ACTION, "I go.")
    assert (action.position, action.world_time) == (2, 0)
    assert await entries(desk) == [(1, "opening", "It begins."), (2, "user_action", "I go.")]
    third = await append(desk, SYSTEM, "Again.")
    await delete(desk, third)
    assert [each.target_id for each in await desk.log()] == [action.row_id]
    assert await events(desk) == [
        ("notice", 0, [changed("create", first)]),
        ("notice", 0, [changed("delete", first), changed("create", second)]),
        ("action", 1, [changed("create", action), changed("delete", second)]),
        ("notice", 1, [changed("create", third)]),
        ("notice", 1, [changed("delete", third)]),
    ]


async def test_a_notice_leaves_what_can_be_redone(desk: Desk) -> None:
    """Rule B38."""
    reply = await append(desk)
    await desk.undo()
    await append(desk, SYSTEM, "It failed.")
    await desk.redo()
    assert await entries(desk) == [(1, "opening", "It begins."), (2, "ai_reply", "It goes on.")]
    assert (await desk.log())[0].target_id == reply.row_id


async def test_a_notice_is_neither_edited_nor_corrected(desk: Desk) -> None:
    """Rules B40, B43."""
    notice = await append(desk, SYSTEM, "No model.")
    for attempt in (edit(desk, notice, "x"), correct(desk, notice, world_time=1)):
        assert await refusal(desk, attempt) == ("NOT_IN_THE_STORY", ("input", "entryId"))


# --- edits ---


async def test_an_edit_is_one_change_about_its_entry(desk: Desk) -> None:
    """Rules B40, B42."""
    first, second, third = [await append(desk, content=each) for each in ("one", "two", "three")]
    edited = await edit(desk, second, "TWO")
    assert (edited.content, edited.position, edited.meta) == ("TWO", 3, second.meta)
    log = await desk.log()
    last = log[-1]
    assert (last.op, last.target_id, last.entry_id) == ("update", second.row_id, second.row_id)
    # Below the head turn nothing more is written down.
    assert last.undo_payload == {"content": "two"}
    same = await edit(desk, second, "TWO")
    assert (same.content, len(await desk.log())) == ("TWO", len(log))
    await desk.undo()
    assert [text for _, _, text in await entries(desk)] == ["It begins.", "one", "two", "three"]
    # An edit of an entry goes with it, and stays with it.
    await edit(desk, first, "ONE")
    await edit(desk, third, "THREE")
    await desk.back_to(f"{desk.branch_id}:{second.row_id}")
    assert [text for _, _, text in await entries(desk)] == ["It begins.", "ONE", "two"]


async def test_an_opening_can_be_reworded(desk: Desk) -> None:
    opening = (await rows_of(desk.writing, StoryEntry, desk.branch_id))[0]
    edited = await edit(desk, opening, "Otherwise.")
    assert (edited.kind, edited.content) == ("opening", "Otherwise.")
    assert await refusal(desk, edit(desk, opening, "")) == ("TEXT_EMPTY", ("input", "content"))


async def processed_through(desk: Desk) -> int:
    return int((await desk.branch()).classifier_status.get("processedThrough", 0))


async def test_an_edit_in_the_head_turn_takes_back_what_was_concluded_from_it(
    desk: Desk,
) -> None:
    """Rule B41."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira")
    before = await append(desk, REPLY, "before")
    action = await append(desk, ACTION, "I look.")
    reply = await append(desk, REPLY, "A key.")
    await append(desk, SYSTEM, "No key.")
    for entry, title in ((before, "of before"), (action, "of action"), (reply, "of reply")):
        await desk.fact(entry.row_id, title, mira["id"])
    async with desk.act(PERIODIC) as introducing:
        met = await introducing.create(
            StoryEntity,
            {"kind": "item", "name": "Key", "state": {"at_location_id": None}}
            | {"status": "active", "injection_mode": "auto"},
            anchor=reply.row_id,
            prefix="item",
        )
    await edit(desk, reply, "No key at all.")
    assert await desk.titles() == ["of action", "of before"]
    assert (await desk.log())[-1].undo_payload == {
        "content": "A key.",
        "$invalidationScope": {"entryIds": [reply.row_id], "processedThrough": 3},
    }
    await edit(desk, action, "I listen.")
    assert await desk.titles() == ["of before"]
    assert (await desk.log())[-1].undo_payload == {
        "content": "I look.",
        "$invalidationScope": {
            "entryIds": [action.row_id, reply.row_id],
            "processedThrough": 2,
        },
    }
    state = await desk.state()
    assert met["id"] in state["entities"]
    assert len(state["happening_awareness"]) == 1
    # Further up nothing is taken back.
    await edit(desk, before, "Before.")
    assert await desk.titles() == ["of before"]
    # Undoing the edits takes back what has been concluded from the new texts.
    await desk.fact(reply.row_id, "of the new reply")
    for _ in range(3):
        await desk.undo()
    assert await desk.titles() == ["of before"]
    texts = [text for _, _, text in await entries(desk)]
    assert texts[1:4] == ["before", "I look.", "A key."]


# --- corrections ---


async def test_a_correction_changes_one_entry_and_stays_with_it(desk: Desk) -> None:
    """Rule B43."""
    quay = (await desk.plant(EntityKind.LOCATION, "Quay"))["id"]
    mira = (await desk.plant(EntityKind.CHARACTER, "Mira"))["id"]
    report = {"layer": "piggyback_tagged_block", "worldTimeDelta": 5}
    told = await desk.turn(2, worldTime=5, summary="Fog.", stateReport=report)
    entry = await require_row(
        desk.writing, desk.people.owner, StoryEntry, f"{desk.branch_id}:{told['id']}"
    )
    later = await append(desk)
    corrected = await correct(
        desk,
        entry,
        world_time=9,
        scene_entity_ids=[mira],
        current_location_id=f"{desk.branch_id}:{quay}",
        summary=None,
    )
    assert corrected.meta == {
        "worldTime": 9,
        "sceneEntities": [mira],
        "currentLocationId": quay,
        "stateReport": report,
    }
    (delta,) = [each for each in await desk.log() if each.op == "update"]
    assert (delta.entry_id, delta.undo_payload) == (
        told["id"],
        {
            "metadata": {
                "worldTime": 5,
                "sceneEntities": [],
                "currentLocationId": None,
                "summary": "Fog.",
            }
        },
    )
    rows = await rows_of(desk.writing, StoryEntry, desk.branch_id)
    (unchanged,) = [each for each in rows if each.row_id == later.row_id]
    assert unchanged.meta == {**BARE, "worldTime": 5}
    assert await correct(desk, entry, world_time=9) == corrected
    await desk.back_to(entry.id)
    rows = await rows_of(desk.writing, StoryEntry, desk.branch_id)
    assert [each.world_time for each in rows if each.row_id == told["id"]] == [9]
    refused = await refusal(desk, correct(desk, entry, world_time=MOST + 1))
    assert refused == ("OUT_OF_RANGE", ("input", "worldTime"))


# --- deletion ---


async def test_an_entry_is_taken_out_and_comes_back(desk: Desk) -> None:
    """Rule B44."""
    first = await append(desk, content="one")
    second = await append(desk, content="two")
    before = await desk.state()
    branch = await delete(desk, first)
    assert branch.head == 3
    assert [position for position, _, _ in await entries(desk)] == [1, 3]
    third = await append(desk, content="three")
    assert third.position == 4
    await desk.undo()
    await desk.undo()
    assert await desk.state() == before
    await delete(desk, second)
    assert (await append(desk)).position == 3
    opening = (await rows_of(desk.writing, StoryEntry, desk.branch_id))[0]
    assert opening.kind == OPENING
    refused = await refusal(desk, delete(desk, opening))
    assert refused == ("OPENING_STAYS", ("input", "entryId"))
    with pytest.raises(NotFound):
        await delete(desk, second)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from([ACTION, REPLY])),
        st.tuples(st.just("notice"), st.just(SYSTEM)),
        st.tuples(st.just("edit"), st.integers(0, 9)),
        st.tuples(st.just("correct"), st.integers(0, 9)),
        st.tuples(st.just("delete"), st.integers(0, 9)),
    ),
    max_size=12,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
async def test_undoing_everything_brings_back_the_beginning(
    database: Database, people: People, steps: list[tuple[str, Any]]
) -> None:
    """Whatever was appended, edited, corrected and deleted; and notices never pile up."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        desk = Desk(writing, people, branch.id)
        beginning = await desk.state()
        for number, (step, what) in enumerate(steps):
            if step in ("append", "notice"):
                await append(desk, what, f"text {number}")
            else:
                rows = await rows_of(writing, StoryEntry, branch.id)
                entry = rows[what % len(rows)]
                # The opening and notices do not take all of it.
                with suppress(Forbidden, Invalid):
                    if step == "edit":
                        await edit(desk, entry, f"edited {number}")
                    elif step == "correct":
                        await correct(desk, entry, world_time=number)
                    else:
                        await delete(desk, entry)
            rows = await rows_of(writing, StoryEntry, branch.id)
            notices = [each.position for each in rows if each.kind == SYSTEM]
            assert notices in ([], [max(each.position for each in rows)])
        while (await desk.undo()).reversed:
            pass
        for notice in await rows_of(writing, StoryEntry, branch.id):
            if notice.kind == SYSTEM:
                await delete(desk, notice)
        assert await desk.state() == beginning
        assert await desk.log() == []


async def test_two_writers_never_share_a_position(database: Database, people: People) -> None:
    """Rule B32."""
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
        async with deltas.acting(writing, people.owner, branch.id) as action:
            await append_entry(action, 2)
    async with database.writing() as one:
        entry, _ = await stories.append_entry(one, people.owner, branch.id, ACTION, "a", {}, 1)
        assert entry.position == 3
    async with database.writing() as two:
        with pytest.raises(Conflict):
            await stories.append_entry(two, people.owner, branch.id, ACTION, "b", {}, 1)
        entry, _ = await stories.append_entry(two, people.owner, branch.id, ACTION, "b", {}, 2)
        assert entry.position == 4
