"""Forking: a new branch as its parent stood at an entry, with its log up to there.

Rows are copied by statements over whole tables; only rows that a way back touches go through
memory. Source: spec aventuras, branch model (branch-copy manifest).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import asyncpg

from db.enums import EntryKind, LoggedTable
from db.reading import Record, Statement, Writing
from db.tables import Branch, StoryEntry
from services.access import Viewer, require_row, row_id_in
from services.assets import settle_references
from services.deltas.applying import TAKEN, mark_stale, patch_log, settle_head
from services.deltas.closing import close
from services.deltas.logged import LOGGED
from services.deltas.reversing import MAX_POSITION, Reversal, compute
from services.deltas.rows import put_images
from services.deltas.selecting import cut_behind, deltas_behind
from services.errors import Conflict, Invalid, NotFound
from services.text import MAX_LINE, checked_text

# What a fork does with every table whose rows belong to a branch; one that is not here is a defect,
# which a test finds. Logged tables are copied, then taken back to the entry.
COPIED = (*(str(each) for each in LOGGED), "embeddings")
SEPARATELY = ("deltas",)
NOT_COPIED = ("redo_steps", "branch_events", "probe_captures")


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """How many rows of a table a fork has."""

    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Fork:
    """A new branch and what was copied into it."""

    branch: Branch
    copied: list[CopiedRows]


async def fork_branch(
    writing: Writing, viewer: Viewer, branch_id: str, at_entry_id: str, name: str
) -> Fork:
    """Make a branch of its own as the branch stood when an entry was its last.

    The transaction should see one state of the database throughout (repeatable read): the parent
    is not held, and its writers need not wait. Raises NotFound, Invalid (TEXT_…,
    NOT_IN_THE_STORY) and Conflict (HISTORY_INCOMPLETE, REVERSAL_BLOCKED).
    """
    checked_text(name, "input", "name", max_length=MAX_LINE)
    parent = await require_row(writing, viewer, Branch, branch_id, "input", "branchId")
    path = ("input", "atEntryId")
    row_id = row_id_in(parent.id, StoryEntry, at_entry_id, *path)
    entry = await require_row(writing, viewer, StoryEntry, f"{parent.id}:{row_id}", *path)
    if entry.kind == EntryKind.SYSTEM:
        raise Invalid(
            "This is a notice, not a part of the story: name an entry.", "NOT_IN_THE_STORY", path
        )
    reversal = await _rewinding(writing, parent.id, entry.position)
    read_through = int(parent.classifier_status.get("processedThrough", 0))
    try:
        branch = await writing.insert(
            Branch,
            story_id=parent.story_id,
            parent_branch_id=parent.id,
            fork_entry_id=entry.row_id,
            name=name,
            classifier_status={
                "state": "idle",
                "processedThrough": min(read_through, entry.position),
            },
            last_position=parent.last_position,
        )
    except asyncpg.ForeignKeyViolationError:
        # The branch or its story was deleted at this moment.
        raise NotFound("There is no such Branch for you.", path=("input", "branchId")) from None
    counts = {}
    try:
        for table in LOGGED:
            counts[str(table)] = await _copy(
                writing, parent.id, branch.id, table, entry.position, reversal
            )
    except asyncpg.UniqueViolationError:
        raise Conflict(TAKEN, "REVERSAL_BLOCKED") from None
    shown = LoggedTable.ENTRY_ASSETS
    links = [row for (table, _), row in reversal.after.items() if table is shown and row]
    await settle_references(writing, {row["asset_id"] for row in links})
    counts["embeddings"] = await writing.run(
        _COPY_EMBEDDINGS, parent_id=parent.id, branch_id=branch.id, gone=_gone(reversal)
    )
    counts["deltas"] = await _copy_log(writing, parent.id, branch.id, reversal)
    branch = await settle_head(writing, branch.id, MAX_POSITION)
    return Fork(branch, [CopiedRows(table, rows) for table, rows in counts.items()])


async def _rewinding(writing: Writing, parent_id: str, position: int) -> Reversal:
    """What takes the parent's rows back to an entry."""
    cut = await cut_behind(writing, parent_id, position)
    if cut is None:
        return Reversal()
    behind = await deltas_behind(writing, parent_id, cut)
    return await compute(writing, await close(writing, parent_id, behind))


def _gone(reversal: Reversal) -> list[str]:
    return [row_id for (_, row_id), after in reversal.after.items() if after is None]


async def _copy(
    writing: Writing,
    parent_id: str,
    branch_id: str,
    table: LoggedTable,
    position: int,
    reversal: Reversal,
) -> int:
    """Copy a table's rows but those that the way back touches, which follow from memory."""
    touched = [row_id for (name, row_id) in reversal.after if name is table]
    copied = await writing.run(
        _copying(table),
        parent_id=parent_id,
        branch_id=branch_id,
        touched=touched,
        position=position,
    )
    rewound = [
        {**after, "branch_id": branch_id}
        for (name, _), after in reversal.after.items()
        if name is table and after is not None
    ]
    if table is LoggedTable.STORY_ENTRIES:
        rewound = [row for row in rewound if row["position"] <= position]
    await mark_stale(writing, parent_id, table, rewound)
    await put_images(writing, table, rewound)
    return copied + len(rewound)


def _copying(table: LoggedTable) -> Statement[Any]:
    columns = [each for each in LOGGED[table].columns if each != "branch_id"]
    listed = ", ".join(columns)
    kept = ""
    if table is LoggedTable.STORY_ENTRIES:
        kept = " AND position <= $4"
    elif table is LoggedTable.ENTRY_ASSETS:
        entries = "SELECT id FROM story_entries WHERE branch_id = $2 AND position <= $4"
        kept = f" AND entry_id IN ({entries})"
    else:
        # The parameter has its type in every statement.
        kept = " AND $4::int IS NOT NULL"
    return _statement(
        f"INSERT INTO {table} (branch_id, {listed}) SELECT $1, {listed} FROM {table} "
        f"WHERE branch_id = $2 AND id <> ALL($3::text[]){kept}",
        "branch_id",
        "parent_id",
        "touched",
        "position",
    )


def _statement(sql: str, *names: str) -> Statement[Any]:
    return Statement(sql, names, {}, Record)


_COPY_EMBEDDINGS = _statement(
    "INSERT INTO embeddings (branch_id, id, target_kind, target_id, field, model_id, dim, "
    "source_hash, updated_at) SELECT $1, id, target_kind, target_id, field, model_id, dim, "
    "source_hash, updated_at FROM embeddings WHERE branch_id = $2 "
    "AND target_id <> ALL($3::text[])",
    "branch_id",
    "parent_id",
    "gone",
)
_DELTA_COLUMNS = (
    "id, entry_id, action_id, log_position, source, target_table, target_id, op, undo_payload, "
    "encoding_version, created_at"
)
_COPY_LOG = _statement(
    f"INSERT INTO deltas (branch_id, {_DELTA_COLUMNS}) SELECT $1, {_DELTA_COLUMNS} FROM deltas "
    "WHERE branch_id = $2 AND id <> ALL($3::text[])",
    "branch_id",
    "parent_id",
    "pruned",
)


async def _copy_log(writing: Writing, parent_id: str, branch_id: str, reversal: Reversal) -> int:
    copied = await writing.run(
        _COPY_LOG, parent_id=parent_id, branch_id=branch_id, pruned=list(reversal.pruned)
    )
    await patch_log(writing, branch_id, reversal)
    return copied
