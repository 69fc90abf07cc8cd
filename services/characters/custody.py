"""Custodianship: that a user governs a character, one to one, and apart from any covenant.

It begins with the character and ends with its erasure: an archive still has who answers for it. It
is not handed on.
Source: spec soul-mirror, section 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select, update
from sqlmodel import col

from db.enums import CustodianshipStatus
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Custodianship
from services.access import Viewer, visible


@statement(Custodianship)
def _custodianships_of_characters() -> Any:
    return select(*columns(Custodianship)).where(
        any_of(Custodianship.character_id, "character_ids"), visible(Custodianship)
    )


async def custodianships_of_characters(
    reading: Reading, viewer: Viewer, character_ids: Sequence[str]
) -> dict[str, Custodianship]:
    """The custodianship of each character, by the character's id."""
    rows = await reading.all(
        _custodianships_of_characters(), character_ids=list(character_ids), **viewer.parameters
    )
    return {row.character_id: row for row in rows}


@statement(Custodianship)
def _end_custodianship() -> Any:
    return (
        update(Custodianship)
        .where(col(Custodianship.character_id) == param("of_character"), visible(Custodianship))
        .values(status=CustodianshipStatus.ENDED.value, ended_at=func.clock_timestamp())
    )


async def end_custodianship(writing: Writing, viewer: Viewer, character_id: str) -> None:
    """Nobody governs the character any more. The caller holds it."""
    await writing.run(_end_custodianship(), of_character=character_id, **viewer.parameters)
