"""Files that entries show: attaching and detaching them, and reading them for entries.

Source: spec aventuras, assets; entry_assets.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlmodel import col

from db.enums import EntryKind
from db.paging import PagedList, SortKey
from db.reading import Writing, param, statement
from db.tables import Asset, Branch, EntryAsset, StoryEntry
from services import deltas
from services.access import Viewer, hold_row, require_row, visible
from services.errors import Forbidden, Invalid, LimitReached
from services.text import MAX_LINE, checked_text

MAX_ATTACHED = 100
MAX_POSITION = 1_000_000

ASSETS_OF_ENTRIES = PagedList(
    "assets of entries",
    EntryAsset,
    sort=[SortKey(col(EntryAsset.position)), SortKey(col(EntryAsset.row_id))],
    parent=col(EntryAsset.entry_id),
    within=col(EntryAsset.branch_id),
    where=lambda: visible(EntryAsset),
)


async def attach_asset(
    writing: Writing,
    viewer: Viewer,
    *,
    entry_id: str,
    asset_id: str,
    role: str,
    position: int | None,
    expected_head: int | None,
) -> tuple[EntryAsset, Branch]:
    """Have an entry show a file, behind what it shows unless `position` says where.

    Raises NotFound, Conflict, Forbidden (SYSTEM_ENTRY), Invalid (TEXT_…, OUT_OF_RANGE) and
    LimitReached (ENTRY_ASSETS_FULL).
    """
    checked_text(role, "input", "role", max_length=MAX_LINE)
    if position is not None and not 0 <= position <= MAX_POSITION:
        raise Invalid(
            f"A position is 0 to {MAX_POSITION:,}.", "OUT_OF_RANGE", ("input", "position")
        )
    async with deltas.acting_on(
        writing, viewer, StoryEntry, entry_id, "input", "entryId", expected_head=expected_head
    ) as (action, entry):
        if entry["kind"] == EntryKind.SYSTEM:
            raise Forbidden(
                "This is a notice and no part of the text.", "SYSTEM_ENTRY", ("input", "entryId")
            )
        # Held, so that it is not swept meanwhile.
        asset = await hold_row(writing, viewer, Asset, asset_id, "input", "assetId")
        there: Any = await writing.first(
            _places(), branch_id=action.branch.id, entry_id=entry["id"]
        )
        if there.attached >= MAX_ATTACHED:
            raise LimitReached(
                f"An entry shows at most {MAX_ATTACHED} files.",
                "ENTRY_ASSETS_FULL",
                ("input", "entryId"),
            )
        values = {
            "entry_id": entry["id"],
            "asset_id": asset.id,
            "role": role,
            "position": min(there.last + 1, MAX_POSITION) if position is None else position,
        }
        link = await action.create(EntryAsset, values, anchor=entry["id"])
    branch_id = action.branch.id
    return (
        await require_row(writing, viewer, EntryAsset, f"{branch_id}:{link['id']}"),
        await require_row(writing, viewer, Branch, branch_id),
    )


async def detach_asset(
    writing: Writing, viewer: Viewer, link_id: str, expected_head: int | None
) -> tuple[str, Branch]:
    """Take a file off its entry; the id of what tied them. Raises NotFound and Conflict."""
    async with deltas.acting_on(
        writing,
        viewer,
        EntryAsset,
        link_id,
        "input",
        "entryAssetId",
        expected_head=expected_head,
    ) as (action, link):
        await action.delete(EntryAsset, link, anchor=link["entry_id"])
    branch_id = action.branch.id
    return f"{branch_id}:{link['id']}", await require_row(writing, viewer, Branch, branch_id)


@statement(object)
def _places() -> Any:
    return select(
        func.count().label("attached"),
        func.coalesce(func.max(col(EntryAsset.position)), -1).label("last"),
    ).where(
        col(EntryAsset.branch_id) == param("branch_id"),
        col(EntryAsset.entry_id) == param("entry_id"),
    )
