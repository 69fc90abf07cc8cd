"""Stored files: whether anything still shows them.

Source: spec aventuras, assets; cleanup on delete.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import case, exists, func, select, update
from sqlmodel import col

from db.reading import Writing, any_of, statement
from db.tables import Asset, EntryAsset, Story


@statement(Asset)
def _settle() -> Any:
    is_shown = exists(select(1).where(col(EntryAsset.asset_id) == col(Asset.id))) | exists(
        select(1).where(col(Story.cover_asset_id) == col(Asset.id))
    )
    since = func.coalesce(col(Asset.pending_delete_at), func.clock_timestamp())
    return (
        update(Asset)
        .where(any_of(Asset.id, "ids"))
        .values(pending_delete_at=case((is_shown, None), else_=since))
    )


async def settle_references(writing: Writing, asset_ids: Collection[str]) -> None:
    """Mark those of these files that nothing shows any more for deletion, and take the mark from
    those that something shows again. To be called in the transaction that changed the links.
    """
    if asset_ids:
        # In one order, so that two who settle the same files never wait for each other.
        await writing.run(_settle(), ids=sorted(asset_ids))
