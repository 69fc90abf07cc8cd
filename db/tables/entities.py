"""The actors of a story's world: characters, locations, items, factions; and how characters see
one another.

Source: spec aventuras, world-state storage; character-to-character relationships.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text

from db.columns import (
    BranchRow,
    boolean_column,
    branch_column,
    created_at_column,
    enum_column,
    integer_column,
    json_column,
    json_list_column,
    link_column,
    one_of,
    row_id_column,
    text_column,
    time_column,
)
from db.enums import CollisionReason, EntityKind, EntityStatus, InjectionMode


@dataclass(frozen=True, slots=True)
class Visual:
    """How a character looks; what nobody has said is null."""

    physique: str | None = None
    face: str | None = None
    hair: str | None = None
    eyes: str | None = None
    attire: str | None = None
    distinguishing: str | None = None


@dataclass(frozen=True, slots=True)
class Stackable:
    """A quantity of something that comes in numbers."""

    key: str
    count: int


class StoryEntity(BranchRow, table=True):
    """An actor of a branch. What its `state` holds depends on its kind (services/shapes)."""

    __tablename__ = "entities"
    __table_args__ = (
        one_of("kind", EntityKind),
        one_of("status", EntityStatus),
        one_of("injection_mode", InjectionMode),
        one_of("name_collision_reason", CollisionReason),
        CheckConstraint("priority BETWEEN 0 AND 100", name="priority"),
        Index(None, "branch_id", "created_at", "id"),
        # Who is where, who belongs to what, what lies within what.
        Index(
            "ix_entities_current_location", "branch_id", text("(state ->> 'current_location_id')")
        ),
        Index("ix_entities_parent_location", "branch_id", text("(state ->> 'parent_location_id')")),
        Index("ix_entities_at_location", "branch_id", text("(state ->> 'at_location_id')")),
        Index("ix_entities_faction", "branch_id", text("(state ->> 'faction_id')")),
        # Who holds what.
        Index(
            "ix_entities_held",
            text("((state -> 'equipped_items') || (state -> 'inventory'))"),
            postgresql_using="gin",
            postgresql_where=text("kind = 'character'"),
        ),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    kind: EntityKind = enum_column()
    name: str = text_column()
    # Who or what it is, in prose: people's text.
    description: str = text_column(default="")
    status: EntityStatus = enum_column()
    # Why it is gone, where it is retired.
    retired_reason: str | None = text_column(nullable=True)
    # Other names.
    keywords: list[str] = json_list_column("keywords")
    injection_mode: InjectionMode = enum_column()
    # Of 100; which comes first where not all fit.
    priority: int = integer_column(default=50)
    # Whether it may be a duplicate of a namesake, of which, and why it was thought so.
    name_collision_flag: bool = boolean_column(default=False)
    name_collision_partner_id: str | None = link_column(nullable=True)
    name_collision_reason: CollisionReason | None = enum_column(nullable=True)
    state: dict[str, Any] = json_column("state")
    tags: list[str] = json_list_column("tags")
    embedding_stale: bool = boolean_column(default=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()

    @property
    def traits(self) -> list[str]:
        """What a character is like."""
        return list(self.state.get("traits", ()))

    @property
    def drives(self) -> list[str]:
        """What moves a character."""
        return list(self.state.get("drives", ()))

    @property
    def voice(self) -> str | None:
        """How a character speaks."""
        return self.state.get("voice")

    @property
    def visual(self) -> Visual:
        """How a character looks."""
        return Visual(**self.state.get("visual", {}))

    @property
    def stackables(self) -> list[Stackable]:
        """What a character has of things that come in numbers, by name."""
        held = self.state.get("stackables", {})
        return [Stackable(key, held[key]) for key in sorted(held)]

    @property
    def last_seen_world_time(self) -> int | None:
        """When a character was last present, in seconds since the beginning of the story."""
        seen = self.state.get("lastSeenAt")
        return seen and int(seen["worldTime"])

    @property
    def condition(self) -> str | None:
        """What has become of a location or an item."""
        return self.state.get("condition")

    @property
    def standing(self) -> str | None:
        """How a faction stands."""
        return self.state.get("standing")

    @property
    def agenda(self) -> list[str]:
        """What a faction is after."""
        return list(self.state.get("agenda", ()))


class CharacterRelationship(BranchRow, table=True):
    """What two characters are to each other: one row for the two, with the view of each."""

    __tablename__ = "character_relationships"
    __table_args__ = (
        # Bytes, as the ids are compared where they are written.
        CheckConstraint('a_id COLLATE "C" < b_id COLLATE "C"', name="pair_is_ordered"),
        CheckConstraint("kind IS NOT NULL OR inverse_kind IS NOT NULL", name="one_view_is_known"),
        UniqueConstraint("branch_id", "a_id", "b_id"),
        Index(None, "branch_id", "b_id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    a_id: str = link_column()
    b_id: str = link_column()
    # What b is to a, and a to b; null until it is known.
    kind: str | None = text_column(nullable=True)
    inverse_kind: str | None = text_column(nullable=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
