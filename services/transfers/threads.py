"""Where files are read and written: beside the event loop, a few at a time.

A file can take a second to read, and a hostile one is made to; only other files wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

# An operation that runs out of time leaves its thread busy, so the bound is on the threads.
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="files")


async def beside_the_loop(work: Callable[[], T]) -> T:
    """What `work` returns or raises; it waits until a thread is free."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
