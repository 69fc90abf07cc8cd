"""The limits to measure stories against: the fewest statements that have the same effect on the
same tables, written by hand, by somebody who knows beforehand what will come of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from db.ids import new_id
from services.deltas import LOGGED, Image

# All that a branch has and that a fork has too.
TABLES = (*(str(each) for each in LOGGED), "deltas", "embeddings")
# What else belongs to a branch.
_OTHERS = ("redo_steps", "branch_events")

_COPY_BRANCH = """
INSERT INTO branches (id, story_id, name, classifier_status, head, head_floor, last_position)
SELECT $2, story_id, 'Copy', classifier_status, head, head_floor, last_position
FROM branches WHERE id = $1
"""


async def copy_branch(connection: Any, branch_id: str) -> tuple[str, int]:
    """Copy a branch as it is: the id of the copy, and how many rows were copied."""
    copy, rows = new_id("branches"), 0
    async with connection.transaction():
        await connection.execute(_COPY_BRANCH, branch_id, copy)
        for table in TABLES:
            listed = ", ".join(await _columns(connection, table))
            done = await connection.execute(
                f"INSERT INTO {table} (branch_id, {listed}) SELECT $2, {listed} FROM {table} "
                "WHERE branch_id = $1",
                branch_id,
                copy,
            )
            rows += _count(done)
    return copy, rows


@dataclass(slots=True)
class Effect:
    """What is to become of the rows of a branch, by table."""

    gone: dict[str, list[str]] = field(default_factory=dict)
    changed: dict[str, list[Image]] = field(default_factory=dict)
    back: dict[str, list[Image]] = field(default_factory=dict)
    head: int = 0


async def effect_between(connection: Any, before: str, after: str) -> Effect:
    """What makes the rows of one branch those of another, which was copied from it."""
    effect = Effect(
        head=await connection.fetchval("SELECT head FROM branches WHERE id = $1", after)
    )
    for table in TABLES:
        old, new = [await _images(connection, table, each) for each in (before, after)]
        effect.gone[table] = [each for each in old if each not in new]
        effect.back[table] = [new[each] for each in new if each not in old]
        effect.changed[table] = [
            new[each] for each in new if each in old and new[each] != old[each]
        ]
    return effect


async def apply_effect(
    connection: Any, branch_id: str, effect: Effect, *, warms_up: bool = False
) -> None:
    """Bring about an effect on a branch, a statement for each table and kind; with `warms_up`
    nothing comes of it.
    """
    transaction = connection.transaction()
    await transaction.start()
    try:
        for table in TABLES:
            if effect.gone[table]:
                await connection.execute(
                    f"DELETE FROM {table} WHERE branch_id = $1 AND id = ANY($2::text[])",
                    branch_id,
                    effect.gone[table],
                )
            if effect.changed[table]:
                columns = await _columns(connection, table)
                changed = ", ".join(f"{each} = r.{each}" for each in columns if each != "id")
                await connection.execute(
                    f"UPDATE {table} t SET {changed} "
                    f"FROM jsonb_populate_recordset(NULL::{table}, $2) r "
                    "WHERE t.branch_id = $1 AND t.id = r.id",
                    branch_id,
                    effect.changed[table],
                )
            if effect.back[table]:
                listed = ", ".join(await _columns(connection, table))
                await connection.execute(
                    f"INSERT INTO {table} (branch_id, {listed}) SELECT $1, {listed} "
                    f"FROM jsonb_populate_recordset(NULL::{table}, $2)",
                    branch_id,
                    effect.back[table],
                )
        await connection.execute(
            "UPDATE branches SET head = $2 WHERE id = $1", branch_id, effect.head
        )
    except BaseException:
        await transaction.rollback()
        raise
    if warms_up:
        await transaction.rollback()
    else:
        await transaction.commit()


# Which branch a row is in, and whether it is to be embedded; in payloads of deletes as well.
_NOT_COMPARED = 'br_[0-9a-f-]{36}|"embedding_stale": (true|false)'


async def digests(connection: Any, branch_id: str) -> dict[str, str]:
    """A digest of everything in each table of a branch, the same for equal branches. Embeddings and
    what follows from them are left out: a row that comes back is to be embedded again.
    """
    return {
        table: await connection.fetchval(
            "SELECT md5(string_agg(regexp_replace(to_jsonb(t)::text, $2, '', 'g'), '|' "
            f"ORDER BY id)) FROM {table} t WHERE branch_id = $1",
            branch_id,
            _NOT_COMPARED,
        )
        for table in TABLES
        if table != "embeddings"
    }


async def drop_branches(connection: Any, branch_ids: list[str]) -> None:
    """Delete branches with all that is in them, and give the space back."""
    for table in (*TABLES, *_OTHERS):
        await connection.execute(
            f"DELETE FROM {table} WHERE branch_id = ANY($1::text[])", branch_ids
        )
    await connection.execute("DELETE FROM branches WHERE id = ANY($1::text[])", branch_ids)
    await settle(connection)


async def settle(connection: Any) -> None:
    """Do now what the database would otherwise do while something is measured."""
    await connection.execute(f"VACUUM (ANALYZE) {', '.join((*TABLES, *_OTHERS, 'branches'))}")
    await connection.execute("CHECKPOINT")


_column_names: dict[str, list[str]] = {}


async def _columns(connection: Any, table: str) -> list[str]:
    """All columns but the branch."""
    if table not in _column_names:
        rows = await connection.fetch(
            "SELECT attname FROM pg_attribute "
            "WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped",
            table,
        )
        _column_names[table] = [row[0] for row in rows if row[0] != "branch_id"]
    return _column_names[table]


async def _images(connection: Any, table: str, branch_id: str) -> dict[str, Image]:
    rows = await connection.fetch(
        f"SELECT to_jsonb(t) - 'branch_id' FROM {table} t WHERE branch_id = $1", branch_id
    )
    return {row[0]["id"]: row[0] for row in rows}


def _count(done: str) -> int:
    return int(done.rpartition(" ")[2])
