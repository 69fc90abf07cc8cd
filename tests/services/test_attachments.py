"""Files that entries show: tying them, and what undo and forks do to the ties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from db.engine import Database
from db.enums import EntryKind
from db.tables import Delta, EntryAsset, StoryEntry
from services import assets, attachments, deltas
from services.assets import FileStore, open_store
from services.errors import DomainError
from tests.conftest import People
from tests.factories import make_branch
from tests.services.assets.made import attach, detach, marked, opening_of, upload
from tests.services.deltas.ledgers import rows_of


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return open_store(tmp_path, "here")


async def links_of(database: Database, branch_id: str) -> list[tuple[str, int]]:
    async with database.reading() as reading:
        rows = await rows_of(reading, EntryAsset, branch_id)
    return sorted(((each.role, each.position) for each in rows), key=lambda each: each[1])


async def test_a_file_is_put_behind_the_others_unless_told_otherwise(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A5."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    for role, position in (("a", None), ("b", None), ("c", 7), ("d", None), ("e", 0)):
        await attach(database, people.owner, branch.id, asset.id, role=role, position=position)
    assert sorted(await links_of(database, branch.id)) == [
        ("a", 0),
        ("b", 1),
        ("c", 7),
        ("d", 8),
        ("e", 0),
    ]


async def test_each_change_is_logged_with_the_entry_and_undone_by_itself(
    database: Database, people: People, files: FileStore
) -> None:
    """Rules A5, A6."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    link = await attach(database, people.owner, branch.id, asset.id, role="cover")
    await detach(database, people.owner, link.id)
    assert await links_of(database, branch.id) == []
    entry_id = (await opening_of(database, branch.id)).partition(":")[2]
    async with database.reading() as reading:
        log = await rows_of(reading, Delta, branch.id)
    assert [(each.target_table, each.op, each.entry_id) for each in log] == [
        ("entry_assets", "create", entry_id),
        ("entry_assets", "delete", entry_id),
    ]
    expected = [([("cover", 0)], False), ([], True)]
    for links, is_marked in expected:
        async with database.writing() as writing:
            await deltas.undo_branch(writing, people.owner, branch.id)
        assert (await links_of(database, branch.id), await marked(database, asset.id)) == (
            links,
            is_marked,
        )
    for links, is_marked in ([("cover", 0)], False), ([], True):
        async with database.writing() as writing:
            await deltas.redo_branch(writing, people.owner, branch.id)
        assert (await links_of(database, branch.id), await marked(database, asset.id)) == (
            links,
            is_marked,
        )


async def test_an_undo_brings_the_link_back_to_a_file_that_was_deleted_meanwhile(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A8."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    link = await attach(database, people.owner, branch.id, asset.id, role="cover")
    await detach(database, people.owner, link.id)
    async with database.writing() as writing:
        await assets.delete_asset(writing, people.owner, asset.id)
        await deltas.undo_branch(writing, people.owner, branch.id)
    assert await links_of(database, branch.id) == [("cover", 0)]
    assert await marked(database, asset.id) is None
    await detach(database, people.owner, link.id)


async def test_a_fork_shows_the_same_files(
    database: Database, people: People, files: FileStore
) -> None:
    """Rules A5, A6."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    link = await attach(database, people.owner, branch.id, asset.id, role="cover")
    entry_id = await opening_of(database, branch.id)
    async with database.writing() as writing:
        fork = await deltas.fork_branch(writing, people.owner, branch.id, entry_id, "Fork")
    assert await links_of(database, fork.branch.id) == [("cover", 0)]
    await detach(database, people.owner, link.id)
    assert await marked(database, asset.id) is False
    await detach(database, people.owner, f"{fork.branch.id}:{link.row_id}")
    assert await marked(database, asset.id) is True


async def notice_in(database: Database, branch_id: str) -> str:
    meta = {"sceneEntities": [], "currentLocationId": None, "worldTime": 0}
    async with database.writing() as writing:
        (row,) = await deltas.plant_rows(
            writing,
            branch_id,
            StoryEntry,
            [{"position": 2, "kind": EntryKind.SYSTEM, "content": "Oh.", "metadata": meta}],
        )
    return f"{branch_id}:{row['id']}"


async def test_what_cannot_be_tied_is_refused_and_changes_nothing(
    database: Database, people: People, files: FileStore
) -> None:
    """Rules A5, A14."""
    asset = await upload(database, people.owner, files)
    theirs = await upload(database, people.stranger, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    link = await attach(database, people.owner, branch.id, asset.id)
    entry = await opening_of(database, branch.id)
    notice = await notice_in(database, branch.id)
    bare = entry.partition(":")[2]
    tries: list[tuple[Any, dict[str, Any], str, tuple[str, str]]] = [
        (people.owner, {"role": " "}, "TEXT_EMPTY", ("input", "role")),
        (people.owner, {"role": "x" * 501}, "TEXT_TOO_LONG", ("input", "role")),
        (people.owner, {"position": -1}, "OUT_OF_RANGE", ("input", "position")),
        (people.owner, {"position": 1_000_001}, "OUT_OF_RANGE", ("input", "position")),
        (people.owner, {"asset": theirs.id}, "NOT_FOUND", ("input", "assetId")),
        (people.owner, {"asset": link.id}, "NOT_FOUND", ("input", "assetId")),
        (people.owner, {"entry_id": bare}, "NOT_FOUND", ("input", "entryId")),
        (
            people.owner,
            {"entry_id": f"{branch.id}:{link.row_id}"},
            "NOT_FOUND",
            ("input", "entryId"),
        ),
        (people.owner, {"entry_id": notice}, "SYSTEM_ENTRY", ("input", "entryId")),
        (people.owner, {"expected_head": 0}, "CONFLICT", ("input", "expectedHead")),
        (people.stranger, {"asset": theirs.id}, "NOT_FOUND", ("input", "entryId")),
        (people.anonymous, {}, "NOT_FOUND", ("input", "entryId")),
    ]
    for viewer, given, code, path in tries:
        values = {"entry_id": entry, **given}
        with pytest.raises(DomainError) as refusal:
            await attach(database, viewer, branch.id, values.pop("asset", asset.id), **values)
        assert (refusal.value.code, refusal.value.path) == (code, path), given
    for viewer, link_id in (
        (people.stranger, link.id),
        (people.owner, link.row_id),
        (people.owner, asset.id),
    ):
        with pytest.raises(DomainError) as refusal:
            await detach(database, viewer, link_id)
        assert (refusal.value.code, refusal.value.path) == ("NOT_FOUND", ("input", "entryAssetId"))
    assert await links_of(database, branch.id) == [("reference", 0)]
    async with database.reading() as reading:
        assert len(await rows_of(reading, Delta, branch.id)) == 1


async def test_an_entry_shows_a_hundred_files_at_most(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A5."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    entry = (await opening_of(database, branch.id)).partition(":")[2]
    async with database.writing() as writing:
        row = {"entry_id": entry, "asset_id": asset.id, "role": "x"}
        await deltas.plant_rows(
            writing,
            branch.id,
            EntryAsset,
            [{**row, "position": number} for number in range(attachments.MAX_ATTACHED)],
        )
    with pytest.raises(DomainError) as refusal:
        await attach(database, people.owner, branch.id, asset.id)
    assert (refusal.value.code, refusal.value.path) == (
        "ENTRY_ASSETS_FULL",
        ("input", "entryId"),
    )
