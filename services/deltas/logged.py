"""The tables whose changes are logged: their columns, their JSON, what their rows name.

Source: spec aventuras, deltas; reverse-replay: a row names its ends, a translation its target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from db.columns import BranchRow
from db.enums import EntityKind, LoggedTable, TranslationTarget
from db.tables import (
    Chapter,
    CharacterRelationship,
    EntryAsset,
    EraFlip,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    StoryEntry,
    Thread,
    Translation,
)
from services.shapes import STATES, EntryMeta, Fixed, shape_of

# A row as JSON: database column to value, as PostgreSQL's to_jsonb writes it.
Image = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Logged:
    """What the log must know of a table."""

    name: LoggedTable
    table: type[BranchRow]
    # JSON columns that are compared and restored part by part, with their shape in a row.
    shapes: Mapping[str, Callable[[Image], Fixed]] = field(default_factory=dict)
    # Columns with ids of rows without which this one is nothing: it goes when they go.
    names: tuple[str, ...] = ()
    # Columns whose text is embedded, and what kind of target the row is for that.
    embedded: tuple[str, ...] = ()
    # Columns of which no two rows of a branch have the same values, besides the id.
    unique: tuple[str, ...] = ()
    target_kind: TranslationTarget | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, by their names in the database."""
        return tuple(column.name for column in cast("Any", self.table).__table__.columns)

    @property
    def has_stale(self) -> bool:
        """Whether rows say that their text is still to be embedded."""
        return bool(self.embedded)


def _state_shape(image: Image) -> Fixed:
    return shape_of(STATES[EntityKind(image["kind"])])


def _meta_shape(_image: Image) -> Fixed:
    return shape_of(EntryMeta)


LOGGED: dict[LoggedTable, Logged] = {
    each.name: each
    for each in (
        Logged(
            LoggedTable.STORY_ENTRIES,
            StoryEntry,
            shapes={"metadata": _meta_shape},
            unique=("position",),
            target_kind=TranslationTarget.STORY_ENTRY,
        ),
        Logged(
            LoggedTable.ENTITIES,
            StoryEntity,
            shapes={"state": _state_shape},
            embedded=("name", "description"),
            target_kind=TranslationTarget.ENTITY,
        ),
        Logged(
            LoggedTable.LORE,
            Lore,
            embedded=("title", "body"),
            target_kind=TranslationTarget.LORE,
        ),
        Logged(
            LoggedTable.THREADS,
            Thread,
            embedded=("title", "description"),
            target_kind=TranslationTarget.THREAD,
        ),
        Logged(
            LoggedTable.HAPPENINGS,
            Happening,
            embedded=("title", "description"),
            target_kind=TranslationTarget.HAPPENING,
        ),
        Logged(
            LoggedTable.HAPPENING_INVOLVEMENTS,
            HappeningInvolvement,
            names=("happening_id", "entity_id"),
        ),
        Logged(
            LoggedTable.HAPPENING_AWARENESS,
            HappeningAwareness,
            names=("happening_id", "character_id"),
            unique=("happening_id", "character_id"),
        ),
        Logged(
            LoggedTable.CHARACTER_RELATIONSHIPS,
            CharacterRelationship,
            names=("a_id", "b_id"),
            unique=("a_id", "b_id"),
            target_kind=TranslationTarget.CHARACTER_RELATIONSHIP,
        ),
        Logged(
            LoggedTable.CHAPTERS,
            Chapter,
            embedded=("summary", "theme"),
            target_kind=TranslationTarget.CHAPTER,
        ),
        Logged(LoggedTable.ENTRY_ASSETS, EntryAsset, names=("entry_id",)),
        Logged(
            LoggedTable.TRANSLATIONS,
            Translation,
            names=("target_id",),
            unique=("target_id", "target_kind", "field", "language"),
        ),
        Logged(LoggedTable.BRANCH_ERA_FLIPS, EraFlip, unique=("at_worldtime",)),
    )
}
# Shapes with which undo would be ambiguous are refused here, when a server starts.
for _model in (*STATES.values(), EntryMeta):
    shape_of(_model)

# Tables whose rows go when a row is deleted that they name.
DEPENDENT = [each for each in LOGGED.values() if each.names]
# Tables in the order in which rows may be put in or, backwards, taken out. Nothing enforces it;
# it is one order for everybody, so that two writers never wait for each other.
ORDER = tuple(LOGGED)


# Follows from the texts and from what has been embedded, so it is neither compared nor logged.
STALE = "embedding_stale"


def logged_of(table: type[BranchRow]) -> Logged:
    """What the log knows of a table class."""
    return _BY_TABLE[table]


_BY_TABLE = {each.table: each for each in LOGGED.values()}
