"""Connections that make sure that a cancelled statement ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import asyncpg
from asyncpg import connect_utils as _connect_utils

# How long a request to cancel may take until it is taken to be lost, in seconds.
_PATIENCE = 0.2


# What is used of it here is its own affair; requirements.lock holds the version.
_Connection: Any = asyncpg.Connection
connect_utils: Any = _connect_utils


class Connection(_Connection):  # type: ignore[misc]
    """Asks again until the statement has ended: PostgreSQL forgets a request to cancel that comes
    before it has begun the statement, which would then hold its locks and this connection to its
    end (tests/db/test_cancelling.py shows it).
    """

    __slots__ = ()

    async def _cancel(self, waiter: Any, cancel_waiter: Any = None) -> None:
        if cancel_waiter is None:
            await super()._cancel(waiter)
            return
        asking_again = asyncio.create_task(self._ask_until(cancel_waiter))
        try:
            await super()._cancel(asyncio.get_running_loop().create_future(), cancel_waiter)
        finally:
            if not cancel_waiter.done():  # the connection is gone
                asking_again.cancel()
            await asyncio.wait([asking_again])
            # Not before: a request on its way would meet the next statement.
            if not waiter.done():
                waiter.set_result(None)

    async def _ask_until(self, cancel_waiter: asyncio.Future[None]) -> None:
        while True:
            done, _ = await asyncio.wait([cancel_waiter], timeout=_PATIENCE)
            if done:
                return
            # A request that does not get through is as good as lost.
            with contextlib.suppress(OSError):
                await connect_utils._cancel(
                    loop=self._loop,
                    addr=self._addr,
                    params=self._params,
                    backend_pid=self._protocol.backend_pid,
                    backend_secret=self._protocol.backend_secret,
                )
