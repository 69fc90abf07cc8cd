"""What the entities of a world are to each other, and for how long.

A relation is told apart by its ends, its kind and the moment from which it holds. One without a
direction is kept with its ends in the order of their ids, so that there is one whichever is named
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Text, and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import col

from db.ids import new_id
from db.paging import PagedList, SortKey
from db.reading import Writing, any_of, columns, param, statement
from db.tables import World, WorldEntity, WorldRelation
from services.access import Viewer, require_row, visible
from services.errors import Invalid
from services.text import MAX_LINE, checked_lines, checked_text
from services.worlds.entities import hold_world_entity, refuse_merged
from services.worlds.keeping import hold_world

MAX_WEIGHT = 1e9


class RelationKey(NamedTuple):
    """What a relation is told apart by."""

    source_id: str
    target_id: str
    kind: str
    valid_from: int | None


def _is_wanted() -> ColumnElement[bool]:
    kinds, at = param("kinds", ARRAY(Text)), param("valid_at", BigInteger())
    return and_(
        visible(WorldRelation),
        or_(kinds.is_(None), col(WorldRelation.kind) == func.any(kinds)),
        or_(at.is_(None), holds_at(at)),
    )


def holds_at(at: Any) -> ColumnElement[bool]:
    """Whether a relation holds at a moment of the world's time."""
    return and_(
        or_(col(WorldRelation.valid_from).is_(None), col(WorldRelation.valid_from) <= at),
        or_(col(WorldRelation.valid_until).is_(None), col(WorldRelation.valid_until) > at),
    )


def _list(name: str, parent: Any) -> PagedList[WorldRelation]:
    """`kinds` and `valid_at` may be None."""
    return PagedList(
        name,
        WorldRelation,
        sort=[SortKey(col(WorldRelation.created_at)), SortKey(col(WorldRelation.id))],
        parent=parent,
        where=_is_wanted,
    )


RELATIONS_OF_WORLDS = _list("world_relations", col(WorldRelation.world_id))
RELATIONS_OF_SOURCES = _list("relations_of_sources", col(WorldRelation.source_id))
RELATIONS_OF_TARGETS = _list("relations_of_targets", col(WorldRelation.target_id))


async def set_relation(
    writing: Writing,
    viewer: Viewer,
    source_id: str,
    target_id: str,
    kind: str,
    values: Mapping[str, Any],
) -> WorldRelation:
    """Say what one entity is to another; `values` by the names of columns. Where the relation is
    there, what is left out stays. What changes nothing counts as no change.

    Raises NotFound, Conflict (ENTITY_MERGED), Invalid (TEXT_…, SAME_ENTITY, OUT_OF_RANGE,
    VALID_BACKWARDS), LimitReached.
    """
    source = await hold_world_entity(writing, viewer, source_id, "input", "sourceId")
    target_path = ("input", "targetId")
    target = await require_row(writing, viewer, WorldEntity, target_id, *target_path)
    if target.world_id != source.world_id:
        raise Invalid("The two are of different worlds.", "OTHER_WORLD", target_path)
    refuse_merged(target, *target_path)
    wanted = checked_relation({**values, "kind": kind}, "input")
    key = key_of(source.id, target.id, wanted, *target_path)
    known = await relations_by_keys(writing, viewer, source.world_id, [key])
    row, outcome = written_over(known.get(key), key, wanted, "input")
    if outcome is None:
        return known[key]
    await replace_relations(writing, [{**row, "world_id": source.world_id}])
    return await require_row(writing, viewer, WorldRelation, row["id"])


async def delete_relation(writing: Writing, viewer: Viewer, relation_id: str) -> str:
    """Delete a relation; its id. Raises NotFound."""
    path = ("input", "relationId")
    relation = await require_row(writing, viewer, WorldRelation, relation_id, *path)
    await hold_world(writing, viewer, relation.world_id)
    relation = await require_row(writing, viewer, WorldRelation, relation_id, *path)
    await writing.run(_delete(), ids=[relation.id])
    return relation.id


async def remove_source(
    writing: Writing, viewer: Viewer, world_id: str, source: str
) -> tuple[World, int, int, int]:
    """Take back a source: entities and relations do not name it any more, and a relation that was
    told nowhere else goes. The world, and how many entities and relations stay without it, how
    many relations go.

    Raises NotFound, Invalid (TEXT_…).
    """
    checked_text(source, "input", "source", max_length=MAX_LINE)
    world = await hold_world(writing, viewer, world_id)
    named = {"world_id": world.id, "source": source, "sources": [source]}
    gone = await writing.run(_delete_of_source(), **named)
    relations = await writing.run(_forget_source(WorldRelation), **named)
    entities = await writing.run(_forget_source(WorldEntity), **named)
    return world, entities, relations, gone


def checked_relation(values: Mapping[str, Any], *path: str | int) -> dict[str, Any]:
    """New values by the names of columns, as they are kept. Raises Invalid and LimitReached."""
    wanted = dict(values)
    for each in ("kind", "label"):
        if wanted.get(each) is not None:
            checked_text(wanted[each], *path, each, max_length=MAX_LINE)
    if not 0 < wanted.get("weight", 1) <= MAX_WEIGHT:
        told = f"A weight is above 0, and {MAX_WEIGHT:,.0f} at most."
        raise Invalid(told, "OUT_OF_RANGE", (*path, "weight"))
    confidence = wanted.get("confidence")
    if confidence is not None and not 0 <= confidence <= 1:
        raise Invalid("Give a number from 0 to 1.", "OUT_OF_RANGE", (*path, "confidence"))
    if "sources" in wanted:
        wanted["sources"] = checked_lines(wanted["sources"], *path, "sources")
    return wanted


def key_of(
    source_id: str, target_id: str, wanted: Mapping[str, Any], *path: str | int
) -> RelationKey:
    """What a relation is told apart by. Raises Invalid (SAME_ENTITY); `path` is the target's."""
    if source_id == target_id:
        raise Invalid("Name two different entities.", "SAME_ENTITY", path)
    ends = (source_id, target_id)
    if not wanted.get("is_directed", True):
        ends = (min(ends), max(ends))
    return RelationKey(*ends, wanted["kind"], wanted.get("valid_from"))


def written_over(
    known: WorldRelation | None,
    key: RelationKey,
    wanted: Mapping[str, Any],
    *path: str | int,
    adds_sources: bool = False,
) -> tuple[dict[str, Any], str | None]:
    """The row that says what is wanted over what is known, without its world; and whether it is
    `created`, `updated`, or None for neither. With `adds_sources` known sources stay. Raises
    Invalid (VALID_BACKWARDS).
    """
    before = _BLANK if known is None else {name: getattr(known, name) for name in _BLANK}
    after = {**before, **{name: wanted[name] for name in _BLANK if name in wanted}}
    if adds_sources:
        after["sources"] = list(dict.fromkeys([*before["sources"], *after["sources"]]))
    until = after["valid_until"]
    if until is not None and key.valid_from is not None and until <= key.valid_from:
        told = "It ends after it begins."
        raise Invalid(told, "VALID_BACKWARDS", (*path, "validUntil"))
    if known is None:
        return {"id": new_id("world_relations"), **key._asdict(), **after}, "created"
    row = {
        "id": known.id,
        **key._asdict(),
        **after,
        "version": known.version + 1,
        "created_at": known.created_at,
    }
    return row, None if after == before else "updated"


# What may be said of a relation beside what it is told apart by, and what holds when it is not.
_BLANK: dict[str, Any] = {
    "label": None,
    "weight": 1.0,
    "is_directed": True,
    "valid_until": None,
    "confidence": None,
    "sources": [],
}


async def relations_by_keys(
    writing: Writing, viewer: Viewer, world_id: str, keys: Sequence[RelationKey]
) -> dict[RelationKey, WorldRelation]:
    """The relations of a world that are there among these, by their keys."""
    rows = await writing.all(
        _by_keys(),
        world_id=world_id,
        sources=[each.source_id for each in keys],
        targets=[each.target_id for each in keys],
        kinds=[each.kind for each in keys],
        froms=[each.valid_from for each in keys],
        **viewer.parameters,
    )
    return {relation_key(row): row for row in rows}


def relation_key(row: WorldRelation) -> RelationKey:
    """What a row is told apart by."""
    return RelationKey(row.source_id, row.target_id, row.kind, row.valid_from)


async def replace_relations(
    writing: Writing, rows: Iterable[Mapping[str, Any]], gone: Iterable[str] = ()
) -> None:
    """Write rows in place of those with the same ids, and delete those with the ids of `gone`, of
    a world that the caller holds. Rows of `created_at` keep it and were changed now.
    """
    kept = [dict(row) for row in rows]
    ids = [*gone, *(row["id"] for row in kept if "created_at" in row)]
    if ids:
        await writing.run(_delete(), ids=ids)
    fresh = [row for row in kept if "created_at" not in row]
    await writing.insert_many(WorldRelation, fresh)
    changed = [row for row in kept if "created_at" in row]
    await writing.insert_many(WorldRelation, changed)
    if changed:
        await writing.run(_touch(), ids=[row["id"] for row in changed])


@statement(WorldRelation)
def _by_keys() -> Any:
    wanted = (
        func.unnest(
            param("sources", ARRAY(Text)),
            param("targets", ARRAY(Text)),
            param("kinds", ARRAY(Text)),
            param("froms", ARRAY(BigInteger)),
        )
        .table_valued("source_id", "target_id", "kind", "valid_from", name="wanted")
        .render_derived()
    )
    return (
        select(*columns(WorldRelation))
        .select_from(wanted)
        .join(
            WorldRelation,
            and_(
                col(WorldRelation.source_id) == wanted.c.source_id,
                col(WorldRelation.target_id) == wanted.c.target_id,
                col(WorldRelation.kind) == wanted.c.kind,
                col(WorldRelation.valid_from).is_not_distinct_from(wanted.c.valid_from),
            ),
        )
        .where(col(WorldRelation.world_id) == param("world_id"), visible(WorldRelation))
    )


@statement(WorldRelation)
def _delete() -> Any:
    return delete(WorldRelation).where(any_of(WorldRelation.id, "ids"))


@statement(WorldRelation)
def _touch() -> Any:
    return (
        update(WorldRelation)
        .where(any_of(WorldRelation.id, "ids"))
        .values(updated_at=func.clock_timestamp())
    )


@statement(WorldRelation)
def _delete_of_source() -> Any:
    return delete(WorldRelation).where(
        col(WorldRelation.world_id) == param("world_id"),
        col(WorldRelation.sources) == param("sources", JSONB()),
    )


@statement(object)
def _forget_source(table: Any) -> Any:
    return (
        update(table)
        .where(
            col(table.world_id) == param("world_id"),
            col(table.sources).contains(param("sources", JSONB())),
        )
        .values(
            {
                col(table.sources): col(table.sources).op("-", return_type=JSONB())(
                    param("source", Text())
                ),
                col(table.updated_at): func.clock_timestamp(),
                col(table.version): col(table.version) + 1,
            }
        )
    )
