"""A database in which every type has enough rows to be somebody's parents, and eyes on its
statements.

A new table joins in `make_one_of_each`, which is called MOST times; a new type that is no table's
row joins in OTHER_PARENTS.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from types import SimpleNamespace
from typing import Any, cast

from obstore.store import MemoryStore
from sqlalchemy import ColumnElement, Integer, select, true

from db.engine import Database
from db.enums import (
    Alikeness,
    CitationTarget,
    EntityKind,
    ExportFormat,
    FormKind,
    NodeStatus,
    NodeType,
    Origin,
    PetitionDecision,
    PetitionKind,
    PetitionStatus,
    Realm,
    RunEventType,
    RunKind,
    RunStatus,
    TranslationTarget,
    Visibility,
    VoiceSource,
)
from db.paging import Page, PageRequest
from db.reading import Reading, Writing, columns, compile_statement, param, record_class
from db.settings import Settings
from db.tables import (
    Branch,
    Character,
    CharacterRelationship,
    Lore,
    Petition,
    RunError,
    RunEvent,
    Story,
    Table,
    TreeNode,
    WorldRelation,
)
from resolvers.accounts import ViewerRow
from resolvers.context import Context, Engine
from resolvers.entities import RelationshipView
from resolvers.searching import LibraryResult, SearchResult
from resolvers.worlds import WorldDuplicate
from schema import runs as run_types
from schema.base import Payload
from services import (
    accounts,
    calendars,
    characters,
    decisions,
    exports,
    mirrors,
    runs,
    transfers,
    translating,
    translations,
)
from services.access import Viewer, visible
from services.assets import FileStore
from services.comparing import BranchDiff
from services.graphs import BranchSource, Community, Edge, Node, Wanted, whole
from services.hub import Hub
from services.past import Moment
from services.providers import ProviderSettings, make_provider
from services.rehearsing import Rehearsals
from services.runs import Event, RunWorker, StreamOpening, records
from tests.architecture.declared import (
    ROOTS,
    Field,
    definition_of,
    fields,
    is_connection,
    kind_of,
    relations,
    table_classes,
    table_of_kind,
)
from tests.architecture.world_assets import make_assets
from tests.architecture.world_entities import MIRA, ODO, make_entities
from tests.architecture.world_entries import make_entries
from tests.architecture.world_plot import make_plot
from tests.architecture.world_retrieval import make_captures
from tests.architecture.world_story import make_story
from tests.architecture.world_worlds import ENDS, make_worlds
from tests.factories import make_answer, make_character, make_tree

# As many parents as the largest call of a batch function in the tests has.
MOST = 100
# Rows of a table that are looked through for parents that have something.
SEARCHED = 2000
HOLDER = "a server of the tests"


class WatchedConnection:
    """Passes everything on to a connection and notes each statement."""

    def __init__(self, connection: Any, seen: list[str]) -> None:
        self._connection = connection
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)

        def call(statement: str, *args: Any, **kwargs: Any) -> Any:
            self._seen.append(statement)
            return method(statement, *args, **kwargs)

        return call


class WatchedDatabase:
    """Lends reading handles whose statements are noted."""

    def __init__(self, database: Database, seen: list[str]) -> None:
        self._database = database
        self._seen = seen

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Reading]:
        async with self._database.reading() as reading:
            yield Reading(WatchedConnection(reading._connection, self._seen), reading.cursors)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Writing]:
        """For what follows from texts and is made when it is first needed; noted as well."""
        async with self._database.writing() as writing:
            yield Writing(WatchedConnection(writing._connection, self._seen), writing.cursors)


@dataclass(frozen=True)
class World:
    """The database, the user to whom everything in it belongs, and one who has nothing."""

    database: Database
    owner: Viewer
    stranger: Viewer

    def context(self, seen: list[str] | None = None) -> Context:
        """An operation of the owner's with fresh loaders; its statements are added to `seen`."""
        watched = cast("Database", WatchedDatabase(self.database, [] if seen is None else seen))
        hub = Hub()
        provider = make_provider(ProviderSettings(provider="demo"))
        worker = RunWorker(
            self.database,
            hub,
            provider,
            holder=HOLDER,
            lease_seconds=60,
            concurrent_runs=1,
        )
        rehearsals = Rehearsals(self.database, provider, most=1, budget=8_192)
        nowhere = FileStore(MemoryStore(), "world", None)
        return Context(Engine(Settings(), watched, hub, worker, rehearsals, nowhere), self.owner)

    async def ask(
        self, batch: Any, parents: Sequence[Any], arguments: dict[str, Any] | None = None
    ) -> tuple[list[Any], list[str]]:
        """The results of a batch function called once, and the statements that it took."""
        seen: list[str] = []
        results = await batch(self.context(seen), parents, **(arguments or {}))
        return list(results), seen

    async def rows(self, table: type[Table], viewer: Viewer) -> list[Any]:
        """The rows that a viewer may see, at most SEARCHED."""
        return await self._select(table, visible(table), viewer)

    async def rows_of_kind(self, table: Any, kind: str) -> list[Any]:
        """Those of the owner's that are of a kind."""
        return await self._select(table, visible(table) & (table.kind == kind), self.owner)

    async def all_rows(self, table: type[Table]) -> list[Any]:
        """The rows that there are, at most SEARCHED."""
        return await self._select(table, true(), self.owner)

    async def _select(
        self, table: type[Table], condition: ColumnElement[bool], viewer: Viewer
    ) -> list[Any]:
        wanted = select(*columns(table)).where(condition).limit(param("most", Integer()))
        statement = compile_statement(wanted, record_class(table))
        async with self.database.reading() as reading:
            return await reading.all(
                statement, viewer=viewer.user_id, sees_all_acts=False, most=SEARCHED
            )


async def build_world(database: Database) -> World:
    """Make everything."""
    async with database.writing() as writing:
        owner = Viewer((await accounts.ensure_user(writing, "owner of a world")).id)
        stranger = Viewer((await accounts.ensure_user(writing, "stranger to it")).id)
        for number in range(MOST):
            await make_one_of_each(writing, owner, number)
    return World(database, owner, stranger)


async def make_one_of_each(writing: Writing, owner: Viewer, number: int) -> None:
    """One of each thing, each of them told apart from those of other calls."""
    branch = await make_story(writing, owner, number)
    await make_plot(writing, owner, number, branch.id)
    await make_entries(writing, owner, number, branch.id)
    await make_entities(writing, owner, number, branch.id)
    await make_assets(writing, owner, number, branch.id)
    await make_captures(writing, owner, branch.id)
    await _translated(writing, owner, branch.id)
    await characters.create_embryo(writing, owner, Origin.ORIGINAL, {"name": f"Draft {number}"})
    await calendars.clone_calendar(writing, owner, "stardate")
    await _imported_and_exported(writing, owner, number)
    character = await make_character(writing, owner, f"Character {number}")
    await make_worlds(writing, owner, number, branch, character)
    await _look_and_sound(writing, owner, character, number)
    tree, *_ = [
        await make_tree(writing, owner, character, f"Topic {number}.{index}") for index in range(3)
    ]
    question, run = await runs.ask_tree(
        writing, owner, tree.id, None, f"Question {number}?", provider="demo", model=None
    )
    answer_id = await _answer(writing, run.id, number)
    failing = await runs.regenerate_answer(writing, owner, question.id, provider="demo", model=None)
    await _answer(writing, failing.id, number, RunError("INTERNAL", "It went wrong."))
    for index in range(2 + number % 3):
        await make_answer(writing, question, f"Answer {number}.{index}")
    edited = await writing.insert(
        TreeNode,
        tree_id=tree.id,
        parent_node_id=question.id,
        node_type=NodeType.CANDIDATE_ANSWER,
        status=NodeStatus.SOLIDIFIED,
        realm=question.realm,
        content=f"Answer {number}, edited",
        content_version=2,
        supersedes_node_id=answer_id,
    )
    target = {"start": 0, "end": 8}
    await mirrors.cite(writing, owner, edited.id, CitationTarget.TEXT_RANGE, question.id, target)
    await mirrors.canonize_path(writing, owner, answer_id, Realm.REALITY)
    # The question that is quoted and counts is corrected, and another tree grows from it.
    await mirrors.correct_node(writing, owner, question.id, f"Question {number}, corrected?")
    for index in range(2):
        await mirrors.transplant_tree(writing, owner, answer_id, f"Grown {number}.{index}")
    await _decided(writing, owner, character, run.id)


async def _decided(writing: Writing, owner: Viewer, character: Character, run_id: str) -> None:
    """A petition that was approved, another one for a run, and a version behind the first."""
    petition = await characters.ask_identity_change(
        writing, owner, character.id, {"personality": "calm"}, "To see it.", None
    )
    await decisions.decide_petition(writing, owner, petition.id, PetitionDecision.APPROVE)
    # Nothing asks for the use of a capability yet.
    await writing.insert(
        Petition,
        kind=PetitionKind.TOOL_EXECUTION,
        status=PetitionStatus.PENDING,
        character_id=character.id,
        run_id=run_id,
        requested_by_user_id=owner.signed_in_id,
        brief_json=petition.brief_json,
        arguments={},
        expires_at=petition.expires_at,
    )


async def _imported_and_exported(writing: Writing, owner: Viewer, number: int) -> None:
    """A draft and a character that came from cards with lorebooks, and a file that went out."""
    entries = [{"keys": [f"key {index}"], "content": f"Lore {index}"} for index in range(3)]
    card = {"name": f"Card {number}", "character_book": {"name": "Book", "entries": entries}}
    content = json.dumps(card).encode()
    embryos = [
        await transfers.import_card(
            writing, owner, transfers.read_card(content), file_name=f"{number}.json"
        )
        for _ in range(2)
    ]
    every_point = [key for key, _ in characters.CHECKLIST]
    character = await characters.activate_embryo(writing, owner, embryos[0][1].id, every_point)
    await exports.store_export(
        writing,
        owner,
        character.id,
        ExportFormat.CARD_V3_JSON,
        f"{number}.json",
        "application/json",
        content,
    )


async def _look_and_sound(
    writing: Writing, owner: Viewer, character: Character, number: int
) -> None:
    """An anchor, an official form and a voice that is spoken with."""
    await characters.set_anchor(
        writing,
        owner,
        character.id,
        stable_traits=[f"scar {number}"],
        permissions=[],
        taboos=[],
        variable_range=[],
        expected_version=None,
    )
    form = await characters.propose_form(
        writing,
        owner,
        character.id,
        kind=FormKind.PRIMARY,
        name=f"Form {number}",
        description="Tall.",
        asset_ref=None,
    )
    await characters.settle_form(writing, owner, form.id)
    voice = await characters.add_voice(
        writing,
        owner,
        character.id,
        name=f"Voice {number}",
        source_kind=VoiceSource.CLONED,
        source_ref=None,
    )
    await characters.authorize_clone(
        writing, owner, voice.id, authorization_ref=f"Letter {number}", expires_at=None
    )
    await characters.select_voice(writing, owner, voice.id)


async def _answer(writing: Writing, run_id: str, number: int, error: RunError | None = None) -> str:
    """What a server does with a queued run, without its provider; the answer's id."""
    run = await records.take_next_run(writing, HOLDER, "demo", 60)
    assert run is not None
    assert run.id == run_id
    assert run.node_id is not None
    status = RunStatus.FAILED if error else RunStatus.SUCCEEDED
    payloads: dict[RunEventType, dict[str, Any]] = {
        RunEventType.RUN_STARTED: {},
        RunEventType.PHASE_STARTED: {"name": "answer"},
        RunEventType.TEXT_DELTA: {"channel": "text", "target_id": run.node_id},
        RunEventType.PHASE_FINISHED: {"name": "answer"},
        RunEventType.RUN_WARNING: {"code": "TEST", "message": "A warning."},
        RunEventType.RUN_FINISHED: records.finished_payload(status, run.node_id, error),
    }
    texts = {RunEventType.TEXT_DELTA: "Yes."}
    events = [
        Event(run.id, seq, datetime.now(UTC), kind, Visibility.PUBLIC, payload, texts.get(kind))
        for seq, (kind, payload) in enumerate(payloads.items(), start=1)
    ]
    await records.store_events(writing, HOLDER, run.id, events)
    await records.end_run(
        writing,
        run,
        HOLDER,
        status=status,
        error=error,
        node_status=NodeStatus.SOLIDIFIED,
        content=f"Yes, {number}.",
        reasoning="",
        model="test",
    )
    return run.node_id


async def _translated(writing: Writing, owner: Viewer, branch_id: str) -> None:
    """A run that translates, which failed at something."""
    queued = await translating.start_translation(
        writing, owner, branch_id, "it", provider="demo", model=None
    )
    run = await records.take_next_run(writing, HOLDER, "demo", 60, [RunKind.TRANSLATION])
    assert run is not None
    assert run.id == queued.id
    error = RunError("TIMED_OUT", "It took too long.")
    payloads: dict[RunEventType, dict[str, Any]] = {
        RunEventType.RUN_PROGRESSED: {"done": 0, "total": 3, "missed": 3},
        RunEventType.RUN_FINISHED: records.finished_payload(RunStatus.FAILED, None, error),
    }
    events = [
        Event(run.id, seq, datetime.now(UTC), kind, Visibility.PUBLIC, payload)
        for seq, (kind, payload) in enumerate(payloads.items(), start=1)
    ]
    await records.store_events(writing, HOLDER, run.id, events)
    await records.close_run(writing, run, status=RunStatus.FAILED, model="test", error=error)


async def _viewers(world: World) -> list[Any]:
    return [ViewerRow(world.owner) for _ in range(MOST)]


async def _openings(world: World) -> list[Any]:
    rows = [row for row in await world.rows(RunEvent, world.owner) if row.type == "text_delta"]
    return [StreamOpening(row.run_id, row.seq, row.at) for row in rows]


async def _definitions(world: World) -> list[Any]:
    return [row.definition for row in await world.rows(Story, world.owner)]


async def _diffs(world: World) -> list[Any]:
    """Each fork beside the branch from which it was forked."""
    branches = {row.id: row for row in await world.rows(Branch, world.owner)}
    return [
        BranchDiff(branches[each.parent_branch_id], each)
        for each in branches.values()
        if each.parent_branch_id is not None
    ]


async def _views(world: World) -> list[Any]:
    rows = await world.rows(CharacterRelationship, world.owner)
    return [RelationshipView(row, row.a_id) for row in rows]


async def _untranslated(world: World) -> list[Any]:
    """Texts of each branch, of rows of one kind: each kind takes a statement of its own."""
    branches = [row.id for row in await world.rows(Branch, world.owner)]
    async with world.database.reading() as reading:
        pages = await translations.untranslated_of_branches(
            reading, world.owner, branches, PageRequest(first=9), "de", [TranslationTarget.LORE]
        )
    return [each for page in pages for each in page.nodes]


async def _communities(_world: World) -> list[Any]:
    """Communities of one node each."""
    nodes = [Node(f"node {number}", "character", "Somebody") for number in range(MOST)]
    return [Community(each.id, [each]) for each in nodes]


async def _graph_edges(world: World) -> list[Any]:
    """Those of all branches."""
    branches = [row.id for row in await world.rows(Branch, world.owner)]
    async with world.database.reading() as reading:
        source = BranchSource(reading, world.owner)
        graphs = await whole(source, branches, Wanted(), first=100)
    return [edge for graph in graphs for edge in graph.edges]


async def _world_edges(world: World) -> list[Any]:
    rows = await world.rows(WorldRelation, world.owner)
    return [
        Edge(row.id, row.kind, row.label, row.source_id, row.target_id, row=row) for row in rows
    ]


async def _duplicates(world: World) -> list[Any]:
    rows = await world.rows(WorldRelation, world.owner)
    return [WorldDuplicate(row.source_id, row.target_id, Alikeness.SIMILAR, 0.5) for row in rows]


async def _lore(world: World) -> list[Any]:
    return await world.rows(Lore, world.owner)


# How parents are made of types that are neither rows nor pages nor events.
OTHER_PARENTS: dict[str, Callable[[World], Awaitable[list[Any]]]] = {
    "BranchDiff": _diffs,
    "BranchNode": _lore,
    "Embeddable": _lore,
    "GraphCommunity": _communities,
    "WorldCommunity": _communities,
    "GraphEdge": _graph_edges,
    "RelationshipView": _views,
    "StoryDefinition": _definitions,
    "StreamOpened": _openings,
    "Translatable": _lore,
    "UntranslatedText": _untranslated,
    "Viewer": _viewers,
    "WorldDuplicate": _duplicates,
    "WorldGraphEdge": _world_edges,
}


async def parents_of_type(world: World, name: str) -> list[Any]:
    """Values of a GraphQL type, as many as there are up to SEARCHED."""
    origin = getattr(definition_of(name), "origin", None)
    if name in OTHER_PARENTS:
        return await OTHER_PARENTS[name](world)
    if name in table_classes():
        return await world.rows(table_classes()[name], world.owner)
    table: Any = table_of_kind(name)
    if table is not None:
        return await world.rows_of_kind(table, kind_of(name))
    if inspect.isclass(origin) and issubclass(origin, run_types.RunEvent):
        rows = await world.rows(RunEvent, world.owner)
        events = [Event.from_row(row, "Yes.") for row in rows]
        return [event for event in events if cast("Any", origin).is_type_of(event, None)]
    if is_connection(name):
        return await _pages(world, name)
    assert not issubclass(cast("type", origin), Payload), f"{name}: a payload has no relations"
    raise AssertionError(f"no values of {name} are made: add it to OTHER_PARENTS")


async def _pages(world: World, name: str) -> list[Any]:
    """Pages of one list of many parents, else of a root list, as often as aliases would ask."""
    for relation in relations():
        if relation.leads_to == name:
            parents = await parents_of_type(world, relation.owner)
            return (await world.ask(relation.batch, parents, sample_arguments(relation)))[0]
    (root,) = [each for each in fields() if each.owner in ROOTS and each.leads_to == name]
    return [await root_page(world, root) for _ in range(MOST)]


async def root_page(world: World, root: Field, **arguments: Any) -> Page[Any]:
    """What a root field that is a list answers."""
    resolver = root.declared.base_resolver.wrapped_func
    return cast("Page[Any]", await resolver(SimpleNamespace(context=world.context()), **arguments))


# Values of required arguments that are not enums, by type and field.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Calendar.render": {"world_times": [0, 86_400]},
    "Calendar.worldTimeOf": {"tiers": {"count": 41_001}},
    "Branch.search": {"text": "Mira"},
    "Character.search": {"text": "Topic"},
    "Branch.paths": {"from_": MIRA, "to": ODO},
    "World.paths": {"from_": ENDS[0], "to": ENDS[1]},
    "Branch.translationCoverage": {"language": "fr"},
    "Branch.untranslated": {"language": "fr"},
    **{
        f"{name}.translated": {"field": field, "language": "fr"}
        for field, names in {
            "title": ("Chapter", "Embeddable", "Happening", "Lore", "Thread", "Translatable"),
            "name": ("StoryEntity", *(f"Story{each.title()}" for each in EntityKind)),
            "content": ("StoryEntry",),
            "kind": ("CharacterRelationship",),
        }.items()
        for name in names
    },
}


def sample_arguments(relation: Field) -> dict[str, Any]:
    """A value for each argument that must be given."""
    given = dict(ARGUMENTS.get(str(relation), {}))
    for each in relation.arguments:
        if each.default is inspect.Parameter.empty and each.name not in given:
            is_enum = inspect.isclass(each.annotation) and issubclass(each.annotation, Enum)
            assert is_enum, f"{relation} needs a sample of {each.name}: add it to ARGUMENTS"
            given[each.name] = next(iter(each.annotation))
    return given


def holds_something(result: Any) -> bool:
    """Whether a batch function found anything for a parent; a flag is an answer either way."""
    if isinstance(result, Page):
        return bool(result.nodes)
    if isinstance(result, SearchResult | LibraryResult):
        return bool(result.hits)
    return isinstance(result, bool) or bool(result)


async def parents_with_something(world: World, relation: Field) -> list[Any]:
    """MOST parents for each of which the relation finds something."""
    candidates = await parents_of_type(world, relation.owner)
    if relation.leads_to == "ResolvedAt":
        # Pages of the present have no moment.
        candidates = [
            replace(each, resolved_at=Moment(f"branch {number}", number, None, None))
            for number, each in enumerate(candidates)
        ]
    if str(relation) == "World.paths":
        # The two ends are of one world.
        candidates = [each for each in candidates if each.name == "World 0"] * MOST
    results, _ = await world.ask(relation.batch, candidates, sample_arguments(relation))
    fitting = [
        parent
        for parent, result in zip(candidates, results, strict=True)
        if holds_something(result)
    ]
    assert len(fitting) >= MOST, (
        f"{relation} finds something for {len(fitting)} of {len(candidates)} values of "
        f"{relation.owner}: let tests/architecture/world.py make {MOST} that have something"
    )
    return fitting[:MOST]
