"""Files over HTTP: sent with a mutation, shown by entries, downloaded by their owners alone."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.clusters import Cluster
from tests.conftest import ServerProcess, serving
from tests.e2e.asset_documents import (
    ASSET_CHANGES,
    ASSET_UPLOAD,
    ASSETS,
    IMAGE_UPLOAD,
    new_asset,
    picture,
)
from tests.e2e.callers import Caller, Json
from tests.e2e.ledgers import Ledger
from tests.e2e.test_people import make_user
from tests.e2e.ways_back_documents import WAYS_BACK, tell_story
from tests.services.assets.stores import KEY, Server, s3_server

MOST = 100_000
PATIENCE = 30.0
HTML = b"<!doctype html><script>document.title = 'run'</script>"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    return {
        "MIRRORGRAPH_AUTH": "token",
        "MIRRORGRAPH_DATA_DIR": str(folder),
        "MIRRORGRAPH_ASSETS_MAX_BYTES": str(MOST),
    }


@dataclass
class People:
    """Two people with tokens, and nobody."""

    owner: Caller
    stranger: Caller
    nobody: Caller


@pytest.fixture(scope="module")
async def people(caller: Caller, server_dsn: str) -> People:
    tokens = [(await make_user(server_dsn, name))[1] for name in ("Olga", "Sten")]
    return People(caller.as_(tokens[0]), caller.as_(tokens[1]), caller)


async def get(
    person: Caller, url: str, method: str = "GET", **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers and body."""
    async with asyncio.timeout(PATIENCE):
        response = await person.session.request(
            method, person.server.address + url, headers={**person.headers, **headers}
        )
        async with response:
            return response.status, response.headers, await response.read()


async def test_a_file_is_uploaded_shown_and_taken_back(people: People) -> None:
    """Rules A1, A3, A5, A6."""
    owner, content = people.owner, picture()
    told = await tell_story(owner, "One.")
    asset = await new_asset(owner, content)
    assert asset.pop("createdAt") <= asset.pop("pendingDeleteAt")
    assert asset == {
        "id": asset["id"],
        "kind": "IMAGE",
        "mimeType": "image/png",
        "sizeBytes": len(content),
        "contentHash": hashlib.sha256(content).hexdigest(),
        "url": f"/assets/{asset['id']}",
    }
    assert (await new_asset(owner, content))["id"] == asset["id"]
    entry = told.entries[-1]
    given = {"input": {"entryId": entry, "assetId": asset["id"], "role": "cover", "position": 4}}
    attached = (await owner.ask(ASSET_CHANGES, given, "EntryAssetAttach"))["entryAssetAttach"]
    link = attached["entryAsset"]["id"]
    branch = told.branch
    assert attached == {
        "entryAsset": {
            "id": link,
            "rowId": link.partition(":")[2],
            "role": "cover",
            "position": 4,
            "asset": {"id": asset["id"], "url": asset["url"]},
            "entry": {"id": entry},
        },
        "branch": {"id": branch, "head": attached["branch"]["head"]},
        "errors": [],
    }
    shown = {"id": asset["id"], "mimeType": "image/png", "url": asset["url"]}
    seen = [{"role": "cover", "position": 4, "asset": shown}]
    assert await shown_by(owner, entry) == seen
    found = await owner.ask(ASSETS, {"id": asset["id"]}, "Assets")
    assert found["asset"] == {"id": asset["id"], "pendingDeleteAt": None}

    refused = await owner.ask(ASSET_CHANGES, {"input": {"assetId": asset["id"]}}, "AssetDelete")
    assert [each["code"] for each in refused["assetDelete"]["errors"]] == ["ASSET_IN_USE"]
    given = {"input": {"entryAssetId": link, "expectedHead": attached["branch"]["head"]}}
    detached = (await owner.ask(ASSET_CHANGES, given, "EntryAssetDetach"))["entryAssetDetach"]
    assert (detached["deletedId"], detached["errors"]) == (link, [])
    assert detached["branch"]["head"] > attached["branch"]["head"]
    assert await shown_by(owner, entry) == []
    then = {"branch": branch, "head": attached["branch"]["head"]}
    past = (await owner.ask(ASSETS, then, "AssetsAsOf"))["branch"]["entries"]["nodes"]
    assert {each["id"]: each["assets"] for each in past}[entry] == seen
    await owner.ask(WAYS_BACK, {"branch": branch}, "BranchUndo")
    assert await shown_by(owner, entry) == seen
    await owner.ask(WAYS_BACK, {"branch": branch}, "BranchUndo")
    assert await shown_by(owner, entry) == []

    deleted = await owner.ask(ASSET_CHANGES, {"input": {"assetId": asset["id"]}}, "AssetDelete")
    assert deleted["assetDelete"] == {"deletedId": asset["id"], "errors": []}
    assert (await get(owner, asset["url"]))[0] == 404
    # A redo ties the entry to what is gone: nothing breaks.
    await owner.ask(WAYS_BACK, {"branch": branch}, "BranchRedo")
    assert await shown_by(owner, entry) == [{"role": "cover", "position": 4, "asset": None}]


async def shown_by(caller: Caller, entry: str) -> list[Json]:
    found = await caller.ask(ASSETS, {"entry": entry}, "AssetsOfEntry")
    return list(found["node"]["assets"])


async def test_what_was_refused_left_nothing(people: People, ledger: Ledger, folder: Path) -> None:
    """Rules A1, A2."""
    before = await ledger.fingerprint()
    stored = sorted((folder / "assets").rglob("*"))
    for content, query, code, path in (
        (b"", ASSET_UPLOAD, "ASSET_EMPTY", "file"),
        (b"x" * (MOST + 1), ASSET_UPLOAD, "ASSET_TOO_LARGE", "file"),
        (SVG, IMAGE_UPLOAD, "ASSET_KIND_MISMATCH", "kind"),
    ):
        payload = (await people.owner.upload(content, query=query)).data["assetUpload"]
        (error,) = payload["errors"]
        assert (error["code"], error["path"]) == (code, ["input", path])
        assert payload["asset"] is None
    refused = await people.nobody.upload(picture(), query=ASSET_UPLOAD)
    assert refused.status == 401
    assert await ledger.fingerprint() == before
    assert sorted((folder / "assets").rglob("*")) == stored


async def test_a_file_is_given_to_its_owner_alone(people: People) -> None:
    """Rules A11, A14."""
    content = picture()
    asset = await new_asset(people.owner, content)
    status, headers, got = await get(people.owner, asset["url"])
    assert (status, got) == (200, content)
    assert {name: headers[name] for name in KNOWN} == {
        "Content-Type": "image/png",
        "Content-Length": str(len(content)),
        "Content-Disposition": "inline",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
        "ETag": f'"{asset["contentHash"]}"',
        "Cache-Control": "private, max-age=31536000, immutable",
        "Vary": "authorization",
        "Accept-Ranges": "bytes",
    }
    for person, url in (
        (people.stranger, asset["url"]),
        (people.owner, asset["url"][:-1]),
        (people.owner, "/assets/x"),
        (people.owner, "/assets/%00"),
    ):
        assert (await get(person, url))[::2] == (404, ABSENT), url
    status, headers, _ = await get(people.nobody, asset["url"])
    assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
    for foreign in ({"Origin": "https://elsewhere.test"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await get(people.owner, asset["url"], **foreign))[0] == 403
    assert (await get(people.owner, asset["url"], "DELETE"))[0] == 405
    found = await people.stranger.ask(ASSETS, {"id": asset["id"]}, "Assets")
    assert found == {"asset": None, "assets": {"nodes": [], "totalCount": 0}}


KNOWN = (
    "Content-Type",
    "Content-Length",
    "Content-Disposition",
    "Content-Security-Policy",
    "X-Content-Type-Options",
    "ETag",
    "Cache-Control",
    "Vary",
    "Accept-Ranges",
)
ABSENT = (
    b'{"errors":[{"message":"There is no such Asset for you.","extensions":{"code":"NOT_FOUND"}}]}'
)


async def test_parts_and_what_is_known_already(people: People) -> None:
    """Rule A11."""
    content = picture().ljust(1_000, b".")
    asset = await new_asset(people.owner, content)
    url, tag = asset["url"], f'"{asset["contentHash"]}"'
    ranges = {
        "bytes=0-0": (0, 1),
        "bytes=10-19": (10, 20),
        "bytes=990-5000": (990, 1_000),
        "bytes=990-": (990, 1_000),
        "bytes=-10": (990, 1_000),
        "bytes=-5000": (0, 1_000),
    }
    for asked, (start, end) in ranges.items():
        status, headers, got = await get(people.owner, url, Range=asked)
        assert (status, got) == (206, content[start:end]), asked
        assert headers["Content-Range"] == f"bytes {start}-{end - 1}/1000"
        assert headers["Content-Length"] == str(end - start)
    for asked in ("bytes=5-4", "bytes=a-b", "bytes=-", "bytes=0-1,3-4", "lines=0-1"):
        assert (await get(people.owner, url, Range=asked))[::2] == (200, content), asked
    for asked in ("bytes=1000-", "bytes=5000-6000", "bytes=-0"):
        status, headers, _ = await get(people.owner, url, Range=asked)
        assert (status, headers["Content-Range"]) == (416, "bytes */1000")
    part = {"Range": "bytes=0-9"}
    fresh = await get(people.owner, url, **part, **{"If-Range": tag})
    stale = await get(people.owner, url, **part, **{"If-Range": '"other"'})
    assert (fresh[0], stale[0]) == (206, 200)
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        status, headers, got = await get(people.owner, url, **{"If-None-Match": known})
        assert (status, headers["ETag"], got) == (304, tag, b"")
    assert (await get(people.owner, url, **{"If-None-Match": '"other"'}))[0] == 200
    assert (await get(people.stranger, url, **{"If-None-Match": tag}))[0] == 404
    status, headers, got = await get(people.owner, url, "HEAD", **part)
    assert (status, headers["Content-Length"], got) == (206, "10", b"")


@pytest.mark.parametrize(
    ("content", "served_as"),
    [
        (HTML, "text/plain; charset=utf-8"),
        (SVG, "text/plain; charset=utf-8"),
        (b"%PDF-1.7 <script>", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\0\1\2", "application/octet-stream"),
    ],
)
async def test_what_could_be_run_is_saved_and_not_shown(
    people: People, content: bytes, served_as: str
) -> None:
    """Rule A12."""
    asset = await new_asset(people.owner, content)
    _, headers, got = await get(people.owner, asset["url"])
    assert (headers["Content-Type"], got) == (served_as, content)
    assert headers["Content-Disposition"].startswith(f'attachment; filename="{asset["id"]}')
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"


async def test_bytes_that_are_gone_are_told_as_absent(people: People, folder: Path) -> None:
    """Rule A11."""
    asset = await new_asset(people.owner)
    (stored,) = (folder / "assets").rglob(asset["id"])
    stored.unlink()
    assert (await get(people.owner, asset["url"]))[::2] == (404, ABSENT)


async def test_a_kill_between_bytes_and_row_leaves_no_row_and_bytes_that_are_swept(
    cluster: Cluster, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """Rules A4, A9."""
    dsn = await cluster.new_database()
    settings = {"DATABASE_URL": dsn, "MIRRORGRAPH_DATA_DIR": str(tmp_path)}
    ledger, content = Ledger(dsn), picture()
    try:
        server = await ServerProcess(**settings).start()
        async with ledger.transaction() as connection:
            # Reading is possible, writing waits.
            await connection.execute("LOCK TABLE assets IN EXCLUSIVE MODE")
            caller = Caller(server, session)
            sending = asyncio.create_task(caller.upload(content, query=ASSET_UPLOAD))
            (stored,) = await appeared(tmp_path)
            await server.stop(9)
            await asyncio.gather(sending, return_exceptions=True)
        assert stored.read_bytes() == content
        assert await ledger.value("SELECT count(*) FROM assets") == 0
        long_ago = stored.stat().st_mtime - 25 * 3_600
        os.utime(stored, (long_ago, long_ago))
        async with serving(**settings) as second:
            caller = Caller(second, session)
            await gone(stored)
            asset = await new_asset(caller, content)
            assert (await get(caller, asset["url"]))[::2] == (200, content)
            assert not stored.exists()
    finally:
        await cluster.drop(dsn)


async def appeared(folder: Path) -> list[Path]:
    """The files below a folder, once there are any."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = [each for each in (folder / "assets").rglob("asset_*") if "#" not in each.name]
            if found:
                return found
            await asyncio.sleep(0.01)


async def gone(path: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while path.exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.01)


@dataclass
class WithBucket:
    """Somebody at a server that keeps files in a bucket, and what is behind that server."""

    caller: Caller
    ledger: Ledger
    s3: Server


@pytest.fixture
async def with_bucket(
    cluster: Cluster, session: aiohttp.ClientSession
) -> AsyncIterator[WithBucket]:
    dsn = await cluster.new_database()
    with s3_server() as s3:
        bucket = s3.bucket("/files")
        settings = {
            "MIRRORGRAPH_ASSETS_URL": bucket.url,
            "MIRRORGRAPH_ASSETS_ENDPOINT": s3.endpoint,
            "MIRRORGRAPH_ASSETS_KEY_ID": str(bucket.access_key_id),
            "MIRRORGRAPH_ASSETS_KEY": KEY,
        }
        async with serving(DATABASE_URL=dsn, **settings) as server:
            yield WithBucket(Caller(server, session), Ledger(dsn), s3)
    assert KEY not in server.output
    assert "Traceback" not in server.output, server.output
    await cluster.drop(dsn)


async def test_files_lie_in_a_bucket_where_one_is_set(with_bucket: WithBucket) -> None:
    """Rules A4, A10, A11."""
    caller = with_bucket.caller
    content = picture().ljust(50_000, b".")
    asset = await new_asset(caller, content)
    assert (await get(caller, asset["url"]))[::2] == (200, content)
    assert (await get(caller, asset["url"], Range="bytes=10-19"))[::2] == (206, content[10:20])
    await caller.ask(ASSET_CHANGES, {"input": {"assetId": asset["id"]}}, "AssetDelete")
    assert (await get(caller, asset["url"]))[0] == 404


async def test_while_the_store_fails_that_is_told_and_nothing_is_kept(
    with_bucket: WithBucket,
) -> None:
    """Rule A13."""
    caller, ledger = with_bucket.caller, with_bucket.ledger
    asset = await new_asset(caller)
    with_bucket.s3.stop()
    before = await ledger.fingerprint()
    payload = (await caller.upload(picture(), query=ASSET_UPLOAD)).data["assetUpload"]
    (error,) = payload["errors"]
    assert (payload["asset"], error["code"], error["path"]) == (None, "STORE_UNAVAILABLE", [])
    assert await ledger.fingerprint() == before
    status, headers, body = await get(caller, asset["url"])
    assert (status, headers["Retry-After"]) == (503, "5")
    assert b'"code":"STORE_UNAVAILABLE","retryable":true' in body
    # The row goes all the same, and the bytes are swept when the store is back.
    deleted = await caller.ask(ASSET_CHANGES, {"input": {"assetId": asset["id"]}}, "AssetDelete")
    assert deleted["assetDelete"] == {"deletedId": asset["id"], "errors": []}
