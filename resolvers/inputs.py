"""Reading inputs in which absent and null differ."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def given(input: Any, *names: str) -> dict[str, Any]:
    """Those of the named fields that the caller gave, by name; of all fields where none is named.

    The fields are `Maybe`: one that was left out is not there, one given as null is None.
    """
    wanted = names or [each.name for each in fields(input)]
    values = {name: getattr(input, name) for name in wanted}
    return {name: value.value for name, value in values.items() if value is not None}
