"""Petitions: opening what a person must decide, listing and watching it, and letting time run out.

What an approval carries out is not here: `services/decisions.py` knows it.
Source: spec soul-mirror, section 6 (`confirmations`); glossary, sections 4, 7 and 8.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import DateTime, func, or_, select, update
from sqlmodel import col

from db.engine import Database
from db.enums import AuditOutcome, PetitionKind, PetitionStatus
from db.ids import new_id
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, columns, param, statement
from db.tables import Brief, Character, Petition
from services.access import ANONYMOUS, Viewer, hold_row, require_row, rows_by_ids, visible
from services.accounts import record_act
from services.errors import Conflict
from services.hub import Hub, announce

# Time to decide; running out of it means no.
PETITION_LIFE = timedelta(hours=24)
PETITION_EXPIRED = "PETITION_EXPIRED"

# Longer than any transaction lasts: what was decided by the clock before a look may be committed
# after it, and is still found by the next.
_OVERLAP = timedelta(minutes=10)
# Petitions that one step of the chore lets expire.
_STEP = 100

_OUTCOMES: dict[PetitionStatus, AuditOutcome] = {
    PetitionStatus.APPROVED: AuditOutcome.CONFIRMED,
    PetitionStatus.DENIED: AuditOutcome.DENIED,
    PetitionStatus.EXPIRED: AuditOutcome.EXPIRED,
}

PETITIONS = PagedList(
    "petitions",
    Petition,
    sort=[
        SortKey(col(Petition.created_at), is_descending=True),
        SortKey(col(Petition.id), is_descending=True),
    ],
    where=lambda: (
        visible(Petition) & or_(param("status").is_(None), col(Petition.status) == param("status"))
    ),
)


def petitions_topic(user_id: str) -> str:
    """What is announced when a petition of a user's characters is opened, decided or expires."""
    return f"petitions:{user_id}"


async def open_petition(
    writing: Writing,
    viewer: Viewer,
    kind: PetitionKind,
    character: Character,
    brief: Brief,
    arguments: dict[str, Any],
) -> Petition:
    """Ask for an act on a character, which is done when it is approved within PETITION_LIFE.

    `arguments` is what the act needs, in the shape of its kind; the character's version is noted
    beside it. Raises Conflict with PETITION_PENDING while another of that kind waits.
    """
    overdue = await writing.all(_overdue_of_character(), character_id=character.id, kind=kind)
    await _expire(writing, overdue)
    petition_id = new_id("confirmations")
    row = {
        "id": petition_id,
        "kind": kind,
        "status": PetitionStatus.PENDING,
        "character_id": character.id,
        "requested_by_user_id": viewer.signed_in_id,
        "brief_json": asdict(brief),
        "arguments": arguments,
        "character_version": character.version,
        "expires_at": await writing.value(_now()) + PETITION_LIFE,
    }
    # Of two at once the second waits here for the first, and then is not written.
    await writing.insert_many(Petition, [row], unless_there=True)
    (petition,) = await rows_by_ids(writing, viewer, Petition, [petition_id])
    if petition is None:
        raise Conflict(
            f"A petition of the kind {kind.value} waits for this character already: decide it "
            "first.",
            "PETITION_PENDING",
            ("input", "characterId"),
        )
    await record_act(
        writing,
        viewer,
        "petition_opened",
        petition.id,
        {"kind": kind, "character_id": character.id},
    )
    await announce(writing, petitions_topic(character.custodian_user_id))
    return petition


async def hold_pending(
    writing: Writing, viewer: Viewer, petition_id: str, *path: str | int
) -> Petition:
    """A petition that can still be decided; it and its character are held.

    Raises NotFound and Conflict (PETITION_DECIDED, PETITION_EXPIRED).
    """
    petition = await require_row(writing, viewer, Petition, petition_id, *path)
    # The character first, as where a petition is opened: two orders would deadlock.
    await hold_row(writing, viewer, Character, petition.character_id, *path)
    petition = await hold_row(writing, viewer, Petition, petition.id, *path)
    is_pending = petition.status == PetitionStatus.PENDING
    is_overdue = is_pending and petition.expires_at <= await writing.value(_now())
    if is_overdue or petition.status == PetitionStatus.EXPIRED:
        raise Conflict(
            "The time to decide this has run out, which means no: ask for it anew.",
            PETITION_EXPIRED,
            path,
            details={"hjCode": "HJ-1302"},
        )
    if not is_pending:
        raise Conflict(
            f"This petition was decided before: it is {petition.status}.", "PETITION_DECIDED", path
        )
    return petition


async def expire_if_overdue(writing: Writing, viewer: Viewer, petition_id: str) -> None:
    """Write down that a petition's time has run out, where it has; nothing else is done."""
    overdue = await writing.all(_overdue_by_id(), petition_id=petition_id, **viewer.parameters)
    await _expire(writing, overdue)


async def settle_petition(
    writing: Writing, viewer: Viewer, petition: Petition, status: PetitionStatus
) -> Petition:
    """Write down how a petition ended, on the record and for those who watch."""
    settled = await writing.first(
        _settle(), of_id=petition.id, new_status=status, decider=viewer.user_id
    )
    assert settled is not None
    await record_act(
        writing,
        viewer,
        f"petition_{status.value}",
        petition.id,
        {"kind": petition.kind, "character_id": petition.character_id},
        _OUTCOMES[status],
    )
    custodian = await writing.value(_custodian(), character_id=petition.character_id)
    await announce(writing, petitions_topic(custodian))
    return settled


async def expire_petitions(writing: Writing) -> int:
    """Let petitions expire whose time has run out, some at a time; how many there were."""
    overdue = await writing.all(_overdue())
    await _expire(writing, overdue)
    return len(overdue)


async def _expire(writing: Writing, overdue: Sequence[Petition]) -> None:
    # Nobody decides it: the clock does.
    for petition in overdue:
        await settle_petition(writing, ANONYMOUS, petition, PetitionStatus.EXPIRED)


async def list_petitions(
    reading: Reading, viewer: Viewer, request: PageRequest, status: PetitionStatus | None
) -> Page[Petition]:
    """Petitions about the viewer's characters, newest first; of one status, or all."""
    return await PETITIONS.page(reading, request, status=status, **viewer.parameters)


async def follow_petitions(
    database: Database, hub: Hub, viewer: Viewer
) -> AsyncGenerator[Petition, None]:
    """Petitions about the viewer's characters: those that wait now, then each that is opened,
    decided or expires, as it is then. Does not end by itself.

    One that is opened and decided between two looks comes once. Raises Forbidden (NOT_SIGNED_IN)
    and Unavailable when the stream must end early: come back and see again what waits.
    """
    subscription = hub.subscribe(petitions_topic(viewer.signed_in_id))
    try:
        async with database.reading() as reading:
            since = await reading.value(_now())
            rows = await _recent(reading, viewer, since)
        settled = [each for each in rows if each.status != PetitionStatus.PENDING]
        known = {each.id: each.status for each in settled}
        while True:
            for petition in rows:
                if known.get(petition.id) != petition.status:
                    yield petition
            known = {each.id: each.status for each in rows}
            await subscription.wait()
            async with database.reading() as reading:
                next_since = await reading.value(_now())
                rows = await _recent(reading, viewer, since)
            since = next_since
    finally:
        subscription.close()


async def _recent(reading: Reading, viewer: Viewer, since: datetime) -> list[Petition]:
    return await reading.all(_recent_petitions(), since=since - _OVERLAP, **viewer.parameters)


@statement(Petition)
def _recent_petitions() -> Any:
    """What waits, and what was decided since a moment, oldest first."""
    return (
        select(*columns(Petition))
        .where(
            or_(
                col(Petition.status) == PetitionStatus.PENDING.value,
                col(Petition.decided_at) > param("since", DateTime(timezone=True)),
            ),
            visible(Petition),
        )
        .order_by(col(Petition.created_at), col(Petition.id))
    )


@statement(object)
def _now() -> Any:
    return select(func.clock_timestamp())


@statement(object)
def _custodian() -> Any:
    return select(col(Character.custodian_user_id)).where(
        col(Character.id) == param("character_id")
    )


def _pending_and_overdue() -> list[Any]:
    return [
        col(Petition.status) == PetitionStatus.PENDING.value,
        col(Petition.expires_at) <= func.clock_timestamp(),
    ]


@statement(Petition)
def _overdue_by_id() -> Any:
    return (
        select(*columns(Petition))
        .where(*_pending_and_overdue(), col(Petition.id) == param("petition_id"), visible(Petition))
        .with_for_update()
    )


@statement(Petition)
def _overdue_of_character() -> Any:
    return (
        select(*columns(Petition))
        .where(
            *_pending_and_overdue(),
            col(Petition.character_id) == param("character_id"),
            col(Petition.kind) == param("kind"),
        )
        .with_for_update()
    )


@statement(Petition)
def _overdue() -> Any:
    # One that is being decided at this moment is left to who decides it.
    return (
        select(*columns(Petition))
        .where(*_pending_and_overdue())
        .order_by(col(Petition.expires_at))
        .limit(_STEP)
        .with_for_update(skip_locked=True)
    )


@statement(Petition)
def _settle() -> Any:
    return (
        update(Petition)
        .where(col(Petition.id) == param("of_id"))
        .values(
            status=param("new_status"),
            decided_by_user_id=param("decider"),
            decided_at=func.clock_timestamp(),
        )
        .returning(*columns(Petition))
    )
