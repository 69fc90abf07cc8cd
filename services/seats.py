"""Seats: who may run a character. Taken, renewed and given back by runtimes elsewhere, and moved by
the character's custodian.

Servers take and give back the seat by themselves with each run (`services/runs/records.py`); while
somebody else holds it, runs of the character wait. The epoch rises whenever the seat changes hands.
Source: spec soul-mirror, section 1; glossary, sections 4, 7 and 8.
"""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import Boolean, Float, Integer, func, select, update
from sqlmodel import col

from db.reading import Writing, columns, param, statement
from db.tables import RuntimeSeat
from services import runs
from services.access import Viewer
from services.accounts import record_act
from services.characters import hold_alive
from services.errors import Conflict, Invalid
from services.hub import announce
from services.text import checked_text

# For how many seconds a seat can be taken at a time.
MIN_LEASE, MAX_LEASE = 1.0, 3600.0
MAX_HOLDER = 100
# How the names begin that servers give themselves.
_OF_SERVERS = "server_"

_CHARACTER = ("input", "characterId")
_EPOCH = ("input", "epoch")


async def acquire_seat(
    writing: Writing, viewer: Viewer, character_id: str, holder: str, lease_seconds: float
) -> RuntimeSeat:
    """Take a character's seat, when it is free, expired or the holder's own; the epoch rises, so
    that what the holder began before counts no more.

    Raises NotFound, Invalid (HOLDER_RESERVED, LEASE_OUT_OF_RANGE, TEXT_…) and Conflict
    (SEAT_LEASE_CONFLICT, CHARACTER_READ_ONLY).
    """
    _check_offer(holder, lease_seconds)
    character = await hold_alive(writing, viewer, character_id, *_CHARACTER)
    seat = await _hold_seat(writing, character.id)
    if seat.is_held and seat.lease_holder != holder:
        raise Conflict(
            "Somebody else holds this seat: wait until it is free, or move it (seatMigrate, "
            "seatHandover).",
            "SEAT_LEASE_CONFLICT",
            _CHARACTER,
        )
    return await _set(writing, viewer, seat, "seat_acquired", holder, lease_seconds, is_taken=True)


async def renew_seat(
    writing: Writing,
    viewer: Viewer,
    character_id: str,
    holder: str,
    epoch: int,
    lease_seconds: float,
) -> RuntimeSeat:
    """Keep a seat for longer. A lease that has run out can be renewed while nobody else took it.

    Raises NotFound, Invalid (HOLDER_RESERVED, LEASE_OUT_OF_RANGE, TEXT_…) and Conflict
    (STALE_SEAT_EPOCH, SEAT_LEASE_CONFLICT, CHARACTER_READ_ONLY).
    """
    _check_offer(holder, lease_seconds)
    character = await hold_alive(writing, viewer, character_id, *_CHARACTER)
    seat = await _hold_seat(writing, character.id)
    _check_epoch(seat, epoch)
    if seat.lease_holder != holder:
        raise Conflict(
            "You do not hold this seat any more: acquire it anew.",
            "SEAT_LEASE_CONFLICT",
            ("input", "holder"),
        )
    return await _set(writing, viewer, seat, "seat_renewed", holder, lease_seconds)


async def release_seat(
    writing: Writing, viewer: Viewer, character_id: str, epoch: int | None = None
) -> RuntimeSeat:
    """Stop what runs on a seat now and free it: at once, or as soon as the server that works on a
    run has kept its text. Runs that wait take their turn then. A free seat stays as it is.

    Raises NotFound and Conflict (STALE_SEAT_EPOCH, CHARACTER_READ_ONLY).
    """
    character = await hold_alive(writing, viewer, character_id, *_CHARACTER)
    return await _vacate(writing, viewer, character.id, epoch, in_work_only=True)


async def vacate_seat(writing: Writing, viewer: Viewer, character_id: str) -> None:
    """The same for a life that ends: runs that wait are stopped too. The caller holds the
    character.
    """
    await _vacate(writing, viewer, character_id, None, in_work_only=False)


async def _vacate(
    writing: Writing, viewer: Viewer, character_id: str, epoch: int | None, *, in_work_only: bool
) -> RuntimeSeat:
    is_in_work = await runs.cancel_runs_of_character(
        writing, viewer, character_id, in_work_only=in_work_only
    )
    seat = await _hold_seat(writing, character_id)
    if epoch is not None:
        _check_epoch(seat, epoch)
    if is_in_work or seat.lease_holder is None:
        return cast("RuntimeSeat", seat)
    return await _set(writing, viewer, seat, "seat_released", None)


async def migrate_seat(writing: Writing, viewer: Viewer, character_id: str) -> RuntimeSeat:
    """Take the seat away from whoever holds it, and leave it free. What runs on it ends now with
    STALE_SEAT_EPOCH, and its text so far is kept.

    Raises NotFound, Conflict (CHARACTER_READ_ONLY).
    """
    character = await hold_alive(writing, viewer, character_id, *_CHARACTER)
    return await empty_seat(writing, viewer, character.id)


async def empty_seat(writing: Writing, viewer: Viewer, character_id: str) -> RuntimeSeat:
    """The same for a character that the caller holds, and that need not be alive."""
    in_work = await runs.hold_runs_in_work(writing, viewer, character_id)
    seat = await _hold_seat(writing, character_id)
    moved = await _set(writing, viewer, seat, "seat_migrated", None, is_taken=True)
    await runs.end_fenced(writing, in_work)
    return moved


async def hand_over_seat(
    writing: Writing,
    viewer: Viewer,
    character_id: str,
    holder: str,
    epoch: int,
    lease_seconds: float,
) -> RuntimeSeat:
    """Give a held seat to another holder, so that it is never free in between. What runs on it
    ends as by `migrate_seat`.

    Raises NotFound, Invalid (HOLDER_RESERVED, LEASE_OUT_OF_RANGE, TEXT_…) and Conflict
    (STALE_SEAT_EPOCH, SEAT_NOT_HELD, CHARACTER_READ_ONLY).
    """
    _check_offer(holder, lease_seconds)
    character = await hold_alive(writing, viewer, character_id, *_CHARACTER)
    in_work = await runs.hold_runs_in_work(writing, viewer, character.id)
    seat = await _hold_seat(writing, character.id)
    _check_epoch(seat, epoch)
    if not seat.is_held:
        raise Conflict(
            "Nobody holds this seat: acquire it (seatAcquire).", "SEAT_NOT_HELD", _CHARACTER
        )
    moved = await _set(
        writing, viewer, seat, "seat_handed_over", holder, lease_seconds, is_taken=True
    )
    await runs.end_fenced(writing, in_work)
    return moved


def _check_offer(holder: str, lease_seconds: float) -> None:
    checked_text(holder, "input", "holder", max_length=MAX_HOLDER)
    if holder.startswith(_OF_SERVERS):
        raise Invalid(
            f"Names that begin with {_OF_SERVERS} are the servers': choose another.",
            "HOLDER_RESERVED",
            ("input", "holder"),
        )
    if not MIN_LEASE <= lease_seconds <= MAX_LEASE:
        raise Invalid(
            f"A seat is held for {MIN_LEASE:.0f} to {MAX_LEASE:.0f} seconds at a time.",
            "LEASE_OUT_OF_RANGE",
            ("input", "leaseSeconds"),
        )


def _check_epoch(seat: RuntimeSeat, epoch: int) -> None:
    if seat.epoch != epoch:
        raise Conflict(
            f"The seat has changed hands since: its epoch is {seat.epoch}.",
            "STALE_SEAT_EPOCH",
            _EPOCH,
        )


@statement(RuntimeSeat)
def _seat_held() -> Any:
    return (
        select(
            *columns(RuntimeSeat),
            func.coalesce(col(RuntimeSeat.lease_expires_at) > func.clock_timestamp(), False).label(
                "is_held"
            ),
        )
        .where(col(RuntimeSeat.character_id) == param("character_id"))
        .with_for_update()
    )


async def _hold_seat(writing: Writing, character_id: str) -> Any:
    """The seat, held, and whether somebody sits on it (`is_held`)."""
    return await writing.first(_seat_held(), character_id=character_id)


@statement(RuntimeSeat)
def _set_seat() -> Any:
    lease = func.make_interval(0, 0, 0, 0, 0, 0, param("lease_seconds", Float()))
    return (
        update(RuntimeSeat)
        .where(col(RuntimeSeat.id) == param("of_id"))
        .values(
            epoch=col(RuntimeSeat.epoch) + func.cast(param("is_taken", Boolean()), Integer()),
            lease_holder=param("holder"),
            # Null where the lease is null, which is a free seat's.
            lease_expires_at=func.clock_timestamp() + lease,
        )
        .returning(*columns(RuntimeSeat))
    )


async def _set(
    writing: Writing,
    viewer: Viewer,
    seat: RuntimeSeat,
    action: str,
    holder: str | None,
    lease_seconds: float | None = None,
    *,
    is_taken: bool = False,
) -> RuntimeSeat:
    changed = await writing.first(
        _set_seat(), of_id=seat.id, holder=holder, lease_seconds=lease_seconds, is_taken=is_taken
    )
    assert changed is not None
    arguments = {"character_id": seat.character_id, "epoch": changed.epoch}
    await record_act(writing, viewer, action, seat.id, arguments)
    if holder is None:
        # Runs that waited for the seat can be taken up.
        await announce(writing, runs.QUEUE_TOPIC)
    return changed
