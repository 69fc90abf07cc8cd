"""A search in branches: at present by words, by meaning or by both; in the past by words; whole, or
as one character knows the branch.

Source: design, performance (W5), benchmarks (B1 to B3, B5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db.engine import Database
from db.enums import SearchKind, SearchMode
from db.reading import Reading
from db.tables import Branch
from services import embedding, past
from services.access import Viewer, rows_by_ids
from services.embedding import Embedder, EmbedderFault, Embedders, Neighbour
from services.errors import Invalid
from services.past import Moment
from services.perspectives import Knowledge, knowledge_of
from services.searching.ranking import (
    WHOLE_NAME,
    Hit,
    Key,
    Part,
    fused,
    has_name,
    in_order,
    is_found,
    snippet_of,
    worth,
)
from services.searching.surfaces import LOOKED, Match, matches_among, matches_in, sizes_of
from services.searching.words import Query, query_of
from services.text import checked_text

MAX_HITS = 100
MAX_QUERY = 1_000
# Of each kind, the best that are looked at as a whole.
_CANDIDATES = 200
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
    known: Mapping[SearchKind, frozenset[str]] | None

    def has(self, kind: SearchKind, row_id: str) -> bool:
        return self.known is None or row_id in self.known[kind]


async def search_branches(
    database: Database,
    embedders: Embedders,
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
    if not 0 <= asked.first <= MAX_HITS:
        raise Invalid(f"first lies between 0 and {MAX_HITS}.", "OUT_OF_RANGE", ("first",))
    checked_text(asked.text, "text", max_length=MAX_QUERY)
    query = query_of(asked.text)
    async with database.reading() as reading:
        ids = list(dict.fromkeys(branch_id for branch_id, _ in branches))
        seen = {row.id for row in await rows_by_ids(reading, viewer, Branch, ids) if row}
        scopes = [
            _Scope(branch_id, moment, await _known(reading, viewer, branch_id, moment, asked))
            for branch_id, moment in branches
        ]
        live = [each for each in ids if each in seen]
        sizes = await sizes_of(reading, live, asked.kinds)
    matches: dict[str, list[Match]] = {each: [] for each in ids}
    present = [each for each in live if (each, None) in branches]
    if present and query.words and asked.mode is not SearchMode.VECTOR:
        for match in await matches_in(database, present, asked.kinds, query.words):
            matches[match.branch_id].append(match)
    near = {
        scope.branch_id: await _near(database, embedders, viewer, scope, asked)
        for scope in scopes
        if scope.moment is None and scope.branch_id in seen and asked.mode is not SearchMode.KEYWORD
    }
    if asked.mode is SearchMode.VECTOR and query.words:
        # Where meaning is not to be had, words are searched after all.
        without = [each for each in present if near.get(each) is None]
        if without:
            for match in await matches_in(database, without, asked.kinds, query.words):
                matches[match.branch_id].append(match)
    return await _ranked(database, viewer, scopes, asked, query, matches, sizes, near)


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


async def _near(
    database: Database, embedders: Embedders, viewer: Viewer, scope: _Scope, asked: Asked
) -> list[Neighbour] | None:
    """The rows nearest to the query; None where there is no meaning to go by."""
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
                _CANDIDATES if scope.known is None else _ALL,
            )
    except EmbedderFault:
        if asked.mode is SearchMode.VECTOR:
            raise
        return None
    return [each for each in nearest if scope.has(each.kind, each.row_id)][:_CANDIDATES]


async def _ranked(
    database: Database,
    viewer: Viewer,
    scopes: Sequence[_Scope],
    asked: Asked,
    query: Query,
    matches: Mapping[str, Sequence[Match]],
    sizes: Mapping[str, int],
    near: Mapping[str, list[Neighbour] | None],
) -> list[Found]:
    """Put in order what was found in each branch."""
    candidates: list[tuple[dict[Key, float], list[Neighbour] | None]] = []
    rows: list[dict[Key, Any]] = []
    async with database.reading() as reading:
        for scope in scopes:
            there: dict[Key, Any] = {}
            if scope.moment is None:
                found = matches[scope.branch_id]
                count = sizes.get(scope.branch_id, 0)
            else:
                for kind in asked.kinds:
                    past_rows = await past.rows_at(
                        reading, viewer, scope.moment, LOOKED[kind].table
                    )
                    there |= {(kind, row_id): row for row_id, row in past_rows.items()}
                found = await asyncio.to_thread(_matches_then, scope, asked.kinds, there, query)
                count = len(there)
            if scope.known is not None:
                count = sum(len(scope.known[kind]) for kind in asked.kinds)
            known = [each for each in found if scope.has(each.kind, each.row_id)]
            nearest = near.get(scope.branch_id) if scope.moment is None else None
            candidates.append((_best(worth(known, count)), nearest))
            rows.append(there)
        wanted: dict[SearchKind, dict[str, None]] = {kind: {} for kind in asked.kinds}
        for scope, (scores, nearest) in zip(scopes, candidates, strict=True):
            if scope.moment is None:
                keys = [*scores, *((each.kind, each.row_id) for each in nearest or ())]
                for kind, row_id in keys:
                    wanted[kind][f"{scope.branch_id}:{row_id}"] = None
        read: dict[str, Any] = {}
        for kind, ids in wanted.items():
            listed = await rows_by_ids(reading, viewer, LOOKED[kind].table, list(ids))
            read |= {row.id: row for row in listed if row is not None}
    answers = []
    for scope, (scores, nearest), there in zip(scopes, candidates, rows, strict=True):
        if scope.moment is None:
            keys = [*scores, *((each.kind, each.row_id) for each in nearest or ())]
            there = {
                key: row
                for key in keys
                if (row := read.get(f"{scope.branch_id}:{key[1]}")) is not None
            }
        answers.append(_answer(scope, asked, query, scores, nearest, there))
    return answers


def _matches_then(
    scope: _Scope, kinds: Sequence[SearchKind], there: Mapping[Key, Any], query: Query
) -> list[Match]:
    return [
        match
        for kind in kinds
        for match in matches_among(
            scope.branch_id,
            kind,
            (row for key, row in there.items() if key[0] == kind),
            query.words,
        )
    ]


def _best(scores: Mapping[Key, float]) -> dict[Key, float]:
    """The best of each kind."""
    left = dict.fromkeys(SearchKind, _CANDIDATES)
    kept = {}
    for key in in_order(scores):
        if left[key[0]]:
            left[key[0]] -= 1
            kept[key] = scores[key]
    return kept


def _answer(
    scope: _Scope,
    asked: Asked,
    query: Query,
    scores: Mapping[Key, float],
    nearest: list[Neighbour] | None,
    rows: Mapping[Key, Any],
) -> Found:
    """The hits of one branch in order, with what each part of their scores is worth."""
    mode = SearchMode.KEYWORD if nearest is None else asked.mode
    by_words: dict[Key, float] = {}
    parts: dict[Key, dict[str, float]] = {}
    for key, score in scores.items():
        row = rows.get(key)
        if row is None or not is_found(query, key[0], row):
            continue
        named = WHOLE_NAME if has_name(query, key[0], row) else 0.0
        by_words[key] = score + named
        parts[key] = {"words": score} | ({"name": named} if named else {})
    by_meaning = {(each.kind, each.row_id): each.similarity for each in nearest or ()}
    by_meaning = {key: value for key, value in by_meaning.items() if key in rows}
    for key, similarity in by_meaning.items():
        parts.setdefault(key, {})["meaning"] = similarity
    if mode is SearchMode.HYBRID:
        total = fused(in_order(by_words), in_order(by_meaning))
    else:
        total = by_meaning if mode is SearchMode.VECTOR else by_words
    order = in_order(total)
    hits = [
        Hit(
            key[0],
            rows[key],
            LOOKED[key[0]].label(rows[key]),
            snippet_of(query, key[0], rows[key]),
            total[key],
            [Part(name, value) for name, value in parts[key].items()],
        )
        for key in order[: asked.first]
    ]
    beyond = [rows[key] for key in order[asked.first : asked.first + MAX_HITS]]
    return Found(mode, hits, beyond, scope.moment)
