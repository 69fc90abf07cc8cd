"""Which files are shown: by an entry or as the cover of a story.

Source: spec aventuras, assets; cleanup on delete.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, case, exists, func, or_, select, update
from sqlmodel import col

from db.reading import Writing, any_of, statement
from db.tables import Asset, EntryAsset, Story


def is_shown() -> ColumnElement[bool]:
    """Whether something shows the file of the row."""
    return or_(
        exists(select(1).where(col(EntryAsset.asset_id) == col(Asset.id))),
        exists(select(1).where(col(Story.cover_asset_id) == col(Asset.id))),
    )


@statement(Asset)
def _hold() -> Any:
    # In one order, so that two who settle the same files never wait for each other.
    ordered = select(col(Asset.id)).where(any_of(Asset.id, "ids")).order_by(col(Asset.id))
    return ordered.with_for_update()


@statement(Asset)
def _settle() -> Any:
    since = func.coalesce(col(Asset.pending_delete_at), func.clock_timestamp())
    return (
        update(Asset)
        .where(any_of(Asset.id, "ids"))
        .values(pending_delete_at=case((is_shown(), None), else_=since))
    )


async def settle_references(writing: Writing, asset_ids: Collection[str]) -> None:
    """Mark those of these files that nothing shows any more for deletion, and take the mark from
    those that something shows again. To be called in the transaction that changed the links.
    """
    if asset_ids:
        ids = sorted(asset_ids)
        # Held by a statement before: who had to wait for another one's links looks for them anew,
        # so that of two who take away the last two links the second one sees that none is left.
        await writing.all(_hold(), ids=ids)
        await writing.run(_settle(), ids=ids)
