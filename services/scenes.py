"""Where a story stands: its narrative tail, its head turn and its tail scene.

One place for the three, because text edits, the scene editor, the rules of retired and disabled
places and the making of turns must never disagree about where the end of a story is.
Source: spec aventuras, text edits are delta-logged; the story's place; entry metadata shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Integer, select
from sqlmodel import col

from db.enums import EntityKind, EntityStatus, EntryKind
from db.reading import Reading, any_of, columns, param, statement
from db.tables import StoryEntity, StoryEntry
from services.deltas import Action
from services.errors import Forbidden, Invalid, LimitReached, NotFound

# What tells a scene: the location map of the next prompt is read off the latest of these.
TELLING = (EntryKind.AI_REPLY, EntryKind.OPENING)
PRESENT_KINDS = (EntityKind.CHARACTER, EntityKind.ITEM)
# More are no scene; the lists of GraphQL end there too.
MAX_PRESENT = 200


@dataclass(frozen=True, slots=True)
class TailScene:
    """The scene in which a story stands. All ids are bare; some may be of rows that are gone."""

    # The latest AI reply or opening; None in a branch that has neither.
    entry_id: str | None
    # Who and what is present there, and where it is: what the next prompt is built around.
    entity_ids: tuple[str, ...]
    location_id: str | None
    # Every place the story counts as being in: also that of a user action at the tail, which the
    # next turn inherits. A refusal because the story is inside a place looks at all of them.
    place_ids: frozenset[str]


@statement(StoryEntry)
def _last_entries() -> Any:
    return (
        select(*columns(StoryEntry))
        .where(col(StoryEntry.branch_id) == param("branch_id"), any_of(StoryEntry.kind, "kinds"))
        .order_by(col(StoryEntry.position).desc())
        .limit(param("count", Integer()))
    )


async def _last(
    reading: Reading, branch_id: str, kinds: Iterable[EntryKind], count: int
) -> list[StoryEntry]:
    """The last entries of these kinds, the last one first."""
    return await reading.all(_last_entries(), branch_id=branch_id, kinds=list(kinds), count=count)


_NARRATIVE = tuple(each for each in EntryKind if each is not EntryKind.SYSTEM)


async def narrative_tail(reading: Reading, branch_id: str) -> StoryEntry | None:
    """The last entry of a branch that is not of kind system."""
    last = await _last(reading, branch_id, _NARRATIVE, 1)
    return last[0] if last else None


async def ends_of(reading: Reading, branch_id: str) -> tuple[StoryEntry | None, StoryEntry | None]:
    """The narrative tail, and the entry of kind system behind it, if one stands there."""
    last = await _last(reading, branch_id, EntryKind, 2)
    notices = [each for each in last[:1] if each.kind == EntryKind.SYSTEM]
    narrative = last[len(notices) :]
    return narrative[0] if narrative else None, notices[0] if notices else None


async def head_turn(reading: Reading, branch_id: str) -> list[StoryEntry]:
    """The narrative tail, with the user action that it directly answers; in the order of the text.

    Empty only in a branch without entries.
    """
    last = await _last(reading, branch_id, _NARRATIVE, 2)
    answers = (
        len(last) == 2
        and last[0].kind == EntryKind.AI_REPLY
        and last[1].kind == EntryKind.USER_ACTION
    )
    return last[::-1] if answers else last[:1]


async def tail_scene(reading: Reading, branch_id: str) -> TailScene:
    """Where a story stands: what the next prompt is built around, and all places that count."""
    tail = await narrative_tail(reading, branch_id)
    told = tail
    if tail is not None and tail.kind not in TELLING:
        telling = await _last(reading, branch_id, TELLING, 1)
        told = telling[0] if telling else None
    places = {each.current_location_id for each in (tail, told) if each is not None}
    return TailScene(
        entry_id=told.row_id if told else None,
        entity_ids=tuple(told.scene_entity_ids) if told else (),
        location_id=told.current_location_id if told else None,
        place_ids=frozenset(each for each in places if each is not None),
    )


def inherited_meta(before: Mapping[str, Any] | None) -> dict[str, Any]:
    """The metadata with which an entry begins behind another one: its scene, place and time.

    What a generation reported of itself is never among it, so that its presence means something.
    """
    before = before or {}
    return {
        "sceneEntities": list(before.get("sceneEntities", ())),
        "currentLocationId": before.get("currentLocationId"),
        "worldTime": before.get("worldTime", 0),
    }


@statement(StoryEntity)
def _entities_by_ids() -> Any:
    return select(*columns(StoryEntity)).where(
        col(StoryEntity.branch_id) == param("branch_id"), any_of(StoryEntity.row_id, "ids")
    )


async def require_place(
    action: Action, row_id: str, *path: str | int, staying_at: str | None = None
) -> None:
    """Refuse what cannot be entered: NotFound for no row, Invalid (WRONG_KIND) for no location,
    Forbidden (RETIRED_PLACE) for a retired one. Who is `staying_at` a place does not enter it.
    """
    place = await action.require(StoryEntity, row_id, *path)
    if place["kind"] != EntityKind.LOCATION:
        raise Invalid("This is no location.", "WRONG_KIND", path)
    if place["status"] == EntityStatus.RETIRED and row_id != staying_at:
        raise Forbidden("This place is retired: nothing enters it.", "RETIRED_PLACE", path)


async def require_present(action: Action, row_ids: Sequence[str], *path: str | int) -> None:
    """Refuse what cannot be present in a scene: NotFound for no row, Invalid (WRONG_KIND) for what
    is neither a character nor an item, LimitReached for more than MAX_PRESENT.
    """
    if len(row_ids) > MAX_PRESENT:
        raise LimitReached(f"A scene has {MAX_PRESENT} at most.", path=path)
    rows = await action.writing.all(
        _entities_by_ids(), branch_id=action.branch.id, ids=list(row_ids)
    )
    kinds = {row.row_id: row.kind for row in rows}
    for number, each in enumerate(row_ids):
        if each not in kinds:
            raise NotFound("There is no such StoryEntity in this branch.", path=(*path, number))
        if kinds[each] not in PRESENT_KINDS:
            raise Invalid("Characters and items are present.", "WRONG_KIND", (*path, number))
