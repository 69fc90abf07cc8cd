"""Calendars as front ends see them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from services.calendars import BUILT_INS
from tests.e2e.calendar_documents import CALENDAR_CHANGES, CALENDARS, DAYS
from tests.e2e.callers import Caller, Json
from tests.e2e.ledgers import Ledger


async def change(caller: Caller, operation: str, **variables: Any) -> Json:
    (payload,) = (await caller.ask(CALENDAR_CHANGES, variables, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def refusal(caller: Caller, operation: str, **variables: Any) -> tuple[str, list[str]]:
    (payload,) = (await caller.ask(CALENDAR_CHANGES, variables, operation)).values()
    (error,) = payload.pop("errors")
    assert set(payload.values()) == {None}
    return error["code"], error["path"]


async def ask(caller: Caller, operation: str, **variables: Any) -> Json:
    return dict((await caller.ask(CALENDARS, variables, operation))["calendar"])


async def test_a_calendar_is_cloned_changed_marked_and_deleted(caller: Caller) -> None:
    """Rules W20, W21, W22, W23."""
    first = (await change(caller, "CalendarCreate", name="Days", definition=DAYS))["calendar"]
    assert first == {
        "id": first["id"],
        "name": "Days",
        "isBuiltIn": False,
        "isFavorite": False,
        "displayFormat": "day {{ day }}",
        "version": 1,
    }
    clone = (await change(caller, "CalendarClone", calendar="earth-gregorian"))["calendar"]
    assert (clone["name"], clone["isBuiltIn"]) == ("Earth (Gregorian)", False)
    earth = await ask(caller, "Calendar", id="earth-gregorian")
    copied = await ask(caller, "Calendar", id=clone["id"])
    assert copied == {**earth, "id": clone["id"], "isBuiltIn": False} | {
        "createdAt": copied["createdAt"]
    }
    assert (earth["createdAt"], copied["createdAt"] is None) == (None, False)
    changed = await change(
        caller,
        "CalendarUpdate",
        input={"calendarId": first["id"], "isFavorite": True, "expectedVersion": 1},
    )
    assert changed["calendar"] == {**first, "isFavorite": True, "version": 2}
    seen = await caller.ask(CALENDARS, {}, "Calendars")
    shown = [(each["id"], each["isFavorite"]) for each in seen["calendars"]["nodes"]]
    assert shown == [(first["id"], True), (clone["id"], False)]
    assert [each["id"] for each in seen["builtInCalendars"]] == list(BUILT_INS)
    for each in (first, clone):
        gone = await change(caller, "CalendarDelete", calendar=each["id"])
        assert gone == {"deletedId": each["id"]}
    seen = await caller.ask(CALENDARS, {}, "Calendars")
    assert seen["calendars"] == {"nodes": [], "totalCount": 0}


async def test_a_calendar_of_the_server_is_a_node_like_others(caller: Caller) -> None:
    """Rule W20."""
    node = "query ($id: ID!) { node(id: $id) { __typename id ... on Calendar { name } } }"
    shire = {"__typename": "Calendar", "id": "tolkien-shire", "name": "Shire Reckoning"}
    assert await caller.ask(node, {"id": "tolkien-shire"}) == {"node": shire}
    nodes = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    ids = ["stardate", "cal_01900000-0000-7000-8000-000000000000", "stardate"]
    found = await caller.ask(nodes, {"ids": ids})
    assert found == {"nodes": [{"id": "stardate"}, None, {"id": "stardate"}]}


async def test_each_part_of_a_calendar_is_shown(caller: Caller) -> None:
    """Rule W20."""
    assert await ask(caller, "Calendar", id="warhammer-imperial") == {
        "id": "warhammer-imperial",
        "name": "Imperial Dating",
        "isBuiltIn": True,
        "isFavorite": False,
        "definition": BUILT_INS["warhammer-imperial"].definition,
        "baseUnitName": "fraction",
        "secondsPerBaseUnit": 86_400,
        "exampleStart": {"year": 0, "fraction": 0},
        "displayFormat": "0.{{ fraction | pad: 3 }}.{{ year | pad: 3 }}.{{ era }}",
        "createdAt": None,
        "version": 1,
        "tiers": [
            {"name": "year", "startValue": 0, "labels": None},
            {"name": "fraction", "startValue": 0, "labels": None},
        ],
        "eras": {
            "flipMode": "elapsed-from-flip",
            "resetsOnFlip": ["year", "fraction"],
            "defaultStartName": "M40",
            "presetNames": ["M41", "M42"],
        },
    }


async def test_times_are_rendered(caller: Caller) -> None:
    """Rules W12, W15, W16, W18."""
    flips = [{"atWorldTime": 1_000_000 * 86_400, "eraName": "M41"}]
    times = [0, 1_124_500 * 86_400, 10**11 + 1]
    shown = (await ask(caller, "Rendered", id="warhammer-imperial", times=times, flips=flips))[
        "render"
    ]
    rest = {"subdivisions": [], "isFallback": False, "warning": None}
    assert shown[:2] == [
        {
            "worldTime": 0,
            "label": "0.000.000.M40",
            "era": "M40",
            "eraYear": 1,
            "tiers": [
                {"name": "year", "value": 0, "label": None},
                {"name": "fraction", "value": 0, "label": None},
            ],
            **rest,
        },
        {
            "worldTime": times[1],
            "label": "0.500.124.M41",
            "era": "M41",
            "eraYear": 125,
            "tiers": [
                {"name": "year", "value": 124, "label": None},
                {"name": "fraction", "value": 500, "label": None},
            ],
            **rest,
        },
    ]
    missed = {"era": None, "eraYear": None, "tiers": [], **rest, "isFallback": True}
    warning = {
        "code": "OUT_OF_RANGE",
        "message": "A world time lies between 0 and 100,000,000,000.",
    }
    assert shown[2] == {
        **missed,
        "worldTime": times[2],
        "label": "100000000001",
        "warning": warning,
    }
    origin = {"year": 2, "month": 7, "day": 2}
    (shown,) = (await ask(caller, "Rendered", id="tolkien-shire", times=[0], origin=origin))[
        "render"
    ]
    assert (shown["label"], shown["tiers"][1], shown["subdivisions"]) == (
        "2 Lithedays SR 2",
        {"name": "month", "value": 7, "label": "Lithedays"},
        [{"name": "weekday", "value": None, "label": None}],
    )


async def test_the_same_calendar_is_asked_in_several_ways_at_once(caller: Caller) -> None:
    """Rule W8: arguments that are lists and objects keep questions apart."""
    query = """
    query ($a: JSON, $b: JSON) { calendar(id: "stardate") {
      a: render(worldTimes: [0], origin: $a) { label }
      b: render(worldTimes: [0], origin: $b) { label }
      c: render(worldTimes: [86400], origin: $b) { label }
      d: render(worldTimes: [0]) { label }
    } }
    """
    found = (await caller.ask(query, {"a": {"count": 1}, "b": {"count": True}}))["calendar"]
    assert {name: [each["label"] for each in value] for name, value in found.items()} == {
        "a": ["Stardate 1"],
        "b": ["0"],
        "c": ["86400"],
        "d": ["Stardate 41000"],
    }


async def test_a_date_becomes_a_world_time_or_is_refused(caller: Caller) -> None:
    """Rules W3, W11."""
    earth = {"id": "earth-gregorian"}
    found = await ask(caller, "WorldTime", **earth, tiers={"year": 2024, "month": 3})
    assert found == {"worldTimeOf": 5_184_000}
    origin = {"year": 2023, "month": 12, "day": 31}
    found = await ask(caller, "WorldTime", **earth, tiers={"year": 2024}, origin=origin)
    assert found == {"worldTimeOf": 86_400}
    for tiers, origin_, code, argument in (
        ({"year": 2023, "month": 2, "day": 29}, None, "DATE_INVALID", "tiers.day"),
        ({"year": 2023}, None, "OUT_OF_RANGE", "tiers"),
        ("2024", None, "DATE_INVALID", "tiers"),
        ({"year": 2024}, {"count": 1}, "DATE_INVALID", "origin.count"),
    ):
        given = {**earth, "tiers": tiers, "origin": origin_}
        answer = await caller.post(CALENDARS, given, "WorldTime")
        assert answer.body["data"] == {"calendar": {"worldTimeOf": None}}
        (error,) = answer.body["errors"]
        assert error["extensions"] == {"code": code, "argument": argument}


@pytest.mark.parametrize("value", [2**53, -(2**53), 1.5, "1", True])
async def test_a_long_of_another_size_or_kind_is_refused(caller: Caller, value: Any) -> None:
    """Rule T47."""
    given = {"id": "stardate", "times": [value]}
    refused = await caller.post(CALENDARS, given, "Rendered")
    assert (refused.status, refused.codes) == (422, ["BAD_USER_INPUT"])


@pytest.mark.parametrize("value", [str(2**53), "9" * 5_000, "1.5", '"1"', "true", "null"])
async def test_a_long_of_another_kind_in_a_document_is_refused(caller: Caller, value: str) -> None:
    """Rule T47."""
    query = f'{{ calendar(id: "stardate") {{ render(worldTimes: [{value}]) {{ label }} }} }}'
    refused = await caller.post(query)
    assert (refused.status, refused.codes) == (422, ["GRAPHQL_VALIDATION_FAILED"])


async def test_too_many_times_or_flips_are_refused(caller: Caller) -> None:
    """Rules W15, W16."""
    flip = {"atWorldTime": 0, "eraName": "x"}
    for given, code, argument in (
        ({"times": [0] * 201}, "LIMIT_REACHED", "worldTimes"),
        ({"times": [0], "flips": [flip] * 501}, "LIMIT_REACHED", "flips"),
        (
            {"times": [0], "flips": [flip, {**flip, "atWorldTime": -1}]},
            "OUT_OF_RANGE",
            "flips.1.atWorldTime",
        ),
    ):
        answer = await caller.post(CALENDARS, {"id": "stardate", **given}, "Rendered")
        (error,) = answer.body["errors"]
        assert error["extensions"] == {"code": code, "argument": argument}


async def test_a_refused_change_changes_nothing(caller: Caller, ledger: Ledger) -> None:
    """Rules W4, W22, W23."""
    own = (await change(caller, "CalendarCreate", name="Mine", definition=DAYS))["calendar"]["id"]
    spoiled: Any = copy.deepcopy(DAYS)
    spoiled["tiers"][0]["startValue"] = 2**70
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    before = await ledger.fingerprint()
    path = ["input", "definition"]
    for definition, code, where in (
        (spoiled, "DEFINITION_INVALID", [*path, "tiers", "0", "startValue"]),
        (
            {**DAYS, "exampleStartValue": {"day": 0.5}},
            "DEFINITION_INVALID",
            [*path, "exampleStartValue", "day"],
        ),
        ([], "DEFINITION_INVALID", path),
        (5, "DEFINITION_INVALID", path),
        ({**DAYS, "x": deep}, "DEFINITION_INVALID", [*path, "x"]),
        ({"x": "y" * 70_000}, "LIMIT_REACHED", path),
    ):
        for operation, given in (
            ("CalendarCreate", {"name": "x", "definition": definition}),
            ("CalendarUpdate", {"input": {"calendarId": own, "definition": definition}}),
        ):
            assert await refusal(caller, operation, **given) == (code, where)
    id_path = ["input", "calendarId"]
    for operation, given, code, where in (
        ("CalendarUpdate", {"input": {"calendarId": "stardate"}}, "CALENDAR_BUILT_IN", id_path),
        ("CalendarDelete", {"calendar": "stardate"}, "CALENDAR_BUILT_IN", id_path),
        ("CalendarClone", {"calendar": "nothing"}, "NOT_FOUND", id_path),
        (
            "CalendarUpdate",
            {"input": {"calendarId": own, "expectedVersion": 2, "name": "x"}},
            "CONFLICT",
            ["input", "expectedVersion"],
        ),
    ):
        assert await refusal(caller, operation, **given) == (code, where)
    assert await ledger.fingerprint() == before
