"""From a number of units to the values of tiers and back.

What one unit of a tier holds is summed up once for everything that it depends on. Units of the
first tier repeat, as leap rules look at remainders only: their sums cover one cycle, and any number
of years, before the start too, is a division. So nothing is walked, however far a time lies.
Source: spec aventuras, calendar systems; docs/calendars.md.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from services.calendars.model import Condition, Constant, Rule, Table, Tier

# Units that may be summed up one by one for a calendar: 400 years and 24 months for ours.
MAX_STEPS = 10_000

# Which tier a length looks at, and what of its value matters.
_Look = tuple[int, Callable[[int], object]]


class TooComplex(Exception):
    """The lengths depend on one another in more ways than are summed up, or come out as nothing."""


class Budget:
    """How many units may still be summed up."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Take some; raises TooComplex."""
        self._left -= steps
        if self._left < 0:
            raise TooComplex("The lengths depend on one another in too many ways.")


@dataclass(frozen=True, slots=True)
class _Series:
    """The units of a tier within one of the tier above: all worth `unit`, or as `sums` say."""

    length: int
    unit: int
    sums: list[int] | None

    @property
    def total(self) -> int:
        return self.length * self.unit if self.sums is None else self.sums[-1]

    def before(self, number: int) -> int:
        """What the first so many are worth together."""
        return number * self.unit if self.sums is None else self.sums[number]

    def find(self, worth: int) -> tuple[int, int]:
        """Which one a worth falls into, from 0, and what of it is left."""
        if self.sums is None:
            return divmod(worth, self.unit)
        number = bisect_right(self.sums, worth) - 1
        return number, worth - self.sums[number]


class Counter:
    """Counts units of the last of some tiers, from where every tier is at its start.

    Units that match one of `skipped` are not counted. Raises TooComplex.
    """

    def __init__(
        self, tiers: Sequence[Tier], skipped: Sequence[Mapping[str, int]] = (), *, budget: Budget
    ) -> None:
        self._tiers = tiers
        self._starts = [each.start_value for each in tiers]
        self._last = len(tiers) - 1
        places = {each.name: place for place, each in enumerate(tiers)}
        self._skipped = [
            [(places[name], value) for name, value in each.items()] for each in skipped
        ]
        lengths = [_Length(each, places, self._starts) for each in tiers[1:]]
        self._lengths: list[_Length | None] = [None, *lengths]
        # For each tier, all that the worth of one of its units depends on.
        self._looks = [self._looks_of(place) for place in range(len(tiers))]
        self._known: list[dict[object, _Series]] = [{} for _ in tiers]
        self._budget = budget
        self._first = self._first_series()
        if not self._first.total:
            raise TooComplex("Every unit of the first tier comes out empty.")
        # Tiers whose units are the same everywhere, as hours of a day are: found at once.
        self._same = [
            self._series(place, self._starts) if place and not self._looks[place - 1] else None
            for place in range(len(tiers))
        ]

    def count(self, values: Sequence[int]) -> int:
        """How many units come before these values; below zero where they lie before the start."""
        first = self._first
        cycles, number = divmod(values[0] - self._starts[0], first.length)
        found = cycles * first.total + first.before(number)
        for place in range(1, self._last + 1):
            number = values[place] - self._starts[place]
            found += self._series(place, values).before(number)
        return found

    def values_at(self, units: int) -> list[int]:
        """The values of all tiers when so many units have gone by."""
        first = self._first
        cycles, rest = divmod(units, first.total)
        number, rest = first.find(rest)
        values = [self._starts[0] + cycles * first.length + number]
        for place in range(1, self._last + 1):
            series = self._same[place] or self._series(place, values)
            number, rest = series.find(rest)
            values.append(self._starts[place] + number)
        return values

    def bounds(self, place: int, values: Sequence[int]) -> tuple[int, int]:
        """The least and the greatest value that a tier but the first has, by those above it."""
        start = self._starts[place]
        return start, start + self._series(place, values).length - 1

    def is_skipped(self, values: Sequence[int]) -> bool:
        """Whether the unit with these values is not counted."""
        return any(all(values[place] == at for place, at in each) for each in self._skipped)

    def _looks_of(self, place: int) -> list[_Look]:
        below = [look for each in self._lengths[place + 1 :] if each for look in each.looks]
        matched: dict[int, set[int]] = {}
        for at, value in (pair for each in self._skipped for pair in each):
            matched.setdefault(at, set()).add(value)
        below += [(at, _one_of(values)) for at, values in matched.items()]
        return [each for each in below if each[0] <= place]

    def _first_series(self) -> _Series:
        if not self._looks[0]:
            return _Series(1, self._unit(0, [self._starts[0]]), None)
        cycle = math.lcm(
            *(every for each in self._lengths if each for every in each.cycles_of_first)
        )
        self._budget.spend(cycle)
        return self._summed(0, [], cycle)

    def _series(self, place: int, values: Sequence[int]) -> _Series:
        """The units of a tier below a unit with these values, of which only those above count."""
        key = tuple([of(values[at]) for at, of in self._looks[place - 1]])
        known = self._known[place]
        found = known.get(key)
        if found is None:
            found = known[key] = self._new_series(place, values[:place])
        return found

    def _new_series(self, place: int, values: Sequence[int]) -> _Series:
        length = self._lengths[place]
        assert length is not None  # only the first tier has none
        units = length.units(values)
        if any(at == place for at, _ in self._looks[place]):
            self._budget.spend(units + 1)
            return self._summed(place, values, units)
        self._budget.spend(1)
        return _Series(units, self._unit(place, [*values, self._starts[place]]), None)

    def _summed(self, place: int, values: Sequence[int], units: int) -> _Series:
        sums = [0]
        for value in range(self._starts[place], self._starts[place] + units):
            sums.append(sums[-1] + self._unit(place, [*values, value]))
        return _Series(units, 0, sums)

    def _unit(self, place: int, values: Sequence[int]) -> int:
        """What one unit of a tier is worth."""
        if place < self._last:
            return self._series(place + 1, values).total
        return 0 if self.is_skipped(values) else 1


class _Length:
    """How many units of a tier make one of the tier above; `places` has the tiers above by name."""

    def __init__(self, tier: Tier, places: Mapping[str, int], starts: Sequence[int]) -> None:
        self.looks: list[_Look] = []
        # After how many units of the first tier what is looked at repeats.
        self.cycles_of_first: list[int] = []
        self._base = 0
        self._table: list[int] | None = None
        self._index = self._start = self._against = 0
        self._at: int | None = None
        self._leap: Callable[[int], int] | None = None
        rollover = tier.rollover
        if isinstance(rollover, Constant):
            self._base = rollover.value
        elif isinstance(rollover, Rule):
            self._base = rollover.base
            self._add_leap(places[rollover.against], rollover.conditions)
        elif isinstance(rollover, Table):
            self._table, self._index = rollover.values, places[rollover.indexed_by]
            self._start = starts[self._index]
            self.looks.append((self._index, int))
            if rollover.leap:
                self._at = rollover.leap.at_index
                self._add_leap(places[rollover.leap.indexed_by], rollover.leap.conditions)

    def _add_leap(self, against: int, conditions: Sequence[Condition]) -> None:
        self._against, self._leap = against, _leap_sum(conditions)
        self.looks.append((against, self._leap))
        if against == 0:
            self.cycles_of_first = [each.every for each in conditions]

    def units(self, values: Sequence[int]) -> int:
        """The length below these values; what would be less than nothing is nothing."""
        value = values[self._index]
        found = self._base if self._table is None else self._table[value - self._start]
        if self._leap is not None and self._at in (None, value):
            found += self._leap(values[self._against])
        return max(found, 0)


def _leap_sum(conditions: Sequence[Condition]) -> Callable[[int], int]:
    parts = [(each.every, each.offset, -1 if each.exclude else 1) for each in conditions]

    # The times of a page lie in few years.
    @functools.lru_cache(maxsize=128)
    def leap_sum(value: int) -> int:
        found = 0
        for every, offset, sign in parts:
            if (value - offset) % every == 0:
                found += sign
        return found

    return leap_sum


def _one_of(wanted: set[int]) -> Callable[[int], int | None]:
    return lambda value: value if value in wanted else None
