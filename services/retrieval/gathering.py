"""Reads what a retrieval needs to know of a branch, in a fixed number of statements.

No statement grows with the entries or the awareness of a branch: of entries the last are read, of
awareness that of who is present about the happenings that are asked for.
Source: retrieval, sections 3, 4, 5, 8, 10, 14.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, func, or_, select, true
from sqlmodel import col

from db.enums import EntityKind, EntryKind, StoryMode
from db.reading import (
    Reading,
    Statement,
    any_of,
    columns,
    compile_statement,
    param,
    record_class,
    statement,
)
from db.tables import (
    Branch,
    BranchRow,
    Chapter,
    EraFlip,
    Happening,
    HappeningAwareness,
    Lore,
    Story,
    StoryEntity,
    StoryEntry,
    Thread,
)
from services import scenes
from services.access import Viewer, require_row, rows_by_ids, visible
from services.retrieval.buffer import buffer_length
from services.retrieval.parameters import Parameters, parameters_of
from services.shapes import loaded_settings

Rows = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    """A branch as a retrieval finds it; rows by their own ids."""

    story: Story
    branch: Branch
    settings: Mapping[str, Any]
    parameters: Parameters
    scene: scenes.TailScene
    # The last entry that tells a scene.
    told: Any
    # The last entries in their order: those that the prompt carries, and those that are scanned.
    buffer: Sequence[Any]
    scanned: Sequence[Any]
    entities: Rows
    lore: Rows
    threads: Rows
    chapters: Rows
    era: str | None

    @property
    def present(self) -> dict[str, str]:
        """The names of the characters who are there, by their ids: whose knowledge counts."""
        found = (self.entities.get(each) for each in self.scene.entity_ids)
        return {
            each.row_id: each.name
            for each in found
            if each is not None and each.kind == EntityKind.CHARACTER
        }

    @property
    def tail_id(self) -> str | None:
        """The last entry."""
        return self.buffer[-1].row_id if self.buffer else None

    def chapters_since(self, moment: datetime) -> int:
        """How many chapters were closed after a moment."""
        closed = sorted(each.closed_at for each in self.chapters.values())
        return len(closed) - bisect_right(closed, moment)

    def chapters_since_chapter(self, chapter_id: str | None) -> int:
        """How many chapters were closed since an entry of that chapter; of the open one none."""
        chapter = self.chapters.get(chapter_id or "")
        if chapter is None:
            return 0
        number = chapter.sequence_number
        return sum(each.sequence_number >= number for each in self.chapters.values())


@functools.cache
def _rows_of_branch(table: Any) -> Statement[Any]:
    rows = select(*columns(table)).where(col(table.branch_id) == param("branch_id"), visible(table))
    return compile_statement(rows.order_by(col(table.row_id)), record_class(table))


async def _all(
    reading: Reading, viewer: Viewer, branch_id: str, table: type[BranchRow]
) -> dict[str, Any]:
    rows = await reading.all(_rows_of_branch(table), branch_id=branch_id, **viewer.parameters)
    return {row.row_id: row for row in rows}


@statement(StoryEntry)
def _open_count() -> Any:
    return select(func.count()).where(
        col(StoryEntry.branch_id) == param("branch_id"),
        col(StoryEntry.chapter_id).is_(None),
        col(StoryEntry.kind) != EntryKind.SYSTEM.value,
    )


@statement(StoryEntry)
def _last_entries() -> Any:
    return (
        select(*columns(StoryEntry))
        .where(
            col(StoryEntry.branch_id) == param("branch_id"),
            col(StoryEntry.kind) != EntryKind.SYSTEM.value,
            visible(StoryEntry),
        )
        .order_by(col(StoryEntry.position).desc())
        .limit(param("count", Integer()))
    )


async def read_world(reading: Reading, viewer: Viewer, branch_id: str, *path: str | int) -> World:
    """What there is to choose from. Raises NotFound."""
    branch = await require_row(reading, viewer, Branch, branch_id, *path)
    story = await require_row(reading, viewer, Story, branch.story_id)
    settings = loaded_settings(story.settings, StoryMode(story.definition_json["mode"]))
    parameters = parameters_of(settings)
    in_open_chapter = await reading.value(_open_count(), branch_id=branch.id)
    length = buffer_length(in_open_chapter, parameters)
    last = await reading.all(
        _last_entries(),
        branch_id=branch.id,
        count=max(length, parameters.scanned_entries),
        **viewer.parameters,
    )
    entries = last[::-1]
    scene = await scenes.tail_scene(reading, branch.id)
    told = next((each for each in entries if each.row_id == scene.entry_id), None)
    if told is None and scene.entry_id is not None:
        (told,) = await rows_by_ids(reading, viewer, StoryEntry, [f"{branch.id}:{scene.entry_id}"])
    flips = await _all(reading, viewer, branch.id, EraFlip)
    return World(
        story=story,
        branch=branch,
        settings=settings,
        parameters=parameters,
        scene=scene,
        told=told,
        buffer=entries[len(entries) - min(length, len(entries)) :],
        scanned=entries[len(entries) - min(parameters.scanned_entries, len(entries)) :],
        entities=await _all(reading, viewer, branch.id, StoryEntity),
        lore=await _all(reading, viewer, branch.id, Lore),
        threads=await _all(reading, viewer, branch.id, Thread),
        chapters=await _all(reading, viewer, branch.id, Chapter),
        era=_era_at(flips.values(), told),
    )


def _era_at(flips: Any, told: Any) -> str | None:
    """The era in which the story stands; None before the first flip."""
    now = told.world_time if told is not None else 0
    begun = [each for each in flips if each.at_worldtime <= now]
    return max(begun, key=lambda each: each.at_worldtime).era_name if begun else None


@statement(Happening)
def _happenings() -> Any:
    occurred = select(col(StoryEntry.row_id)).where(
        col(StoryEntry.branch_id) == param("branch_id"), any_of(StoryEntry.chapter_id, "chapters")
    )
    return select(*columns(Happening)).where(
        col(Happening.branch_id) == param("branch_id"),
        or_(any_of(Happening.row_id, "ids"), col(Happening.occurred_at_entry_id).in_(occurred)),
        visible(Happening),
    )


@statement(HappeningAwareness)
def _awareness() -> Any:
    learned = (
        select(col(StoryEntry.chapter_id).label("chapter_id"))
        .where(
            col(StoryEntry.branch_id) == col(HappeningAwareness.branch_id),
            col(StoryEntry.row_id) == col(HappeningAwareness.learned_at_entry_id),
        )
        .correlate(HappeningAwareness)
        .lateral("learned")
    )
    return (
        select(*columns(HappeningAwareness), learned.c.chapter_id)
        .select_from(HappeningAwareness)
        .outerjoin(learned, true())
        .where(
            col(HappeningAwareness.branch_id) == param("branch_id"),
            any_of(HappeningAwareness.happening_id, "ids"),
            any_of(HappeningAwareness.character_id, "characters"),
            visible(HappeningAwareness),
        )
        .order_by(col(HappeningAwareness.row_id))
    )


@statement(StoryEntry)
def _entries_of_chapters() -> Any:
    return select(col(StoryEntry.row_id).label("row_id")).where(
        col(StoryEntry.branch_id) == param("branch_id"),
        any_of(StoryEntry.chapter_id, "chapters"),
        any_of(StoryEntry.row_id, "ids"),
    )


@dataclass(frozen=True, slots=True)
class Happenings:
    """Happenings that are near or of seated chapters, and who of those present knows of them."""

    rows: Rows
    # By happening; each has the chapter in which it was learned.
    awareness: Mapping[str, Sequence[Any]]
    in_seated_chapters: frozenset[str]


async def read_happenings(
    reading: Reading, viewer: Viewer, world: World, ids: Sequence[str], chapters: Sequence[str]
) -> Happenings:
    """The happenings with these ids, and those that occurred in these chapters."""
    branch_id = world.branch.id
    rows = await reading.all(
        _happenings(),
        branch_id=branch_id,
        ids=list(ids),
        chapters=list(chapters),
        **viewer.parameters,
    )
    occurred = [each.occurred_at_entry_id for each in rows if each.occurred_at_entry_id]
    within = await reading.all(
        _entries_of_chapters(), branch_id=branch_id, chapters=list(chapters), ids=occurred
    )
    entries = {each.row_id for each in within}
    known: dict[str, list[Any]] = {}
    for each in await reading.all(
        _awareness(),
        branch_id=branch_id,
        ids=[each.row_id for each in rows],
        characters=list(world.present),
        **viewer.parameters,
    ):
        known.setdefault(each.happening_id, []).append(each)
    return Happenings(
        {each.row_id: each for each in rows},
        known,
        frozenset(each.row_id for each in rows if each.occurred_at_entry_id in entries),
    )
