"""What is in a world, and the names by which it goes.

Names are compared by their words, without regard to case and accents, as those of stories are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Text, and_, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import WorldAlias, WorldEntity
from services.access import Viewer, require_row, require_version, visible
from services.entities.names import words_of
from services.errors import Conflict, Invalid, LimitReached
from services.text import MAX_LINE, checked_lines, checked_prose, checked_text
from services.worlds.keeping import MAX_PROSE, hold_world

MAX_ATTRIBUTES = 100_000
ENTITY_PATH = ("input", "worldEntityId")


def _is_wanted() -> ColumnElement[bool]:
    kinds, search = param("kinds", ARRAY(Text)), param("search", Text())
    alias = exists(
        select(1).where(
            col(WorldAlias.world_entity_id) == col(WorldEntity.id),
            func.strpos(col(WorldAlias.folded), search) > 0,
        )
    )
    return and_(
        visible(WorldEntity),
        col(WorldEntity.merged_into_id).is_(None),
        or_(kinds.is_(None), col(WorldEntity.kind) == func.any(kinds)),
        or_(search.is_(None), func.strpos(col(WorldEntity.folded_name), search) > 0, alias),
    )


# `kinds` and `search`, part of a name or an alias as `name_key` has it, may be None.
ENTITIES_OF_WORLDS = PagedList(
    "world_entities",
    WorldEntity,
    sort=[SortKey(col(WorldEntity.created_at)), SortKey(col(WorldEntity.id))],
    parent=col(WorldEntity.world_id),
    where=_is_wanted,
)


def name_key(name: str) -> str:
    """A name as names are compared."""
    return " ".join(words_of(name)) or name.strip()


async def create_world_entity(
    writing: Writing, viewer: Viewer, world_id: str, values: Mapping[str, Any]
) -> WorldEntity:
    """Put somebody or something into a world; `values` by the names of columns, and `aliases`.

    Raises NotFound, Invalid (TEXT_…, INVALID_SHAPE), LimitReached.
    """
    world = await hold_world(writing, viewer, world_id)
    wanted = checked_entity(values, "input")
    aliases = wanted.pop("aliases", [])
    entity = await writing.insert(WorldEntity, world_id=world.id, **wanted)
    await write_aliases(writing, {entity.id: with_keys(aliases, wanted["folded_name"])})
    return entity


async def update_world_entity(
    writing: Writing,
    viewer: Viewer,
    entity_id: str,
    changes: Mapping[str, Any],
    expected_version: int | None = None,
) -> WorldEntity:
    """Change what is given; lists are whole. What changes nothing counts as no change.

    Raises NotFound, Conflict (also ENTITY_MERGED), Invalid (TEXT_…, INVALID_SHAPE), LimitReached.
    """
    entity = await hold_world_entity(writing, viewer, entity_id, *ENTITY_PATH)
    require_version(entity, expected_version, "input", "expectedVersion")
    wanted = checked_entity(changes, "input")
    known = (await aliases_of(writing, viewer, [entity.id]))[entity.id]
    key = wanted.get("folded_name", entity.folded_name)
    aliases = with_keys(wanted.pop("aliases", known.values()), key)
    changed = {name: value for name, value in wanted.items() if getattr(entity, name) != value}
    if not changed and aliases == known:
        return entity
    updated = await writing.first(_update(tuple(sorted(changed))), of_id=entity.id, **changed)
    assert updated is not None  # its world is held
    if aliases != known:
        await write_aliases(writing, {entity.id: aliases})
    return updated


async def delete_world_entity(writing: Writing, viewer: Viewer, entity_id: str) -> str:
    """Delete an entity with its relations and all that was found to be it; its id. Stories keep
    what was drawn from it. Raises NotFound, Conflict (ENTITY_MERGED).
    """
    entity = await hold_world_entity(writing, viewer, entity_id, *ENTITY_PATH)
    await writing.run(_delete(), of_id=entity.id)
    return entity.id


async def hold_world_entity(
    writing: Writing, viewer: Viewer, entity_id: str, *path: str | int
) -> WorldEntity:
    """An entity whose world is held. Raises NotFound, Conflict (ENTITY_MERGED)."""
    found = await require_row(writing, viewer, WorldEntity, entity_id, *path)
    await hold_world(writing, viewer, found.world_id)
    # It may have been changed before its world was held.
    entity = await require_row(writing, viewer, WorldEntity, entity_id, *path)
    refuse_merged(entity, *path)
    return entity


def refuse_merged(entity: WorldEntity, *path: str | int) -> None:
    """Refuse what was found to be another one: Conflict (ENTITY_MERGED)."""
    if entity.merged_into_id is not None:
        told = f"This was found to be {entity.merged_into_id}: name that one, or unmerge them."
        raise Conflict(told, "ENTITY_MERGED", path)


def checked_entity(values: Mapping[str, Any], *path: str | int) -> dict[str, Any]:
    """New values by the names of columns, as they are kept, and `aliases`. Raises Invalid and
    LimitReached.
    """
    wanted = dict(values)
    if "name" in wanted:
        checked_text(wanted["name"], *path, "name", max_length=MAX_LINE)
        wanted["folded_name"] = name_key(wanted["name"])
    if "description" in wanted:
        checked_prose(wanted["description"], *path, "description", max_length=MAX_PROSE)
    for each in ("aliases", "tags", "sources"):
        if each in wanted:
            wanted[each] = checked_lines(wanted[each], *path, each)
    if "attributes" in wanted:
        given = wanted["attributes"]
        if not isinstance(given, dict):
            raise Invalid("Give an object here.", "INVALID_SHAPE", (*path, "attributes"))
        if len(orjson.dumps(given)) > MAX_ATTRIBUTES:
            told = f"As JSON it may have {MAX_ATTRIBUTES:,} bytes."
            raise LimitReached(told, path=(*path, "attributes"))
    return wanted


def with_keys(aliases: Any, name: str) -> dict[str, str]:
    """Aliases by what they are compared by: none twice, and none that is the name itself."""
    keyed: dict[str, str] = {}
    for each in aliases:
        keyed.setdefault(name_key(each), each)
    keyed.pop(name, None)
    return keyed


async def aliases_of(
    reading: Reading, viewer: Viewer, entity_ids: Sequence[str]
) -> dict[str, dict[str, str]]:
    """The aliases of each entity in their order, by what they are compared by."""
    rows = await reading.all(_aliases(), ids=list(entity_ids), **viewer.parameters)
    found: dict[str, dict[str, str]] = {each: {} for each in entity_ids}
    for row in rows:
        found[row.world_entity_id][row.folded] = row.alias
    return found


async def write_aliases(writing: Writing, aliases: Mapping[str, Mapping[str, str]]) -> None:
    """Write all aliases of some entities, which the caller holds, in place of what they had."""
    if not aliases:
        return
    await writing.run(_delete_aliases(), ids=list(aliases))
    await writing.insert_many(
        WorldAlias,
        [
            {"world_entity_id": entity_id, "folded": folded, "alias": alias, "number": number}
            for entity_id, keyed in aliases.items()
            for number, (folded, alias) in enumerate(keyed.items())
        ],
    )


@statement(WorldAlias)
def _aliases() -> Any:
    return (
        select(*columns(WorldAlias))
        .join(WorldEntity, col(WorldEntity.id) == col(WorldAlias.world_entity_id))
        .where(any_of(WorldAlias.world_entity_id, "ids"), visible(WorldEntity))
        .order_by(col(WorldAlias.world_entity_id), col(WorldAlias.number))
    )


@statement(WorldAlias)
def _delete_aliases() -> Any:
    return delete(WorldAlias).where(any_of(WorldAlias.world_entity_id, "ids"))


@statement(WorldEntity)
def _update(names: tuple[str, ...]) -> Any:
    changed = {
        getattr(WorldEntity, name): param(name, getattr(WorldEntity, name).type) for name in names
    }
    return (
        update(WorldEntity)
        .where(col(WorldEntity.id) == param("of_id"))
        .values(
            {
                **changed,
                col(WorldEntity.updated_at): func.clock_timestamp(),
                col(WorldEntity.version): col(WorldEntity.version) + 1,
            }
        )
        .returning(*columns(WorldEntity))
    )


@statement(WorldEntity)
def _delete() -> Any:
    return delete(WorldEntity).where(col(WorldEntity.id) == param("of_id"))
