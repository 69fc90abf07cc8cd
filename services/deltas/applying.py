"""Writing what a way back does: to the rows of a branch, to its log, to its head.

Source: spec aventuras, a reversal takes its deltas with it; embedding_stale; trash-can pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import asyncpg
from sqlalchemy import (
    BigInteger,
    Boolean,
    Integer,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy import cast as as_type
from sqlmodel import col

from db.enums import DeltaSource, EntryKind, LoggedTable
from db.reading import Reading, Record, Statement, Writing, any_of, columns, param, statement
from db.tables import Branch, Delta, StoryEntry
from services.assets import settle_references
from services.deltas.embedding import content_hash, embedded_hashes, forget_embeddings
from services.deltas.logged import LOGGED, ORDER, STALE, Image
from services.deltas.reversing import Reversal
from services.deltas.rows import change_images, put_images, take_rows
from services.errors import Conflict
from services.shapes import same


@statement(Delta)
def _prune() -> Any:
    return delete(Delta).where(
        col(Delta.branch_id) == param("branch_id"), any_of(Delta.row_id, "ids")
    )


TAKEN = (
    "Something that was made since stands where a row would come back, and stays: take that away "
    "first."
)
# Many at once: a JSON object with a value for the id of each delta.
_PATCH: Statement[Any] = Statement(
    "UPDATE deltas AS d SET undo_payload = c.value FROM jsonb_each($2) AS c "
    "WHERE d.branch_id = $1 AND d.id = c.key",
    ("branch_id", "changed"),
    {},
    Record,
)
_REOWN: Statement[Any] = Statement(
    f"UPDATE deltas AS d SET source = '{DeltaSource.USER_EDIT}', entry_id = NULL, "
    "action_id = c.value #>> '{}' FROM jsonb_each($2) AS c "
    "WHERE d.branch_id = $1 AND d.id = c.key",
    ("branch_id", "changed"),
    {},
    Record,
)


@statement(StoryEntry)
def _notices() -> Any:
    return select(*columns(StoryEntry)).where(
        col(StoryEntry.branch_id) == param("branch_id"),
        col(StoryEntry.kind) == EntryKind.SYSTEM.value,
    )


@statement(Branch)
def _settle_head() -> Any:
    newest = (
        select(func.coalesce(func.max(col(Delta.log_position)), 0))
        .where(col(Delta.branch_id) == col(Branch.id))
        .scalar_subquery()
    )
    floor, lowest = col(Branch.head_floor), param("lowest", BigInteger())
    # Whether the log is now what it was when it last ended where it ends now.
    is_known = (lowest > floor) & or_(param("is_redo", Boolean()), lowest > newest)
    fresh = col(Branch.last_position) + 1
    return (
        update(Branch)
        .where(col(Branch.id) == param("branch_id"))
        .values(
            head=case((is_known, func.greatest(newest, floor)), else_=fresh),
            head_floor=case((is_known, floor), else_=fresh),
            last_position=case((is_known, col(Branch.last_position)), else_=fresh),
        )
        .returning(*columns(Branch))
    )


@statement(Branch)
def _clamp() -> Any:
    """One key of the status alone: a classifier may be writing the others."""
    known = as_type(
        func.coalesce(col(Branch.classifier_status).op("->>")("processedThrough"), "0"), BigInteger
    )
    lowest = func.least(known, func.greatest(param("position", Integer()), 0))
    mark = func.jsonb_build_object(literal_column("'processedThrough'"), lowest)
    changed = col(Branch.classifier_status).op("||")(mark)
    return (
        update(Branch).where(col(Branch.id) == param("branch_id")).values(classifier_status=changed)
    )


async def clamp_watermark(writing: Writing, branch_id: str, position: int) -> None:
    """Let the background read everything behind a position again. Never raises the mark; where
    nothing was read yet it stays at nothing.
    """
    await writing.run(_clamp(), branch_id=branch_id, position=position)


async def settle_head(
    writing: Writing, branch_id: str, lowest: int, *, is_redo: bool = False
) -> Branch:
    """Set the head after a way back that changed nothing in the log below a position; the branch.

    Where only the end of the log was taken off, or put on again, the head is that of the same log
    before. Otherwise the branch is what it never was, and gets a head that it never had.
    """
    branch = await writing.first(
        _settle_head(), branch_id=branch_id, lowest=lowest, is_redo=is_redo
    )
    assert branch is not None
    return branch


async def apply_reversal(writing: Writing, branch_id: str, reversal: Reversal) -> None:
    """Write rows and log. Raises Conflict (REVERSAL_BLOCKED) where what comes back would take the
    place of something that was made since and stays.
    """
    await apply_rows(writing, branch_id, reversal)
    await prune(writing, branch_id, reversal.pruned)
    await patch_log(writing, branch_id, reversal)


async def patch_log(writing: Writing, branch_id: str, reversal: Reversal) -> None:
    """Write what becomes of deltas that stay: of deletes that hold touched rows, of creates that a
    person's write keeps.
    """
    if reversal.payloads:
        await writing.run(_PATCH, branch_id=branch_id, changed=reversal.payloads)
    if reversal.reowned:
        await writing.run(_REOWN, branch_id=branch_id, changed=reversal.reowned)


async def prune(writing: Writing, branch_id: str, delta_ids: Collection[str]) -> None:
    """Take deltas out of the log."""
    if delta_ids:
        await writing.run(_prune(), branch_id=branch_id, ids=list(delta_ids))


async def apply_rows(
    writing: Writing,
    branch_id: str,
    reversal: Reversal,
) -> None:
    """Write the rows alone: what goes first, what changes next, what comes back last."""
    gone: dict[LoggedTable, list[str]] = {}
    changed: dict[LoggedTable, list[Image]] = {}
    changed_columns: dict[LoggedTable, set[str]] = {}
    back: dict[LoggedTable, list[Image]] = {}
    assets: set[str] = set()
    for (table, row_id), before, after in reversal.changed():
        logged = LOGGED[table]
        if table is LoggedTable.ENTRY_ASSETS:
            assets |= {row["asset_id"] for row in (before, after) if row is not None}
        if after is None:
            gone.setdefault(table, []).append(row_id)
        elif before is None:
            back.setdefault(table, []).append({**after, "branch_id": branch_id})
        elif any(not same(before[each], after[each]) for each in logged.unique):
            # Two rows may change places, and no moment between allows it.
            gone.setdefault(table, []).append(row_id)
            back.setdefault(table, []).append({**after, "branch_id": branch_id})
        else:
            changed.setdefault(table, []).append({**after, "branch_id": branch_id})
            changed_columns.setdefault(table, set()).update(
                each for each in after if not same(before.get(each), after[each])
            )
    entries = LoggedTable.STORY_ENTRIES
    if entries in gone or entries in back:
        reversal.notices = await take_notices(writing, branch_id)
    await _mark_stale(writing, branch_id, changed, changed_columns, back)
    try:
        for table in reversed(ORDER):
            await take_rows(writing, branch_id, table, gone.get(table, ()))
        for table in ORDER:
            columns_of = changed_columns.get(table, ())
            await change_images(writing, table, columns_of, changed.get(table, ()))
        for table in ORDER:
            await put_images(writing, table, back.get(table, ()))
    except asyncpg.UniqueViolationError:
        raise Conflict(TAKEN, "REVERSAL_BLOCKED") from None
    await _forget_vectors(writing, branch_id, gone, back)
    await settle_references(writing, assets)


async def take_notices(writing: Writing, branch_id: str) -> list[str]:
    """Take out the entry of kind system, if there is one: it is about an end of the story that is
    another one now, stands where the next entry belongs, and the log does not know it. Its id.
    """
    ids = [row.row_id for row in await writing.all(_notices(), branch_id=branch_id)]
    await take_rows(writing, branch_id, LoggedTable.STORY_ENTRIES, ids)
    return ids


async def _forget_vectors(
    writing: Writing,
    branch_id: str,
    gone: dict[LoggedTable, list[str]],
    back: dict[LoggedTable, list[Image]],
) -> None:
    kept = {row["id"] for rows in back.values() for row in rows}
    ids = [each for table, ids in gone.items() if LOGGED[table].embedded for each in ids]
    await forget_embeddings(writing, branch_id, [each for each in ids if each not in kept])


async def _mark_stale(
    writing: Writing,
    branch_id: str,
    changed: dict[LoggedTable, list[Image]],
    changed_columns: dict[LoggedTable, set[str]],
    back: dict[LoggedTable, list[Image]],
) -> None:
    """Say of each row whose text differs whether it is that which was embedded."""
    for table, logged in LOGGED.items():
        if not logged.embedded:
            continue
        rows = list(back.get(table, ()))
        if changed_columns.get(table, set()) & set(logged.embedded):
            rows += changed[table]
            changed_columns[table].add(STALE)
        await mark_stale(writing, branch_id, table, rows)


async def mark_stale(
    reading: Reading, branch_id: str, table: LoggedTable, rows: Sequence[Image]
) -> None:
    """Set in rows that are about to be written whether their text is still to be embedded."""
    if not LOGGED[table].embedded:
        return
    hashes = await embedded_hashes(reading, branch_id, [row["id"] for row in rows])
    for row in rows:
        row[STALE] = content_hash(table, row) not in hashes.get(row["id"], ())
