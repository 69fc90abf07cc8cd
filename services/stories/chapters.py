"""Chapters: closed ranges of entries with a title and a summary. The open one has no row; it is all
entries behind the last chapter.

Source: spec aventuras, chapters; chapter close is one undoable unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlmodel import col

from db.enums import DeltaSource, EntryKind, LoggedTable
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Branch, Chapter, Story, StoryEntry
from services import deltas
from services.access import Viewer, require_row, row_id_in, visible
from services.deltas.rows import images_by_ids
from services.errors import Forbidden, Invalid
from services.plot.fields import answered
from services.shapes import loaded_settings
from services.text import MAX_LINE, checked_lines, checked_prose, checked_text
from services.tokens import estimate_tokens

_CHAPTER_PATH = ("input", "chapterId")
_END_PATH = ("input", "endEntryId")
MAX_CHAPTER_SUMMARY = 50_000

CHAPTERS_OF_BRANCHES = PagedList(
    "chapters",
    Chapter,
    sort=[SortKey(col(Chapter.sequence_number)), SortKey(col(Chapter.row_id))],
    parent=col(Chapter.branch_id),
    where=lambda: visible(Chapter),
)
ENTRIES_OF_CHAPTERS = PagedList(
    "entries of chapters",
    StoryEntry,
    sort=[SortKey(col(StoryEntry.position))],
    parent=col(StoryEntry.chapter_id),
    within=col(StoryEntry.branch_id),
    where=lambda: visible(StoryEntry),
)


@dataclass(frozen=True, slots=True)
class OpenRegion:
    """The entries that belong to no chapter yet. The tokens are an estimate."""

    entry_count: int
    token_count: int
    token_threshold: int

    @property
    def is_ready_to_close(self) -> bool:
        """Whether it is as long as a chapter of its story is to be."""
        return self.token_count >= self.token_threshold


@statement(StoryEntry)
def _open_entries() -> Any:
    return (
        select(*columns(StoryEntry))
        .where(
            any_of(StoryEntry.branch_id, "branch_ids"),
            col(StoryEntry.chapter_id).is_(None),
            col(StoryEntry.kind) != EntryKind.SYSTEM.value,
            visible(StoryEntry),
        )
        .order_by(col(StoryEntry.position))
    )


@statement(StoryEntry)
def _entries_of_chapter() -> Any:
    return select(*columns(StoryEntry)).where(
        col(StoryEntry.branch_id) == param("branch_id"),
        col(StoryEntry.chapter_id) == param("chapter_id"),
    )


@statement(Chapter)
def _last_number() -> Any:
    return select(func.max(col(Chapter.sequence_number))).where(
        col(Chapter.branch_id) == param("branch_id")
    )


async def open_regions_of_branches(
    reading: Reading, viewer: Viewer, stories: Mapping[str, Story]
) -> list[OpenRegion]:
    """What belongs to no chapter yet, of each branch; one statement. `stories` are those of the
    branches, by the branches' ids.
    """
    entries = await reading.all(_open_entries(), branch_ids=list(stories), **viewer.parameters)
    texts: dict[str, list[str]] = {each: [] for each in stories}
    for entry in entries:
        texts[entry.branch_id].append(entry.content)
    return [
        OpenRegion(len(texts[each]), _tokens(texts[each]), _threshold(story))
        for each, story in stories.items()
    ]


def _threshold(story: Story) -> int:
    settings = loaded_settings(story.settings, story.definition.mode)
    return int(settings["chapterTokenThreshold"])


def _tokens(texts: Sequence[str]) -> int:
    return sum(estimate_tokens(each) for each in texts)


async def create_chapter(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    end_entry_id: str,
    values: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Chapter, Branch]:
    """Close a chapter: it takes the entries that belong to none yet, up to the one given. `values`
    are title, summary, theme and keywords. One undo opens it again.

    Raises NotFound, Conflict, Invalid (TEXT_…, CHAPTER_CLOSED, NOT_IN_THE_STORY), LimitReached.
    """
    checked = _checked(values)
    async with deltas.acting(
        writing,
        viewer,
        branch_id,
        expected_head=expected_head,
        source=DeltaSource.CHAPTER_CLOSE,
    ) as action:
        entries = await _range_up_to(action, end_entry_id)
        number = await writing.value(_last_number(), branch_id=action.branch.id)
        chapter = await action.create(
            Chapter,
            {
                **checked,
                "sequence_number": (number or 0) + 1,
                "start_entry_id": entries[0].row_id,
                "end_entry_id": entries[-1].row_id,
                "token_count": _tokens([each.content for each in entries]),
            },
        )
        await _move(action, entries, chapter["id"])
    return await answered(writing, viewer, Chapter, chapter)


async def _range_up_to(action: deltas.Action, end_entry_id: str) -> list[StoryEntry]:
    """The open entries up to the one that is named."""
    row_id = row_id_in(action.branch.id, StoryEntry, end_entry_id, *_END_PATH)
    end = await action.require(StoryEntry, row_id, *_END_PATH)
    if end["kind"] == EntryKind.SYSTEM:
        told = "This is a notice, not a part of the story: name an entry."
        raise Invalid(told, "NOT_IN_THE_STORY", _END_PATH)
    if end["chapter_id"] is not None:
        raise Invalid("This entry belongs to a chapter already.", "CHAPTER_CLOSED", _END_PATH)
    entries = await action.writing.all(
        _open_entries(), branch_ids=[action.branch.id], **action.viewer.parameters
    )
    return [each for each in entries if each.position <= end["position"]]


async def _move(
    action: deltas.Action, entries: Sequence[StoryEntry], chapter_id: str | None
) -> None:
    """Put entries into a chapter, or out of any."""
    ids = [each.row_id for each in entries]
    images = await images_by_ids(action.writing, action.branch.id, LoggedTable.STORY_ENTRIES, ids)
    changes = {"chapter_id": chapter_id}
    await action.update_many(StoryEntry, [(images[each], changes, None) for each in ids])


async def update_chapter(
    writing: Writing,
    viewer: Viewer,
    chapter_id: str,
    changes: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Chapter, Branch]:
    """Change the title, summary, theme or keywords. Raises NotFound, Conflict, Invalid (TEXT_…),
    LimitReached.
    """
    checked = _checked(changes)
    async with deltas.acting_on(
        writing, viewer, Chapter, chapter_id, *_CHAPTER_PATH, expected_head=expected_head
    ) as (action, before):
        chapter = await action.update(Chapter, before, checked)
    return await answered(writing, viewer, Chapter, chapter)


async def delete_chapter(
    writing: Writing, viewer: Viewer, chapter_id: str, expected_head: int | None = None
) -> tuple[str, Branch]:
    """Open the last chapter again: its entries stay, and belong to none; its id. Undoing the close
    is the same where nothing else was done since.

    Raises NotFound, Conflict, Forbidden (CHAPTER_NOT_LAST).
    """
    async with deltas.acting_on(
        writing, viewer, Chapter, chapter_id, *_CHAPTER_PATH, expected_head=expected_head
    ) as (action, chapter):
        branch_id = action.branch.id
        if chapter["sequence_number"] != await writing.value(_last_number(), branch_id=branch_id):
            told = "Only the last chapter can be opened again: chapters have no gaps."
            raise Forbidden(told, "CHAPTER_NOT_LAST", _CHAPTER_PATH)
        entries = await writing.all(
            _entries_of_chapter(), branch_id=branch_id, chapter_id=chapter["id"]
        )
        await _move(action, entries, None)
        await action.delete(Chapter, chapter)
    branch = await require_row(writing, viewer, Branch, branch_id)
    return f"{branch_id}:{chapter['id']}", branch


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    checked = dict(values)
    if "title" in values:
        checked_text(values["title"], "input", "title", max_length=MAX_LINE)
    if "summary" in values:
        checked_prose(values["summary"], "input", "summary", max_length=MAX_CHAPTER_SUMMARY)
    if "theme" in values:
        checked_prose(values["theme"], "input", "theme", max_length=MAX_LINE)
    if "keywords" in values:
        checked["keywords"] = checked_lines(values["keywords"], "input", "keywords")
    return checked
