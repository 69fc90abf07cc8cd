"""World times as people of a calendar write them, and dates as world times.

Whatever is wrong with a definition, an origin, a time or a template, a rendering has an answer: the
bare number with a warning.
Source: spec aventuras, calendar systems; docs/calendars.md.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from services.calendars.conversion import Budget, Counter, TooComplex
from services.calendars.model import (
    MAX_VALUE,
    MAX_WORLD_TIME,
    Definition,
    Subdivision,
    Values,
    read_definition,
)
from services.calendars.template import Template, TemplateFault
from services.errors import Invalid, LimitReached

# Definitions whose sums are kept; those of all together are about 25 MB at most.
KEPT_CALENDARS = 64
MAX_RENDERED = 200
MAX_FLIPS = 500
YEAR = "year"


# Made by the thousand, and a frozen one takes three times as long.
@dataclass(slots=True)
class TimePart:
    """The value of a tier or subdivision; a subdivision that is skipped has none."""

    name: str
    value: int | None
    label: str | None


@dataclass(frozen=True, slots=True)
class EraFlip:
    """That an era begins at a world time."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class TimeWarning:
    """Why a time is not shown as its calendar says, or not quite."""

    code: str
    message: str


@dataclass(slots=True)
class RenderedTime:
    """A world time as a calendar shows it; the bare number where `is_fallback`."""

    world_time: int
    label: str
    tiers: list[TimePart]
    subdivisions: list[TimePart]
    era: str | None
    era_year: int | None
    is_fallback: bool
    warning: TimeWarning | None


class System:
    """A definition made ready for converting and showing.

    Raises Invalid (DEFINITION_INVALID) with the path below the definition.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._tiers = definition.tiers
        self._names = [each.name for each in self._tiers]
        budget = Budget()
        path: tuple[str | int, ...] = ("tiers",)
        try:
            self._counter = Counter(self._tiers, budget=budget)
            self._cycles: list[tuple[int, Subdivision, Counter]] = []
            for number, tier in enumerate(self._tiers):
                for place, each in enumerate(tier.subdivisions):
                    path = ("tiers", number, "subdivisions", place)
                    counter = Counter(self._tiers[: number + 1], each.skip_when, budget=budget)
                    self._cycles.append((number, each, counter))
        except TooComplex as fault:
            raise Invalid(str(fault), "DEFINITION_INVALID", path) from None
        self._example = self.values_of(definition.example_start_value, "exampleStartValue")
        self._year = self._names.index(YEAR) if YEAR in self._names else None
        resets = definition.eras.resets_on_flip if definition.eras else []
        self._resets = [self._names.index(each) for each in resets]
        shown = [*self._names, *(each.name for _, each, _ in self._cycles)]
        names = frozenset([*shown, *(f"{each}Name" for each in shown), "era", "eraYear"])
        # Name, its name in templates with "Name", start and labels of each tier.
        self._shown = [
            (each.name, f"{each.name}Name", each.start_value, each.labels or ())
            for each in self._tiers
        ]
        self._template: Template | TemplateFault
        try:
            self._template = Template(definition.display_format, names)
        except TemplateFault as fault:
            self._template = fault

    def values_of(self, given: Values, *path: str | int) -> list[int]:
        """The values of all tiers, what is not given at its start.

        Raises Invalid (DATE_INVALID) with `path` and the tier.
        """
        if not isinstance(given, dict):
            raise Invalid("Give a value for each tier, by its name.", "DATE_INVALID", path)
        values: list[int] = []
        for name in given:
            if name not in self._names:
                raise Invalid("The calendar has no such tier.", "DATE_INVALID", (*path, name))
        for place, tier in enumerate(self._tiers):
            value = given.get(tier.name, tier.start_value)
            first, last = self._counter.bounds(place, values) if place else (-MAX_VALUE, MAX_VALUE)
            if isinstance(value, bool) or not isinstance(value, int) or not first <= value <= last:
                told = f"{tier.name} is a whole number from {first} to {last}."
                raise Invalid(told, "DATE_INVALID", (*path, tier.name))
            values.append(value)
        return values

    def units_at(self, origin: Values | None) -> int:
        """Where world time 0 stands, in base units. Raises Invalid (DATE_INVALID)."""
        return self._counter.count(
            self._example if origin is None else self.values_of(origin, "origin")
        )

    def world_time_of(self, tiers: Values, origin: Values | None) -> int:
        """The world time that shows these values. Raises Invalid (DATE_INVALID, OUT_OF_RANGE)."""
        units = self._counter.count(self.values_of(tiers, "tiers")) - self.units_at(origin)
        found = units * self.definition.seconds_per_base_unit
        if not 0 <= found <= MAX_WORLD_TIME:
            raise Invalid(
                f"This is no time of the story: from 0 to {MAX_WORLD_TIME:,} seconds behind its "
                "beginning.",
                "OUT_OF_RANGE",
                ("tiers",),
            )
        return found

    def render(
        self, world_times: Sequence[int], origin: Values | None, flips: Sequence[EraFlip]
    ) -> list[RenderedTime]:
        """World times in the order given; flips in any order, the last of several at one time."""
        try:
            start = self.units_at(origin)
        except Invalid as fault:
            where = ".".join(str(step) for step in fault.path)
            return [_missed(each, fault.code, f"{where}: {fault.message}") for each in world_times]
        rendering = _Rendering(self, start, flips)
        return [rendering.of(each) for each in world_times]


class _Rendering:
    """One page of times: where world time 0 stands, and the eras in order."""

    def __init__(self, system: System, start: int, flips: Sequence[EraFlip]) -> None:
        self._system = system
        self._start = start
        self._seconds = system.definition.seconds_per_base_unit
        self._eras = system.definition.eras
        ordered = {each.at: each for each in sorted(flips, key=lambda each: each.at)}
        self._flips = list(ordered.values()) if self._eras else []
        self._moments = list(ordered) if self._eras else []
        self._first_years: dict[int, int] = {}

    def of(self, world_time: int) -> RenderedTime:
        """One of them."""
        if not 0 <= world_time <= MAX_WORLD_TIME:
            told = f"A world time lies between 0 and {MAX_WORLD_TIME:,}."
            return _missed(world_time, "OUT_OF_RANGE", told)
        system = self._system
        values = self._values_at(world_time)
        flip = self._flip_at(world_time)
        shown, warning = self._shown(values, flip, world_time)
        scope: dict[str, Any] = {"era": None, "eraYear": None}
        if self._eras:
            scope["era"] = flip.name if flip else self._eras.default_start_name
            if system._year is not None:
                since = self._first_year(flip.at if flip else 0)
                scope["eraYear"] = values[system._year] - since + 1
        tiers = []
        for (name, label_name, first, labels), value in zip(system._shown, shown, strict=True):
            number = value - first
            label = labels[number] if labels and 0 <= number < len(labels) else None
            scope[name], scope[label_name] = value, label
            tiers.append(TimePart(name, value, label))
        subdivisions = []
        for place, each, counter in system._cycles:
            part = _turned(each, counter, values[: place + 1])
            scope[each.name], scope[f"{each.name}Name"] = part.value, part.label
            subdivisions.append(part)
        try:
            if isinstance(system._template, TemplateFault):
                raise system._template
            label, is_fallback = system._template.render(scope), False
        except TemplateFault as fault:
            label, is_fallback = str(world_time), True
            warning = TimeWarning("TEMPLATE_INVALID", f"displayFormat: {fault}")
        return RenderedTime(
            world_time,
            label,
            tiers,
            subdivisions,
            scope["era"],
            scope["eraYear"],
            is_fallback,
            warning,
        )

    def _values_at(self, world_time: int) -> list[int]:
        return self._system._counter.values_at(self._start + world_time // self._seconds)

    def _flip_at(self, world_time: int) -> EraFlip | None:
        number = bisect_right(self._moments, world_time)
        return self._flips[number - 1] if number else None

    def _first_year(self, at: int) -> int:
        """The year in which an era began."""
        assert self._system._year is not None
        if at not in self._first_years:
            self._first_years[at] = self._values_at(at)[self._system._year]
        return self._first_years[at]

    def _shown(
        self, values: list[int], flip: EraFlip | None, world_time: int
    ) -> tuple[list[int], TimeWarning | None]:
        """The values that are shown: those of tiers that begin again with an era count from it."""
        mode = self._eras.flip_mode if self._eras and flip else "display-label"
        if mode == "calendar-aligned" and len(values) > 1:
            told = "Eras that begin with a unit of the calendar are not counted yet."
            return values, TimeWarning("ERA_MODE_UNSUPPORTED", told)
        if mode == "display-label" or flip is None:
            return values, None
        elapsed = self._system._counter.values_at((world_time - flip.at) // self._seconds)
        again = self._system._resets
        return [
            elapsed[place] if place in again else value for place, value in enumerate(values)
        ], None


def _turned(each: Subdivision, counter: Counter, values: list[int]) -> TimePart:
    """Which label a unit has of those that go round."""
    if counter.is_skipped(values):
        return TimePart(each.name, None, None)
    number = (counter.count(values) + each.offset) % len(each.labels)
    return TimePart(each.name, number, each.labels[number])


def _missed(world_time: int, code: str, message: str) -> RenderedTime:
    warning = TimeWarning(code, message)
    return RenderedTime(world_time, str(world_time), [], [], None, None, True, warning)


@functools.lru_cache(maxsize=KEPT_CALENDARS)
def _system(content: bytes) -> System:
    return System(read_definition(orjson.loads(content)))


def system_of(definition: Mapping[str, Any]) -> System:
    """A stored definition made ready; kept by its content, for a calendar changes under its id.

    Raises Invalid (DEFINITION_INVALID).
    """
    return _system(orjson.dumps(definition, option=orjson.OPT_SORT_KEYS))


def render_times(
    definition: Mapping[str, Any],
    world_times: Sequence[int],
    origin: Values | None = None,
    flips: Sequence[EraFlip] = (),
) -> list[RenderedTime]:
    """World times as a calendar shows them; never raises for what a definition or origin says.

    Raises LimitReached, and Invalid (OUT_OF_RANGE) for a flip that lies where no time does.
    """
    for name, given, most in (
        ("worldTimes", world_times, MAX_RENDERED),
        ("flips", flips, MAX_FLIPS),
    ):
        if len(given) > most:
            raise LimitReached(f"Give {most} at most.", path=(name,))
    for number, each in enumerate(flips):
        if not 0 <= each.at <= MAX_WORLD_TIME:
            told = f"An era begins between 0 and {MAX_WORLD_TIME:,}."
            raise Invalid(told, "OUT_OF_RANGE", ("flips", number, "atWorldTime"))
    try:
        return system_of(definition).render(world_times, origin, flips)
    except Invalid as fault:
        return [_missed(each, fault.code, fault.message) for each in world_times]
