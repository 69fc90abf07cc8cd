"""Undo and rollback of a branch.

Source: spec aventuras, user-facing undo; survival anchor; reverse-replay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select
from sqlmodel import col

from db.enums import BranchEventKind, DeltaOp, DeltaSource, EntryKind, LoggedTable
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Branch, Delta, RedoStep, StoryEntry
from services.access import Viewer, require_row, row_id_in
from services.deltas.applying import (
    apply_reversal,
    clamp_watermark,
    settle_head,
)
from services.deltas.closing import Closed, close
from services.deltas.events import note_event
from services.deltas.reversing import Reversal, compute
from services.deltas.selecting import (
    BACKGROUND,
    Cut,
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


# The most actions that are listed, and changes of each.
MAX_ACTIONS = 1_000
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
        cut = Cut(first_entry - 1, min(each.log_position for each in group))
        swept = await deltas_behind(writing, branch.id, cut)
        closed = await close(writing, branch.id, [*swept, *returning.deltas.values()])
        clamps_to = first_entry - 1
    else:
        closed, clamps_to = await _with_facts(writing, branch.id, group, returning)
    reversal = await compute(writing, closed)
    # A relationship that ends takes along changes that are no part of this.
    if reversal.ended or reversal.without_return & returning.deltas.keys():
        raise Conflict(
            "This cannot be undone in a way that could be redone: roll back instead.",
            "UNDO_BLOCKED",
        )
    await apply_reversal(writing, branch.id, reversal)
    if clamps_to is not None:
        await clamp_watermark(writing, branch.id, clamps_to)
    number = await _keep_step(writing, branch.id, action_id, returning, reversal)
    branch = await settle_head(writing, branch.id, _lowest(number, returning, closed, reversal))
    await _tell(writing, branch, BranchEventKind.UNDO, action_id, group, closed, reversal)
    return Outcome(branch, reversed_actions(closed.newest_first))


def _lowest(number: int, returning: Closed, closed: Closed, reversal: Reversal) -> int:
    """Where the log is changed by an undo; everywhere, if a redo would lead to a log that never
    was: where what is lost lies before what returns, or before what earlier undos have kept.
    """
    lost = closed.deltas.keys() - returning.deltas.keys()
    if not lost:
        return reversal.lowest
    first_lost = min(closed.deltas[each].log_position for each in lost)
    last_kept = max(each.log_position for each in returning.deltas.values())
    return reversal.lowest if number == 1 and last_kept < first_lost else 0


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
    await apply_reversal(writing, branch.id, reversal)
    await clamp_watermark(writing, branch.id, entry.position)
    await forget_redo(writing, branch.id)
    outcome.branch = await settle_head(writing, branch.id, reversal.lowest)
    await _tell(writing, outcome.branch, BranchEventKind.ROLLBACK, None, (), closed, reversal)
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


@statement(RedoStep)
def _newest_step() -> Any:
    return (
        select(*columns(RedoStep))
        .where(col(RedoStep.branch_id) == param("branch_id"))
        .order_by(col(RedoStep.number).desc())
        .limit(1)
    )


async def newest_step(reading: Reading, branch_id: str) -> RedoStep | None:
    """What was undone last and can be done again."""
    return await reading.first(_newest_step(), branch_id=branch_id)


async def _keep_step(
    writing: Writing, branch_id: str, action_id: str, returning: Closed, reversal: Reversal
) -> int:
    """Keep what it takes to do an undone action again, oldest change first; its number."""
    newest = await newest_step(writing, branch_id)
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
            "forward": reversal.forward(each.row_id),
        }
        for each in reversed(returning.newest_first)
    ]
    number = newest.number + 1 if newest is not None else 1
    await writing.insert(
        RedoStep,
        branch_id=branch_id,
        number=number,
        action_id=action_id,
        deltas=kept,
    )
    return number


def reversed_actions(deltas: Sequence[Delta]) -> list[ReversedAction]:
    """What was taken back, by action; in the order given."""
    found: dict[str, ReversedAction] = {}
    for each in deltas:
        action = found.setdefault(each.action_id, ReversedAction(each.action_id, each.source, []))
        if len(action.changes) < MAX_LISTED:
            action.changes.append(
                ReversedChange(each.target_table, each.op, f"{each.branch_id}:{each.target_id}")
            )
    return list(found.values())[:MAX_ACTIONS]


async def _tell(
    writing: Writing,
    branch: Branch,
    kind: BranchEventKind,
    action_id: str | None,
    group: Sequence[Delta],
    closed: Closed,
    reversal: Reversal,
) -> None:
    sources: Collection[str] = {each.source for each in group if each.source != BACKGROUND}
    await note_event(
        writing,
        branch,
        kind,
        action_id=action_id,
        source=DeltaSource(next(iter(sources))) if len(sources) == 1 else None,
        head=branch.head,
        changes=[
            *((each.target_table, each.op, each.target_id) for each in closed.newest_first),
            *gone(reversal.notices),
        ],
    )


def gone(notices: Sequence[str]) -> list[tuple[str, str, str]]:
    """Changes that the log does not know: the deletion of entries of kind system."""
    return [(LoggedTable.STORY_ENTRIES, DeltaOp.DELETE, each) for each in notices]
