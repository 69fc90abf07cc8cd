"""Calendars: how the seconds of a story become dates, and dates seconds.

Knows no stories: where world time 0 stands, and when eras begin, is told by the caller.
"""

from services.calendars.built_ins import BUILT_INS
from services.calendars.display import (
    MAX_RENDERED,
    EraFlip,
    RenderedTime,
    System,
    TimePart,
    TimeWarning,
    render_times,
    system_of,
)
from services.calendars.keeping import (
    CALENDARS,
    clone_calendar,
    create_calendar,
    delete_calendar,
    find_built_in,
    find_calendar,
    list_built_ins,
    list_calendars,
    update_calendar,
)
from services.calendars.model import MAX_WORLD_TIME, read_definition, written

__all__ = [
    "BUILT_INS",
    "CALENDARS",
    "MAX_RENDERED",
    "MAX_WORLD_TIME",
    "EraFlip",
    "RenderedTime",
    "System",
    "TimePart",
    "TimeWarning",
    "clone_calendar",
    "create_calendar",
    "delete_calendar",
    "find_built_in",
    "find_calendar",
    "list_built_ins",
    "list_calendars",
    "read_definition",
    "render_times",
    "system_of",
    "update_calendar",
    "written",
]
