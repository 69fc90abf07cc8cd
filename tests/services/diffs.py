"""Looks at how two branches differ."""

from __future__ import annotations

from typing import Any

from db.paging import PageRequest
from services import comparing
from services.comparing import RowDifference
from tests.services.deltas.desks import Desk


async def diff_of(desk: Desk, left: str, right: str) -> comparing.BranchDiff:
    found = await comparing.find_diff(desk.writing, desk.people.owner, left, right)
    assert found is not None
    return found


async def differences(
    desk: Desk, left: str, right: str, tables: Any = None, **paging: Any
) -> list[RowDifference]:
    diff = await diff_of(desk, left, right)
    (page,) = await comparing.differences_of_diffs(
        desk.writing, desk.people.owner, [diff], PageRequest(**{"first": 200, **paging}), tables
    )
    return page.nodes


def plain(found: list[RowDifference]) -> list[tuple[str, str, str, list[tuple[str, Any, Any]]]]:
    return [
        (
            str(each.table),
            str(each.kind),
            each.label,
            [(field.path, field.left, field.right) for field in each.fields],
        )
        for each in found
    ]


def short(found: list[RowDifference]) -> list[tuple[str, str, str]]:
    return [(str(each.table), str(each.kind), each.label) for each in found]
