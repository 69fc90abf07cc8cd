"""Seats: who may run a character, and how that changes."""

from __future__ import annotations

from datetime import datetime

import strawberry

from resolvers import characters as resolve
from schema.base import Node, Payload, described, described_input, field, mutation, row_type

_HOLDER = "What you call yourself, 100 characters at most; not beginning with server_."
_LEASE = "For how many seconds from now: 1 to 3600. Renew it before that."
_EPOCH = "The seat's epoch as you know it; another one is refused with STALE_SEAT_EPOCH."


@row_type
class RuntimeSeat(Node):
    """The one seat from which a character may run."""

    epoch: int = field("Rises whenever the seat is taken anew; what began before counts no more.")
    lease_holder: str | None = field(
        "Who holds the seat now: a server of this system, or the name that a runtime elsewhere "
        "gave itself."
    )
    lease_expires_at: datetime | None = field("Until when; null while the seat is free.")


@described_input
class SeatAcquireInput:
    """A seat to take for a runtime elsewhere."""

    character_id: strawberry.ID = field("The character to run.")
    holder: str = field(_HOLDER)
    lease_seconds: int = field(_LEASE, default=30)


@described
class SeatAcquirePayload(Payload):
    """The seat that was taken."""

    seat: RuntimeSeat | None = field("Keep its epoch: renewing needs it.")


@described_input
class SeatRenewInput:
    """A seat to keep for longer."""

    character_id: strawberry.ID = field("The character.")
    holder: str = field("The name under which the seat was taken.")
    epoch: int = field(_EPOCH)
    lease_seconds: int = field(_LEASE, default=30)


@described
class SeatRenewPayload(Payload):
    """The seat that is held on."""

    seat: RuntimeSeat | None = field("With its new expiry.")


@described_input
class SeatReleaseInput:
    """A seat to free."""

    character_id: strawberry.ID = field("The character.")
    epoch: int | None = field(f"{_EPOCH} Null frees it whoever holds it.", default=None)


@described
class SeatReleasePayload(Payload):
    """The seat."""

    seat: RuntimeSeat | None = field(
        "Free; or still held by a server that was asked to stop, until it has kept its text."
    )


@described_input
class SeatMigrateInput:
    """A seat to take away from its holder."""

    character_id: strawberry.ID = field("The character.")


@described
class SeatMigratePayload(Payload):
    """The seat."""

    seat: RuntimeSeat | None = field("Free, and with a new epoch.")


@described_input
class SeatHandoverInput:
    """A held seat to give to another holder."""

    character_id: strawberry.ID = field("The character.")
    holder: str = field(f"The new holder. {_HOLDER}")
    epoch: int = field(_EPOCH)
    lease_seconds: int = field(_LEASE, default=30)


@described
class SeatHandoverPayload(Payload):
    """The seat of its new holder."""

    seat: RuntimeSeat | None = field("With a new epoch.")


@strawberry.type
class SeatMutation:
    """Changes to seats."""

    seat_acquire: SeatAcquirePayload = mutation(
        resolve.acquire_seat,
        input=SeatAcquireInput,
        payload=SeatAcquirePayload,
        description="Run a character elsewhere: its answers here wait while its seat is held.",
    )
    seat_renew: SeatRenewPayload = mutation(
        resolve.renew_seat,
        input=SeatRenewInput,
        payload=SeatRenewPayload,
        description="Hold a seat for longer.",
    )
    seat_release: SeatReleasePayload = mutation(
        resolve.release_seat,
        input=SeatReleaseInput,
        payload=SeatReleasePayload,
        description="Stop what runs on a seat, as runCancel does, and free it.",
    )
    seat_migrate: SeatMigratePayload = mutation(
        resolve.migrate_seat,
        input=SeatMigrateInput,
        payload=SeatMigratePayload,
        description=(
            "Take a seat away from whoever holds it: what runs on it ends at once with "
            "STALE_SEAT_EPOCH, and its text so far is kept."
        ),
    )
    seat_handover: SeatHandoverPayload = mutation(
        resolve.hand_over_seat,
        input=SeatHandoverInput,
        payload=SeatHandoverPayload,
        description="Give a held seat to another holder without a gap; what runs on it ends.",
    )
