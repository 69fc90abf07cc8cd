"""Conversion as an algebra, and against another implementation of the Gregorian calendar."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from services.calendars import BUILT_INS, MAX_WORLD_TIME, System, render_times, system_of
from services.calendars.model import Definition, read_definition
from services.errors import Invalid

EARTH = system_of(BUILT_INS["earth-gregorian"].definition)
NAMES = ("year", "month", "day", "hour", "minute", "second")
FIRST = datetime(1, 1, 1)
SECONDS = int((datetime(9999, 12, 31, 23, 59, 59) - FIRST).total_seconds())


def date_of(moment: datetime) -> dict[str, int]:
    parts = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    return dict(zip(NAMES, parts, strict=True))


@settings(max_examples=1_000, deadline=None)
@given(st.lists(st.integers(0, SECONDS), min_size=4, max_size=4))
def test_earth_is_as_the_standard_library_has_it(seconds: list[int]) -> None:
    """Rules W5, W6, W12."""
    for each in seconds:
        moment = FIRST + timedelta(seconds=each)
        found = EARTH._counter.values_at(each)
        assert found == list(date_of(moment).values())
        assert EARTH._counter.count(found) == each
        (shown,) = EARTH.render([0], date_of(moment), [])
        assert shown.subdivisions[0].value == moment.weekday()


conditions = st.lists(
    st.fixed_dictionaries(
        {"every": st.integers(1, 6)},
        optional={"offset": st.integers(-3, 3), "exclude": st.booleans()},
    ),
    max_size=3,
)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """Calendars with lengths of all kinds, some of which come out as 0."""
    tiers: list[dict[str, Any]] = []
    most: dict[str, int] = {}
    for number in range(draw(st.integers(1, 4))):
        name = f"t{number}"
        tier: dict[str, Any] = {"name": name, "startValue": draw(st.integers(-2, 2))}
        if number:
            kinds = ["constant", "rule", *(["table"] if number > 1 else [])]
            kind = draw(st.sampled_from(kinds))
            longest = 0
            if kind == "constant":
                longest = draw(st.integers(1, 5))
                rollover: dict[str, Any] = {"value": longest}
            elif kind == "rule":
                against = draw(st.sampled_from([each["name"] for each in tiers]))
                rules = draw(conditions)
                rollover = {"against": against, "base": draw(st.integers(0, 4))}
                rollover["conditions"] = rules
                longest = rollover["base"] + len(rules)
            else:
                index = draw(st.sampled_from(tiers[1:]))
                size = max(most[index["name"]], 1)
                lengths = st.lists(st.integers(0, 4), min_size=size, max_size=size)
                rollover = {"indexedBy": index["name"], "values": draw(lengths)}
                longest = max(rollover["values"])
                if draw(st.booleans()):
                    rules = draw(conditions)
                    rollover["leap"] = {
                        "indexedBy": draw(st.sampled_from([each["name"] for each in tiers])),
                        "atIndex": index["startValue"] + draw(st.integers(0, size - 1)),
                        "conditions": rules,
                    }
                    longest += len(rules)
            tier["rollover"] = {"kind": kind, **rollover}
            most[name] = longest
        tiers.append(tier)
    last = tiers[-1]
    last["subdivisions"] = [{"name": "week", "labels": ["a", "b", "c"], "offset": 1}]
    if len(tiers) > 1 and draw(st.booleans()):
        skipped = {last["name"]: last["startValue"]}
        last["subdivisions"][0]["skipWhen"] = [skipped]
    return {
        "baseUnitName": "unit",
        "secondsPerBaseUnit": draw(st.integers(1, 100)),
        "tiers": tiers,
        "exampleStartValue": {each["name"]: each["startValue"] for each in tiers},
        "displayFormat": "{{ t0 }} {{ weekName }}",
    }


def system(definition: dict[str, Any]) -> System:
    """It made ready, for an example that it does have."""
    try:
        return System(read_definition(definition))
    except Invalid:
        assume(False)
        raise


@settings(max_examples=150, deadline=None)
@given(definitions(), st.integers(-400, 400))
def test_units_become_values_and_the_same_units_again(
    definition: dict[str, Any], units: int
) -> None:
    """Rules W5, W6, W7: before the beginning too, and each unit follows the one before."""
    counter = system(definition)._counter
    values = counter.values_at(units)
    assert counter.count(values) == units
    after = counter.values_at(units + 1)
    assert after > values
    for place in range(1, len(values)):
        first, last = counter.bounds(place, values)
        assert first <= values[place] <= last


def walked(definition: Definition, units: int) -> list[int]:
    """The values after so many units, by stepping through every single unit."""
    tiers = definition.tiers
    places = {each.name: place for place, each in enumerate(tiers)}

    def length(place: int, values: list[int]) -> int:
        rollover: Any = tiers[place].rollover
        if rollover.kind == "constant":
            return int(rollover.value)
        leaps = rollover.leap if rollover.kind == "table" else rollover
        found = 0
        if rollover.kind == "table":
            index = places[rollover.indexed_by]
            found = rollover.values[values[index] - tiers[index].start_value]
            if leaps is None or values[index] != leaps.at_index:
                return int(found)
            value = values[places[leaps.indexed_by]]
        else:
            found = rollover.base
            value = values[places[rollover.against]]
        for each in leaps.conditions:
            if (value - each.offset) % each.every == 0:
                found += -1 if each.exclude else 1
        return max(found, 0)

    left = units

    def inside(values: list[int]) -> list[int] | None:
        nonlocal left
        place = len(values)
        if place == len(tiers):
            left -= 1
            return values if left < 0 else None
        start = tiers[place].start_value
        for value in range(start, start + length(place, values)):
            found = inside([*values, value])
            if found:
                return found
        return None

    year = tiers[0].start_value
    while True:
        found = inside([year])
        if found:
            return found
        year += 1


@settings(max_examples=100, deadline=None)
@given(definitions(), st.integers(0, 60))
def test_division_finds_what_walking_finds(definition: dict[str, Any], units: int) -> None:
    """Rules W5, W6, W10."""
    counter = system(definition)._counter
    assert counter.values_at(units) == walked(read_definition(definition), units)


@settings(max_examples=100, deadline=None)
@given(definitions(), st.integers(0, MAX_WORLD_TIME))
def test_a_date_leads_back_to_its_first_second(definition: dict[str, Any], time: int) -> None:
    """Rules W3, W9, W11."""
    ready = system(definition)
    (found,) = ready.render([time], None, [])
    date = {each.name: each.value for each in found.tiers if each.value is not None}
    seconds = definition["secondsPerBaseUnit"]
    assert ready.world_time_of(date, None) == time - time % seconds


@settings(max_examples=60, deadline=None)
@given(definitions(), st.integers(-60, 60))
def test_labels_go_round_over_all_units_that_are_not_skipped(
    definition: dict[str, Any], units: int
) -> None:
    """Rules W12, W13."""
    ready = system(definition)
    ((_, each, counter),) = ready._cycles
    labels = []
    for unit in range(units, units + 12):
        values = ready._counter.values_at(unit)
        if not counter.is_skipped(values):
            labels.append((counter.count(values) + each.offset) % 3)
    assert all((after - label) % 3 == 1 for label, after in pairwise(labels))


@pytest.mark.parametrize("world_time", [-1, MAX_WORLD_TIME + 1, 2**53 - 1])
def test_times_beyond_the_bounds_are_shown_as_numbers(world_time: int) -> None:
    """Rules W1, W15."""
    (found,) = render_times(BUILT_INS["stardate"].definition, [world_time])
    assert (found.label, found.is_fallback, found.tiers) == (str(world_time), True, [])
    assert found.warning is not None
    assert found.warning.code == "OUT_OF_RANGE"


def test_times_may_come_in_any_order() -> None:
    """Rule W2."""
    times = [MAX_WORLD_TIME, 0, 5, 0]
    found = render_times(BUILT_INS["earth-gregorian"].definition, times)
    assert [each.world_time for each in found] == times
    assert found[1] == found[3]


DATES: list[tuple[Any, str, str]] = [
    ({"year": 2023, "month": 2, "day": 29}, "DATE_INVALID", "tiers.day"),
    ({"year": 2024, "month": 13}, "DATE_INVALID", "tiers.month"),
    ({"year": 2024, "hour": -1}, "DATE_INVALID", "tiers.hour"),
    ({"year": 10**13}, "DATE_INVALID", "tiers.year"),
    ({"year": 2024.0}, "DATE_INVALID", "tiers.year"),
    ({"year": True}, "DATE_INVALID", "tiers.year"),
    ({"year": None}, "DATE_INVALID", "tiers.year"),
    ({"count": 3}, "DATE_INVALID", "tiers.count"),
    ([2024], "DATE_INVALID", "tiers"),
    (None, "DATE_INVALID", "tiers"),
    ({"year": 2023, "month": 12, "day": 31}, "OUT_OF_RANGE", "tiers"),
    ({"year": 5192, "month": 11, "day": 16}, "OUT_OF_RANGE", "tiers"),
]


@pytest.mark.parametrize(("date", "code", "path"), DATES)
def test_a_date_that_is_none_is_refused(date: Any, code: str, path: str) -> None:
    """Rules W3, W11."""
    with pytest.raises(Invalid) as refused:
        EARTH.world_time_of(date, None)
    assert (refused.value.code, ".".join(map(str, refused.value.path))) == (code, path)


@pytest.mark.parametrize("origin", [{"count": 1}, {"year": 2023, "month": 2, "day": 29}, [], "x"])
def test_an_origin_that_is_no_date_shows_numbers(origin: Any) -> None:
    """Rules W8, W15."""
    (found,) = render_times(BUILT_INS["earth-gregorian"].definition, [7], origin)
    assert (found.label, found.is_fallback) == ("7", True)
    assert found.warning is not None
    assert found.warning.code == "DATE_INVALID"


def test_what_a_calendar_holds_is_kept_by_content() -> None:
    """Rule W10."""
    stardate = BUILT_INS["stardate"].definition
    changed = {**stardate, "displayFormat": "{{ count }}!"}
    assert render_times(stardate, [0])[0].label == "Stardate 41000"
    assert render_times(changed, [0])[0].label == "41000!"
    assert system_of(dict(stardate)) is system_of(stardate)
    assert system_of(changed) is not system_of(stardate)
