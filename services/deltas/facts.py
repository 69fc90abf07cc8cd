"""Taking back what the background has said of a text that is being edited.

Source: spec aventuras, text edits are delta-logged (the head turn is the ceiling).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.deltas.applying import apply_reversal, clamp_watermark
from services.deltas.closing import close
from services.deltas.reversing import compute
from services.deltas.selecting import facts_about
from services.deltas.writing import Action


async def invalidate_facts(
    action: Action, entry_ids: Sequence[str], processed_through: int
) -> None:
    """Take back every fact of the background about these entries, with what names what goes, and
    let everything behind a position be read again. Entities that were introduced there stay.

    Part of the action that edits the text; call it after that edit. Raises Conflict
    (REVERSAL_BLOCKED).
    """
    # A person's write of this very action counts as later than any fact.
    await action.store()
    facts = await facts_about(action.writing, action.branch.id, entry_ids)
    if facts:
        closed = await close(action.writing, action.branch.id, facts, spares_entities=True)
        await apply_reversal(
            action.writing, action.branch.id, await compute(action.writing, closed)
        )
        action.has_reached_back = True
        action.taken_back += [
            (each.target_table, each.op, each.target_id) for each in closed.newest_first
        ]
    await clamp_watermark(action.writing, action.branch.id, processed_through)
