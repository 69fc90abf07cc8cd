"""Processes that begin where the server's imports are done.

Those take four seconds, and most of the hundreds of processes that the tests start need nothing
else of a beginning of their own: they are forked from one that imported once. `test_commands.py`
starts the program as its users do.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["schema.cli"])


def base_environment() -> dict[str, str]:
    """What a process has of this one's environment."""
    return {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}


def _command(
    arguments: Sequence[str], environment: dict[str, str], out: Connection, err: Connection
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    out.close()
    err.close()
    from schema.cli import main

    raise SystemExit(main(list(arguments)))


class ForkedCommand:
    """A command of the server with both its outputs, as asyncio's own processes have them."""

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    def __init__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        self._arguments = arguments
        self._environment = environment

    async def start(self) -> ForkedCommand:
        """Fork it; it runs when this returns."""
        out, its_out = os.pipe()
        err, its_err = os.pipe()
        connections = Connection(its_out, readable=False), Connection(its_err, readable=False)
        self._process = _CONTEXT.Process(
            target=_command, args=(self._arguments, self._environment, *connections)
        )
        await asyncio.to_thread(self._process.start)
        for each in connections:
            each.close()
        self.stdout = await _reader(out)
        self.stderr = await _reader(err)
        return self

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; of one that a signal ended, the signal's number, negative."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for its end; the exit status."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        # Its own descriptor, since several may wait.
        watched = os.dup(self._process.sentinel)
        loop.add_reader(watched, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(watched)
            os.close(watched)
        status = self.returncode
        assert status is not None
        return status


async def _reader(descriptor: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader
