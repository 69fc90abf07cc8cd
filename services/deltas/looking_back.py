"""The rows of one table as they were, for readers: the same as a fork would have, computed from
what can touch that table alone.
"""

from __future__ import annotations

from db.enums import DeltaSource, LoggedTable
from db.reading import Reading
from db.tables import Delta
from services.deltas.closing import Closed, keep_ties
from services.deltas.logged import LOGGED, Image
from services.deltas.reversing import TIES, Reverser
from services.deltas.rows import all_images, images_naming
from services.deltas.selecting import Cut, logged_behind, made_behind


async def images_before(
    reading: Reading, branch_id: str, cut: Cut, table: LoggedTable
) -> dict[str, Image]:
    """The rows of a table without what a cut takes away, by id."""
    rows = await all_images(reading, branch_id, table)
    behind = await logged_behind(reading, branch_id, cut, [table])
    closed = Closed(branch_id, deltas={each.row_id: each for each in behind.taken})
    if table is TIES:
        await keep_ties(reading, closed)
    spared: dict[str, list[Delta]] = {}
    for each in behind.spared:
        spared.setdefault(each.target_id, []).append(each)
    protected = {
        row_id: [each for each in found if each.source == DeltaSource.USER_EDIT]
        for row_id, found in spared.items()
    }
    present = {(table, row_id): image for row_id, image in rows.items()}
    reversal = Reverser(closed, present, protected, spared).run()
    images = {
        row_id: image
        for (name, row_id), image in reversal.after.items()
        if name is table and image is not None
    }
    # Where nothing is spared, what names a row was made after it and has gone before it.
    if LOGGED[table].names and cut.kept_position:
        gone = await _gone(reading, branch_id, cut)
        names = LOGGED[table].names
        images = {
            row_id: image
            for row_id, image in images.items()
            if not any(image[column] in gone for column in names)
        }
    return images


async def _gone(reading: Reading, branch_id: str, cut: Cut) -> set[str]:
    """Everything that goes with a cut: what was made behind it, and relationships that name that;
    their translations name them.
    """
    made = await made_behind(reading, branch_id, cut)
    return made | (await images_naming(reading, branch_id, TIES, made)).keys()
