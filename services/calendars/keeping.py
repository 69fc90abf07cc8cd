"""Calendars of users beside those of the server: reading, making, cloning, changing, deleting.

Source: spec aventuras, vault content storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, exists, func, select, update
from sqlmodel import col

from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, columns, param, statement
from db.tables import Calendar, Story
from services.access import Viewer, find_row, hold_row, require_version, visible
from services.accounts import record_act
from services.calendars.built_ins import BUILT_INS
from services.calendars.display import System
from services.calendars.model import read_definition, written
from services.errors import Forbidden, Invalid, NotFound
from services.text import MAX_LINE, checked_text

_CALENDAR_PATH = ("input", "calendarId")
_DEFINITION_PATH = ("input", "definition")

CALENDARS = PagedList(
    "calendars",
    Calendar,
    sort=[
        SortKey(col(Calendar.is_favorite), is_descending=True),
        SortKey(col(Calendar.created_at), is_descending=True),
        SortKey(col(Calendar.id), is_descending=True),
    ],
    where=lambda: visible(Calendar),
)


def list_built_ins(viewer: Viewer) -> list[Calendar]:
    """The calendars that come with the server; none for who is not signed in."""
    return [] if viewer.user_id is None else list(BUILT_INS.values())


def find_built_in(viewer: Viewer, id: str) -> Calendar | None:
    """One of them by its id."""
    return None if viewer.user_id is None else BUILT_INS.get(id)


async def list_calendars(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[Calendar]:
    """The viewer's own calendars, favourites first, newest first among these and among others."""
    return await CALENDARS.page(reading, request, **viewer.parameters)


async def find_calendar(reading: Reading, viewer: Viewer, id: str) -> Calendar | None:
    """A calendar of the server or of the viewer by its id, or None."""
    return find_built_in(viewer, id) or await find_row(reading, viewer, Calendar, id)


async def create_calendar(writing: Writing, viewer: Viewer, name: str, definition: Any) -> Calendar:
    """Keep a calendar. Raises Forbidden (NOT_SIGNED_IN), Invalid (TEXT_…, DEFINITION_INVALID),
    LimitReached.
    """
    checked_text(name, "input", "name", max_length=MAX_LINE)
    checked = _checked_definition(definition)
    return await _insert(writing, viewer, name, checked, {})


async def clone_calendar(writing: Writing, viewer: Viewer, calendar_id: str) -> Calendar:
    """A calendar of one's own like another one: a new id, the same name. Raises NotFound."""
    origin = await find_calendar(writing, viewer, calendar_id)
    if origin is None:
        raise NotFound("There is no such Calendar for you.", path=_CALENDAR_PATH)
    act = {"cloned_from": origin.id}
    return await _insert(writing, viewer, origin.name, origin.definition, act)


async def update_calendar(
    writing: Writing,
    viewer: Viewer,
    calendar_id: str,
    changes: Mapping[str, Any],
    expected_version: int | None,
) -> Calendar:
    """Change a calendar in place; `changes` has new values by the names of its columns.

    Raises NotFound, Forbidden (CALENDAR_BUILT_IN), Conflict, Invalid (TEXT_…, DEFINITION_INVALID)
    and LimitReached. What changes nothing counts as no change.
    """
    calendar = await _hold(writing, viewer, calendar_id)
    require_version(calendar, expected_version, "input", "expectedVersion")
    wanted = dict(changes)
    if "name" in wanted:
        checked_text(wanted["name"], "input", "name", max_length=MAX_LINE)
    if "definition" in wanted:
        wanted["definition"] = _checked_definition(wanted["definition"])
    changed = {name: value for name, value in wanted.items() if getattr(calendar, name) != value}
    if not changed:
        return calendar
    updated = await writing.first(_update(tuple(sorted(changed))), of_id=calendar.id, **changed)
    assert updated is not None  # it is held
    return updated


async def delete_calendar(writing: Writing, viewer: Viewer, calendar_id: str) -> str:
    """Delete a calendar; its id. Raises NotFound and Forbidden (CALENDAR_BUILT_IN,
    CALENDAR_IN_USE).
    """
    calendar = await _hold(writing, viewer, calendar_id)
    # A story that takes it up holds it first, so that none can do so unseen.
    if await writing.value(_is_in_use(), of_id=calendar.id, **viewer.parameters):
        raise Forbidden(
            "A story counts by this calendar: give it another one first.",
            "CALENDAR_IN_USE",
            _CALENDAR_PATH,
        )
    await writing.run(_delete(), of_id=calendar.id)
    await record_act(writing, viewer, "calendar_deleted", calendar.id)
    return calendar.id


async def _hold(writing: Writing, viewer: Viewer, calendar_id: str) -> Calendar:
    """A calendar of the viewer's own, held against others who change it."""
    if find_built_in(viewer, calendar_id) is not None:
        raise Forbidden(
            "This calendar comes with the server and stays as it is: clone it first.",
            "CALENDAR_BUILT_IN",
            _CALENDAR_PATH,
        )
    return await hold_row(writing, viewer, Calendar, calendar_id, *_CALENDAR_PATH)


def _checked_definition(given: Any) -> dict[str, Any]:
    """A definition in the form in which it is kept; raises Invalid and LimitReached."""
    definition = read_definition(given, *_DEFINITION_PATH)
    try:
        System(definition)
    except Invalid as fault:
        path = (*_DEFINITION_PATH, *fault.path)
        raise Invalid(fault.message, "DEFINITION_INVALID", path) from None
    return written(definition)


async def _insert(
    writing: Writing,
    viewer: Viewer,
    name: str,
    definition: Mapping[str, Any],
    act: dict[str, Any],
) -> Calendar:
    calendar = await writing.insert(
        Calendar, owner_user_id=viewer.signed_in_id, name=name, definition=definition
    )
    await record_act(writing, viewer, "calendar_created", calendar.id, act)
    return calendar


@statement(Calendar)
def _update(names: tuple[str, ...]) -> Any:
    changed = {getattr(Calendar, name): param(name, getattr(Calendar, name).type) for name in names}
    return (
        update(Calendar)
        .where(col(Calendar.id) == param("of_id"))
        .values(
            {
                **changed,
                col(Calendar.updated_at): func.clock_timestamp(),
                col(Calendar.version): col(Calendar.version) + 1,
            }
        )
        .returning(*columns(Calendar))
    )


@statement(Story)
def _is_in_use() -> Any:
    calendar_id = col(Story.definition_json)["calendarSystemId"].astext
    return select(exists(select(1).where(visible(Story), calendar_id == param("of_id"))))


@statement(Calendar)
def _delete() -> Any:
    return delete(Calendar).where(col(Calendar.id) == param("of_id"))
