"""What this server remembers of branches between two questions: the vectors at which their rows
point, and that nothing is to be embedded. Both hold for a state of the branch, which never comes
again once it has changed (`VectorState`), so nothing that is outdated is ever used.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from db.reading import Reading, Record, Statement
from services import deltas
from services.deltas import LOGGED, VectorState

Floats = npt.NDArray[np.float32]

# Matrices that are kept: those used last, of so many bytes together.
_MOST_BYTES = 256 * 2**20
# What a row takes beside its vector, about.
_ROW_BYTES = 300
_MOST_SYNCED = 10_000
# Vectors that are read in one go.
_AT_ONCE = 2_000
# Cosines are told apart by so many digits: what lies beyond differs from machine to machine.
_DIGITS = 6

# A branch, the name of a model, and how many values its vectors have.
Key = tuple[str, str, int]

# Kinds of rows that are embedded.
KINDS = tuple(str(each.target_kind) for each in LOGGED.values() if each.embedded)
_STALE = " UNION ALL ".join(
    f"SELECT '{each.target_kind}' AS kind, id FROM {each.name} "
    "WHERE branch_id = $1 AND embedding_stale"
    for each in LOGGED.values()
    if each.embedded
)
_POINTERS: Statement[Any] = Statement(
    "SELECT e.target_kind AS kind, e.target_id AS id, e.source_hash AS hash, "
    f"(e.target_kind, e.target_id) IN ({_STALE}) AS is_stale "
    "FROM embeddings e WHERE e.branch_id = $1 AND e.model_id = $2 AND e.dim = $3",
    ("branch_id", "model_id", "dim"),
    {},
    Record,
)
# In the form in which pgvector sends them.
_VECTORS: Statement[Any] = Statement(
    "SELECT text_hash AS hash, vector_send(embedding) AS sent FROM vectors "
    "WHERE model_id = $1 AND dim = $2 AND text_hash = ANY($3::text[])",
    ("model_id", "dim", "hashes"),
    {},
    Record,
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The vectors of a branch by one model. Texts that several rows have are one line."""

    state: VectorState
    # Of each row, in the order of the ids: the place of its kind among KINDS, its id, its line,
    # whether it waits to be embedded anew.
    kinds: npt.NDArray[np.int8]
    ids: list[str]
    places: npt.NDArray[np.intp]
    is_stale: npt.NDArray[np.bool_]
    lines: Floats
    by_hash: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """How much memory it takes, about."""
        return self.lines.nbytes + len(self.ids) * _ROW_BYTES

    def nearest(
        self, vector: Floats, kinds: Collection[str], limit: int, *, exclude_stale: bool
    ) -> list[tuple[str, str, float]]:
        """Kind, id and cosine of the rows of these kinds that are nearest to a vector of length 1:
        the nearest first, then by id.
        """
        wanted = np.isin(self.kinds, [KINDS.index(each) for each in kinds])
        if exclude_stale:
            wanted &= ~self.is_stale
        rows = np.flatnonzero(wanted)
        cosines = np.round((self.lines @ vector)[self.places[rows]], _DIGITS)
        if 0 < limit < len(rows):
            # All that are as near as the last one: the ids decide which of them is the last.
            least = np.partition(cosines, len(rows) - limit)[len(rows) - limit]
            near = cosines >= least
            rows, cosines = rows[near], cosines[near]
        order = np.lexsort((rows, -cosines))[:limit]
        return [
            (KINDS[self.kinds[row]], self.ids[row], float(cosine))
            for row, cosine in zip(rows[order], cosines[order], strict=True)
        ]


_matrices: OrderedDict[Key, Matrix] = OrderedDict()
_reading: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
_synced: OrderedDict[tuple[str, str], VectorState] = OrderedDict()


def is_synced(branch_id: str, model_id: str, state: VectorState | None) -> bool:
    """Whether it is known that every row of a branch in this state has a vector of a model."""
    return state is not None and _synced.get((branch_id, model_id)) == state


def note_synced(branch_id: str, model_id: str, state: VectorState | None) -> None:
    """Remember that it is so."""
    if state is not None:
        _synced[branch_id, model_id] = state
        _synced.move_to_end((branch_id, model_id))
        if len(_synced) > _MOST_SYNCED:
            _synced.popitem(last=False)


async def matrix_of(reading: Reading, key: Key) -> Matrix | None:
    """The vectors of a branch as they are now; None where there is no branch."""
    lock = _reading.get(key)
    if lock is None:
        lock = _reading[key] = asyncio.Lock()
    # Those who ask for the same branch at once do not all read it.
    async with lock:
        # Before the rows: what changes in between is seen by the next one who asks.
        state = await deltas.vector_state(reading, key[0])
        if state is None:
            return None
        known = _matrices.get(key)
        if known is None or known.state != state:
            known = await _read(reading, key, state, known)
            _matrices[key] = known
        _matrices.move_to_end(key)
        while sum(each.bytes for each in _matrices.values()) > _MOST_BYTES:
            _matrices.popitem(last=False)
        return known


async def _read(reading: Reading, key: Key, state: VectorState, before: Matrix | None) -> Matrix:
    branch_id, model_id, dim = key
    pointers = await reading.all(_POINTERS, branch_id=branch_id, model_id=model_id, dim=dim)
    hashes = dict.fromkeys(text_hash for _, _, text_hash, _ in pointers)
    # The vector of a text stays as it is.
    kept = [each for each in hashes if before is not None and each in before.by_hash]
    by_hash = {each: line for line, each in enumerate(kept)}
    parts = [before.lines[[before.by_hash[each] for each in kept]]] if before and kept else []
    missing = [each for each in hashes if each not in by_hash]
    for begin in range(0, len(missing), _AT_ONCE):
        rows = await reading.all(
            _VECTORS, model_id=model_id, dim=dim, hashes=missing[begin : begin + _AT_ONCE]
        )
        by_hash |= {text_hash: line for line, (text_hash, _) in enumerate(rows, len(by_hash))}
        parts.append(_received([sent for _, sent in rows], dim))
    if len(by_hash) < len(hashes):
        # A vector was swept: whoever syncs is to look at every row again.
        _synced.pop((branch_id, model_id), None)
    return await asyncio.to_thread(_joined, state, dim, pointers, by_hash, parts)


def _joined(
    state: VectorState,
    dim: int,
    pointers: Sequence[Any],
    by_hash: Mapping[str, int],
    parts: Sequence[Floats],
) -> Matrix:
    rows = sorted(
        (row_id, KINDS.index(kind), by_hash[text_hash], is_stale)
        for kind, row_id, text_hash, is_stale in pointers
        if text_hash in by_hash
    )
    return Matrix(
        state,
        np.array([kind for _, kind, _, _ in rows], dtype=np.int8),
        [row_id for row_id, _, _, _ in rows],
        np.array([line for _, _, line, _ in rows], dtype=np.intp),
        np.array([is_stale for _, _, _, is_stale in rows], dtype=np.bool_),
        np.concatenate(parts) if parts else np.zeros((0, dim), dtype=np.float32),
        by_hash,
    )


def _received(sent: Sequence[bytes], dim: int) -> Floats:
    form = np.dtype([("dim", ">i2"), ("unused", ">i2"), ("values", ">f4", (dim,))])
    values: Floats = np.frombuffer(b"".join(sent), form)["values"].astype(np.float32)
    return values
