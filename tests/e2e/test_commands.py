"""The program as its users start it. Other tests fork it, see tests/forking.py."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp

from tests.conftest import ROOT
from tests.e2e.callers import PATIENCE
from tests.forking import base_environment


async def test_the_program_serves_until_it_is_told_to_stop(
    server_dsn: str, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "schema.cli",
        "serve",
        cwd=ROOT,
        env={
            **base_environment(),
            "MIRRORGRAPH_PORT": "0",
            "DATABASE_URL": server_dsn,
            "MIRRORGRAPH_DATA_DIR": str(tmp_path),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        address = line.split()[-1]
        async with session.post(
            f"{address}/graphql", json={"query": "{ viewer { user { name } } }"}
        ) as answer:
            assert await answer.json() == {"data": {"viewer": {"user": {"name": "local"}}}}
    finally:
        process.terminate()
        printed, complained = await process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert printed == b""
    assert b"Traceback" not in complained
