"""Moving items and quantities from one to another.

Source: spec aventuras, ItemState (at most one position per item); stackable items.
"""

from __future__ import annotations

from db.enums import EntityKind, ItemSlot
from db.reading import Writing
from db.tables import Branch, StoryEntity
from services import deltas
from services.access import Viewer, require_row, row_id_in, rows_by_ids
from services.entities.changing import Changed, answered
from services.entities.edits import Edits
from services.entities.positions import give, lay
from services.entities.states import plain_key, require_kind
from services.errors import Forbidden, Invalid
from services.scenes import require_place
from services.shapes import MAX_COUNT


async def move_item(
    writing: Writing,
    viewer: Viewer,
    item_id: str,
    *,
    holder_id: str | None = None,
    slot: ItemSlot = ItemSlot.INVENTORY,
    location_id: str | None = None,
    expected_head: int | None = None,
) -> Changed:
    """Give an item to a character, lay it down at a place, or, with neither, leave it nowhere in
    particular. Whoever had it has it no longer.

    Raises NotFound, Conflict, Invalid (WRONG_KIND, ONE_POSITION), Forbidden (RETIRED_PLACE).
    """
    if holder_id is not None and location_id is not None:
        told = "Name a holder or a place: an item is in one of them."
        raise Invalid(told, "ONE_POSITION", ("input", "locationId"))
    async with deltas.acting_on(
        writing, viewer, StoryEntity, item_id, "input", "itemId", expected_head=expected_head
    ) as (action, item):
        edits = Edits(action)
        branch_id = action.branch.id
        await require_kind(edits, item["id"], EntityKind.ITEM, "input", "itemId")
        if holder_id is not None:
            path = ("input", "holderId")
            holder = row_id_in(branch_id, StoryEntity, holder_id, *path)
            image = await require_kind(edits, holder, EntityKind.CHARACTER, *path)
            await give(edits, item["id"], image, slot.value)
        else:
            place = None
            if location_id is not None:
                path = ("input", "locationId")
                place = row_id_in(branch_id, StoryEntity, location_id, *path)
                stays = item["state"]["at_location_id"]
                await require_place(action, place, *path, staying_at=stays)
            await lay(edits, item["id"], place)
        written = await edits.write()
    return await answered(writing, viewer, item, written)


async def transfer_stackables(
    writing: Writing,
    viewer: Viewer,
    *,
    giver_id: str | None,
    receiver_id: str | None,
    key: str,
    amount: int,
    expected_head: int | None = None,
) -> tuple[StoryEntity | None, StoryEntity | None, Branch]:
    """Move a quantity from one character to another, in one action. Without a giver it comes from
    nowhere in particular, without a receiver it is used up. Of what is used up nothing is kept.

    Raises NotFound, Conflict, Invalid (WRONG_KIND, NO_CHARACTER, SAME_ENTITY, OUT_OF_RANGE,
    INVALID_SHAPE for the key), Forbidden (NOT_ENOUGH).
    """
    name = plain_key(key, "input", "key")
    if not 0 < amount <= MAX_COUNT:
        raise Invalid("Move one at least.", "OUT_OF_RANGE", ("input", "amount"))
    ends = [("giverId", giver_id, -amount), ("receiverId", receiver_id, amount)]
    named = [(field, each, change) for field, each, change in ends if each is not None]
    if not named:
        raise Invalid("Name a giver, a receiver or both.", "NO_CHARACTER", ("input",))
    (first_field, first_id, _), *_ = named
    async with deltas.acting_on(
        writing, viewer, StoryEntity, first_id, "input", first_field, expected_head=expected_head
    ) as (action, _):
        edits = Edits(action)
        moved: dict[str, str] = {}
        for field, each, change in named:
            path = ("input", field)
            row_id = row_id_in(action.branch.id, StoryEntity, each, *path)
            if row_id in moved.values():
                raise Invalid("Name two characters: this is one.", "SAME_ENTITY", path)
            moved[field] = row_id
            image = await require_kind(edits, row_id, EntityKind.CHARACTER, *path)
            held = dict(image["state"].get("stackables", {}))
            left = held.pop(name, 0) + change
            if left < 0:
                told = f"There are only {left - change} to give."
                raise Forbidden(told, "NOT_ENOUGH", ("input", "amount"))
            if left > MAX_COUNT:
                raise Invalid("That is too many.", "OUT_OF_RANGE", ("input", "amount"))
            if left:
                held[name] = left
            edits.change_state(row_id, stackables=held)
        await edits.write()
    branch = await require_row(writing, viewer, Branch, action.branch.id)
    giver, receiver = (
        f"{branch.id}:{moved[field]}" if field in moved else None
        for field in ("giverId", "receiverId")
    )
    rows = await rows_by_ids(
        writing, viewer, StoryEntity, [each for each in (giver, receiver) if each is not None]
    )
    found = {row.id: row for row in rows if row is not None}
    return found.get(giver or ""), found.get(receiver or ""), branch
