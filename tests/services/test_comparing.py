"""Two branches side by side: what they share, and what differs, exactly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import EntityKind, LoggedTable
from db.paging import PageRequest
from db.tables import (
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    Translation,
)
from services import comparing, deltas
from services.access import ANONYMOUS, Viewer
from services.errors import Invalid
from tests.conftest import People
from tests.factories import append_entry, entity_values, make_branch
from tests.services.deltas.desks import Desk, desk
from tests.services.diffs import diff_of, differences, plain, short

__all__ = ["desk"]


async def forked(desk: Desk) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A fork behind the second entry; two characters."""
    mira = await desk.plant(EntityKind.CHARACTER, "Mira Voss", visual={"hair": "red"})
    odo = await desk.plant(EntityKind.CHARACTER, "Odo Tann")
    entry = await desk.turn(2)
    return await desk.fork(entry["id"]), mira, odo


async def test_a_fresh_fork_is_the_same(desk: Desk) -> None:
    """Rule H10."""
    fork_id, _, _ = await forked(desk)
    assert await differences(desk, desk.branch_id, fork_id) == []
    assert await differences(desk, desk.branch_id, desk.branch_id) == []


async def test_what_one_branch_alone_has_or_says_is_told_with_both_sides(desk: Desk) -> None:
    """Rules H8, H11."""
    fork_id, mira, odo = await forked(desk)
    state = {**mira["state"], "visual": {"hair": "grey"}}
    await desk.edit(StoryEntity, mira["id"], description="Tall.", state=state, status="staged")
    async with desk.act(branch_id=fork_id) as action:
        entry = await append_entry(action, 3, content="  The  lamp\n lights. ")
        await action.create(
            Lore, {"title": "Oil", "body": "It is taxed.", "injection_mode": "auto"}
        )
        await action.delete(StoryEntity, await action.require(StoryEntity, odo["id"]))
    assert plain(await differences(desk, desk.branch_id, fork_id)) == [
        (
            "story_entries",
            "added",
            "The lamp lights.",
            [
                ("position", None, 3),
                ("kind", None, "AI_REPLY"),
                ("content", None, "  The  lamp\n lights. "),
                ("metadata.sceneEntities", None, []),
                ("metadata.worldTime", None, 0),
            ],
        ),
        (
            "entities",
            "changed",
            "Mira Voss",
            [
                ("description", "Tall.", ""),
                ("status", "STAGED", "ACTIVE"),
                ("state.visual.hair", "grey", "red"),
            ],
        ),
        (
            "entities",
            "removed",
            "Odo Tann",
            [
                ("kind", "CHARACTER", None),
                ("name", "Odo Tann", None),
                ("description", "", None),
                ("status", "ACTIVE", None),
                ("keywords", [], None),
                ("injectionMode", "AUTO", None),
                ("priority", 50, None),
                ("nameCollisionFlag", False, None),
                ("state.visual", {}, None),
                ("state.traits", [], None),
                ("state.drives", [], None),
                ("state.equipped_items", [], None),
                ("state.inventory", [], None),
                ("tags", [], None),
            ],
        ),
        (
            "lore",
            "added",
            "Oil",
            [
                ("title", None, "Oil"),
                ("body", None, "It is taxed."),
                ("tags", None, []),
                ("keywords", None, []),
                ("injectionMode", None, "AUTO"),
                ("priority", None, 50),
            ],
        ),
    ]
    found = await differences(desk, desk.branch_id, fork_id)
    assert [each.row_id for each in found][:3] == [entry["id"], mira["id"], odo["id"]]


async def test_the_other_way_round_is_the_mirror_image(desk: Desk) -> None:
    """Rule H8."""
    fork_id, mira, odo = await forked(desk)
    await desk.edit(StoryEntity, mira["id"], name="Mira")
    async with desk.act(branch_id=fork_id) as action:
        await action.delete(StoryEntity, await action.require(StoryEntity, odo["id"]))
    forth = plain(await differences(desk, desk.branch_id, fork_id))
    back = plain(await differences(desk, fork_id, desk.branch_id))
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    assert [(table, turned[kind]) for table, kind, _, _ in forth] == [
        (table, kind) for table, kind, _, _ in back
    ]
    assert [[(path, right, left) for path, left, right in each[3]] for each in forth] == [
        each[3] for each in back
    ]


async def test_a_link_is_called_by_what_it_joins(desk: Desk) -> None:
    """Rule H9."""
    fork_id, mira, odo = await forked(desk)
    first, second = sorted([mira, odo], key=lambda each: str(each["id"]))
    async with desk.act(branch_id=fork_id) as action:
        told = await action.create(Happening, {"title": "The lamp goes out"})
        ends = {"happening_id": told["id"]}
        await action.create(HappeningInvolvement, {**ends, "entity_id": mira["id"]})
        await action.create(HappeningAwareness, {**ends, "character_id": odo["id"]})
        tie = await action.create(
            CharacterRelationship, {"a_id": first["id"], "b_id": second["id"], "kind": "rival"}
        )
        for kind, target, name in (
            ("entity", mira["id"], "name"),
            ("character_relationship", tie["id"], "kind"),
        ):
            await action.create(
                Translation,
                {
                    "target_kind": kind,
                    "target_id": target,
                    "field": name,
                    "language": "de",
                    "translated_text": "Gegner",
                },
            )
        # Its end is in neither branch.
        await action.create(HappeningInvolvement, {**ends, "entity_id": "char_gone"})
    found = short(await differences(desk, desk.branch_id, fork_id))
    assert found == [
        ("happenings", "added", "The lamp goes out"),
        ("happening_involvements", "added", "Mira Voss – The lamp goes out"),
        ("happening_involvements", "added", "char_gone – The lamp goes out"),
        ("happening_awareness", "added", "Odo Tann – The lamp goes out"),
        ("character_relationships", "added", f"{first['name']} – {second['name']}"),
        ("translations", "added", "Mira Voss (name, de)"),
        ("translations", "added", "rival (kind, de)"),
    ]


async def test_when_a_row_was_written_and_where_an_entry_stands_does_not_count(desk: Desk) -> None:
    """Rule H10."""
    fork_id, mira, _ = await forked(desk)
    for name in ("Mira", "Mira Voss"):
        await desk.edit(StoryEntity, mira["id"], name=name)
    await desk.writing._connection.execute(
        "UPDATE story_entries SET position = 12 WHERE branch_id = $1 AND position = 2", fork_id
    )
    await desk.writing._connection.execute(
        "UPDATE entities SET embedding_stale = NOT embedding_stale WHERE branch_id = $1", fork_id
    )
    assert await differences(desk, desk.branch_id, fork_id) == []
    await desk.writing._connection.execute(
        "UPDATE story_entries SET content = content || '!' WHERE branch_id = $1", fork_id
    )
    found = await differences(desk, desk.branch_id, fork_id)
    assert [[field.path for field in each.fields] for each in found] == [["content"]] * 2


async def test_the_last_common_entry_is_found_by_its_id(desk: Desk) -> None:
    """Rule H12."""
    fork_id, _, _ = await forked(desk)
    await desk.turn(3)
    async with desk.act(branch_id=fork_id) as action:
        await append_entry(action, 3)
    other_fork = await desk.fork(await _entry_at(desk, 1))
    diffs = [
        await diff_of(desk, *sides)
        for sides in (
            (desk.branch_id, fork_id),
            (fork_id, desk.branch_id),
            (desk.branch_id, other_fork),
            (other_fork, fork_id),
            (desk.branch_id, desk.branch_id),
        )
    ]
    found = await comparing.common_entries(desk.writing, desk.people.owner, diffs)
    assert [(each.branch_id, each.position) for each in found if each is not None] == [
        (desk.branch_id, 2),
        (fork_id, 2),
        (desk.branch_id, 1),
        (other_fork, 1),
        (desk.branch_id, 3),
    ]
    nobodys = await comparing.common_entries(desk.writing, ANONYMOUS, diffs)
    assert nobodys == [None] * 5


async def _entry_at(desk: Desk, position: int) -> str:
    rows = await desk.writing._connection.fetch(
        "SELECT id FROM story_entries WHERE branch_id = $1 AND position = $2",
        desk.branch_id,
        position,
    )
    return str(rows[0]["id"])


async def test_branches_of_different_stories_are_not_compared(
    database: Database, people: People
) -> None:
    """Rule H12."""
    async with database.writing() as writing:
        first = await make_branch(writing, people.owner)
        second = await make_branch(writing, people.owner)
        with pytest.raises(Invalid) as refused:
            await comparing.find_diff(writing, people.owner, first.id, second.id)
        assert (refused.value.code, refused.value.path) == ("NOT_OF_ONE_STORY", ("right",))
        for viewer in (people.stranger, people.anonymous):
            assert await comparing.find_diff(writing, viewer, first.id, second.id) is None
        assert await comparing.find_diff(writing, people.owner, first.id, "br_none") is None
        assert await comparing.find_diff(writing, people.owner, "nonsense", first.id) is None


@pytest.mark.parametrize("viewer_of", ["stranger", "anonymous"])
async def test_strangers_see_no_differences(desk: Desk, people: People, viewer_of: str) -> None:
    fork_id, mira, _ = await forked(desk)
    await desk.edit(StoryEntity, mira["id"], name="Mira")
    diff = await diff_of(desk, desk.branch_id, fork_id)
    viewer: Viewer = getattr(people, viewer_of)
    pages = await comparing.differences_of_diffs(desk.writing, viewer, [diff], PageRequest())
    assert [page.nodes for page in pages] == [[]]
    assert await comparing.DIFFERENCES.counts(
        desk.writing, [diff.id], tables=None, **viewer.parameters
    ) == [0]


async def test_pages_of_differences_are_the_whole_list_in_order(desk: Desk) -> None:
    """Rules H13, P3."""
    fork_id, mira, _ = await forked(desk)
    await desk.edit(StoryEntity, mira["id"], name="Mira")
    async with desk.act(branch_id=fork_id) as action:
        for position in range(3, 8):
            await append_entry(action, position)
        for number in range(4):
            await action.create(
                Lore, {"title": f"{number}", "body": "So.", "injection_mode": "auto"}
            )
    diff = await diff_of(desk, desk.branch_id, fork_id)
    owner = desk.people.owner

    async def page(**asked: Any) -> Any:
        (found,) = await comparing.differences_of_diffs(
            desk.writing, owner, [diff], PageRequest(**asked)
        )
        return found

    whole = (await page(first=200)).nodes
    assert [each.table for each in whole] == ["story_entries"] * 5 + ["entities"] + ["lore"] * 4
    for size in (1, 3, 4, 200):
        forth: list[Any] = []
        after = None
        while True:
            part = await page(first=size, after=after)
            forth += part.nodes
            after = part.page_info.end_cursor
            if not part.has_next_page:
                break
        assert forth == whole
        back: list[Any] = []
        before = None
        while True:
            part = await page(last=size, before=before)
            back = part.nodes + back
            before = part.page_info.start_cursor
            if not part.has_previous_page:
                break
        assert back == whole
    found = await page(first=2)
    counts = await found.source.counts(desk.writing, [found.parent_id], **dict(found.values))
    assert counts == [10]


async def test_only_the_wanted_tables_are_compared(desk: Desk) -> None:
    """Rule H13."""
    fork_id, mira, _ = await forked(desk)
    await desk.edit(StoryEntity, mira["id"], name="Mira")
    await desk.turn(3)
    tables = [LoggedTable.ENTITIES, LoggedTable.LORE]
    found = await differences(desk, desk.branch_id, fork_id, tables)
    assert [each.row_id for each in found] == [mira["id"]]
    assert await differences(desk, desk.branch_id, fork_id, []) == []


async def test_many_pairs_are_compared_at_once(desk: Desk) -> None:
    fork_id, mira, _ = await forked(desk)
    await desk.edit(StoryEntity, mira["id"], name="Mira")
    pairs = [(desk.branch_id, fork_id), (fork_id, desk.branch_id), (fork_id, fork_id)]
    diffs = [await diff_of(desk, *pair) for pair in pairs]
    found = await comparing.differences_of_diffs(
        desk.writing, desk.people.owner, diffs, PageRequest()
    )
    assert [[each.label for each in page.nodes] for page in found] == [["Mira Voss"], ["Mira"], []]
    assert await comparing.DIFFERENCES.counts(
        desk.writing, [each.id for each in diffs], tables=None, **desk.people.owner.parameters
    ) == [1, 1, 0]


STEPS = st.lists(
    st.tuples(st.sampled_from(["rename", "make", "delete"]), st.booleans(), st.integers(0, 3)),
    max_size=8,
)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
async def test_the_differences_are_those_of_a_comparison_by_hand(
    desk: Desk, steps: list[tuple[str, bool, int]]
) -> None:
    """Rule H8: ids on one side alone, and rows that are not equal."""
    for number in range(3):
        await desk.plant(EntityKind.CHARACTER, f"{number}")
    fork_id = await desk.fork(await _entry_at(desk, 1))
    sides = (desk.branch_id, fork_id)
    for what, is_right, number in steps:
        branch_id = sides[is_right]
        rows = (await desk.state(branch_id))["entities"]
        async with desk.act(branch_id=branch_id) as action:
            if what == "make" or not rows:
                values = entity_values(EntityKind.CHARACTER, "New")
                await action.create(StoryEntity, values, prefix="char")
            else:
                row = await action.require(StoryEntity, sorted(rows)[number % len(rows)])
                if what == "rename":
                    await action.update(StoryEntity, row, {"name": f"{row['name']}{number}"})
                else:
                    await action.delete(StoryEntity, row)
    left, right = [(await desk.state(each))["entities"] for each in sides]
    expected = dict.fromkeys(right.keys() - left.keys(), "added")
    expected |= dict.fromkeys(left.keys() - right.keys(), "removed")
    for each in left.keys() & right.keys():
        if left[each]["name"] != right[each]["name"]:
            expected[each] = "changed"
    found = await differences(desk, *sides)
    assert {each.row_id: str(each.kind) for each in found} == expected
    assert [each.row_id for each in found] == sorted(expected)


def test_every_logged_table_is_compared_by_what_it_says() -> None:
    """Rule H10: the columns that do not count are these."""
    ignored = {
        logged.name: set(logged.columns) - set(deltas.shown_columns(logged.name))
        for logged in deltas.LOGGED.values()
    }
    for name, columns in ignored.items():
        assert {"branch_id", "id"} <= columns, name
        assert columns <= {"branch_id", "id", "created_at", "updated_at", "embedding_stale"}, name
