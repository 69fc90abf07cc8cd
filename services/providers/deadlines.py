"""Ends an answer that does not start in time or falls silent; what it says is left to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from services.providers.base import Part, ProviderError


async def with_deadlines(
    parts: AsyncGenerator[Part, None], *, first: float, silence: float
) -> AsyncGenerator[Part, None]:
    """The same parts, each waited for `silence` seconds at most, the first one `first` seconds.

    Closes `parts` on every way out. Raises ProviderError TIMED_OUT.
    """
    allowed = first
    trouble = f"The provider sent nothing within {first:g} seconds."
    try:
        while True:
            try:
                async with asyncio.timeout(allowed):
                    part = await anext(parts)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise ProviderError(
                    "TIMED_OUT",
                    f"{trouble} Try again, choose a faster model, or allow more time.",
                    retryable=True,
                ) from None
            yield part
            allowed = silence
            trouble = f"The provider fell silent for {silence:g} seconds."
    finally:
        await parts.aclose()
