"""One event that many subscribers have asked for alike is executed once.

A source that hands the same event, as one object, to several streams lets them share its result:
those of the same document and variables and for the same audience.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any

from graphql import ExecutionResult

# What was read for an event may have changed for who comes later than this.
SHARED_SECONDS = 1.0
# Events, each with a result, that are kept at most.
SHARED_EVENTS = 256


@dataclass(frozen=True, slots=True)
class _Kept:
    # Held, so that its id names nothing else meanwhile.
    event: Any
    since: float
    # None when there is nothing to share: it failed, or who executed it has left.
    result: asyncio.Future[ExecutionResult | None]


class SharedEvents:
    """Results of events, for as long as others may want the same."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Hashable, int], _Kept] = OrderedDict()

    def ready(self, key: Hashable, event: Any) -> ExecutionResult | None:
        """What an event was found to be for an equal `key`, or None."""
        kept = self._find(key, event)
        return kept.result.result() if kept is not None and kept.result.done() else None

    async def result(
        self, key: Hashable, event: Any, execute: Callable[[], Awaitable[ExecutionResult]]
    ) -> ExecutionResult:
        """The result of an event for all who come with an equal `key`, executed by the first.

        What has errors is never shared, as they name the request.
        """
        if type(event).__module__ == "builtins":
            return await execute()  # equal numbers and texts are one object and not one event
        kept = self._find(key, event)
        if kept is not None:
            # Shielded: the result is not only ours.
            result = await asyncio.shield(kept.result)
            return await execute() if result is None else result
        loop = asyncio.get_running_loop()
        place = (key, id(event))
        kept = self._kept[place] = _Kept(event, loop.time(), loop.create_future())
        self._kept.move_to_end(place)
        if len(self._kept) > SHARED_EVENTS:
            self._kept.popitem(last=False)
        shared = None
        try:
            result = await execute()
            shared = None if result.errors else result
        finally:
            kept.result.set_result(shared)
        return result

    def forget(self) -> None:
        """Something has changed: what comes from now on is executed anew."""
        self._kept.clear()

    def _find(self, key: Hashable, event: Any) -> _Kept | None:
        kept = self._kept.get((key, id(event)))
        is_fresh = kept and asyncio.get_running_loop().time() < kept.since + SHARED_SECONDS
        return kept if is_fresh else None
