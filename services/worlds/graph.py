"""A world as a graph, for walks and paths: its entities are the nodes, its relations the edges.

What it costs to go along a relation is 1 divided by its weight: the stronger, the nearer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Text,
    and_,
    func,
    not_,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.enums import EdgeDirection
from db.reading import Reading, any_of, columns, param, statement
from db.tables import WorldEntity, WorldRelation
from services.access import Viewer, visible
from services.graphs import Edge, Node, Step, Steps, Wanted
from services.graphs.walking import MAX_EDGES_PER_NODE
from services.worlds.relations import holds_at


@dataclass(frozen=True, slots=True)
class WorldSource:
    """The worlds of a viewer as an EdgeSource; with `valid_at` only relations that hold then."""

    reading: Reading
    viewer: Viewer
    valid_at: int | None = None

    async def first_nodes(
        self, owners: Sequence[str], wanted: Wanted, limit: int
    ) -> list[list[str]]:
        """The oldest entities of each world."""
        rows: list[Any] = await self.reading.all(
            _first_nodes(),
            world_ids=list(owners),
            kinds=_listed(wanted.node_kinds),
            most=limit,
            **self.viewer.parameters,
        )
        found: dict[str, list[str]] = {each: [] for each in owners}
        for row in rows:
            found[row.world_id].append(row.id)
        return [found[each] for each in owners]

    async def steps(self, ids: Sequence[str], wanted: Wanted, limit: int) -> Steps:
        """One step further from each entity."""
        rows: list[Any] = await self.reading.all(
            _steps(wanted.direction),
            ids=list(ids),
            kinds=_listed(wanted.edge_kinds),
            valid_at=self.valid_at,
            most=limit + 1,
            **self.viewer.parameters,
        )
        hubs = frozenset(row.near for row in rows if row.place > MAX_EDGES_PER_NODE)
        return Steps(
            [
                Step(row.near, row.far, 1 / row.weight)
                for row in rows[:limit]
                if row.place <= MAX_EDGES_PER_NODE
            ],
            hubs,
            len(rows) > limit,
        )

    async def kinds(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The kind of each entity that is there."""
        return {row.id: row.kind for row in await self._rows(ids)}

    async def nodes(self, ids: Sequence[str]) -> Mapping[str, Node]:
        """The entities that are there."""
        return {row.id: Node(row.id, row.kind, row.name, row) for row in await self._rows(ids)}

    async def edges(self, nodes: Mapping[str, Node], wanted: Wanted, limit: int) -> list[Edge]:
        """The relations between these entities."""
        rows = await self.reading.all(
            _edges(),
            ids=list(nodes),
            kinds=_listed(wanted.edge_kinds),
            valid_at=self.valid_at,
            most=limit,
            **self.viewer.parameters,
        )
        return [
            Edge(
                row.id,
                row.kind,
                row.label,
                row.source_id,
                row.target_id,
                is_directed=row.is_directed,
                row=row,
            )
            for row in rows
        ]

    async def _rows(self, ids: Sequence[str]) -> list[WorldEntity]:
        return await self.reading.all(_nodes(), ids=list(ids), **self.viewer.parameters)


def _listed(kinds: frozenset[str] | None) -> list[str] | None:
    return None if kinds is None else sorted(kinds)


@statement(object)
def _first_nodes() -> Any:
    kinds = param("kinds", ARRAY(Text))
    place = func.row_number().over(
        partition_by=col(WorldEntity.world_id),
        order_by=(col(WorldEntity.created_at), col(WorldEntity.id)),
    )
    entities = (
        select(
            col(WorldEntity.id).label("id"),
            col(WorldEntity.world_id).label("world_id"),
            place.label("place"),
        )
        .where(
            any_of(WorldEntity.world_id, "world_ids"),
            col(WorldEntity.merged_into_id).is_(None),
            or_(kinds.is_(None), col(WorldEntity.kind) == func.any(kinds)),
            visible(WorldEntity),
        )
        .subquery("entities")
    )
    return (
        select(entities.c.id, entities.c.world_id)
        .where(entities.c.place <= param("most", Integer()))
        .order_by(entities.c.world_id, entities.c.place)
    )


@statement(WorldEntity)
def _nodes() -> Any:
    return select(*columns(WorldEntity)).where(
        any_of(WorldEntity.id, "ids"),
        col(WorldEntity.merged_into_id).is_(None),
        visible(WorldEntity),
    )


def _counts() -> ColumnElement[bool]:
    """Whether a relation is wanted, and may be seen."""
    kinds, at = param("kinds", ARRAY(Text)), param("valid_at", BigInteger())
    return and_(
        or_(kinds.is_(None), col(WorldRelation.kind) == func.any(kinds)),
        or_(at.is_(None), holds_at(at)),
        visible(WorldRelation),
    )


@statement(object)
def _steps(direction: EdgeDirection) -> Any:
    """From each entity, for each direction one more than are followed: that it has so many shows by
    `place`.
    """
    near = func.unnest(param("ids", ARRAY(Text))).table_valued("id", name="near").render_derived()
    ways = []
    for own, other, against in (
        (col(WorldRelation.source_id), col(WorldRelation.target_id), EdgeDirection.IN),
        (col(WorldRelation.target_id), col(WorldRelation.source_id), EdgeDirection.OUT),
    ):
        may_go = true() if direction != against else not_(col(WorldRelation.is_directed))
        relations = (
            select(
                other.label("far"),
                col(WorldRelation.id).label("id"),
                col(WorldRelation.weight).label("weight"),
                func.row_number().over(order_by=col(WorldRelation.id)).label("place"),
            )
            .where(own == near.c.id, may_go, _counts())
            .order_by(col(WorldRelation.id))
            .limit(MAX_EDGES_PER_NODE + 1)
            .lateral()
        )
        ways.append(
            select(
                near.c.id.label("near"),
                relations.c.far,
                relations.c.id,
                relations.c.weight,
                relations.c.place,
            )
            .select_from(near)
            .join(relations, true())
        )
    steps = union_all(*ways).subquery("steps")
    return (
        select(steps.c.near, steps.c.far, steps.c.weight, steps.c.place)
        .order_by(steps.c.near, steps.c.id)
        .limit(param("most", Integer()))
    )


@statement(WorldRelation)
def _edges() -> Any:
    return (
        select(*columns(WorldRelation))
        .where(
            any_of(WorldRelation.source_id, "ids"),
            any_of(WorldRelation.target_id, "ids"),
            _counts(),
        )
        .order_by(col(WorldRelation.id))
        .limit(param("most", Integer()))
    )
