"""Many entities and relations of a world at once, found by their names, without any model.

Who asks names the entities by keys of their own, by which the relations name their ends and the
answer the ids. The number of statements does not depend on the number of rows, and all of it is
written or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.ids import new_id
from db.reading import Writing, any_of, columns, param, statement
from db.tables import World, WorldAlias, WorldEntity
from services.access import Viewer, require_row, visible
from services.errors import Invalid, LimitReached
from services.stories import KeyedId
from services.text import MAX_LINES, checked_text
from services.worlds.entities import (
    aliases_of,
    checked_entity,
    name_key,
    with_keys,
    write_aliases,
)
from services.worlds.keeping import hold_world
from services.worlds.relations import (
    RelationKey,
    checked_relation,
    key_of,
    relations_by_keys,
    replace_relations,
    written_over,
)

MAX_ENTITIES = 1_000
MAX_RELATIONS = 5_000
MAX_KEY = 100
# What is replaced where it is given; aliases and sources are added to those that are known.
_REPLACED = ("description", "tags", "attributes")


@dataclass(frozen=True, slots=True)
class NewEntity:
    """An entity that is to be there; `values` by the names of columns, and `aliases`."""

    key: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewRelation:
    """A relation that is to be there; `values` by the names of columns."""

    source_key: str
    target_key: str
    values: Mapping[str, Any]


@dataclass(slots=True)
class Counts:
    """How many rows were made, changed, and found as they are to be."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0

    def add(self, outcome: str | None) -> None:
        """Count one more."""
        name = outcome or "unchanged"
        setattr(self, name, getattr(self, name) + 1)


@dataclass(slots=True)
class Upserted:
    """What has become of what was given."""

    world: World
    ids: list[KeyedId]
    entities: Counts = field(default_factory=Counts)
    relations: Counts = field(default_factory=Counts)


async def upsert(
    writing: Writing,
    viewer: Viewer,
    world_id: str,
    entities: Sequence[NewEntity],
    relations: Sequence[NewRelation],
) -> Upserted:
    """Make what is not there, and add to what is: an entity is found by its kind and its name, else
    by an alias that is its name, else by a name that is its alias.

    Raises NotFound, LimitReached, Invalid: TEXT_…, INVALID_SHAPE, KEY_TAKEN, KEY_UNKNOWN,
    SAME_ENTITY, NAME_AMBIGUOUS, OUT_OF_RANGE, VALID_BACKWARDS, DUPLICATE.
    """
    for name, given, most in (
        ("entities", entities, MAX_ENTITIES),
        ("relations", relations, MAX_RELATIONS),
    ):
        if len(given) > most:
            raise LimitReached(f"Give {most:,} at most.", path=("input", name))
    wanted = _checked(entities)
    world = await hold_world(writing, viewer, world_id)
    done = Upserted(world, [])
    await _put_entities(writing, viewer, done, [each.key for each in entities], wanted)
    await _put_relations(writing, viewer, done, relations)
    done.world = await require_row(writing, viewer, World, world.id)
    return done


def _checked(entities: Sequence[NewEntity]) -> list[dict[str, Any]]:
    wanted = []
    taken: set[str] = set()
    for index, each in enumerate(entities):
        path = ("input", "entities", index)
        checked_text(each.key, *path, "key", max_length=MAX_KEY)
        if each.key in taken:
            raise Invalid("Something else has this key already.", "KEY_TAKEN", (*path, "key"))
        taken.add(each.key)
        wanted.append(checked_entity(each.values, *path))
    return wanted


_AMBIGUOUS = "Several entities go by this name: make them one, or name them apart."


@dataclass(slots=True)
class _Known:
    """The entities that may be meant, and their names."""

    rows: dict[str, WorldEntity]
    aliases: dict[str, dict[str, str]]
    by_name: dict[tuple[str, str], list[WorldEntity]] = field(default_factory=dict)
    by_alias: dict[tuple[str, str], list[WorldEntity]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows.values():
            self.by_name.setdefault((row.kind, row.folded_name), []).append(row)
            for each in self.aliases[row.id]:
                self.by_alias.setdefault((row.kind, each), []).append(row)

    def find(self, wanted: Mapping[str, Any], *path: str | int) -> WorldEntity | None:
        """The one that is meant. Raises Invalid (NAME_AMBIGUOUS)."""
        kind, name = wanted["kind"], wanted["folded_name"]
        found = self.by_name.get((kind, name)) or self.by_alias.get((kind, name))
        if not found:
            named = {
                row.id: row
                for each in wanted.get("aliases", ())
                for row in self.by_name.get((kind, name_key(each)), ())
            }
            found = list(named.values())
        if len(found) > 1:
            raise Invalid(_AMBIGUOUS, "NAME_AMBIGUOUS", path)
        return found[0] if found else None


async def _put_entities(
    writing: Writing,
    viewer: Viewer,
    done: Upserted,
    keys: Sequence[str],
    entities: Sequence[dict[str, Any]],
) -> None:
    known = await _known(writing, viewer, done.world.id, entities)
    meant: set[Any] = set()
    made, changed = [], []
    aliases: dict[str, dict[str, str]] = {}
    held = {alias: {row.id for row in rows} for alias, rows in known.by_alias.items()}
    by_alias = []
    for index, (key, wanted) in enumerate(zip(keys, entities, strict=True)):
        path = ("input", "entities", index, "name")
        row = known.find(wanted, *path)
        same = row.id if row is not None else (wanted["kind"], wanted["folded_name"])
        if same in meant:
            raise Invalid("This is another of these entities.", "SAME_ENTITY", path)
        meant.add(same)
        given = wanted.pop("aliases", [])
        if row is None:
            values = {name: wanted.get(name, value) for name, value in _blank().items()}
            values |= {"id": new_id("world_entities"), "world_id": done.world.id}
            values |= {name: wanted[name] for name in ("kind", "name", "folded_name")}
            made.append(values)
            own_id, before = values["id"], None
            aliases[own_id] = with_keys(given, wanted["folded_name"])
            done.entities.add("created")
        else:
            own_id, before = row.id, known.aliases[row.id]
            after = _written_over(row, wanted)
            aliases[own_id] = with_keys([*before.values(), wanted["name"], *given], row.folded_name)
            if len(aliases[own_id]) > MAX_LINES:
                told = f"An entity has {MAX_LINES} aliases at most."
                raise LimitReached(told, path=(*path[:-1], "aliases"))
            if row.folded_name != wanted["folded_name"]:
                by_alias.append((path, (row.kind, wanted["folded_name"])))
            if after is None and aliases[own_id] == before:
                done.entities.add(None)
            else:
                changed.append(after or _values_of(row))
                done.entities.add("updated")
        for each in aliases[own_id]:
            held.setdefault((wanted["kind"], each), set()).add(own_id)
        if aliases[own_id] == before:
            del aliases[own_id]
        done.ids.append(KeyedId(key, own_id))
    # Else the same call once more would not know who is meant.
    for path, alias in by_alias:
        if len(held[alias]) > 1:
            raise Invalid(_AMBIGUOUS, "NAME_AMBIGUOUS", path)
    await writing.insert_many(WorldEntity, made)
    if changed:
        await writing.run(_update_many(), rows=changed)
    await write_aliases(writing, aliases)


def _blank() -> dict[str, Any]:
    return {"description": "", "tags": [], "attributes": {}, "sources": []}


def _values_of(row: WorldEntity) -> dict[str, Any]:
    return {"id": row.id, **{name: getattr(row, name) for name in _blank()}}


def _written_over(row: WorldEntity, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a row is to say, None where it says it already."""
    before = _values_of(row)
    after = {**before, **{name: wanted[name] for name in _REPLACED if name in wanted}}
    after["sources"] = list(dict.fromkeys([*row.sources, *wanted.get("sources", ())]))
    return None if after == before else after


async def _known(
    writing: Writing, viewer: Viewer, world_id: str, entities: Sequence[Mapping[str, Any]]
) -> _Known:
    names = [each["folded_name"] for each in entities]
    aliases = [name_key(alias) for each in entities for alias in each.get("aliases", ())]
    rows = await writing.all(
        _by_names(), world_id=world_id, names=[*names, *aliases], own=names, **viewer.parameters
    )
    found = {row.id: row for row in rows}
    return _Known(found, await aliases_of(writing, viewer, list(found)))


async def _put_relations(
    writing: Writing, viewer: Viewer, done: Upserted, relations: Sequence[NewRelation]
) -> None:
    ids = {each.key: each.id for each in done.ids}
    wanted: dict[RelationKey, tuple[int, dict[str, Any]]] = {}
    for index, each in enumerate(relations):
        path = ("input", "relations", index)
        ends = []
        for name, key in (("sourceKey", each.source_key), ("targetKey", each.target_key)):
            if key not in ids:
                told = "None of these entities has this key."
                raise Invalid(told, "KEY_UNKNOWN", (*path, name))
            ends.append(ids[key])
        values = checked_relation(each.values, *path)
        relation_key = key_of(ends[0], ends[1], values, *path, "targetKey")
        if relation_key in wanted:
            raise Invalid("This relation is given twice.", "DUPLICATE", path)
        wanted[relation_key] = (index, values)
    known = await relations_by_keys(writing, viewer, done.world.id, list(wanted))
    rows = []
    for relation_key, (index, values) in wanted.items():
        row, outcome = written_over(
            known.get(relation_key),
            relation_key,
            values,
            "input",
            "relations",
            index,
            adds_sources=True,
        )
        done.relations.add(outcome)
        if outcome is not None:
            rows.append({**row, "world_id": done.world.id})
    await replace_relations(writing, rows)


@statement(WorldEntity)
def _by_names() -> Any:
    alias = exists(
        select(1).where(
            col(WorldAlias.world_entity_id) == col(WorldEntity.id),
            any_of(WorldAlias.folded, "own"),
        )
    )
    return (
        select(*columns(WorldEntity))
        .where(
            col(WorldEntity.world_id) == param("world_id"),
            col(WorldEntity.merged_into_id).is_(None),
            or_(any_of(WorldEntity.folded_name, "names"), alias),
            visible(WorldEntity),
        )
        .order_by(col(WorldEntity.created_at), col(WorldEntity.id))
    )


@statement(WorldEntity)
def _update_many() -> Any:
    rows = (
        func.jsonb_array_elements(param("rows", JSONB()))
        .table_valued("value", name="given")
        .render_derived()
    )
    value = func.jsonb_extract_path
    return (
        update(WorldEntity)
        .where(col(WorldEntity.id) == func.jsonb_extract_path_text(rows.c.value, "id"))
        .values(
            {
                col(WorldEntity.description): func.jsonb_extract_path_text(
                    rows.c.value, "description"
                ),
                col(WorldEntity.tags): value(rows.c.value, "tags"),
                col(WorldEntity.attributes): value(rows.c.value, "attributes"),
                col(WorldEntity.sources): value(rows.c.value, "sources"),
                col(WorldEntity.updated_at): func.clock_timestamp(),
                col(WorldEntity.version): col(WorldEntity.version) + 1,
            }
        )
    )
