"""Making two entities of a world one, and two again.

The one that goes keeps its row and says what it turned out to be; its names, relations and castings
go over to the one that stays. What was there before is kept with the merge, so that it can be taken
back for as long as nothing of it has changed.
Source: asks, 49.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlmodel import col

from db.enums import MergeEffect
from db.paging import PagedList, SortKey
from db.reading import Writing, any_of, columns, param, statement
from db.tables import Casting, WorldEntity, WorldMerge, WorldRelation
from services.access import Viewer, require_row, visible
from services.errors import Conflict, Invalid
from services.worlds.entities import aliases_of, refuse_merged, with_keys, write_aliases
from services.worlds.keeping import hold_world
from services.worlds.relations import RelationKey, relation_key, replace_relations

_KEPT_PATH = ("input", "keptId")
_MERGED_PATH = ("input", "mergedId")
_MERGE_PATH = ("input", "mergeId")
_SAID = ("name", "folded_name", "description", "tags", "attributes", "sources")
_TOLD = (
    "id",
    "world_id",
    "source_id",
    "target_id",
    "kind",
    "label",
    "weight",
    "is_directed",
    "valid_from",
    "valid_until",
    "confidence",
    "sources",
)

MERGES_OF_WORLDS = PagedList(
    "world_merges",
    WorldMerge,
    sort=[
        SortKey(col(WorldMerge.created_at), is_descending=True),
        SortKey(col(WorldMerge.id), is_descending=True),
    ],
    parent=col(WorldMerge.world_id),
    where=lambda: visible(WorldMerge),
)


@dataclass(frozen=True, slots=True)
class MergeChange:
    """What becomes of one row, by its id."""

    effect: MergeEffect
    id: str


@dataclass(slots=True)
class _Plan:
    """What is to be written: relations by their ids, as they were and as they will be."""

    before: dict[str, dict[str, Any]] = field(default_factory=dict)
    after: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: list[MergeChange] = field(default_factory=list)


async def merge_world_entities(
    writing: Writing, viewer: Viewer, kept_id: str, merged_id: str, *, is_dry: bool = False
) -> tuple[WorldEntity, WorldMerge | None, list[MergeChange]]:
    """Make two entities of a kind one: `kept_id` stays as it is and gets what it has not. A dry run
    only tells what would change.

    Raises NotFound, Conflict (ENTITY_MERGED), Invalid (SAME_ENTITY, OTHER_WORLD, WRONG_KIND).
    """
    world_id = (await require_row(writing, viewer, WorldEntity, kept_id, *_KEPT_PATH)).world_id
    await hold_world(writing, viewer, world_id)
    kept = await require_row(writing, viewer, WorldEntity, kept_id, *_KEPT_PATH)
    merged = await require_row(writing, viewer, WorldEntity, merged_id, *_MERGED_PATH)
    _check_two(kept, merged)
    aliases = await aliases_of(writing, viewer, [kept.id, merged.id])
    said, said_after = _said(kept), _joined_entity(kept, merged)
    aliases_after = with_keys(
        [*aliases[kept.id].values(), merged.name, *aliases[merged.id].values()], kept.folded_name
    )
    touching = await writing.all(_touching(), ids=[kept.id, merged.id], **viewer.parameters)
    plan = _plan_relations(touching, kept.id, merged.id)
    castings = [row.id for row in await writing.all(_castings_of(), entity_id=merged.id)]
    changes = [MergeChange(MergeEffect.MERGED, merged.id)]
    if said != said_after or aliases_after != aliases[kept.id]:
        changes.append(MergeChange(MergeEffect.CHANGED, kept.id))
    changes += plan.changes
    changes += [MergeChange(MergeEffect.MOVED, each) for each in castings]
    if is_dry:
        return kept, None, changes
    merge = await writing.insert(
        WorldMerge,
        world_id=world_id,
        kept_id=kept.id,
        merged_id=merged.id,
        before={
            "entity": said,
            "aliases": list(aliases[kept.id].values()),
            "relations": list(plan.before.values()),
            "castings": castings,
        },
        after={
            "entity": said_after,
            "aliases": list(aliases_after.values()),
            "relations": [_told(each) for each in plan.after.values()],
        },
    )
    await writing.run(_say(), of_id=kept.id, **said_after)
    await write_aliases(writing, {kept.id: aliases_after})
    await writing.run(_become(), of_id=merged.id, other_id=kept.id)
    await replace_relations(
        writing,
        plan.after.values(),
        gone=[each for each in plan.before if each not in plan.after],
    )
    await writing.run(_recast(), ids=castings, other_id=kept.id)
    kept = await require_row(writing, viewer, WorldEntity, kept.id, *_KEPT_PATH)
    return kept, merge, changes


async def unmerge_world_entities(
    writing: Writing, viewer: Viewer, merge_id: str
) -> tuple[WorldEntity, WorldEntity, WorldMerge]:
    """Take a merge back: both entities and their relations say what they said before it.

    Raises NotFound, Conflict (ALREADY_UNMERGED, CHANGED_SINCE).
    """
    world_id = (await require_row(writing, viewer, WorldMerge, merge_id, *_MERGE_PATH)).world_id
    await hold_world(writing, viewer, world_id)
    merge = await require_row(writing, viewer, WorldMerge, merge_id, *_MERGE_PATH)
    if merge.undone_at is not None:
        raise Conflict("This was taken back already.", "ALREADY_UNMERGED", _MERGE_PATH)
    kept = await require_row(writing, viewer, WorldEntity, merge.kept_id, *_MERGE_PATH)
    rows = await writing.all(
        _by_ids(), ids=[each["id"] for each in merge.after["relations"]], **viewer.parameters
    )
    present = {row.id: row for row in rows}
    known = (await aliases_of(writing, viewer, [kept.id]))[kept.id]
    is_as_left = (
        kept.merged_into_id is None
        and _said(kept) == merge.after["entity"]
        and list(known.values()) == merge.after["aliases"]
        and all(
            each["id"] in present and _told(_row(present[each["id"]])) == each
            for each in merge.after["relations"]
        )
    )
    if not is_as_left:
        told = "What the merge has made was changed since: part them by hand."
        raise Conflict(told, "CHANGED_SINCE", _MERGE_PATH)
    before = merge.before
    await writing.run(_say(), of_id=kept.id, **before["entity"])
    aliases = with_keys(before["aliases"], before["entity"]["folded_name"])
    await write_aliases(writing, {kept.id: aliases})
    await writing.run(_become(), of_id=merge.merged_id, other_id=None)
    await replace_relations(
        writing,
        [
            {
                **each,
                "created_at": datetime.fromisoformat(each["created_at"]),
                "version": getattr(present.get(each["id"]), "version", each["version"]) + 1,
            }
            for each in before["relations"]
        ],
    )
    await writing.run(_recast(), ids=before["castings"], other_id=merge.merged_id)
    undone = await writing.first(_undo(), of_id=merge.id)
    assert undone is not None  # its world is held
    kept, merged = [
        await require_row(writing, viewer, WorldEntity, each, *_MERGE_PATH)
        for each in (merge.kept_id, merge.merged_id)
    ]
    return kept, merged, undone


def _check_two(kept: WorldEntity, merged: WorldEntity) -> None:
    refuse_merged(kept, *_KEPT_PATH)
    refuse_merged(merged, *_MERGED_PATH)
    if kept.id == merged.id:
        raise Invalid("Name two different entities.", "SAME_ENTITY", _MERGED_PATH)
    if kept.world_id != merged.world_id:
        raise Invalid("The two are of different worlds.", "OTHER_WORLD", _MERGED_PATH)
    if kept.kind != merged.kind:
        raise Invalid("The two are of different kinds.", "WRONG_KIND", _MERGED_PATH)


def _said(entity: WorldEntity) -> dict[str, Any]:
    return {name: getattr(entity, name) for name in _SAID}


def _row(relation: WorldRelation) -> dict[str, Any]:
    """A relation as it is written again: unlike what it tells, with its age and version."""
    return {
        **{name: getattr(relation, name) for name in _TOLD},
        "version": relation.version,
        "created_at": relation.created_at,
    }


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _TOLD}


def _joined_entity(kept: WorldEntity, merged: WorldEntity) -> dict[str, Any]:
    """What one says once it is the other as well: its own counts where both said something."""
    return {
        **_said(kept),
        "description": kept.description or merged.description,
        "tags": _joined_list(kept.tags, merged.tags),
        "attributes": {**merged.attributes, **kept.attributes},
        "sources": _joined_list(kept.sources, merged.sources),
    }


def _joined_list(own: Sequence[str], other: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*own, *other]))


def _plan_relations(touching: Sequence[WorldRelation], kept_id: str, merged_id: str) -> _Plan:
    """What becomes of the relations of two entities when one is the other. Those between the two
    go, and those that say the same of both are joined.
    """
    plan = _Plan()
    own: dict[RelationKey, dict[str, Any]] = {}
    theirs = []
    for relation in touching:
        if merged_id in (relation.source_id, relation.target_id):
            theirs.append(relation)
        else:
            own[relation_key(relation)] = _row(relation)
    for relation in theirs:
        row = _row(relation)
        plan.before[row["id"]] = {**row, "created_at": row["created_at"].isoformat()}
        ends = [
            kept_id if each == merged_id else each for each in (row["source_id"], row["target_id"])
        ]
        if ends[0] == ends[1]:
            plan.changes.append(MergeChange(MergeEffect.DROPPED, row["id"]))
            continue
        if not row["is_directed"]:
            ends.sort()
        key = RelationKey(ends[0], ends[1], row["kind"], row["valid_from"])
        same = own.get(key)
        if same is None:
            moved = {**row, "source_id": ends[0], "target_id": ends[1]}
            own[key] = plan.after[row["id"]] = {**moved, "version": row["version"] + 1}
            plan.changes.append(MergeChange(MergeEffect.MOVED, row["id"]))
            continue
        plan.changes.append(MergeChange(MergeEffect.DROPPED, row["id"]))
        if same["id"] not in plan.after:
            # Its own, met for the first time.
            as_it_was = {**same, "created_at": same["created_at"].isoformat()}
            plan.before[same["id"]] = as_it_was
            same["version"] += 1
            plan.after[same["id"]] = same
            plan.changes.append(MergeChange(MergeEffect.JOINED, same["id"]))
        _join(same, row)
    return plan


def _join(same: dict[str, Any], other: Mapping[str, Any]) -> None:
    same["label"] = same["label"] if same["label"] is not None else other["label"]
    same["weight"] = max(same["weight"], other["weight"])
    if same["valid_until"] is None or other["valid_until"] is None:
        same["valid_until"] = None
    else:
        same["valid_until"] = max(same["valid_until"], other["valid_until"])
    sure = [each for each in (same["confidence"], other["confidence"]) if each is not None]
    same["confidence"] = max(sure, default=None)
    same["sources"] = _joined_list(same["sources"], other["sources"])


@statement(WorldRelation)
def _touching() -> Any:
    return (
        select(*columns(WorldRelation))
        .where(
            or_(any_of(WorldRelation.source_id, "ids"), any_of(WorldRelation.target_id, "ids")),
            visible(WorldRelation),
        )
        .order_by(col(WorldRelation.created_at), col(WorldRelation.id))
    )


@statement(WorldRelation)
def _by_ids() -> Any:
    return select(*columns(WorldRelation)).where(
        any_of(WorldRelation.id, "ids"), visible(WorldRelation)
    )


@statement(Casting)
def _castings_of() -> Any:
    return (
        select(*columns(Casting))
        .where(col(Casting.world_entity_id) == param("entity_id"))
        .order_by(col(Casting.created_at), col(Casting.id))
    )


@statement(Casting)
def _recast() -> Any:
    return (
        update(Casting)
        .where(any_of(Casting.id, "ids"))
        .values({col(Casting.world_entity_id): param("other_id")})
    )


@statement(WorldEntity)
def _say() -> Any:
    said = {
        getattr(WorldEntity, name): param(name, getattr(WorldEntity, name).type) for name in _SAID
    }
    return (
        update(WorldEntity)
        .where(col(WorldEntity.id) == param("of_id"))
        .values(
            {
                **said,
                col(WorldEntity.updated_at): func.clock_timestamp(),
                col(WorldEntity.version): col(WorldEntity.version) + 1,
            }
        )
    )


@statement(WorldEntity)
def _become() -> Any:
    return (
        update(WorldEntity)
        .where(col(WorldEntity.id) == param("of_id"))
        .values(
            {
                col(WorldEntity.merged_into_id): param("other_id"),
                col(WorldEntity.updated_at): func.clock_timestamp(),
                col(WorldEntity.version): col(WorldEntity.version) + 1,
            }
        )
    )


@statement(WorldMerge)
def _undo() -> Any:
    return (
        update(WorldMerge)
        .where(col(WorldMerge.id) == param("of_id"))
        .values({col(WorldMerge.undone_at): func.clock_timestamp()})
        .returning(*columns(WorldMerge))
    )
