"""B4: the rows of a branch that are nearest to a vector, by the services and by an HNSW index of
pgvector over all rows that is filtered to the branch; recall against an exact scan in memory.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.figures import ratios
from bench.stage import WARM_UP, Json, Say, Stage, milliseconds, staged
from db.enums import SearchKind, StoryStatus
from db.ids import new_id
from db.tables import Branch, Story
from services import embedding

Vectors = npt.NDArray[np.float32]

MODEL = "generated"
DEFINITION: Json = {
    "mode": "adventure",
    "leadEntityId": None,
    "narration": "third",
    "genre": {"label": "Sea mystery", "promptBody": "Fog, oil and letters."},
    "tone": {"label": "Dry", "promptBody": "Short sentences."},
    "setting": "An island whose light exists only in measurements.",
    "calendarSystemId": "earth-gregorian",
    "worldTimeOrigin": {},
}
# What is asked for, and of how many independent vectors.
NEAREST = 10
_ASKED = 50
# Of the vectors of the table, those that a branch has.
SHARES = (0.001, 0.01, 0.1, 1.0)
_CENTRES = 200
# The usual settings of the index.
_INDEX = (
    "CREATE INDEX bare_nearest ON bare USING hnsw (embedding vector_ip_ops) "
    "WITH (m = 16, ef_construction = 64)"
)
_BY_HAND = (
    "SELECT place FROM bare WHERE place < $2 ORDER BY embedding <#> $1::text::vector "
    f"LIMIT {NEAREST}"
)
_EF = (40, 100, 200)
_ITERATIVE = ("off", "strict_order", "relaxed_order")


@dataclass(frozen=True, slots=True)
class Cloud:
    """How many vectors of which dimension, and whether they lie around centres."""

    rows: int
    dim: int
    is_clustered: bool

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"{self.rows} x {self.dim}, {'clustered' if self.is_clustered else 'uniform'}"

    def drawn(self, asked: int, seed: int = 0) -> tuple[Vectors, Vectors]:
        """The vectors, and others that are asked for; all of length 1."""
        draw = np.random.default_rng(seed)
        given = draw.standard_normal((self.rows + asked, self.dim), dtype=np.float32)
        if self.is_clustered:
            centres = draw.standard_normal((_CENTRES, self.dim), dtype=np.float32)
            given = centres[draw.integers(0, _CENTRES, self.rows + asked)] + 0.7 * given
        given /= np.linalg.norm(given, axis=1, keepdims=True)
        return given[: self.rows], given[self.rows :]


CLOUDS = (
    Cloud(100_000, 384, is_clustered=True),
    Cloud(100_000, 384, is_clustered=False),
    Cloud(20_000, 64, is_clustered=True),
    Cloud(20_000, 64, is_clustered=False),
    Cloud(20_000, 768, is_clustered=True),
    Cloud(20_000, 768, is_clustered=False),
)


async def measure(
    dsn: str,
    rounds: int,
    say: Say,
    clouds: Sequence[Cloud] = CLOUDS,
    shares: Sequence[float] = SHARES,
    asked: int = _ASKED,
) -> Json:
    """B4, on a migrated database; the rounds are in the number of vectors that are asked for."""
    del rounds
    async with staged(dsn) as stage:
        return {
            "nearest": NEAREST,
            "asked": asked,
            "clouds": {each.name: await _cloud(stage, each, shares, asked, say) for each in clouds},
        }


async def _cloud(stage: Stage, cloud: Cloud, shares: Sequence[float], asked: int, say: Say) -> Json:
    say(f"B4, {cloud.name}")
    kept, queries = cloud.drawn(asked)
    texts = [f"{cloud.name} {number}" for number in range(cloud.rows)]
    await put_vectors(stage.bare, [hash_of(each) for each in texts], kept)
    await put_bare(stage.bare, kept)
    counts = {share: max(NEAREST, round(cloud.rows * share)) for share in shares}
    branches = {share: await put_branch(stage, texts[:count]) for share, count in counts.items()}
    await stage.bare.execute("VACUUM (ANALYZE) bare, vectors, embeddings, lore")
    bare = stage.bare
    found: Json = {}
    wanted = {share: exact(kept[:count], queries) for share, count in counts.items()}

    async def part(name: str, share: float, ask: Callable[[Any], Awaitable[list[int]]]) -> None:
        say(f"B4, {cloud.name}, {share:.1%}: {name}")
        figures = await _asked(ask, queries, wanted[share])
        found.setdefault(f"{share:.1%}", {})[name] = figures

    for share in shares:
        await part("services", share, partial(_by_services, stage, branches[share]))
        # Kept by place, as rows of a branch are by branch: no index of vectors is there yet.
        await part("exact", share, partial(by_hand, bare, counts[share]))
    await bare.execute("DROP INDEX bare_place")
    began = time.perf_counter()
    await bare.execute("SET maintenance_work_mem = '1GB'")
    await bare.execute(_INDEX)
    seconds = time.perf_counter() - began
    await bare.execute("SET enable_seqscan = off")
    for ef in _EF:
        await bare.execute(f"SET hnsw.ef_search = {ef}")
        for iterative in _ITERATIVE:
            await bare.execute(f"SET hnsw.iterative_scan = {iterative}")
            for share in shares:
                name = f"hnsw, ef {ef}, iterative {iterative.removesuffix('_order')}"
                await part(name, share, partial(by_hand, bare, counts[share]))
    size = await bare.fetchval("SELECT pg_relation_size('bare_nearest')")
    await bare.execute("RESET ALL")
    await bare.execute("DROP TABLE bare")
    await bare.execute("TRUNCATE vectors, embeddings, lore")
    return {
        "branches": {f"{share:.1%}": count for share, count in counts.items()},
        "index_seconds": round(seconds, 1),
        "index_mib": round(size / 2**20, 1),
        "shares": found,
        "index_against_services": {
            f"{share:.1%}": _fastest_fit(found[f"{share:.1%}"]) for share in shares
        },
    }


def _fastest_fit(parts: Json) -> Json | None:
    """The fastest index settings that find enough, and the services' time by theirs."""
    fit = {
        name: each["milliseconds"]["median"]
        for name, each in parts.items()
        if name.startswith("hnsw") and each["recall"] >= 0.95 and each["fewest_rows"] == NEAREST
    }
    if not fit:
        return None
    name = min(fit, key=lambda each: fit[each])
    ours = parts["services"]["milliseconds"]["median"]
    return {"name": name, **ratios("services_by_index", [ours], [fit[name]])}


def exact(kept: Vectors, queries: Vectors) -> list[set[int]]:
    """The places of the nearest of each."""
    return [set(np.argsort(-each)[:NEAREST].tolist()) for each in queries @ kept.T]


async def _asked(
    ask: Callable[[Any], Awaitable[list[int]]], queries: Vectors, wanted: Sequence[set[int]]
) -> Json:
    began = time.perf_counter()
    await ask(queries[0])
    first = time.perf_counter() - began
    for query in queries[:WARM_UP]:
        await ask(query)
    times, recalls, counts = [], [], []
    for query, right in zip(queries, wanted, strict=True):
        began = time.perf_counter()
        places = await ask(query)
        times.append(time.perf_counter() - began)
        recalls.append(len(right.intersection(places)) / len(right))
        counts.append(len(places))
    return {
        "recall": round(sum(recalls) / len(recalls), 4),
        "fewest_rows": min(counts),
        "first_milliseconds": round(first * 1e3, 3),
        "milliseconds": milliseconds(times),
    }


async def _by_services(stage: Stage, branch_id: str, query: Any) -> list[int]:
    async with stage.database.reading() as reading:
        nearest = await embedding.nearest_rows(
            reading, branch_id, MODEL, len(query), query.tolist(), [SearchKind.LORE], NEAREST
        )
    return [int(each.row_id.partition("_")[2]) for each in nearest]


async def by_hand(bare: Any, count: int, query: Any) -> list[int]:
    """The nearest of the first so many, by a bare statement."""
    return [each["place"] for each in await bare.fetch(_BY_HAND, literal(query), count)]


def literal(vector: Vectors) -> str:
    """A vector as PostgreSQL reads it."""
    return f"[{','.join(map(str, vector.tolist()))}]"


# What other workloads fill too


def hash_of(text: str) -> str:
    """The hash by which the vector of lore with this title and no body is kept."""
    return hashlib.md5(f"{text} ".encode(), usedforsecurity=False).hexdigest()


async def put_vectors(
    connection: Any, hashes: Sequence[str], vectors: Vectors, model_id: str = MODEL
) -> None:
    """Keep vectors of texts of these hashes, at once."""
    dim = vectors.shape[1]
    model = model_id.encode()
    await _copy(
        connection,
        "vectors",
        {
            "model_id": np.full(len(hashes), model, f"S{len(model)}"),
            "dim": np.full(len(hashes), dim, ">i4"),
            "text_hash": np.array(hashes, "S32"),
            "embedding": _sent(vectors),
        },
    )


async def put_bare(bare: Any, vectors: Vectors) -> None:
    """The same in a table of their own, by place, as one would keep them without branches."""
    dim = vectors.shape[1]
    await bare.execute(f"CREATE TABLE bare (place integer NOT NULL, embedding vector({dim}))")
    places = np.arange(len(vectors), dtype=">i4")
    await _copy(bare, "bare", {"place": places, "embedding": _sent(vectors)})
    await bare.execute("CREATE INDEX bare_place ON bare (place)")


def _sent(vectors: Vectors) -> npt.NDArray[Any]:
    """Vectors as pgvector has them in binary: how many values, nothing, and the values."""
    rows, dim = vectors.shape
    sent = np.zeros(rows, np.dtype([("dim", ">i2"), ("unused", ">i2"), ("values", ">f4", (dim,))]))
    sent["dim"] = dim
    sent["values"] = vectors
    return sent


_ROWS_PER_COPY = 20_000


async def _copy(connection: Any, table: str, columns: dict[str, npt.NDArray[Any]]) -> None:
    """Put columns of fixed width into a table in PostgreSQL's binary form."""
    fields: list[tuple[str, Any]] = [("count", ">i2")]
    for name, column in columns.items():
        fields += [(f"{name}_size", ">i4"), (name, column.dtype)]
    length = len(next(iter(columns.values())))
    for begin in range(0, length, _ROWS_PER_COPY):
        chunk = slice(begin, begin + _ROWS_PER_COPY)
        rows = np.zeros(len(range(length)[chunk]), np.dtype(fields))
        rows["count"] = len(columns)
        for name, column in columns.items():
            rows[f"{name}_size"] = column.dtype.itemsize
            rows[name] = column[chunk]

        async def source(rows: npt.NDArray[Any] = rows) -> Any:
            yield b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff"

        await connection.copy_to_table(
            table, columns=list(columns), source=source(), format="binary"
        )


async def put_branch(
    stage: Stage,
    texts: Sequence[str],
    model_id: str = MODEL,
    settings: Mapping[str, Any] | None = None,
) -> str:
    """A branch of a new story of the local user's that has these texts as the titles of its lore,
    all of which have vectors of a model already; its id.
    """
    branch_id = new_id("branches")
    async with stage.database.writing() as writing:
        story = await writing.insert(
            Story,
            owner_user_id=stage.viewer.user_id,
            title="Vectors",
            status=StoryStatus.ACTIVE,
            definition_json=DEFINITION,
            settings=dict(settings or {}),
            current_branch_id=branch_id,
        )
        await writing.insert(Branch, id=branch_id, story_id=story.id, name="Main")
    rows = [(branch_id, f"lore_{number}", text) for number, text in enumerate(texts)]
    await stage.bare.copy_records_to_table(
        "lore",
        columns=("branch_id", "id", "title", "body", "injection_mode", "embedding_stale"),
        records=[(*each, "", "auto", False) for each in rows],
    )
    await stage.bare.execute(
        "INSERT INTO embeddings (branch_id, id, target_kind, target_id, field, model_id, dim, "
        "source_hash) SELECT branch_id, 'evec_' || id, 'lore', id, 'text', v.model_id, v.dim, "
        "v.text_hash FROM lore JOIN vectors v ON v.model_id = $2 "
        "AND v.text_hash = md5(title || ' ' || body) WHERE branch_id = $1",
        branch_id,
        model_id,
    )
    return branch_id
