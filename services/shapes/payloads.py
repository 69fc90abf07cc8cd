"""Undo payloads: what an object held before it was changed, and how to put that back.

Works on decoded JSON as it is stored, never on models: a model would fill in what is absent.
Source: spec aventuras, op=update encoding rule; null as sentinel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from services.shapes.nodes import Fixed, Leaf, Record

Json = Mapping[str, Any]


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same; 1, 1.0 and true are three."""
    if left != right:
        return False
    if isinstance(left, str) or left is None:
        return True
    return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        right, option=orjson.OPT_SORT_KEYS
    )


def undo_payload(before: Json, after: Json, shape: Fixed) -> dict[str, Any]:
    """What `overlay` needs to turn `after` into `before`; empty where they are the same.

    Absent before: null. Otherwise the value before: only its changed parts where both sides are
    objects of a known shape or records, else the whole of it.
    """
    payload: dict[str, Any] = {}
    for key, field in shape.fields.items():
        if key not in before:
            if key in after:
                payload[key] = None
        elif key not in after or not same(before[key], after[key]):
            payload[key] = _before(before[key], after.get(key), field.node)
    return payload


def _before(before: Any, after: Any, node: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(after, dict) or isinstance(node, Leaf):
        return before
    if isinstance(node, Fixed):
        return undo_payload(before, after, node)
    assert isinstance(node, Record)
    return {
        key: before.get(key)
        for key in before.keys() | after.keys()
        if key not in before or key not in after or not same(before[key], after[key])
    }


def overlay(current: Json, payload: Json, shape: Fixed) -> dict[str, Any]:
    """Put back what a payload holds. A key that the shape does not know is kept as it is."""
    result = dict(current)
    for key, value in payload.items():
        field = shape.fields.get(key)
        if field is None:
            continue
        if value is None:
            if field.is_nullable:
                result[key] = None
            else:
                result.pop(key, None)
        else:
            result[key] = _restored(result.get(key), value, field.node)
    return result


def _restored(current: Any, value: Any, node: Any) -> Any:
    if not isinstance(current, dict) or not isinstance(value, dict) or isinstance(node, Leaf):
        return value
    if isinstance(node, Fixed):
        return overlay(current, value, node)
    kept = {**current, **value}
    return {key: each for key, each in kept.items() if each is not None}
