"""Undo, redo and rollback of a branch.

Source: spec aventuras, user-facing undo; survival anchor; reverse-replay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import Integer, delete, func, select
from sqlmodel import col

from db.enums import BranchEventKind, DeltaOp, DeltaSource, EntryKind, LoggedTable
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Branch, Delta, RedoStep, StoryEntry
from services.access import Viewer, require_row, row_id_in
from services.deltas.applying import (
    apply_reversal,
    apply_rows,
    clamp_watermark,
    settle_head,
)
from services.deltas.closing import Closed, close, held_rows
from services.deltas.events import note_event
from services.deltas.logged import LOGGED, Image
from services.deltas.reversing import Reversal, RowKey, compute, restored
from services.deltas.rows import images_by_ids, take_rows
from services.deltas.selecting import (
    BACKGROUND,
    cut_behind,
    deltas_behind,
    deltas_of_action,
    facts_about,
    newest_undoable,
)
from services.deltas.writing import forget_redo, hold_branch
from services.errors import Conflict, Invalid

# The key of a content edit's payload: which entries' facts it took back, and how far the text was
# still read. Undoing the edit does the same again, whatever the tail is by then.
INVALIDATION = "$invalidationScope"


@dataclass(frozen=True, slots=True)
class ReversedChange:
    """One change that was taken back."""

    table: str
    op: str
    row_id: str


@dataclass(frozen=True, slots=True)
class ReversedAction:
    """What was done together and was taken back, newest change first."""

    action_id: str
    source: str
    changes: list[ReversedChange]


@dataclass(frozen=True, slots=True)
class RollbackWarning:
    """Something worth knowing before a rollback."""

    code: str
    message: str


@dataclass(slots=True)
class Outcome:
    """A branch after a way back, and what was taken back: newest first. Of very many changes of one
    action the first are listed.
    """

    branch: Branch
    reversed: list[ReversedAction] = field(default_factory=list)
    warnings: list[RollbackWarning] = field(default_factory=list)


# The most changes that are listed of one action.
MAX_LISTED = 200


async def undo_branch(
    writing: Writing, viewer: Viewer, branch_id: str, *, expected_head: int | None = None
) -> Outcome:
    """Take back the newest action that is a person's or a turn's. A turn goes with everything that
    came of it. Where there is nothing to undo, nothing happens.

    Raises NotFound, Conflict (CONFLICT with the head, REVERSAL_BLOCKED, UNDO_BLOCKED).
    """
    branch = await hold_branch(
        writing, viewer, branch_id, "input", "branchId", expected_head=expected_head
    )
    action_id = await newest_undoable(writing, branch.id)
    if action_id is None:
        return Outcome(branch)
    group = await deltas_of_action(writing, branch.id, action_id)
    returning = await close(writing, branch.id, group)
    first_entry = await _first_made(writing, branch.id, group)
    clamps_to: int | None
    if first_entry is not None:
        cut = await cut_behind(writing, branch.id, first_entry - 1)
        assert cut is not None
        swept = await deltas_behind(writing, branch.id, cut)
        closed = await close(writing, branch.id, [*swept, *returning.deltas.values()])
        clamps_to = first_entry - 1
    else:
        closed, clamps_to = await _with_facts(writing, branch.id, group, returning)
    reversal = await compute(writing, closed)
    if reversal.without_return & returning.deltas.keys():
        raise Conflict(
            "This cannot be undone in a way that could be redone: roll back instead.",
            "UNDO_BLOCKED",
        )
    await apply_reversal(writing, branch.id, reversal)
    if clamps_to is not None:
        await clamp_watermark(writing, branch.id, clamps_to)
    await _keep_step(writing, branch.id, action_id, returning, reversal)
    branch = await settle_head(writing, branch.id)
    await _tell(writing, branch, BranchEventKind.UNDO, action_id, group, closed)
    return Outcome(branch, reversed_actions(closed.newest_first))


async def _with_facts(
    writing: Writing, branch_id: str, group: Sequence[Delta], returning: Closed
) -> tuple[Closed, int | None]:
    """Undoing an edit of a text takes back what was said of that text since, as the edit did."""
    facts: list[Delta] = []
    clamps_to: int | None = None
    for delta in group:
        scope = (delta.undo_payload or {}).get(INVALIDATION)
        if scope is not None:
            facts += await facts_about(writing, branch_id, scope["entryIds"])
            through = scope["processedThrough"]
            clamps_to = through if clamps_to is None else min(clamps_to, through)
    if not facts:
        return returning, clamps_to
    swept = await close(writing, branch_id, facts, spares_entities=True)
    both = [*swept.deltas.values(), *returning.deltas.values()]
    closed = await close(writing, branch_id, both)
    return closed, clamps_to


@statement(StoryEntry)
def _first_position() -> Any:
    return select(func.min(col(StoryEntry.position))).where(
        col(StoryEntry.branch_id) == param("branch_id"), any_of(StoryEntry.row_id, "ids")
    )


async def _first_made(reading: Reading, branch_id: str, group: Sequence[Delta]) -> int | None:
    """The position of the earliest entry that an action made; None where it made none."""
    made = [
        each.target_id
        for each in group
        if each.op == DeltaOp.CREATE and each.target_table == LoggedTable.STORY_ENTRIES
    ]
    if not made:
        return None
    position: int | None = await reading.value(_first_position(), branch_id=branch_id, ids=made)
    return position


async def roll_back_branch(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    keep_entry_id: str,
    *,
    is_dry_run: bool = False,
    expected_head: int | None = None,
) -> Outcome:
    """Take back everything behind an entry, which becomes the last one; with `is_dry_run` only say
    what that would be. What cannot be undone any more is said in warnings, never refused.

    Raises NotFound, Invalid (NOT_IN_THE_STORY), Conflict (CONFLICT with the head,
    REVERSAL_BLOCKED).
    """
    branch = await hold_branch(
        writing, viewer, branch_id, "input", "branchId", expected_head=expected_head
    )
    path = ("input", "keepEntryId")
    row_id = row_id_in(branch.id, StoryEntry, keep_entry_id, *path)
    entry = await require_row(writing, viewer, StoryEntry, f"{branch.id}:{row_id}", *path)
    if entry.kind == EntryKind.SYSTEM:
        raise Invalid(
            "This is a notice, not a part of the story: name an entry.", "NOT_IN_THE_STORY", path
        )
    cut = await cut_behind(writing, branch.id, entry.position)
    if cut is None:
        return Outcome(branch)
    closed = await close(writing, branch.id, await deltas_behind(writing, branch.id, cut))
    reversal = await compute(writing, closed)
    outcome = Outcome(branch, reversed_actions(closed.newest_first), _warnings(closed))
    if is_dry_run:
        return outcome
    await _take_notices(writing, branch.id)
    await apply_reversal(writing, branch.id, reversal)
    await clamp_watermark(writing, branch.id, entry.position)
    await forget_redo(writing, branch.id)
    outcome.branch = await settle_head(writing, branch.id)
    await _tell(writing, outcome.branch, BranchEventKind.ROLLBACK, None, (), closed)
    return outcome


def _warnings(closed: Closed) -> list[RollbackWarning]:
    made = [each for each in closed.deltas.values() if each.op == DeltaOp.CREATE]
    chapters = sum(each.target_table == LoggedTable.CHAPTERS for each in made)
    edits = {
        each.action_id
        for each in closed.deltas.values()
        if each.source == DeltaSource.USER_EDIT and each.entry_id is None
    }
    warnings = []
    if chapters:
        warnings.append(
            RollbackWarning(
                "CHAPTERS_REOPENED", f"This takes back the closing of chapters: {chapters}."
            )
        )
    if edits:
        warnings.append(
            RollbackWarning(
                "WORLD_EDITS_LOST",
                f"This takes back changes that people made to the world since: {len(edits)}.",
            )
        )
    return warnings


@statement(StoryEntry)
def _notices() -> Any:
    return select(*columns(StoryEntry)).where(
        col(StoryEntry.branch_id) == param("branch_id"),
        col(StoryEntry.kind) == EntryKind.SYSTEM.value,
    )


async def _take_notices(writing: Writing, branch_id: str) -> None:
    """Entries of kind system are about a tail that goes; the log does not know them."""
    rows = await writing.all(_notices(), branch_id=branch_id)
    await take_rows(writing, branch_id, LoggedTable.STORY_ENTRIES, [row.row_id for row in rows])


# --- redo ---


@statement(RedoStep)
def _newest_step() -> Any:
    return (
        select(*columns(RedoStep))
        .where(col(RedoStep.branch_id) == param("branch_id"))
        .order_by(col(RedoStep.number).desc())
        .limit(1)
    )


@statement(RedoStep)
def _drop_step() -> Any:
    return delete(RedoStep).where(
        col(RedoStep.branch_id) == param("branch_id"),
        col(RedoStep.number) == param("number", Integer()),
    )


async def _keep_step(
    writing: Writing, branch_id: str, action_id: str, returning: Closed, reversal: Reversal
) -> None:
    """Keep what it takes to do an undone action again, oldest change first."""
    newest = await writing.first(_newest_step(), branch_id=branch_id)
    kept = [
        {
            **{
                name: getattr(each, name)
                for name in (
                    "row_id",
                    "entry_id",
                    "action_id",
                    "log_position",
                    "source",
                    "target_table",
                    "target_id",
                    "op",
                    "undo_payload",
                    "encoding_version",
                )
            },
            "created_at": each.created_at.isoformat(),
            "forward": reversal.forwards.get(each.row_id),
        }
        for each in reversed(returning.newest_first)
    ]
    await writing.insert(
        RedoStep,
        branch_id=branch_id,
        number=newest.number + 1 if newest is not None else 1,
        action_id=action_id,
        deltas=kept,
    )


async def redo_branch(
    writing: Writing, viewer: Viewer, branch_id: str, *, expected_head: int | None = None
) -> Outcome:
    """Do again what was undone last, each change in the place of the log that it had. Where there
    is nothing to redo, nothing happens.

    Raises NotFound, Conflict (CONFLICT with the head, REVERSAL_BLOCKED).
    """
    branch = await hold_branch(
        writing, viewer, branch_id, "input", "branchId", expected_head=expected_head
    )
    step = await writing.first(_newest_step(), branch_id=branch.id)
    if step is None:
        return Outcome(branch)
    await _take_notices_before(writing, branch.id, step.deltas)
    reversal = await _done_again(writing, branch.id, step.deltas)
    await apply_rows(writing, branch.id, reversal)
    try:
        await writing.insert_many(Delta, [_stored_again(branch.id, each) for each in step.deltas])
    except asyncpg.UniqueViolationError:
        raise Conflict("The log has gone on since this was undone.", "REVERSAL_BLOCKED") from None
    await writing.run(_drop_step(), branch_id=branch.id, number=step.number)
    for each in step.deltas:
        scope = (each["undo_payload"] or {}).get(INVALIDATION)
        if scope is not None:
            await clamp_watermark(writing, branch.id, scope["processedThrough"])
    branch = await settle_head(writing, branch.id)
    own = next(each for each in step.deltas if each["action_id"] == step.action_id)
    await note_event(
        writing,
        branch,
        BranchEventKind.REDO,
        action_id=step.action_id,
        source=own["source"],
        head=branch.head,
        changes=[(each["target_table"], each["op"], each["target_id"]) for each in step.deltas],
    )
    return Outcome(branch)


def _stored_again(branch_id: str, kept: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in kept.items() if name != "forward"}
    values["created_at"] = datetime.fromisoformat(values["created_at"])
    return {**values, "branch_id": branch_id}


async def _take_notices_before(
    writing: Writing, branch_id: str, kept: Iterable[Mapping[str, Any]]
) -> None:
    """A notice stands where an entry that comes back has its place."""
    if any(
        each["target_table"] == LoggedTable.STORY_ENTRIES and each["op"] == DeltaOp.CREATE
        for each in kept
    ):
        await _take_notices(writing, branch_id)


async def _done_again(
    reading: Reading, branch_id: str, kept: Sequence[Mapping[str, Any]]
) -> Reversal:
    """The rows as they are once the kept changes are done again, oldest first."""
    wanted: dict[LoggedTable, set[str]] = {}
    for each in kept:
        wanted.setdefault(LoggedTable(each["target_table"]), set()).add(each["target_id"])
    rows: dict[RowKey, Image | None] = {}
    for table, ids in wanted.items():
        found = await images_by_ids(reading, branch_id, table, ids)
        rows.update({(table, row_id): image for row_id, image in found.items()})
    reversal = Reversal(before=dict(rows))
    for each in kept:
        key = (LoggedTable(each["target_table"]), each["target_id"])
        forward, row = each["forward"], rows.get(key)
        if each["op"] == DeltaOp.CREATE:
            rows[key] = forward
        elif each["op"] == DeltaOp.DELETE:
            await _delete_again(reading, branch_id, each, rows, reversal)
        elif row is not None:
            rows[key] = restored(LOGGED[key[0]], row, forward or {})
    reversal.after = rows
    return reversal


async def _delete_again(
    reading: Reading,
    branch_id: str,
    kept: Mapping[str, Any],
    rows: dict[RowKey, Image | None],
    reversal: Reversal,
) -> None:
    held = Delta(**_stored_again(branch_id, kept))
    for table, row in held_rows(held):
        key = (table, row["id"])
        if key not in rows:
            found = await images_by_ids(reading, branch_id, table, [row["id"]])
            reversal.before[key] = found.get(row["id"])
        rows[key] = None


# --- telling ---


def reversed_actions(deltas: Sequence[Delta]) -> list[ReversedAction]:
    """What was taken back, by action; in the order given."""
    found: dict[str, ReversedAction] = {}
    for each in deltas:
        action = found.setdefault(each.action_id, ReversedAction(each.action_id, each.source, []))
        if len(action.changes) < MAX_LISTED:
            action.changes.append(
                ReversedChange(each.target_table, each.op, f"{each.branch_id}:{each.target_id}")
            )
    return list(found.values())


async def _tell(
    writing: Writing,
    branch: Branch,
    kind: BranchEventKind,
    action_id: str | None,
    group: Sequence[Delta],
    closed: Closed,
) -> None:
    sources: Collection[str] = {each.source for each in group if each.source != BACKGROUND}
    await note_event(
        writing,
        branch,
        kind,
        action_id=action_id,
        source=DeltaSource(next(iter(sources))) if len(sources) == 1 else None,
        head=branch.head,
        changes=[(each.target_table, each.op, each.target_id) for each in closed.newest_first],
    )
