"""Who plays whom: a character plays an entity of a story, or the entity was drawn from a world.

A casting is a link that was written down. The two sides never share ids, and neither changes with
the other.
Source: glossary, section 12 (type names where the two specifications meet).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlmodel import col

from db.enums import EntityKind, EntityStatus, InjectionMode, WorldEntityKind
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Branch, Casting, Character, Story, StoryEntity
from services.access import Viewer, hold_row, require_row, visible
from services.entities import Changed, create_entity
from services.errors import Conflict, Invalid
from services.text import MAX_LINES
from services.worlds.entities import aliases_of, hold_world_entity

_ENTITY_PATH = ("input", "entityId")

CASTINGS_OF_STORIES = PagedList(
    "castings",
    Casting,
    sort=[SortKey(col(Casting.created_at)), SortKey(col(Casting.id))],
    parent=col(Casting.story_id),
    where=lambda: visible(Casting),
)
CASTINGS_OF_CHARACTERS = PagedList(
    "castings_of_characters",
    Casting,
    sort=[SortKey(col(Casting.created_at)), SortKey(col(Casting.id))],
    parent=col(Casting.character_id),
    where=lambda: visible(Casting),
)
CASTINGS_OF_WORLD_ENTITIES = PagedList(
    "castings_of_world_entities",
    Casting,
    sort=[SortKey(col(Casting.created_at)), SortKey(col(Casting.id))],
    parent=col(Casting.world_entity_id),
    where=lambda: visible(Casting),
)


async def create_casting(
    writing: Writing,
    viewer: Viewer,
    entity_id: str,
    *,
    character_id: str | None,
    world_entity_id: str | None,
) -> Casting:
    """Write down that a character plays an entity, or that the entity is drawn from a world.

    Raises NotFound, Conflict (ALREADY_CAST, ENTITY_MERGED), Invalid (ONE_ORIGIN, WRONG_KIND).
    """
    if (character_id is None) == (world_entity_id is None):
        told = "Name either a character or an entity of a world."
        raise Invalid(told, "ONE_ORIGIN", ("input", "characterId"))
    entity = await require_row(writing, viewer, StoryEntity, entity_id, *_ENTITY_PATH)
    if character_id is not None:
        path = ("input", "characterId")
        character = await require_row(writing, viewer, Character, character_id, *path)
        if entity.kind != EntityKind.CHARACTER:
            told = "A character plays a character of the story."
            raise Invalid(told, "WRONG_KIND", _ENTITY_PATH)
        return await _cast(writing, viewer, entity, character_id=character.id)
    drawn = await hold_world_entity(
        writing, viewer, world_entity_id or "", "input", "worldEntityId"
    )
    if str(entity.kind) != str(drawn.kind):
        raise Invalid("The two are of different kinds.", "WRONG_KIND", _ENTITY_PATH)
    return await _cast(writing, viewer, entity, world_entity_id=drawn.id)


async def delete_casting(writing: Writing, viewer: Viewer, casting_id: str) -> str:
    """Take a casting back; its id. The two sides stay. Raises NotFound."""
    casting = await hold_row(writing, viewer, Casting, casting_id, "input", "castingId")
    await writing.run(_delete(), of_id=casting.id)
    return casting.id


async def cast_world_entity(
    writing: Writing,
    viewer: Viewer,
    world_entity_id: str,
    branch_id: str,
    values: Mapping[str, Any],
    expected_head: int | None = None,
) -> tuple[Changed, Casting]:
    """Draw one of a story's cast from a world: an entity with its name and description and with its
    aliases as keywords, in one action, and the casting. `values` by the names of columns come in
    place of what the world says.

    Raises NotFound, Conflict (also ENTITY_MERGED), Invalid (WRONG_KIND) and what making an entity
    raises.
    """
    path = ("input", "worldEntityId")
    drawn = await hold_world_entity(writing, viewer, world_entity_id, *path)
    if drawn.kind in (WorldEntityKind.CONCEPT, WorldEntityKind.EVENT):
        told = "Characters, locations, items and factions are cast."
        raise Invalid(told, "WRONG_KIND", path)
    aliases = (await aliases_of(writing, viewer, [drawn.id]))[drawn.id]
    columns = {
        "name": drawn.name,
        "description": drawn.description,
        "keywords": list(aliases.values())[:MAX_LINES],
        "tags": drawn.tags,
        "status": EntityStatus.ACTIVE,
        "injection_mode": InjectionMode.AUTO,
        **values,
        "kind": EntityKind(drawn.kind),
    }
    changed, _ = await create_entity(
        writing, viewer, branch_id, columns, expected_head=expected_head
    )
    casting = await _cast(writing, viewer, changed.entity, world_entity_id=drawn.id)
    return changed, casting


async def castings_of_entities(
    reading: Reading, viewer: Viewer, entities: Sequence[StoryEntity]
) -> list[list[Casting]]:
    """The castings of each entity: two at most, the older first."""
    branch_ids = list({each.branch_id for each in entities})
    row_ids = list({each.row_id for each in entities})
    rows: list[Any] = await reading.all(
        _of_entities(), branch_ids=branch_ids, row_ids=row_ids, **viewer.parameters
    )
    found: dict[tuple[str, str], list[Casting]] = {}
    for row in rows:
        found.setdefault((row.branch_id, row.entity_row_id), []).append(row)
    return [found.get((each.branch_id, each.row_id), []) for each in entities]


async def _cast(writing: Writing, viewer: Viewer, entity: StoryEntity, **origin: str) -> Casting:
    branch = await require_row(writing, viewer, Branch, entity.branch_id, *_ENTITY_PATH)
    # Held, so that of two castings at once the second one sees the first.
    story = await hold_row(writing, viewer, Story, branch.story_id, *_ENTITY_PATH)
    (name,) = origin
    taken = await writing.all(_taken(), story_id=story.id, row_id=entity.row_id)
    if any(getattr(each, name) is not None for each in taken):
        told = "This entity is cast already: take that back first."
        raise Conflict(told, "ALREADY_CAST", _ENTITY_PATH)
    return await writing.insert(Casting, story_id=story.id, entity_row_id=entity.row_id, **origin)


@statement(Casting)
def _taken() -> Any:
    return select(*columns(Casting)).where(
        col(Casting.story_id) == param("story_id"), col(Casting.entity_row_id) == param("row_id")
    )


@statement(Casting)
def _of_entities() -> Any:
    return (
        select(*columns(Casting), col(Branch.id).label("branch_id"))
        .join(Branch, col(Branch.story_id) == col(Casting.story_id))
        .where(
            any_of(Branch.id, "branch_ids"),
            any_of(Casting.entity_row_id, "row_ids"),
            visible(Casting),
        )
        .order_by(col(Casting.created_at), col(Casting.id))
    )


@statement(Casting)
def _delete() -> Any:
    return delete(Casting).where(col(Casting.id) == param("of_id"))
