"""The bytes of files: the same from a folder and from a real S3 server."""

from __future__ import annotations

import stat
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.assets import Bucket, FileStore, open_store
from services.errors import Unavailable
from tests.services.assets.stores import KEY, Server

CONTENT = bytes(range(256)) * 4_000
NOW = timedelta(0)


@pytest.fixture(params=["folder", "bucket", "folder of a bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path, s3: Server) -> Path | Bucket:
    if request.param == "folder":
        return tmp_path / "deep" / "assets"
    return s3.bucket("/deep/assets" if request.param == "folder of a bucket" else "")


async def read(files: FileStore, name: str, start: int, end: int) -> bytes | None:
    pieces = await files.read(name, start, end)
    return None if pieces is None else b"".join([each async for each in pieces])


async def listed(files: FileStore, older_than: timedelta = NOW) -> list[str]:
    return sorted([name async for names in files.names(older_than=older_than) for name in names])


async def test_what_was_put_is_read_whole_and_in_parts(place: Path | Bucket) -> None:
    """Rule A4."""
    files = open_store(place, "mine")
    await files.put("asset_1", CONTENT)
    await files.put("asset_2", b"x")
    assert [await files.size_of(name) for name in ("asset_1", "asset_2")] == [len(CONTENT), 1]
    assert await read(files, "asset_1", 0, len(CONTENT)) == CONTENT
    assert await read(files, "asset_1", 5, 300_000) == CONTENT[5:300_000]
    assert await read(files, "asset_2", 0, 1) == b"x"
    assert await read(open_store(place, "mine"), "asset_2", 0, 1) == b"x"


async def test_what_is_not_there_is_told_and_can_be_removed(place: Path | Bucket) -> None:
    """Rule A9."""
    files = open_store(place, "mine")
    assert await listed(files) == []
    assert await files.size_of("asset_1") is None
    assert await files.read("asset_1", 0, 1) is None
    await files.put("asset_1", b"x")
    await files.remove(["asset_0", "asset_1", "asset_2"])
    assert await files.size_of("asset_1") is None


async def test_two_databases_in_one_place_do_not_see_each_others_files(
    place: Path | Bucket,
) -> None:
    """Rule A9."""
    mine, theirs = open_store(place, "mine"), open_store(place, "theirs")
    for name in ("asset_1", "asset_2"):
        await mine.put(name, b"mine")
    await theirs.put("asset_1", b"theirs")
    assert await listed(mine) == ["asset_1", "asset_2"]
    assert await listed(theirs) == ["asset_1"]
    assert await listed(mine, timedelta(hours=1)) == []
    await theirs.remove(["asset_1"])
    assert await read(mine, "asset_1", 0, 4) == b"mine"


async def test_a_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "assets"
    await open_store(folder, "mine").put("asset_1", b"x")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["no server", "no bucket"])
async def test_a_store_that_fails_is_told_as_such_without_its_key(s3: Server, what: str) -> None:
    """Rule A13."""
    endpoint = "http://127.0.0.1:9" if what == "no server" else s3.endpoint
    place = Bucket("s3://nowhere", endpoint, "us-east-1", "tests", KEY)
    files = open_store(place, "mine")
    with capture_logs() as logs, pytest.raises(Unavailable) as refusal:
        await files.put("asset_1", b"x")
    assert (refusal.value.code, refusal.value.is_retryable) == ("STORE_UNAVAILABLE", True)
    assert [each["event"] for each in logs] == ["the store of files failed"]
    assert KEY not in repr((logs, place, files, refusal.value))
    if what == "no server":
        with pytest.raises(Unavailable):
            await files.size_of("asset_1")
        with pytest.raises(Unavailable):
            await listed(files)
