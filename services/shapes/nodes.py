"""The shape of a JSON column, read off its model: what may be absent, what may be null, and what
is compared whole.

A null in an undo payload means one of three things, and the shape alone says which. That needs two
rules of every shape: values of a record are never null, and a field is never both optional and
nullable. A model that breaks one is refused when it is read, which is at start-up.
Source: spec aventuras, op=update encoding rule and the invariants below it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel


class ShapeError(Exception):
    """A model with which undo would be ambiguous; the message names the field."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that is stored and restored whole: a text, a number, an array."""


@dataclass(frozen=True, slots=True)
class Record:
    """An object with free keys, whose values are leaves that are never null."""


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a fixed object."""

    node: Node
    is_optional: bool
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Fixed:
    """An object whose keys are known."""

    fields: Mapping[str, Field]


Node = Leaf | Record | Fixed


@functools.cache
def shape_of(model: type[BaseModel]) -> Fixed:
    """The shape of a model's JSON. Raises ShapeError."""
    fields = {}
    for name, info in model.model_fields.items():
        key = info.alias or name
        where = f"{model.__name__}.{key}"
        inner, is_nullable = _without_none(info.annotation)
        is_optional = not info.is_required()
        if is_optional and is_nullable:
            raise ShapeError(f"{where} is both optional and nullable")
        fields[key] = Field(_node(inner, where), is_optional, is_nullable)
    return Fixed(fields)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) not in (Union, UnionType):
        return annotation, False
    kinds = get_args(annotation)
    others = tuple(each for each in kinds if each is not NoneType)
    return (others[0] if len(others) == 1 else annotation), NoneType in kinds


def _node(annotation: Any, where: str) -> Node:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return shape_of(annotation)
    if get_origin(annotation) is dict:
        _, value = get_args(annotation)
        if _without_none(value)[1]:
            raise ShapeError(f"the values of {where} are nullable")
        return Record()
    return Leaf()
