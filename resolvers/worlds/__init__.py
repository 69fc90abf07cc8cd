"""Worlds that outlast stories: lists, relations and walks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import Alikeness, EdgeDirection, TruncationReason, WorldEntityKind
from db.paging import FIRST_PAGE, Page, PagedList, PageRequest
from db.tables import (
    Canonization,
    Casting,
    Character,
    Story,
    StoryEntity,
    World,
    WorldEntity,
    WorldMerge,
    WorldRelation,
)
from resolvers.context import Context
from services import graphs, mirrors
from services import worlds as service
from services.access import find_row
from services.errors import Invalid, LimitReached
from services.text import refuse_unstorable

MAX_DUPLICATES = 200


@dataclass(frozen=True, slots=True)
class WorldGraphNode:
    """A node of an answer, as clients see it."""

    id: str
    kind: str
    label: str
    distance: int | None
    node: WorldEntity


@dataclass(frozen=True, slots=True)
class WorldGraph:
    """A part of a world."""

    nodes: list[WorldGraphNode]
    edges: list[graphs.Edge]
    truncated_by: TruncationReason | None

    @property
    def truncated(self) -> bool:
        """Whether there is more."""
        return self.truncated_by is not None


@dataclass(frozen=True, slots=True)
class WorldPath:
    """A way from one entity to another."""

    length: int
    cost: float
    nodes: list[WorldGraphNode]
    edges: list[graphs.Edge]
    truncated: bool


@dataclass(frozen=True, slots=True)
class WorldDuplicate:
    """Two entities that may be one."""

    entity_id: str
    other_id: str
    reason: Alikeness
    score: float


async def world_by_id(context: Context, id: str) -> World | None:
    """One world, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, World, id)


async def list_worlds(context: Context, page: PageRequest) -> Page[World]:
    """The viewer's worlds, newest first."""
    async with context.reading() as reading:
        return await service.list_worlds(reading, context.viewer, page)


async def _pages(
    context: Context,
    listing: PagedList[Any],
    parents: Sequence[Any],
    page: PageRequest,
    **values: Any,
) -> list[Page[Any]]:
    async with context.reading() as reading:
        return await listing.pages(
            reading, [each.id for each in parents], page, **values, **context.viewer.parameters
        )


async def entities_of_worlds(
    context: Context,
    worlds: Sequence[World],
    *,
    kinds: list[WorldEntityKind] | None = None,
    search: str | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[WorldEntity]]:
    """The entities of each world, or those that are wanted."""
    refuse_unstorable(search, ("search",))
    key = None if search is None else service.name_key(search)
    listing = service.ENTITIES_OF_WORLDS
    return await _pages(context, listing, worlds, page, kinds=kinds, search=key)


async def relations_of_worlds(
    context: Context,
    worlds: Sequence[World],
    *,
    kinds: list[str] | None = None,
    valid_at: int | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[WorldRelation]]:
    """The relations of each world, or those that are wanted."""
    return await _relations(context, service.RELATIONS_OF_WORLDS, worlds, kinds, valid_at, page)


async def relations_of_sources(
    context: Context,
    sources: Sequence[WorldEntity],
    *,
    kinds: list[str] | None = None,
    valid_at: int | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[WorldRelation]]:
    """The relations that lead from each entity."""
    return await _relations(context, service.RELATIONS_OF_SOURCES, sources, kinds, valid_at, page)


async def relations_of_targets(
    context: Context,
    targets: Sequence[WorldEntity],
    *,
    kinds: list[str] | None = None,
    valid_at: int | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[WorldRelation]]:
    """The relations that lead to each entity."""
    return await _relations(context, service.RELATIONS_OF_TARGETS, targets, kinds, valid_at, page)


async def _relations(
    context: Context,
    listing: PagedList[WorldRelation],
    parents: Sequence[Any],
    kinds: list[str] | None,
    valid_at: int | None,
    page: PageRequest,
) -> list[Page[WorldRelation]]:
    refuse_unstorable(kinds, ("kinds",))
    return await _pages(context, listing, parents, page, kinds=kinds, valid_at=valid_at)


async def merges_of_worlds(
    context: Context, worlds: Sequence[World], *, page: PageRequest = FIRST_PAGE
) -> list[Page[WorldMerge]]:
    """What was made one in each world."""
    return await _pages(context, service.MERGES_OF_WORLDS, worlds, page)


async def stories_of_worlds(
    context: Context, worlds: Sequence[World], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Story]]:
    """The stories that are set in each world."""
    return await _pages(context, service.STORIES_OF_WORLDS, worlds, page)


async def canon_of_worlds(
    context: Context, worlds: Sequence[World], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Canonization]]:
    """What is canon of each world."""
    return await _pages(context, mirrors.CANON_OF_WORLDS, worlds, page)


async def castings_of_stories(
    context: Context, stories: Sequence[Story], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Casting]]:
    """Who plays whom in each story."""
    return await _pages(context, service.CASTINGS_OF_STORIES, stories, page)


async def castings_of_characters(
    context: Context, characters: Sequence[Character], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Casting]]:
    """Whom each character plays."""
    return await _pages(context, service.CASTINGS_OF_CHARACTERS, characters, page)


async def castings_of_world_entities(
    context: Context, world_entities: Sequence[WorldEntity], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Casting]]:
    """What was drawn from each entity."""
    return await _pages(context, service.CASTINGS_OF_WORLD_ENTITIES, world_entities, page)


async def castings_of_entities(
    context: Context, entities: Sequence[StoryEntity]
) -> list[list[Casting]]:
    """Who plays each entity of a story, and what it was drawn from."""
    async with context.reading() as reading:
        return await service.castings_of_entities(reading, context.viewer, entities)


async def aliases_of_entities(context: Context, entities: Sequence[WorldEntity]) -> list[list[str]]:
    """The other names of each entity."""
    async with context.reading() as reading:
        found = await service.aliases_of(reading, context.viewer, [each.id for each in entities])
    return [list(found[each.id].values()) for each in entities]


async def worlds_of_rows(context: Context, rows: Sequence[Any]) -> list[World | None]:
    """The world of each row that has one."""
    return await context.many(World, [each.world_id for each in rows])


async def merged_into_of_entities(
    context: Context, entities: Sequence[WorldEntity]
) -> list[WorldEntity | None]:
    """What each entity turned out to be."""
    return await context.many(WorldEntity, [each.merged_into_id for each in entities])


async def sources_of_relations(
    context: Context, relations: Sequence[WorldRelation]
) -> list[WorldEntity | None]:
    """Where each relation leads from."""
    return await context.many(WorldEntity, [each.source_id for each in relations])


async def targets_of_relations(
    context: Context, relations: Sequence[WorldRelation]
) -> list[WorldEntity | None]:
    """Where each relation leads to."""
    return await context.many(WorldEntity, [each.target_id for each in relations])


async def kept_of_merges(
    context: Context, merges: Sequence[WorldMerge]
) -> list[WorldEntity | None]:
    """The entity that stayed in each merge."""
    return await context.many(WorldEntity, [each.kept_id for each in merges])


async def merged_of_merges(
    context: Context, merges: Sequence[WorldMerge]
) -> list[WorldEntity | None]:
    """The entity that went in each merge."""
    return await context.many(WorldEntity, [each.merged_id for each in merges])


async def entities_of_pairs(
    context: Context, pairs: Sequence[WorldDuplicate]
) -> list[WorldEntity | None]:
    """The older one of each pair."""
    return await context.many(WorldEntity, [each.entity_id for each in pairs])


async def others_of_pairs(
    context: Context, pairs: Sequence[WorldDuplicate]
) -> list[WorldEntity | None]:
    """The younger one of each pair."""
    return await context.many(WorldEntity, [each.other_id for each in pairs])


async def stories_of_castings(context: Context, castings: Sequence[Casting]) -> list[Story | None]:
    """The story of each casting."""
    return await context.many(Story, [each.story_id for each in castings])


async def characters_of_castings(
    context: Context, castings: Sequence[Casting]
) -> list[Character | None]:
    """Who plays, where a character does."""
    return await context.many(Character, [each.character_id for each in castings])


async def world_entities_of_castings(
    context: Context, castings: Sequence[Casting]
) -> list[WorldEntity | None]:
    """What was drawn from, where something was."""
    return await context.many(WorldEntity, [each.world_entity_id for each in castings])


async def entities_of_castings(
    context: Context, castings: Sequence[Casting]
) -> list[StoryEntity | None]:
    """The entity of each casting in the branch of its story that is open."""
    stories = await context.many(Story, [each.story_id for each in castings])
    ids = [
        f"{story.current_branch_id}:{casting.entity_row_id}"
        if story is not None and story.current_branch_id is not None
        else None
        for story, casting in zip(stories, castings, strict=True)
    ]
    return await context.many(StoryEntity, ids)


async def duplicates_of_worlds(
    context: Context,
    worlds: Sequence[World],
    *,
    kinds: list[WorldEntityKind] | None = None,
    first: int = 20,
) -> list[list[WorldDuplicate]]:
    """Entities of each world that may be one. Raises Invalid (OUT_OF_RANGE)."""
    _checked("first", first, MAX_DUPLICATES)
    async with context.reading() as reading:
        found = await service.duplicates_of_worlds(
            reading, context.viewer, [each.id for each in worlds], kinds, first
        )
    return [
        [WorldDuplicate(each.entity_id, each.other_id, each.reason, each.score) for each in pairs]
        for pairs in found
    ]


def _checked(name: str, value: int, most: int) -> None:
    if not 0 <= value <= most:
        raise Invalid(f"{name} lies between 0 and {most}.", "OUT_OF_RANGE", (name,))


def _wanted(
    edge_kinds: list[str] | None,
    kinds: list[WorldEntityKind] | None,
    direction: EdgeDirection,
) -> graphs.Wanted:
    refuse_unstorable(edge_kinds, ("edgeKinds",))
    return graphs.Wanted(
        None if edge_kinds is None else frozenset(edge_kinds),
        None if kinds is None else frozenset(kinds),
        direction,
    )


async def graphs_of_worlds(
    context: Context,
    worlds: Sequence[World],
    *,
    around: list[str] | None = None,
    depth: int = 1,
    first: int = 100,
    edge_kinds: list[str] | None = None,
    kinds: list[WorldEntityKind] | None = None,
    direction: EdgeDirection = EdgeDirection.BOTH,
    valid_at: int | None = None,
) -> list[WorldGraph]:
    """What lies around some entities of each world, or the whole world. Raises Invalid
    (OUT_OF_RANGE, INVALID_TEXT).
    """
    refuse_unstorable(around, ("around",))
    _checked("depth", depth, graphs.MAX_DEPTH)
    _checked("first", first, graphs.MAX_NODES)
    wanted = _wanted(edge_kinds, kinds, direction)
    ids = [each.id for each in worlds]
    async with context.reading() as reading:
        source = service.WorldSource(reading, context.viewer, valid_at)
        if around is None:
            walks = await graphs.whole(source, ids, wanted, first=first)
        else:
            there = await source.nodes(list(dict.fromkeys(around)))
            starts = [
                [each for each in around if each in there and there[each].row.world_id == world_id]
                for world_id in ids
            ]
            walks = await graphs.walk(source, starts, wanted, depth=depth, first=first)
    return [
        WorldGraph(
            [_node(each.node, each.distance) for each in walk.nodes], walk.edges, walk.truncated_by
        )
        for walk in walks
    ]


def _node(node: graphs.Node, distance: int | None) -> WorldGraphNode:
    return WorldGraphNode(node.id, node.kind, node.label, distance, node.row)


async def paths_of_worlds(
    context: Context,
    worlds: Sequence[World],
    *,
    from_: str,
    to: str,
    max_depth: int = 6,
    first: int = 1,
    weighted: bool = False,
    edge_kinds: list[str] | None = None,
    kinds: list[WorldEntityKind] | None = None,
    direction: EdgeDirection = EdgeDirection.BOTH,
    valid_at: int | None = None,
) -> list[list[WorldPath] | Exception]:
    """The shortest ways from one entity of each world to another. Raises Invalid (OUT_OF_RANGE,
    INVALID_TEXT), LimitReached.
    """
    refuse_unstorable(from_, ("from",))
    refuse_unstorable(to, ("to",))
    _checked("maxDepth", max_depth, graphs.MAX_PATH_DEPTH)
    _checked("first", first, graphs.MAX_PATHS)
    wanted = _wanted(edge_kinds, kinds, direction)
    async with context.reading() as reading:
        source = service.WorldSource(reading, context.viewer, valid_at)
        there = await source.nodes([from_, to])
        pairs = [
            (from_, to)
            if all(each in there and there[each].row.world_id == world.id for each in (from_, to))
            else ("", "")
            for world in worlds
        ]
        searched = await graphs.find_paths(
            source, pairs, wanted, max_depth=max_depth, first=first, is_weighted=weighted
        )
    return [_paths(each) for each in searched]


def _paths(paths: list[graphs.Path] | None) -> list[WorldPath] | Exception:
    if paths is None:
        return LimitReached(
            "Too much lies between these two: ask for fewer kinds, or a smaller maxDepth."
        )
    return [
        WorldPath(
            each.length,
            each.cost,
            [_node(node, distance) for distance, node in enumerate(each.nodes)],
            each.edges,
            each.is_cut,
        )
        for each in paths
    ]
