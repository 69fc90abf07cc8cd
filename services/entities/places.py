"""What places may do: lie within one another, never in a circle; be retired with all that is inside
them; be disabled. Never around the story, which would stand in a place that nobody can enter.

Source: spec aventuras, LocationState (cycle guard, retired places, disabled places).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from db.enums import CollisionReason, EntityKind, EntityStatus, InjectionMode
from services.deltas import Image
from services.entities.chains import MAX_DEPTH, PARENT, chains_of_places
from services.entities.edits import Edits
from services.errors import Forbidden, Invalid
from services.scenes import tail_scene

Path = tuple[str | int, ...]
UNFLAGGED: dict[str, Any] = {
    "name_collision_flag": False,
    "name_collision_partner_id": None,
    "name_collision_reason": None,
}


async def chain_above(edits: Edits, parent_id: str, *path: str | int, of: str) -> list[Image]:
    """The places around a place `of` that is to lie in `parent_id`, the nearest first.

    Raises Invalid: PARENT_CYCLE where the place itself is among them, PARENT_CHAIN_BROKEN where
    there is no end to them, because others lie in a circle from of old.
    """
    chain: list[Image] = []
    above: str | None = parent_id
    while above is not None:
        if above == of:
            raise Invalid("A place cannot lie within itself.", "PARENT_CYCLE", path)
        if len(chain) >= MAX_DEPTH:
            told = f"More than {MAX_DEPTH} places are around this one: mend the circle there first."
            raise Invalid(told, "PARENT_CHAIN_BROKEN", path)
        place = await edits.find(above)
        if place is None:
            break
        chain.append(place)
        above = place["state"].get(PARENT)
    return chain


async def is_story_inside(edits: Edits, location_id: str) -> bool:
    """Whether the story stands at a place or anywhere inside it: as these are stored."""
    action = edits.action
    scene = await tail_scene(action.writing, action.branch.id)
    standing = [f"{action.branch.id}:{each}" for each in scene.place_ids]
    chains = await chains_of_places(action.writing, action.viewer, standing)
    return any(location_id == link.row_id for chain in chains for link in chain)


async def check_new_place(edits: Edits, place: Image, *path: str | int) -> None:
    """Refuse a new place where it cannot lie. `path` leads to its parent.

    Raises Invalid (PARENT_CHAIN_BROKEN) and Forbidden (RETIRED_PARENT).
    """
    parent_id = place["state"][PARENT]
    if parent_id is not None:
        chain = await chain_above(edits, parent_id, *path, of="")
        _refuse_retired_parent(place, chain, path)


async def check_changed_place(
    edits: Edits,
    before: Image,
    after: Image,
    *,
    parent_path: Path,
    status_path: Path,
    mode_path: Path,
) -> None:
    """Refuse what a place must not become, and take along what is inside it.

    Raises Invalid (PARENT_CYCLE, PARENT_CHAIN_BROKEN) and Forbidden (RETIRED_PARENT, STORY_INSIDE)
    with the path of what was changed.
    """
    parent_id = after["state"][PARENT]
    has_moved = parent_id != before["state"][PARENT]
    comes_back = _is_retired(before) and not _is_retired(after)
    chain: list[Image] = []
    if parent_id is not None and (has_moved or comes_back):
        if has_moved:
            chain = await chain_above(edits, parent_id, *parent_path, of=before["id"])
        else:
            found = await edits.find(parent_id)
            chain = [found] if found else []
        _refuse_retired_parent(after, chain, parent_path if has_moved else status_path)
    if _is_retired(after) and not _is_retired(before):
        await _refuse_story(edits, before, status_path)
        await _retire_inside(edits, after)
    if _is_disabled(after) and not _is_disabled(before):
        await _refuse_story(edits, before, mode_path)
    if has_moved:
        around = {link.row_id for link in await _stored_chain(edits, before["id"])}
        if any(_is_disabled(each) and each["id"] not in around for each in chain):
            await _refuse_story(edits, before, parent_path)
        await _part_namesakes(edits, after)


def _is_retired(place: Mapping[str, Any]) -> bool:
    return bool(place["status"] == EntityStatus.RETIRED)


def _is_disabled(place: Mapping[str, Any]) -> bool:
    return bool(place["injection_mode"] == InjectionMode.DISABLED)


def _refuse_retired_parent(place: Image, chain: list[Image], path: Path) -> None:
    if chain and _is_retired(chain[0]) and not _is_retired(place):
        told = "The place around this one is retired: bring that one back first."
        raise Forbidden(told, "RETIRED_PARENT", path)


async def _refuse_story(edits: Edits, place: Image, path: Path) -> None:
    if await is_story_inside(edits, place["id"]):
        told = "The story is at this place or inside it: let it go elsewhere first."
        raise Forbidden(told, "STORY_INSIDE", path)


async def _stored_chain(edits: Edits, row_id: str) -> list[Any]:
    action = edits.action
    (chain,) = await chains_of_places(
        action.writing, action.viewer, [f"{action.branch.id}:{row_id}"]
    )
    return list(chain)


async def places_inside(edits: Edits, row_id: str) -> list[Image]:
    """Every place inside a place, however deep."""
    inside: dict[str, Image] = {}
    level = [row_id]
    while level:
        found = await edits.naming(PARENT, level)
        new = {each["id"]: each for each in found if each["id"] not in inside}
        new.pop(row_id, None)
        inside.update(new)
        level = list(new)
    return list(inside.values())


async def _retire_inside(edits: Edits, place: Image) -> None:
    """Retire what is inside a place for its reason; what was retired before keeps its own."""
    for each in await places_inside(edits, place["id"]):
        if not _is_retired(each):
            edits.change(
                each["id"],
                status=EntityStatus.RETIRED.value,
                retired_reason=place["retired_reason"],
            )


async def _part_namesakes(edits: Edits, place: Image) -> None:
    """Clear the mark of places that were thought the same because they lay in one place."""
    pairs = [(each, place) for each in await edits.partners(place["id"])]
    partner_id = place["name_collision_partner_id"]
    partner = await edits.find(partner_id) if partner_id else None
    if partner is not None:
        pairs.append((place, partner))
    for flagged, other in pairs:
        if (
            flagged["name_collision_reason"] == CollisionReason.SAME_PARENT
            and other["kind"] == EntityKind.LOCATION
            and flagged["state"][PARENT] != other["state"][PARENT]
        ):
            edits.change(flagged["id"], **UNFLAGGED)


async def check_merged_places(edits: Edits, kept: Image, lost: Image, path: Path) -> None:
    """Refuse to make two places one where the result could not stand.

    Raises Invalid (PARENT_CYCLE) and Forbidden (RETIRED_PARENT, STORY_INSIDE).
    """
    around = await _stored_chain(edits, kept["id"])
    if lost["id"] in [link.row_id for link in around[2:]]:
        told = "The place to keep lies deep inside the other one: keep that one."
        raise Invalid(told, "PARENT_CYCLE", path)
    if _is_retired(kept):
        for each in await edits.naming(PARENT, [lost["id"]]):
            if each["id"] != kept["id"]:
                _refuse_retired_parent(each, [kept], path)
    elif kept["state"][PARENT] == lost["id"] and lost["state"][PARENT] is not None:
        above = await edits.find(lost["state"][PARENT])
        _refuse_retired_parent(kept, [above] if above else [], path)
    beside = {link.row_id for link in await _stored_chain(edits, lost["id"])}
    is_closed = _is_retired(kept) or any(
        link.injection_mode == InjectionMode.DISABLED and link.row_id not in beside
        for link in around
    )
    if is_closed:
        await _refuse_story(edits, lost, path)
