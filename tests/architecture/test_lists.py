"""Law 4: lists are always bounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from graphql import get_named_type

from db.enums import Agent, BranchTable, Realm, SearchMode, TranslationTarget
from db.paging import BadPageRequest, Page, PageRequest
from db.tables import MirrorTree, TreeNode
from resolvers import branch_rows, nodes
from resolvers import embedding as resolve_embedding
from resolvers import worlds as resolve_worlds
from services import calendars, characters, deltas, entities, graphs, mirrors, searching
from services.app_settings import profiles, providers
from services.calendars.model import MAX_LABELS, MAX_TIERS
from services.characters import forms
from services.deltas import differing, undoing
from services.errors import LimitReached
from services.mirrors import outlining, pruning
from services.mirrors import reading as mirrors_reading
from services.runs import prompting
from services.stories import creating
from services.text import MAX_LINES
from services.worlds import upserting
from tests.architecture.declared import ROOTS, Field, fields, relations, types
from tests.architecture.world import World, parents_of_type, root_page, sample_arguments

DEFAULT = 20
CEILING = 200

# Lists that are no connections, each with the number of rows at which its query stops.
BOUNDED = {
    "Branch.paths": graphs.MAX_PATHS,
    "Branch.translationCoverage": len(TranslationTarget),
    "Branch.searchModes": len(SearchMode),
    "Calendar.render": calendars.MAX_RENDERED,
    **{
        f"{name}.similar": resolve_embedding.MAX_SIMILAR
        for name in (
            "Chapter",
            "Embeddable",
            "Happening",
            "Lore",
            "StoryCharacter",
            "StoryEntity",
            "StoryFaction",
            "StoryItem",
            "StoryLocation",
            "Thread",
        )
    },
    "Delta.fields": differing.MAX_FIELDS,
    "GraphCommunity.nodes": graphs.MAX_MEMBERS,
    "WorldCommunity.nodes": graphs.MAX_MEMBERS,
    "World.duplicates": resolve_worlds.MAX_DUPLICATES,
    "World.paths": graphs.MAX_PATHS,
    "WorldEntity.aliases": MAX_LINES,
    **{
        f"{name}.castings": 2
        for name in (
            "StoryCharacter",
            "StoryEntity",
            "StoryFaction",
            "StoryItem",
            "StoryLocation",
        )
    },
    "Happening.awareness": branch_rows.MAX_LINKED,
    "Happening.involvements": branch_rows.MAX_LINKED,
    "StoryEntry.assets": branch_rows.MAX_LINKED,
    "StoryEntry.sceneEntities": branch_rows.MAX_LINKED,
    "StoryCharacter.equippedItems": branch_rows.MAX_LINKED,
    "StoryCharacter.inventory": branch_rows.MAX_LINKED,
    "StoryCharacter.relationships": branch_rows.MAX_LINKED,
    "StoryLocation.children": branch_rows.MAX_LINKED,
    "StoryLocation.occupants": branch_rows.MAX_LINKED,
    "StoryLocation.path": entities.MAX_DEPTH,
    "TreeNode.citations": mirrors.MAX_CITATIONS,
    # A path is one thing: a model needs it whole.
    "MirrorTree.path": mirrors.MAX_PATH,
    "MirrorTree.canonTrunk": mirrors.MAX_PATH,
}
# Lists within one value, each with the most that its service puts into it.
BOUNDED_VALUES = {
    "AppSettings.assignments": len(Agent),
    "AppSettings.profiles": profiles.MAX_PROFILES,
    "AppSettings.providers": providers.MAX_PROVIDERS,
    "ModelCapabilities.matryoshkaDims": providers.MAX_DIMENSIONS,
    "ProviderInstance.cachedModels": providers.MAX_MODELS,
    "ProviderInstance.customModelIds": providers.MAX_CHOSEN_MODELS,
    "ProviderInstance.favoriteModelIds": providers.MAX_CHOSEN_MODELS,
    "Calendar.tiers": MAX_TIERS,
    "CalendarTier.labels": MAX_LABELS,
    "Graph.edges": graphs.MAX_EDGES,
    "Graph.nodes": graphs.MAX_NODES,
    "GraphPath.edges": graphs.MAX_PATH_DEPTH * graphs.MAX_PARALLEL,
    "GraphPath.nodes": graphs.MAX_PATH_DEPTH + 1,
    "GraphCentrality.nodes": graphs.MAX_SHOWN,
    "GraphCommunities.communities": graphs.MAX_SHOWN,
    "WorldCentrality.nodes": graphs.MAX_SHOWN,
    "WorldGraph.edges": graphs.MAX_EDGES,
    "WorldGraph.nodes": graphs.MAX_NODES,
    "WorldPath.edges": graphs.MAX_PATH_DEPTH * graphs.MAX_PARALLEL,
    "WorldPath.nodes": graphs.MAX_PATH_DEPTH + 1,
    "WorldUpsertPayload.keys": upserting.MAX_ENTITIES,
    "WorldCommunities.communities": graphs.MAX_SHOWN,
    "LibraryHit.parts": 2,
    "LibraryResult.excluded": searching.MAX_HITS,
    "LibraryResult.hits": searching.MAX_HITS,
    "SearchHit.parts": 3,
    "SearchResult.excluded": searching.MAX_HITS,
    "SearchResult.hits": searching.MAX_HITS,
    "FormAnchor.permissions": forms.MAX_POINTS,
    "FormAnchor.stableTraits": forms.MAX_POINTS,
    "FormAnchor.taboos": forms.MAX_POINTS,
    "FormAnchor.variableRange": forms.MAX_POINTS,
    "EmbryoDraft.rehearsal": characters.MAX_REHEARSAL,
    "RunContext.parts": prompting.MAX_PARTS,
    "BranchEvent.changes": deltas.MAX_CHANGES,
    "RowDifference.fields": differing.MAX_FIELDS,
    "BranchForkPayload.copied": len(BranchTable),
    "BranchRollbackPayload.reversed": undoing.MAX_ACTIONS,
    "BranchRollbackPayload.warnings": 2,
    "BranchUndoPayload.reversed": undoing.MAX_ACTIONS,
    "ReversedAction.changes": undoing.MAX_LISTED,
    "StoryCreatePayload.keys": creating.MAX_CAST + creating.MAX_LORE,
    "TreeOutline.nodes": outlining.MAX_OUTLINE,
    "NodeCorrectPayload.canonizations": len(Realm),
    "TreePrunePayload.removedIds": pruning.MAX_LISTED,
}
# Root lists, each with the most that it takes.
BOUNDED_ROOTS = {
    "Query.builtInCalendars": len(calendars.BUILT_INS),
    "Query.nodes": nodes.MAX_IDS,
}

CONNECTIONS = [each for each in fields() if each.is_connection]


def missing_page_arguments(field: Field) -> list[str]:
    """Of Relay's four, those that a connection does not take."""
    return [name for name in ("first", "after", "last", "before") if name not in field.core.args]


def unbounded(declared: list[Field]) -> list[str]:
    """Lists read from the database that nobody has given a bound."""
    return [
        str(each)
        for each in declared
        if each.is_list and not each.is_attribute
        if str(each) not in {**BOUNDED, **BOUNDED_ROOTS}
    ]


async def page_of(world: World, field: Field, **arguments: Any) -> Page[Any]:
    """The page that a connection gives, the first parent's where it has parents."""
    if field.owner in ROOTS:
        return await root_page(world, field, **arguments)
    parents = await parents_of_type(world, field.owner)
    given = {**sample_arguments(field), "page": PageRequest(**arguments)}
    (page,), _ = await world.ask(field.batch, parents[:1], given)
    assert isinstance(page, Page)
    return page


@pytest.mark.parametrize("field", CONNECTIONS, ids=str)
def test_a_connection_takes_the_four_arguments_of_pages(field: Field) -> None:
    assert missing_page_arguments(field) == []


@pytest.mark.parametrize("field", CONNECTIONS, ids=str)
async def test_a_page_holds_twenty_rows_unless_said_otherwise(world: World, field: Field) -> None:
    page = await page_of(world, field)
    (total,) = await page_total(world, page)
    assert len(page.nodes) == min(DEFAULT, total)
    assert page.has_next_page is (total > DEFAULT)


def test_rows_of_connections_are_fetched_by_their_ids() -> None:
    """All but those that are rows of two branches at once, or no rows at all."""
    rows = [get_named_type(types()[each.leads_to].fields["nodes"].type) for each in CONNECTIONS]
    node = types()["Node"]
    assert {each.name for each in rows if node not in each.interfaces} == {
        "RowDifference",
        "UntranslatedText",
    }


async def page_total(world: World, page: Page[Any]) -> list[int]:
    async with world.database.reading() as reading:
        return await page.source.counts(reading, [page.parent_id], **dict(page.values))


@pytest.mark.parametrize("argument", ["first", "last"])
@pytest.mark.parametrize("field", CONNECTIONS, ids=str)
async def test_a_page_has_a_ceiling(world: World, field: Field, argument: str) -> None:
    for size in (CEILING + 1, -1):
        with pytest.raises(BadPageRequest) as refused:
            await page_of(world, field, **{argument: size})
        assert (refused.value.code, refused.value.argument) == ("INVALID_PAGE", argument)
    for size in (CEILING, 0):
        assert len((await page_of(world, field, **{argument: size})).nodes) <= size


def test_sizes_are_as_the_descriptions_say() -> None:
    assert PageRequest().size == DEFAULT
    assert PageRequest(first=CEILING).size == CEILING
    for field in CONNECTIONS:
        described = str(field.core.args["first"].description)
        assert str(DEFAULT) in described
        assert str(CEILING) in described
        assert str(CEILING) in str(field.core.args["last"].description)


def test_every_other_list_has_a_bound() -> None:
    assert unbounded(list(fields())) == []
    named = {str(each) for each in fields()}
    bounded = {**BOUNDED, **BOUNDED_ROOTS, **BOUNDED_VALUES}
    assert [name for name in bounded if name not in named] == []


def test_the_bounds_within_values_are_these() -> None:
    """Held by tests of the services:
    test_definitions, test_drafts, test_forms, test_outlining, test_canon, test_pruning,
    test_prompting, test_watching, test_history, test_setting_up, test_walking and test_paths.
    """
    assert BOUNDED_VALUES == {
        "AppSettings.assignments": 6,
        "AppSettings.profiles": 100,
        "AppSettings.providers": 50,
        "ModelCapabilities.matryoshkaDims": 50,
        "ProviderInstance.cachedModels": 2_000,
        "ProviderInstance.customModelIds": 200,
        "ProviderInstance.favoriteModelIds": 200,
        "Calendar.tiers": 12,
        "CalendarTier.labels": 1_000,
        "RunContext.parts": 500,
        "Graph.edges": 10_000,
        "Graph.nodes": 1_000,
        "GraphPath.edges": 600,
        "GraphPath.nodes": 31,
        "GraphCentrality.nodes": 200,
        "GraphCommunities.communities": 200,
        "WorldCentrality.nodes": 200,
        "WorldGraph.edges": 10_000,
        "WorldGraph.nodes": 1_000,
        "WorldPath.edges": 600,
        "WorldPath.nodes": 31,
        "WorldUpsertPayload.keys": 1_000,
        "WorldCommunities.communities": 200,
        "LibraryHit.parts": 2,
        "LibraryResult.excluded": 100,
        "LibraryResult.hits": 100,
        "SearchHit.parts": 3,
        "SearchResult.excluded": 100,
        "SearchResult.hits": 100,
        "FormAnchor.permissions": 50,
        "FormAnchor.stableTraits": 50,
        "FormAnchor.taboos": 50,
        "FormAnchor.variableRange": 50,
        "EmbryoDraft.rehearsal": 50,
        "BranchEvent.changes": 1_000,
        "BranchForkPayload.copied": 14,
        "BranchRollbackPayload.reversed": 1_000,
        "BranchRollbackPayload.warnings": 2,
        "BranchUndoPayload.reversed": 1_000,
        "ReversedAction.changes": 200,
        "RowDifference.fields": 200,
        "StoryCreatePayload.keys": 1_500,
        "TreeOutline.nodes": 5_000,
        "NodeCorrectPayload.canonizations": 3,
        "TreePrunePayload.removedIds": 200,
    }


async def test_no_more_ids_are_looked_up_than_the_bound(world: World) -> None:
    with pytest.raises(LimitReached):
        await nodes.rows_by_ids(world.context(), ["x"] * (nodes.MAX_IDS + 1))


@pytest.mark.parametrize(
    ("build", "bound", "group", "left"),
    [
        (mirrors_reading._citations_of_nodes, mirrors.MAX_CITATIONS, "node_id", 0),
        # The end of a path is there before the first step is counted.
        (mirrors_reading._path_rows, mirrors.MAX_PATH, "endpoint_id", 1),
        (mirrors_reading._canon_trunks, mirrors.MAX_PATH, "tree_id", 0),
    ],
)
async def test_the_statement_stops_at_the_bound(
    world: World, build: Any, bound: int, group: str, left: int
) -> None:
    """Shown with the bound lowered to nothing."""
    statement = build()
    lowered = {name: 0 if value == bound else value for name, value in statement.fixed.items()}
    trees = await world.rows(MirrorTree, world.owner)
    tree_nodes = await world.rows(TreeNode, world.owner)
    values = {
        "node_ids": [each.id for each in tree_nodes],
        "endpoint_ids": [each.working_entry_node_id or "" for each in trees],
        "tree_ids": [each.id for each in trees],
        "scope": Realm.REALITY,
        "viewer": world.owner.user_id,
    }
    async with world.database.reading() as reading:
        rows = await reading.all(statement, **values)
        fewer = await reading.all(replace(statement, fixed=lowered), **values)
    assert max(Counter(getattr(row, group) for row in rows).values()) > left
    assert max(Counter(getattr(row, group) for row in fewer).values(), default=0) == left


def test_a_list_without_a_bound_is_noticed() -> None:
    class Unbounded:
        is_list = True
        is_attribute = False

        def __str__(self) -> str:
            return "MirrorTree.everything"

    declared: Any = [Unbounded(), *relations()]
    assert unbounded(declared) == ["MirrorTree.everything"]
