"""Characters: drafts, activated characters, who governs them, and the seat they run from.

Source: spec soul-mirror, section 1; glossary, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Index

from db.columns import (
    Table,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    one_of,
    reference,
    text_column,
    time_column,
    version_column,
)
from db.enums import CharacterStatus, CustodianshipStatus, EmbryoStatus, Origin


@dataclass(frozen=True, slots=True)
class ChecklistPoint:
    """One thing to look at before a draft becomes a character."""

    key: str
    label: str
    is_confirmed: bool


class EmbryoDraft(Table, table=True):
    """A draft that may become a character. It is not a character; abandoning it deletes the row."""

    __tablename__ = "embryo_drafts"
    __table_args__ = (
        one_of("origin", Origin),
        one_of("status", EmbryoStatus),
        Index(None, "owner_user_id", "created_at", "id"),
    )

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    origin: Origin = enum_column()
    status: EmbryoStatus = enum_column()
    # The card's own field names (name, description, personality, …) in the shape of card V3.
    provisional_identity: dict[str, Any] = json_column("provisional_identity_json")
    # [{key, label, is_confirmed}]; read through `checklist`.
    checklist_points: list[dict[str, Any]] = json_column("checklist_json")
    # The imported file's JSON exactly as it was, for a faithful export; null for other origins.
    source_card: dict[str, Any] | None = json_column("source_card_json", nullable=True)
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()

    @property
    def checklist(self) -> list[ChecklistPoint]:
        """What must be confirmed before activation, in order."""
        return [ChecklistPoint(**point) for point in self.checklist_points]


class Character(Table, table=True):
    """A character that was activated and lives on."""

    __tablename__ = "characters"
    __table_args__ = (
        one_of("origin", Origin),
        one_of("status", CharacterStatus),
        Index(None, "custodian_user_id", "created_at", "id"),
    )

    id: str = id_column()
    # Repeats the active custodianship, so that visibility is one comparison.
    custodian_user_id: str = reference("users.id")
    embryo_draft_id: str | None = reference("embryo_drafts.id", nullable=True, unique=True)
    name: str = text_column()
    origin: Origin = enum_column()
    status: CharacterStatus = enum_column()
    # Core anchor and forbidden zone: no run may change it.
    identity_baseline: dict[str, Any] = json_column("identity_baseline_json")
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()


class Custodianship(Table, table=True):
    """That a user governs a character: one to one, and apart from any covenant."""

    __tablename__ = "custodianships"
    __table_args__ = (one_of("status", CustodianshipStatus), Index(None, "user_id"))

    id: str = id_column()
    user_id: str = reference("users.id")
    character_id: str = reference("characters.id", unique=True)
    status: CustodianshipStatus = enum_column()
    started_at: datetime = created_at_column()
    ended_at: datetime | None = time_column()


class RuntimeSeat(Table, table=True):
    """The one seat from which a character may run: a lease with a holder, an expiry and an epoch.

    The epoch rises whenever the seat is taken anew; a run whose epoch is older than its seat's can
    commit nothing.
    """

    __tablename__ = "runtime_seats"

    id: str = id_column()
    character_id: str = reference("characters.id", unique=True)
    epoch: int = integer_column(default=1)
    lease_holder: str | None = text_column(nullable=True)
    lease_expires_at: datetime | None = time_column()
    created_at: datetime = created_at_column()
