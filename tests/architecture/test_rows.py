"""What a type shows exists on its value: rows, events, pages, and the payloads of mutations."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any, cast

import pytest
from graphql import GraphQLObjectType
from sqlalchemy.inspection import inspect as mapped

from db import paging
from db.reading import record_class
from db.tables import (
    AgentAssignment,
    Brief,
    CachedModel,
    CalendarEras,
    CalendarTier,
    ContextPart,
    FileWarning,
    LoreRecursion,
    ModelCapabilities,
    ModelProfile,
    ModelRef,
    ProviderInstance,
    RehearsalTurn,
    RowChange,
    Run,
    RunContext,
    RunError,
    RunProgress,
    StoryDefinition,
    StoryStyle,
    Table,
    VoiceProfile,
)
from db.tables.characters import ChecklistPoint, VariableFeature
from db.tables.entities import Stackable, Visual
from db.tables.stories import ClassifierStatus
from resolvers.accounts import ViewerRow
from resolvers.branch_rows import ResolvedAt
from resolvers.embedding import EmbeddingSwap, SimilarRow, StoryEmbedder
from resolvers.entities import RelationshipView
from resolvers.graphs import (
    CentralNode,
    Graph,
    GraphCentrality,
    GraphCommunities,
    GraphNode,
    GraphPath,
)
from resolvers.searching import (
    ExcludedRow,
    LibraryHit,
    LibraryResult,
    SearchHit,
    SearchResult,
)
from resolvers.worlds import WorldDuplicate, WorldGraph, WorldGraphNode, WorldPath
from resolvers.worlds.figures import WorldCentrality, WorldCentralNode
from schema.base import Payload, UserError
from schema.runs import RunEvent
from services import app_settings, comparing, deltas, translations, worlds
from services.calendars import RenderedTime, TimePart, TimeWarning
from services.graphs import Communities, Community, Edge
from services.mirrors import OutlineNode, TreeOutline
from services.rehearsing import RehearsalDelta, RehearsalFinished
from services.retrieval import showing
from services.retrieval.retrieving import Redundancy
from services.runs import Event
from services.searching import Part
from services.stories import KeyedId, OpenRegion
from tests.architecture.declared import (
    ROOTS,
    Field,
    definition_of,
    fields,
    is_connection,
    table_classes,
    table_of_kind,
    types,
)

# Types that are no rows, with the class of their values.
VALUES: dict[str, type[Any]] = {
    "EmbeddingSwap": EmbeddingSwap,
    "SimilarRow": SimilarRow,
    "StoryEmbedder": StoryEmbedder,
    "AgentAssignment": AgentAssignment,
    "BranchDiff": comparing.BranchDiff,
    "Brief": Brief,
    "CentralNode": CentralNode,
    "ClassifierStatus": ClassifierStatus,
    "CachedModel": CachedModel,
    "CalendarEras": CalendarEras,
    "CalendarTier": CalendarTier,
    "ChecklistPoint": ChecklistPoint,
    "ContextPart": ContextPart,
    "FieldChange": deltas.FieldChange,
    "FieldDifference": comparing.FieldDifference,
    "FileWarning": FileWarning,
    "Graph": Graph,
    "GraphEdge": Edge,
    "GraphNode": GraphNode,
    "GraphPath": GraphPath,
    "GraphCentrality": GraphCentrality,
    "GraphCommunities": GraphCommunities,
    "GraphCommunity": Community,
    "ExcludedRow": ExcludedRow,
    "LibraryHit": LibraryHit,
    "LibraryResult": LibraryResult,
    "LoreRecursion": LoreRecursion,
    "SearchHit": SearchHit,
    "SearchResult": SearchResult,
    "SearchScorePart": Part,
    "KeyedId": KeyedId,
    "ModelCapabilities": ModelCapabilities,
    "ModelChoice": app_settings.ModelChoice,
    "ModelProfile": ModelProfile,
    "ModelRef": ModelRef,
    "ProviderInstance": ProviderInstance,
    "OpenRegion": OpenRegion,
    "OutlineNode": OutlineNode,
    "PageInfo": paging.PageInfo,
    "ProbeSimulation": showing.ProbeSimulation,
    "RetrievalCandidate": showing.RetrievalCandidate,
    "RetrievalFloorRow": showing.RetrievalFloorRow,
    "RetrievalKeywordRow": showing.RetrievalKeywordRow,
    "RetrievalPool": showing.RetrievalPool,
    "RetrievalPreview": showing.RetrievalPreview,
    "RetrievalQuery": showing.RetrievalQuery,
    "RetrievalRedundancy": Redundancy,
    "SimulatedPool": showing.SimulatedPool,
    "RehearsalDelta": RehearsalDelta,
    "RehearsalFinished": RehearsalFinished,
    "RehearsalTurn": RehearsalTurn,
    "RelationshipView": RelationshipView,
    "RenderedTime": RenderedTime,
    "ResolvedAt": ResolvedAt,
    "CopiedRows": deltas.CopiedRows,
    "ReversedAction": deltas.ReversedAction,
    "ReversedChange": deltas.ReversedChange,
    "RollbackWarning": deltas.RollbackWarning,
    "RowChange": RowChange,
    "RowDifference": comparing.RowDifference,
    "RunContext": RunContext,
    "RunError": RunError,
    "RunProgress": RunProgress,
    "Stackable": Stackable,
    "StoryDefinition": StoryDefinition,
    "StoryStyle": StoryStyle,
    "TimePart": TimePart,
    "TimeWarning": TimeWarning,
    "TreeOutline": TreeOutline,
    "TranslationCoverage": translations.Coverage,
    "UntranslatedText": translations.UntranslatedText,
    "UserError": UserError,
    "VariableFeature": VariableFeature,
    "Viewer": ViewerRow,
    "Visual": Visual,
    "UpsertCounts": worlds.Counts,
    "WorldCentralNode": WorldCentralNode,
    "WorldDuplicate": WorldDuplicate,
    "WorldGraph": WorldGraph,
    "WorldGraphEdge": Edge,
    "WorldGraphNode": WorldGraphNode,
    "WorldMergeChange": worlds.MergeChange,
    "WorldPath": WorldPath,
    "WorldCentrality": WorldCentrality,
    "WorldCommunities": Communities,
    "WorldCommunity": Community,
    # The row itself, so that a payload that is kept for a repeat holds its id alone.
    "VoiceAuthorization": VoiceProfile,
}


def class_of_values(name: str) -> type[Any]:
    """The class of the values that a GraphQL type shows; fails where nobody has said it."""
    definition = definition_of(name)
    rows = table_of_kind(name)
    if rows is not None:
        return rows
    if is_row_type(definition.origin):
        assert name in table_classes(), f"no table class is called {name}"
        return table_classes()[name]
    if issubclass(definition.origin, RunEvent):
        return Event
    if is_connection(name):
        return paging.Page
    if definition.concrete_of is not None and definition.concrete_of.name == "Edge":
        return paging.Edge
    assert name in VALUES, f"whose values does {name} show? Add the class to VALUES"
    return VALUES[name]


def is_row_type(origin: type[Any]) -> bool:
    """Whether `row_type` made the type, which then bears its row class's name."""
    test = getattr(origin, "is_type_of", None)
    return getattr(test, "__qualname__", "").startswith("row_type.")


def attributes_of(value: type[Any]) -> set[str]:
    """Columns or fields of a class, and its properties."""
    names = {name for name, each in inspect.getmembers(value) if isinstance(each, property)}
    if issubclass(value, Table):
        record = record_class(value)
        names = {name for name in names if isinstance(getattr(record, name, None), property)}
        return names | {attribute.key for attribute in cast("Any", mapped(value)).column_attrs}
    if is_dataclass(value):
        return names | {each.name for each in dataclass_fields(value)}
    return names | set(getattr(value, "__annotations__", {}))


def absent(shown: Iterable[str], value: type[Any]) -> list[str]:
    return sorted(set(shown) - attributes_of(value))


def is_value_type(name: str) -> bool:
    is_object = isinstance(types()[name], GraphQLObjectType)
    return is_object and name not in ROOTS and not issubclass(definition_of(name).origin, Payload)


VALUE_TYPES = sorted(name for name in types() if is_value_type(name))
MUTATIONS = [each for each in fields() if each.owner == "Mutation"]


@pytest.mark.parametrize("name", VALUE_TYPES)
def test_an_attribute_of_a_type_is_one_of_its_value(name: str) -> None:
    shown = [each.python_name for each in fields() if each.owner == name and each.is_attribute]
    assert absent(shown, class_of_values(name)) == []


def test_an_attribute_that_is_not_there_is_noticed() -> None:
    assert absent(["id", "usage", "error", "usage_json", "colour"], Run) == ["colour", "usage_json"]
    assert absent(["seq", "text", "colour"], Event) == ["colour"]
    assert absent(["roles", "colour"], ViewerRow) == ["colour"]


def answered(resolver: Any) -> set[str]:
    """The names under which a mutation's resolver answers."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(resolver)))
    return {
        keyword.arg or "**"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "answer"
        for keyword in node.keywords
    }


def resolver_of(mutation: Field) -> Any:
    change = mutation.declared.base_resolver.wrapped_func
    return inspect.getclosurevars(change).nonlocals["resolver"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_mutation_answers_every_field_of_its_payload(mutation: Field) -> None:
    promised = {each.python_name for each in fields() if each.owner == mutation.leads_to} - {
        "errors"
    }
    assert answered(resolver_of(mutation)) == promised


def test_a_mistyped_answer_is_noticed() -> None:
    async def create(context: Any, input: Any) -> Any:
        async with context.writing() as change:
            return change.answer(treee=input, run=None)

    assert answered(create) == {"treee", "run"}
