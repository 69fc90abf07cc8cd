"""Chapters: closing the open region, changing what a chapter says, opening it again."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import EntryKind
from db.paging import FIRST_PAGE
from db.tables import Branch, Chapter, Story, StoryEntry
from services import stories
from services.errors import DomainError
from services.tokens import estimate_tokens
from tests.services.deltas.desks import Desk, desk
from tests.services.deltas.ledgers import rows_of

__all__ = ["desk"]

SYSTEM = EntryKind.SYSTEM
TITLED = {"title": "The lamp", "summary": "", "theme": "", "keywords": []}


async def close(desk: Desk, end_entry_id: str, **values: Any) -> Chapter:
    chapter, _ = await stories.create_chapter(
        desk.writing, desk.people.owner, desk.branch_id, end_entry_id, {**TITLED, **values}
    )
    return chapter


async def reopen(desk: Desk, chapter: Chapter) -> Branch:
    deleted_id, branch = await stories.delete_chapter(desk.writing, desk.people.owner, chapter.id)
    assert deleted_id == chapter.id
    return branch


async def chapters(desk: Desk) -> dict[int, str | None]:
    """The chapter of each entry, by position."""
    rows = await rows_of(desk.writing, StoryEntry, desk.branch_id)
    return {each.position: each.chapter_id for each in sorted(rows, key=lambda row: row.position)}


async def refusal(desk: Desk, attempt: Any) -> tuple[str, tuple[str | int, ...]]:
    """The code and path of what is refused; nothing has changed."""
    before, log = await desk.state(), await desk.log()
    with pytest.raises(DomainError) as refused:
        await attempt
    assert (await desk.state(), await desk.log()) == (before, log)
    return refused.value.code, refused.value.path


async def test_a_chapter_takes_the_open_entries_up_to_its_end_in_one_action(desk: Desk) -> None:
    """Rules B51, B52."""
    turns = [await desk.turn(position, content=f"text {position}") for position in range(2, 6)]
    before = await desk.state()
    chapter, branch = await stories.create_chapter(
        desk.writing,
        desk.people.owner,
        desk.branch_id,
        f"{desk.branch_id}:{turns[1]['id']}",
        {"title": "The lamp", "summary": "It is dark.", "theme": "dark", "keywords": ["lamp"]},
        expected_head=4,
    )
    opening = next(
        each for each in before["story_entries"].values() if each["kind"] == EntryKind.OPENING
    )
    assert (chapter.title, chapter.summary, chapter.theme, chapter.keywords) == (
        "The lamp",
        "It is dark.",
        "dark",
        ["lamp"],
    )
    assert (chapter.sequence_number, chapter.start_entry_id, chapter.end_entry_id) == (
        1,
        opening["id"],
        turns[1]["id"],
    )
    told = ("It begins.", "text 2", "text 3")
    assert chapter.token_count == sum(estimate_tokens(each) for each in told)
    assert (branch.head, chapter.embedding_stale) == (8, True)
    own = chapter.row_id
    assert await chapters(desk) == {1: own, 2: own, 3: own, 4: None, 5: None}
    second = await close(desk, turns[2]["id"])
    assert (second.sequence_number, second.start_entry_id, second.end_entry_id) == (
        2,
        turns[2]["id"],
        turns[2]["id"],
    )
    log = (await desk.log())[4:]
    assert {(each.source, each.entry_id) for each in log} == {("chapter_close", None)}
    assert [each.op for each in log] == ["create", *["update"] * 3, "create", "update"]
    assert len({each.action_id for each in log}) == 2
    await desk.undo()
    await desk.undo()
    assert await desk.state() == before
    await desk.redo()
    assert await chapters(desk) == {1: own, 2: own, 3: own, 4: None, 5: None}


async def test_what_cannot_end_a_chapter_is_refused(desk: Desk) -> None:
    """Rule B51."""
    turn = await desk.turn(2)
    await close(desk, turn["id"])
    other = await desk.turn(3)
    notice, _ = await stories.append_entry(
        desk.writing, desk.people.owner, desk.branch_id, SYSTEM, "No model.", {}
    )
    end = ("input", "endEntryId")
    nowhere = "entry_01900000-0000-7000-8000-000000000000"
    for end_entry_id, code in (
        (turn["id"], "CHAPTER_CLOSED"),
        (notice.row_id, "NOT_IN_THE_STORY"),
        (nowhere, "NOT_FOUND"),
        ("x", "NOT_FOUND"),
        (f"br_01900000-0000-7000-8000-000000000000:{other['id']}", "NOT_FOUND"),
    ):
        assert await refusal(desk, close(desk, end_entry_id)) == (code, end)
    for values, code, path in (
        ({"title": " "}, "TEXT_EMPTY", ("title",)),
        ({"title": "x" * 501}, "TEXT_TOO_LONG", ("title",)),
        ({"summary": "x" * 50_001}, "TEXT_TOO_LONG", ("summary",)),
        ({"theme": "x" * 501}, "TEXT_TOO_LONG", ("theme",)),
        ({"keywords": ["x", ""]}, "TEXT_EMPTY", ("keywords", 1)),
        ({"keywords": ["x"] * 51}, "LIMIT_REACHED", ("keywords",)),
    ):
        refused = await refusal(desk, close(desk, other["id"], **values))
        assert refused == (code, ("input", *path))


async def test_what_a_chapter_says_is_changed_and_undone(desk: Desk) -> None:
    """Rule B53."""
    turn = await desk.turn(2)
    chapter = await close(desk, turn["id"])
    before = await desk.state()
    changes = {"title": "A lamp", "summary": "Dark.", "theme": "", "keywords": ["oil"]}
    changed, branch = await stories.update_chapter(
        desk.writing, desk.people.owner, chapter.id, changes
    )
    assert {name: getattr(changed, name) for name in changes} == changes
    assert changed.token_count == chapter.token_count
    last = (await desk.log())[-1]
    assert (last.source, last.entry_id) == ("user_edit", None)
    assert last.undo_payload == {
        "title": "The lamp",
        "summary": "",
        "keywords": [],
        "updated_at": None,
    }
    same, again = await stories.update_chapter(desk.writing, desk.people.owner, chapter.id, changes)
    assert (same, again) == (changed, branch)
    await desk.undo()
    assert await desk.state() == before
    attempt = stories.update_chapter(desk.writing, desk.people.owner, chapter.id, {"title": ""})
    assert await refusal(desk, attempt) == ("TEXT_EMPTY", ("input", "title"))


async def test_only_the_last_chapter_is_opened_again(desk: Desk) -> None:
    """Rule B54."""
    turns = [await desk.turn(position) for position in (2, 3)]
    first, second = [await close(desk, each["id"]) for each in turns]
    assert await refusal(desk, reopen(desk, first)) == (
        "CHAPTER_NOT_LAST",
        ("input", "chapterId"),
    )
    closed = await desk.state()
    await desk.turn(4)
    await reopen(desk, second)
    own = first.row_id
    assert await chapters(desk) == {1: own, 2: own, 3: None, 4: None}
    await desk.undo()
    await desk.undo()
    assert await desk.state() == closed
    await reopen(desk, second)
    await reopen(desk, first)
    assert await chapters(desk) == {1: None, 2: None, 3: None}
    assert (await close(desk, turns[0]["id"])).sequence_number == 1


async def test_the_open_region_is_what_belongs_to_no_chapter(desk: Desk) -> None:
    """Rule B50."""
    reading, owner = desk.writing, desk.people.owner
    (story,) = (await stories.list_stories(reading, owner, FIRST_PAGE)).nodes

    async def region(**settings: Any) -> tuple[int, int, int, bool]:
        (found,) = await stories.open_regions_of_branches(
            reading, owner, {desk.branch_id: with_settings(story, settings)}
        )
        return (
            found.entry_count,
            found.token_count,
            found.token_threshold,
            found.is_ready_to_close,
        )

    tokens = estimate_tokens("It begins.")
    assert await region() == (1, tokens, 24_000, False)
    turn = await desk.turn(2, content="x" * 400)
    await stories.append_entry(reading, owner, desk.branch_id, SYSTEM, "No model.", {})
    tokens += 100
    assert await region(chapterTokenThreshold=tokens + 1) == (2, tokens, tokens + 1, False)
    assert await region(chapterTokenThreshold=tokens) == (2, tokens, tokens, True)
    await close(desk, turn["id"])
    assert await region(chapterTokenThreshold=1) == (0, 0, 1, False)
    nobody = desk.people.stranger
    (hidden,) = await stories.open_regions_of_branches(reading, nobody, {desk.branch_id: story})
    assert hidden.entry_count == 0


def with_settings(story: Story, settings: dict[str, Any]) -> Story:
    """The same story with other settings, as nobody has saved them."""
    return Story(**{**dict(story), "settings": settings})


async def test_strangers_change_no_chapter(desk: Desk) -> None:
    turn = await desk.turn(2)
    chapter = await close(desk, turn["id"])
    stranger = desk.people.stranger
    for attempt, field in (
        (
            stories.create_chapter(desk.writing, stranger, desk.branch_id, turn["id"], TITLED),
            "branchId",
        ),
        (stories.update_chapter(desk.writing, stranger, chapter.id, {}), "chapterId"),
        (stories.delete_chapter(desk.writing, stranger, chapter.id), "chapterId"),
    ):
        assert await refusal(desk, attempt) == ("NOT_FOUND", ("input", field))
