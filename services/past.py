"""Branches as they were: rows of a past moment, read without touching those of the present.

Source: design, asOf; spec aventuras, branch model (a fork at an entry is the state as of it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from db.reading import Reading
from db.tables import BranchRow
from services.access import Viewer


@dataclass(frozen=True, slots=True)
class AsOf:
    """A moment as it is asked for: exactly one of the three."""

    entry_id: str | None = None
    log_position: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a branch: all that was logged up to a position. With `kept_entry_id` it is that
    of a fork at this entry: what was said of kept entries later counts too.
    """

    branch_id: str
    log_position: int
    # The last entry that there was.
    entry_id: str | None
    kept_entry_id: str | None = None

    @property
    def id(self) -> str:
        """Tells it from other moments."""
        return f"{self.branch_id}@{self.log_position}@{self.kept_entry_id or ''}"


class PastRow:
    """A row as it was: attributes and properties as those of the table's rows."""

    moment: Moment


async def resolve_moment(reading: Reading, viewer: Viewer, branch_id: str, as_of: AsOf) -> Moment:
    """Which moment is meant. Raises NotFound, Invalid (OUT_OF_RANGE)."""
    raise NotImplementedError


async def rows_at(
    reading: Reading, viewer: Viewer, moment: Moment, table: type[BranchRow]
) -> Mapping[str, Any]:
    """All rows of a table at a moment, by their own ids."""
    raise NotImplementedError
