"""Stored files, and the entries that show them. The bytes lie outside the database.

Source: spec aventuras, assets; cleanup on delete.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint, text

from db.columns import (
    BranchRow,
    Table,
    branch_column,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    link_column,
    long_column,
    one_of,
    reference,
    row_id_column,
    text_column,
    time_column,
)
from db.enums import AssetKind


class Asset(Table, table=True):
    """A file, stored once for its owner whatever shows it."""

    __tablename__ = "assets"
    __table_args__ = (
        one_of("kind", AssetKind),
        UniqueConstraint("owner_user_id", "content_hash"),
        Index(None, "owner_user_id", "created_at", "id"),
        Index(
            "ix_assets_pending_delete_at",
            "pending_delete_at",
            postgresql_where=text("pending_delete_at IS NOT NULL"),
        ),
    )

    id: str = id_column()
    owner_user_id: str = reference("users.id")
    kind: AssetKind = enum_column()
    mime_type: str = text_column()
    # Its name within the store, the same for its life: its id.
    file_path: str = text_column()
    size_bytes: int = long_column()
    # SHA-256 in hexadecimal.
    content_hash: str = text_column()
    created_at: datetime = created_at_column()
    # Since when nothing shows it: an upload begins so. It is swept some time later. Null while
    # something shows it. This mark alone makes it a file to be deleted: its bytes stay where they
    # are, because stores of objects cannot move them.
    pending_delete_at: datetime | None = time_column()

    @property
    def url(self) -> str:
        """Where its owner can download it, on this server."""
        return f"/assets/{self.id}"


class EntryAsset(BranchRow, table=True):
    """A file that an entry shows."""

    __tablename__ = "entry_assets"
    __table_args__ = (
        Index(None, "branch_id", "entry_id", "position"),
        Index(None, "asset_id"),
    )

    branch_id: str = branch_column()
    row_id: str = row_id_column()
    entry_id: str = link_column()
    # No foreign key: a file may be swept while a reversal can still bring its link back.
    asset_id: str = link_column()
    # In free words: generated_image, background, reference.
    role: str = text_column()
    # The order within the entry.
    position: int = integer_column(default=0)
