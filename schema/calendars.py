"""Calendars: how the seconds of a story become dates, and dates seconds."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import strawberry
from strawberry.scalars import JSON

from resolvers import calendars as resolve
from schema.base import (
    Connection,
    Info,
    Long,
    Node,
    Payload,
    described,
    described_input,
    field,
    mutation,
    relation,
    root_list,
    root_row,
    row_type,
)


@described
class CalendarTier:
    """One unit of a calendar."""

    name: str = field("Its name, in templates too.")
    start_value: Long = field("Its least value; of the largest unit, where counting begins.")
    labels: list[str] | None = field("What its values are called, from the least on.")


@described
class CalendarEras:
    """What eras do to the display of a calendar."""

    flip_mode: str = field("One of display-label, elapsed-from-flip and calendar-aligned.")
    resets_on_flip: list[str] = field("Tiers that count anew from the beginning of an era.")
    default_start_name: str = field("The era before any other begins.")
    preset_names: list[str] = field("Eras that people of this calendar know.")


@described
class TimePart:
    """The value of a tier or a subdivision."""

    name: str = field("Of the tier or subdivision.")
    value: Long | None = field("Null only for a day, say, that belongs to no week.")
    label: str | None = field("What this value is called.")


@described
class TimeWarning:
    """Why a time is not shown as its calendar says, or not quite."""

    code: str = field(
        "For programs: OUT_OF_RANGE, DATE_INVALID (the origin), DEFINITION_INVALID, "
        "TEMPLATE_INVALID, ERA_MODE_UNSUPPORTED."
    )
    message: str = field("For people.")


@described
class RenderedTime:
    """A world time as a calendar shows it."""

    world_time: Long = field("Seconds since the beginning of the story.")
    label: str = field("As the calendar's displayFormat writes it, or the bare number.")
    tiers: list[TimePart] = field("Largest first; empty where the time could not be converted.")
    subdivisions: list[TimePart] = field("Labels that go round, such as days of the week.")
    era: str | None = field("The era, where the calendar has eras.")
    era_year: Long | None = field("The year of the era, from 1.")
    is_fallback: bool = field("Whether `label` is the bare number.")
    warning: TimeWarning | None = field("What went wrong.")


@described_input
class EraFlipInput:
    """That an era begins."""

    at_world_time: Long = field("When; 0 names the era in which the story begins.")
    era_name: str = field("What it is called.")


@row_type
class Calendar(Node):
    """How the seconds of a story become dates."""

    name: str = field("What it is called; a clone has the name of its original.")
    is_built_in: bool = field("Whether it comes with the server, and stays as it is.")
    is_favorite: bool = field("Whether its owner has marked it.")
    definition: JSON = field("All of it, as calendarCreate takes it.")
    base_unit_name: str = field("What the smallest unit is called.")
    seconds_per_base_unit: Long = field("How many seconds the smallest unit has.")
    tiers: list[CalendarTier] = field("Its units, largest first.")
    example_start: JSON = field("A value for each tier, by name: where a story may begin.")
    display_format: str = field("The template by which times are written.")
    eras: CalendarEras | None = field("What its eras do, where it has eras.")
    created_at: datetime | None = field("When it was made; null for those of the server.")
    version: int = field("Counts its changes, from 1.")
    render: list[RenderedTime] = relation(
        resolve.rendered_times_of_calendars,
        "World times as this calendar shows them, in the order given. Whatever is wrong with a "
        "time, the origin or the calendar, there is an answer with a warning.",
        arguments={
            "world_times": "Seconds since the beginning of the story, 200 times at most.",
            "origin": "What time 0 is, by the names of tiers; tiers left out are at their start. "
            "The calendar's exampleStart unless said otherwise.",
            "flips": "When eras begin, 500 at most, in any order.",
        },
        types={
            "world_times": list[Long],
            "origin": JSON | None,
            "flips": list[EraFlipInput] | None,
        },
    )
    world_time_of: Long | None = relation(
        resolve.world_times_of_calendars,
        "The first second of a date. Refused with DATE_INVALID for one that this calendar does "
        "not have, with OUT_OF_RANGE where no time of a story lies.",
        arguments={
            "tiers": "The date, by the names of tiers; tiers left out are at their start.",
            "origin": "What time 0 is, as for render.",
        },
        types={"tiers": JSON, "origin": JSON | None},
    )


@described_input
class CalendarCreateInput:
    """A calendar to keep."""

    name: str = field("What it is called, 500 characters at most.")
    definition: JSON = field("Tiers and all else, 64 KiB at most; as `definition` shows it.")


@described
class CalendarCreatePayload(Payload):
    """The kept calendar."""

    calendar: Calendar | None = field("The calendar.")


@described_input
class CalendarCloneInput:
    """A calendar to clone."""

    calendar_id: strawberry.ID = field("One of the server's or one of your own.")


@described
class CalendarClonePayload(Payload):
    """The clone."""

    calendar: Calendar | None = field("The clone, under its own id.")


@described_input
class CalendarUpdateInput:
    """A calendar to change; what is left out stays as it is."""

    calendar_id: strawberry.ID = field("The calendar; those of the server stay as they are.")
    expected_version: int | None = field(
        "The version that the change was made for; any other is refused with CONFLICT.",
        default=None,
    )
    name: strawberry.Maybe[str] = field("What it is called, 500 characters at most.")
    definition: strawberry.Maybe[JSON] = field("All of it anew.")
    is_favorite: strawberry.Maybe[bool] = field("Whether it is marked.")


@described
class CalendarUpdatePayload(Payload):
    """The changed calendar."""

    calendar: Calendar | None = field("The calendar.")


@described_input
class CalendarDeleteInput:
    """A calendar to delete."""

    calendar_id: strawberry.ID = field("The calendar; those of the server stay.")


@described
class CalendarDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the calendar.")


@strawberry.type
class CalendarQuery:
    """Root fields about calendars."""

    calendar: Calendar | None = root_row(
        resolve.calendar_by_id,
        "A calendar by its id: one of the server's, such as earth-gregorian, or one of your own.",
    )
    calendars: Connection[Calendar] = root_list(
        resolve.list_calendars, "The viewer's own calendars, favourites first, then newest first."
    )

    @strawberry.field(description="The calendars that come with the server.")
    def built_in_calendars(self, info: Info) -> list[Calendar]:
        """Those of the server."""
        return cast("list[Calendar]", resolve.list_built_ins(info.context))


@strawberry.type
class CalendarMutation:
    """Changes to calendars."""

    calendar_create: CalendarCreatePayload = mutation(
        resolve.create_calendar,
        input=CalendarCreateInput,
        payload=CalendarCreatePayload,
        description="Keep a calendar of your own.",
    )
    calendar_clone: CalendarClonePayload = mutation(
        resolve.clone_calendar,
        input=CalendarCloneInput,
        payload=CalendarClonePayload,
        description="Make a calendar of your own like another one, to change it.",
    )
    calendar_update: CalendarUpdatePayload = mutation(
        resolve.update_calendar,
        input=CalendarUpdateInput,
        payload=CalendarUpdatePayload,
        description="Change a calendar in place, for everything that uses it.",
    )
    calendar_delete: CalendarDeletePayload = mutation(
        resolve.delete_calendar,
        input=CalendarDeleteInput,
        payload=CalendarDeletePayload,
        description="Delete a calendar.",
    )
