"""Branches as things: their names, their end, what can be done with them.

Making one is a fork, and undoing is of the log: `services/deltas`.
Source: spec aventuras, branch model; design, branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import exists, func, select, update
from sqlmodel import col

from db.enums import DeltaSource
from db.paging import PagedList, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import Branch, Delta, RedoStep, Story
from services.access import Viewer, hold_row, require_row, visible
from services.accounts import record_act
from services.assets import settle_references
from services.errors import Forbidden
from services.stories.changing import drop_branches
from services.text import MAX_LINE, checked_text

_PATH = ("input", "branchId")

CHILDREN_OF_BRANCHES = PagedList(
    "children",
    Branch,
    sort=[SortKey(col(Branch.created_at)), SortKey(col(Branch.id))],
    parent=col(Branch.parent_branch_id),
    where=lambda: visible(Branch),
)


async def rename_branch(writing: Writing, viewer: Viewer, branch_id: str, name: str) -> Branch:
    """Give a branch another name. Raises NotFound and Invalid (TEXT_…)."""
    checked_text(name, "input", "name", max_length=MAX_LINE)
    branch = await hold_row(writing, viewer, Branch, branch_id, *_PATH)
    renamed = await writing.first(_rename(), of_id=branch.id, name=name)
    assert renamed is not None  # it is held
    return renamed


async def delete_branch(writing: Writing, viewer: Viewer, branch_id: str) -> tuple[str, Story]:
    """Delete a branch with all that belongs to it, without a log; its id, and the story. Branches
    that were forked from it stay, without a parent.

    Raises NotFound, and Forbidden: BRANCH_LAST for the only one, BRANCH_CURRENT for the one that is
    open.
    """
    seen = await require_row(writing, viewer, Branch, branch_id, *_PATH)
    # A story before its branches: see docs/conventions.md.
    story = await hold_row(writing, viewer, Story, seen.story_id, *_PATH)
    branch = await hold_row(writing, viewer, Branch, seen.id, *_PATH)
    if await writing.value(_count(), story_id=story.id) == 1:
        told = "A story has at least one branch: delete the story."
        raise Forbidden(told, "BRANCH_LAST", _PATH)
    if story.current_branch_id == branch.id:
        raise Forbidden("Open another branch first.", "BRANCH_CURRENT", _PATH)
    shown = await drop_branches(writing, [branch.id])
    await settle_references(writing, set(shown))
    await record_act(writing, viewer, "branch_deleted", branch.id, {"story_id": story.id})
    return branch.id, story


async def can_undo(reading: Reading, viewer: Viewer, branch_ids: Sequence[str]) -> list[bool]:
    """Whether there is something to undo in each branch: anything but what goes on by itself."""
    return await _holds(reading, viewer, _undoable(), branch_ids)


async def can_redo(reading: Reading, viewer: Viewer, branch_ids: Sequence[str]) -> list[bool]:
    """Whether there is something to do again in each branch."""
    return await _holds(reading, viewer, _redoable(), branch_ids)


async def _holds(
    reading: Reading, viewer: Viewer, wanted: Any, branch_ids: Sequence[str]
) -> list[bool]:
    rows = await reading.all(wanted, ids=list(branch_ids), **viewer.parameters)
    found = {row.id for row in rows}
    return [each in found for each in branch_ids]


@statement(Branch)
def _undoable() -> Any:
    # spec: a pass of the periodic classifier is never the target of an undo.
    delta = select(1).where(
        col(Delta.branch_id) == col(Branch.id),
        col(Delta.source) != DeltaSource.PERIODIC_CLASSIFIER.value,
    )
    return select(col(Branch.id)).where(any_of(Branch.id, "ids"), visible(Branch), exists(delta))


@statement(Branch)
def _redoable() -> Any:
    step = select(1).where(col(RedoStep.branch_id) == col(Branch.id))
    return select(col(Branch.id)).where(any_of(Branch.id, "ids"), visible(Branch), exists(step))


@statement(Branch)
def _rename() -> Any:
    return (
        update(Branch)
        .where(col(Branch.id) == param("of_id"))
        .values(name=param("name"))
        .returning(*columns(Branch))
    )


@statement(Branch)
def _count() -> Any:
    return select(func.count()).where(col(Branch.story_id) == param("story_id"))
