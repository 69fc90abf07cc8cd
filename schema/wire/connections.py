"""Connections that carry streams: how many are open, and how they end with the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from schema.wire.errors import Refused
from schema.wire.metrics import Metrics


class Connections:
    """Counts open connections and refuses more than the server can carry."""

    def __init__(self, most: int, metrics: Metrics, check_open: Callable[[], None]) -> None:
        self._most = most
        self._check_open = check_open
        self._metrics = metrics
        self._open = 0

    @contextmanager
    def open(self, transport: str) -> Iterator[None]:
        """Hold a place while the block runs. Raises Refused with 503."""
        self._check_open()
        if self._open >= self._most:
            raise Refused(
                503,
                "CONNECTION_LIMIT",
                f"The server carries {self._most:,} streams already: try again later.",
                headers={"retry-after": "5"},
            )
        gauge = self._metrics.connections.labels(transport)
        self._open += 1
        gauge.inc()
        try:
            yield
        finally:
            self._open -= 1
            gauge.dec()
