"""Chapters: closed ranges of a story's entries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from resolvers.stories import chapters as resolve
from schema.base import (
    Connection,
    Payload,
    described,
    described_input,
    field,
    mutation,
    relation,
    row_type,
)
from schema.branch_rows import EXPECTED_HEAD
from schema.embedding import Embeddable

if TYPE_CHECKING:
    from schema.stories.entries import StoryEntry
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyEntry = Annotated["StoryEntry", strawberry.lazy("schema.stories.entries")]
NEW_HEAD = "The branch, with its new head."
TITLE = "Its title, 500 characters at most."
SUMMARY = "What happens in it, 50,000 characters at most; may be empty."
THEME = "A few words that sort it, 500 characters at most; may be empty."
KEYWORDS = "Words that bring it to mind, 50 at most."


@row_type
class Chapter(Embeddable):
    """A closed range of entries. What comes behind the last chapter belongs to none yet."""

    sequence_number: int = field("1, 2, 3 within the branch.")
    title: str = field("Its title.")
    summary: str = field("What happens in it; empty where nobody has said.")
    theme: str = field("A few words that sort it.")
    keywords: list[str] = field("Words that bring it to mind.")
    start_entry: LazyEntry | None = relation(
        resolve.starts_of_chapters, "Its first entry; null where that was deleted."
    )
    end_entry: LazyEntry | None = relation(
        resolve.ends_of_chapters, "Its last entry; null where that was deleted."
    )
    entries: Connection[LazyEntry] = relation(
        resolve.entries_of_chapters, "Its entries, in the order of the text."
    )
    token_count: int = field("About how many tokens its entries were when it was closed.")
    embedding_stale: bool = field("Whether its summary and theme are still to be embedded.")
    closed_at: datetime = field("When it was closed.")
    created_at: datetime = field("When it was made.")
    updated_at: datetime | None = field("When it was last changed.")


@described
class OpenRegion:
    """The entries that belong to no chapter yet."""

    entry_count: int = field("How many there are.")
    token_count: int = field("About how many tokens they are.")
    token_threshold: int = field("How many a chapter of this story is to have.")
    is_ready_to_close: bool = field("Whether there are as many.")


@described_input
class ChapterCreateInput:
    """A chapter to close: it takes all entries that belong to none, up to one of them."""

    branch_id: strawberry.ID = field("The branch.")
    end_entry_id: strawberry.ID = field("Its last entry, by id or rowId.")
    title: str = field(TITLE)
    summary: str = field(SUMMARY, default="")
    theme: str = field(THEME, default="")
    keywords: list[str] = field(KEYWORDS, default_factory=list)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class ChapterCreatePayload(Payload):
    """The chapter."""

    chapter: Chapter | None = field("The chapter.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class ChapterUpdateInput:
    """A chapter to change; what is left out stays as it is."""

    chapter_id: strawberry.ID = field("The chapter.")
    title: strawberry.Maybe[str] = field(TITLE)
    summary: strawberry.Maybe[str] = field(SUMMARY)
    theme: strawberry.Maybe[str] = field(THEME)
    keywords: strawberry.Maybe[list[str]] = field(KEYWORDS)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class ChapterUpdatePayload(Payload):
    """The changed chapter."""

    chapter: Chapter | None = field("The chapter.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class ChapterDeleteInput:
    """A chapter to open again."""

    chapter_id: strawberry.ID = field("The chapter; only the last one can be opened.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class ChapterDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the chapter.")
    branch: LazyBranch | None = field(NEW_HEAD)


@strawberry.type
class ChapterMutation:
    """Changes to chapters."""

    chapter_create: ChapterCreatePayload = mutation(
        resolve.create_chapter,
        input=ChapterCreateInput,
        payload=ChapterCreatePayload,
        description="Close a chapter by hand. One undo opens it again.",
    )
    chapter_update: ChapterUpdatePayload = mutation(
        resolve.update_chapter,
        input=ChapterUpdateInput,
        payload=ChapterUpdatePayload,
        description="Change the title, summary, theme or keywords of a chapter.",
    )
    chapter_delete: ChapterDeletePayload = mutation(
        resolve.delete_chapter,
        input=ChapterDeleteInput,
        payload=ChapterDeletePayload,
        description="Open the last chapter again: its entries stay and belong to none.",
    )
