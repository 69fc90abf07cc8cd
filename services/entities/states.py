"""States as people send them: ids as they are kept, keys of quantities as they are kept, and what
nobody may say.

Source: spec aventuras, CharacterState, LocationState, ItemState, FactionState; stackable items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from db.enums import EntityKind
from db.tables import StoryEntity
from services.access import row_id_in
from services.deltas import Image
from services.entities.edits import Edits
from services.entities.listing import SLOTS
from services.errors import Forbidden, Invalid, NotFound
from services.scenes import require_place
from services.shapes import STATES, merged

# The keys of a state that name one other entity, and the kind of it.
LINKS: dict[EntityKind, dict[str, EntityKind]] = {
    EntityKind.CHARACTER: {
        "current_location_id": EntityKind.LOCATION,
        "faction_id": EntityKind.FACTION,
    },
    EntityKind.LOCATION: {"parent_location_id": EntityKind.LOCATION},
    EntityKind.ITEM: {"at_location_id": EntityKind.LOCATION},
    EntityKind.FACTION: {},
}
# Where something is: nobody goes to a retired place.
POSITIONS = ("current_location_id", "at_location_id")
LAST_SEEN = "lastSeenAt"
MAX_KEY = 40


async def patched_state(
    edits: Edits, kind: EntityKind, before: Mapping[str, Any], patch: Any, *path: str | int
) -> dict[str, Any]:
    """A state with a patch merged in, and what it newly names checked.

    Raises NotFound, Invalid (INVALID_SHAPE, WRONG_KIND, ITEM_TWICE, KEY_TWICE), Forbidden
    (FIELD_READ_ONLY for lastSeenAt, RETIRED_PLACE).
    """
    if isinstance(patch, dict) and LAST_SEEN in patch:
        told = "Who was seen where follows from the text; nobody writes it."
        raise Forbidden(told, "FIELD_READ_ONLY", (*path, LAST_SEEN))
    own = _with_own_ids(edits, kind, patch, path)
    after = merged(STATES[kind], before, own, *path)
    await _check_links(edits, kind, before, after, path)
    if kind is EntityKind.CHARACTER:
        _settle_slots(before, after, own, path)
        await _check_items(edits, before, after, path)
    return after


def _with_own_ids(edits: Edits, kind: EntityKind, patch: Any, path: tuple[str | int, ...]) -> Any:
    """A patch with ids and keys as they are kept. What is of a wrong type is left to its model."""
    if not isinstance(patch, dict):
        return patch
    own = dict(patch)
    branch_id = edits.action.branch.id
    for key in LINKS[kind]:
        if isinstance(own.get(key), str):
            own[key] = row_id_in(branch_id, StoryEntity, own[key], *path, key)
    if kind is EntityKind.CHARACTER:
        for slot in SLOTS:
            if isinstance(own.get(slot), list):
                own[slot] = [
                    row_id_in(branch_id, StoryEntity, each, *path, slot, index)
                    if isinstance(each, str)
                    else each
                    for index, each in enumerate(own[slot])
                ]
        own = with_plain_quantities(own, *path)
    return own


def with_plain_quantities(patch: Any, *path: str | int) -> Any:
    """A patch of a character's state with names of quantities as they are kept. Raises Invalid
    (KEY_TWICE, INVALID_SHAPE); what is of a wrong type is left to its model.
    """
    if not isinstance(patch, dict) or not isinstance(patch.get("stackables"), dict):
        return patch
    plain = _with_plain_keys(patch["stackables"], (*path, "stackables"))
    return {**patch, "stackables": plain}


def _with_plain_keys(quantities: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, count in quantities.items():
        name = plain_key(key, *path, key)
        if name in plain:
            raise Invalid(f"{name} is given twice.", "KEY_TWICE", (*path, key))
        # Of what is used up nothing is kept. No bool: false is no count, and not zero.
        plain[name] = None if count == 0 and not isinstance(count, bool) else count
    return plain


def plain_key(key: str, *path: str | int) -> str:
    """The name of a quantity as it is kept: in lower case. Raises Invalid (INVALID_SHAPE)."""
    plain = key.strip().lower()
    if not 0 < len(plain) <= MAX_KEY:
        told = f"The name of a quantity has 1 to {MAX_KEY} characters."
        raise Invalid(told, "INVALID_SHAPE", path)
    return plain


async def _check_links(
    edits: Edits,
    kind: EntityKind,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    path: tuple[str | int, ...],
) -> None:
    for key, wanted in LINKS[kind].items():
        row_id = after.get(key)
        if row_id is None or row_id == before.get(key):
            continue
        if key in POSITIONS:
            await require_place(edits.action, row_id, *path, key)
        else:
            await require_kind(edits, row_id, wanted, *path, key)


async def require_kind(edits: Edits, row_id: str, kind: EntityKind, *path: str | int) -> Image:
    """An entity of one kind. Raises NotFound and Invalid (WRONG_KIND) with the path."""
    image = await edits.find(row_id)
    if image is None:
        raise NotFound("There is no such StoryEntity in this branch.", path=path)
    if image["kind"] != kind:
        raise Invalid(f"Name a {kind} here.", "WRONG_KIND", path)
    return image


def _settle_slots(
    before: Mapping[str, Any],
    after: dict[str, Any],
    patch: Mapping[str, Any],
    path: tuple[str | int, ...],
) -> None:
    """Keep each item in one slot: one that comes into a slot leaves the other."""
    for slot, other in (SLOTS, SLOTS[::-1]):
        if slot not in patch:
            continue
        seen: set[str] = set()
        for index, item_id in enumerate(after[slot]):
            if item_id in seen or (other in patch and item_id in after[other]):
                told = "An item is in one place: name it once."
                raise Invalid(told, "ITEM_TWICE", (*path, slot, index))
            seen.add(item_id)
        came = seen - set(before[slot])
        after[other] = [each for each in after[other] if each not in came]


async def _check_items(
    edits: Edits,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    path: tuple[str | int, ...],
) -> None:
    held = {*before["equipped_items"], *before["inventory"]}
    await edits.load(each for slot in SLOTS for each in after[slot] if each not in held)
    for slot in SLOTS:
        for index, item_id in enumerate(after[slot]):
            if item_id not in held:
                await require_kind(edits, item_id, EntityKind.ITEM, *path, slot, index)
