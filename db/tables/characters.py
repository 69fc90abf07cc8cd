"""Characters: drafts, activated characters, who governs them, and the seat they run from.

Source: spec soul-mirror, section 1; glossary, section 5.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, ForeignKey, Index, String, UniqueConstraint, text
from sqlmodel import Field

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
from db.enums import (
    CharacterStatus,
    CustodianshipStatus,
    EmbryoStatus,
    FormKind,
    FormStatus,
    Origin,
    VoiceSource,
)


@dataclass(frozen=True, slots=True)
class ChecklistPoint:
    """One thing to look at before a draft becomes a character."""

    key: str
    label: str
    is_confirmed: bool


@dataclass(frozen=True, slots=True)
class RehearsalTurn:
    """One turn of trial talk with a draft: what was asked and what it answered."""

    question: str
    answer: str
    # As its provider named it.
    model: str
    # When the answer was complete.
    at: datetime

    @staticmethod
    def from_json(stored: dict[str, Any]) -> RehearsalTurn:
        """The turn that a draft keeps."""
        return RehearsalTurn(**{**stored, "at": datetime.fromisoformat(stored["at"])})

    def to_json(self) -> dict[str, Any]:
        """The form in which a draft keeps it."""
        return {**asdict(self), "at": self.at.isoformat()}


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
    # The import that made it; its files go with the draft.
    import_job_id: str | None = reference("import_jobs.id", nullable=True, unique=True)
    # [{question, answer, model, at}]: trial talk, oldest first; read through `rehearsal`. It leaves
    # no trace elsewhere.
    rehearsal_turns: list[dict[str, Any]] = json_list_column("rehearsal_log_json")
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()

    @property
    def checklist(self) -> list[ChecklistPoint]:
        """What must be confirmed before activation, in order."""
        return [ChecklistPoint(**point) for point in self.checklist_points]

    @property
    def rehearsal(self) -> list[RehearsalTurn]:
        """The turns of trial talk, oldest first."""
        return [RehearsalTurn.from_json(turn) for turn in self.rehearsal_turns]


class Character(Table, table=True):
    """A character that was activated and lives on."""

    __tablename__ = "characters"
    __table_args__ = (
        one_of("origin", Origin),
        one_of("status", CharacterStatus),
        Index(None, "custodian_user_id", "created_at", "id"),
        Index(
            "ix_characters_death_pending",
            "cooling_off_until",
            postgresql_where=text("status = 'death_pending'"),
        ),
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
    # Set when its death was confirmed; until `cooling_off_until` it can be taken back.
    died_at: datetime | None = time_column()
    cooling_off_until: datetime | None = time_column()
    # Since when it is a read-only archive.
    archived_at: datetime | None = time_column()
    # Since when nothing but tombstones is left of it.
    erased_at: datetime | None = time_column()
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


class IdentityRecord(Table, table=True):
    """The verifiable history of who a character is: one for each character, in versions."""

    __tablename__ = "identity_records"

    id: str = id_column()
    character_id: str = reference("characters.id", unique=True)
    # Number of the newest version; raised under this row's lock.
    version_no: int = integer_column(default=0)
    created_at: datetime = created_at_column()


class IdentityRecordVersion(Table, table=True):
    """One version of who a character is, signed. Append-only: it holds digests, the text itself
    lies in `identity_packages`, where it can be erased.
    """

    __tablename__ = "identity_record_versions"
    __table_args__ = (UniqueConstraint("identity_record_id", "version_no"),)

    id: str = id_column()
    identity_record_id: str = reference("identity_records.id")
    # Counts from 1 within the record.
    version_no: int = integer_column()
    # SHA-256 of the canonical JSON of the package's manifest, lower-case hexadecimal.
    digest: str = text_column()
    # The digest of the version before, so that none can be taken out; null for the first.
    previous_digest: str | None = text_column(nullable=True)
    # Ed25519 over what the version says, and the public key to check it with; both in base64.
    signed_digest: str = text_column()
    signer: str = text_column()
    # The confirmed act behind this version; null for the first, which activation issues.
    petition_id: str | None = reference("confirmations.id", nullable=True)
    created_at: datetime = created_at_column()

    @property
    def signature(self) -> str:
        """The signature over the digests, in base64."""
        return self.signed_digest


class IdentityPackage(Table, table=True):
    """The text of a version of an identity record; erasure removes the row."""

    __tablename__ = "identity_packages"

    version_id: str = Field(
        sa_column=Column(String, ForeignKey("identity_record_versions.id"), primary_key=True)
    )
    package: dict[str, Any] = json_column("package_json")


@dataclass(frozen=True, slots=True)
class VariableFeature:
    """Something about an outward form that may change, and within which range."""

    feature: str
    range: str


class FormAnchor(Table, table=True):
    """What every outward form of a character keeps to."""

    __tablename__ = "form_anchors"

    id: str = id_column()
    character_id: str = reference("characters.id", unique=True)
    stable_traits: list[str] = json_list_column("stable_traits_json")
    permissions: list[str] = json_list_column("permissions_json")
    taboos: list[str] = json_list_column("taboos_json")
    # What may change, and within which range: {"hair": "black to silver"}; read through
    # `variable_range`.
    variable_ranges: dict[str, str] = json_column("variable_range_json")
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()

    @property
    def variable_range(self) -> list[VariableFeature]:
        """What may change, sorted by the feature: JSONB keeps no order of its own."""
        return [VariableFeature(*each) for each in sorted(self.variable_ranges.items())]


class Form(Table, table=True):
    """An outward form of a character: a candidate until its custodian settles it."""

    __tablename__ = "forms"
    __table_args__ = (
        one_of("kind", FormKind),
        one_of("status", FormStatus),
        Index(None, "character_id", "created_at", "id"),
        Index(
            "uq_forms_primary",
            "character_id",
            unique=True,
            postgresql_where=text("kind = 'primary' AND status = 'confirmed'"),
        ),
    )

    id: str = id_column()
    character_id: str = reference("characters.id")
    kind: FormKind = enum_column()
    status: FormStatus = enum_column()
    name: str = text_column()
    # What it looks like, in words.
    description: str = text_column()
    # Where its picture is kept, as the front end names it.
    asset_ref: str | None = text_column(nullable=True)
    settled_at: datetime | None = time_column()
    settled_by_user_id: str | None = reference("users.id", nullable=True)
    created_at: datetime = created_at_column()
    version: int = version_column()


# A hint shows nothing of this many characters at the beginning.
_HINT_FROM = 8


class VoiceProfile(Table, table=True):
    """A voice of a character, and whether the person it was cloned from allows it."""

    __tablename__ = "voice_profiles"
    __table_args__ = (
        one_of("source_kind", VoiceSource),
        Index(None, "character_id", "created_at", "id"),
        Index(
            "uq_voice_profiles_current",
            "character_id",
            unique=True,
            postgresql_where=text("is_current"),
        ),
    )

    id: str = id_column()
    character_id: str = reference("characters.id")
    name: str = text_column()
    source_kind: VoiceSource = enum_column()
    # Where the voice is kept, as the front end or its provider names it.
    source_ref: str | None = text_column(nullable=True)
    # Whether the character speaks with this one, where it may be used.
    is_current: bool = boolean_column(default=False)
    clone_authorized: bool = boolean_column(default=False)
    # What proves the permission. Sensitive (spec, section 10): lists show that it is there.
    authorization_ref: str | None = text_column(nullable=True)
    authorized_by_user_id: str | None = reference("users.id", nullable=True)
    authorized_at: datetime | None = time_column()
    # Until when the permission holds; null without an end.
    expires_at: datetime | None = time_column()
    created_at: datetime = created_at_column()
    version: int = version_column()

    @property
    def has_authorization(self) -> bool:
        """Whether there is a permission, though it may have run out."""
        return self.authorization_ref is not None

    @property
    def authorization_hint(self) -> str | None:
        """The masked form of what proves the permission: its end, and of a short one nothing."""
        if self.authorization_ref is None:
            return None
        return "…" + self.authorization_ref[_HINT_FROM:][-4:]

    @property
    def is_usable(self) -> bool:
        """Whether it may be spoken with now: a cloned one while its permission holds."""
        if self.source_kind != VoiceSource.CLONED:
            return True
        return self.clone_authorized and (
            self.expires_at is None or self.expires_at > datetime.now(UTC)
        )
