"""Deleting what nobody needs: files that nothing has shown for a time, and bytes without a row.

Nothing is moved when a file is given up, since stores of objects know no moving: the mark on its
row alone says it. Source: spec aventuras, trash sweep; orphan GC.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from sqlalchemy import Interval, delete, func, select
from sqlmodel import col

from db.reading import Reading, Writing, any_of, param, statement
from db.tables import Asset
from services.assets.settling import is_shown
from services.assets.storing import FileStore
from services.errors import Unavailable

# Files that one step deletes.
_STEP = 50
# No request lasts as long, so bytes of this age that have no row will get none.
ORPHAN_AGE = timedelta(hours=24)
ORPHAN_ROUNDS = timedelta(hours=24)


class Sweeper:
    """The chores of one server: both are `services.housekeeping` chores."""

    def __init__(self, files: FileStore, retention: timedelta) -> None:
        self._files = files
        self._retention = retention
        # Files whose rows the step before deleted, if that was committed.
        self._given_up: list[str] = []
        self._next_round = 0.0

    async def sweep_given_up(self, writing: Writing) -> int:
        """Delete files that nothing has shown for the time of retention: here their rows, and in
        the next step, when that is certain, their bytes.
        """
        try:
            await self._remove_orphans(writing, self._given_up)
        except Unavailable:
            # It was logged; another round will do it.
            return 0
        rows = await writing.all(_give_up(), retention=self._retention)
        self._given_up = [row.id for row in rows]
        return len(rows)

    async def sweep_orphans(self, writing: Writing) -> int:
        """Delete bytes that have no row, once when a server starts and then once a day: of uploads
        and deletions that were cut off.
        """
        if time.monotonic() < self._next_round:
            return 0
        self._next_round = time.monotonic() + ORPHAN_ROUNDS.total_seconds()
        removed = 0
        try:
            async for names in self._files.names(older_than=ORPHAN_AGE):
                removed += await self._remove_orphans(writing, names)
        except Unavailable:
            # As above.
            self._next_round = 0.0
        return removed

    async def _remove_orphans(self, reading: Reading, names: list[str]) -> int:
        """Remove those files that have no row; how many."""
        # Whatever else lies in that place is not ours.
        ours = [each for each in names if each.startswith("asset_")]
        if not ours:
            return 0
        kept = {row.id for row in await reading.all(_existing(), ids=ours)}
        orphans = [each for each in ours if each not in kept]
        await self._files.remove(orphans)
        return len(orphans)


@statement(Asset)
def _give_up() -> Any:
    overdue = (
        select(col(Asset.id))
        .where(
            col(Asset.pending_delete_at) <= func.clock_timestamp() - param("retention", Interval()),
            ~is_shown(),
        )
        .order_by(col(Asset.pending_delete_at))
        .limit(_STEP)
        # One that is being shown again just now stays.
        .with_for_update(skip_locked=True, of=Asset)
    )
    return delete(Asset).where(col(Asset.id).in_(overdue)).returning(col(Asset.id).label("id"))


@statement(Asset)
def _existing() -> Any:
    return select(col(Asset.id).label("id")).where(any_of(Asset.id, "ids"))
