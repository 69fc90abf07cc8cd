"""What a calendar may be: its shape, its bounds, and the rules between its parts.

A definition is JSON with the names of the specification (`secondsPerBaseUnit`, `tiers`, …). What
can be said of one part alone is said by the types here; what needs several parts is in `_faults`.
Source: spec aventuras, calendar systems; docs/calendars.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from services.errors import Invalid, LimitReached

# About 3,169 years of the Gregorian calendar, in seconds.
MAX_WORLD_TIME = 100_000_000_000
MAX_DEFINITION_BYTES = 64 * 1024
MAX_TIERS = 12
MAX_LABELS = 1_000
MAX_CONDITIONS = 16
MAX_SUBDIVISIONS = 8
MAX_SKIPPED = 100
MAX_LENGTH = 1_000_000_000
# Beyond it no value of a tier lies that a world time reaches.
MAX_VALUE = 10**12
MAX_EVERY = 10_000
MAX_TEMPLATE = 2_000
# Words of templates, and what templates are told beside the tiers.
RESERVED = frozenset({"and", "or", "contains", "true", "false", "nil", "null", "era", "eraYear"})

# A name stands in templates, so it is one word of letters, digits and underscores.
Name = Annotated[str, Field(max_length=40, pattern=r"^[^\W\d]\w*$")]
Label = Annotated[str, Field(min_length=1, max_length=100)]
Value = Annotated[int, Field(ge=-MAX_VALUE, le=MAX_VALUE)]
Length = Annotated[int, Field(ge=0, le=MAX_LENGTH)]
Values = Mapping[str, int]
Path = tuple[str | int, ...]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class Condition(_Part):
    """Counts one unit more where `value - offset` is a multiple of `every`, one less to exclude."""

    every: Annotated[int, Field(ge=1, le=MAX_EVERY)]
    offset: Value = 0
    exclude: bool = False


Conditions = Annotated[list[Condition], Field(max_length=MAX_CONDITIONS)]


class Leap(_Part):
    """Units that a table gets where its own index is at `at_index`, by the value of a tier."""

    indexed_by: Name
    at_index: Value
    conditions: Conditions


class Constant(_Part):
    """Always so many units."""

    kind: Literal["constant"]
    value: Annotated[int, Field(ge=1, le=MAX_LENGTH)]


class Table(_Part):
    """So many units as the table has for the value of a tier above."""

    kind: Literal["table"]
    indexed_by: Name
    values: Annotated[list[Length], Field(min_length=1, max_length=MAX_LABELS)]
    leap: Leap | None = None


class Rule(_Part):
    """So many units as `base` and the conditions on a tier above make together."""

    kind: Literal["rule"]
    against: Name
    base: Length
    conditions: Conditions


class Subdivision(_Part):
    """Labels that go round with the units of a tier, as days of the week do."""

    name: Name
    labels: Annotated[list[Label], Field(min_length=1, max_length=MAX_LABELS)]
    # Which label the calendar's very first unit has.
    offset: Value = 0
    # Units that have no label and are not counted.
    skip_when: Annotated[
        list[Annotated[dict[Name, Value], Field(min_length=1)]], Field(max_length=MAX_SKIPPED)
    ] = []


class Tier(_Part):
    """One unit of a calendar; `rollover` says how many of it make one of the tier above."""

    name: Name
    start_value: Value
    rollover: Annotated[Constant | Table | Rule, Field(discriminator="kind")] | None = None
    labels: Annotated[list[Label], Field(min_length=1, max_length=MAX_LABELS)] | None = None
    subdivisions: Annotated[list[Subdivision], Field(max_length=MAX_SUBDIVISIONS)] = []


class Eras(_Part):
    """What eras do to the display."""

    flip_mode: Literal["display-label", "elapsed-from-flip", "calendar-aligned"] = "display-label"
    resets_on_flip: Annotated[list[Name], Field(max_length=MAX_TIERS)] = []
    default_start_name: Label
    preset_names: Annotated[list[Label], Field(max_length=MAX_LABELS)] = []


class Definition(_Part):
    """A calendar without its name: tiers from the largest to the smallest, and how it is shown."""

    base_unit_name: Label
    seconds_per_base_unit: Annotated[int, Field(ge=1, le=MAX_WORLD_TIME)]
    tiers: Annotated[list[Tier], Field(min_length=1, max_length=MAX_TIERS)]
    example_start_value: dict[Name, Value]
    display_format: Annotated[str, Field(max_length=MAX_TEMPLATE)]
    eras: Eras | None = None


def read_definition(given: Any, *path: str | int) -> Definition:
    """Read a definition; `id` and `name` in it are left out, the calendar has its own.

    Raises LimitReached and Invalid (DEFINITION_INVALID) with `path` and what leads to the fault.
    """
    try:
        size = len(orjson.dumps(given))
    except TypeError:
        raise _invalid("This holds what JSON of the calendar cannot.", path) from None
    if size > MAX_DEFINITION_BYTES:
        raise LimitReached(f"A definition has {MAX_DEFINITION_BYTES:,} bytes at most.", path=path)
    if isinstance(given, dict):
        given = {name: value for name, value in given.items() if name not in ("id", "name")}
    try:
        read = Definition.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _invalid(_said(first["type"], first["msg"]), (*path, *_steps(first["loc"]))) from None
    for where, message in _faults(read):
        raise _invalid(message, (*path, *where))
    return read


def written(definition: Definition) -> dict[str, Any]:
    """A definition as JSON, in the one form in which equal ones are equal."""
    return definition.model_dump(by_alias=True, exclude_none=True)


def longest(tier: Tier) -> int:
    """The most units of a tier that one of the tier above may have."""
    rollover = tier.rollover
    if isinstance(rollover, Constant):
        return rollover.value
    if isinstance(rollover, Table):
        return max(rollover.values) + (_added(rollover.leap.conditions) if rollover.leap else 0)
    return rollover.base + _added(rollover.conditions) if rollover else 0


def _added(conditions: Sequence[Condition]) -> int:
    return sum(not each.exclude for each in conditions)


def _invalid(message: str, path: Path) -> Invalid:
    return Invalid(message, "DEFINITION_INVALID", path)


def _said(kind: str, message: str) -> str:
    """What pydantic finds, for people who have never seen its classes and patterns."""
    if kind == "string_pattern_mismatch":
        return "A name is one word of letters, digits and underscores, and begins with a letter."
    return f"{message.partition(' or instance of ')[0][:300]}."


def _steps(found: Path) -> Path:
    """A place in the JSON; pydantic names the chosen kind of a rollover as a step of its own."""
    return tuple(
        step for index, step in enumerate(found) if not index or found[index - 1] != "rollover"
    )


def _faults(read: Definition) -> Iterator[tuple[Path, str]]:
    """What is wrong between the parts of a definition, and where."""
    yield from _doubled_names(read)
    above: dict[str, Tier] = {}
    for number, tier in enumerate(read.tiers):
        path = ("tiers", number)
        if above:
            yield from _faults_of_length(tier, above, (*path, "rollover"))
            if tier.labels is not None and len(tier.labels) < longest(tier):
                yield (*path, "labels"), f"{longest(tier)} labels are needed."
        above[tier.name] = tier
        for place, subdivision in enumerate(tier.subdivisions):
            for index, skipped in enumerate(subdivision.skip_when):
                if not set(skipped) <= set(list(above)[1:]):
                    yield (
                        (*path, "subdivisions", place, "skipWhen", index),
                        "Name this tier or ones above it, but not the first.",
                    )
    if set(read.example_start_value) != set(above):
        yield ("exampleStartValue",), "Give a value for each tier, and for nothing else."
    if read.eras and not set(read.eras.resets_on_flip) <= set(above):
        yield ("eras", "resetsOnFlip"), "Name tiers of the calendar."


def _doubled_names(read: Definition) -> Iterator[tuple[Path, str]]:
    """Names that templates could not tell apart."""
    taken = set(RESERVED)
    for number, tier in enumerate(read.tiers):
        named: list[tuple[Path, str]] = [(("tiers", number), tier.name)]
        for place, each in enumerate(tier.subdivisions):
            named.append((("tiers", number, "subdivisions", place), each.name))
        for path, name in named:
            if taken & {name, f"{name}Name"}:
                yield (*path, "name"), "This name is taken in templates: choose another."
            taken |= {name, f"{name}Name"}


def _faults_of_length(
    tier: Tier, above: Mapping[str, Tier], path: Path
) -> Iterator[tuple[Path, str]]:
    """What is wrong with the rollover of a tier that is not the first."""
    rollover = tier.rollover
    told = "Name a tier above this one."
    if rollover is None:
        yield path, "Say how many of these make one of the tier above."
    elif isinstance(rollover, Rule) and rollover.against not in above:
        yield (*path, "against"), told
    elif isinstance(rollover, Table):
        index = above.get(rollover.indexed_by)
        if index is None or rollover.indexed_by == next(iter(above)):
            yield (*path, "indexedBy"), f"{told[:-1]} that is not the first: that has no end."
        elif len(rollover.values) < longest(index):
            yield (*path, "values"), f"{longest(index)} values are needed."
        elif rollover.leap:
            if rollover.leap.indexed_by not in above:
                yield (*path, "leap", "indexedBy"), told
            if not 0 <= rollover.leap.at_index - index.start_value < len(rollover.values):
                yield (*path, "leap", "atIndex"), f"This is no value of {index.name}."
