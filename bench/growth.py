"""W10: how much longer W1, W3 and W5 take where there are many more rows, of others."""

from __future__ import annotations

import contextlib
import re
import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import asyncpg
from aiohttp import ClientSession

from bench import bare_sql, branch_pages, generator, meaning
from bench.meaning import Searched
from bench.servers import MIRRORGRAPH, serving
from bench.shapes import Shape
from bench.stage import Json, Say, Stage, in_turn, milliseconds, seconds, staged
from bench.vectors import Cloud
from bench.workloads import W1, W3

# What the larger sizes are compared with.
BASE = 1_000
SIZES = (BASE, 100_000)
# A branch of about a thousand rows.
_SHAPE = Shape(70, characters=17)
_DIM = 384
_VECTORS_OF_BRANCH = 1_000
_VECTORS_AT_ONCE = 100_000
# Trees, or branches, that are asked for in turn.
_ASKED = 20

# The requests of each workload.
Bodies = dict[str, list[bytes]]
# The address of a server, and what is asked there.
Asked = tuple[str, Bodies]


async def measure(
    dsn: str,
    rounds: int,
    say: Say,
    sizes: Sequence[int] = SIZES,
) -> Json:
    """W10, beside a migrated database: nodes for W1, rows of branches for W3 and rows with vectors
    for W5, so many of each. The first size is what the others are compared with.
    """
    queries = _cloud(1).drawn(_ASKED)[1]
    async with meaning.embedding_provider(queries) as url, contextlib.AsyncExitStack() as running:
        asked: dict[int, Asked] = {}
        for size in sizes:
            say(f"W10, {size:,} rows")
            own = await running.enter_async_context(_copied(dsn, size))
            async with staged(own) as stage:
                bodies = await fill(stage, url, size)
            server = await running.enter_async_context(serving(MIRRORGRAPH, own))
            asked[size] = (server.url, bodies)
        return {name: await _workload(name, asked, rounds, say) for name in ("W1", "W3", "W5")}


async def _workload(name: str, asked: Mapping[int, Asked], rounds: int, say: Say) -> Json:
    """Ask all sizes in turn, request by request; the first round is to warm up."""
    times: dict[int, list[float]] = {size: [] for size in asked}
    async with ClientSession() as session:
        for number in range(rounds + 1):
            say(f"growth of {name}, round {number} of {rounds}")
            for place in range(_ASKED):
                for size, (address, bodies) in in_turn(place, *asked.items()):
                    body = bodies[name][place % len(bodies[name])]
                    took = await seconds(_answered(session, address, body))
                    if number:
                        times[size].append(took)
    base, *larger = asked
    medians = {size: statistics.median(each) for size, each in times.items()}
    return {
        "milliseconds": {str(size): milliseconds(each) for size, each in times.items()},
        "latency": {str(size): round(medians[size] / medians[base], 3) for size in larger},
    }


async def _answered(session: ClientSession, address: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    async with session.post(address, data=body, headers=headers) as response:
        answer = await response.read()
    if response.status != 200 or b'"errors":' in answer[:100]:
        raise RuntimeError(f"W10 was answered with {answer[:500]!r}")


@contextlib.asynccontextmanager
async def _copied(dsn: str, size: int) -> AsyncIterator[str]:
    """A copy of a database that nobody uses."""
    found = re.search(r"/(\w+)\?", dsn)
    assert found is not None
    name = f"{found[1]}_{size}"
    connection: Any = await asyncpg.connect(dsn.replace(found[0], "/postgres?"))
    try:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {found[1]}")
        yield dsn.replace(found[0], f"/{name}?")
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


async def fill(stage: Stage, url: str, size: int) -> Bodies:
    """Fill a database; what is asked of it."""
    await generator.fill(stage.database, size)
    trees = await stage.bare.fetch("SELECT id FROM mirror_trees ORDER BY md5(id) LIMIT $1", _ASKED)
    pages = await _put_branches(stage, size)
    provider_id = await meaning.make_provider(stage, url)
    branches: list[str] = []
    for begin in range(0, size, _VECTORS_AT_ONCE):
        count = min(_VECTORS_AT_ONCE, size - begin)
        kept, _ = _cloud(count).drawn(0, seed=begin)
        parts = [
            slice(start, start + _VECTORS_OF_BRANCH)
            for start in range(0, count, _VECTORS_OF_BRANCH)
        ]
        branches += await meaning.fill(stage, provider_id, kept, parts, seed=begin)
    await stage.bare.execute("VACUUM (ANALYZE) vectors, embeddings, lore")
    texts = meaning.questions(_ASKED)
    step = max(1, len(branches) // _ASKED)
    searches = [
        Searched(branches[place * step % len(branches)], texts).body(place)
        for place in range(_ASKED)
    ]
    return {"W1": W1.bodies([row["id"] for row in trees]), "W3": pages, "W5": searches}


async def _put_branches(stage: Stage, size: int) -> list[bytes]:
    story = await stage.tell(_SHAPE)
    await branch_pages.embellish(stage, story.branch_id)
    branches = [story.branch_id]
    rows = story.rows
    while rows + story.rows <= size:
        branch_id, copied = await bare_sql.copy_branch(stage.bare, story.branch_id)
        branches.append(branch_id)
        rows += copied
    await stage.bare.execute("VACUUM (ANALYZE)")
    step = max(1, len(branches) // _ASKED)
    return [W3.body(each) for each in branches[::step][:_ASKED]]


def _cloud(rows: int) -> Cloud:
    return Cloud(rows, _DIM, is_clustered=True)
