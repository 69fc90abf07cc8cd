"""A connection between a server and its database that breaks off when a test wants it to."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


class Between:
    """Stands between a server and its database, and breaks connections off right behind a commit:
    the database has done it, and the server does not hear so.
    """

    def __init__(self, dsn: str) -> None:
        options = parse_qs(urlsplit(dsn).query)
        (folder,), port = options["host"], options.get("port", ["5432"])[0]
        self._database = f"{folder}/.s.PGSQL.{port}"
        self._folder = Path(tempfile.mkdtemp(prefix="mg"))  # short: such paths have few bytes
        self._socket = str(self._folder / f".s.PGSQL.{port}")
        self.dsn = dsn.replace(folder, str(self._folder))
        # How many commits are still to be lost, and how many were.
        self.to_lose = 0
        self.lost = 0
        self._passing: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[Between]:
        """Pass on while the block runs."""
        server = await asyncio.start_unix_server(self._accept, self._socket)
        try:
            yield self
        finally:
            server.close()
            for task in self._passing:
                task.cancel()
            await asyncio.gather(*self._passing, return_exceptions=True)
            shutil.rmtree(self._folder)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connect(reader, writer))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._database)
        is_losing = False

        async def to_database() -> None:
            nonlocal is_losing
            while said := await reader.read(65_536):
                if b"COMMIT;" in said and self.to_lose > 0:
                    self.to_lose -= 1
                    is_losing = True
                far_writer.write(said)
                await far_writer.drain()

        async def from_database() -> None:
            while (said := await far_reader.read(65_536)) and not is_losing:
                writer.write(said)
                await writer.drain()
            self.lost += is_losing

        passing = [asyncio.create_task(to_database()), asyncio.create_task(from_database())]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in passing:
                each.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
            writer.transport.abort()
            far_writer.transport.abort()
