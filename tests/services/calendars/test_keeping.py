from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from db.engine import Database
from db.paging import PageRequest
from db.reading import Writing
from db.tables import Calendar
from services import calendars
from services.access import Viewer
from services.errors import Conflict, DomainError, Forbidden, Invalid, LimitReached, NotFound
from tests.conftest import People

STARDATE = calendars.BUILT_INS["stardate"].definition
OTHER = {**STARDATE, "displayFormat": "{{ count }}"}


async def made(database: Database, viewer: Viewer, name: str = "Mine") -> Calendar:
    async with database.writing() as writing:
        return await calendars.create_calendar(writing, viewer, name, STARDATE)


async def refused(database: Database, work: Callable[[Writing], Awaitable[Any]]) -> DomainError:
    with pytest.raises(DomainError) as caught:
        async with database.writing() as writing:
            await work(writing)
    return caught.value


async def names(database: Database, viewer: Viewer) -> list[str]:
    async with database.reading() as reading:
        page = await calendars.list_calendars(reading, viewer, PageRequest())
        return [each.name for each in page.nodes]


async def test_favourites_come_first_then_what_is_new(database: Database, people: People) -> None:
    """Rule W21."""
    rows = [await made(database, people.owner, name) for name in ("a", "b", "c")]
    async with database.writing() as writing:
        await calendars.update_calendar(
            writing, people.owner, rows[0].id, {"is_favorite": True}, None
        )
    assert await names(database, people.owner) == ["a", "c", "b"]
    pages = []
    async with database.reading() as reading:
        after = None
        for _ in rows:
            request = PageRequest(first=1, after=after)
            page = await calendars.list_calendars(reading, people.owner, request)
            pages += [each.name for each in page.nodes]
            after = page.page_info.end_cursor
    assert pages == ["a", "c", "b"]


async def test_a_clone_is_independent_and_keeps_the_name(
    database: Database, people: People
) -> None:
    """Rule W22."""
    async with database.writing() as writing:
        clone = await calendars.clone_calendar(writing, people.owner, "stardate")
        again = await calendars.clone_calendar(writing, people.owner, clone.id)
        await calendars.update_calendar(
            writing, people.owner, clone.id, {"definition": OTHER, "name": "Other"}, 1
        )
    async with database.reading() as reading:
        rows = [
            await calendars.find_calendar(reading, people.owner, each)
            for each in (clone.id, again.id, "stardate")
        ]
    found = [(each.name, each.display_format, each.is_built_in) for each in rows if each]
    assert found == [
        ("Other", "{{ count }}", False),
        ("Stardate", "Stardate {{ count }}", False),
        ("Stardate", "Stardate {{ count }}", True),
    ]
    assert len({"stardate", clone.id, again.id}) == 3


async def test_what_changes_nothing_is_no_change(database: Database, people: People) -> None:
    """Rule W23."""
    calendar = await made(database, people.owner)
    same = {"name": "Mine", "definition": {**STARDATE, "id": "x"}, "is_favorite": False}
    async with database.writing() as writing:
        kept = await calendars.update_calendar(writing, people.owner, calendar.id, same, 1)
        assert (kept.version, kept.updated_at) == (1, None)
        changed = await calendars.update_calendar(
            writing, people.owner, calendar.id, {"name": "Ours"}, 1
        )
    assert (changed.version, changed.name, changed.definition) == (2, "Ours", STARDATE)
    assert changed.updated_at is not None


async def test_each_change_that_is_refused_changes_nothing(
    database: Database, people: People
) -> None:
    """Rules W4, W22, W23."""
    mine = await made(database, people.owner)
    own = mine.id
    spoiled = copy.deepcopy(STARDATE)
    spoiled["tiers"][0]["startValue"] = "1"

    def update(viewer: Viewer, id: str, version: int | None = None, **changes: Any) -> Any:
        return lambda writing: calendars.update_calendar(writing, viewer, id, changes, version)

    def create(viewer: Viewer, name: str, definition: Any) -> Any:
        return lambda writing: calendars.create_calendar(writing, viewer, name, definition)

    owner, stranger, id_path = people.owner, people.stranger, ("input", "calendarId")
    big, long = {"x": "y" * 70_000}, "n" * 501
    definition = ("input", "definition")
    cases: list[tuple[Any, type[DomainError], str, tuple[Any, ...]]] = [
        (update(stranger, own, name="x"), NotFound, "NOT_FOUND", id_path),
        (update(people.anonymous, own, name="x"), NotFound, "NOT_FOUND", id_path),
        (update(owner, "cal_1", name="x"), NotFound, "NOT_FOUND", id_path),
        (update(owner, "stardate", name="x"), Forbidden, "CALENDAR_BUILT_IN", id_path),
        (update(people.anonymous, "stardate", name="x"), NotFound, "NOT_FOUND", id_path),
        (update(owner, own, 2, name="x"), Conflict, "CONFLICT", ("input", "expectedVersion")),
        (update(owner, own, name=" "), Invalid, "TEXT_EMPTY", ("input", "name")),
        (update(owner, own, name=long), Invalid, "TEXT_TOO_LONG", ("input", "name")),
        (
            update(owner, own, definition=spoiled),
            Invalid,
            "DEFINITION_INVALID",
            (*definition, "tiers", 0, "startValue"),
        ),
        (update(owner, own, definition=None), Invalid, "DEFINITION_INVALID", definition),
        (update(owner, own, definition=big), LimitReached, "LIMIT_REACHED", definition),
        (create(owner, "", STARDATE), Invalid, "TEXT_EMPTY", ("input", "name")),
        (create(people.anonymous, "x", STARDATE), Forbidden, "NOT_SIGNED_IN", ()),
    ]
    for each, kind, code in (
        (own, NotFound, "NOT_FOUND"),
        ("stardate", Forbidden, "CALENDAR_BUILT_IN"),
    ):
        cases.append((_deleting(stranger, each), kind, code, id_path))
    cases.append((_cloning(stranger, own), NotFound, "NOT_FOUND", id_path))
    cases.append((_cloning(people.anonymous, "stardate"), NotFound, "NOT_FOUND", id_path))
    for work, kind, code, path in cases:
        error = await refused(database, work)
        assert (type(error), error.code, error.path) == (kind, code, path)
    async with database.reading() as reading:
        assert await calendars.find_calendar(reading, owner, own) == mine
    assert await names(database, stranger) == []


def _deleting(viewer: Viewer, id: str) -> Any:
    return lambda writing: calendars.delete_calendar(writing, viewer, id)


def _cloning(viewer: Viewer, id: str) -> Any:
    return lambda writing: calendars.clone_calendar(writing, viewer, id)


async def test_a_deleted_calendar_is_gone(database: Database, people: People) -> None:
    """Rule W23."""
    calendar = await made(database, people.owner)
    async with database.writing() as writing:
        gone = await calendars.delete_calendar(writing, people.owner, calendar.id)
        assert gone == calendar.id
    assert await names(database, people.owner) == []


async def test_calendars_of_the_server_are_for_everybody_who_is_signed_in(
    database: Database, people: People
) -> None:
    """Rules W20, W24."""
    mine = await made(database, people.owner)
    for viewer, count in ((people.owner, 7), (people.stranger, 7), (people.anonymous, 0)):
        assert len(calendars.list_built_ins(viewer)) == count
        async with database.reading() as reading:
            found = await calendars.find_calendar(reading, viewer, "stardate")
            assert (found is not None) == (count > 0)
            found = await calendars.find_calendar(reading, viewer, mine.id)
            assert (found is not None) == (viewer is people.owner)


@pytest.mark.parametrize(
    ("times", "flips", "kind", "path"),
    [
        ([0] * 201, [], LimitReached, ("worldTimes",)),
        ([0], [calendars.EraFlip(0, "x")] * 501, LimitReached, ("flips",)),
        ([0], [calendars.EraFlip(-1, "x")], Invalid, ("flips", 0, "atWorldTime")),
    ],
)
def test_a_page_of_times_is_bounded(
    times: list[int], flips: list[calendars.EraFlip], kind: type[DomainError], path: Any
) -> None:
    """Rules W15, W16."""
    with pytest.raises(kind) as caught:
        calendars.render_times(STARDATE, times, None, flips)
    assert caught.value.path == path
    assert len(calendars.render_times(STARDATE, [0] * 200, None, [])) == 200


def test_eras_that_are_not_counted_yet_are_told() -> None:
    """Rules W18, W19."""
    japan = calendars.BUILT_INS["imperial-japan"].definition
    eras = {**japan["eras"], "flipMode": "calendar-aligned", "resetsOnFlip": ["year"]}
    flips = [calendars.EraFlip(0, "New")]
    (found,) = calendars.render_times({**japan, "eras": eras}, [0], None, flips)
    assert (found.label, found.is_fallback) == ("New 1, October 23 00:00", False)
    assert found.warning is not None
    assert found.warning.code == "ERA_MODE_UNSUPPORTED"
    # With a single tier it is the same as counting what has gone by.
    eras["resetsOnFlip"] = ["count"]
    flips = [calendars.EraFlip(86_400, "New")]
    (found,) = calendars.render_times({**STARDATE, "eras": eras}, [3 * 86_400], None, flips)
    assert (found.label, found.warning, found.era_year) == ("Stardate 2", None, None)


def test_a_calendar_without_eras_takes_no_notice_of_flips() -> None:
    """Rule W19."""
    (found,) = calendars.render_times(STARDATE, [0], None, [calendars.EraFlip(0, "New")])
    assert (found.label, found.era, found.era_year) == ("Stardate 41000", None, None)
