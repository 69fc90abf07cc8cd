"""When a file is marked as one that nothing shows, and what becomes of it then."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from db.engine import Database
from db.reading import Writing
from services import attachments, stories
from services.assets import FileStore, Sweeper, open_store
from services.assets.sweeping import ORPHAN_AGE
from services.housekeeping import Housekeeper
from tests.conftest import People
from tests.factories import make_branch
from tests.services.assets.made import PNG, attach, cover, detach, marked, opening_of, upload
from tests.services.assets.stores import Server

WEEK = timedelta(days=7)


async def sweep(database: Database, sweeper: Sweeper) -> dict[str, int]:
    chores = {"given up": sweeper.sweep_given_up, "orphans": sweeper.sweep_orphans}
    return await Housekeeper(database, chores, seconds=3_600).run_once()


async def age(database: Database, asset_id: str, by: timedelta) -> None:
    """Have a file be without anything that shows it for a time already."""
    async with database.writing() as writing:
        await writing._connection.execute(
            "UPDATE assets SET pending_delete_at = pending_delete_at - $2::interval WHERE id = $1",
            asset_id,
            by,
        )


async def until_somebody_waits(writing: Writing) -> None:
    """Until another transaction waits for this one."""
    blocked = (
        "SELECT count(*) FROM pg_locks "
        "WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    )
    async with asyncio.timeout(10):
        while not await writing._connection.fetchval(blocked):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_file_is_marked_while_nothing_shows_it(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A6."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branches = [await make_branch(writing, people.owner) for _ in range(2)]
    assert await marked(database, asset.id)
    links = [await attach(database, people.owner, each.id, asset.id) for each in branches]
    assert not await marked(database, asset.id)
    await cover(database, branches[0].story_id, asset.id)
    await detach(database, people.owner, links[0].id)
    await detach(database, people.owner, links[1].id)
    assert not await marked(database, asset.id)
    await cover(database, branches[0].story_id, None)
    assert await marked(database, asset.id)


async def test_of_two_who_take_away_the_last_two_links_at_once_one_marks_the_file(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A7."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branches = [await make_branch(writing, people.owner) for _ in range(2)]
    links = [await attach(database, people.owner, each.id, asset.id) for each in branches]
    async with database.writing() as writing:
        await attachments.detach_asset(writing, people.owner, links[0].id, None)
        other = asyncio.create_task(detach(database, people.owner, links[1].id))
        await until_somebody_waits(writing)
    await other
    assert await marked(database, asset.id)


async def test_covers_are_held_in_the_order_of_their_ids(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A7. Who waits for the first one has not got the second one."""
    owner = people.owner
    lower, higher = [
        await upload(database, owner, files, PNG + bytes([number])) for number in range(2)
    ]
    assert lower.id < higher.id
    async with database.writing() as writing:
        branch = await make_branch(writing, owner)
        await stories.update_story(writing, owner, branch.story_id, {"cover_asset_id": lower.id})

    async def exchange() -> None:
        async with database.writing() as writing:
            change = {"cover_asset_id": higher.id}
            await stories.update_story(writing, owner, branch.story_id, change)

    held = "SELECT 1 FROM assets WHERE id = $1 FOR UPDATE NOWAIT"
    async with database.writing() as writing:
        await writing._connection.fetchval(held, lower.id)
        waiting = asyncio.create_task(exchange())
        await until_somebody_waits(writing)
        assert await writing._connection.fetchval(held, higher.id) == 1
    await waiting
    assert [await marked(database, each.id) for each in (lower, higher)] == [True, False]


async def test_a_file_is_deleted_when_its_time_is_over_and_not_before(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A8."""
    kept, shown, old = [
        await upload(database, people.owner, files, bytes([number]) * 9) for number in range(3)
    ]
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    await attach(database, people.owner, branch.id, shown.id)
    await age(database, kept.id, WEEK - timedelta(minutes=1))
    await age(database, old.id, WEEK)
    assert await sweep(database, Sweeper(files, WEEK)) == {"given up": 1, "orphans": 0}
    assert [await marked(database, each.id) for each in (kept, shown, old)] == [True, False, None]
    sizes = [await files.size_of(each.file_path) for each in (kept, shown, old)]
    assert sizes == [9, 9, None]


async def test_what_is_marked_and_shown_all_the_same_stays(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A8."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    await attach(database, people.owner, branch.id, asset.id)
    async with database.writing() as writing:
        await writing._connection.execute("UPDATE assets SET pending_delete_at = '2000-01-01'")
    assert await sweep(database, Sweeper(files, WEEK)) == {"given up": 0, "orphans": 0}


async def test_many_are_deleted_in_steps(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A8."""
    made = [
        await upload(database, people.owner, files, f"file {number}".encode())
        for number in range(60)
    ]
    for each in made:
        await age(database, each.id, WEEK)
    assert await sweep(database, Sweeper(files, WEEK)) == {"given up": 60, "orphans": 0}
    assert [name async for name in files.names(older_than=-WEEK)] == []


async def test_one_that_is_about_to_be_shown_again_stays(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A8."""
    asset = await upload(database, people.owner, files)
    async with database.writing() as writing:
        branch = await make_branch(writing, people.owner)
    await age(database, asset.id, WEEK)
    entry_id = await opening_of(database, branch.id)
    async with database.writing() as writing:
        await attachments.attach_asset(
            writing,
            people.owner,
            entry_id=entry_id,
            asset_id=asset.id,
            role="cover",
            position=None,
            expected_head=None,
        )
        assert await sweep(database, Sweeper(files, WEEK)) == {"given up": 0, "orphans": 0}
    assert await marked(database, asset.id) is False


async def test_bytes_stay_where_the_deletion_of_their_row_was_undone(
    database: Database, people: People, files: FileStore
) -> None:
    """Rule A8."""
    asset = await upload(database, people.owner, files)
    await age(database, asset.id, WEEK)
    sweeper = Sweeper(files, WEEK)

    async def fail(writing: Writing) -> int:
        assert await sweeper.sweep_given_up(writing) == 1
        raise ConnectionResetError

    keeper = Housekeeper(database, {"given up": fail}, seconds=3_600)
    assert await keeper.run_once() == {"given up": 0}
    await upload(database, people.owner, files)
    assert await sweep(database, sweeper) == {"given up": 0, "orphans": 0}
    assert await files.size_of(asset.file_path) == asset.size_bytes


async def test_bytes_without_a_row_go_when_no_request_can_still_want_them(
    database: Database, people: People, tmp_path: Path
) -> None:
    """Rule A9."""
    files = open_store(tmp_path, "here")
    kept = await upload(database, people.owner, files)
    for name in ("asset_old", "asset_new", "notes.txt"):
        await files.put(name, b"x")
    for name in (kept.file_path, "asset_old", "notes.txt"):
        long_ago = (tmp_path / "here" / name).stat().st_mtime - ORPHAN_AGE.total_seconds() - 1
        os.utime(tmp_path / "here" / name, (long_ago, long_ago))
    sweeper = Sweeper(files, WEEK)
    assert await sweep(database, sweeper) == {"given up": 0, "orphans": 1}
    left = sorted(each.name for each in (tmp_path / "here").iterdir())
    assert left == sorted([kept.file_path, "asset_new", "notes.txt"])
    # Once when it starts and then once a day.
    await files.put("asset_old", b"x")
    os.utime(tmp_path / "here" / "asset_old", (0, 0))
    assert await sweep(database, sweeper) == {"given up": 0, "orphans": 0}
    assert await sweep(database, Sweeper(files, WEEK)) == {"given up": 0, "orphans": 1}


async def test_a_bucket_is_swept_too(database: Database, people: People, s3: Server) -> None:
    """Rules A8, A9."""
    files = open_store(s3.bucket("/folder"), "here")
    kept, old = [await upload(database, people.owner, files, each) for each in (b"1", b"2")]
    await age(database, old.id, WEEK)
    await files.put("asset_new", b"x")
    assert await sweep(database, Sweeper(files, WEEK)) == {"given up": 1, "orphans": 0}
    names = [name async for some in files.names(older_than=-WEEK) for name in some]
    assert sorted(names) == sorted([kept.file_path, "asset_new"])


async def test_while_the_store_fails_nothing_more_is_given_up(
    database: Database, people: People, tmp_path: Path
) -> None:
    """Rule A13."""
    files = open_store(tmp_path, "here")
    first, second = [await upload(database, people.owner, files, each) for each in (b"1", b"2")]
    await age(database, first.id, WEEK)
    sweeper = Sweeper(files, WEEK)
    (tmp_path / "here").rename(tmp_path / "away")
    (tmp_path / "here").write_text("no folder")
    assert await sweep(database, sweeper) == {"given up": 1, "orphans": 0}
    await age(database, second.id, WEEK)
    assert await sweep(database, sweeper) == {"given up": 0, "orphans": 0}
    assert await marked(database, second.id)
    (tmp_path / "here").unlink()
    (tmp_path / "away").rename(tmp_path / "here")
    assert await sweep(database, sweeper) == {"given up": 1, "orphans": 0}
    assert list((tmp_path / "here").iterdir()) == []
