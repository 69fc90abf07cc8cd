"""Eras of branches: lists and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, EraFlip
from resolvers import branch_rows
from resolvers.context import Context
from resolvers.inputs import given
from services import stories as service


async def flips_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    as_of: Any = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[EraFlip]]:
    """When eras of each branch begin, earliest first."""
    return await branch_rows.pages(context, service.FLIPS_OF_BRANCHES, branches, page, as_of=as_of)


async def flip_era(context: Context, input: Any) -> dict[str, Any]:
    """Begin an era."""
    async with context.writing() as change:
        flip, branch = await service.flip_era(
            change.writing,
            context.viewer,
            input.era_name,
            entry_id=input.entry_id,
            branch_id=input.branch_id,
            at_world_time=input.at_world_time,
            expected_head=input.expected_head,
        )
        return change.answer(era_flip=flip, branch=branch)


async def update_flip(context: Context, input: Any) -> dict[str, Any]:
    """Change the name of an era or its beginning."""
    async with context.writing() as change:
        flip, branch = await service.update_flip(
            change.writing,
            context.viewer,
            input.era_flip_id,
            given(input, "era_name", "at_world_time"),
            input.expected_head,
        )
        return change.answer(era_flip=flip, branch=branch)


async def delete_flip(context: Context, input: Any) -> dict[str, Any]:
    """Take an era back."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_flip(
            change.writing, context.viewer, input.era_flip_id, input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)
