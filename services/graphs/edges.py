"""A branch as a graph: its entities and happenings, and whatever ties them together.

At present each level of a walk is one statement over indexes; a past moment, and what a character
knows, are walked over in memory. Both give the same edges.
Source: design, api (one graph), performance W4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Text,
    case,
    exists,
    func,
    literal,
    literal_column,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlmodel import col

from db.enums import EdgeDirection, EdgeKind, EntityKind, GraphNodeKind
from db.reading import Reading, any_of, columns, param, statement
from db.tables import (
    Branch,
    BranchRow,
    CharacterRelationship,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    StoryEntity,
)
from services import past, perspectives
from services.access import Viewer, rows_by_ids, visible
from services.entities.listing import held_items, in_state
from services.graphs.ties import STATE_TIES, edges_among, knows, node_of
from services.graphs.walking import (
    MAX_EDGES_PER_NODE,
    Edge,
    EdgeSource,
    MemorySource,
    Node,
    Steps,
    Wanted,
)
from services.past import Moment

# How the ids of a kind begin: only these are looked up where this kind can stand.
_PREFIXES: dict[str, str] = {
    EntityKind.CHARACTER: "char_",
    EntityKind.LOCATION: "loc_",
    EntityKind.ITEM: "item_",
    EntityKind.FACTION: "fact_",
    GraphNodeKind.HAPPENING: "hap_",
}
_LINKS: dict[EdgeKind, tuple[type[BranchRow], str, str]] = {
    EdgeKind.INVOLVEMENT: (HappeningInvolvement, "entity_id", "happening_id"),
    EdgeKind.AWARENESS: (HappeningAwareness, "character_id", "happening_id"),
}


def _near() -> Any:
    """The nodes that are asked about, of branches that the viewer may see, with their places among
    all that are asked about, from 1.
    """
    names = (
        func.unnest(param("names", ARRAY(Text)))
        .table_valued("name", with_ordinality="place", name="names")
        .render_derived()
    )
    branch_id, row_id = (func.split_part(names.c.name, ":", half) for half in (1, 2))
    asked = select(
        branch_id.label("branch_id"), row_id.label("id"), names.c.place.label("place")
    ).subquery("asked")
    # Looked up once, and not for each node.
    seen = select(col(Branch.id)).where(any_of(Branch.id, "branch_ids"), visible(Branch))
    is_seen = asked.c.branch_id == func.any(func.array(seen.scalar_subquery()))
    return select(asked).where(is_seen).cte("near")


class _Steps:
    """Builds the statement that goes one step further from nodes."""

    def __init__(self, direction: EdgeDirection) -> None:
        self.near = _near()
        self.parts: list[Any] = []
        self.ways = [
            each
            for each in (EdgeDirection.OUT, EdgeDirection.IN)
            if direction in (each, EdgeDirection.BOTH)
        ]

    def add(
        self,
        table: Any,
        kind: str | None,
        is_near: Any,
        far: Any,
        *conditions: Any,
        branch_id: Any = None,
    ) -> None:
        """Steps from nodes of a kind, or from any, to what `far` says."""
        near = self.near
        of_branch = col(table.branch_id) if branch_id is None else branch_id
        found = (
            select(far.label("far"))
            .select_from(table)
            .where(of_branch == near.c.branch_id, is_near, *conditions)
            .correlate(near)
            .order_by(col(table.row_id))
            .limit(param("most", Integer()))
            .lateral(f"found_{len(self.parts)}")
        )
        part = select(
            near.c.place.label("place"),
            literal_column(str(len(self.parts)), Integer()).label("part"),
            found.c.far.label("far"),
        ).select_from(near.join(found, true()))
        # Not within: that would tempt the planner to read all that name anything.
        part = part.where(found.c.far.is_not(None))
        if kind is not None:
            prefix: Any = literal_column(f"'{_PREFIXES[kind]}'")
            part = part.where(func.starts_with(near.c.id, prefix))
        self.parts.append(part)

    def add_links(self, table: Any, source: Any, target: Any, *conditions: Any) -> None:
        """Along rows that name both ends."""
        ends = {EdgeDirection.OUT: (source, target), EdgeDirection.IN: (target, source)}
        for way in self.ways:
            near, far = ends[way]
            kind = GraphNodeKind.HAPPENING if near.key == "happening_id" else None
            if near.key in ("character_id", "a_id", "b_id"):
                kind = GraphNodeKind.CHARACTER
            self.add(table, kind, near == self.near.c.id, far, *conditions)

    def add_states(self, edge_kinds: Collection[EdgeKind]) -> None:
        """Along what states of entities name."""
        ties = [each for each in STATE_TIES if each[2] in edge_kinds]
        if EdgeDirection.OUT in self.ways:
            # All that an entity names is read with it at once.
            named = func.unnest(
                array([case((_is_of(kind), in_state(key))) for kind, key, _, _ in ties])
            )
            self.add(StoryEntity, None, col(StoryEntity.row_id) == self.near.c.id, named)
        if EdgeDirection.IN in self.ways:
            for kind, key, _, named_kind in ties:
                is_named = in_state(key) == self.near.c.id
                self.add(StoryEntity, named_kind, is_named, col(StoryEntity.row_id), _is_of(kind))

    def add_possessions(self) -> None:
        """Along what characters wear and carry."""
        is_near = col(StoryEntity.row_id) == self.near.c.id
        is_holder = _is_of(EntityKind.CHARACTER)
        if EdgeDirection.OUT in self.ways:
            item = func.jsonb_array_elements_text(held_items())
            self.add(StoryEntity, EntityKind.CHARACTER, is_near, item, is_holder)
        if EdgeDirection.IN in self.ways:
            holds = held_items().op("?")(self.near.c.id)
            far = col(StoryEntity.row_id)
            # As an expression, or else all of the branch would be read for each item: the planner
            # takes an index of branches along.
            branch_id = col(StoryEntity.branch_id) + ""
            self.add(StoryEntity, EntityKind.ITEM, holds, far, is_holder, branch_id=branch_id)


def _is_of(kind: EntityKind) -> ColumnElement[bool]:
    return col(StoryEntity.kind) == literal_column(f"'{kind}'")


@statement(object)
def _steps(kinds: tuple[EdgeKind, ...], direction: EdgeDirection) -> Any:
    built = _Steps(direction)
    for kind in kinds:
        if kind == EdgeKind.RELATIONSHIP:
            table = CharacterRelationship
            for source, target, view in (
                (col(table.a_id), col(table.b_id), col(table.kind)),
                (col(table.b_id), col(table.a_id), col(table.inverse_kind)),
            ):
                built.add_links(table, source, target, view.is_not(None))
        elif kind in _LINKS:
            link, entity, happening = _LINKS[kind]
            built.add_links(link, col(getattr(link, entity)), col(getattr(link, happening)))
        elif kind == EdgeKind.POSSESSION:
            built.add_possessions()
    if in_states := {each for _, _, each, _ in STATE_TIES}.intersection(kinds):
        built.add_states(in_states)
    found = union_all(*built.parts).limit(param("limit", Integer())).subquery("found")
    far = func.array_agg(found.c.far, type_=ARRAY(Text))
    return select(found.c.place, far.label("far")).group_by(found.c.place, found.c.part)


@statement(object)
def _kinds() -> Any:
    near = _near()

    def of(table: Any, kind: Any) -> Any:
        return select(
            near.c.branch_id.label("branch_id"), near.c.id.label("id"), kind.label("kind")
        ).select_from(
            near.join(
                table,
                (col(table.branch_id) == near.c.branch_id) & (col(table.row_id) == near.c.id),
            )
        )

    happening = literal(GraphNodeKind.HAPPENING.value, Text())
    return union_all(of(StoryEntity, col(StoryEntity.kind)), of(Happening, happening))


def _links_among(table: Any, source: Any, target: Any, *conditions: Any) -> Any:
    """The rows that name two of the nodes."""
    near = _near()
    names = func.unnest(param("names", ARRAY(Text))).column_valued("name")
    # Looked up by hash: a second join would be made row by row, and so would `IN` where it becomes
    # one, which it does not within IS TRUE.
    is_among = (col(table.branch_id) + ":" + source).in_(select(names)).is_(true())
    return (
        select(*columns(table))
        .select_from(
            near.join(table, (col(table.branch_id) == near.c.branch_id) & (target == near.c.id))
        )
        .where(is_among, *conditions)
        .order_by(col(table.branch_id), col(table.row_id))
        .limit(param("limit", Integer()))
    )


@statement(CharacterRelationship)
def _relationships_among() -> Any:
    table = CharacterRelationship
    return _links_among(table, col(table.a_id), col(table.b_id))


@statement(HappeningInvolvement)
def _involvements_among() -> Any:
    table = HappeningInvolvement
    return _links_among(table, col(table.entity_id), col(table.happening_id))


@statement(HappeningAwareness)
def _awareness_among() -> Any:
    table = HappeningAwareness
    return _links_among(table, col(table.character_id), col(table.happening_id))


_AMONG: dict[EdgeKind, Any] = {
    EdgeKind.RELATIONSHIP: _relationships_among,
    EdgeKind.INVOLVEMENT: _involvements_among,
    EdgeKind.AWARENESS: _awareness_among,
}


@statement(object)
def _first_nodes() -> Any:
    owners = (
        func.unnest(param("branch_ids", ARRAY(Text)))
        .table_valued("id", name="owners")
        .render_derived()
    )
    is_seen = exists(select(1).where(col(Branch.id) == owners.c.id, visible(Branch)))
    kinds = param("kinds", ARRAY(Text))

    def first(table: Any, rank: int, kind: Any) -> Any:
        found = (
            select(
                col(table.branch_id).label("branch_id"),
                col(table.row_id).label("id"),
                literal_column(str(rank), Integer()).label("rank"),
                col(table.created_at).label("made_at"),
            )
            .where(col(table.branch_id) == owners.c.id, kinds.is_(None) | (kind == func.any(kinds)))
            .order_by(col(table.created_at), col(table.row_id))
            .limit(param("limit", Integer()))
            .correlate(owners)
            .lateral(f"found_{rank}")
        )
        return select(found).select_from(owners.join(found, true())).where(is_seen)

    happening = literal(GraphNodeKind.HAPPENING.value, Text())
    found = union_all(
        first(StoryEntity, 0, col(StoryEntity.kind)), first(Happening, 1, happening)
    ).subquery("found")
    return select(found).order_by(found.c.rank, found.c.made_at, found.c.id)


@dataclass(frozen=True, slots=True)
class BranchSource:
    """The graphs of branches at present, as an EdgeSource."""

    reading: Reading
    viewer: Viewer

    def _given(self, ids: Iterable[str]) -> dict[str, Any]:
        names = list(ids)
        branch_ids = sorted({each.partition(":")[0] for each in names})
        return {"names": names, "branch_ids": branch_ids, **self.viewer.parameters}

    async def first_nodes(
        self, owners: Sequence[str], wanted: Wanted, limit: int
    ) -> list[list[str]]:
        """As EdgeSource says; the entities of a branch come before its happenings."""
        kinds = None if wanted.node_kinds is None else sorted(wanted.node_kinds)
        rows: list[Any] = await self.reading.all(
            _first_nodes(),
            branch_ids=sorted(set(owners)),
            kinds=kinds,
            limit=limit,
            **self.viewer.parameters,
        )
        found: dict[str, list[str]] = {each: [] for each in owners}
        for row in rows:
            found[row.branch_id].append(f"{row.branch_id}:{row.id}")
        return [found[each][:limit] for each in owners]

    async def steps(self, ids: Sequence[str], wanted: Wanted, limit: int) -> Steps:
        """As EdgeSource says."""
        kinds = _kinds_of(wanted)
        if not kinds:
            return Steps()
        rows: list[Any] = await self.reading.all(
            _steps(kinds, wanted.direction),
            most=MAX_EDGES_PER_NODE + 1,
            limit=limit + 1,
            **self._given(ids),
        )
        ends: dict[str, dict[str, float]] = {}
        hubs = set()
        count = 0
        for row in rows:
            near = ids[row.place - 1]
            count += len(row.far)
            if len(row.far) > MAX_EDGES_PER_NODE:
                hubs.add(near)
            branch = near.partition(":")[0]
            far = [f"{branch}:{each}" for each in row.far[:MAX_EDGES_PER_NODE]]
            ends.setdefault(near, {}).update(dict.fromkeys(far, 1.0))
        return Steps(ends, frozenset(hubs), count > limit)

    async def kinds(self, ids: Sequence[str]) -> Mapping[str, str]:
        """As EdgeSource says."""
        rows: list[Any] = await self.reading.all(_kinds(), **self._given(ids))
        return {f"{row.branch_id}:{row.id}": row.kind for row in rows}

    async def nodes(self, ids: Sequence[str]) -> Mapping[str, Node]:
        """As EdgeSource says."""
        found: list[Any] = []
        for table in (StoryEntity, Happening):
            of_table = [each for each in ids if _is_happening(each) == (table is Happening)]
            found += await rows_by_ids(self.reading, self.viewer, table, of_table)
        return {row.id: node_of(row) for row in found if row is not None}

    async def edges(
        self, nodes: Mapping[str, Node], wanted: Wanted, limit: int | None
    ) -> list[Edge]:
        """As EdgeSource says; without a limit all of them."""
        kinds = _kinds_of(wanted)
        given = self._given(nodes)
        rows: dict[EdgeKind, list[Any]] = {}
        for kind, among in _AMONG.items():
            if kind in kinds:
                rows[kind] = await self.reading.all(among(), limit=limit, **given)
        found = edges_among(
            nodes,
            rows.get(EdgeKind.RELATIONSHIP, ()),
            rows.get(EdgeKind.INVOLVEMENT, ()),
            rows.get(EdgeKind.AWARENESS, ()),
        )
        return [each for each in found if each.kind in kinds][:limit]


def _is_happening(id: str) -> bool:
    return id.partition(":")[2].startswith(_PREFIXES[GraphNodeKind.HAPPENING])


def _kinds_of(wanted: Wanted) -> tuple[EdgeKind, ...]:
    kinds = wanted.edge_kinds
    return tuple(each for each in EdgeKind if kinds is None or each in kinds)


async def source_of(
    reading: Reading,
    viewer: Viewer,
    branch_id: str,
    moment: Moment | None,
    perspective: str | None,
) -> EdgeSource:
    """The graph of a branch: at present or at a moment, whole or as far as a character knows it.

    Raises what `perspectives.knowledge_of` raises.
    """
    present = BranchSource(reading, viewer)
    if moment is None and perspective is None:
        return present
    knowledge = None
    if perspective is not None:
        knowledge = await perspectives.knowledge_of(reading, viewer, branch_id, perspective, moment)
    if moment is None:
        assert knowledge is not None
        known = sorted(f"{branch_id}:{each}" for each in knowledge.entities | knowledge.happenings)
        nodes = await present.nodes(known)
        edges = await present.edges(nodes, Wanted(), None)
    else:
        rows = {
            table: await past.rows_at(reading, viewer, moment, table)
            for table in (
                StoryEntity,
                Happening,
                CharacterRelationship,
                HappeningInvolvement,
                HappeningAwareness,
            )
        }
        found = [*rows[StoryEntity].values(), *rows[Happening].values()]
        if knowledge is not None:
            known_ids = knowledge.entities | knowledge.happenings
            found = [each for each in found if each.row_id in known_ids]
        nodes = {each.id: node_of(each) for each in found}
        edges = edges_among(
            nodes,
            rows[CharacterRelationship].values(),
            rows[HappeningInvolvement].values(),
            rows[HappeningAwareness].values(),
        )
    if knowledge is not None:
        edges = [each for each in edges if knows(knowledge, each)]
    return MemorySource(nodes, edges, {branch_id: _by_age(nodes.values())})


def _by_age(nodes: Iterable[Node]) -> list[str]:
    def age(node: Node) -> tuple[bool, Any, str]:
        return (node.kind == GraphNodeKind.HAPPENING, node.row.created_at, node.id)

    return [each.id for each in sorted(nodes, key=age)]
