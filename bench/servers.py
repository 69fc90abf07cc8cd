"""The servers that are compared, each a process.

A peer is a name and the command that serves a database and prints "ready at http://…" on standard
output; for W1 and W2 it is one more line in `CONTENDERS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from db.settings import PROJECT_ROOT

_START_SECONDS = 60.0
_IDLE_SECONDS = 0.3
_PEERS = Path(__file__).resolve().parent / "peers"
_INSTALL = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


@dataclass(frozen=True, slots=True)
class Contender:
    """How a server is started on a database."""

    name: str
    command: Callable[[str], list[str]]
    environment: Callable[[str], dict[str, str]]

    def set_to(self, **settings: str) -> Contender:
        """The same with more in its environment."""
        return replace(self, environment=lambda dsn: {**self.environment(dsn), **settings})


MIRRORGRAPH = Contender(
    "mirrorgraph",
    lambda dsn: [sys.executable, "-m", "schema.cli", "serve"],
    lambda dsn: {
        "DATABASE_URL": dsn,
        "MIRRORGRAPH_AUTH": "local",
        "MIRRORGRAPH_PORT": "0",
        "MIRRORGRAPH_DEMO_CONTENT": "false",
        # Renewing leases and pinging clients is no part of any workload.
        "MIRRORGRAPH_LEASE_SECONDS": "3600",
        "MIRRORGRAPH_HEARTBEAT": "3600",
        # Everything is asked for by one user.
        "MIRRORGRAPH_RUNS_PER_USER": "1000000",
        "MIRRORGRAPH_RUNS_PER_CHARACTER": "1000000",
        "MIRRORGRAPH_QUEUED_RUNS": "1000000",
    },
)
HAND_WRITTEN = Contender(
    "hand_written",
    lambda dsn: [sys.executable, "-m", "bench.hand_written", dsn],
    lambda dsn: {},
)
# Needs no database; `peer_packages` must have been awaited.
GRAPHQL_WS = Contender(
    "graphql_ws",
    lambda dsn: [
        shutil.which("node") or "node",
        str(_PEERS / "graphql-ws.mjs"),
        str(PROJECT_ROOT / "schema" / "schema.graphql"),
    ],
    lambda dsn: {"NODE_ENV": "production"},
)
# The first is measured against each of the others.
CONTENDERS = (MIRRORGRAPH, HAND_WRITTEN)


class Served:
    """A running server."""

    def __init__(self, contender: Contender, process: asyncio.subprocess.Process, url: str) -> None:
        self.name = contender.name
        self.url = url
        self._process = process

    async def answer(self, body: bytes, path: str = "/graphql") -> object:
        """The answer to one request, read as JSON."""
        headers = {"content-type": "application/json"}
        url = self.url.removesuffix("/graphql") + path
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=headers) as response,
        ):
            answer: object = orjson.loads(await response.read())
            return answer

    async def change(self, mutation: dict[str, Any]) -> dict[str, Any]:
        """The payload of a mutation, which must succeed. Raises RuntimeError."""
        answer: Any = await self.answer(orjson.dumps(mutation))
        if "errors" not in answer:
            [payload] = answer["data"].values()
            if not payload["errors"]:
                changed: dict[str, Any] = payload
                return changed
        raise RuntimeError(f"{self.name} refused a mutation: {answer}")

    def peak_memory(self) -> float | None:
        """The most memory that the process has had, in MiB; None where the system does not say."""
        return self._memory("VmHWM")

    def memory(self) -> float | None:
        """The memory that the process has, in MiB; None where the system does not say."""
        return self._memory("VmRSS")

    async def settle(self) -> None:
        """Return when the process has been idle for a moment; at once where the system does not
        say.
        """
        before = None
        while (now := self.processor_seconds()) != before:
            before = now
            await asyncio.sleep(_IDLE_SECONDS)

    def _memory(self, kind: str) -> float | None:
        status = Path(f"/proc/{self._process.pid}/status")
        text = status.read_text() if status.exists() else ""
        found = re.search(rf"{kind}:\s+(\d+) kB", text)
        return round(int(found[1]) / 1024, 1) if found else None

    def processor_seconds(self) -> float | None:
        """Time of the processor that the process has used; None where the system does not say."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        if not stat.exists():
            return None
        # The fields behind the name, which stands in brackets and may hold spaces.
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def peer_packages() -> None:
    """Install the packages of the peers that run on Node, unless they are. Raises RuntimeError."""
    lock = _PEERS / "package-lock.json"
    installed = _PEERS / "node_modules" / ".package-lock.json"
    if installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return
    if shutil.which(_INSTALL[0]) is None or shutil.which("node") is None:
        raise RuntimeError("W6 is measured against a server on Node, which is missing: install it")
    process = await asyncio.create_subprocess_exec(*_INSTALL, cwd=_PEERS)
    if await process.wait():
        raise RuntimeError("the packages of the peers cannot be installed")


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
