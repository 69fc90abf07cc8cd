"""Somebody who goes on writing to a branch, in a process of their own: how long they have to wait
for the branch and for one of its rows, again and again, until they are stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import orjson

from db.settings import PROJECT_ROOT

# As `services/access.py: hold_row` holds a branch.
_HOLD = "SELECT id FROM branches WHERE id = $1 FOR NO KEY UPDATE"
_WRITE = """
UPDATE entities SET priority = priority WHERE branch_id = $1 AND id =
    (SELECT id FROM entities WHERE branch_id = $1 ORDER BY id LIMIT 1)
"""


@contextlib.asynccontextmanager
async def writing_meanwhile(dsn: str, branch_id: str) -> AsyncIterator[list[float]]:
    """Somebody writes while the block runs; behind it the list has the milliseconds that each of
    their writes waited.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.writer", dsn, branch_id,
        cwd=PROJECT_ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    waits: list[float] = []
    try:
        # Said after the first write.
        if not await process.stdout.readline():
            raise RuntimeError("the writer broke off")
        yield waits
        process.stdin.close()
        waits += orjson.loads(await process.stdout.readline())
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _write(dsn: str, branch_id: str, stopped: threading.Event) -> list[float]:
    connection: Any = await asyncpg.connect(dsn)
    waits = []
    try:
        while not stopped.is_set():
            async with connection.transaction():
                began = time.perf_counter()
                await connection.execute(_HOLD, branch_id)
                await connection.execute(_WRITE, branch_id)
                waits.append((time.perf_counter() - began) * 1e3)
            if len(waits) == 1:
                print("writing", flush=True)
    finally:
        await connection.close()
    # The first one prepares the statements.
    return waits[1:]


def main() -> None:
    """`python -m bench.writer DSN BRANCH`: writes until its standard input is closed."""
    parser = argparse.ArgumentParser(prog="bench.writer")
    parser.add_argument("dsn")
    parser.add_argument("branch")
    given = parser.parse_args()
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    waits = asyncio.run(_write(given.dsn, given.branch, stopped))
    print(orjson.dumps([round(each, 3) for each in waits]).decode(), flush=True)


if __name__ == "__main__":
    main()
