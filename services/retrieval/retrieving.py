"""What a prompt would carry: the floor, what keywords seat, and what is ranked, kind by kind.

Source: retrieval, sections 3 to 8. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from db.enums import (
    EntityStatus,
    EntryKind,
    InjectionMode,
    ProbeFailure,
    QuerySlot,
    SearchKind,
    ThreadStatus,
)
from db.reading import Reading
from services.access import Viewer
from services.retrieval.floor import Seated, floor_of, mode_among
from services.retrieval.gathering import Happenings, World, read_happenings
from services.retrieval.keywords import Keyed, Surface, injected, names_within
from services.retrieval.parameters import INJECTED, RANKED, REDUNDANCY_NEIGHBOURS, Parameters
from services.retrieval.queries import Query, digest_of, query_stack, shares_of
from services.retrieval.ranking import DIGITS, Candidate, Ranked, rank
from services.retrieval.rendering import name_of, price_of, source_lines, text_of
from services.tokens import estimate_tokens

Vector = NDArray[np.float32]
# Rows of these kinds are near a query that a model wrote down.
_FOR_REDUNDANCY = (SearchKind.ENTITY, SearchKind.LORE, SearchKind.THREAD)
_ADMITTED = {
    SearchKind.ENTITY: (EntityStatus.ACTIVE, EntityStatus.STAGED),
    SearchKind.THREAD: (ThreadStatus.PENDING, ThreadStatus.RESOLVED, ThreadStatus.FAILED),
}


class Meaning(Protocol):
    """How near rows are to the queries, by one model: vectors of length 1, of one dimension."""

    @property
    def model_id(self) -> str:
        """The model."""

    @property
    def vectors(self) -> Sequence[Vector | None]:
        """One for each query; None where there is none."""

    async def near(
        self, reading: Reading, branch_id: str, kind: SearchKind, limit: int
    ) -> list[list[tuple[str, float]]]:
        """For each query the nearest rows of a kind, the nearest first, and how near they are."""

    async def vectors_of(
        self, reading: Reading, branch_id: str, ids: Iterable[str]
    ) -> dict[str, Vector]:
        """The vectors of rows that have one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, how much it counts, and whether there is a vector for it."""

    query: Query
    weight: float
    tokens: int
    has_vector: bool


@dataclass(frozen=True, slots=True)
class Redundancy:
    """How much of what is near a direct query is there anyway."""

    text: str
    ratio: float
    counted: int


@dataclass(frozen=True, slots=True)
class Pool:
    """The rows of a kind that were ranked, and what became of the kind's budget."""

    kind: SearchKind
    budget: int
    # Of the budget, by rows that keywords seated.
    injected_tokens: int
    ranked: Sequence[Ranked]
    stale_count: int

    @property
    def seated(self) -> list[Ranked]:
        """Those that come into the prompt, in the order in which they were picked."""
        return [each for each in self.ranked if each.is_seated]

    @property
    def dropped(self) -> list[Ranked]:
        """The others."""
        return [each for each in self.ranked if not each.is_seated]

    @property
    def tokens_used(self) -> int:
        """What its rows take, also those that keywords seated."""
        return self.injected_tokens + sum(each.tokens or 0 for each in self.seated)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a prompt would carry, and why."""

    world: World
    queries: Sequence[Asked]
    buffer_tokens: int
    floor: Sequence[Seated]
    injected: Sequence[Keyed]
    pools: Sequence[Pool]
    redundancy: Sequence[Redundancy]
    model_id: str | None
    failure: ProbeFailure | None
    warnings: Sequence[str]


def action_of(world: World, text: str | None) -> str:
    """What the reader does: the text that is given, or the action at the end of the story."""
    if text is not None:
        return text
    tail = world.buffer[-1] if world.buffer else None
    return tail.content if tail is not None and tail.kind == EntryKind.USER_ACTION else ""


def floor_in(world: World) -> list[Seated]:
    """The floor of a branch, its buffer aside."""
    return floor_of(
        world.entities,
        world.lore,
        world.threads,
        world.scene.entity_ids,
        world.scene.location_id,
        world.parameters,
    )


def queries_in(world: World, action: str) -> list[Query]:
    """What is asked for."""
    place = world.entities.get(world.scene.location_id or "")
    present = [world.entities[each].name for each in world.scene.entity_ids if _has(world, each)]
    if place is not None and place.status == EntityStatus.ACTIVE:
        present.append(place.name)
    active = [each.title for each in world.threads.values() if each.status == ThreadStatus.ACTIVE]
    # Neither is inherited from an older entry, so an entry without them leaves them out.
    meta = world.told.meta if world.told is not None else {}
    return query_stack(
        action,
        digest_of(present, active, world.era),
        meta.get("summary") or "",
        meta.get("retrievalQueries") or (),
    )


def _has(world: World, entity_id: str) -> bool:
    return entity_id in world.entities


async def retrieve(
    reading: Reading,
    viewer: Viewer,
    world: World,
    action: str,
    queries: Sequence[Query],
    meaning: Meaning | None,
    failure: ProbeFailure | None = None,
) -> Retrieved:
    """What a prompt would carry. Without a meaning, the floor and what keywords seat."""
    return await _Retrieval(reading, viewer, world, action, queries, meaning, failure).run()


class _Retrieval:
    """One retrieval: kinds are ranked one after another, chapters first."""

    def __init__(
        self,
        reading: Reading,
        viewer: Viewer,
        world: World,
        action: str,
        queries: Sequence[Query],
        meaning: Meaning | None,
        failure: ProbeFailure | None,
    ) -> None:
        self.reading, self.viewer, self.world = reading, viewer, world
        self.queries, self.failure = queries, failure
        vectors = meaning.vectors if meaning is not None else [None] * len(queries)
        self.vectors = list(vectors)
        # Nothing to compare with is no meaning at all.
        self.meaning = meaning if any(each is not None for each in vectors) else None
        self.model_id = meaning.model_id if meaning is not None else None
        self.surface = Surface(action, *(each.content for each in world.scanned))
        self.prose = Surface(*(each.content for each in world.buffer))
        self.floor = floor_in(world)
        self.taken = {(each.kind, each.id) for each in self.floor}
        self.named = names_within((each.name for each in world.entities.values()), self.surface)

    @property
    def parameters(self) -> Parameters:
        return self.world.parameters

    async def run(self) -> Retrieved:
        seated = self._injected()
        self.taken |= {(each.kind, each.id) for each in seated}
        pools: dict[SearchKind, Pool] = {}
        near: dict[SearchKind, list[list[tuple[str, float]]]] = {}
        for kind in RANKED:
            chapters = [each.candidate.id for each in pools[RANKED[0]].seated] if pools else []
            near[kind] = await self._near(kind)
            used = sum(each.tokens for each in seated if each.kind is kind)
            pools[kind] = await self._pool(kind, near[kind], used, chapters)
        return Retrieved(
            self.world,
            self._asked(),
            sum(estimate_tokens(each.content) for each in self.world.buffer),
            self.floor,
            seated,
            list(pools.values()),
            self._redundancy(near),
            self.model_id,
            self.failure,
            self._warnings(pools),
        )

    def _asked(self) -> list[Asked]:
        has_vector = [each is not None for each in self.vectors]
        live = [q.slot for q, has in zip(self.queries, has_vector, strict=True) if has]
        shares = shares_of(live, self.parameters.weights)
        return [
            Asked(
                query,
                shares[query.slot] / live.count(query.slot) if has else 0.0,
                estimate_tokens(query.text),
                has,
            )
            for query, has in zip(self.queries, has_vector, strict=True)
        ]

    def _warnings(self, pools: Mapping[SearchKind, Pool]) -> list[str]:
        found = []
        if self.meaning is None:
            found.append("NOTHING_COMPARED")
        found += [
            f"NOTHING_SEATED_{kind.name}"
            for kind, pool in pools.items()
            if pool.ranked and not pool.seated and not pool.injected_tokens
        ]
        found += [f"STALE_{kind.name}" for kind, pool in pools.items() if pool.stale_count]
        return found

    # -- what may come in at all

    def _rows(self, kind: SearchKind) -> Mapping[str, Any]:
        return {
            SearchKind.ENTITY: self.world.entities,
            SearchKind.LORE: self.world.lore,
            SearchKind.THREAD: self.world.threads,
            SearchKind.CHAPTER: self.world.chapters,
        }[kind]

    def _is_admitted(self, kind: SearchKind, row: Any) -> bool:
        if (kind, row.row_id) in self.taken:
            return False
        if kind in _ADMITTED and row.status not in _ADMITTED[kind]:
            return False
        if kind is SearchKind.ENTITY:
            mode = mode_among(self.world.entities, row, self.world.scene.location_id)
            # Who waits to come in bears a name that is told of already: it would be taken for it.
            is_suppressed = row.status == EntityStatus.STAGED and self.prose.has(row.name)
            return mode != InjectionMode.DISABLED and not is_suppressed
        return kind is SearchKind.CHAPTER or row.injection_mode != InjectionMode.DISABLED

    def _keywords(self, kind: SearchKind, row: Any) -> tuple[str, ...]:
        if kind is SearchKind.ENTITY:
            return (row.name, *row.keywords)
        return () if kind is SearchKind.THREAD else tuple(row.keywords)

    def _injected(self) -> list[Keyed]:
        if not self.parameters.injects:
            return []
        rows = []
        for kind in INJECTED:
            for row in self._rows(kind).values():
                if self._is_admitted(kind, row):
                    text = text_of(kind, row)
                    rows.append(
                        Keyed(
                            kind,
                            row.row_id,
                            name_of(kind, row),
                            self._keywords(kind, row),
                            row.priority,
                            text,
                            price_of(kind, text, self.parameters),
                        )
                    )
        return injected(
            rows,
            self.surface,
            self.parameters.budgets,
            self.parameters.injected_share,
            self.parameters.cascade_depth,
        )

    # -- ranking

    async def _near(self, kind: SearchKind) -> list[list[tuple[str, float]]]:
        if self.meaning is None:
            return []
        return await self.meaning.near(
            self.reading, self.world.branch.id, kind, self.parameters.neighbours
        )

    async def _pool(
        self,
        kind: SearchKind,
        near: Sequence[Sequence[tuple[str, float]]],
        injected_tokens: int,
        chapters: Sequence[str],
    ) -> Pool:
        ids = sorted({row_id for each in near for row_id, _ in each})
        candidates: list[Candidate] = []
        stale_count = 0
        if kind is not SearchKind.HAPPENING:
            rows = self._rows(kind)
            stale_count = sum(each.embedding_stale for each in rows.values())
            wanted = [rows[each] for each in ids if each in rows and self._is_fit(kind, rows[each])]
            vectors = await self._vectors(wanted)
            candidates = [
                self._candidate(kind, row, vectors[row.row_id])
                for row in wanted
                if row.row_id in vectors
            ]
        elif self.meaning is not None:
            found = await read_happenings(self.reading, self.viewer, self.world, ids, chapters)
            stale_count = sum(each.embedding_stale for each in found.rows.values())
            wanted = [each for each in found.rows.values() if _is_known(found, each)]
            vectors = await self._vectors(wanted)
            candidates = [
                self._happening(row, found, vectors[row.row_id])
                for row in wanted
                if row.row_id in vectors
            ]
        budget = int(self.parameters.budgets[kind])
        ranked = rank(
            candidates,
            [each.slot for each in self.queries],
            self.parameters,
            budget,
            injected_tokens,
            lambda each: price_of(kind, each.text or "", self.parameters),
        )
        return Pool(kind, budget, injected_tokens, ranked, stale_count)

    def _is_fit(self, kind: SearchKind, row: Any) -> bool:
        return not row.embedding_stale and self._is_admitted(kind, row)

    async def _vectors(self, rows: Sequence[Any]) -> dict[str, Vector]:
        if self.meaning is None or not rows:
            return {}
        return await self.meaning.vectors_of(
            self.reading, self.world.branch.id, [each.row_id for each in rows]
        )

    def _similarities(self, vector: Vector) -> tuple[float | None, ...]:
        return tuple(None if each is None else similarity(each, vector) for each in self.vectors)

    def _candidate(self, kind: SearchKind, row: Any, vector: Vector) -> Candidate:
        fades = kind in (SearchKind.ENTITY, SearchKind.THREAD)
        return Candidate(
            kind,
            row.row_id,
            name_of(kind, row),
            text_of(kind, row),
            self._similarities(vector),
            vector,
            pin=row.priority / 100 if kind is SearchKind.LORE else 0.0,
            age=self.world.chapters_since(row.updated_at or row.created_at) if fades else 0,
            is_keyword_hit=self.surface.has_any(self._keywords(kind, row)),
        )

    def _happening(self, row: Any, found: Happenings, vector: Vector) -> Candidate:
        known = found.awareness.get(row.row_id, ())
        sources = source_lines(self.world.present, known)
        ages = [self.world.chapters_since_chapter(each.chapter_id) for each in known]
        return Candidate(
            SearchKind.HAPPENING,
            row.row_id,
            row.title,
            text_of(SearchKind.HAPPENING, row, sources),
            self._similarities(vector),
            vector,
            pin=max((each.decay_resistance for each in known), default=0.0),
            # Of several who know of it, it is freshest to the one who learned of it last.
            age=min(ages, default=self.world.chapters_since(row.created_at)),
            is_keyword_hit=self.named(each.source for each in known if each.source),
            is_in_seated_chapter=row.row_id in found.in_seated_chapters,
            is_common=row.common_knowledge,
        )

    def _redundancy(
        self, near: Mapping[SearchKind, Sequence[Sequence[tuple[str, float]]]]
    ) -> list[Redundancy]:
        found = []
        for number, query in enumerate(self.queries):
            if query.slot is not QuerySlot.DIRECT or self.vectors[number] is None:
                continue
            merged = sorted(
                (-nearness, row_id, kind)
                for kind in _FOR_REDUNDANCY
                for row_id, nearness in near[kind][number]
            )[:REDUNDANCY_NEIGHBOURS]
            floor = {(each.kind, each.id) for each in self.floor}
            there = sum((kind, row_id) in floor for _, row_id, kind in merged)
            ratio = there / len(merged) if merged else 0.0
            found.append(Redundancy(query.text, ratio, len(merged)))
        return found


def similarity(left: Vector, right: Vector) -> float:
    """The cosine of two vectors of length 1."""
    return round(min(max(float(left.astype(np.float64) @ right), -1.0), 1.0), DIGITS)


def _is_known(found: Happenings, row: Any) -> bool:
    """Whether somebody present knows of a happening, or everybody does; and it is not stale."""
    return not row.embedding_stale and (row.common_knowledge or row.row_id in found.awareness)
