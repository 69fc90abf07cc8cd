"""Fills a database with mirror trees: one character of one user, trees of a thousand nodes.

The same number and seed give the same trees, except for the ids of user and character.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
from ulid import ULID

from bench import prose
from db.engine import Database
from db.enums import CitationTarget, NodeStatus, NodeType, Origin, Realm, TreeStatus
from db.reading import prepare_connection
from services import accounts, characters
from services.access import Viewer

NODES_PER_TREE = 1_000
CITATIONS_PER_ANSWER = 2
MODEL = "generated"
IDENTITY = {
    "name": "Odile Varn",
    "description": "Odile Varn keeps a lighthouse that exists only in measurements.",
}

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_TREES_PER_COPY = 10
# How often a question goes on from an older answer instead of the newest one.
_BRANCHING = 0.2

_TREE_COLUMNS = (
    "id", "character_id", "topic", "realm", "status", "working_entry_node_id", "created_at",
)  # fmt: skip
_NODE_COLUMNS = (
    "id", "tree_id", "parent_node_id", "node_type", "status", "realm", "content", "model",
    "created_at",
)  # fmt: skip
_CITATION_COLUMNS = (
    "id", "node_id", "target_kind", "target_json", "quote", "source_id", "source_version",
    "created_at",
)  # fmt: skip

Row = tuple[Any, ...]


@dataclass(slots=True)
class Rows:
    """Rows of some trees, ready to be copied."""

    trees: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)
    citations: list[Row] = field(default_factory=list)


class _Clock:
    """Moments that rise by a second or so, with microseconds, and ids that sort like them."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._now = _BEGINNING

    def tick(self) -> datetime:
        self._now += timedelta(microseconds=self._draw.randrange(1, 2_000_000))
        return self._now

    def id(self, prefix: str) -> str:
        milliseconds = int(self._now.timestamp() * 1000)
        return f"{prefix}_{ULID.from_int(milliseconds << 80 | self._draw.getrandbits(80))}"


def generate(nodes: int, seed: int, character_id: str) -> Iterator[Rows]:
    """The rows, a few trees at a time."""
    draw = random.Random(seed)
    clock = _Clock(draw)
    rows = Rows()
    for begin in range(0, nodes, NODES_PER_TREE):
        _add_tree(rows, draw, clock, character_id, min(NODES_PER_TREE, nodes - begin))
        if len(rows.trees) == _TREES_PER_COPY:
            yield rows
            rows = Rows()
    if rows.trees:
        yield rows


def _add_tree(
    rows: Rows, draw: random.Random, clock: _Clock, character_id: str, nodes: int
) -> None:
    created_at = clock.tick()
    tree_id = clock.id("tree")
    # (id, content) of the questions and answers so far.
    questions: list[tuple[str, str]] = []
    answers: list[tuple[str, str]] = []
    parent: tuple[str, str] | None
    topic = prose.topic(draw)
    for place in range(nodes):
        at = clock.tick()
        node_id = clock.id("node")
        is_question = place % 2 == 0
        if is_question:
            is_branch = draw.random() < _BRANCHING
            parent = None
            if answers:
                parent = draw.choice(answers) if is_branch else answers[-1]
            content = prose.question(draw)
            questions.append((node_id, content))
        else:
            parent = questions[-1]
            content = prose.answer(draw)
            for _ in range(CITATIONS_PER_ANSWER):
                source = draw.choice(answers[-20:] or questions)
                rows.citations.append(_citation(draw, clock, node_id, source))
            answers.append((node_id, content))
        rows.nodes.append(
            (
                node_id,
                tree_id,
                parent[0] if parent else None,
                NodeType.QUESTION if is_question else NodeType.CANDIDATE_ANSWER,
                NodeStatus.SOLIDIFIED,
                Realm.REALITY,
                content,
                None if is_question else MODEL,
                at,
            )
        )
    entry = answers[-1][0] if answers else None
    rows.trees.append(
        (tree_id, character_id, topic, Realm.REALITY, TreeStatus.ACTIVE, entry, created_at)
    )


def _citation(draw: random.Random, clock: _Clock, node_id: str, source: tuple[str, str]) -> Row:
    source_id, text = source
    start = draw.randrange(max(len(text) - 60, 1))
    end = min(start + draw.randint(30, 60), len(text))
    return (
        clock.id("cite"),
        node_id,
        CitationTarget.TEXT_RANGE,
        {"start": start, "end": end},
        text[start:end],
        source_id,
        1,
        clock.tick(),
    )


async def create_character(database: Database, identity: dict[str, Any]) -> str:
    """The id of a new character of the local user."""
    # No server may have been here yet to make the keys, one of which signs what a character is.
    await database.load_secrets()
    async with database.writing() as writing:
        user = await accounts.ensure_user(writing, accounts.LOCAL_USER_NAME)
        viewer = Viewer(user.id)
        embryo = await characters.create_embryo(writing, viewer, Origin.ORIGINAL, identity)
        points = [key for key, _ in characters.CHECKLIST]
        character = await characters.activate_embryo(writing, viewer, embryo.id, points)
    return character.id


async def fill(
    database: Database,
    nodes: int,
    *,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> str:
    """Put `nodes` nodes into the database for the local user; the id of their new character.

    Each seed can be used once in a database. `progress` hears how many nodes are in.
    """
    character_id = await create_character(database, IDENTITY)
    connection: Any = await asyncpg.connect(database.dsn)
    try:
        await prepare_connection(connection)
        done = 0
        for rows in generate(nodes, seed, character_id):
            async with connection.transaction():
                for table, columns, records in (
                    ("mirror_trees", _TREE_COLUMNS, rows.trees),
                    ("tree_nodes", _NODE_COLUMNS, rows.nodes),
                    ("citations", _CITATION_COLUMNS, rows.citations),
                ):
                    await connection.copy_records_to_table(table, columns=columns, records=records)
            done += len(rows.nodes)
            progress(done)
        # So that no vacuum or change of plan falls into what is measured later.
        await connection.execute("VACUUM (ANALYZE) mirror_trees, tree_nodes, citations")
    finally:
        await connection.close()
    return character_id


async def unused_seed(database: Database) -> int:
    """A seed that this database has not seen: it depends on how many trees there are."""
    connection: Any = await asyncpg.connect(database.dsn)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM mirror_trees"))
    finally:
        await connection.close()
