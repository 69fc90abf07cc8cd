"""Known dates of the calendars that come with the server."""

from __future__ import annotations

from typing import Any

import pytest

from services.calendars import (
    BUILT_INS,
    EraFlip,
    RenderedTime,
    System,
    render_times,
    system_of,
    written,
)
from services.calendars.model import read_definition

DAY = 86_400


def shown(
    calendar: str,
    world_time: int,
    origin: dict[str, int] | None = None,
    flips: list[EraFlip] | None = None,
) -> RenderedTime:
    (found,) = render_times(BUILT_INS[calendar].definition, [world_time], origin, flips or [])
    return found


def values(found: RenderedTime) -> list[int | None]:
    assert found.warning is None
    return [each.value for each in found.tiers]


def earth(text: str) -> dict[str, int]:
    """A date such as "-43-03-15 23:59:59"; the time may be left out."""
    date, _, time = text.partition(" ")
    year, month, day = date.rsplit("-", 2)
    hour, minute, second = time.split(":") if time else "000"
    names = ("year", "month", "day", "hour", "minute", "second")
    return dict(zip(names, map(int, (year, month, day, hour, minute, second)), strict=True))


EARTH = [
    ("2024-01-01", 59, "2024-01-01 00:00:59"),
    ("2024-01-01", 60, "2024-01-01 00:01:00"),
    ("2024-01-01", 3661, "2024-01-01 01:01:01"),
    ("2024-01-01", 86399, "2024-01-01 23:59:59"),
    ("2024-01-01", 86400, "2024-01-02"),
    ("2024-01-01", 2332800, "2024-01-28"),
    ("2024-01-01", 2678400, "2024-02-01"),
    ("2024-01-01", 5097600, "2024-02-29"),
    ("2024-01-01", 5184000, "2024-03-01"),
    ("2024-01-01", 31536000, "2024-12-31"),
    ("2024-01-01", 31622400, "2025-01-01"),
    ("2024-01-01", 126230400, "2028-01-01"),
    ("2024-01-01", 1000000000, "2055-09-09 01:46:40"),
    ("2024-01-01", 10000000000, "2340-11-20 17:46:40"),
    ("2024-01-01", 100000000000, "5192-11-15 09:46:40"),
    ("1900-02-28", 86400, "1900-03-01"),
    ("2000-02-28", 86400, "2000-02-29"),
    ("2100-02-28 23:59:59", 1, "2100-03-01"),
    ("2023-12-31 23:59:59", 1, "2024-01-01"),
    ("2024-02-29 23:59:59", 1, "2024-03-01"),
    ("1-01-01", 31536000, "2-01-01"),
    ("-43-03-15", 0, "-43-03-15"),
    ("-43-03-15", 86400, "-43-03-16"),
    ("-3-01-01", 94608000, "0-01-01"),
    ("-3-01-01", 126230400, "1-01-01"),
    ("0-02-28", 86400, "0-02-29"),
    ("0-12-31 23:59:59", 1, "1-01-01"),
]


@pytest.mark.parametrize(("origin", "world_time", "expected"), EARTH)
def test_seconds_become_dates_of_earth_and_dates_seconds(
    origin: str, world_time: int, expected: str
) -> None:
    """Rules W5, W6, W7, W8, W11."""
    found = shown("earth-gregorian", world_time, earth(origin))
    assert values(found) == list(earth(expected).values())
    system = system_of(BUILT_INS["earth-gregorian"].definition)
    assert system.world_time_of(earth(expected), earth(origin)) == world_time


SHIRE = [
    (0, [1, 0, 1], 0),
    (1, [1, 1, 1], 1),
    (31, [1, 2, 1], 3),
    (181, [1, 7, 1], 6),
    (182, [1, 7, 2], None),
    (183, [1, 7, 3], 0),
    (184, [1, 8, 1], 1),
    (364, [1, 14, 1], 6),
    (365, [2, 0, 1], 0),
    (1095, [4, 0, 1], 0),
    (1279, [4, 7, 4], 1),
    (1280, [4, 8, 1], 2),
    (1461, [5, 0, 1], 1),
    (36524, [101, 0, 1], 3),
]


@pytest.mark.parametrize(("days", "expected", "weekday"), SHIRE)
def test_days_of_the_shire(days: int, expected: list[int], weekday: int | None) -> None:
    """Rules W5, W12, W13: Midyear's Day is no day of the week, but the leap day is."""
    found = shown("tolkien-shire", days * DAY)
    assert values(found) == expected
    assert [each.value for each in found.subdivisions] == [weekday]


def test_less_than_a_unit_moves_nothing() -> None:
    """Rule W9."""
    assert values(shown("tolkien-shire", 86_399)) == [1, 0, 1]
    assert values(shown("tolkien-shire", 86_401)) == [1, 1, 1]
    for world_time, count in ((86_399, 41_000), (86_400, 41_001), (86_313_600, 41_999)):
        assert values(shown("stardate", world_time, {"count": 41_000})) == [count]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (19, "13.0.0.0.19"),
        (20, "13.0.0.1.0"),
        (359, "13.0.0.17.19"),
        (360, "13.0.1.0.0"),
        (7199, "13.0.19.17.19"),
        (7200, "13.1.0.0.0"),
        (143999, "13.19.19.17.19"),
        (144000, "14.0.0.0.0"),
    ],
)
def test_days_of_the_long_count(days: int, expected: str) -> None:
    """Rule W5."""
    assert shown("mayan-long-count", days * DAY).label == expected


def test_the_long_count_from_its_beginning() -> None:
    """Rule W8."""
    nothing = dict.fromkeys(("baktun", "katun", "tun", "winal", "kin"), 0)
    for origin in (nothing, {}):
        # 1,872,000 days are beyond the longest story, so the way back is asked instead.
        system = system_of(BUILT_INS["mayan-long-count"].definition)
        later = {**nothing, "baktun": 7}
        assert system.world_time_of(later, origin) == 7 * 144_000 * DAY
    units = system._counter.count([13, 0, 0, 0, 0])
    assert units == 1_872_000
    assert system._counter.values_at(units) == [13, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (29, [1, 0, 30]),
        (30, [1, 1, 1]),
        (359, [1, 11, 30]),
        (360, [1, 12, 1]),
        (364, [1, 12, 5]),
        (365, [2, 0, 1]),
    ],
)
def test_days_of_twelve_months_and_five(days: int, expected: list[int]) -> None:
    """Rule W5."""
    assert values(shown("fantasy-12-30", days * DAY)) == expected


JAPAN = [
    EraFlip(4_749_926_400, "Reiwa"),
    EraFlip(1_381_104_000, "Taisho"),
    EraFlip(3_793_478_400, "Heisei"),
    EraFlip(1_835_654_400, "Showa"),
]


@pytest.mark.parametrize(
    ("date", "world_time", "era", "year"),
    [
        ("1868-10-23", 0, "Meiji", 1),
        ("1912-07-29 23:59:59", 1_381_103_999, "Meiji", 45),
        ("1912-07-30", 1_381_104_000, "Taisho", 1),
        ("1926-12-25", 1_835_654_400, "Showa", 1),
        ("1989-01-07", 3_793_392_000, "Showa", 64),
        ("1989-01-08", 3_793_478_400, "Heisei", 1),
        ("2019-04-30", 4_749_840_000, "Heisei", 31),
        ("2019-05-01", 4_749_926_400, "Reiwa", 1),
        ("2020-01-01", 4_771_094_400, "Reiwa", 2),
        ("2020-11-15", 4_798_656_000, "Reiwa", 2),
        ("2026-01-01", 4_960_483_200, "Reiwa", 8),
    ],
)
def test_eras_of_japan(date: str, world_time: int, era: str, year: int) -> None:
    """Rules W16, W17."""
    found = shown("imperial-japan", world_time, flips=JAPAN)
    assert values(found) == list(earth(date).values())
    assert (found.era, found.era_year) == (era, year)
    month = ("January", "February", "March", "April", "May", "June", "July", "August")
    month += ("September", "October", "November", "December")
    day, at = earth(date), date.partition(" ")[2][:5] or "00:00"
    assert found.label == f"{era} {year}, {month[day['month'] - 1]} {day['day']} {at}"


def test_tiers_count_anew_from_the_beginning_of_an_era() -> None:
    """Rule W18: 564 days after the era began it is the year 2, the 19th of the seventh month."""
    japan = BUILT_INS["imperial-japan"].definition
    eras = {**japan["eras"], "flipMode": "elapsed-from-flip"}
    eras["resetsOnFlip"] = ["year", "month", "day"]
    (found,) = render_times({**japan, "eras": eras}, [4_798_656_000], None, JAPAN)
    assert values(found) == [2, 7, 19, 0, 0, 0]
    eras["resetsOnFlip"] = ["year"]
    (found,) = render_times({**japan, "eras": eras}, [4_798_656_000], None, JAPAN)
    assert values(found) == [2, 11, 15, 0, 0, 0]
    assert found.era_year == 2


FIXTURE: dict[str, Any] = {
    "baseUnitName": "day",
    "secondsPerBaseUnit": DAY,
    "tiers": [
        {"name": "year", "startValue": 1},
        {"name": "day", "startValue": 1, "rollover": {"kind": "constant", "value": 360}},
    ],
    "exampleStartValue": {"year": 1, "day": 1},
    "displayFormat": "{{ era }} {{ eraYear }}",
    "eras": {"defaultStartName": "Dawn"},
}


def test_a_flip_at_the_beginning_names_the_first_era() -> None:
    """Rules W16, W17."""
    definition = written(read_definition(FIXTURE))
    flips = [EraFlip(0, "First Age"), EraFlip(31_104_000, "Second Age")]
    times = [0, 31_104_000, 62_208_000]
    found = render_times(definition, times, None, flips)
    assert [each.label for each in found] == ["First Age 1", "Second Age 1", "Second Age 2"]
    found = render_times(definition, times)
    assert [each.label for each in found] == ["Dawn 1", "Dawn 2", "Dawn 3"]


def test_imperial_dating() -> None:
    """Rule W18."""
    warhammer = "warhammer-imperial"
    flips = [EraFlip(1_000_000 * DAY, "M41")]
    assert values(shown(warhammer, 999 * DAY, flips=flips)) == [0, 999]
    found = shown(warhammer, 1_000 * DAY, flips=flips)
    assert (values(found), found.era) == ([1, 0], "M40")
    found = shown(warhammer, 1_124_500 * DAY, flips=flips)
    assert (values(found), found.era) == ([124, 500], "M41")
    assert found.label == "0.500.124.M41"
    assert values(shown(warhammer, 1_124_500 * DAY)) == [1124, 500]


def maxima(system: System, given: dict[str, int]) -> dict[str, int]:
    """The greatest value of each tier but the first, beside the values of those above it."""
    values = system.values_of(given, "tiers")
    tiers = system.definition.tiers
    return {
        tier.name: system._counter.bounds(place, values)[1]
        for place, tier in enumerate(tiers)
        if place
    }


def test_the_greatest_values_of_tiers() -> None:
    """Rule W5."""
    system = system_of(BUILT_INS["earth-gregorian"].definition)
    rest = {"hour": 23, "minute": 59, "second": 59}
    for year, month, day in ((2024, 2, 29), (2023, 2, 28), (2024, 1, 31)):
        given = {"year": year, "month": month}
        assert maxima(system, given) == {"month": 12, "day": day, **rest}
    conditions = [{"every": 4}, {"every": 100, "exclude": True}, {"every": 400}]
    rule = {"kind": "rule", "against": "year", "base": 365, "conditions": conditions}
    days = {**FIXTURE["tiers"][1], "rollover": rule}
    ruled = system_of({**FIXTURE, "tiers": [FIXTURE["tiers"][0], days]})
    assert [maxima(ruled, {"year": year})["day"] for year in (1, 4, 100, 400)] == [
        365,
        366,
        365,
        366,
    ]


@pytest.mark.parametrize(
    ("calendar", "label"),
    [
        ("earth-gregorian", "January 1, 2024 AD 00:00"),
        ("tolkien-shire", "1 2 Yule SR 1 (Sterday)"),
        ("mayan-long-count", "13.0.0.0.0"),
        ("stardate", "Stardate 41000"),
        ("fantasy-12-30", "Firstday, 1 Frostmoon, year 1"),
        ("imperial-japan", "Meiji 1, October 23 00:00"),
        ("warhammer-imperial", "0.000.000.M40"),
    ],
)
def test_each_calendar_of_the_server_shows_its_beginning(calendar: str, label: str) -> None:
    """Rule W20."""
    found = shown(calendar, 0)
    assert (found.label, found.is_fallback, found.warning) == (label, False, None)


def test_there_are_these_calendars() -> None:
    """Rule W20."""
    assert list(BUILT_INS) == [
        "earth-gregorian",
        "tolkien-shire",
        "mayan-long-count",
        "stardate",
        "fantasy-12-30",
        "imperial-japan",
        "warhammer-imperial",
    ]


def test_years_before_the_first_are_shown_from_one_on() -> None:
    """Rule W14."""
    for year, label in ((-43, "44 BC"), (0, "1 BC"), (1, "1 AD")):
        found = shown("earth-gregorian", 0, {"year": year, "month": 3, "day": 15, "hour": 7})
        assert found.label == f"March 15, {label} 07:00"
