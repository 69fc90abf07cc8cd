"""Runs: look-ups, relations, cancelling, and the stream of a run's events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from db.enums import TextChannel
from db.paging import FIRST_PAGE, Page, PageRequest
from db.tables import Branch, Character, Run, RunError, TreeNode
from resolvers.context import Context
from services import runs as service
from services.access import find_row
from services.errors import Invalid
from services.runs import Event, StreamOpening


async def run_by_id(context: Context, id: str) -> Run | None:
    """One run, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, Run, id)


async def list_runs(context: Context, request: PageRequest) -> Page[Run]:
    """Runs of the viewer's characters and branches, newest first."""
    async with context.reading() as reading:
        return await service.list_runs(reading, context.viewer, request)


def asking(context: Context) -> dict[str, Any]:
    """Who answers, and how much may be asked at once."""
    settings = context.engine.settings
    limits = service.OpenRuns(
        settings.runs_per_user, settings.runs_per_character, settings.queued_runs
    )
    return {"provider": settings.provider, "model": settings.model, "limits": limits}


async def runs_of_branches(
    context: Context, branches: Sequence[Branch], *, page: PageRequest = FIRST_PAGE
) -> list[Page[Run]]:
    """The runs that translate each branch, newest first."""
    async with context.reading() as reading:
        return await service.RUNS_OF_BRANCHES.pages(
            reading, [each.id for each in branches], page, **context.viewer.parameters
        )


async def branches_of_runs(context: Context, runs: Sequence[Run]) -> list[Branch | None]:
    """What each run translates."""
    return await context.many(Branch, [each.branch_id for each in runs])


async def characters_of_runs(context: Context, runs: Sequence[Run]) -> list[Character | None]:
    """Who speaks in each run."""
    return await context.many(Character, [each.character_id for each in runs])


async def questions_of_runs(context: Context, runs: Sequence[Run]) -> list[TreeNode | None]:
    """What each run answers."""
    return await context.many(TreeNode, [each.question_node_id for each in runs])


async def nodes_of_runs(context: Context, runs: Sequence[Run]) -> list[TreeNode | None]:
    """The answer that grows, or grew, in each run."""
    return await context.many(TreeNode, [each.node_id for each in runs])


async def runs_of_events(
    context: Context, events: Sequence[Event | StreamOpening]
) -> list[Run | None]:
    """The run of each event."""
    return await context.many(Run, [each.run_id for each in events])


async def nodes_of_events(context: Context, events: Sequence[Event]) -> list[TreeNode | None]:
    """The answer that each finished run left."""
    return await context.many(TreeNode, [each.payload.get("node_id") for each in events])


async def errors_of_events(context: Context, events: Sequence[Event]) -> list[RunError | None]:
    """Why each finished run failed, as its run says it."""
    failed = [each.run_id if each.error_code else None for each in events]
    return [run.error if run is not None else None for run in await context.many(Run, failed)]


async def texts_of_openings(
    context: Context, openings: Sequence[StreamOpening], *, channel: TextChannel = TextChannel.TEXT
) -> list[str]:
    """The text before the first event of each stream."""
    places = [(each.run_id, each.seq) for each in openings]
    async with context.reading() as reading:
        return await service.texts_until(reading, context.viewer, places, channel)


async def cancel_run(context: Context, input: Any) -> dict[str, Any]:
    """Stop a run on purpose."""
    async with context.writing() as change:
        run = await service.cancel_run(change.writing, context.viewer, input.run_id)
        return change.answer(run=run)


def run_events(
    context: Context, run_id: str, after: int | None
) -> AsyncGenerator[Event | StreamOpening, None]:
    """The events of a run behind a number, stored ones first, then live."""
    if after is not None and after < 0:
        raise Invalid(
            "after is the number of an event, or 0 for all.", "INVALID_CURSOR", ("after",)
        )
    engine = context.engine
    return service.follow_run(
        engine.database, engine.hub, engine.worker, context.viewer, run_id, after or 0
    )
