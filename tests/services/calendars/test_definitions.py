"""What a calendar may be, and what is said of one that may not."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from services.calendars import BUILT_INS, System, render_times, written
from services.calendars.keeping import _checked_definition
from services.calendars.model import MAX_DEFINITION_BYTES, read_definition
from services.errors import Invalid, LimitReached

EARTH = BUILT_INS["earth-gregorian"].definition
Json = dict[str, Any]


def refusal(definition: Any) -> tuple[str, str]:
    with pytest.raises(Invalid) as refused:
        _checked_definition(definition)
    assert refused.value.code == "DEFINITION_INVALID"
    path = refused.value.path
    assert path[:2] == ("input", "definition")
    return ".".join(map(str, path[2:])), refused.value.message


def leap(definition: Json) -> Json:
    found: Json = definition["tiers"][2]["rollover"]["leap"]
    return found


def day(definition: Json) -> Json:
    found: Json = definition["tiers"][2]
    return found


MISTAKES: list[tuple[str, Callable[[Json], Any]]] = [
    ("secondsPerBaseUnit", lambda it: it.update(secondsPerBaseUnit=0)),
    ("secondsPerBaseUnit", lambda it: it.update(secondsPerBaseUnit=1.0)),
    ("secondsPerBaseUnit", lambda it: it.update(secondsPerBaseUnit=True)),
    ("secondsPerBaseUnit", lambda it: it.pop("secondsPerBaseUnit")),
    ("baseUnitName", lambda it: it.update(baseUnitName="")),
    ("baseUnit", lambda it: it.update(baseUnit="second")),
    ("tiers", lambda it: it.update(tiers=[])),
    ("tiers", lambda it: it.update(tiers=[{"name": f"t{each}"} for each in range(13)])),
    ("displayFormat", lambda it: it.update(displayFormat="x" * 2_001)),
    ("exampleStartValue", lambda it: it["exampleStartValue"].pop("second")),
    ("exampleStartValue", lambda it: it["exampleStartValue"].update(era=1)),
    ("exampleStartValue.day", lambda it: it["exampleStartValue"].update(month=2, day=30)),
    ("exampleStartValue.hour", lambda it: it["exampleStartValue"].update(hour=24)),
    ("tiers.1.rollover", lambda it: it["tiers"][1].pop("rollover")),
    ("tiers.1.rollover", lambda it: it["tiers"][1]["rollover"].update(kind="guess")),
    ("tiers.1.rollover.value", lambda it: it["tiers"][1]["rollover"].update(value=0)),
    ("tiers.2.rollover.values", lambda it: day(it)["rollover"]["values"].pop()),
    ("tiers.1.labels", lambda it: it["tiers"][1]["labels"].pop()),
    ("tiers.1.name", lambda it: it["tiers"][1].update(name="year")),
    ("tiers.1.name", lambda it: it["tiers"][1].update(name="era")),
    ("tiers.1.name", lambda it: it["tiers"][1].update(name="two words")),
    ("tiers.1.name", lambda it: it["tiers"][1].update(name="yearName")),
    ("tiers.2.rollover.indexedBy", lambda it: day(it)["rollover"].update(indexedBy="hour")),
    ("tiers.2.rollover.indexedBy", lambda it: day(it)["rollover"].update(indexedBy="year")),
    ("tiers.2.rollover.values.0", lambda it: day(it)["rollover"]["values"].insert(0, -1)),
    ("tiers.2.rollover.leap.indexedBy", lambda it: leap(it).update(indexedBy="day")),
    ("tiers.2.rollover.leap.atIndex", lambda it: leap(it).update(atIndex=0)),
    (
        "tiers.2.rollover.leap.conditions.0.every",
        lambda it: leap(it)["conditions"][0].update(every=0),
    ),
    ("tiers", lambda it: leap(it).update(conditions=[{"every": 9_973}, {"every": 9_967}])),
    ("tiers.2.subdivisions.0.labels", lambda it: day(it)["subdivisions"][0].update(labels=[])),
    ("tiers.2.subdivisions.0.name", lambda it: day(it)["subdivisions"][0].update(name="month")),
    (
        "tiers.2.subdivisions.0.skipWhen.0",
        lambda it: day(it)["subdivisions"][0].update(skipWhen=[{"year": 1}]),
    ),
    (
        "tiers.2.subdivisions.0.skipWhen.0",
        lambda it: day(it)["subdivisions"][0].update(skipWhen=[{"hour": 1}]),
    ),
    ("eras.flipMode", lambda it: it.update(eras={"defaultStartName": "A", "flipMode": "x"})),
    (
        "eras.resetsOnFlip",
        lambda it: it.update(eras={"defaultStartName": "A", "resetsOnFlip": ["week"]}),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("place", "spoil"), MISTAKES)
def test_a_mistake_in_a_definition_is_told_with_its_place(
    place: str, spoil: Callable[[Json], Any]
) -> None:
    """Rule W4."""
    definition = copy.deepcopy(EARTH)
    spoil(definition)
    found, message = refusal(definition)
    assert found == place
    assert re.fullmatch(r"[^^]+\.", message)
    assert "instance of" not in message


@pytest.mark.parametrize("definition", [None, [], "x", 7, {}, {"x": 2**70}])
def test_what_is_no_definition_is_refused(definition: Any) -> None:
    """Rule W4."""
    refusal(definition)


def test_a_definition_is_bounded() -> None:
    """Rule W4."""
    with pytest.raises(LimitReached) as refused:
        _checked_definition({"x": "y" * MAX_DEFINITION_BYTES})
    assert refused.value.path == ("input", "definition")
    nested: Any = []
    for _ in range(300):
        nested = [nested]
    refusal({"x": nested})


def ruled(*lengths: Json) -> Json:
    names = [f"t{number}" for number in range(len(lengths) + 1)]
    tiers = [{"name": "t0", "startValue": 0}] + [
        {"name": name, "startValue": 0, "rollover": each}
        for name, each in zip(names[1:], lengths, strict=True)
    ]
    return {
        "baseUnitName": "unit",
        "secondsPerBaseUnit": 1,
        "tiers": tiers,
        "exampleStartValue": dict.fromkeys(names, 0),
        "displayFormat": "",
    }


def rule(against: str, base: int, *every: int, exclude: bool = False) -> Json:
    conditions = [{"every": each, "exclude": exclude} for each in every]
    return {"kind": "rule", "against": against, "base": base, "conditions": conditions}


def test_lengths_that_would_be_walked_for_long_are_refused() -> None:
    """Rules W4, W10."""
    many = ruled(rule("t0", 1_000_000_000, 2), rule("t1", 5, 3))
    assert refusal(many)[0] == "tiers"
    # The same length without anything that looks at it is arithmetic.
    assert System(read_definition(ruled(rule("t0", 1_000_000_000, 2), rule("t0", 5, 3))))
    # Three tables of thirty, each of which looks at another tier: 27,000 lengths to add up.
    constant = {"kind": "constant", "value": 30}
    wide: list[Json] = [constant] * 3 + [
        {"kind": "table", "indexedBy": f"t{number}", "values": list(range(1, 31))}
        for number in (1, 2, 3)
    ]
    assert refusal(ruled(*wide))[0] == "tiers"
    assert System(read_definition(ruled(*wide[:-1])))


def test_a_length_may_come_out_as_nothing_but_not_all_of_them() -> None:
    """Rule W7."""
    some = ruled(rule("t0", 1, 2, exclude=True))
    some["exampleStartValue"]["t0"] = 1
    some["displayFormat"] = "{{ t0 }}"
    # Every second unit holds nothing, so it is never shown.
    assert [each.label for each in render_times(some, [0, 1, 2])] == ["1", "3", "5"]
    assert refusal(ruled(rule("t0", 0, 1, exclude=True)))[0] == "tiers"
    assert refusal(ruled(rule("t0", 1, 1, exclude=True)))[0] == "tiers"


def test_equal_definitions_have_one_form() -> None:
    """Rule W4: what may be left out, ids and names included, makes no difference."""
    definition = copy.deepcopy(EARTH)
    definition |= {"id": "earth-gregorian", "name": "Earth", "eras": None}
    definition["tiers"][0] |= {"rollover": None, "subdivisions": []}
    leap(definition)["conditions"][0] = {"exclude": False, "offset": 0, "every": 4}
    assert written(read_definition(definition)) == EARTH
    assert written(read_definition(EARTH)) == EARTH


def test_the_rollover_of_the_first_tier_is_never_looked_at() -> None:
    """Rule W4."""
    definition = copy.deepcopy(EARTH)
    definition["tiers"][0]["rollover"] = {"kind": "constant", "value": 1_000_000_000}
    assert render_times(_checked_definition(definition), [0])[0].label == (
        "January 1, 2024 AD 00:00"
    )


def test_a_stored_definition_that_is_none_shows_numbers() -> None:
    """Rule W15."""
    (found,) = render_times({"tiers": []}, [7])
    assert (found.label, found.is_fallback) == ("7", True)
    assert found.warning is not None
    assert found.warning.code == "DEFINITION_INVALID"
