"""Files, and what shows them."""

from __future__ import annotations

from typing import Any

from db.engine import Database
from db.enums import AssetKind
from db.tables import Asset, EntryAsset
from services import assets, attachments
from services.access import Viewer
from services.assets import FileStore

PNG = b"\x89PNG\r\n\x1a\nand so on"


async def upload(
    database: Database,
    viewer: Viewer,
    files: FileStore,
    content: bytes = PNG,
    kind: AssetKind | None = None,
) -> Asset:
    """All steps of an upload."""
    file = await assets.read_file(content, kind, most=1_000_000)
    async with database.reading() as reading:
        known = await assets.find_by_content(reading, viewer, file)
    name = await assets.store_bytes(files, file, known)
    async with database.writing() as writing:
        return await assets.keep_file(writing, viewer, file, name, known)


async def opening_of(database: Database, branch_id: str) -> str:
    """The id of the first entry of a branch."""
    async with database.reading() as reading:
        sql = "SELECT id FROM story_entries WHERE branch_id = $1 AND position = 1"
        return f"{branch_id}:{await reading._connection.fetchval(sql, branch_id)}"


async def attach(
    database: Database, viewer: Viewer, branch_id: str, asset_id: str, **given: Any
) -> EntryAsset:
    """Have the opening of a branch show a file."""
    values: dict[str, Any] = {
        "entry_id": await opening_of(database, branch_id),
        "role": "reference",
        "position": None,
        "expected_head": None,
        **given,
    }
    async with database.writing() as writing:
        link, _ = await attachments.attach_asset(writing, viewer, asset_id=asset_id, **values)
        return link


async def detach(database: Database, viewer: Viewer, link_id: str) -> None:
    """Take it off again."""
    async with database.writing() as writing:
        await attachments.detach_asset(writing, viewer, link_id, None)


async def cover(database: Database, story_id: str, asset_id: str | None) -> None:
    """Give a story a picture, or none, as changing it does."""
    async with database.writing() as writing:
        sql = "SELECT cover_asset_id FROM stories WHERE id = $1"
        before = await writing._connection.fetchval(sql, story_id)
        await writing._connection.execute(
            "UPDATE stories SET cover_asset_id = $2 WHERE id = $1", story_id, asset_id
        )
        await assets.settle_references(writing, {each for each in (before, asset_id) if each})


async def marked(database: Database, asset_id: str) -> bool | None:
    """Whether a file is to be deleted; None where it is gone."""
    async with database.reading() as reading:
        sql = "SELECT pending_delete_at IS NOT NULL FROM assets WHERE id = $1"
        found: bool | None = await reading._connection.fetchval(sql, asset_id)
        return found
