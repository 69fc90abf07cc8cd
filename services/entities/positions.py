"""Where things are. An item lies at one place, or is worn or carried by one character, or is
nowhere in particular: whatever puts it somewhere takes it away from everywhere else.

Source: spec aventuras, ItemState (at most one position per item); stackable items.
"""

from __future__ import annotations

from collections.abc import Collection

from services.deltas import Image
from services.entities.edits import Edits
from services.entities.listing import SLOTS


async def take_from_holders(
    edits: Edits, item_ids: Collection[str], *, but: str | None = None
) -> None:
    """Take items away from all characters that have them, save one."""
    if not item_ids:
        return
    for holder in await edits.holding(item_ids):
        if holder["id"] != but:
            slots = {
                slot: [each for each in holder["state"][slot] if each not in item_ids]
                for slot in SLOTS
            }
            edits.change_state(holder["id"], **slots)


async def pick_up(edits: Edits, item_ids: Collection[str], holder_id: str) -> None:
    """See to it that what a character has got is with nobody else, and lies nowhere."""
    await take_from_holders(edits, item_ids, but=holder_id)
    for item in (await edits.load(item_ids)).values():
        if item["state"]["at_location_id"] is not None:
            edits.change_state(item["id"], at_location_id=None)


async def give(edits: Edits, item_id: str, holder: Image, slot: str) -> None:
    """Put an item into a slot of a character, behind what is there."""
    (other,) = set(SLOTS) - {slot}
    state = holder["state"]
    kept = [each for each in state[slot] if each != item_id]
    if state[slot].count(item_id) != 1:
        edits.change_state(holder["id"], **{slot: [*kept, item_id]})
    if item_id in state[other]:
        edits.change_state(holder["id"], **{other: [e for e in state[other] if e != item_id]})
    await pick_up(edits, [item_id], holder["id"])


async def lay(edits: Edits, item_id: str, location_id: str | None) -> None:
    """Put an item down at a place, or nowhere in particular."""
    await take_from_holders(edits, [item_id])
    edits.change_state(item_id, at_location_id=location_id)
