"""How a life ends: death is asked for, confirmed, and can be taken back while it cools off; then
the character is a read-only archive. Erasing what is left is another act (`services/erasing.py`).

Source: spec soul-mirror, section 1 (death) and 10.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Float, func, select, update
from sqlmodel import col

from db.enums import AuditOutcome, CharacterStatus, PetitionKind
from db.reading import Writing, columns, param, statement
from db.tables import Brief, Character, Petition
from services import petitions, seats
from services.access import ANONYMOUS, Viewer, hold_row, require_row
from services.accounts import record_act
from services.characters import require_alive
from services.errors import Conflict
from services.text import MAX_LINE, checked_text

_CHARACTER = ("input", "characterId")
# Characters that one step of the chore archives.
_STEP = 100


async def request_death(
    writing: Writing, viewer: Viewer, character_id: str, purpose: str, cooling_off_days: float
) -> Petition:
    """Open the petition for a character's death; nothing else changes until it is approved.

    Raises NotFound, Invalid (TEXT_…) and Conflict (PETITION_PENDING, CHARACTER_READ_ONLY).
    """
    purpose = checked_text(purpose, "input", "purpose", max_length=MAX_LINE)
    character = await hold_row(writing, viewer, Character, character_id, *_CHARACTER)
    require_alive(character, *_CHARACTER)
    brief = Brief(
        action="End the life of this character.",
        target=character.name,
        purpose=purpose,
        data_involved="Everything of the character is kept and stays readable.",
        consequence="Its runs are stopped, and nothing can be said to it or changed any more.",
        reversibility=(
            f"Can be taken back within {cooling_off_days:g} days of the approval, and not after."
        ),
    )
    return await petitions.open_petition(
        writing,
        viewer,
        PetitionKind.DEATH,
        character,
        brief,
        {"cooling_off_days": cooling_off_days},
    )


@statement(Character)
def _let_die() -> Any:
    cooling_off = func.make_interval(
        0, 0, 0, 0, 0, 0, param("cooling_off_days", Float()) * 24 * 3600
    )
    return (
        update(Character)
        .where(col(Character.id) == param("of_id"))
        .values(
            status=CharacterStatus.DEATH_PENDING.value,
            died_at=func.now(),
            cooling_off_until=func.now() + cooling_off,
            updated_at=func.now(),
            version=col(Character.version) + 1,
        )
    )


async def carry_out_death(writing: Writing, viewer: Viewer, petition: Petition) -> None:
    """What an approved petition of the kind DEATH does: the character is read-only from now on, its
    open runs are cancelled, its seat is given back, and the time in which it can be taken back
    begins.

    Raises NotFound, Conflict (CHARACTER_READ_ONLY).
    """
    path = ("input", "petitionId")
    character = await hold_row(writing, viewer, Character, petition.character_id, *path)
    require_alive(character, *path)
    days = petition.arguments["cooling_off_days"]
    await writing.run(_let_die(), of_id=character.id, cooling_off_days=days)
    await seats.vacate_seat(writing, viewer, character.id)
    await record_act(
        writing,
        viewer,
        "death_confirmed",
        character.id,
        {"petition_id": petition.id},
        AuditOutcome.CONFIRMED,
    )


@statement(Character)
def _revive() -> Any:
    return (
        update(Character)
        .where(
            col(Character.id) == param("of_id"),
            col(Character.status) == CharacterStatus.DEATH_PENDING.value,
            col(Character.cooling_off_until) > func.clock_timestamp(),
        )
        .values(
            status=CharacterStatus.ACTIVE.value,
            died_at=None,
            cooling_off_until=None,
            updated_at=func.clock_timestamp(),
            version=col(Character.version) + 1,
        )
        .returning(*columns(Character))
    )


async def revoke_death(writing: Writing, viewer: Viewer, character_id: str) -> Character:
    """Take a death back while it cools off; the character is active again.

    Raises NotFound and Conflict (DEATH_NOT_PENDING, COOLING_OFF_OVER).
    """
    character = await hold_row(writing, viewer, Character, character_id, *_CHARACTER)
    if character.died_at is None:
        raise Conflict("This character has not died.", "DEATH_NOT_PENDING", _CHARACTER)
    revived = await writing.first(_revive(), of_id=character.id)
    if revived is None:
        raise Conflict(
            "The time in which this death could be taken back is over.",
            "COOLING_OFF_OVER",
            _CHARACTER,
        )
    await record_act(writing, viewer, "death_revoked", character.id)
    return revived


def _is_over() -> list[Any]:
    return [
        col(Character.status) == CharacterStatus.DEATH_PENDING.value,
        col(Character.cooling_off_until) <= func.clock_timestamp(),
    ]


def _archive(*conditions: Any) -> Any:
    # The archive begins when the time was over, whenever somebody came to write it down.
    return (
        update(Character)
        .where(*_is_over(), *conditions)
        .values(
            status=CharacterStatus.DECEASED.value,
            archived_at=col(Character.cooling_off_until),
            updated_at=func.clock_timestamp(),
            version=col(Character.version) + 1,
        )
        .returning(*columns(Character))
    )


@statement(Character)
def _archive_some() -> Any:
    some = (
        select(col(Character.id)).where(*_is_over()).limit(_STEP).with_for_update(skip_locked=True)
    )
    return _archive(col(Character.id).in_(some))


@statement(Character)
def _archive_one() -> Any:
    return _archive(col(Character.id) == param("of_id"))


async def archive_deceased(writing: Writing) -> int:
    """A step of a chore: make archives of characters whose time to be taken back is over, some at
    a time; how many there were.
    """
    archived = await writing.all(_archive_some())
    # Nobody does it: the clock does.
    for character in archived:
        await record_act(writing, ANONYMOUS, "character_archived", character.id)
    return len(archived)


async def archive_if_due(writing: Writing, viewer: Viewer, character_id: str) -> Character:
    """The character, as an archive if it is due to be one and the chore has not come by yet. The
    caller holds it. Raises NotFound.
    """
    for _ in await writing.all(_archive_one(), of_id=character_id):
        await record_act(writing, ANONYMOUS, "character_archived", character_id)
    return await require_row(writing, viewer, Character, character_id, *_CHARACTER)
