"""The one connection that hears what other processes announce with NOTIFY.

It is not from the pools. A watchdog asks it for an answer every few seconds, because a connection
that died on the way says nothing by itself; when it is lost, `on_lost` is called once and a new
one is made. `on_heard` is called whenever listening begins: what was announced before is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import asyncpg

from db.reading import DATABASE_TROUBLE

WATCHDOG_SECONDS = 5.0
RETRY_SECONDS = 0.5


class Listener:
    """Listens on a channel until closed."""

    def __init__(
        self,
        dsn: str,
        channel: str,
        on_message: Callable[[str], None],
        on_lost: Callable[[], None],
        on_heard: Callable[[], None] = lambda: None,
    ) -> None:
        self._dsn = dsn
        self._channel = channel
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_heard = on_heard
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()

    async def start(self) -> None:
        """Begin; returns when the channel is heard."""
        self._task = asyncio.create_task(self._run(), name="listener")
        await self._connected.wait()

    async def close(self) -> None:
        """Stop listening."""
        self._connected.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    @property
    def is_connected(self) -> bool:
        """Whether announcements are heard now."""
        return self._connected.is_set()

    async def _run(self) -> None:
        try:
            while True:
                with contextlib.suppress(*DATABASE_TROUBLE):
                    await self._listen()
                self._lose()
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            # Whatever ends this, a mistake among it: nobody may believe that he is still heard.
            self._lose()

    def _lose(self) -> None:
        if self._connected.is_set():
            self._connected.clear()
            self._on_lost()

    async def _listen(self) -> None:
        # The limit on commands is for LISTEN too: the connection may go quiet before that.
        connection: Any = await asyncpg.connect(
            self._dsn, timeout=WATCHDOG_SECONDS, command_timeout=WATCHDOG_SECONDS
        )
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(
                self._channel, lambda _connection, _pid, _channel, topic: self._on_message(topic)
            )
            self._connected.set()
            self._on_heard()
            while not lost.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(lost.wait(), WATCHDOG_SECONDS)
                if not lost.is_set():
                    await connection.fetchval("SELECT 1")
        finally:
            connection.terminate()
