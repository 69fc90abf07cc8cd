"""The rows of files: taking one in, finding, listing and deleting it.

Bytes are written before their row is committed, and deleted after it is gone, so that a row always
has its bytes; what is left over in between is swept (`sweeping.py`).
Source: spec aventuras, assets.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col

from db.enums import AssetKind
from db.ids import new_id
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, columns, param, statement
from db.tables import Asset
from services.access import Viewer, hold_row, visible
from services.accounts import record_act
from services.assets.settling import is_shown
from services.assets.storing import FileStore
from services.cards import media_type_of
from services.errors import Conflict, Invalid, LimitReached, Unavailable

_FILE_PATH = ("input", "file")
_ASSET_PATH = ("input", "assetId")

ASSETS = PagedList(
    "assets",
    Asset,
    sort=[
        SortKey(col(Asset.created_at), is_descending=True),
        SortKey(col(Asset.id), is_descending=True),
    ],
    where=lambda: visible(Asset),
)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was sent, and what its bytes say of it."""

    content: bytes
    kind: AssetKind
    mime_type: str
    # SHA-256 in hexadecimal.
    content_hash: str


async def read_file(content: bytes, kind: AssetKind | None, *, most: int) -> ReadFile:
    """Look at a file of at most `most` bytes. Its type is told by its bytes, and its kind follows
    unless it was given. Raises Invalid (ASSET_EMPTY, ASSET_KIND_MISMATCH) and LimitReached
    (ASSET_TOO_LARGE).
    """
    if not content:
        raise Invalid("This file is empty.", "ASSET_EMPTY", _FILE_PATH)
    if len(content) > most:
        raise LimitReached(
            f"A file has at most {most:,} bytes here.", "ASSET_TOO_LARGE", _FILE_PATH
        )
    mime_type = media_type_of(content)
    seen = _kind_of(mime_type)
    if kind not in (None, AssetKind.FILE, seen):
        raise Invalid(
            f"By its bytes this file is of kind {seen.upper()}: {mime_type}.",
            "ASSET_KIND_MISMATCH",
            ("input", "kind"),
        )
    # Beside the loop: a large file takes longer than others should wait.
    digest = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
    return ReadFile(content, kind or seen, mime_type, digest)


def _kind_of(mime_type: str) -> AssetKind:
    family = mime_type.partition("/")[0]
    return AssetKind(family) if family in (AssetKind.IMAGE, AssetKind.AUDIO) else AssetKind.FILE


async def find_by_content(reading: Reading, viewer: Viewer, file: ReadFile) -> Asset | None:
    """The viewer's file with the same content, if there is one."""
    return await reading.first(_same(), content_hash=file.content_hash, **viewer.parameters)


async def store_bytes(files: FileStore, file: ReadFile, known: Asset | None) -> str:
    """See to it that the bytes are there, and under which name: that of `known`, the row with the
    same content, or a new one. Bytes that were lost are so restored. Raises Unavailable.
    """
    name = new_id("assets") if known is None else known.file_path
    if known is None or await files.size_of(name) != len(file.content):
        await files.put(name, file.content)
    return name


async def keep_file(
    writing: Writing, viewer: Viewer, file: ReadFile, name: str, known: Asset | None
) -> Asset:
    """The row of a file whose bytes were stored under `name`: a new one, or that with the same
    content. Where nothing shows it its time begins anew.

    Raises Unavailable (ASSET_GONE) where `known` was deleted while the file was sent.
    """
    if known is not None:
        renewed = await writing.first(_renew(), of_id=known.id)
        if renewed is None:
            raise Unavailable(
                "The same file was deleted just now: send it again.", "ASSET_GONE", _FILE_PATH
            )
        return renewed
    asset = await writing.first(
        _insert(),
        id=name,
        owner_user_id=viewer.signed_in_id,
        kind=file.kind,
        mime_type=file.mime_type,
        size_bytes=len(file.content),
        content_hash=file.content_hash,
    )
    assert asset is not None
    # Else somebody was faster with the same content, and what we stored is swept.
    if asset.id == name:
        act = {"kind": file.kind, "mime_type": file.mime_type, "size_bytes": len(file.content)}
        await record_act(writing, viewer, "asset_uploaded", asset.id, act)
    return asset


async def list_assets(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[Asset]:
    """The viewer's files, newest first."""
    return await ASSETS.page(reading, request, **viewer.parameters)


async def delete_asset(writing: Writing, viewer: Viewer, asset_id: str) -> Asset:
    """Delete the row of a file that nothing shows; the row. Its bytes are to be removed after the
    commit. Raises NotFound and Conflict (ASSET_IN_USE).
    """
    asset = await hold_row(writing, viewer, Asset, asset_id, *_ASSET_PATH)
    if await writing.value(_shown(), of_id=asset.id):
        raise Conflict(
            "An entry or a story shows this file: take it off there first.",
            "ASSET_IN_USE",
            _ASSET_PATH,
        )
    await writing.run(_delete(), of_id=asset.id)
    await record_act(writing, viewer, "asset_deleted", asset.id)
    return asset


async def remove_bytes(files: FileStore, asset: Asset) -> None:
    """Remove the bytes of a file whose row is gone. Where the store fails they are swept later."""
    with suppress(Unavailable):
        await files.remove([asset.file_path])


@statement(Asset)
def _same() -> Any:
    return select(*columns(Asset)).where(
        col(Asset.content_hash) == param("content_hash"), visible(Asset)
    )


# The mark is read where the row is locked: what shows the file may have been settled meanwhile.
_RENEWED = case((col(Asset.pending_delete_at).is_(None), None), else_=func.clock_timestamp())


@statement(Asset)
def _renew() -> Any:
    return (
        update(Asset)
        .where(col(Asset.id) == param("of_id"))
        .values(pending_delete_at=_RENEWED)
        .returning(*columns(Asset))
    )


@statement(Asset)
def _insert() -> Any:
    given = ("id", "owner_user_id", "kind", "mime_type", "content_hash")
    return (
        insert(Asset)
        .values(
            **{name: param(name) for name in given},
            file_path=param("id"),
            size_bytes=param("size_bytes", BigInteger()),
            pending_delete_at=func.clock_timestamp(),
        )
        .on_conflict_do_update(
            index_elements=["owner_user_id", "content_hash"],
            set_={"pending_delete_at": _RENEWED},
        )
        .returning(*columns(Asset))
    )


@statement(Asset)
def _shown() -> Any:
    return select(is_shown()).where(col(Asset.id) == param("of_id"))


@statement(Asset)
def _delete() -> Any:
    return delete(Asset).where(col(Asset.id) == param("of_id"))
