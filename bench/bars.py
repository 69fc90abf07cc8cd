"""What walks are measured against: bare statements over the ties of a world's or a branch's graph.

Ties of branches are in many tables and in states, so for them the statements have a table of their
own, made for the purpose: a bar that is lower than any over the tables themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import asyncpg

WORLD_TIES = """
    SELECT target_id AS far FROM world_relations WHERE source_id = {near}
    UNION ALL SELECT source_id FROM world_relations WHERE target_id = {near}
"""
# Goes out level by level, and comes to a node once in each.
_BY_LEVEL = """
    WITH RECURSIVE reached(id, distance) AS (
        SELECT $1::text, 0
        UNION
        SELECT ties.far, reached.distance + 1
        FROM reached CROSS JOIN LATERAL ({ties}) AS ties WHERE reached.distance < $2)
    SELECT id, min(distance) AS distance FROM reached
    GROUP BY id ORDER BY min(distance), id COLLATE "C" LIMIT $3
"""
# Goes along every path that comes to no node twice.
_BY_PATHS = """
    WITH RECURSIVE ways(id, path) AS (
        SELECT $1::text, ARRAY[$1::text]
        UNION ALL
        SELECT ties.far, ways.path || ties.far::text
        FROM ways CROSS JOIN LATERAL ({ties}) AS ties
        WHERE cardinality(ways.path) <= $2 AND ties.far <> ALL (ways.path))
    SELECT id, min(cardinality(path)) - 1 AS distance FROM ways
    GROUP BY id ORDER BY min(cardinality(path)), id COLLATE "C" LIMIT $3
"""
_ROWS = """
    SELECT found.distance, world_entities.*
    FROM ({found}) AS found JOIN world_entities USING (id)
    ORDER BY found.distance, id COLLATE "C"
"""
_AMONG = """
    SELECT * FROM world_relations
    WHERE source_id = ANY($1::text[]) AND target_id = ANY($1::text[])
    ORDER BY id COLLATE "C"
"""


@dataclass(frozen=True, slots=True)
class Bars:
    """The bare statements over ties that `ties` selects."""

    connection: Any
    ties: str

    async def by_level(
        self, start: str, depth: int, most: int, patience: float
    ) -> list[Any] | None:
        """The ids of the nodes around one with their distances, in that order; None where that
        takes more seconds than these.
        """
        return await self._run(_BY_LEVEL, "reached.id", start, depth, most, patience)

    async def by_paths(
        self, start: str, depth: int, most: int, patience: float
    ) -> list[Any] | None:
        """The same along all paths."""
        return await self._run(_BY_PATHS, "ways.id", start, depth, most, patience)

    async def neighbourhood(self, start: str, depth: int, most: int) -> tuple[list[Any], list[Any]]:
        """The rows of the entities around one of a world, and of the relations between them."""
        found = _BY_LEVEL.format(ties=self.ties.format(near="reached.id"))
        rows = await self.connection.fetch(_ROWS.format(found=found), start, depth, most)
        return rows, await self.connection.fetch(_AMONG, [row["id"] for row in rows])

    async def _run(
        self, sql: str, near: str, start: str, depth: int, most: int, patience: float
    ) -> list[Any] | None:
        await self.connection.execute(f"SET statement_timeout = '{patience}s'")
        try:
            ties = self.ties.format(near=near)
            rows: list[Any] = await self.connection.fetch(sql.format(ties=ties), start, depth, most)
            return rows
        except asyncpg.QueryCanceledError:
            return None
        finally:
            await self.connection.execute("RESET statement_timeout")


async def bars_of_branch(connection: Any, branch_id: str, pairs: Iterable[tuple[str, str]]) -> Bars:
    """Bars over these pairs of the names of nodes of a branch."""
    table = f"ties_{branch_id.partition('_')[2].replace('-', '_')}"
    await connection.execute(f"CREATE TABLE {table} (near text, far text)")
    both = [each for pair in pairs for each in (pair, pair[::-1])]
    await connection.copy_records_to_table(table, records=both)
    await connection.execute(f"CREATE INDEX ON {table} (near) INCLUDE (far)")
    await connection.execute(f"VACUUM ANALYZE {table}")
    return Bars(connection, f"SELECT far FROM {table} WHERE near = {{near}}")


def bars_of_worlds(connection: Any) -> Bars:
    """Bars over the relations of worlds."""
    return Bars(connection, WORLD_TIES)
