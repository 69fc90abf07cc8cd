"""Branches as they were: rows of a past moment, computed from those of the present and the log,
which are only read.

A moment is a position of the log, or an entry: as of an entry a branch is what a fork at it has.
Source: design, asOf; spec aventuras, branch model.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, cast

from sqlalchemy import BigInteger, DateTime, func, select
from sqlalchemy.inspection import inspect
from sqlmodel import col

from db.enums import EntryKind, LoggedTable
from db.reading import Reading, param, record_class, statement
from db.tables import Branch, BranchRow, Delta, StoryEntry
from services import deltas
from services.access import Viewer, require_row, row_id_in
from services.deltas import Image
from services.errors import Invalid


@dataclass(frozen=True, slots=True)
class AsOf:
    """A moment as it is asked for: exactly one of the three."""

    entry_id: str | None = None
    log_position: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a branch: what was logged from `cut.first_log` on is not there yet, but for what
    is about entries up to `cut.kept_position`. Nothing is cut off at the present.
    """

    branch_id: str
    # The position of the last change that counts.
    log_position: int
    # The last entry that there was.
    entry_id: str | None
    cut: deltas.Cut | None

    @property
    def id(self) -> str:
        """Tells it from other moments."""
        cut = self.cut
        return f"{self.branch_id}@{cut.first_log}+{cut.kept_position}" if cut else self.branch_id


class PastRow:
    """A row as it was, with the attributes and properties of the table's rows."""

    __slots__ = ("image", "moment")

    def __init__(self, image: Image, moment: Moment) -> None:
        self.image = image
        self.moment = moment


@functools.cache
def past_class(table: type[BranchRow]) -> type[PastRow]:
    """The class of a table's rows in the past: it bears the same name."""

    def attribute(column: str, *, is_time: bool) -> property:
        if is_time:
            return property(lambda row: _time(row.image[column]))
        return property(lambda row: row.image[column])

    attributes: dict[str, Any] = {
        each.key: attribute(
            each.columns[0].name, is_time=isinstance(each.columns[0].type, DateTime)
        )
        for each in cast("Any", inspect(table)).column_attrs
    }
    derived = {
        name: value
        for each in record_class(table).__mro__
        for name, value in vars(each).items()
        if isinstance(value, property) and name not in attributes
    }
    return type(table.__name__, (PastRow,), {"__slots__": (), **derived, **attributes})


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


@statement(Delta)
def _last_before() -> Any:
    return select(func.coalesce(func.max(col(Delta.log_position)), 0)).where(
        col(Delta.branch_id) == param("branch_id"),
        col(Delta.log_position) < param("first_log", BigInteger()),
    )


@statement(Delta)
def _first_after_position() -> Any:
    return select(func.min(col(Delta.log_position))).where(
        col(Delta.branch_id) == param("branch_id"),
        col(Delta.log_position) > param("position", BigInteger()),
    )


@statement(Delta)
def _first_after_time() -> Any:
    return select(func.min(col(Delta.log_position))).where(
        col(Delta.branch_id) == param("branch_id"),
        col(Delta.created_at) > param("at", DateTime(timezone=True)),
    )


@statement(StoryEntry)
def _last_entry() -> Any:
    return (
        select(col(StoryEntry.row_id))
        .where(
            col(StoryEntry.branch_id) == param("branch_id"),
            col(StoryEntry.kind) != EntryKind.SYSTEM.value,
        )
        .order_by(col(StoryEntry.position).desc())
        .limit(1)
    )


async def resolve_moment(reading: Reading, viewer: Viewer, branch_id: str, as_of: AsOf) -> Moment:
    """Which moment of a branch is meant. Raises NotFound, and Invalid (OUT_OF_RANGE, INVALID_TIME,
    NOT_IN_THE_STORY) with the path of the argument.
    """
    branch = await require_row(reading, viewer, Branch, branch_id, "branchId")
    if as_of.entry_id is not None:
        return await _as_of_entry(reading, viewer, branch, as_of.entry_id)
    if as_of.log_position is not None:
        if not 0 <= as_of.log_position <= branch.head:
            raise Invalid(
                f"Positions of this log go from 0 to {branch.head}.",
                "OUT_OF_RANGE",
                ("asOf", "logPosition"),
            )
        first = await reading.value(
            _first_after_position(), branch_id=branch.id, position=as_of.log_position
        )
    else:
        at = _checked_time(as_of.at)
        first = await reading.value(_first_after_time(), branch_id=branch.id, at=at)
    # No entry is kept for its own sake: this is a moment of the log.
    return await _moment(reading, viewer, branch, None if first is None else deltas.Cut(0, first))


def _checked_time(at: datetime | None) -> datetime:
    path = ("asOf", "at")
    if at is None or at.tzinfo is None:
        raise Invalid("Say in which zone: end the time with Z.", "INVALID_TIME", path)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise Invalid("There is no such time.", "INVALID_TIME", path) from None


async def _as_of_entry(reading: Reading, viewer: Viewer, branch: Branch, entry_id: str) -> Moment:
    path = ("asOf", "entryId")
    row_id = row_id_in(branch.id, StoryEntry, entry_id, *path)
    entry = await require_row(reading, viewer, StoryEntry, f"{branch.id}:{row_id}", *path)
    if entry.kind == EntryKind.SYSTEM:
        raise Invalid("This is a notice, not a part of the story.", "NOT_IN_THE_STORY", path)
    cut = await deltas.cut_behind(reading, branch.id, entry.position)
    return Moment(branch.id, await _last_position(reading, branch, cut), entry.row_id, cut)


async def _moment(
    reading: Reading, viewer: Viewer, branch: Branch, cut: deltas.Cut | None
) -> Moment:
    if cut is None:
        last = await reading.value(_last_entry(), branch_id=branch.id)
        return Moment(branch.id, branch.head, last, None)
    position = await _last_position(reading, branch, cut)
    moment = Moment(branch.id, position, None, cut)
    entries = await rows_at(reading, viewer, moment, StoryEntry)
    last_row = max(entries.values(), key=attrgetter("position"), default=None)
    return Moment(branch.id, position, last_row and last_row.row_id, cut)


async def _last_position(reading: Reading, branch: Branch, cut: deltas.Cut | None) -> int:
    if cut is None:
        return branch.head
    position: int = await reading.value(
        _last_before(), branch_id=branch.id, first_log=cut.first_log
    )
    return position


async def rows_at(
    reading: Reading, viewer: Viewer, moment: Moment, table: type[BranchRow]
) -> Mapping[str, Any]:
    """All rows of a table at a moment, by their own ids. Raises NotFound where the viewer may not
    see the branch.
    """
    await require_row(reading, viewer, Branch, moment.branch_id)
    logged = deltas.logged_of(table)
    images = await images_at(reading, moment, logged.name)
    made = past_class(table)
    return {row_id: made(image, moment) for row_id, image in images.items()}


async def images_at(reading: Reading, moment: Moment, table: LoggedTable) -> dict[str, Image]:
    """The rows of a table at a moment, as images: what a fork there would have, or what a replay of
    the log up to there would give.
    """
    if moment.cut is None:
        images = await deltas.all_images(reading, moment.branch_id, table)
    else:
        images = await deltas.images_before(reading, moment.branch_id, moment.cut, table)
    if table is LoggedTable.STORY_ENTRIES:
        # Notices are about the present, and the log does not know them.
        return {
            row_id: image for row_id, image in images.items() if image["kind"] != EntryKind.SYSTEM
        }
    return images
