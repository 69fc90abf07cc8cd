"""Characters and drafts, as they can be read."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import CharacterStatus, EmbryoStatus, Origin
from resolvers import characters as resolve
from schema.accounts import User
from schema.base import (
    Connection,
    Node,
    described,
    enum,
    field,
    relation,
    row_type,
)

enum(
    Origin,
    ORIGINAL="Made here.",
    ADOPTED="Taken over from another user.",
    IMPORTED="Read from a file.",
    SERENDIPITY="Met by chance.",
)
enum(
    EmbryoStatus,
    DRAFT="Being written.",
    REHEARSING="In trial talk.",
    READY="Complete, waiting for confirmation.",
    ISSUED="Has become a character.",
)
enum(
    CharacterStatus,
    ACTIVE="Lives and can be talked with.",
    SUSPENDED="Set aside for now.",
    DEATH_PENDING="In the cooling-off period before death.",
    DECEASED="A read-only archive.",
    PURGED="Its data was erased.",
)

if TYPE_CHECKING:
    from schema.mirrors import MirrorTree

LazyMirrorTree = Annotated["MirrorTree", strawberry.lazy("schema.mirrors")]


@row_type
class RuntimeSeat(Node):
    """The one seat from which a character may run."""

    epoch: int = field("Rises whenever the seat is taken anew.")
    lease_holder: str | None = field("The server that holds the seat now.")
    lease_expires_at: datetime | None = field("Until when; null while the seat is free.")


@row_type
class Character(Node):
    """A character that was activated and lives on."""

    name: str = field("What the character is called.")
    status: CharacterStatus = field("Where it stands in its life.")
    origin: Origin = field("Where it comes from.")
    identity_baseline: JSON = field(
        "Who it is at the core (core_anchor) and what must never happen (forbidden_zone)."
    )
    custodian: User | None = relation(
        resolve.custodians_of_characters, "The user who governs the character."
    )
    seat: RuntimeSeat | None = relation(
        resolve.seats_of_characters, "The seat that a run must hold."
    )
    trees: Connection[LazyMirrorTree] = relation(
        resolve.trees_of_characters, "Mirror trees with this character, newest first."
    )
    created_at: datetime = field("When it was activated.")
    version: int = field("Counts its changes, from 1.")


@described
class ChecklistPoint:
    """Something to look at before a draft becomes a character."""

    key: str = field("Pass it as confirmed when activating.")
    label: str = field("What is confirmed.")
    is_confirmed: bool = field("Whether it was confirmed.")


@row_type
class EmbryoDraft(Node):
    """A draft that may become a character."""

    origin: Origin = field("Where it comes from.")
    status: EmbryoStatus = field("How far it has come.")
    provisional_identity: JSON = field("Who it is to be, in the field names of a character card.")
    checklist: list[ChecklistPoint] = field("What must be confirmed before activation.")
    created_at: datetime = field("When it was made.")
    version: int = field("Counts its changes, from 1.")
