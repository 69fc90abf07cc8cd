"""Taking files in, and deleting them."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from db.engine import Database
from db.enums import AssetKind
from db.paging import FIRST_PAGE
from db.tables import Asset
from services import assets
from services.access import Viewer, find_row
from services.assets import FileStore
from services.errors import Conflict, DomainError, NotFound, Unavailable
from tests.conftest import People
from tests.factories import make_branch
from tests.services.assets.made import PNG, attach, cover, detach, upload

MOST = 1_000

TYPES = [
    (PNG, "image/png", AssetKind.IMAGE),
    (b"\xff\xd8\xff\xe0", "image/jpeg", AssetKind.IMAGE),
    (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", AssetKind.IMAGE),
    (b"ID3\x04", "audio/mpeg", AssetKind.AUDIO),
    (b"OggS\0", "audio/ogg", AssetKind.AUDIO),
    (b"\0\0\0\x20ftypisom", "video/mp4", AssetKind.FILE),
    (b"%PDF-1.7", "application/pdf", AssetKind.FILE),
    (b"PK\x03\x04", "application/zip", AssetKind.FILE),
    # What a browser would run is text to everybody.
    (b"<!doctype html><script>alert(1)</script>", "text/plain", AssetKind.FILE),
    (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "text/plain", AssetKind.FILE),
    (b"{}", "application/json", AssetKind.FILE),
    (b"\0\1\2", "application/octet-stream", AssetKind.FILE),
]


@pytest.mark.parametrize(("content", "mime_type", "kind"), TYPES, ids=lambda each: str(each)[:20])
async def test_the_bytes_say_what_a_file_is(
    content: bytes, mime_type: str, kind: AssetKind
) -> None:
    """Rule A1."""
    seen = await assets.read_file(content, None, most=MOST)
    assert (seen.mime_type, seen.kind) == (mime_type, kind)
    assert seen.content_hash == hashlib.sha256(content).hexdigest()
    as_file = await assets.read_file(content, AssetKind.FILE, most=MOST)
    assert (as_file.mime_type, as_file.kind) == (mime_type, AssetKind.FILE)


REFUSED: list[tuple[bytes, AssetKind | None, str, tuple[str, str]]] = [
    (b"", None, "ASSET_EMPTY", ("input", "file")),
    (b"x" * (MOST + 1), None, "ASSET_TOO_LARGE", ("input", "file")),
    (b"<svg/>", AssetKind.IMAGE, "ASSET_KIND_MISMATCH", ("input", "kind")),
    (PNG, AssetKind.AUDIO, "ASSET_KIND_MISMATCH", ("input", "kind")),
]


@pytest.mark.parametrize(("content", "kind", "code", "path"), REFUSED)
async def test_what_is_no_file_or_not_what_it_is_said_to_be_is_refused(
    content: bytes, kind: AssetKind | None, code: str, path: tuple[str, str]
) -> None:
    """Rules A1, A2."""
    with pytest.raises(DomainError) as refusal:
        await assets.read_file(content, kind, most=MOST)
    assert (refusal.value.code, refusal.value.path) == (code, path)
    assert (await assets.read_file(b"x" * MOST, None, most=MOST)).kind is AssetKind.FILE


async def bytes_of(files: FileStore, asset: Asset) -> bytes | None:
    found = await files.read(asset.file_path, 0, asset.size_bytes)
    return None if found is None else b"".join([each async for each in found])


async def test_a_file_is_stored_once_for_its_owner(
    database: Database, people: People, files: FileStore
) -> None:
    """Rules A3, A14."""
    first = await upload(database, people.owner, files, PNG)
    again = await upload(database, people.owner, files, PNG, kind=AssetKind.FILE)
    theirs = await upload(database, people.stranger, files, PNG)
    other = await upload(database, people.owner, files, PNG + b"2")
    assert (again.id, again.kind, again.created_at) == (first.id, "image", first.created_at)
    assert len({first.id, theirs.id, other.id}) == 3
    assert await bytes_of(files, first) == PNG
    async with database.reading() as reading:
        mine = await assets.list_assets(reading, people.owner, FIRST_PAGE)
        assert [each.id for each in mine.nodes] == [other.id, first.id]
        assert (await assets.list_assets(reading, people.anonymous, FIRST_PAGE)).nodes == []
        assert await find_row(reading, people.stranger, Asset, first.id) is None
        acts = await reading._connection.fetch(
            "SELECT actor_user_id, subject_id FROM audit_events WHERE action = 'asset_uploaded'"
        )
    assert {tuple(each) for each in acts} == {
        (people.owner.user_id, first.id),
        (people.stranger.user_id, theirs.id),
        (people.owner.user_id, other.id),
    }


async def test_the_time_of_a_file_begins_when_it_is_uploaded_and_anew_when_it_is_sent_again(
    database: Database, people: People, files: FileStore
) -> None:
    """Rules A3, A6."""
    first = await upload(database, people.owner, files, PNG)
    again = await upload(database, people.owner, files, PNG)
    assert first.pending_delete_at is not None
    assert again.pending_delete_at is not None
    assert first.created_at <= first.pending_delete_at < again.pending_delete_at
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    await attach(database, people.owner, branch.id, first.id)
    assert (await upload(database, people.owner, files, PNG)).pending_delete_at is None


async def test_bytes_that_were_lost_come_back_with_the_same_file(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A4."""
    asset = await upload(database, people.owner, files, PNG)
    for spoiled in (None, b"", PNG[:5]):
        if spoiled is None:
            await files.remove([asset.file_path])
        else:
            await files.put(asset.file_path, spoiled)
        assert (await upload(database, people.owner, files, PNG)).id == asset.id
        assert await bytes_of(files, asset) == PNG


async def test_of_two_who_send_the_same_at_once_one_file_stays(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A3."""
    sent = await asyncio.gather(*(upload(database, people.owner, files, PNG) for _ in range(4)))
    assert len({each.id for each in sent}) == 1
    assert await bytes_of(files, sent[0]) == PNG
    async with database.reading() as reading:
        assert await reading._connection.fetchval("SELECT count(*) FROM assets") == 1
        acts = "SELECT count(*) FROM audit_events WHERE action = 'asset_uploaded'"
        assert await reading._connection.fetchval(acts) == 1


async def test_a_file_that_was_deleted_while_it_was_sent_again_is_to_be_sent_anew(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A3."""
    known = await upload(database, people.owner, files, PNG)
    file = await assets.read_file(PNG, None, most=MOST)
    name = await assets.store_bytes(files, file, known)
    async with database.writing() as writing:
        await assets.delete_asset(writing, people.owner, known.id)
    with pytest.raises(Unavailable) as refusal:
        async with database.writing() as writing:
            await assets.keep_file(writing, people.owner, file, name, known)
    assert (refusal.value.code, refusal.value.path) == ("ASSET_GONE", ("input", "file"))
    assert (await upload(database, people.owner, files, PNG)).id != known.id


async def refused(database: Database, viewer: Viewer, asset_id: str) -> tuple[Any, ...]:
    with pytest.raises((Conflict, NotFound)) as refusal:
        async with database.writing() as writing:
            await assets.delete_asset(writing, viewer, asset_id)
    return refusal.value.code, refusal.value.path


async def test_a_file_that_is_shown_is_not_deleted(
    database: Database, people: People, files: FileStore
) -> None:
    """Rules A10, A14."""
    path = ("input", "assetId")
    in_use, not_found = ("ASSET_IN_USE", path), ("NOT_FOUND", path)
    asset = await upload(database, people.owner, files, PNG)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    link = await attach(database, people.owner, branch.id, asset.id)
    assert await refused(database, people.owner, asset.id) == in_use
    await cover(database, branch.story_id, asset.id)
    await detach(database, people.owner, link.id)
    assert await refused(database, people.owner, asset.id) == in_use
    for viewer, asset_id in (
        (people.stranger, asset.id),
        (people.anonymous, asset.id),
        (people.owner, branch.id),
        (people.owner, "x"),
    ):
        assert await refused(database, viewer, asset_id) == not_found
    assert await bytes_of(files, asset) == PNG
    await cover(database, branch.story_id, None)
    async with database.writing() as writing:
        gone = await assets.delete_asset(writing, people.owner, asset.id)
    await assets.remove_bytes(files, gone)
    assert await bytes_of(files, asset) is None
    assert await refused(database, people.owner, asset.id) == not_found
