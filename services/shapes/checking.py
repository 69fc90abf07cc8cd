"""Checks JSON from outside against its model, and merges a patch into what is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from services.errors import Invalid
from services.shapes.nodes import Fixed, Record, shape_of
from services.shapes.payloads import overlay


def checked_json(model: type[BaseModel], value: Any, *path: str | int) -> dict[str, Any]:
    """The JSON itself, if its model takes it: nothing is filled in, dropped or converted.

    Raises Invalid with INVALID_SHAPE and the path of the first field at fault.
    """
    try:
        model.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Invalid(f"{first['msg']}.", "INVALID_SHAPE", (*path, *first["loc"])) from None
    assert isinstance(value, dict)
    return value


def merged(
    model: type[BaseModel], current: Mapping[str, Any], patch: Any, *path: str | int
) -> dict[str, Any]:
    """What is there with the given keys changed: what is left out stays, null clears, arrays are
    replaced whole. Raises Invalid (INVALID_SHAPE), also for keys that the model does not know.
    """
    return checked_json(model, _patched(shape_of(model), current, patch, path), *path)


def _patched(
    shape: Fixed, current: Mapping[str, Any], patch: Any, path: tuple[str | int, ...]
) -> dict[str, Any]:
    if not isinstance(patch, dict):
        raise Invalid("Give an object.", "INVALID_SHAPE", path)
    result = dict(current)
    for key, value in patch.items():
        if key not in shape.fields:
            known = ", ".join(sorted(shape.fields))
            raise Invalid(f"Known here are: {known}.", "INVALID_SHAPE", (*path, key))
        node = shape.fields[key].node
        if isinstance(node, Fixed) and isinstance(value, dict):
            result[key] = _patched(node, result.get(key) or {}, value, (*path, key))
        else:
            if isinstance(node, Record) and key not in result:
                result[key] = {}  # so that nulls in the patch are left out, not kept
            result = overlay(result, {key: value}, shape)
    return result
