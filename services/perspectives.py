"""What one character of a branch knows at a moment. Nothing is known unless a rule says so.

Whoever asks for a perspective sees no happening, entity, entry or lore beyond this.
Source: design, perspective; spec aventuras, happenings and character knowledge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import EntityKind, EntityStatus, EntryKind
from db.reading import Reading, any_of, columns, param, statement
from db.tables import (
    BranchRow,
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    StoryEntry,
)
from services import past
from services.access import Viewer, row_id_in, rows_by_ids, visible
from services.entities import chain_among, chains_of_places
from services.entities.listing import held_by, in_state
from services.errors import Invalid, NotFound
from services.past import Moment

PATH = ("perspective",)
# Lore with this tag is known to everybody.
COMMON = "common"
# The keys of a state that say where somebody or something is.
AT = ("current_location_id", "at_location_id")


@dataclass(frozen=True, slots=True)
class Learned:
    """How a character came to know of a happening: at which entry, from whom or what; nothing is
    said of what everybody knows. The entry's id is its own.
    """

    entry_id: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What a character knows: own ids of rows of its branch."""

    character_id: str
    happenings: frozenset[str]
    entities: frozenset[str]
    entries: frozenset[str]
    lore: frozenset[str]
    # Who and what is at the place where the character is, itself among them.
    beside: frozenset[str]
    # For each happening it knows of.
    learned: Mapping[str, Learned]


@dataclass(frozen=True, slots=True)
class _World:
    """The rows from which knowledge follows: all of a moment, or those that matter."""

    entities: Mapping[str, Any]
    relationships: Iterable[Any]
    happenings: Iterable[Any]
    involvements: Iterable[Any]
    awareness: Iterable[Any]


async def knowledge_of(
    reading: Reading, viewer: Viewer, branch_id: str, character_id: str, moment: Moment | None
) -> Knowledge:
    """What a character of a branch knows, at present where there is no moment. The character's id
    is its own or its name outside.

    Raises NotFound, and Invalid (NOT_A_CHARACTER), both with the path `perspective`.
    """
    row_id = row_id_in(branch_id, StoryEntity, character_id, *PATH)
    if moment is not None:
        return await _knowledge_at(reading, viewer, moment, row_id)
    (found,) = await rows_by_ids(reading, viewer, StoryEntity, [f"{branch_id}:{row_id}"])
    character = _checked(found)
    world = await _world_around(reading, viewer, character)
    given = {"branch_id": branch_id, **viewer.parameters}
    entries = await reading.all(_entries(), present=[row_id], **given)
    lore = await reading.all(_lore(), tags=[COMMON], **given)
    return _known(
        character, world, {each.row_id for each in entries}, {each.row_id for each in lore}
    )


async def _knowledge_at(reading: Reading, viewer: Viewer, moment: Moment, row_id: str) -> Knowledge:
    async def rows(table: type[BranchRow]) -> Mapping[str, Any]:
        return await past.rows_at(reading, viewer, moment, table)

    entities = await rows(StoryEntity)
    character = _checked(entities.get(row_id))
    world = _World(
        entities,
        (await rows(CharacterRelationship)).values(),
        (await rows(Happening)).values(),
        (await rows(HappeningInvolvement)).values(),
        (await rows(HappeningAwareness)).values(),
    )
    entries = {
        each.row_id for each in (await rows(StoryEntry)).values() if row_id in each.scene_entity_ids
    }
    lore = {each.row_id for each in (await rows(Lore)).values() if COMMON in each.tags}
    return _known(character, world, entries, lore)


def _checked(found: Any) -> Any:
    if found is None:
        raise NotFound("There is no such character in this branch.", path=PATH)
    if found.kind != EntityKind.CHARACTER:
        raise Invalid("Only characters have a perspective.", "NOT_A_CHARACTER", PATH)
    return found


def _known(character: Any, world: _World, entries: set[str], lore: set[str]) -> Knowledge:
    """The rules; `world` may hold more than what matters."""
    own = character.row_id
    aware = {
        each.happening_id: Learned(each.learned_at_entry_id, each.source)
        for each in world.awareness
        if each.character_id == own
    }
    learned = {
        each.row_id: Learned() if each.common_knowledge else aware[each.row_id]
        for each in world.happenings
        if each.common_knowledge or each.row_id in aware
    }
    beside = _beside(character, world.entities)
    known = {own, *beside, *_named_by(character, world.entities)}
    known |= {each.entity_id for each in world.involvements if each.happening_id in learned}
    for each in world.relationships:
        # Who is seen is known; who only sees this character is not.
        if each.a_id == own and each.kind is not None:
            known.add(each.b_id)
        if each.b_id == own and each.inverse_kind is not None:
            known.add(each.a_id)
    return Knowledge(
        own,
        frozenset(learned),
        frozenset(known & world.entities.keys()),
        frozenset(entries),
        frozenset(lore),
        frozenset(beside),
        learned,
    )


def _named_by(character: Any, entities: Mapping[str, Any]) -> set[str]:
    """What its own state names: its things, its faction, its place and the places around that."""
    state = character.state
    around = chain_among(entities, state.get("current_location_id") or "")
    named = {*held_by(state), *(each.row_id for each in around)}
    return named | {each for each in (state.get("faction_id"),) if each}


def _beside(character: Any, entities: Mapping[str, Any]) -> set[str]:
    """Who and what is where it is: not who was seen there last, nor who is still to come."""
    place = character.state.get("current_location_id")
    if place is None or character.status != EntityStatus.ACTIVE:
        return {character.row_id}
    return {character.row_id} | {
        each.row_id
        for each in entities.values()
        if each.status == EntityStatus.ACTIVE and place in (each.state.get(key) for key in AT)
    }


@statement(HappeningAwareness)
def _awareness() -> Any:
    return select(*columns(HappeningAwareness)).where(
        col(HappeningAwareness.branch_id) == param("branch_id"),
        col(HappeningAwareness.character_id) == param("id"),
        visible(HappeningAwareness),
    )


@statement(Happening)
def _happenings() -> Any:
    return select(col(Happening.row_id).label("row_id"), col(Happening.common_knowledge)).where(
        col(Happening.branch_id) == param("branch_id"),
        or_(col(Happening.common_knowledge), any_of(Happening.row_id, "ids")),
        visible(Happening),
    )


@statement(HappeningInvolvement)
def _involvements() -> Any:
    return select(*columns(HappeningInvolvement)).where(
        col(HappeningInvolvement.branch_id) == param("branch_id"),
        any_of(HappeningInvolvement.happening_id, "ids"),
        visible(HappeningInvolvement),
    )


@statement(CharacterRelationship)
def _relationships() -> Any:
    ends = (col(CharacterRelationship.a_id), col(CharacterRelationship.b_id))
    return select(*columns(CharacterRelationship)).where(
        col(CharacterRelationship.branch_id) == param("branch_id"),
        or_(*(each == param("id") for each in ends)),
        visible(CharacterRelationship),
    )


@statement(StoryEntity)
def _at_place() -> Any:
    return select(*columns(StoryEntity)).where(
        col(StoryEntity.branch_id) == param("branch_id"),
        or_(*(in_state(key) == param("place_id") for key in AT)),
        visible(StoryEntity),
    )


@statement(StoryEntry)
def _entries() -> Any:
    scene = col(StoryEntry.meta).op("->")("sceneEntities")
    return select(col(StoryEntry.row_id).label("row_id")).where(
        col(StoryEntry.branch_id) == param("branch_id"),
        scene.op("@>")(param("present", JSONB())),
        col(StoryEntry.kind) != EntryKind.SYSTEM.value,
        visible(StoryEntry),
    )


@statement(Lore)
def _lore() -> Any:
    return select(col(Lore.row_id).label("row_id")).where(
        col(Lore.branch_id) == param("branch_id"),
        col(Lore.tags).op("@>")(param("tags", JSONB())),
        visible(Lore),
    )


async def _world_around(reading: Reading, viewer: Viewer, character: Any) -> _World:
    """The rows at present that matter to a character's knowledge."""
    branch_id, own = character.branch_id, character.row_id
    given = {"branch_id": branch_id, **viewer.parameters}
    awareness = await reading.all(_awareness(), id=own, **given)
    happenings = await reading.all(
        _happenings(), ids=[each.happening_id for each in awareness], **given
    )
    involvements = await reading.all(
        _involvements(), ids=[each.row_id for each in happenings], **given
    )
    relationships = await reading.all(_relationships(), id=own, **given)
    place = character.state.get("current_location_id")
    at_place, chain = [], []
    if place is not None:
        at_place = await reading.all(_at_place(), place_id=place, **given)
        (chain,) = await chains_of_places(reading, viewer, [f"{branch_id}:{place}"])
    named = {
        *held_by(character.state),
        *(each.row_id for each in chain),
        *(each.entity_id for each in involvements),
        *(each.a_id for each in relationships),
        *(each.b_id for each in relationships),
        *(each for each in (character.state.get("faction_id"),) if each),
    }
    rows = await rows_by_ids(
        reading, viewer, StoryEntity, [f"{branch_id}:{each}" for each in sorted(named)]
    )
    entities = {each.row_id: each for each in (character, *at_place, *rows) if each is not None}
    return _World(entities, relationships, happenings, involvements, awareness)
