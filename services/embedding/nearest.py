"""The rows of a branch that are nearest to a vector, or to each other: all vectors at which they
point are compared.

Source: design, retrieval (pools; rows still stale are left out), performance (traps).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from db.enums import SearchKind
from db.reading import Reading, Record, Statement
from db.tables import Branch
from services.access import Viewer, rows_by_ids
from services.deltas import LOGGED
from services.embedding.remembered import matrix_of
from services.embedding.vectors import checked, cosine

# Kinds of rows that are embedded.
KINDS = {
    SearchKind(each.target_kind.value): each.table
    for each in LOGGED.values()
    if each.embedded and each.target_kind is not None
}
_STALE = " UNION ALL ".join(
    f"SELECT '{each.target_kind}' AS kind, id FROM {each.name} "
    "WHERE branch_id = {branch} AND embedding_stale"
    for each in LOGGED.values()
    if each.embedded
)
_ORDER = "ORDER BY similarity DESC, id LIMIT"
# Values that are compared without letting go of the event loop.
_AT_ONCE = 1_000_000


def _stale(branch: str) -> str:
    return _STALE.replace("{branch}", branch)


# The neighbours of many rows, each in its own branch. A row is no neighbour of itself.
_SIMILAR: Statement[Any] = Statement(
    "SELECT w.place, n.kind, n.id, n.similarity "
    "FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY "
    "AS w (branch_id, row_id, model_id, place) "
    "JOIN embeddings own ON own.branch_id = w.branch_id AND own.target_id = w.row_id "
    "AND own.model_id = w.model_id JOIN vectors ov ON ov.model_id = own.model_id "
    "AND ov.dim = own.dim AND ov.text_hash = own.source_hash, LATERAL ("
    "SELECT e.target_kind AS kind, e.target_id AS id, "
    "-(v.embedding <#> ov.embedding) AS similarity FROM embeddings e JOIN vectors v "
    "ON v.model_id = e.model_id AND v.dim = e.dim AND v.text_hash = e.source_hash "
    "WHERE e.branch_id = w.branch_id AND e.model_id = own.model_id AND e.dim = own.dim "
    "AND e.target_id <> w.row_id "
    f"AND (e.target_kind, e.target_id) NOT IN ({_stale('w.branch_id')}) "
    f"{_ORDER} $4) n ORDER BY w.place, n.similarity DESC, n.id",
    ("branch_ids", "row_ids", "model_ids", "most"),
    {},
    Record,
)
_VECTORS: Statement[Any] = Statement(
    "SELECT e.target_id AS id, v.embedding::real[] AS vector FROM embeddings e JOIN vectors v "
    "ON v.model_id = e.model_id AND v.dim = e.dim AND v.text_hash = e.source_hash "
    "WHERE e.branch_id = $1 AND e.model_id = $2 AND e.dim = $3 AND e.target_id = ANY($4::text[])",
    ("branch_id", "model_id", "dim", "row_ids"),
    {},
    Record,
)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row of a branch, and how near it is: the cosine, between -1 and 1."""

    kind: SearchKind
    row_id: str
    similarity: float


async def nearest_rows(
    reading: Reading,
    branch_id: str,
    model_id: str,
    dim: int,
    vector: Sequence[float],
    kinds: Collection[SearchKind],
    limit: int,
    *,
    exclude_stale: bool = True,
) -> list[Neighbour]:
    """The rows of a branch nearest to a vector, nearest first, then by id; whether the viewer may
    see the branch, and that it was synced, is for the caller to see. Raises EmbedderFault.
    """
    checked([vector], 1, dim)
    matrix = await matrix_of(reading, (branch_id, model_id, dim))
    if matrix is None:
        return []
    find = partial(
        matrix.nearest,
        np.asarray(vector, dtype=np.float32),
        [str(each) for each in kinds],
        limit,
        exclude_stale=exclude_stale,
    )
    # Others are served while much is compared.
    is_large = matrix.lines.size > _AT_ONCE
    found = await asyncio.to_thread(find) if is_large else find()
    return [Neighbour(SearchKind(kind), row_id, cosine(near)) for kind, row_id, near in found]


async def neighbours_of_rows(
    reading: Reading, viewer: Viewer, rows: Sequence[tuple[str, str, str]], limit: int
) -> list[list[Neighbour]]:
    """For each row, by its branch, its own id and the model, the others of its branch that are
    nearest; none for a row that has no vector, or that the viewer may not see.
    """
    found: list[list[Neighbour]] = [[] for _ in rows]
    seen = {
        each.id
        for each in await rows_by_ids(reading, viewer, Branch, [each for each, _, _ in rows])
        if each is not None
    }
    if seen:
        # Those that are hidden keep their places, with nothing to be found.
        asked = [each if each[0] in seen else ("", "", "") for each in rows]
        branch_ids, row_ids, model_ids = (list(each) for each in zip(*asked, strict=True))
        for row in await reading.all(
            _SIMILAR, branch_ids=branch_ids, row_ids=row_ids, model_ids=model_ids, most=limit
        ):
            found[row.place - 1].append(_neighbour(row))
    return found


async def vectors_of_rows(
    reading: Reading, branch_id: str, model_id: str, dim: int, row_ids: Sequence[str]
) -> dict[str, list[float]]:
    """The vectors of rows of a branch by their own ids; a row that has none is not there.

    Raises EmbedderFault for one that is none of length 1.
    """
    rows = await reading.all(
        _VECTORS, branch_id=branch_id, model_id=model_id, dim=dim, row_ids=list(row_ids)
    )
    checked([row.vector for row in rows], len(rows), dim)
    return {row.id: list(row.vector) for row in rows}


def _neighbour(row: Record) -> Neighbour:
    return Neighbour(SearchKind(row.kind), row.id, cosine(row.similarity))
