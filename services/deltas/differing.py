"""What differs between two states of a row, field by field, as clients are shown it.

A path is a column's name as the API writes it, and below JSON with a shape the keys that lead to
the value: `description`, `state.visual.hair`. Arrays are one value.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CheckConstraint

from db.enums import LoggedTable
from services.deltas.logged import LOGGED, STALE, Image, Logged
from services.shapes import Fixed, same
from services.shapes.nodes import Leaf, Node

# More differ in no row that people write; a state that has gone wild is cut here.
MAX_FIELDS = 200
# Says which row it is, or when it was written, and not what it says.
_NOT_SHOWN = {"branch_id", "id", "created_at", "updated_at", STALE}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One value of a row before and after; null where there is none."""

    path: str
    before: Any
    after: Any


@functools.cache
def shown_columns(table: LoggedTable) -> tuple[str, ...]:
    """The columns of a table that say what a row is."""
    # Plain texts: a driver's JSON takes no others for keys.
    return tuple(str(each) for each in LOGGED[table].columns if each not in _NOT_SHOWN)


@functools.cache
def _enums(table: LoggedTable) -> frozenset[str]:
    """The columns of a table that hold values of closed sets."""
    declared = cast("Any", LOGGED[table].table).__table__
    checks = {str(each.name) for each in declared.constraints if isinstance(each, CheckConstraint)}
    return frozenset(
        each for each in LOGGED[table].columns if any(c.endswith(f"one_of_{each}") for c in checks)
    )


def fields_between(logged: Logged, before: Image | None, after: Image | None) -> list[FieldChange]:
    """The fields in which two states of a row differ, MAX_FIELDS at most; of a row that is made or
    deleted all that say something.
    """
    image = after or before
    found: list[FieldChange] = []
    for column in shown_columns(logged.name):
        old, new = (None if side is None else side.get(column) for side in (before, after))
        shape = logged.shapes.get(column)
        node: Node = Leaf() if shape is None or image is None else shape(image)
        if column in _enums(logged.name):
            old, new = _constant(old), _constant(new)
        found += _differing(node, _name(column), old, new)
    return found[:MAX_FIELDS]


def _differing(node: Node, path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if same(before, after):
        return
    inner: list[FieldChange] = []
    if not isinstance(node, Leaf) and all(
        side is None or isinstance(side, Mapping) for side in (before, after)
    ):
        for key, below in _keys(node, before or {}, after or {}):
            sides = ((side or {}).get(key) for side in (before, after))
            inner += _differing(below, f"{path}.{key}", *sides)
    # An object that came or went empty has nothing in it to show.
    yield from inner or [FieldChange(path, before, after)]


def _keys(
    node: Node, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, Node]]:
    if isinstance(node, Fixed):
        yield from ((key, field.node) for key, field in node.fields.items())
    else:
        yield from ((key, Leaf()) for key in sorted(before.keys() | after.keys()))


def _name(column: str) -> str:
    """A column's name as the API writes it."""
    first, *others = column.split("_")
    return first + "".join(each.capitalize() for each in others)


def _constant(value: str | None) -> str | None:
    """A value of a closed set as the API writes it."""
    return None if value is None else value.upper().replace("-", "_")
