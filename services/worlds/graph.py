"""A world as a graph, for walks and paths: its entities are the nodes, its relations the edges.

What it costs to go along a relation is 1 divided by its weight: the stronger, the nearer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    Text,
    and_,
    func,
    literal_column,
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
from services.graphs import Edge, Node, Steps, Wanted
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
        ends: dict[str, dict[str, float]] = {}
        hubs = set()
        count = 0
        for row in rows:
            near = ids[row.place - 1]
            count += len(row.far)
            if len(row.far) > MAX_EDGES_PER_NODE:
                hubs.add(near)
            costs = ends.setdefault(near, {})
            ties = zip(row.far, row.weights, strict=True)
            for far, weight in islice(ties, MAX_EDGES_PER_NODE):
                costs[far] = min(1 / weight, costs.get(far, inf))
        return Steps(ends, frozenset(hubs), count > limit)

    async def kinds(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The kind of each entity that is there."""
        rows: list[Any] = await self.reading.all(_kinds(), ids=list(ids), **self.viewer.parameters)
        return {row.id: row.kind for row in rows}

    async def nodes(self, ids: Sequence[str]) -> Mapping[str, Node]:
        """The entities that are there."""
        rows = await self.reading.all(_nodes(), ids=list(ids), **self.viewer.parameters)
        return {row.id: Node(row.id, row.kind, row.name, row) for row in rows}

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


def _asked_for(*named: Any, with_place: bool = False) -> Any:
    """What is said of the entities that are asked for, with the place of each among them, from 1,
    where that is wanted.
    """
    asked = (
        func.unnest(param("ids", ARRAY(Text)))
        .table_valued("id", with_ordinality="place", name="asked")
        .render_derived()
    )
    return (
        select(*named, *([asked.c.place] if with_place else []))
        .select_from(asked.join(WorldEntity, col(WorldEntity.id) == asked.c.id))
        .where(col(WorldEntity.merged_into_id).is_(None), visible(WorldEntity))
    )


@statement(WorldEntity)
def _nodes() -> Any:
    return _asked_for(*columns(WorldEntity))


@statement(object)
def _kinds() -> Any:
    return _asked_for(col(WorldEntity.id).label("id"), col(WorldEntity.kind).label("kind"))


def _counts() -> ColumnElement[bool]:
    """Whether a relation is wanted. Who may see one of its ends may see it."""
    kinds, at = param("kinds", ARRAY(Text)), param("valid_at", BigInteger())
    return and_(
        or_(kinds.is_(None), col(WorldRelation.kind) == func.any(kinds)),
        or_(at.is_(None), holds_at(at)),
    )


@statement(object)
def _steps(direction: EdgeDirection) -> Any:
    """From each entity, for each direction one more than are followed: that shows that there are so
    many.
    """
    near = _asked_for(col(WorldEntity.id).label("id"), with_place=True).cte("near")
    parts = []
    for part, own, other, against in (
        (0, col(WorldRelation.source_id), col(WorldRelation.target_id), EdgeDirection.IN),
        (1, col(WorldRelation.target_id), col(WorldRelation.source_id), EdgeDirection.OUT),
    ):
        may_go = true() if direction != against else not_(col(WorldRelation.is_directed))
        relations = (
            select(other.label("far"), col(WorldRelation.weight).label("weight"))
            .where(own == near.c.id, may_go, _counts())
            .order_by(col(WorldRelation.id))
            .limit(MAX_EDGES_PER_NODE + 1)
            .lateral()
        )
        parts.append(
            select(
                near.c.place,
                literal_column(str(part), Integer()).label("part"),
                relations.c.far,
                relations.c.weight,
            ).select_from(near.join(relations, true()))
        )
    steps = union_all(*parts).limit(param("most", Integer())).subquery("steps")
    return select(
        steps.c.place,
        func.array_agg(steps.c.far, type_=ARRAY(Text)).label("far"),
        func.array_agg(steps.c.weight, type_=ARRAY(Double)).label("weights"),
    ).group_by(steps.c.place, steps.c.part)


@statement(WorldRelation)
def _edges() -> Any:
    ids = func.unnest(param("ids", ARRAY(Text))).column_valued("id")
    # Looked up by hash: `= ANY` compares with one after the other where the list is not known when
    # the statement is planned, and `IN` within IS TRUE is no join.
    is_among = col(WorldRelation.target_id).in_(select(ids)).is_(true())
    return (
        select(*columns(WorldRelation))
        .where(any_of(WorldRelation.source_id, "ids"), is_among, _counts(), visible(WorldRelation))
        .order_by(col(WorldRelation.id))
        .limit(param("most", Integer()))
    )
