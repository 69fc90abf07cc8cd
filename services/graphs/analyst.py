"""Has figures of whole graphs computed in a process of its own, one at a time and within bounds.

The process is started for one question, which takes less than a tenth of a second, and killed when
its time is up or when nobody waits for its answer any more: a thread could not be stopped, and
would keep the event loop waiting for the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import orjson

from services.errors import LimitReached
from services.graphs import analysis

# What an operation may take altogether is more (settings: operation_timeout).
SECONDS = 20.0

# Isolated, and not by the module's name: so nothing but the module itself is imported.
_COMMAND = (sys.executable, "-I", analysis.__file__)


class Analyst:
    """One for a process of the server: whoever asks while it computes waits for its turn."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._turn = asyncio.Semaphore()

    async def communities(
        self, graphs: Sequence[analysis.Graph], most_iterations: int
    ) -> list[analysis.Partition]:
        """`analysis.find_communities` of each graph. Raises LimitReached (TOO_LARGE)."""
        found = await self._ask(
            wanted="communities", graphs=graphs, most_iterations=most_iterations
        )
        return [analysis.Partition(**each) for each in found]

    async def degrees(self, graphs: Sequence[analysis.Graph]) -> list[list[float]]:
        """`analysis.degrees_of` each graph: whole numbers. Raises LimitReached (TOO_LARGE)."""
        return await self._ask(wanted="degrees", graphs=graphs)

    async def betweenness(self, graphs: Sequence[analysis.Graph]) -> list[list[float]]:
        """`analysis.betweenness_of` each graph. Raises LimitReached (TOO_LARGE)."""
        return await self._ask(wanted="betweenness", graphs=graphs)

    async def _ask(self, **question: Any) -> list[Any]:
        written = orjson.dumps(question)
        async with self._turn:
            # A session of its own: what interrupts the server at a terminal is not for it.
            process = await asyncio.create_subprocess_exec(
                *_COMMAND,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(self._seconds):
                    answer, _ = await process.communicate(written)
            except TimeoutError:
                raise LimitReached(
                    "This takes too long: ask for fewer kinds of edges or nodes.", "TOO_LARGE"
                ) from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode != 0:
            raise RuntimeError(f"The analysis of a graph ended with {process.returncode}.")
        found: list[Any] = orjson.loads(answer)
        return found
