"""Undo, redo, rollback and forks of branches."""

from __future__ import annotations

import contextlib
from typing import Any

import asyncpg

from resolvers.context import Context
from services import deltas as service
from services.errors import Unavailable

FORK_ATTEMPTS = 5


async def undo_branch(context: Context, input: Any) -> dict[str, Any]:
    """Take the newest action back."""
    async with context.writing() as change:
        outcome = await service.undo_branch(
            change.writing, context.viewer, input.branch_id, expected_head=input.expected_head
        )
        return change.answer(branch=outcome.branch, reversed=outcome.reversed)


async def redo_branch(context: Context, input: Any) -> dict[str, Any]:
    """Do again what was undone last."""
    async with context.writing() as change:
        outcome = await service.redo_branch(
            change.writing, context.viewer, input.branch_id, expected_head=input.expected_head
        )
        return change.answer(branch=outcome.branch)


async def roll_back_branch(context: Context, input: Any) -> dict[str, Any]:
    """Take everything behind an entry back."""
    async with context.writing() as change:
        outcome = await service.roll_back_branch(
            change.writing,
            context.viewer,
            input.branch_id,
            input.keep_entry_id,
            is_dry_run=bool(input.dry_run),
            expected_head=input.expected_head,
        )
        return change.answer(
            branch=outcome.branch, reversed=outcome.reversed, warnings=outcome.warnings
        )


async def fork_branch(context: Context, input: Any) -> dict[str, Any]:
    """Make a branch of its own."""
    for _ in range(FORK_ATTEMPTS):
        # Where the same is asked under the same key at this moment, one of the two cannot see what
        # the other has done: it begins again, and finds it.
        with contextlib.suppress(asyncpg.SerializationError, asyncpg.UniqueViolationError):
            async with context.writing(sees_one_state=True) as change:
                fork = await service.fork_branch(
                    change.writing, context.viewer, input.branch_id, input.at_entry_id, input.name
                )
                return change.answer(branch=fork.branch, copied=fork.copied)
    raise Unavailable("Too much is being done with this branch at once: try again.")
