"""Entries: the pieces of a story's text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import EntryKind
from resolvers import assets as resolve_assets
from resolvers.stories import dating as resolve_times
from resolvers.stories import entries as resolve
from schema.base import (
    Long,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    row_type,
)
from schema.branch_rows import EXPECTED_HEAD
from schema.translations import Translatable

if TYPE_CHECKING:
    from schema.assets import EntryAsset
    from schema.entities import StoryEntity, StoryLocation
    from schema.stories.chapters import Chapter
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyEntryAsset = Annotated["EntryAsset", strawberry.lazy("schema.assets")]
LazyChapter = Annotated["Chapter", strawberry.lazy("schema.stories.chapters")]
LazyEntity = Annotated["StoryEntity", strawberry.lazy("schema.entities")]
LazyLocation = Annotated["StoryLocation", strawberry.lazy("schema.entities")]

enum(
    EntryKind,
    USER_ACTION="What a person does in the story, and whatever else a person writes.",
    AI_REPLY="What a model answers, or prose from elsewhere.",
    SYSTEM="A notice about the end of the story: no part of the text, and not in the log. There "
    "is one at most, behind everything else; the next entry takes its place.",
    OPENING="With what the story begins: always the first entry, and never deleted.",
)
NEW_HEAD = "The branch, with its new head."
SCENE = (
    "The characters and items that are present, 200 at most; by id or rowId. All of them: it takes "
    "the place of the scene before."
)
PLACE = (
    "The location where it happens, by id or rowId; null for nowhere in particular. A retired one "
    "cannot be entered."
)
SUMMARY = "One sentence that stands for it, 2,000 characters at most; null for none."


@described_input
class EntryFilter:
    """Which entries are wanted; what is left out asks for nothing."""

    kinds: list[EntryKind] | None = field("Only those of these kinds.", default=None)


@row_type
class StoryEntry(Translatable):
    """A piece of a story's text. Its scene, place and time are those of the entry before it unless
    something was said of them.
    """

    position: int = field("Its place in the text, from 1; where entries were deleted are gaps.")
    kind: EntryKind = field("What it is.")
    content: str = field("The text.")
    world_time: Long = field("When it happens: seconds since the beginning of the story.")
    world_time_label: str = relation(
        resolve_times.labels_of_entries,
        "The same as the story's calendar says it; the bare number where that cannot.",
    )
    is_time_backwards: bool = relation(
        resolve_times.backwards_of_entries,
        "Whether it happens before the entry before it: right for a look back, else a slip.",
    )
    scene_entities: list[LazyEntity] = relation(
        resolve.scenes_of_entries, "The characters and items that are present: 200 at most."
    )
    current_location: LazyLocation | None = relation(
        resolve.locations_of_entries, "Where it happens; null also where the location is gone."
    )
    chapter: LazyChapter | None = relation(
        resolve.chapters_of_entries, "The chapter it belongs to; null while that is open."
    )
    assets: list[LazyEntryAsset] = relation(
        resolve_assets.assets_of_entries, "The files that it shows, in order."
    )
    model: str | None = field("The model that wrote it; null for what people wrote.")
    reasoning: str | None = field("What the model thought aloud.")
    summary: str | None = field("One sentence that stands for it.")
    meta: JSON = field(
        "All that is kept beside the text. Ids in it are own ids, as rowId shows them.",
        name="metadata",
    )
    created_at: datetime = field("When it was written.")


@described_input
class EntryAppendInput:
    """An entry to put behind the last one; what is left out is as in the entry before."""

    branch_id: strawberry.ID = field("The branch.")
    kind: EntryKind = field("What it is; no story gets a second OPENING.")
    content: str = field("The text.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)
    world_time: strawberry.Maybe[Long] = field("When it happens, from 0 to 100,000,000,000.")
    world_time_delta: strawberry.Maybe[Long] = field(
        "How many seconds went by since the entry before, 0 or more; in place of worldTime."
    )
    scene_entity_ids: strawberry.Maybe[list[strawberry.ID]] = field(SCENE)
    current_location_id: strawberry.Maybe[strawberry.ID | None] = field(PLACE)
    model: strawberry.Maybe[str] = field("The model that wrote it; only of an AI_REPLY.")
    summary: strawberry.Maybe[str | None] = field(SUMMARY)


@described
class EntryAppendPayload(Payload):
    """The entry."""

    entry: StoryEntry | None = field("The entry.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class EntryEditInput:
    """Another text for an entry."""

    entry_id: strawberry.ID = field("The entry; of any kind but SYSTEM.")
    content: str = field("The text.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntryEditPayload(Payload):
    """The entry with its text."""

    entry: StoryEntry | None = field("The entry.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class EntryMetaUpdateInput:
    """What to correct about an entry; what is left out stays as it is, and so do other entries."""

    entry_id: strawberry.ID = field("The entry; of any kind but SYSTEM.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)
    world_time: strawberry.Maybe[Long] = field("When it happens, from 0 to 100,000,000,000.")
    scene_entity_ids: strawberry.Maybe[list[strawberry.ID]] = field(SCENE)
    current_location_id: strawberry.Maybe[strawberry.ID | None] = field(PLACE)
    summary: strawberry.Maybe[str | None] = field(SUMMARY)


@described
class EntryMetaUpdatePayload(Payload):
    """The corrected entry."""

    entry: StoryEntry | None = field("The entry.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class EntryDeleteInput:
    """An entry to delete."""

    entry_id: strawberry.ID = field("The entry; the opening stays.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EntryDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the entry.")
    branch: LazyBranch | None = field(NEW_HEAD)


@strawberry.type
class EntryMutation:
    """Changes to entries."""

    entry_append: EntryAppendPayload = mutation(
        resolve.append_entry,
        input=EntryAppendInput,
        payload=EntryAppendPayload,
        description="Put an entry behind the last one.",
    )
    entry_edit: EntryEditPayload = mutation(
        resolve.edit_entry,
        input=EntryEditInput,
        payload=EntryEditPayload,
        description="Give an entry another text. Nothing is written anew because of it; but what "
        "was concluded in the background from the last reply, or the action it answers, is taken "
        "back when that text changes.",
    )
    entry_meta_update: EntryMetaUpdatePayload = mutation(
        resolve.update_meta,
        input=EntryMetaUpdateInput,
        payload=EntryMetaUpdatePayload,
        description="Correct when and where an entry happens, who is present, or its summary.",
    )
    entry_delete: EntryDeletePayload = mutation(
        resolve.delete_entry,
        input=EntryDeleteInput,
        payload=EntryDeletePayload,
        description="Take one entry out of the text. Those behind it stay: to go back to an "
        "earlier point, roll back.",
    )
