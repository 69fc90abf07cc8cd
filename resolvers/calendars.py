"""Calendars: look-ups, relations and mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.paging import Page, PageRequest
from db.tables import Calendar
from resolvers.context import Context
from resolvers.inputs import given
from services import calendars as service
from services.errors import DomainError


async def list_calendars(context: Context, request: PageRequest) -> Page[Calendar]:
    """The viewer's own calendars."""
    async with context.reading() as reading:
        return await service.list_calendars(reading, context.viewer, request)


def list_built_ins(context: Context) -> list[Calendar]:
    """The calendars that come with the server."""
    return service.list_built_ins(context.viewer)


async def calendar_by_id(context: Context, id: str) -> Calendar | None:
    """A calendar of either kind."""
    async with context.reading() as reading:
        return await service.find_calendar(reading, context.viewer, id)


async def rendered_times_of_calendars(
    context: Context,
    calendars: Sequence[Calendar],
    *,
    world_times: Any,
    origin: Any = None,
    flips: Any = None,
) -> list[list[service.RenderedTime]]:
    """World times as each calendar shows them."""
    eras = [service.EraFlip(each.at_world_time, each.era_name) for each in flips or ()]
    return [service.render_times(each.definition, world_times, origin, eras) for each in calendars]


async def world_times_of_calendars(
    context: Context, calendars: Sequence[Calendar], *, tiers: Any, origin: Any = None
) -> list[int | DomainError]:
    """The world time of one date by each calendar."""
    return [_world_time(each, tiers, origin) for each in calendars]


def _world_time(calendar: Calendar, tiers: Any, origin: Any) -> int | DomainError:
    try:
        return service.system_of(calendar.definition).world_time_of(tiers, origin)
    except DomainError as fault:
        return fault


async def create_calendar(context: Context, input: Any) -> dict[str, Any]:
    """Keep a new calendar."""
    async with context.writing() as change:
        calendar = await service.create_calendar(
            change.writing, context.viewer, input.name, input.definition
        )
        return change.answer(calendar=calendar)


async def clone_calendar(context: Context, input: Any) -> dict[str, Any]:
    """Make a calendar of one's own like another one."""
    async with context.writing() as change:
        calendar = await service.clone_calendar(change.writing, context.viewer, input.calendar_id)
        return change.answer(calendar=calendar)


async def update_calendar(context: Context, input: Any) -> dict[str, Any]:
    """Change a calendar in place."""
    changes = given(input, "name", "definition", "is_favorite")
    async with context.writing() as change:
        calendar = await service.update_calendar(
            change.writing, context.viewer, input.calendar_id, changes, input.expected_version
        )
        return change.answer(calendar=calendar)


async def delete_calendar(context: Context, input: Any) -> dict[str, Any]:
    """Delete a calendar."""
    async with context.writing() as change:
        deleted_id = await service.delete_calendar(
            change.writing, context.viewer, input.calendar_id
        )
        return change.answer(deleted_id=deleted_id)
