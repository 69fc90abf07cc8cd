"""Measures: equal answers first, then rounds in which the servers take turns, then the sums.

Only what was measured in the same round is compared, so a neighbour on the machine disturbs both.
W1 and W2 are here, W3 is in `branch_pages`, W5 in `meaning`, W6 in `fan_out`, W9 in `first_token`,
W10 in `growth`; of stories, W7 and B6 are in `forking`, W8 and B7 in `reversing`, B10 in
`past_moments`, B2 in `leaks`, B3 in `awareness`; B4 is in `vectors`, B5 in `names`, W4 and B8 in
`walks`, B9 in `communities`.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import orjson

from bench import (
    awareness,
    branch_pages,
    communities,
    fan_out,
    first_token,
    forking,
    generator,
    growth,
    leaks,
    meaning,
    names,
    past_moments,
    reversing,
    vectors,
    walks,
)
from bench.load import CONNECTIONS, generator_name
from bench.servers import CONTENDERS, MIRRORGRAPH, Served, peer_packages, serving
from bench.turns import Say, in_rounds
from bench.workloads import WORKLOADS, Workload
from db.embedded import EmbeddedPostgres, start_embedded
from db.engine import open_database
from db.migrating import migrate

FOLDER = Path(__file__).resolve().parent
# Changes with the generator, so that databases of an older one are not measured.
_GENERATION = 1
_COUNTED_REQUESTS = 100
# Trees that are asked for in turn.
_TREES_ASKED = 50

# What is measured on an empty database of its own, by name.
_ON_EMPTY: dict[str, Callable[[str, int, Say], Awaitable[Any]]] = {
    "W3": branch_pages.measure,
    "W4": walks.measure,
    "W5": meaning.measure,
    "W6": fan_out.measure,
    "W7": forking.measure,
    "W8": reversing.measure,
    "W9": first_token.measure,
    "W10": growth.measure,
    "B2": leaks.measure,
    "B3": awareness.measure,
    "B4": vectors.measure,
    "B5": names.measure,
    "B6": forking.measure_grid,
    "B7": reversing.measure_turns,
    "B8": walks.measure_grid,
    "B9": communities.measure,
    "B10": past_moments.measure,
}
# All that can be measured, by name.
NAMES = (*(each.name for each in WORKLOADS), *_ON_EMPTY)


async def run(
    *,
    rounds: int,
    seconds: float,
    nodes: int,
    say: Say,
    only: Collection[str] = NAMES,
) -> Path:
    """Measure the workloads of these names; where the result was written.

    W1 and W2 are measured on `nodes` nodes, W10 up to as many rows; the others on an empty
    database.
    """
    result: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "load_generator": generator_name(),
        "connections": CONNECTIONS,
        "rounds": rounds,
        "seconds": seconds,
        "nodes": nodes,
    }
    if "W6" in only:
        await peer_packages()
    embedded = start_embedded(FOLDER / "work", exclusively=True)
    try:
        result["postgresql"] = await _version(embedded.dsn)
        workloads = result["workloads"] = {}
        if requests := [each for each in WORKLOADS if each.name in only]:
            await _requests(result, embedded, requests, say)
        sizes = (growth.BASE, nodes)
        parts = _ON_EMPTY | {"W10": partial(growth.measure, sizes=sizes)}
        for name, measured in parts.items():
            if name in only:
                async with _empty(embedded, name.lower()) as dsn:
                    workloads[name] = await measured(dsn, rounds, say)
    finally:
        embedded.stop()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = FOLDER / "results" / f"{stamp}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    return path


async def _requests(
    result: dict[str, Any],
    embedded: EmbeddedPostgres,
    requests: Sequence[Workload],
    say: Say,
) -> None:
    """Measure W1 and W2, as far as asked for, into the result."""
    rounds, seconds, nodes = result["rounds"], result["seconds"], result["nodes"]
    workloads = result["workloads"]
    dsn = await _prepared(embedded, nodes, say)
    trees = await _tree_ids(dsn)
    async with contextlib.AsyncExitStack() as running:
        servers = [
            await running.enter_async_context(serving(contender, dsn)) for contender in CONTENDERS
        ]
        await _check_equal(servers, trees)
        say("The answers of all servers are equal.")
        for workload in requests:
            measured = await in_rounds(
                servers, workload.name, workload.bodies(trees), rounds, seconds, say
            )
            summary = measured.summary()
            summary["response_bytes"] = await _response_bytes(servers[0], workload, trees[0])
            workloads[workload.name] = summary
        result["peak_memory_mib"] = {each.name: each.peak_memory() for each in servers}
    for workload in requests:
        count = await _statements(embedded, dsn, workload, trees[0])
        workloads[workload.name]["statements_per_request"] = count


@contextlib.asynccontextmanager
async def _empty(embedded: EmbeddedPostgres, purpose: str) -> AsyncIterator[str]:
    """A migrated database without rows while the block runs; what an earlier run left is gone."""
    name = f"bench_{purpose}"
    connection: Any = await asyncpg.connect(embedded.dsn)
    try:
        await connection.execute(f"DROP DATABASE IF EXISTS {name}")
        await connection.execute(f"CREATE DATABASE {name}")
        dsn = embedded.dsn.replace("/postgres?", f"/{name}?")
        await migrate(dsn)
        yield dsn
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


async def _prepared(embedded: EmbeddedPostgres, nodes: int, say: Say) -> str:
    """A database with so many nodes; one that an earlier run has filled is used again."""
    name = f"bench_{_GENERATION}_{nodes}"
    dsn = embedded.dsn.replace("/postgres?", f"/{name}?")
    connection: Any = await asyncpg.connect(embedded.dsn)
    try:
        if await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name):
            # Its comment is written last: without it the filling was cut off.
            sql = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1"
            if await connection.fetchval(sql, name) == "filled":
                await migrate(dsn)
                return dsn
            await connection.execute(f"DROP DATABASE {name}")
        await connection.execute(f"CREATE DATABASE {name}")
        await migrate(dsn)
        database = await open_database(dsn, pool_size=2, statement_timeout=600)
        try:
            # Makes the key that signs cursors too, which both servers read.
            await generator.fill(
                database, nodes, progress=lambda done: say(f"{done:,} of {nodes:,} nodes")
            )
        finally:
            await database.close()
        await connection.execute(f"COMMENT ON DATABASE {name} IS 'filled'")
    finally:
        await connection.close()
    return dsn


async def _tree_ids(dsn: str) -> list[str]:
    connection: Any = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(
            "SELECT id FROM mirror_trees ORDER BY md5(id) LIMIT $1", _TREES_ASKED
        )
        return [row["id"] for row in rows]
    finally:
        await connection.close()


async def _check_equal(servers: Sequence[Served], trees: Sequence[str]) -> None:
    for workload in WORKLOADS:
        for tree in trees:
            expected, *others = [await each.answer(workload.body(tree)) for each in servers]
            for server, answer in zip(servers[1:], others, strict=True):
                if answer != expected:
                    raise RuntimeError(
                        f"{servers[0].name} and {server.name} answer {workload.name} differently: "
                        f"{orjson.dumps(expected)[:500]!r} and {orjson.dumps(answer)[:500]!r}"
                    )


async def _response_bytes(server: Served, workload: Workload, tree: str) -> int:
    return len(orjson.dumps(await server.answer(workload.body(tree))))


async def _statements(
    embedded: EmbeddedPostgres, dsn: str, workload: Workload, tree: str
) -> float | None:
    """SQL statements of the server for one request, counted in the database's own log."""
    log = FOLDER / "work" / "postgres" / "log"
    async with _every_statement_logged(embedded, dsn), serving(MIRRORGRAPH, dsn) as server:
        # Statements are prepared once for each connection, and one request at a time needs one.
        await server.answer(workload.body(tree))
        begin = log.stat().st_size
        for _ in range(_COUNTED_REQUESTS):
            await server.answer(workload.body(tree))
        with log.open("rb") as lines:
            lines.seek(begin)
            count = sum(b"LOG:  execute " in line or b"LOG:  statement" in line for line in lines)
    return round(count / _COUNTED_REQUESTS, 1)


@contextlib.asynccontextmanager
async def _every_statement_logged(embedded: EmbeddedPostgres, dsn: str) -> AsyncIterator[None]:
    name = dsn.rpartition("/")[2] if "?" not in dsn else dsn.partition("?")[0].rpartition("/")[2]
    connection: Any = await asyncpg.connect(embedded.dsn)
    try:
        await connection.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")
        try:
            yield
        finally:
            await connection.execute(f"ALTER DATABASE {name} RESET log_statement")
    finally:
        await connection.close()


async def _version(dsn: str) -> str:
    connection: Any = await asyncpg.connect(dsn)
    try:
        return str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        # What others did on the machine just before.
        "load_average": round(os.getloadavg()[0], 2),
    }
