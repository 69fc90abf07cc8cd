"""Vectors as they are kept: once for each model, dimension and text, whoever has the text; and what
nobody points at any more is deleted.

Source: design, performance (traps), retrieval (identity of a stored vector).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.reading import Reading, Record, Statement, Writing, any_of, param, statement
from db.tables import Vector
from services.embedding.vectors import literal

# Vectors that one step of the chore deletes, and how often it looks for them, in seconds.
_STEP = 1_000
_ROUND = 3_600.0

_HAS_VECTORS: Statement[Any] = Statement(
    "SELECT EXISTS (SELECT 1 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
    "WHERE a.attrelid = 'vectors'::regclass AND a.attname = 'embedding' AND t.typname = 'vector')",
    (),
    {},
    Record,
)
_KEEP: Statement[Any] = Statement(
    "INSERT INTO vectors (model_id, dim, text_hash, embedding) "
    "SELECT $1, $2, hash, embedding::vector FROM unnest($3::text[], $4::text[]) "
    "AS given (hash, embedding) ORDER BY hash ON CONFLICT DO NOTHING",
    ("model_id", "dim", "hashes", "vectors"),
    {},
    Record,
)
_SWEEP: Statement[Any] = Statement(
    "DELETE FROM vectors WHERE (model_id, dim, text_hash) IN (SELECT model_id, dim, text_hash "
    "FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.model_id = v.model_id "
    f"AND e.dim = v.dim AND e.source_hash = v.text_hash) LIMIT {_STEP})",
    (),
    {},
    Record,
)


_COPY: Statement[Any] = Statement(
    "INSERT INTO vectors (model_id, dim, text_hash, embedding) "
    "SELECT $3, dim, text_hash, embedding FROM vectors WHERE model_id = $2 AND text_hash IN "
    "(SELECT source_hash FROM embeddings WHERE branch_id = ANY($1::text[]) AND model_id = $2) "
    "ORDER BY text_hash "
    "ON CONFLICT (model_id, dim, text_hash) DO UPDATE SET embedding = excluded.embedding",
    ("branch_ids", "old", "new"),
    {},
    Record,
)


async def has_vectors(reading: Reading) -> bool:
    """Whether this database can compare vectors: that is so where it has pgvector."""
    return bool(await reading.value(_HAS_VECTORS))


@statement(Vector)
def _kept() -> Any:
    return select(col(Vector.text_hash), col(Vector.dim)).where(
        col(Vector.model_id) == param("model_id"), any_of(Vector.text_hash, "hashes")
    )


async def kept_hashes(
    reading: Reading, model_id: str, hashes: Sequence[str]
) -> dict[int, set[str]]:
    """Which texts have vectors of a model, by the dimension of these."""
    found: dict[int, set[str]] = {}
    for row in await reading.all(_kept(), model_id=model_id, hashes=list(hashes)):
        found.setdefault(row.dim, set()).add(row.text_hash)
    return found


async def keep_vectors(
    writing: Writing, model_id: str, dim: int, vectors: Mapping[str, Sequence[float]]
) -> None:
    """Keep vectors of length 1 by the hashes of their texts; one that is there stays."""
    await writing.run(
        _KEEP,
        model_id=model_id,
        dim=dim,
        hashes=list(vectors),
        vectors=[literal(each) for each in vectors.values()],
    )


async def copy_vectors(writing: Writing, branch_ids: Sequence[str], old: str, new: str) -> None:
    """Keep the vectors at which rows of branches point under the name of another model too."""
    await writing.run(_COPY, branch_ids=list(branch_ids), old=old, new=new)


class VectorSweeper:
    """The chore of one server: deletes vectors at which no row of any branch points."""

    def __init__(self) -> None:
        self._next_round = 0.0

    async def sweep(self, writing: Writing) -> int:
        """One step of `services.housekeeping`; once an hour it goes through all. Who loses a vector
        to it meanwhile, having not yet pointed at it, embeds again.
        """
        if time.monotonic() < self._next_round:
            return 0
        deleted = await writing.run(_SWEEP)
        if deleted < _STEP:
            self._next_round = time.monotonic() + _ROUND
        return deleted
