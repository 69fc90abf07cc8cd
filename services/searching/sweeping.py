"""Words of texts that nobody has any more are deleted: nothing of a text outlasts its rows."""

from __future__ import annotations

import time
from typing import Any

from db.reading import Record, Statement, Writing
from services.searching.shelves import texts_of_libraries
from services.searching.surfaces import texts_of_branches
from services.searching.texts import note_deletion

# Texts that one step of the chore deletes, and how often it looks for them, in seconds.
_STEP = 1_000
_ROUND = 3_600.0

_SWEEP: Statement[Any] = Statement(
    "DELETE FROM search_texts WHERE text_hash IN (SELECT s.text_hash FROM search_texts s "
    "LEFT JOIN (SELECT DISTINCT md5(t.text) AS hash FROM "
    f"(SELECT text FROM ({texts_of_branches('true')}) b UNION ALL {texts_of_libraries()}) t) there "
    f"ON there.hash = s.text_hash WHERE there.hash IS NULL LIMIT {_STEP})",
    (),
    {},
    Record,
)


class WordSweeper:
    """The chore of one server."""

    def __init__(self) -> None:
        self._next_round = 0.0

    async def sweep(self, writing: Writing) -> int:
        """One step of `services.housekeeping`; once an hour it goes through all. A text that comes
        back meanwhile has its words found again when it is searched.
        """
        if time.monotonic() < self._next_round:
            return 0
        deleted = await writing.run(_SWEEP)
        if deleted:
            await note_deletion(writing)
        if deleted < _STEP:
            self._next_round = time.monotonic() + _ROUND
        return deleted
