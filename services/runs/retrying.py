"""Asks a provider again that failed before it had said anything; whoever has seen a word of an
answer never sees another one begin in its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from services.providers import Part, Provider, ProviderError, Request

# Seconds: the longest wait before the second attempt doubles for each further one, up to this.
FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0
# A provider that asks for more patience than this is not asked again.
LONGEST_PATIENCE = 30.0
# What may be over in a moment. A stream that made no sense is not: the endpoint may be a wrong one.
_PASSING = {"RATE_LIMITED", "TIMED_OUT", "UNREACHABLE", "PROVIDER_ERROR"}


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a provider is asked again; `draw` gives numbers from 0 to 1."""

    count: int = 2
    draw: Callable[[], float] = random.random

    def wait_after(self, error: ProviderError, attempt: int) -> float | None:
        """Seconds to wait after an attempt (from 1) has failed; None when that was the last.

        Exponential back-off with full jitter, so that many runs that failed together do not come
        back together; what the provider itself asked for comes on top.
        """
        asked = error.retry_after or 0.0
        is_passing = error.retryable and error.code in _PASSING
        if attempt > self.count or not is_passing or asked > LONGEST_PATIENCE:
            return None
        return asked + self.draw() * min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)


async def parts_of_answer(
    provider: Provider,
    request: Request,
    retries: Retries,
    *,
    begin: Callable[[], None],
    warn: Callable[[str], Awaitable[None]],
) -> AsyncGenerator[Part, None]:
    """The parts of an answer. `begin` is called before each attempt, `warn` with what to say of
    one that failed and is followed by another. Raises ProviderError.
    """
    attempt = 0
    while True:
        attempt += 1
        begin()
        has_spoken = False
        try:
            async with contextlib.aclosing(provider.stream(request)) as parts:
                async for part in parts:
                    has_spoken = True
                    yield part
                return
        except ProviderError as error:
            wait = None if has_spoken else retries.wait_after(error, attempt)
            if wait is None:
                raise
            why = f"{error.code}: {error.message}"
        await warn(f"Attempt {attempt} of {retries.count + 1} failed, the next one follows. {why}")
        await asyncio.sleep(wait)
