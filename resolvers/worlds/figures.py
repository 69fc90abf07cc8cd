"""Communities and central entities of worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from db.enums import CentralityKind, EdgeDirection, WorldEntityKind
from db.tables import World
from resolvers.context import Context
from resolvers.worlds import WorldGraphNode
from services import graphs, worlds
from services.errors import Invalid
from services.text import refuse_unstorable


@dataclass(frozen=True, slots=True)
class WorldCentralNode:
    """An entity with its figure."""

    node: WorldGraphNode
    figure: float


@dataclass(frozen=True, slots=True)
class WorldCentrality:
    """The most central entities of a world."""

    by: CentralityKind
    nodes: list[WorldCentralNode]
    node_count: int
    edge_count: int


def _checked(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise Invalid(f"{name} lies between {least} and {most}.", "OUT_OF_RANGE", (name,))


def _node(node: graphs.Node) -> WorldGraphNode:
    return WorldGraphNode(node.id, node.kind, node.label, None, node.row)


async def _whole_graphs(
    context: Context,
    parents: Sequence[World],
    edge_kinds: list[str] | None,
    kinds: list[WorldEntityKind] | None,
    valid_at: int | None,
) -> list[graphs.WholeGraph]:
    refuse_unstorable(edge_kinds, ("edgeKinds",))
    wanted = graphs.Wanted(
        None if edge_kinds is None else frozenset(edge_kinds),
        None if kinds is None else frozenset(kinds),
        EdgeDirection.BOTH,
    )
    async with context.reading() as reading:
        source = worlds.WorldSource(reading, context.viewer, valid_at)
        return await graphs.whole_graphs(source, [each.id for each in parents], wanted)


async def communities_of_worlds(
    context: Context,
    worlds: Sequence[World],
    *,
    first: int = 20,
    max_iterations: int = graphs.MAX_ITERATIONS,
    edge_kinds: list[str] | None = None,
    kinds: list[WorldEntityKind] | None = None,
    valid_at: int | None = None,
) -> list[graphs.Communities]:
    """Each world in communities. Raises Invalid (OUT_OF_RANGE, INVALID_TEXT), LimitReached
    (TOO_LARGE).
    """
    _checked("first", first, 0, graphs.MAX_SHOWN)
    _checked("maxIterations", max_iterations, 1, graphs.MAX_ITERATIONS)
    found = await _whole_graphs(context, worlds, edge_kinds, kinds, valid_at)
    return await graphs.communities_of_graphs(
        context.engine.analyst, found, first=first, most_iterations=max_iterations
    )


async def world_nodes_of_communities(
    context: Context, communities: Sequence[graphs.Community], *, first: int = 20
) -> list[list[WorldGraphNode]]:
    """The entities of each community. Raises Invalid (OUT_OF_RANGE)."""
    _checked("first", first, 0, graphs.MAX_MEMBERS)
    return [[_node(node) for node in each.members[:first]] for each in communities]


async def centrality_of_worlds(
    context: Context,
    worlds: Sequence[World],
    *,
    by: CentralityKind,
    first: int = 20,
    edge_kinds: list[str] | None = None,
    kinds: list[WorldEntityKind] | None = None,
    valid_at: int | None = None,
) -> list[WorldCentrality]:
    """The most central entities of each world. Raises Invalid (OUT_OF_RANGE, INVALID_TEXT),
    LimitReached (TOO_LARGE).
    """
    _checked("first", first, 0, graphs.MAX_SHOWN)
    found = await _whole_graphs(context, worlds, edge_kinds, kinds, valid_at)
    central = await graphs.centrality_of_graphs(context.engine.analyst, found, by, first=first)
    return [
        WorldCentrality(
            each.by,
            [WorldCentralNode(_node(one.node), one.figure) for one in each.central],
            each.node_count,
            each.edge_count,
        )
        for each in central
    ]
