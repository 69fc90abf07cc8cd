"""The rows of one table as they were, for readers: the same as a fork would have, computed from
what can touch that table alone.
"""

from __future__ import annotations

from db.enums import DeltaOp, DeltaSource, LoggedTable
from db.reading import Reading
from db.tables import Delta
from services.deltas.closing import Closed, keep_ties
from services.deltas.logged import LOGGED, Image
from services.deltas.reversing import TIES, Reverser, drop_loose_ends
from services.deltas.rows import all_images
from services.deltas.selecting import Cut, logged_behind, made_behind


async def images_before(
    reading: Reading, branch_id: str, cut: Cut, table: LoggedTable
) -> dict[str, Image]:
    """The rows of a table without what a cut takes away, by id. Where a fork would be refused
    because two rows would have one place, both are here.
    """
    rows = await all_images(reading, branch_id, table)
    behind = await logged_behind(reading, branch_id, cut, [table])
    closed = Closed(
        branch_id,
        deltas={each.row_id: each for each in behind.taken},
        deletes=[each for each in behind.taken if each.op == DeltaOp.DELETE],
    )
    if table is TIES:
        await keep_ties(reading, closed)
    # A row that was made behind the cut goes, whatever was done to it since.
    made = {each.target_id for each in behind.taken if each.op == DeltaOp.CREATE}
    made -= closed.kept_ties.keys()
    for each in behind.taken:
        if each.op == DeltaOp.UPDATE and each.target_id in made:
            del closed.deltas[each.row_id]
    spared: dict[str, list[Delta]] = {}
    for each in behind.spared:
        spared.setdefault(each.target_id, []).append(each)
    protected = {
        row_id: [each for each in found if each.source == DeltaSource.USER_EDIT]
        for row_id, found in spared.items()
    }
    present = {(table, row_id): image for row_id, image in rows.items()}
    reversal = Reverser(closed, present, protected, spared).run()
    if LOGGED[table].names:
        await drop_loose_ends(reading, branch_id, reversal)
    images = {
        row_id: image
        for (name, row_id), image in reversal.after.items()
        if name is table and image is not None
    }
    # Where nothing is spared, what names a row was made after it and has gone before it.
    if LOGGED[table].names and cut.kept_position:
        gone = await made_behind(reading, branch_id, cut)
        images = {
            row_id: image
            for row_id, image in images.items()
            if not any(image[column] in gone for column in LOGGED[table].names)
        }
    if table is LoggedTable.TRANSLATIONS:
        # A relationship goes for other reasons too.
        ties = await images_before(reading, branch_id, cut, TIES)
        images = {
            row_id: image
            for row_id, image in images.items()
            if image["target_kind"] != LOGGED[TIES].target_kind or image["target_id"] in ties
        }
    return images
