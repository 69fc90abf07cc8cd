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
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Character, RuntimeSeat
from services.access import Viewer, checked_id, hold_row, visible
from services.errors import Conflict, NotFound

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


async def hold_character(
    writing: Writing, viewer: Viewer, character_id: str, *path: str | int
) -> Character:
    """An active character, held against other writers until the transaction ends.

    Raises NotFound, Conflict (CHARACTER_READ_ONLY).
    """
    character = await hold_row(writing, viewer, Character, character_id, *path)
    require_alive(character, *path)
    return character


@statement(Character)
def _alive_held() -> Any:
    # Shared by all who add to a life; who ends it holds the row against every one of them.
    return (
        select(*columns(Character))
        .where(col(Character.id) == param("id"), visible(Character))
        .with_for_update(read=True, key_share=True)
    )


async def hold_alive(
    writing: Writing, viewer: Viewer, character_id: str, *path: str | int
) -> Character:
    """A character that stays active until the transaction ends, for whoever adds to its life
    without changing its own row: others may do so at the same time.

    Raises NotFound, Conflict (CHARACTER_READ_ONLY).
    """
    row_id = checked_id(character_id, Character)
    character = None
    if row_id is not None:
        character = await writing.first(_alive_held(), id=row_id, **viewer.parameters)
    if character is None:
        raise NotFound("There is no such Character for you.", path=path)
    require_alive(character, *path)
    return character
