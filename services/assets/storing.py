"""Where the bytes of files lie: a folder, or a bucket of anything that speaks S3.

A file has one name for its life and is written once, whole. Knows no rows.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
import structlog
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, S3Store

from services.errors import Unavailable

logger = structlog.get_logger("mirrorgraph.assets")

# How many files are listed at once: few enough to be deleted while a transaction may be idle.
_LISTED = 200
_CHUNK_BYTES = 256 * 1024
# A store that does not answer is given up within a mutation's time, and told as such.
_PATIENCE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A place in an S3-compatible store. Without keys those of the machine's role are used."""

    # s3://bucket or s3://bucket/folder
    url: str
    endpoint: str | None = None
    region: str = "us-east-1"
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)


class FileStore:
    """Bytes by name, in a folder of their own within a store. What goes wrong with the store itself
    is Unavailable (STORE_UNAVAILABLE).
    """

    def __init__(self, store: ObjectStore, within: str, disk: Path | None) -> None:
        self._store = store
        self._within = within
        # Where the store is on one.
        self._disk = disk

    def _path(self, name: str) -> str:
        return f"{self._within}/{name}"

    async def put(self, name: str, content: bytes) -> None:
        """Write a file; when this returns it is there for good."""
        with _told():
            await obstore.put_async(self._store, self._path(name), content)
            if self._disk is not None:
                await asyncio.to_thread(_flush, self._disk / self._path(name))

    async def size_of(self, name: str) -> int | None:
        """How many bytes a file has; None where it is not there."""
        with _told(), suppress(FileNotFoundError):
            return int((await obstore.head_async(self._store, self._path(name)))["size"])
        return None

    async def read(self, name: str, start: int, end: int) -> AsyncIterator[bytes] | None:
        """The bytes of a file from `start` to before `end`, in pieces; None where it is not there.
        There is at least one byte between the two.
        """
        with _told(), suppress(FileNotFoundError):
            found = await obstore.get_async(
                self._store, self._path(name), options={"range": (start, end)}
            )
            return _pieces(found)
        return None

    async def remove(self, names: Iterable[str]) -> None:
        """Delete files; those that are not there are gone already."""
        for name in names:
            with _told(), suppress(FileNotFoundError):
                await obstore.delete_async(self._store, self._path(name))

    async def names(self, *, older_than: timedelta) -> AsyncIterator[list[str]]:
        """The names of all files that were written this long ago, some at a time."""
        before = datetime.now(UTC) - older_than
        with _told():
            async for listed in obstore.list(self._store, self._within, chunk_size=_LISTED):
                yield [
                    each["path"].rpartition("/")[2]
                    for each in listed
                    if each["last_modified"] < before
                ]


def open_store(place: Path | Bucket, within: str) -> FileStore:
    """The store at a place, in it the folder `within`. A folder on disk is made where there is
    none, which may raise OSError.
    """
    if isinstance(place, Path):
        # What is in it is private.
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileStore(LocalStore(place), within, place)
    parts = urlsplit(place.url)
    config: dict[str, Any] = {
        "region": place.region,
        "endpoint": place.endpoint,
        "access_key_id": place.access_key_id,
        "secret_access_key": place.secret_access_key,
    }
    is_plain = (place.endpoint or "").startswith("http://")
    return FileStore(
        S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            config={name: value for name, value in config.items() if value is not None},  # type: ignore[arg-type]
            client_options={
                "allow_http": is_plain,
                "connect_timeout": _PATIENCE / 2,
                "read_timeout": _PATIENCE,
            },
            retry_config={"max_retries": 2, "retry_timeout": _PATIENCE},
        ),
        within,
        None,
    )


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        # The first line names the address and what went wrong; keys are in none of them.
        reason = str(error).partition("\n")[0]
        logger.warning("the store of files failed", error=type(error).__name__, reason=reason)
        raise Unavailable(
            "Files cannot be stored or read now: try again soon.", "STORE_UNAVAILABLE"
        ) from error


async def _pieces(found: Any) -> AsyncIterator[bytes]:
    async for piece in found.stream(min_chunk_size=_CHUNK_BYTES):
        yield bytes(piece)


def _flush(path: Path) -> None:
    """Have a file and its place in the folder survive a loss of power."""
    for each in (path, path.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
