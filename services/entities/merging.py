"""Merging two entities that turn out to be one: all that names the one that goes names the other.

What changes is worked out before anything is written, so that a dry run can tell it.
Source: spec aventuras, name collision; WorldState storage (a location merge and retired places).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from db.columns import BranchRow
from db.enums import DeltaOp, EntityKind, EntityStatus, TranslationTarget
from db.reading import Writing
from db.tables import (
    CharacterRelationship,
    HappeningAwareness,
    HappeningInvolvement,
    RowChange,
    StoryEntity,
    Translation,
)
from services import deltas
from services.access import Viewer, row_id_in
from services.deltas import Action, Image, logged_of
from services.deltas.rows import images_naming
from services.entities.changing import Changed, answered, refuse_lead, replace_in_scenes
from services.entities.edits import Edits
from services.entities.listing import SLOTS, held_by
from services.entities.names import with_names
from services.entities.places import UNFLAGGED, check_merged_places
from services.entities.relationships import pair_of
from services.errors import Invalid
from services.shapes import MAX_COUNT

_KEPT_PATH = ("input", "keptId")
_LOST_PATH = ("input", "lostId")


@dataclass(slots=True)
class _Links:
    """What becomes of the links of the one that goes: changed, or gone with it."""

    action: Action
    changed: list[tuple[type[BranchRow], Image, dict[str, Any]]] = field(default_factory=list)
    gone: list[tuple[type[BranchRow], Image]] = field(default_factory=list)

    async def naming(self, table: type[BranchRow], row_id: str) -> list[Image]:
        """The rows of a table that name a row, oldest first."""
        found = await images_naming(
            self.action.writing, self.action.branch.id, logged_of(table).name, [row_id]
        )
        return [found[each] for each in sorted(found)]

    async def write(self) -> None:
        """Write what is changed; what is gone goes with the entity."""
        for table, image, changes in self.changed:
            await self.action.update(table, image, changes)


async def merge_entities(
    writing: Writing,
    viewer: Viewer,
    kept_id: str,
    lost_id: str,
    *,
    is_dry: bool = False,
    expected_head: int | None = None,
) -> tuple[Changed, list[RowChange]]:
    """Make two entities of a kind one: `kept_id` stays as it is and gets what it has not; a dry run
    only tells what would change.

    Raises NotFound, Conflict, Invalid (SAME_ENTITY, WRONG_KIND, PARENT_CYCLE), Forbidden
    (LEAD_STAYS, RETIRED_PARENT, STORY_INSIDE).
    """
    async with deltas.acting_on(
        writing, viewer, StoryEntity, kept_id, *_KEPT_PATH, expected_head=expected_head
    ) as (action, kept):
        lost_row = row_id_in(action.branch.id, StoryEntity, lost_id, *_LOST_PATH)
        lost = await action.require(StoryEntity, lost_row, *_LOST_PATH)
        if lost["id"] == kept["id"]:
            raise Invalid("Name two entities: this is one.", "SAME_ENTITY", _LOST_PATH)
        if lost["kind"] != kept["kind"]:
            raise Invalid(f"Name another {kept['kind']}.", "WRONG_KIND", _LOST_PATH)
        await refuse_lead(action, lost["id"], *_LOST_PATH)
        edits, links = Edits(action), _Links(action)
        await edits.load([kept["id"], lost["id"]])
        await _merge_entities(edits, kept, lost)
        await _merge_relationships(links, kept, lost)
        await _merge_happenings(links, kept, lost)
        links.gone += [(Translation, each) for each in await links.naming(Translation, lost["id"])]
        changes = _told(edits, links, lost)
        written: list[str] = []
        if not is_dry:
            written = await edits.write()
            await links.write()
            await replace_in_scenes(action, lost["id"], kept["id"])
            await action.delete(StoryEntity, lost)
    return await answered(writing, viewer, kept, written), changes[: deltas.MAX_CHANGES]


def _told(edits: Edits, links: _Links, lost: Image) -> list[RowChange]:
    def change(table: type[BranchRow], op: DeltaOp, row_id: str) -> RowChange:
        return RowChange(logged_of(table).name, op, f"{lost['branch_id']}:{row_id}")

    return [
        *(change(StoryEntity, DeltaOp.UPDATE, each) for each in edits.changed()),
        *(change(table, DeltaOp.UPDATE, image["id"]) for table, image, _ in links.changed),
        *(change(table, DeltaOp.DELETE, image["id"]) for table, image in links.gone),
        change(StoryEntity, DeltaOp.DELETE, lost["id"]),
    ]


async def _merge_entities(edits: Edits, kept: Image, lost: Image) -> None:
    """The entity that stays, and the entities that name the other one."""
    kind = EntityKind(kept["kind"])
    edits.change(
        kept["id"],
        keywords=with_names(kept["keywords"], lost["name"], *lost["keywords"], beside=kept["name"]),
        state=_filled(kept["state"], lost["state"]),
    )
    if kept["status"] == EntityStatus.STAGED and lost["status"] == EntityStatus.ACTIVE:
        edits.change(kept["id"], status=EntityStatus.ACTIVE.value)
    for each in await edits.partners(lost["id"]):
        if each["id"] == kept["id"]:
            edits.change(kept["id"], **UNFLAGGED)
        else:
            edits.change(each["id"], name_collision_partner_id=kept["id"])
    if kind is EntityKind.CHARACTER:
        edits.change_state(kept["id"], **_possessions(kept["state"], lost["state"]))
    elif kind is EntityKind.FACTION:
        for each in await edits.naming("faction_id", [lost["id"]]):
            edits.change_state(each["id"], faction_id=kept["id"])
    elif kind is EntityKind.ITEM:
        await _merge_positions(edits, kept, lost)
    else:
        await _merge_places(edits, kept, lost)


# What `_filled` leaves to others: what is had is added up, and where a thing is has rules.
_NOT_FILLED = (*SLOTS, "stackables", "at_location_id", "parent_location_id")


def _filled(kept: Mapping[str, Any], lost: Mapping[str, Any]) -> dict[str, Any]:
    """A state, with what it does not say taken from another one."""
    filled = dict(kept)
    for key, value in lost.items():
        if key in _NOT_FILLED:
            continue
        own = filled.get(key)
        if isinstance(own, dict) and isinstance(value, dict) and key == "visual":
            filled[key] = {**value, **own}
        elif own in (None, []):
            filled[key] = value
    return filled


def _possessions(kept: Mapping[str, Any], lost: Mapping[str, Any]) -> dict[str, Any]:
    """What two characters have together."""
    own = held_by(kept)
    had: dict[str, Any] = {
        slot: [*kept[slot], *(each for each in lost[slot] if each not in own)] for slot in SLOTS
    }
    quantities = [state.get("stackables", {}) for state in (kept, lost)]
    if any(quantities):
        had["stackables"] = {
            key: min(sum(each.get(key, 0) for each in quantities), MAX_COUNT)
            for key in sorted({*quantities[0], *quantities[1]})
        }
    return had


async def _merge_positions(edits: Edits, kept: Image, lost: Image) -> None:
    """The item that stays is where it is; if it is nowhere, it is where the other one was."""
    lies_at = kept["state"]["at_location_id"]
    is_somewhere = lies_at is not None or bool(await edits.holding([kept["id"]]))
    for holder in await edits.holding([lost["id"]]):
        slots = {
            slot: [
                kept["id"] if each == lost["id"] else each
                for each in holder["state"][slot]
                if each != lost["id"] or not is_somewhere
            ]
            for slot in SLOTS
        }
        edits.change_state(holder["id"], **slots)
        # One from of old may be held twice.
        is_somewhere = True
    if not is_somewhere:
        edits.change_state(kept["id"], at_location_id=lost["state"]["at_location_id"])


async def _merge_places(edits: Edits, kept: Image, lost: Image) -> None:
    """Who is at the place that goes is at the other, and what lies in it lies in the other."""
    await check_merged_places(edits, kept, lost, _LOST_PATH)
    if kept["state"]["parent_location_id"] == lost["id"]:
        around = lost["state"]["parent_location_id"]
        edits.change_state(kept["id"], parent_location_id=None if around == kept["id"] else around)
    for key in ("current_location_id", "at_location_id", "parent_location_id"):
        for each in await edits.naming(key, [lost["id"]]):
            if each["id"] not in (kept["id"], lost["id"]):
                edits.change_state(each["id"], **{key: kept["id"]})


async def _merge_relationships(links: _Links, kept: Image, lost: Image) -> None:
    """What the two see in others and others in them. What the one that stays sees counts."""
    own = {
        _other(each, kept["id"]): each
        for each in await links.naming(CharacterRelationship, kept["id"])
    }
    for row in await links.naming(CharacterRelationship, lost["id"]):
        other = _other(row, lost["id"])
        if other == kept["id"]:
            links.gone.append((CharacterRelationship, row))
            continue
        a_id, b_id, view = pair_of(kept["id"], other)
        was_view = pair_of(lost["id"], other)[2]
        is_turned = view != was_view
        sides = {"kind": "inverse_kind", "inverse_kind": "kind"}
        seen = {side: row[sides[side] if is_turned else side] for side in sides}
        if other in own:
            missing = {
                side: text
                for side, text in seen.items()
                if own[other][side] is None and text is not None
            }
            if missing:
                links.changed.append((CharacterRelationship, own[other], missing))
            links.gone.append((CharacterRelationship, row))
        else:
            links.changed.append((CharacterRelationship, row, {"a_id": a_id, "b_id": b_id, **seen}))
            if is_turned:
                await _turn_translations(links, row)


def _other(row: Image, row_id: str) -> str:
    other: str = row["b_id"] if row["a_id"] == row_id else row["a_id"]
    return other


async def _turn_translations(links: _Links, row: Image) -> None:
    """The two of a pair have changed places, and so have the translations of their views."""
    languages: dict[str, dict[str, Image]] = {}
    for each in await links.naming(Translation, row["id"]):
        if each["target_kind"] == TranslationTarget.CHARACTER_RELATIONSHIP:
            languages.setdefault(each["language"], {})[each["field"]] = each
    for sides in languages.values():
        for side, image in sides.items():
            other = "inverse_kind" if side == "kind" else "kind"
            # Where both sides are said, the texts change places: no two rows may say one side.
            changes = (
                {"translated_text": sides[other]["translated_text"]}
                if other in sides
                else {"field": other}
            )
            links.changed.append((Translation, image, changes))


async def _merge_happenings(links: _Links, kept: Image, lost: Image) -> None:
    """Who took part and who knows: once for each happening."""
    parts = {
        each["happening_id"]: each for each in await links.naming(HappeningInvolvement, kept["id"])
    }
    for row in await links.naming(HappeningInvolvement, lost["id"]):
        own = parts.get(row["happening_id"])
        if own is None:
            links.changed.append((HappeningInvolvement, row, {"entity_id": kept["id"]}))
        else:
            links.gone.append((HappeningInvolvement, row))
            if own["role"] is None and row["role"] is not None:
                links.changed.append((HappeningInvolvement, own, {"role": row["role"]}))
    known = {
        each["happening_id"]: each for each in await links.naming(HappeningAwareness, kept["id"])
    }
    for row in await links.naming(HappeningAwareness, lost["id"]):
        own = known.get(row["happening_id"])
        if own is None:
            links.changed.append((HappeningAwareness, row, {"character_id": kept["id"]}))
        else:
            links.gone.append((HappeningAwareness, row))
            merged = _knowledge(own, row)
            if merged:
                links.changed.append((HappeningAwareness, own, merged))


def _knowledge(own: Image, other: Image) -> dict[str, Any]:
    """What changes of what is known when the same is known twice: how and since when where that was
    not said, the stronger memory, all the times that it was remembered.
    """
    merged = {
        "learned_at_entry_id": own["learned_at_entry_id"] or other["learned_at_entry_id"],
        "source": own["source"] or other["source"],
        "decay_resistance": max(own["decay_resistance"], other["decay_resistance"]),
        "retrieval_count": own["retrieval_count"] + other["retrieval_count"],
    }
    return {key: value for key, value in merged.items() if value != own[key]}
