"""Work that ends early when the client leaves, its sign-in ends, or the like."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class EndedEarly(Exception):
    """One of the reasons to stop came before the work was done; it has been cancelled."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def race(work: Coroutine[Any, Any, T], **reasons: Coroutine[Any, Any, Any]) -> T:
    """The result of `work`, unless one of `reasons` returns first: then raises EndedEarly with
    its name. An exception of a reason is raised as it is.

    Whatever is left is cancelled and has ended when this returns. Plain tasks are used on purpose:
    a cancelled task may still await in its `finally`, in anyio's scopes it may not.
    """
    task = asyncio.create_task(work)
    watchers = {asyncio.create_task(each): name for name, each in reasons.items()}
    try:
        await asyncio.wait({task, *watchers}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        for watcher, name in watchers.items():
            if watcher.done():
                watcher.result()
                raise EndedEarly(name)
        raise AssertionError("nothing has ended")
    finally:
        everything = [task, *watchers]
        for each in everything:
            each.cancel()  # does nothing to those that are done
        await _ended(everything)


async def _ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Wait until tasks that were cancelled have ended, even while being cancelled oneself."""
    cancelled = None
    while any(not each.done() for each in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    for each in tasks:
        if not each.cancelled():
            each.exception()  # taken note of: what a loser of the race says is of no use
    if cancelled is not None:
        raise cancelled
