"""Carrying one row from one branch of a story to another: there it says what it says here.

Source: design, branch diff: carry single changes across.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from db.enums import DifferenceKind, LoggedTable
from db.ids import MalformedId, parse_id
from db.reading import Writing
from db.tables import Branch, HappeningAwareness
from services import deltas, entities
from services.access import Viewer, require_row
from services.comparing import ends_of
from services.deltas import LOGGED, Action, Image, Logged
from services.deltas.rows import all_images, images_by_ids, images_naming
from services.errors import Conflict, DomainError, Invalid, NotFound
from services.shapes import same

_ROW_PATH = ("input", "rowId")
# The text itself is told, edited and cut into chapters, never carried.
CARRIED = frozenset(LoggedTable) - {
    LoggedTable.STORY_ENTRIES,
    LoggedTable.CHAPTERS,
    LoggedTable.ENTRY_ASSETS,
}
# What readers bear with when it is gone is left out where it is not there.
_ENTRY_COLUMNS = (
    "triggered_at_entry_id",
    "resolved_at_entry_id",
    "occurred_at_entry_id",
    "learned_at_entry_id",
)
# Who may be whose duplicate is a question of each branch.
_ENTITY_COLUMNS = (
    *("name", "description", "status", "retired_reason", "keywords", "injection_mode"),
    *("priority", "tags"),
)


@dataclass(frozen=True, slots=True)
class Carried:
    """What was done in the branch to which a row was carried; nothing where `kind` is None."""

    kind: DifferenceKind | None
    # The row as it is there; None where it is gone now.
    row: Any
    branch: Branch


async def carry_row(
    writing: Writing,
    viewer: Viewer,
    from_branch_id: str,
    to_branch_id: str,
    row_id: str,
    expected_head: int | None = None,
) -> Carried:
    """Make a row of one branch like it is in another, as one action: make it, change it, delete it.

    Raises NotFound, Conflict (CONFLICT with the head, END_MISSING, ALREADY_THERE, and what keeps
    an entity from being changed so), Invalid (NOT_OF_ONE_STORY, NOT_CARRIED, COMMON_KNOWLEDGE).
    """
    source = await require_row(writing, viewer, Branch, from_branch_id, "input", "fromBranchId")
    target = await deltas.hold_branch(
        writing, viewer, to_branch_id, "input", "toBranchId", expected_head=expected_head
    )
    if source.story_id != target.story_id:
        raise Invalid(
            "Branches of different stories have nothing in common.",
            "NOT_OF_ONE_STORY",
            ("input", "toBranchId"),
        )
    logged, own_id = _named((source.id, target.id), row_id)
    names = [(each.id, logged.name, own_id) for each in (source, target)]
    images = await deltas.images_of_rows(writing, viewer, names)
    wanted, present = (images.get(each) for each in names)
    if wanted is None and present is None:
        raise NotFound("There is no such row in either branch.", path=_ROW_PATH)
    carry = _carry_entity if logged.name is LoggedTable.ENTITIES else _carry_other
    try:
        is_done = await carry(writing, viewer, target, logged, wanted, present)
    except DomainError as error:
        raise _refused(error) from None
    kind = None
    if is_done:
        kind = DifferenceKind.CHANGED if wanted and present else DifferenceKind.ADDED
        kind = kind if wanted else DifferenceKind.REMOVED
    return Carried(
        kind,
        wanted and await require_row(writing, viewer, logged.table, f"{target.id}:{own_id}"),
        await require_row(writing, viewer, Branch, target.id),
    )


def _named(branch_ids: Collection[str], row_id: str) -> tuple[Logged, str]:
    """The table of a row and its own id. Raises NotFound, Invalid (NOT_CARRIED)."""
    branch_id, _, own_id = row_id.rpartition(":")
    try:
        name: LoggedTable | None = LoggedTable(parse_id(f"{next(iter(branch_ids))}:{own_id}").table)
    except (MalformedId, ValueError):
        name = None
    if name is None or (branch_id and branch_id not in branch_ids):
        raise NotFound("There is no such row in either branch.", path=_ROW_PATH)
    if name not in CARRIED:
        raise Invalid(
            "The text of a story is not carried: tell it there.", "NOT_CARRIED", _ROW_PATH
        )
    return LOGGED[name], own_id


def _refused(error: DomainError) -> DomainError:
    """A refusal of what changes the row there, said of the input of this act."""
    code = "END_MISSING" if isinstance(error, NotFound) else error.code
    return type(error)(error.message, code, _ROW_PATH, details=error.details)


async def _carry_entity(
    writing: Writing,
    viewer: Viewer,
    target: Branch,
    logged: Logged,
    wanted: Image | None,
    present: Image | None,
) -> bool:
    """Entities follow their own rules: who holds what, what lies within what, who leads."""
    if wanted is None:
        assert present is not None
        await entities.delete_entity(writing, viewer, f"{target.id}:{present['id']}")
        return True
    columns = {each: wanted[each] for each in _ENTITY_COLUMNS}
    if present is None:
        values = {**columns, "id": wanted["id"], "kind": wanted["kind"]}
        patch = _patch({}, wanted["state"])
        await entities.create_entity(writing, viewer, target.id, values, patch)
        return True
    changes = {each: value for each, value in columns.items() if not same(value, present[each])}
    changed = await entities.update_entity(
        writing,
        viewer,
        f"{target.id}:{wanted['id']}",
        changes,
        _patch(present["state"], wanted["state"]),
    )
    return changed.branch.head != target.head


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What makes one state of the other: null clears what is not there. Who was seen where follows
    from the text of each branch.
    """
    patch: dict[str, Any] = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if key == "lastSeenAt" or same(old, new):
            continue
        is_nested = isinstance(old, dict) and isinstance(new, dict)
        patch[key] = _patch(old, new) if is_nested else new  # type: ignore[arg-type]
    return patch


async def _carry_other(
    writing: Writing,
    viewer: Viewer,
    target: Branch,
    logged: Logged,
    wanted: Image | None,
    present: Image | None,
) -> bool:
    async with deltas.acting(writing, viewer, target.id) as action:
        if wanted is None:
            assert present is not None
            await action.delete(logged.table, present)
            return True
        columns = {each: wanted[each] for each in deltas.shown_columns(logged.name)}
        await _leave_out_missing_entries(action, columns)
        await _check_ends(action, logged, wanted)
        await _check_unique(action, logged, wanted["id"], columns)
        if columns.get("common_knowledge"):
            await _forget_awareness(action, wanted["id"])
        if present is None:
            await action.create(logged.table, {**columns, "id": wanted["id"]})
        else:
            await action.update(logged.table, present, columns)
        return bool(action.deltas)


async def _leave_out_missing_entries(action: Action, columns: dict[str, Any]) -> None:
    named = {each: columns[each] for each in _ENTRY_COLUMNS if columns.get(each)}
    entries = await images_by_ids(
        action.writing, action.branch.id, LoggedTable.STORY_ENTRIES, named.values()
    )
    columns.update({each: None for each, row_id in named.items() if row_id not in entries})


async def _check_ends(action: Action, logged: Logged, image: Image) -> None:
    """Refuse a link to what is not in the branch, and knowledge of what everybody knows."""
    branch_id = action.branch.id
    ends = ends_of((branch_id, logged.name, image["id"]), image)
    found = await deltas.images_of_rows(action.writing, action.viewer, ends)
    if len(found) < len(ends):
        raise Conflict(
            "What this row joins is not in that branch: carry it there first.",
            "END_MISSING",
            _ROW_PATH,
        )
    if logged.table is HappeningAwareness and any(
        end.get("common_knowledge") for end in found.values()
    ):
        raise Invalid("Everybody knows of this happening there.", "COMMON_KNOWLEDGE", _ROW_PATH)


async def _check_unique(
    action: Action, logged: Logged, row_id: str, columns: Mapping[str, Any]
) -> None:
    """Refuse a second row where there is one at most: for a pair, a target, a moment."""
    if not logged.unique:
        return
    branch_id = action.branch.id
    if logged.names:
        ends = [columns[logged.names[0]]]
        rows = await images_naming(action.writing, branch_id, logged.name, ends)
    else:
        rows = await all_images(action.writing, branch_id, logged.name)
    for each in rows.values():
        is_there = all(each[column] == columns[column] for column in logged.unique)
        if is_there and each["id"] != row_id:
            raise Conflict(
                "That branch has a row of its own for the same thing: change that one.",
                "ALREADY_THERE",
                _ROW_PATH,
            )


async def _forget_awareness(action: Action, happening_id: str) -> None:
    """Of what everybody knows, nobody's knowledge is noted."""
    rows = await images_naming(
        action.writing, action.branch.id, LoggedTable.HAPPENING_AWARENESS, [happening_id]
    )
    for each in rows.values():
        if each["happening_id"] == happening_id:
            await action.delete(HappeningAwareness, each)
