"""Graphs of many shapes as the rows of branches and worlds, put into a database at once.

Nodes are numbers here; `names` has their ids. The same graph and seed give the same rows, except
for the ids of user, story, branch and world.
"""

from __future__ import annotations

import itertools
import random
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ulid import ULID

from bench.stage import Stage
from db.enums import EdgeKind, EntityKind, EntityStatus, InjectionMode, StoryStatus, WorldEntityKind
from db.tables import Branch, Story, World
from services.shapes import EMPTY_STATES

HAPPENING = "happening"
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_PREFIXES: dict[str, str] = {
    EntityKind.CHARACTER: "char",
    EntityKind.LOCATION: "loc",
    EntityKind.ITEM: "item",
    EntityKind.FACTION: "fact",
    HAPPENING: "hap",
}
# Of a hundred nodes.
_MIXTURE: dict[str, int] = {
    EntityKind.CHARACTER: 60,
    HAPPENING: 28,
    EntityKind.LOCATION: 6,
    EntityKind.ITEM: 4,
    EntityKind.FACTION: 2,
}
# What may tie a node of one kind to one of another.
_TIES: dict[tuple[str, str], Sequence[EdgeKind]] = {
    (EntityKind.CHARACTER, EntityKind.CHARACTER): (EdgeKind.RELATIONSHIP,),
    (EntityKind.CHARACTER, HAPPENING): (EdgeKind.AWARENESS, EdgeKind.INVOLVEMENT),
    (EntityKind.LOCATION, HAPPENING): (EdgeKind.INVOLVEMENT,),
    (EntityKind.ITEM, HAPPENING): (EdgeKind.INVOLVEMENT,),
    (EntityKind.FACTION, HAPPENING): (EdgeKind.INVOLVEMENT,),
    (EntityKind.CHARACTER, EntityKind.LOCATION): (EdgeKind.POSITION,),
    (EntityKind.CHARACTER, EntityKind.ITEM): (EdgeKind.POSSESSION,),
    (EntityKind.CHARACTER, EntityKind.FACTION): (EdgeKind.MEMBERSHIP,),
    (EntityKind.ITEM, EntityKind.LOCATION): (EdgeKind.POSITION,),
    (EntityKind.LOCATION, EntityKind.LOCATION): (EdgeKind.CONTAINMENT,),
}
# Of these a node has one at most, under this key of its state.
_KEYS: dict[tuple[str, EdgeKind], str] = {
    (EntityKind.CHARACTER, EdgeKind.POSITION): "current_location_id",
    (EntityKind.CHARACTER, EdgeKind.MEMBERSHIP): "faction_id",
    (EntityKind.ITEM, EdgeKind.POSITION): "at_location_id",
    (EntityKind.LOCATION, EdgeKind.CONTAINMENT): "parent_location_id",
}


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph: the kind of each node, and edges from one node to another."""

    kinds: list[str]
    edges: list[tuple[EdgeKind, int, int]]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The two ends of each edge."""
        return [(source, target) for _, source, target in self.edges]


@dataclass(frozen=True, slots=True)
class Put:
    """A graph that is in the database: the id of its branch or world, and of each of its nodes."""

    id: str
    names: list[str]


def characters(count: int, edges: Sequence[Sequence[int]]) -> Graph:
    """Characters who see something in each other; of pairs that are given twice one is left."""
    pairs = dict.fromkeys((min(one, other), max(one, other)) for one, other, *_ in edges)
    ties = [(EdgeKind.RELATIONSHIP, *pair) for pair in pairs]
    return Graph([EntityKind.CHARACTER] * count, ties)


def cliques(groups: int, size: int) -> list[tuple[int, int]]:
    """Groups of nodes that are all tied to each other, in a ring."""
    within = [
        (group * size + one, group * size + other)
        for group in range(groups)
        for one, other in itertools.combinations(range(size), 2)
    ]
    around = [(group * size, (group + 1) % groups * size + 1) for group in range(groups)]
    return within + around


def strewn(count: int, edges: int) -> list[tuple[int, int]]:
    """So many pairs of nodes by chance, none of them twice."""
    chance = random.Random(4)
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < edges:
        one, other = chance.sample(range(count), 2)
        pairs[min(one, other), max(one, other)] = None
    return list(pairs)


def mixed(count: int, each: int) -> Graph:
    """A graph with everything that can tie rows of a branch: `each` edges of each node to older
    ones, rather to those that have many.
    """
    chance = random.Random(2)
    kinds = chance.choices([*_MIXTURE], [*_MIXTURE.values()], k=count)
    kinds[0] = EntityKind.CHARACTER
    ends = [0]
    ties: dict[tuple[EdgeKind, int, int], None] = {}
    taken: set[tuple[EdgeKind, int]] = set()
    for node in range(1, count):
        for _ in range(min(node, each)):
            # Not every two can be tied, and not every tie can be there twice.
            for _ in range(50):
                tie = _tie(chance, kinds, node, chance.choice(ends))
                if tie is None or tie in ties:
                    continue
                kind, source, _ = tie
                if (kinds[source], kind) in _KEYS:
                    if (kind, source) in taken:
                        continue
                    taken.add((kind, source))
                ties[tie] = None
                ends += tie[1:]
                break
    return Graph(kinds, list(ties))


def _tie(
    chance: random.Random, kinds: Sequence[str], one: int, other: int
) -> tuple[EdgeKind, int, int] | None:
    for source, target in ((one, other), (other, one)):
        possible = _TIES.get((kinds[source], kinds[target]))
        if source != target and possible is not None:
            return chance.choice(possible), source, target
    return None


class _Ids:
    """Ids that rise with the moments at which they are made."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._count = 0

    @property
    def now(self) -> datetime:
        return _BEGINNING + timedelta(milliseconds=self._count)

    def _next(self) -> int:
        self._count += 1
        return int(self.now.timestamp() * 1000)

    def of_branch(self, prefix: str) -> str:
        """With a UUIDv7."""
        drawn = self._draw.getrandbits(62)
        return f"{prefix}_{uuid.UUID(int=self._next() << 80 | 7 << 76 | 2 << 62 | drawn)}"

    def of_world(self, prefix: str) -> str:
        """With a ULID."""
        return f"{prefix}_{ULID.from_int(self._next() << 80 | self._draw.getrandbits(80))}"


@dataclass(slots=True)
class _Rows:
    """Rows of one table, with values for the same columns."""

    columns: Sequence[str]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    async def put(self, connection: Any, table: str) -> None:
        await connection.copy_records_to_table(table, records=self.rows, columns=self.columns)
        await connection.execute(f"VACUUM ANALYZE {table}")


def _empty_state(kind: str) -> dict[str, Any]:
    return {} if kind == HAPPENING else dict(EMPTY_STATES[EntityKind(kind)])


async def put_branch(stage: Stage, graph: Graph, seed: int = 0) -> Put:
    """A branch of a new story of the viewer's, with this graph and nothing else."""
    async with stage.database.writing() as writing:
        story = await writing.insert(
            Story,
            owner_user_id=stage.viewer.user_id,
            title="A graph",
            status=StoryStatus.ACTIVE,
            definition_json={},
            settings={},
        )
        branch = await writing.insert(
            Branch, story_id=story.id, name="Main", classifier_status={"state": "idle"}
        )
    ids = _Ids(seed)
    names = [ids.of_branch(_PREFIXES[kind]) for kind in graph.kinds]
    states = [_empty_state(kind) for kind in graph.kinds]
    links = {kind: _Rows(columns) for kind, (_, _, columns) in _LINKS.items()}
    for kind, source, target in graph.edges:
        key = _KEYS.get((graph.kinds[source], kind))
        if key is not None:
            states[source][key] = names[target]
        elif kind is EdgeKind.POSSESSION:
            states[source]["inventory"] = [*states[source]["inventory"], names[target]]
        else:
            source_id, target_id = names[source], names[target]
            row: tuple[Any, ...] = (source_id, target_id)
            if kind is EdgeKind.RELATIONSHIP:
                # One row for the two, with the view of each.
                row = (source_id, target_id, "sees", None)
                if source_id > target_id:
                    row = (target_id, source_id, None, "sees")
            links[kind].rows.append((branch.id, ids.of_branch(_LINKS[kind][1]), *row))
    entities = _Rows(
        [
            "branch_id",
            "id",
            "kind",
            "name",
            "description",
            "status",
            "injection_mode",
            "state",
            "created_at",
        ]
    )
    happenings = _Rows(["branch_id", "id", "title", "description", "created_at"])
    for number, (name, is_what) in enumerate(zip(names, graph.kinds, strict=True)):
        told = f"{is_what} {number}".capitalize()
        at = _BEGINNING + timedelta(seconds=number)
        if is_what == HAPPENING:
            happenings.rows.append((branch.id, name, told, _PROSE, at))
        else:
            of_entity = (EntityStatus.ACTIVE, InjectionMode.AUTO, states[number], at)
            entities.rows.append((branch.id, name, is_what, told, _PROSE, *of_entity))
    await entities.put(stage.bare, "entities")
    await happenings.put(stage.bare, "happenings")
    for link, rows in links.items():
        await rows.put(stage.bare, _LINKS[link][0])
    return Put(branch.id, [f"{branch.id}:{each}" for each in names])


_PROSE = (
    "What people say of it, which is about as long as such a thing is when nobody hurries. " * 3
)
# Where edges are that are rows: the table, the prefix of its ids, its columns.
_LINKS: dict[EdgeKind, tuple[str, str, Sequence[str]]] = {
    EdgeKind.RELATIONSHIP: (
        "character_relationships",
        "rel",
        ["branch_id", "id", "a_id", "b_id", "kind", "inverse_kind"],
    ),
    EdgeKind.INVOLVEMENT: (
        "happening_involvements",
        "hinv",
        ["branch_id", "id", "entity_id", "happening_id"],
    ),
    EdgeKind.AWARENESS: (
        "happening_awareness",
        "haw",
        ["branch_id", "id", "character_id", "happening_id"],
    ),
}


async def put_world(
    stage: Stage,
    count: int,
    edges: Sequence[Sequence[int]],
    weight: Callable[[int], float] = lambda _: 1.0,
    interval: Callable[[int], tuple[int | None, int | None]] = lambda _: (None, None),
    seed: int = 0,
) -> Put:
    """A world of the viewer's with so many entities and these relations, but for those from an
    entity to itself. Each has the weight that its place says, and holds for the time that it says.
    """
    async with stage.database.writing() as writing:
        owner = stage.viewer.user_id
        world = await writing.insert(World, owner_user_id=owner, name="A graph")
    ids = _Ids(seed)
    names = [ids.of_world("went") for _ in range(count)]
    kinds = list(WorldEntityKind)
    entities = _Rows(["id", "world_id", "kind", "name", "folded_name", "description", "created_at"])
    for number, name in enumerate(names):
        told = f"Entity {number}"
        at = _BEGINNING + timedelta(seconds=number)
        kind = kinds[number % len(kinds)]
        entities.rows.append((name, world.id, kind, told, told.casefold(), _PROSE, at))
    relations = _Rows(
        [
            "id",
            "world_id",
            "source_id",
            "target_id",
            "kind",
            "weight",
            "valid_from",
            "valid_until",
            "created_at",
        ]
    )
    times: Counter[tuple[int, int]] = Counter()
    for place, (one, other, *_) in enumerate(edges):
        if one == other:
            continue
        # The same two may be tied more than once.
        times[one, other] += 1
        tie = f"kind {times[one, other]}"
        ends = (names[one], names[other])
        at = _BEGINNING + timedelta(seconds=place)
        row = (ids.of_world("wrel"), world.id, *ends, tie, weight(place), *interval(place), at)
        relations.rows.append(row)
    await entities.put(stage.bare, "world_entities")
    await relations.put(stage.bare, "world_relations")
    return Put(world.id, names)
