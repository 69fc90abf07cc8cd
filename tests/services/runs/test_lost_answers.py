"""Transactions that are committed although nobody is told so, because the connection breaks off."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from services.providers import TextPart
from tests.services.runs.servers import (
    STOP,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    text_of,
    until,
)


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


@pytest.mark.parametrize("count", [1, 3])
async def test_a_commit_that_is_not_heard_of_stores_and_shows_its_events_once(
    bench: Bench, count: int
) -> None:
    """Rule R6."""
    async with (
        Between(bench.dsn).open() as between,
        a_server(between.dsn, ScriptedProvider(is_held=True)) as server,
    ):
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        following = asyncio.create_task(server.events(bench.viewer, run))
        await until(lambda: log.last_seq == 4 and not log.unstored())
        between.to_lose = count
        for word in ("one ", "two ", "three"):
            answer.script.put_nowait(TextPart("text", word))
        await until(lambda: between.lost == count and log.last_seq == 7 and not log.unstored())
        answer.script.put_nowait(STOP)
        events = await following
        (run,) = await bench.ended(run)
    assert run.status == "succeeded"
    assert numbers_of(events) == list(range(1, 10))
    assert [seq for seq, _ in await bench.stored(run)] == numbers_of(events)
    assert text_of(events) == (await bench.node(run)).content == "one two three"


async def test_an_end_whose_commit_is_not_heard_of_stays_as_it_is(bench: Bench) -> None:
    """Rules R6, R8."""
    async with (
        Between(bench.dsn).open() as between,
        a_server(between.dsn, ScriptedProvider(is_held=True)) as server,
    ):
        run = await bench.ask()
        answer = await server.provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        answer.script.put_nowait(TextPart("text", "whole"))
        await until(lambda: log.last_seq == 5 and not log.unstored())
        following = asyncio.create_task(server.events(bench.viewer, run))
        # Whichever transaction is the first from here on, it is one of the end.
        between.to_lose = 2
        answer.script.put_nowait(STOP)
        events = await following
        (run,) = await bench.ended(run)
        between.to_lose = 0
    assert between.lost >= 1
    assert (run.status, run.last_seq) == ("succeeded", 7)
    assert numbers_of(events) == list(range(1, 8))
    assert [seq for seq, _ in await bench.stored(run)] == numbers_of(events)
    node = await bench.node(run)
    assert (node.status, node.content) == ("solidified", "whole")
