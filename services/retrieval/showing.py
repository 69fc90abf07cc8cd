"""What a retrieval and a simulation look like to clients: the same, with the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import DropReason, FloorReason, ProbeFailure, QuerySlot, SearchKind
from db.reading import Reading
from db.tables import Branch, BranchRow, Chapter, Happening, Lore, ProbeCapture, StoryEntity, Thread
from services.access import Viewer, require_row, rows_by_ids
from services.retrieval.ranking import Ranked
from services.retrieval.retrieving import Redundancy, Retrieved
from services.retrieval.simulating import Simulation

TABLES: dict[SearchKind, type[BranchRow]] = {
    SearchKind.ENTITY: StoryEntity,
    SearchKind.LORE: Lore,
    SearchKind.THREAD: Thread,
    SearchKind.CHAPTER: Chapter,
    SearchKind.HAPPENING: Happening,
}
# The most rows of a list; sums are over all of them.
MAX_SHOWN = 200

Named = tuple[SearchKind, str]


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """A text that rows were compared with."""

    slot: QuerySlot
    text: str
    weight: float
    tokens: int
    has_vector: bool


@dataclass(frozen=True, slots=True)
class RetrievalFloorRow:
    """A row that is there whatever is asked for."""

    kind: SearchKind
    row_id: str
    node: Any
    name: str
    reason: FloorReason
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class RetrievalKeywordRow:
    """A row that a keyword seated."""

    kind: SearchKind
    row_id: str
    node: Any
    name: str
    depth: int
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class RetrievalCandidate:
    """A row of a pool, its score with all parts, and what became of it."""

    row_id: str
    node: Any
    name: str
    text: str | None
    tokens: int | None
    similarities: list[float | None]
    blend: float
    recency: float
    pin: float
    age: int
    keyword_bonus: float
    is_in_seated_chapter: bool
    is_common: bool
    is_revived: bool
    score: float
    mmr: float | None
    rank: int | None
    drop: DropReason


@dataclass(frozen=True, slots=True)
class RetrievalPool:
    """The rows of one kind."""

    kind: SearchKind
    budget: int
    injected_tokens: int
    tokens_used: int
    pool_size: int
    stale_count: int
    seated: list[RetrievalCandidate]
    dropped: list[RetrievalCandidate]


@dataclass(frozen=True, slots=True)
class RetrievalPreview:
    """What a prompt would carry, and why."""

    branch: Branch
    queries: list[RetrievalQuery]
    buffer_entries: int
    buffer_tokens: int
    floor: list[RetrievalFloorRow]
    floor_tokens: int
    injected: list[RetrievalKeywordRow]
    pools: list[RetrievalPool]
    redundancy: Sequence[Redundancy]
    model_id: str | None
    failure: ProbeFailure | None
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class SimulatedPool:
    """The rows of one kind, as they would have been chosen."""

    kind: SearchKind
    budget: int
    injected_tokens: int
    tokens_used: int
    seated: list[RetrievalCandidate]
    dropped: list[RetrievalCandidate]
    added: list[RetrievalCandidate]
    removed: list[RetrievalCandidate]


@dataclass(frozen=True, slots=True)
class ProbeSimulation:
    """What a capture would have chosen."""

    is_same: bool
    pools: list[SimulatedPool]


async def _rows(
    reading: Reading, viewer: Viewer, branch_id: str, named: Iterable[Named]
) -> dict[Named, Any]:
    wanted: dict[SearchKind, list[str]] = {kind: [] for kind in TABLES}
    for kind, row_id in named:
        wanted[kind].append(row_id)
    found: dict[Named, Any] = {}
    for kind, ids in wanted.items():
        names = [f"{branch_id}:{each}" for each in dict.fromkeys(ids)]
        for row in await rows_by_ids(reading, viewer, TABLES[kind], names):
            if row is not None:
                found[kind, row.row_id] = row
    return found


def _shown(ranked: Iterable[Ranked], rows: Mapping[Named, Any]) -> list[RetrievalCandidate]:
    return [
        RetrievalCandidate(
            each.candidate.id,
            rows.get((each.candidate.kind, each.candidate.id)),
            each.candidate.name,
            each.candidate.text if each.rank is not None else None,
            each.tokens,
            list(each.candidate.similarities),
            each.score.blend,
            each.score.recency,
            each.score.pin,
            each.score.age,
            each.score.keyword_bonus,
            each.candidate.is_in_seated_chapter,
            each.candidate.is_common,
            each.score.is_revived,
            each.score.value,
            each.mmr,
            each.rank,
            each.drop,
        )
        for each in list(ranked)[:MAX_SHOWN]
    ]


async def show_retrieved(
    reading: Reading, viewer: Viewer, retrieved: Retrieved
) -> RetrievalPreview:
    """A retrieval with its rows."""
    world = retrieved.world
    named: list[Named] = [(each.kind, each.id) for each in retrieved.injected]
    named += [
        (pool.kind, each.candidate.id)
        for pool in retrieved.pools
        for each in (*pool.seated[:MAX_SHOWN], *pool.dropped[:MAX_SHOWN])
    ]
    rows = await _rows(reading, viewer, world.branch.id, named)
    return RetrievalPreview(
        world.branch,
        [
            RetrievalQuery(
                each.query.slot, each.query.text, each.weight, each.tokens, each.has_vector
            )
            for each in retrieved.queries
        ],
        len(world.buffer),
        retrieved.buffer_tokens,
        [
            RetrievalFloorRow(
                each.kind, each.id, each.row, each.name, each.reason, each.text, each.tokens
            )
            for each in retrieved.floor[:MAX_SHOWN]
        ],
        sum(each.tokens for each in retrieved.floor),
        [
            RetrievalKeywordRow(
                each.kind,
                each.id,
                rows.get((each.kind, each.id)),
                each.name,
                each.depth,
                each.text,
                each.tokens,
            )
            for each in retrieved.injected[:MAX_SHOWN]
        ],
        [
            RetrievalPool(
                pool.kind,
                pool.budget,
                pool.injected_tokens,
                pool.tokens_used,
                len(pool.ranked),
                pool.stale_count,
                _shown(pool.seated, rows),
                _shown(pool.dropped, rows),
            )
            for pool in retrieved.pools
        ],
        retrieved.redundancy,
        retrieved.model_id,
        retrieved.failure,
        retrieved.warnings,
    )


async def show_simulation(
    reading: Reading, viewer: Viewer, capture: ProbeCapture, simulation: Simulation
) -> ProbeSimulation:
    """A simulation with those of its rows that still are there. Raises NotFound."""
    branch = await require_row(reading, viewer, Branch, capture.branch_id, "captureId")
    named = [(pool.kind, each.candidate.id) for pool in simulation.pools for each in pool.ranked]
    rows = await _rows(reading, viewer, branch.id, named)
    return ProbeSimulation(
        simulation.is_same,
        [
            SimulatedPool(
                pool.kind,
                pool.budget,
                pool.injected_tokens,
                pool.tokens_used,
                _shown(pool.seated, rows),
                _shown(pool.dropped, rows),
                _shown(pool.added, rows),
                _shown(pool.removed, rows),
            )
            for pool in simulation.pools
        ],
    )
