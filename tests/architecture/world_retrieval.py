"""Captures for the database in which every relation leads to something."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sqlalchemy import LargeBinary, update
from sqlmodel import col

from db.enums import CaptureMode, SearchKind
from db.reading import Reading, Writing, param, statement
from db.tables import Lore, ProbeCapture
from services.access import Viewer
from services.retrieval.capturing import keep_capture
from services.retrieval.gathering import World, read_world
from services.retrieval.retrieving import Vector, queries_in, retrieve

_ALIKE: Vector = np.array([1, 0], dtype=np.float32)


class _AllAlike:
    """A model to which each lore says what each query does."""

    model_id = "alike"

    def __init__(self, world: World, queries: int) -> None:
        self._world = world
        self.vectors = [_ALIKE] * queries

    async def near(
        self, _reading: Reading, _branch_id: str, kind: SearchKind, limit: int
    ) -> list[list[tuple[str, float]]]:
        found = [(each, 1.0) for each in self._world.lore] if kind is SearchKind.LORE else []
        return [found[:limit] for _ in self.vectors]

    async def vectors_of(
        self, _reading: Reading, _branch_id: str, ids: Iterable[str]
    ) -> dict[str, Vector]:
        return dict.fromkeys(ids, _ALIKE)


@statement(ProbeCapture)
def _spoil() -> object:
    return (
        update(ProbeCapture)
        .where(col(ProbeCapture.row_id) == param("row_id"))
        .values(payload=param("payload", LargeBinary()))
    )


@statement(Lore)
def _embed() -> object:
    return (
        update(Lore).where(col(Lore.branch_id) == param("branch_id")).values(embedding_stale=False)
    )


async def make_captures(writing: Writing, owner: Viewer, branch_id: str) -> None:
    """Some that can be read, and one that cannot."""
    await writing.run(_embed(), branch_id=branch_id)
    world = await read_world(writing, owner, branch_id)
    queries = queries_in(world, "I look around.")
    found = await retrieve(
        writing, owner, world, "I look around.", queries, _AllAlike(world, len(queries))
    )
    assert any(pool.ranked for pool in found.pools)
    for _ in range(2):
        await keep_capture(writing, owner, found, CaptureMode.DEEP)
    spoilt = await keep_capture(writing, owner, found, CaptureMode.LIGHT)
    await writing.run(_spoil(), row_id=spoilt.row_id, payload=b"")
