"""The nearest rows by what the server remembers of a branch, against an exact scan in SQL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.reading import Record, Statement
from services import deltas, embedding
from services.deltas import VectorState
from services.embedding import remembered
from services.embedding.remembered import KINDS, Matrix
from tests.conftest import People
from tests.services.embedding.worlds import Shelf, shelf

# What a database without any memory says. Written anew: nothing of the server's own is used.
ORACLE: Statement[Any] = Statement(
    "SELECT id, near FROM (SELECT e.target_id AS id, -(v.embedding <#> $3::text::vector) AS near "
    "FROM embeddings e JOIN vectors v ON v.model_id = e.model_id AND v.dim = e.dim "
    "AND v.text_hash = e.source_hash JOIN entities r ON r.branch_id = e.branch_id "
    "AND r.id = e.target_id AND NOT r.embedding_stale "
    "WHERE e.branch_id = $1 AND e.model_id = $2) t "
    'ORDER BY round(near::numeric, 6) DESC, id COLLATE "C"',
    ("branch_id", "model_id", "vector"),
    {},
    Record,
)
UNIT = [1.0, 0.0, 0.0]


async def check(one: Shelf, branch_id: str | None = None, limit: int = 3) -> list[str]:
    """The nearest rows are those of the oracle, whatever the limit; their ids."""
    branch_id = branch_id or one.branch.id
    embedder = await one.embedder(branch_id)
    (question,) = await embedder.embed(["annab "], is_query=True)
    async with one.database.reading() as reading:
        expected = [
            (row.id, pytest.approx(row.near, abs=2e-6))
            for row in await reading.all(
                ORACLE,
                branch_id=branch_id,
                model_id=embedder.model_id,
                vector=f"[{','.join(map(str, question))}]",
            )
        ]
        for most in (0, 1, limit, 2**31 - 1):
            found = await embedding.nearest_rows(
                reading,
                branch_id,
                embedder.model_id,
                26,
                question,
                list(embedding.KINDS),
                most,
            )
            assert [(each.row_id, each.similarity) for each in found] == expected[:most]
    return [each for each, _ in expected]


async def test_no_change_of_a_branch_leaves_what_is_remembered_behind(
    database: Database, people: People
) -> None:
    """Rules Y4, Y7, Y15."""
    async with shelf(database, people) as one:
        rows = {name: (await one.write(name))["id"] for name in ("anna", "annab", "zz", "abba")}
        await one.sync()
        assert len(await check(one)) == 4
        await one.change(rows["zz"], name="annabb")
        assert len(await check(one)) == 3
        await one.sync()
        assert len(await check(one)) == 4
        await one.delete(rows["annab"])
        assert len(await check(one)) == 3
        await one.undo()
        await one.sync()
        assert len(await check(one)) == 4
        twin = (await one.write("bnaan"))["id"]
        assert twin not in await check(one)
        await one.sync()
        assert twin in await check(one)
        async with database.writing() as writing:
            entry = await one.value(
                "SELECT id FROM story_entries WHERE branch_id = $1", one.branch.id
            )
            fork = await deltas.fork_branch(writing, one.viewer, one.branch.id, entry, "Fork")
        await one.sync(fork.branch.id)
        assert await check(one, fork.branch.id) == await check(one)
        await one.value("UPDATE embeddings SET model_id = 'other'")
        async with database.writing() as writing:
            await deltas.forget_models(writing, [one.branch.id], "other")
        assert await check(one) == []
        assert (await one.sync(), len(await check(one))) == (5, 5)


async def test_a_branch_that_is_up_to_date_is_not_looked_through_again(
    database: Database, people: People
) -> None:
    """Rule Y16."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.sync()
        async with database.reading() as reading:
            state = await deltas.vector_state(reading, one.branch.id)
        assert remembered.is_synced(one.branch.id, one.model_id, state)
        assert not remembered.is_synced(one.branch.id, "other", state)
        await one.write("Odo")
        async with database.reading() as reading:
            later = await deltas.vector_state(reading, one.branch.id)
        assert later != state
        assert not remembered.is_synced(one.branch.id, one.model_id, later)


async def test_a_vector_that_was_lost_is_noticed_when_the_branch_is_read(
    database: Database, people: People
) -> None:
    """Rules Y6, Y16."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.write("Odo")
        await one.sync()
        hashes = list((await one.pointers()).values())
        await one.value("DELETE FROM vectors WHERE text_hash = $1", hashes[0])
        assert await one.sync() == 0
        assert len(await check(one)) == 1
        assert (await one.sync(), len(await check(one))) == (1, 2)


async def test_only_so_much_is_remembered(
    database: Database, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule Y15."""
    async with shelf(database, people) as one:
        await one.write("Mira")
        await one.sync()
        key = (one.branch.id, one.model_id, 26)
        assert len(await check(one)) == 1
        assert key in remembered._matrices
        monkeypatch.setattr(remembered, "_MOST_BYTES", 10)
        assert len(await check(one)) == 1
        assert key not in remembered._matrices
        async with database.reading() as reading:
            gone = await embedding.nearest_rows(
                reading, "br_gone", one.model_id, 3, UNIT, list(embedding.KINDS), 5
            )
        assert gone == []


ROWS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 4), st.booleans()), max_size=30)


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sets(st.sampled_from(KINDS)), st.integers(0, 35), st.booleans())
def test_a_matrix_finds_what_sorting_everything_finds(
    rows: list[tuple[str, int, bool]], kinds: set[str], limit: int, exclude_stale: bool
) -> None:
    """Rule Y7."""
    # Five vectors, two of which are as near as each other.
    lines = np.array([[1, 0], [0.6, 0.8], [0.6, -0.8], [0, 1], [-1, 0]], dtype=np.float32)
    matrix = Matrix(
        VectorState(1, 1),
        np.array([KINDS.index(kind) for kind, _, _ in rows], dtype=np.int8),
        [f"id{number:02}" for number in range(len(rows))],
        np.array([line for _, line, _ in rows], dtype=np.intp),
        np.array([stale for _, _, stale in rows], dtype=np.bool_),
        lines,
        {},
    )
    expected = sorted(
        (-float(lines[line][0]), f"id{number:02}", kind)
        for number, (kind, line, stale) in enumerate(rows)
        if kind in kinds and not (stale and exclude_stale)
    )
    question = np.array([1, 0], dtype=np.float32)
    found = matrix.nearest(question, kinds, limit, exclude_stale=exclude_stale)
    assert [(kind, row_id) for kind, row_id, _ in found] == [
        (kind, row_id) for _, row_id, kind in expected[:limit]
    ]
    assert [near for _, _, near in found] == pytest.approx(
        [-near for near, _, _ in expected[:limit]], abs=1e-6
    )
