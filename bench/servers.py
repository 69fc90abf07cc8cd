"""The servers that are compared, each a process on the same database.

A peer is one more line in `CONTENDERS`: a name and the command that serves a database and prints
"ready at http://…" on standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import orjson

from db.settings import PROJECT_ROOT

_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Contender:
    """How a server is started on a database."""

    name: str
    command: Callable[[str], list[str]]
    environment: Callable[[str], dict[str, str]]


MIRRORGRAPH = Contender(
    "mirrorgraph",
    lambda dsn: [sys.executable, "-m", "schema.cli", "serve"],
    lambda dsn: {
        "DATABASE_URL": dsn,
        "MIRRORGRAPH_AUTH": "local",
        "MIRRORGRAPH_PORT": "0",
        "MIRRORGRAPH_DEMO_CONTENT": "false",
        # Renewing leases is no part of any workload.
        "MIRRORGRAPH_LEASE_SECONDS": "3600",
    },
)
HAND_WRITTEN = Contender(
    "hand_written",
    lambda dsn: [sys.executable, "-m", "bench.hand_written", dsn],
    lambda dsn: {},
)
# The first is measured against each of the others.
CONTENDERS = (MIRRORGRAPH, HAND_WRITTEN)


class Served:
    """A running server."""

    def __init__(self, contender: Contender, process: asyncio.subprocess.Process, url: str) -> None:
        self.name = contender.name
        self.url = url
        self._process = process

    async def answer(self, body: bytes) -> object:
        """The answer to one request, read as JSON."""
        headers = {"content-type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.url, data=body, headers=headers) as response,
        ):
            answer: object = orjson.loads(await response.read())
            return answer

    def peak_memory(self) -> float | None:
        """The most memory that the process has had, in MiB; None where the system does not say."""
        status = Path(f"/proc/{self._process.pid}/status")
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
        return round(int(found[1]) / 1024, 1) if found else None

    def processor_seconds(self) -> float | None:
        """Time of the processor that the process has used; None where the system does not say."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        if not stat.exists():
            return None
        # The fields behind the name, which stands in brackets and may hold spaces.
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.asynccontextmanager
async def serving(contender: Contender, dsn: str) -> AsyncIterator[Served]:
    """Start a server, and stop it at the end of the block. Raises RuntimeError."""
    process = await asyncio.create_subprocess_exec(
        *contender.command(dsn),
        cwd=PROJECT_ROOT,
        env=contender.environment(dsn),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_START_SECONDS):
            address = await _address(process)
        yield Served(contender, process, f"{address}/graphql")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async for line in process.stdout:
        found = re.search(r"ready at (http://\S+)", line.decode())
        if found:
            return found[1]
    raise RuntimeError("a server ended before it was ready; start it by hand to see why")
