"""Petitions: what a user must decide before it is done.

Source: spec soul-mirror, section 6 (`confirmations`); glossary, sections 4, 5 and 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, text

from db.columns import (
    Table,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    one_of,
    reference,
    time_column,
)
from db.enums import PetitionKind, PetitionStatus


@dataclass(frozen=True, slots=True)
class Brief:
    """What is asked, in six elements, for the person who decides."""

    action: str
    target: str
    purpose: str
    data_involved: str
    consequence: str
    reversibility: str


class Petition(Table, table=True):
    """A high-impact act that waits for a person's decision; time running out means no."""

    __tablename__ = "confirmations"
    __table_args__ = (
        one_of("kind", PetitionKind),
        one_of("status", PetitionStatus),
        CheckConstraint("(status = 'pending') = (decided_at IS NULL)", name="decided"),
        Index(None, "requested_by_user_id", "created_at", "id"),
        Index(None, "character_id", "created_at", "id"),
        # Of one kind a character has one open petition at most.
        Index(
            "uq_confirmations_pending",
            "character_id",
            "kind",
            unique=True,
            postgresql_where=text("status = 'pending' AND kind <> 'tool_execution'"),
        ),
        Index(
            "ix_confirmations_pending",
            "expires_at",
            postgresql_where=text("status = 'pending'"),
        ),
    )

    id: str = id_column()
    kind: PetitionKind = enum_column()
    status: PetitionStatus = enum_column()
    character_id: str = reference("characters.id")
    run_id: str | None = reference("runs.id", nullable=True)
    requested_by_user_id: str = reference("users.id")
    brief_json: dict[str, Any] = json_column("brief_json")
    # What is done on approval, in the shape of its kind; emptied when the character is erased.
    arguments: dict[str, Any] = json_column("arguments_json")
    # The version of the character that the act was asked for.
    character_version: int | None = integer_column(nullable=True)
    decided_by_user_id: str | None = reference("users.id", nullable=True)
    decided_at: datetime | None = time_column()
    expires_at: datetime = time_column(nullable=False)
    created_at: datetime = created_at_column()

    @property
    def brief(self) -> Brief:
        """The six elements."""
        return Brief(**self.brief_json)
