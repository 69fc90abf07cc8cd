"""Stories, their branches, and what a branch tells: entries, chapters, eras.

Source: spec aventuras, diagram; branch model; entry metadata shape; era flips.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text

from db.columns import (
    BranchRow,
    Table,
    boolean_column,
    branch_column,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    json_list_column,
    json_object_column,
    link_column,
    long_column,
    one_of,
    reference,
    row_id_column,
    text_column,
    time_column,
    version_column,
)
from db.enums import EntryKind, Narration, StoryMode, StoryStatus


@dataclass(frozen=True, slots=True)
class StoryStyle:
    """A genre or a tone: its name and what a model is told of it."""

    label: str
    prompt_body: str


@dataclass(frozen=True, slots=True)
class StoryDefinition:
    """What a story is. `story_id` and `branch_id` say where the lead is looked for."""

    story_id: str
    branch_id: str | None
    mode: StoryMode
    narration: Narration
    genre: StoryStyle
    tone: StoryStyle
    setting: str
    calendar_system_id: str
    world_time_origin: dict[str, int]
    lead_entity_id: str | None


@dataclass(frozen=True, slots=True)
class ClassifierStatus:
    """How far the facts of a branch have been taken from its text, and how that goes."""

    state: str
    processed_through: int
    last_success_at: datetime | None
    last_error: str | None
    retry_count: int


class Story(Table, table=True):
    """A story: what it is and how it is written. Its text and world are in its branches."""

    __tablename__ = "stories"
    __table_args__ = (
        one_of("status", StoryStatus),
        Index(None, "owner_user_id", "is_favorite", "last_opened_at", "id"),
        Index(None, "cover_asset_id"),
        Index(None, "world_id"),
    )

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    title: str = text_column()
    # A blurb for people; no model sees it.
    description: str = text_column(default="")
    tags: list[str] = json_list_column("tags")
    cover_asset_id: str | None = reference("assets.id", nullable=True)
    # The world that it is set in.
    world_id: str | None = reference("persistent_worlds.id", nullable=True, on_delete="SET NULL")
    # As #rrggbb; null follows from the mode.
    accent_color: str | None = text_column(nullable=True)
    status: StoryStatus = enum_column()
    is_favorite: bool = boolean_column(default=False)
    # As `services/shapes/stories.py` has them; the first is read through `definition`.
    definition_json: dict[str, Any] = json_column("definition")
    settings: dict[str, Any] = json_column("settings")
    # The branch that is open. No foreign key: the two tables name each other.
    current_branch_id: str | None = link_column(nullable=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    last_opened_at: datetime = created_at_column()
    version: int = version_column()

    @property
    def definition(self) -> StoryDefinition:
        """What the story is."""
        values = self.definition_json
        return StoryDefinition(
            story_id=self.id,
            branch_id=self.current_branch_id,
            mode=StoryMode(values["mode"]),
            narration=Narration(values["narration"]),
            genre=StoryStyle(values["genre"]["label"], values["genre"]["promptBody"]),
            tone=StoryStyle(values["tone"]["label"], values["tone"]["promptBody"]),
            setting=values["setting"],
            calendar_system_id=values["calendarSystemId"],
            world_time_origin=values["worldTimeOrigin"],
            lead_entity_id=values["leadEntityId"],
        )


class Branch(Table, table=True):
    """A line of a story that stands on its own. Its row is the lock of everything in it."""

    __tablename__ = "branches"
    __table_args__ = (Index(None, "story_id", "created_at", "id"), Index(None, "parent_branch_id"))

    id: str = id_column()
    story_id: str = reference("stories.id")
    parent_branch_id: str | None = reference("branches.id", nullable=True, on_delete="SET NULL")
    # The last entry that this branch has in common with its parent: an id of both.
    fork_entry_id: str | None = link_column(nullable=True)
    name: str = text_column()
    # {state, processedThrough, lastSuccessAt, lastError, retryCount}; not logged.
    classifier_status: dict[str, Any] = json_object_column("classifier_status")
    # The position of the newest delta, or `head_floor` if that is higher.
    head: int = long_column(default=0)
    # The highest position ever given. Positions are not given again, so that who has seen a head
    # cannot take another one for it.
    last_position: int = long_column(default=0)
    # Heads up to here are of states that are gone: something below them was taken back. So none of
    # them is given again, and a state has a head of its own.
    head_floor: int = long_column(default=0)
    # The number of the newest event.
    last_event_seq: int = long_column(default=0)
    # Rises whenever rows come to point at other vectors, or are marked as embedded: together with
    # `head` it tells each state of what is embedded from every other.
    vectors_version: int = long_column(default=0)
    created_at: datetime = created_at_column()

    @property
    def classifier(self) -> ClassifierStatus:
        """How far it has been read."""
        status = self.classifier_status
        succeeded = status.get("lastSuccessAt")
        return ClassifierStatus(
            state=status.get("state", "idle"),
            processed_through=status.get("processedThrough", 0),
            last_success_at=succeeded and datetime.fromisoformat(succeeded),
            last_error=status.get("lastError"),
            retry_count=status.get("retryCount", 0),
        )


class StoryEntry(BranchRow, table=True):
    """A piece of a story's text. Its metadata is read through the properties."""

    __tablename__ = "story_entries"
    __table_args__ = (
        one_of("kind", EntryKind),
        CheckConstraint("(kind <> 'opening') OR position = 1", name="opening_is_first"),
        UniqueConstraint("branch_id", "position"),
        Index(None, "branch_id", "chapter_id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    position: int = integer_column()
    kind: EntryKind = enum_column()
    content: str = text_column()
    # Null while its chapter is open.
    chapter_id: str | None = link_column(nullable=True)
    # As `services/shapes/entries.py` has it.
    meta: dict[str, Any] = json_object_column("metadata")
    created_at: datetime = created_at_column()

    @property
    def world_time(self) -> int:
        """Seconds since the beginning of the story."""
        return int(self.meta.get("worldTime", 0))

    @property
    def scene_entity_ids(self) -> list[str]:
        """Characters and items that are present."""
        return list(self.meta.get("sceneEntities", ()))

    @property
    def current_location_id(self) -> str | None:
        """Where it happens."""
        return self.meta.get("currentLocationId")

    @property
    def model(self) -> str | None:
        """The model that wrote it; None for people's texts."""
        return self.meta.get("model")

    @property
    def reasoning(self) -> str | None:
        """What the model thought aloud."""
        return self.meta.get("reasoning")

    @property
    def summary(self) -> str | None:
        """One sentence that stands for it."""
        return self.meta.get("summary")


class Chapter(BranchRow, table=True):
    """A closed range of entries with a summary; the open one has no row."""

    __tablename__ = "chapters"
    __table_args__ = (Index(None, "branch_id", "sequence_number"),)

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    # 1, 2, 3 within the branch.
    sequence_number: int = integer_column()
    title: str = text_column()
    summary: str = text_column(default="")
    theme: str = text_column(default="")
    keywords: list[str] = json_list_column("keywords")
    start_entry_id: str = link_column()
    end_entry_id: str = link_column()
    token_count: int = integer_column(default=0)
    closed_at: datetime = created_at_column()
    embedding_stale: bool = boolean_column(default=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()


class EraFlip(BranchRow, table=True):
    """A moment from which a story's calendar counts by another era."""

    __tablename__ = "branch_era_flips"
    __table_args__ = (
        CheckConstraint(text("at_worldtime >= 0"), name="at_worldtime"),
        UniqueConstraint("branch_id", "at_worldtime"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    # Seconds since the beginning of the story.
    at_worldtime: int = long_column()
    era_name: str = text_column()
    created_at: datetime = created_at_column()

    @property
    def at_world_time(self) -> int:
        """The same, by the word that is used everywhere else."""
        return self.at_worldtime
