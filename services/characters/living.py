"""Characters that live: finding them, their seats, and what may still be done with them.

Source: spec soul-mirror, section 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.enums import CharacterStatus
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, any_of, columns, statement
from db.tables import Character, RuntimeSeat
from services.access import Viewer, visible
from services.errors import Conflict

# The fields of a card that make up who the character is; the rest stays with the draft.
CORE_FIELDS = (
    "name",
    "nickname",
    "description",
    "personality",
    "scenario",
    "first_mes",
    "mes_example",
    "system_prompt",
    "post_history_instructions",
)
CHARACTERS = PagedList(
    "characters",
    Character,
    sort=[SortKey(col(Character.created_at)), SortKey(col(Character.id))],
    where=lambda: visible(Character),
)


@statement(RuntimeSeat)
def _seats_of_characters() -> Any:
    return select(*columns(RuntimeSeat)).where(
        any_of(RuntimeSeat.character_id, "character_ids"), visible(RuntimeSeat)
    )


async def seats_of_characters(
    reading: Reading, viewer: Viewer, character_ids: Sequence[str]
) -> dict[str, RuntimeSeat]:
    """The seat of each character, by the character's id."""
    rows = await reading.all(
        _seats_of_characters(), character_ids=list(character_ids), **viewer.parameters
    )
    return {row.character_id: row for row in rows}


async def list_characters(
    reading: Reading, viewer: Viewer, request: PageRequest
) -> Page[Character]:
    """The viewer's characters, oldest first."""
    return await CHARACTERS.page(reading, request, **viewer.parameters)


def baseline_of(identity: dict[str, Any]) -> dict[str, Any]:
    """The baseline of a character with this identity: its core anchor and its forbidden zone."""
    return {
        "core_anchor": {key: identity[key] for key in CORE_FIELDS if identity.get(key)},
        "forbidden_zone": identity.get("forbidden_zone") or [],
    }


def require_alive(character: Character, *path: str | int) -> None:
    """Raises Conflict with CHARACTER_READ_ONLY unless the character is active."""
    if character.status != CharacterStatus.ACTIVE:
        raise Conflict(
            f"{character.name} is {character.status} and can only be read.",
            "CHARACTER_READ_ONLY",
            path,
        )
