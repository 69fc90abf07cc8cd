"""Lore, threads and happenings: lists, relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import (
    Branch,
    Happening,
    HappeningAwareness,
    HappeningInvolvement,
    Lore,
    StoryEntity,
    StoryEntry,
    Thread,
)
from resolvers import branch_rows
from resolvers.context import Context
from resolvers.inputs import given
from services import plot as service
from services.perspectives import knowledge_of


async def lore_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    filter: Any = None,
    as_of: Any = None,
    perspective: str | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Lore]]:
    """The lore of each branch, or what a character knows of it."""
    wanted = _wanted(filter, "category")
    known = await _known(context, branches, perspective, as_of, Lore)
    return await branch_rows.pages(
        context,
        service.LORE_OF_BRANCHES,
        branches,
        page,
        as_of=as_of,
        keep=lambda row: _is_of_category(row, wanted) and (known is None or row.id in known),
        known=None if known is None else sorted(known),
        **wanted,
    )


async def threads_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    filter: Any = None,
    as_of: Any = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Thread]]:
    """The threads of each branch."""
    wanted = _wanted(filter, "category", "statuses")
    statuses = wanted["statuses"]
    return await branch_rows.pages(
        context,
        service.THREADS_OF_BRANCHES,
        branches,
        page,
        as_of=as_of,
        keep=lambda row: (
            _is_of_category(row, wanted) and (statuses is None or row.status in statuses)
        ),
        **wanted,
    )


async def happenings_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    filter: Any = None,
    as_of: Any = None,
    perspective: str | None = None,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Happening]]:
    """The happenings of each branch, or those of which a character knows."""
    wanted = _wanted(filter, "category", "common_knowledge")
    known = await _known(context, branches, perspective, as_of, Happening)
    is_common = wanted["common_knowledge"]
    return await branch_rows.pages(
        context,
        service.HAPPENINGS_OF_BRANCHES,
        branches,
        page,
        as_of=as_of,
        keep=lambda row: (
            _is_of_category(row, wanted)
            and is_common in (None, row.common_knowledge)
            and (known is None or row.id in known)
        ),
        known=None if known is None else sorted(known),
        **wanted,
    )


async def _known(
    context: Context,
    branches: Sequence[Branch],
    perspective: str | None,
    as_of: Any,
    table: type[Lore | Happening],
) -> set[str] | None:
    """The names outside of the rows that a character of each branch knows; None for all."""
    if perspective is None:
        return None
    moments = [await branch_rows.moment_of(context, each, as_of) for each in branches]
    known = set()
    async with context.reading() as reading:
        for branch, moment in zip(branches, moments, strict=True):
            found = await knowledge_of(reading, context.viewer, branch.id, perspective, moment)
            row_ids = found.lore if table is Lore else found.happenings
            known |= {f"{branch.id}:{each}" for each in row_ids}
    return known


def _wanted(filter: Any, *names: str) -> dict[str, Any]:
    """What a filter asks for; None where it asks for nothing."""
    return {name: getattr(filter, name, None) for name in names}


def _is_of_category(row: Any, wanted: dict[str, Any]) -> bool:
    return wanted["category"] in (None, row.category)


async def triggering_entries_of_threads(
    context: Context, threads: Sequence[Thread]
) -> list[StoryEntry | None]:
    """The entry at which each thread began."""
    ids = [each.triggered_at_entry_id for each in threads]
    return await branch_rows.linked(context, StoryEntry, threads, ids)


async def resolving_entries_of_threads(
    context: Context, threads: Sequence[Thread]
) -> list[StoryEntry | None]:
    """The entry at which each thread ended."""
    ids = [each.resolved_at_entry_id for each in threads]
    return await branch_rows.linked(context, StoryEntry, threads, ids)


async def entries_of_happenings(
    context: Context, happenings: Sequence[Happening]
) -> list[StoryEntry | None]:
    """The entry at which each happening occurred."""
    ids = [each.occurred_at_entry_id for each in happenings]
    return await branch_rows.linked(context, StoryEntry, happenings, ids)


async def involvements_of_happenings(
    context: Context, happenings: Sequence[Happening]
) -> list[list[HappeningInvolvement]]:
    """Who took part in each happening."""
    return await branch_rows.lists(context, service.INVOLVEMENTS_OF_HAPPENINGS, happenings)


async def awareness_of_happenings(
    context: Context, happenings: Sequence[Happening]
) -> list[list[HappeningAwareness]]:
    """Who knows of each happening."""
    return await branch_rows.lists(context, service.AWARENESS_OF_HAPPENINGS, happenings)


async def involvements_of_entities(
    context: Context, entities: Sequence[StoryEntity], *, page: PageRequest = FIRST_PAGE
) -> list[Page[HappeningInvolvement]]:
    """What each entity took part in."""
    return await branch_rows.pages(context, service.INVOLVEMENTS_OF_ENTITIES, entities, page)


async def awareness_of_characters(
    context: Context, characters: Sequence[StoryEntity], *, page: PageRequest = FIRST_PAGE
) -> list[Page[HappeningAwareness]]:
    """What each character knows of."""
    return await branch_rows.pages(context, service.AWARENESS_OF_CHARACTERS, characters, page)


async def happenings_of_ties(context: Context, ties: Sequence[Any]) -> list[Happening | None]:
    """The happening of each involvement or awareness."""
    ids = [each.happening_id for each in ties]
    return await branch_rows.linked(context, Happening, ties, ids)


async def entities_of_involvements(
    context: Context, involvements: Sequence[HappeningInvolvement]
) -> list[StoryEntity | None]:
    """Who took part."""
    ids = [each.entity_id for each in involvements]
    return await branch_rows.linked(context, StoryEntity, involvements, ids)


async def characters_of_awareness(
    context: Context, awareness: Sequence[HappeningAwareness]
) -> list[StoryEntity | None]:
    """Who knows."""
    ids = [each.character_id for each in awareness]
    return await branch_rows.linked(context, StoryEntity, awareness, ids)


async def entries_of_awareness(
    context: Context, awareness: Sequence[HappeningAwareness]
) -> list[StoryEntry | None]:
    """The entry at which it became known."""
    ids = [each.learned_at_entry_id for each in awareness]
    return await branch_rows.linked(context, StoryEntry, awareness, ids)


_LORE = ("title", "body", "category", "tags", "keywords", "injection_mode", "priority")
_THREAD = (
    "title",
    "description",
    "category",
    "icon",
    "status",
    "injection_mode",
    "triggered_at_entry_id",
    "resolved_at_entry_id",
)
_HAPPENING = (
    "title",
    "description",
    "category",
    "icon",
    "temporal",
    "occurred_at_entry_id",
    "common_knowledge",
)


def _values(input: Any, names: Sequence[str]) -> dict[str, Any]:
    """The fields of an input that makes a row."""
    return {name: getattr(input, name) for name in names}


async def create_lore(context: Context, input: Any) -> dict[str, Any]:
    """Write down lore."""
    async with context.writing() as change:
        lore, branch = await service.create_lore(
            change.writing,
            context.viewer,
            input.branch_id,
            _values(input, _LORE),
            input.expected_head,
        )
        return change.answer(lore=lore, branch=branch)


async def update_lore(context: Context, input: Any) -> dict[str, Any]:
    """Change lore."""
    changes = given(input, *_LORE)
    async with context.writing() as change:
        lore, branch = await service.update_lore(
            change.writing, context.viewer, input.lore_id, changes, input.expected_head
        )
        return change.answer(lore=lore, branch=branch)


async def delete_lore(context: Context, input: Any) -> dict[str, Any]:
    """Delete lore."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_row(
            change.writing, context.viewer, Lore, input.lore_id, "loreId", input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)


async def create_thread(context: Context, input: Any) -> dict[str, Any]:
    """Begin a thread."""
    async with context.writing() as change:
        thread, branch = await service.create_thread(
            change.writing,
            context.viewer,
            input.branch_id,
            _values(input, _THREAD),
            input.expected_head,
        )
        return change.answer(thread=thread, branch=branch)


async def update_thread(context: Context, input: Any) -> dict[str, Any]:
    """Change a thread."""
    changes = given(input, *_THREAD)
    async with context.writing() as change:
        thread, branch = await service.update_thread(
            change.writing, context.viewer, input.thread_id, changes, input.expected_head
        )
        return change.answer(thread=thread, branch=branch)


async def delete_thread(context: Context, input: Any) -> dict[str, Any]:
    """Delete a thread."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_row(
            change.writing, context.viewer, Thread, input.thread_id, "threadId", input.expected_head
        )
        return change.answer(deleted_id=deleted_id, branch=branch)


async def create_happening(context: Context, input: Any) -> dict[str, Any]:
    """Write down a happening."""
    async with context.writing() as change:
        happening, branch = await service.create_happening(
            change.writing,
            context.viewer,
            input.branch_id,
            _values(input, _HAPPENING),
            [service.Involvement(each.entity_id, each.role) for each in input.involvements or ()],
            [
                service.Awareness(
                    each.character_id, each.source, each.learned_at_entry_id, each.decay_resistance
                )
                for each in input.awareness or ()
            ],
            input.expected_head,
        )
        return change.answer(happening=happening, branch=branch)


async def update_happening(context: Context, input: Any) -> dict[str, Any]:
    """Change a happening."""
    changes = given(input, *_HAPPENING)
    async with context.writing() as change:
        happening, branch = await service.update_happening(
            change.writing, context.viewer, input.happening_id, changes, input.expected_head
        )
        return change.answer(happening=happening, branch=branch)


async def delete_happening(context: Context, input: Any) -> dict[str, Any]:
    """Delete a happening."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_row(
            change.writing,
            context.viewer,
            Happening,
            input.happening_id,
            "happeningId",
            input.expected_head,
        )
        return change.answer(deleted_id=deleted_id, branch=branch)


async def set_involvement(context: Context, input: Any) -> dict[str, Any]:
    """Say that an entity takes part."""
    changes = given(input, "role")
    async with context.writing() as change:
        involvement, branch = await service.set_involvement(
            change.writing,
            context.viewer,
            input.happening_id,
            input.entity_id,
            changes,
            input.expected_head,
        )
        return change.answer(involvement=involvement, branch=branch)


async def delete_involvement(context: Context, input: Any) -> dict[str, Any]:
    """Say that an entity takes no part."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_row(
            change.writing,
            context.viewer,
            HappeningInvolvement,
            input.involvement_id,
            "involvementId",
            input.expected_head,
        )
        return change.answer(deleted_id=deleted_id, branch=branch)


async def set_awareness(context: Context, input: Any) -> dict[str, Any]:
    """Say that a character knows."""
    changes = given(input, "source", "learned_at_entry_id", "decay_resistance")
    async with context.writing() as change:
        awareness, branch = await service.set_awareness(
            change.writing,
            context.viewer,
            input.happening_id,
            input.character_id,
            changes,
            input.expected_head,
        )
        return change.answer(awareness=awareness, branch=branch)


async def delete_awareness(context: Context, input: Any) -> dict[str, Any]:
    """Say that a character does not know."""
    async with context.writing() as change:
        deleted_id, branch = await service.delete_row(
            change.writing,
            context.viewer,
            HappeningAwareness,
            input.awareness_id,
            "awarenessId",
            input.expected_head,
        )
        return change.answer(deleted_id=deleted_id, branch=branch)
