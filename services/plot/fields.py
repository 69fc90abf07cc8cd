"""What columns of lore, threads and happenings take, and the answers of their changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from db.columns import BranchRow
from db.reading import Writing
from db.tables import Branch, StoryEntry
from services import deltas
from services.access import Viewer, require_row, row_id_in
from services.errors import Invalid
from services.text import MAX_LINE, checked_lines, checked_prose, checked_text

Check = Callable[..., Any]
TableRow = TypeVar("TableRow", bound=BranchRow)


def line(value: str, *path: str | int) -> str:
    """A title."""
    return checked_text(value, *path, max_length=MAX_LINE)


def optional_line(value: str | None, *path: str | int) -> str | None:
    """A line, or nothing: what is blank is nothing."""
    return line(value, *path) if value and value.strip() else None


def priority(value: int, *path: str | int) -> int:
    """Of 100. Raises Invalid (OUT_OF_RANGE)."""
    if not 0 <= value <= 100:
        raise Invalid("Give a number from 0 to 100.", "OUT_OF_RANGE", path)
    return value


# Columns that take whatever the schema lets through are not named.
CHECKS: dict[str, Check] = {
    "title": line,
    "body": checked_text,
    "description": checked_prose,
    "category": optional_line,
    "icon": optional_line,
    "temporal": optional_line,
    "tags": checked_lines,
    "keywords": checked_lines,
    "priority": priority,
}


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """New values by the names of columns, as they are stored. Raises Invalid and LimitReached."""
    return {
        name: CHECKS[name](value, *input_path(name)) if name in CHECKS else value
        for name, value in values.items()
    }


def input_path(column: str) -> tuple[str, str]:
    """Where a column stands in an input."""
    first, *rest = column.split("_")
    return "input", first + "".join(each.title() for each in rest)


async def entry_named(action: deltas.Action, entry_id: str | None, *path: str | int) -> str | None:
    """The own id of an entry of the branch, as it is given or beside its branch; nothing where
    nothing is given. Raises NotFound.
    """
    if not entry_id:
        return None
    row_id = row_id_in(action.branch.id, StoryEntry, entry_id, *path)
    await action.require(StoryEntry, row_id, *path)
    return row_id


async def with_entries(
    action: deltas.Action, values: Mapping[str, Any], *columns: str
) -> dict[str, Any]:
    """The values, with the entries that these columns name looked up. Raises NotFound."""
    found = dict(values)
    for column in columns:
        if column in found:
            found[column] = await entry_named(action, found[column], *input_path(column))
    return found


async def answered(
    writing: Writing, viewer: Viewer, table: type[TableRow], image: deltas.Image
) -> tuple[TableRow, Branch]:
    """A changed row and its branch, as they are now."""
    branch_id = image["branch_id"]
    return (
        await require_row(writing, viewer, table, f"{branch_id}:{image['id']}"),
        await require_row(writing, viewer, Branch, branch_id),
    )
