"""Lorebooks: texts that come into a prompt when their keys are spoken of.

Source: spec soul-mirror, section 5; glossary, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint

from db.columns import (
    Table,
    boolean_column,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    json_list_column,
    one_of,
    reference,
    text_column,
    time_column,
    version_column,
)
from db.enums import LorePosition, ReviewStatus, SelectiveLogic


@dataclass(frozen=True, slots=True)
class LoreRecursion:
    """How an entry takes part when the text of entries is searched for keys as well."""

    exclude: bool
    prevent: bool
    delay_until: int


class Lorebook(Table, table=True):
    """A book of entries: of a draft until it is activated, then of the character, or of a user."""

    __tablename__ = "lorebooks"
    __table_args__ = (
        Index(None, "owner_user_id", "created_at", "id"),
        Index(None, "character_id", "created_at", "id"),
        Index(None, "embryo_draft_id"),
    )

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    # The draft whose card it came with; it goes with the draft.
    embryo_draft_id: str | None = reference("embryo_drafts.id", nullable=True, on_delete="CASCADE")
    # Whose it is, from the activation of the draft on.
    character_id: str | None = reference("characters.id", nullable=True)
    # The import that brought it.
    import_job_id: str | None = reference(
        "import_jobs.id", nullable=True, unique=True, on_delete="SET NULL"
    )
    name: str = text_column()
    description: str = text_column(default="")
    # How many messages back keys are looked for; null leaves it to the reader.
    scan_depth: int | None = integer_column(nullable=True)
    # How many tokens all entries may take; null leaves it to the reader.
    token_budget: int | None = integer_column(nullable=True)
    is_recursive: bool = boolean_column(default=False)
    # The book exactly as the file had it, entries included, for a faithful export.
    source: dict[str, Any] = json_column("source_json")
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()


class LorebookEntry(Table, table=True):
    """One text and what brings it up."""

    __tablename__ = "lorebook_entries"
    __table_args__ = (
        one_of("selective_logic", SelectiveLogic),
        one_of("position", LorePosition),
        one_of("review_status", ReviewStatus),
        UniqueConstraint("lorebook_id", "number"),
    )

    id: str = id_column()
    lorebook_id: str = reference("lorebooks.id", on_delete="CASCADE")
    # The place in the book, from 1.
    number: int = integer_column()
    name: str = text_column(default="")
    keys: list[str] = json_list_column("keys_json")
    secondary_keys: list[str] = json_list_column("secondary_keys_json")
    selective_logic: SelectiveLogic = enum_column()
    is_constant: bool = boolean_column(default=False)
    position: LorePosition = enum_column()
    # How many messages from the end, where the position is at_depth.
    depth: int = integer_column(default=4)
    # Lower stands earlier.
    insertion_order: int = integer_column(default=100)
    # In percent.
    probability: int = integer_column(default=100)
    # In messages: how long it stays, how long it rests, from when on it counts.
    sticky: int | None = integer_column(nullable=True)
    cooldown: int | None = integer_column(nullable=True)
    delay: int | None = integer_column(nullable=True)
    # {exclude, prevent, delay_until}; read through `recursion`.
    recursion_values: dict[str, Any] = json_column("recursion_json")
    content: str = text_column()
    is_enabled: bool = boolean_column(default=True)
    review_status: ReviewStatus = enum_column()
    reviewed_at: datetime | None = time_column()
    # The entry exactly as the file had it, for a faithful export.
    source: dict[str, Any] = json_column("source_json")
    created_at: datetime = created_at_column()
    version: int = version_column()

    @property
    def recursion(self) -> LoreRecursion:
        """How it takes part when entries wake further entries."""
        return LoreRecursion(**self.recursion_values)
