"""The edges that rows of a branch stand for.

Source: design, api (one graph); spec aventuras, world-state storage, happenings.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from db.enums import EdgeKind, EntityKind, GraphNodeKind, ItemSlot
from services.graphs.walking import Edge, Node
from services.perspectives import Knowledge

# What the state of an entity of a kind says under a key, and the kind of what it names there.
STATE_TIES: tuple[tuple[EntityKind, str, EdgeKind, EntityKind], ...] = (
    (EntityKind.LOCATION, "parent_location_id", EdgeKind.CONTAINMENT, EntityKind.LOCATION),
    (EntityKind.CHARACTER, "current_location_id", EdgeKind.POSITION, EntityKind.LOCATION),
    (EntityKind.ITEM, "at_location_id", EdgeKind.POSITION, EntityKind.LOCATION),
    (EntityKind.CHARACTER, "faction_id", EdgeKind.MEMBERSHIP, EntityKind.FACTION),
)
SLOTS = {ItemSlot.EQUIPPED: "equipped", ItemSlot.INVENTORY: "inventory"}
# The two views of a relationship: whose it is, of whom, and where it is written.
VIEWS = (("a_id", "b_id", "kind"), ("b_id", "a_id", "inverse_kind"))


def node_of(row: Any) -> Node:
    """An entity or a happening as a node."""
    if type(row).__name__ == "Happening":
        return Node(row.id, GraphNodeKind.HAPPENING, row.title, row)
    return Node(row.id, row.kind, row.name, row)


def _named(row: Any, row_id: str) -> str:
    return f"{row.branch_id}:{row_id}"


def edges_of_entity(row: Any, nodes: Container[str]) -> Iterator[Edge]:
    """Where it is, what it lies within, what it has and belongs to, among these nodes."""
    state, own_kind = row.state, row.kind
    named: list[tuple[EdgeKind, str | None, str, str]] = [
        (edge_kind, None, state[key], key)
        for kind, key, edge_kind, _ in STATE_TIES
        if own_kind == kind and state.get(key) is not None
    ]
    if own_kind == EntityKind.CHARACTER:
        # Of an item that is in both lists from of old, the first counts.
        held = {
            item: label for slot, label in [*SLOTS.items()][::-1] for item in state.get(slot, ())
        }
        named += [(EdgeKind.POSSESSION, label, item, item) for item, label in held.items()]
    for kind, label, other, part in named:
        target = _named(row, other)
        # Most of what is near lies beyond what is shown.
        if target in nodes:
            yield Edge(
                id=f"{row.id}:{kind}:{other}",
                kind=kind,
                label=label,
                source=row.id,
                target=target,
                row=row,
                part=part,
            )


def edges_of_relationship(row: Any) -> Iterator[Edge]:
    """One for each view that is known, from whoever has it."""
    for own, other, part in VIEWS:
        view = getattr(row, part)
        if view is not None:
            yield Edge(
                id=f"{row.id}:{part}",
                kind=EdgeKind.RELATIONSHIP,
                label=view,
                source=_named(row, getattr(row, own)),
                target=_named(row, getattr(row, other)),
                row=row,
                part=part,
            )


def edge_of_involvement(row: Any, happening: Any) -> Edge:
    """From who took part to what happened."""
    return Edge(
        id=row.id,
        kind=EdgeKind.INVOLVEMENT,
        label=row.role,
        source=_named(row, row.entity_id),
        target=happening.id,
        row=row,
        entry_id=happening.occurred_at_entry_id,
    )


def edge_of_awareness(row: Any) -> Edge:
    """From who knows to what happened."""
    return Edge(
        id=row.id,
        kind=EdgeKind.AWARENESS,
        label=row.source,
        source=_named(row, row.character_id),
        target=_named(row, row.happening_id),
        row=row,
        entry_id=row.learned_at_entry_id,
    )


def edges_among(
    nodes: Mapping[str, Node],
    relationships: Iterable[Any],
    involvements: Iterable[Any],
    awareness: Iterable[Any],
) -> list[Edge]:
    """All edges with both ends among these nodes, by their ids: those of the entities among them,
    and of these rows.
    """

    def all_edges() -> Iterator[Edge]:
        for node in nodes.values():
            if node.kind != GraphNodeKind.HAPPENING:
                yield from edges_of_entity(node.row, nodes)
        for row in relationships:
            yield from edges_of_relationship(row)
        for row in involvements:
            happening = nodes.get(_named(row, row.happening_id))
            if happening is not None:
                yield edge_of_involvement(row, happening.row)
        for row in awareness:
            yield edge_of_awareness(row)

    found = [each for each in all_edges() if each.source in nodes and each.target in nodes]
    return sorted(found, key=lambda each: each.id)


def knows(knowledge: Knowledge, edge: Edge) -> bool:
    """Whether a character knows of an edge both ends of which it knows: what it sees in others and
    not what they see, what it knows and not what they know, where those are who are where it is,
    what it has and belongs to, who took part, and what lies within what.
    """
    source = edge.source.partition(":")[2]
    if edge.kind == EdgeKind.POSITION:
        return source in knowledge.beside
    if edge.kind in (EdgeKind.INVOLVEMENT, EdgeKind.CONTAINMENT):
        return True
    return source == knowledge.character_id
