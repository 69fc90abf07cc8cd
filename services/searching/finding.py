"""A search in branches: at present by words, by meaning or by both; in the past by words; whole, or
as one character knows the branch.

Source: design, performance (W5), benchmarks (B1 to B3, B5).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from db.engine import Database
from db.enums import SearchKind, SearchMode
from db.reading import Reading
from services import embedding, past
from services.access import Viewer, rows_by_ids
from services.embedding import Embedder, EmbedderFault, Embedders, Neighbour
from services.errors import Invalid
from services.past import Moment
from services.perspectives import Knowledge, knowledge_of
from services.searching.filters import Filter, fitting_rows
from services.searching.ranking import (
    CANDIDATES,
    Candidate,
    Hit,
    Key,
    Match,
    Part,
    candidates,
    first_of,
    found_by_words,
    fused,
    in_order,
    snippet_of,
    summed,
)
from services.searching.surfaces import LOOKED, matches_among
from services.searching.texts import BranchTexts, Texts, matches_in, states_of_branches
from services.searching.words import Query, query_of
from services.text import checked_text

MAX_HITS = 100
MAX_QUERY = 1_000
# As many neighbours as there are, for whoever knows only some of them.
_ALL = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched for."""

    text: str
    kinds: tuple[SearchKind, ...]
    mode: SearchMode
    first: int
    # A character, by its own id or its name outside.
    perspective: str | None = None
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What was found in a branch, and how."""

    mode: SearchMode
    hits: list[Hit]
    # Rows that were found as well, next in order.
    beyond: list[Any]
    moment: Moment | None


@dataclass(frozen=True, slots=True)
class _Scope:
    """A branch that is searched, and what counts in it."""

    branch_id: str
    moment: Moment | None
    known: Mapping[SearchKind, AbstractSet[str]] | None

    def has(self, kind: str, row_id: str) -> bool:
        return self.known is None or row_id in self.known[SearchKind(kind)]


def checked_query(text: str, first: int) -> Query:
    """What is looked for. Raises Invalid (OUT_OF_RANGE, TEXT_…)."""
    if not 0 <= first <= MAX_HITS:
        raise Invalid(f"first lies between 0 and {MAX_HITS}.", "OUT_OF_RANGE", ("first",))
    checked_text(text, "text", max_length=MAX_QUERY)
    return query_of(text)


async def search_branches(
    database: Database,
    embedders: Embedders,
    branch_texts: BranchTexts,
    viewer: Viewer,
    branches: Sequence[tuple[str, Moment | None]],
    asked: Asked,
) -> list[Found]:
    """What is found in each branch, each as of its moment. No connection is held while an embedder
    works. By meaning nothing is found in the past, nor where nobody embeds the story: what was done
    instead is in `mode`.

    Raises Invalid (OUT_OF_RANGE, TEXT_…), what a perspective raises, and EmbedderFault where
    meaning alone was asked for.
    """
    query = checked_query(asked.text, asked.first)
    async with database.reading() as reading:
        ids = list(dict.fromkeys(branch_id for branch_id, _ in branches))
        states = await states_of_branches(reading, viewer, ids)
        present = [each for each in ids if each in states and (each, None) in branches]
        fitting = await fitting_rows(reading, viewer, present, asked.filter) if asked.filter else {}
        scopes = [
            _Scope(
                branch_id,
                moment,
                _both(
                    await _known(reading, viewer, branch_id, moment, asked),
                    fitting.get(branch_id) if moment is None else None,
                ),
            )
            for branch_id, moment in branches
        ]
    near = {
        each.branch_id: await _near(database, embedders, viewer, each, asked)
        for each in scopes
        if each.branch_id in present and each.moment is None
    }
    # Where meaning is not to be had, words are searched after all.
    by_words = [
        each for each in present if asked.mode is not SearchMode.VECTOR or near[each] is None
    ]
    homes: dict[str, Texts] = {}
    matches: dict[str, list[Match]] = {}
    if by_words and query.words:
        homes = await branch_texts.of_branches(database, {each: states[each] for each in by_words})
        async with database.reading() as reading:
            matches = await matches_in(reading, homes, asked.kinds, query.words)
    return await _ranked(database, viewer, scopes, asked, query, homes, matches, near)


async def _known(
    reading: Reading, viewer: Viewer, branch_id: str, moment: Moment | None, asked: Asked
) -> dict[SearchKind, frozenset[str]] | None:
    if asked.perspective is None:
        return None
    found: Knowledge = await knowledge_of(reading, viewer, branch_id, asked.perspective, moment)
    known = dict.fromkeys(SearchKind, frozenset[str]())
    return known | {
        SearchKind.ENTITY: found.entities,
        SearchKind.HAPPENING: found.happenings,
        SearchKind.LORE: found.lore,
        SearchKind.ENTRY: found.entries,
    }


def _both(
    known: Mapping[SearchKind, AbstractSet[str]] | None,
    fitting: Mapping[SearchKind, AbstractSet[str]] | None,
) -> Mapping[SearchKind, AbstractSet[str]] | None:
    if known is None or fitting is None:
        return fitting if known is None else known
    return {kind: known[kind] & fitting[kind] for kind in SearchKind}


async def _near(
    database: Database, embedders: Embedders, viewer: Viewer, scope: _Scope, asked: Asked
) -> list[Neighbour] | None:
    """The rows nearest to the query; None where there is no meaning to go by."""
    if asked.mode is SearchMode.KEYWORD:
        return None
    kinds = [each for each in asked.kinds if each in embedding.KINDS]
    async with database.reading() as reading:
        embedder: Embedder | None = await embedders.embedder_of(reading, viewer, scope.branch_id)
    if embedder is None:
        return None
    try:
        await embedding.sync_branch(database, viewer, scope.branch_id, embedder)
        (vector,) = await embedder.embed([asked.text], is_query=True)
        async with database.reading() as reading:
            nearest = await embedding.nearest_rows(
                reading,
                scope.branch_id,
                embedder.model_id,
                len(vector),
                vector,
                kinds,
                CANDIDATES if scope.known is None else _ALL,
            )
    except EmbedderFault:
        if asked.mode is SearchMode.VECTOR:
            raise
        return None
    return [each for each in nearest if scope.has(each.kind, each.row_id)][:CANDIDATES]


async def _ranked(
    database: Database,
    viewer: Viewer,
    scopes: Sequence[_Scope],
    asked: Asked,
    query: Query,
    homes: Mapping[str, Texts],
    matches: Mapping[str, Sequence[Match]],
    near: Mapping[str, list[Neighbour] | None],
) -> list[Found]:
    """Put in order what was found in each branch."""
    looked_at: list[tuple[dict[Key, Candidate], list[Neighbour] | None]] = []
    rows: list[dict[Key, Any]] = []
    async with database.reading() as reading:
        for scope in scopes:
            there: dict[Key, Any] = {}
            if scope.moment is None:
                found = matches.get(scope.branch_id, ())
                count = homes.get(scope.branch_id, Texts()).count(asked.kinds)
            else:
                for kind in asked.kinds:
                    past_rows = await past.rows_at(
                        reading, viewer, scope.moment, LOOKED[kind].table
                    )
                    there |= {
                        (kind, row_id): row
                        for row_id, row in past_rows.items()
                        if asked.filter is None or asked.filter.fits(kind, row)
                    }
                found = await asyncio.to_thread(_matches_then, asked.kinds, there, query)
                count = len(there)
            if scope.known is not None:
                count = sum(len(scope.known[kind]) for kind in asked.kinds)
                found = [each for each in found if scope.has(each.kind, each.row_id)]
            nearest = near.get(scope.branch_id) if scope.moment is None else None
            by_words = candidates(query, found, count)
            if nearest is None:
                by_words = first_of(by_words, asked.first + CANDIDATES)
            looked_at.append((by_words, nearest))
            rows.append(there)
        wanted: dict[str, dict[str, None]] = {each: {} for each in asked.kinds}
        for scope, (by_words, nearest) in zip(scopes, looked_at, strict=True):
            if scope.moment is None:
                for each, row_id in _keys(by_words, nearest):
                    wanted[each][f"{scope.branch_id}:{row_id}"] = None
        read: dict[str, Any] = {}
        for each, ids in wanted.items():
            table = LOOKED[SearchKind(each)].table
            listed = await rows_by_ids(reading, viewer, table, list(ids)) if ids else []
            read |= {row.id: row for row in listed if row is not None}
    answers = []
    for scope, (by_words, nearest), there in zip(scopes, looked_at, rows, strict=True):
        if scope.moment is None:
            there = {
                key: row
                for key in _keys(by_words, nearest)
                if (row := read.get(f"{scope.branch_id}:{key[1]}")) is not None
            }
        answers.append(_answer(scope, asked, query, by_words, nearest, there))
    return answers


def _keys(by_words: Mapping[Key, Any], nearest: Sequence[Neighbour] | None) -> list[Key]:
    return [*by_words, *((each.kind, each.row_id) for each in nearest or ())]


def _matches_then(
    kinds: Sequence[SearchKind], there: Mapping[Key, Any], query: Query
) -> list[Match]:
    return [
        match
        for kind in kinds
        for match in matches_among(
            kind, (row for key, row in there.items() if key[0] == kind), query.words
        )
    ]


def _answer(
    scope: _Scope,
    asked: Asked,
    query: Query,
    by_words: Mapping[Key, Candidate],
    nearest: list[Neighbour] | None,
    rows: Mapping[Key, Any],
) -> Found:
    """The hits of one branch in order, with what each part of their scores is worth."""
    mode = SearchMode.KEYWORD if nearest is None else asked.mode
    wanted = {key: row for key, row in rows.items() if key in by_words}
    said = {key: LOOKED[SearchKind(key[0])].said(row) for key, row in wanted.items()}
    found = found_by_words(query, by_words, said)
    # Nobody sees more than these; the fusion of two orders needs all of both.
    most = asked.first + MAX_HITS if mode is SearchMode.KEYWORD else None
    parts = dict(itertools.islice(found, most))
    total = {key: summed(listed) for key, listed in parts.items()}
    by_meaning: dict[Key, float] = {}
    for near in nearest or ():
        if (near.kind, near.row_id) in rows:
            by_meaning[near.kind, near.row_id] = near.similarity
    for key, similarity in by_meaning.items():
        parts.setdefault(key, []).append(Part("meaning", similarity))
    if mode is SearchMode.HYBRID:
        total = fused(list(total), in_order(by_meaning))
    elif mode is SearchMode.VECTOR:
        total = by_meaning
    order = in_order(total)
    hits = []
    for key in order[: asked.first]:
        looked = LOOKED[SearchKind(key[0])]
        snippet = snippet_of(query, looked.said(rows[key]))
        label = looked.label(rows[key])
        hits.append(Hit(key[0], rows[key], label, snippet, total[key], parts[key]))
    beyond = [rows[key] for key in order[asked.first : asked.first + MAX_HITS]]
    return Found(mode, hits, beyond, scope.moment)
