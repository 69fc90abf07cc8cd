"""What is, what goes on and what has happened in a story: lore, threads, happenings, and who took
part in them and knows of them.

Source: spec aventuras, happenings and character knowledge; injection modes.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint

from db.columns import (
    BranchRow,
    boolean_column,
    branch_column,
    created_at_column,
    double_column,
    enum_column,
    integer_column,
    json_list_column,
    link_column,
    one_of,
    row_id_column,
    text_column,
    time_column,
)
from db.enums import InjectionMode, ThreadStatus


class Lore(BranchRow, table=True):
    """Something that is so in the world."""

    __tablename__ = "lore"
    __table_args__ = (
        one_of("injection_mode", InjectionMode),
        CheckConstraint("priority BETWEEN 0 AND 100", name="priority"),
        Index(None, "branch_id", "created_at", "id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    title: str = text_column()
    body: str = text_column()
    category: str | None = text_column(nullable=True)
    tags: list[str] = json_list_column("tags")
    keywords: list[str] = json_list_column("keywords")
    injection_mode: InjectionMode = enum_column()
    # Of 100; the higher, the likelier it comes into a prompt.
    priority: int = integer_column(default=50)
    embedding_stale: bool = boolean_column(default=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()


class Thread(BranchRow, table=True):
    """A strand of the plot."""

    __tablename__ = "threads"
    __table_args__ = (
        one_of("status", ThreadStatus),
        one_of("injection_mode", InjectionMode),
        Index(None, "branch_id", "created_at", "id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    title: str = text_column()
    description: str = text_column(default="")
    category: str | None = text_column(nullable=True)
    # The name of a picture in a catalogue of the front end's.
    icon: str | None = text_column(nullable=True)
    status: ThreadStatus = enum_column()
    injection_mode: InjectionMode = enum_column()
    triggered_at_entry_id: str | None = link_column(nullable=True)
    resolved_at_entry_id: str | None = link_column(nullable=True)
    embedding_stale: bool = boolean_column(default=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()


class Happening(BranchRow, table=True):
    """Something that occurred, goes on or is to come, and can be known."""

    __tablename__ = "happenings"
    __table_args__ = (
        # It has a place in the story or a time in words, never both.
        CheckConstraint("occurred_at_entry_id IS NULL OR temporal IS NULL", name="one_time_anchor"),
        Index(None, "branch_id", "created_at", "id"),
        Index(None, "branch_id", "occurred_at_entry_id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    title: str = text_column()
    description: str = text_column(default="")
    category: str | None = text_column(nullable=True)
    icon: str | None = text_column(nullable=True)
    temporal: str | None = text_column(nullable=True)
    occurred_at_entry_id: str | None = link_column(nullable=True)
    # Everybody knows it: nobody's awareness is written down.
    common_knowledge: bool = boolean_column(default=False)
    embedding_stale: bool = boolean_column(default=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()


class HappeningInvolvement(BranchRow, table=True):
    """An entity that took part in a happening."""

    __tablename__ = "happening_involvements"
    __table_args__ = (
        Index(None, "branch_id", "happening_id"),
        Index(None, "branch_id", "entity_id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    happening_id: str = link_column()
    entity_id: str = link_column()
    # In free words: actor, target, site.
    role: str | None = text_column(nullable=True)


class HappeningAwareness(BranchRow, table=True):
    """A character that knows of a happening: since when, and how."""

    __tablename__ = "happening_awareness"
    __table_args__ = (
        CheckConstraint("decay_resistance BETWEEN 0 AND 1", name="decay_resistance"),
        CheckConstraint("retrieval_count >= 0", name="retrieval_count"),
        UniqueConstraint("branch_id", "character_id", "happening_id"),
        Index(None, "branch_id", "happening_id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    happening_id: str = link_column()
    character_id: str = link_column()
    learned_at_entry_id: str | None = link_column(nullable=True)
    # From 0, fades as others do, to 1, never fades.
    decay_resistance: float = double_column(default=0)
    # How often it came into a prompt in this chapter.
    retrieval_count: int = integer_column(default=0)
    # In free words: overheard in the tavern.
    source: str | None = text_column(nullable=True)
