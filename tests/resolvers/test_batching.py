"""Loaders whose askers are cancelled: alone, or all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from resolvers.batching import Batcher


class Batch:
    """A batch function that answers when it is let go."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.cancelled = asyncio.Event()
        self.is_called = asyncio.Event()
        self.go = asyncio.Event()

    def function(self) -> Any:
        async def lengths_of_words(context: Any, words: Sequence[str]) -> list[int]:
            self.calls.append(list(words))
            self.is_called.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return [len(each) for each in words]

        return lengths_of_words


async def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("is_alone", [True, False])
async def test_who_asks_for_the_same_is_not_cancelled_along(is_alone: bool) -> None:
    """A field fails and takes its sibling down, which shares an answer with a field elsewhere."""
    batch, batcher = Batch(), Batcher(None)
    function = batch.function()
    others = [] if is_alone else [asyncio.create_task(batcher.load(function, "three"))]
    going = asyncio.create_task(batcher.load(function, "one"))
    staying = asyncio.create_task(batcher.load(function, "one"))
    await batch.is_called.wait()
    await cancel(going)
    batch.go.set()
    async with asyncio.timeout(5):
        assert await staying == 3
        assert await asyncio.gather(*others) == [5] * len(others)
    assert batch.calls == [["one"], ["one"]] if is_alone else [["three", "one"], ["one"]]


async def test_who_asks_for_many_is_not_cancelled_along() -> None:
    batch, batcher = Batch(), Batcher(None)
    function = batch.function()
    going = asyncio.create_task(batcher.load_many(function, ["one", "three"], {}))
    staying = asyncio.create_task(batcher.load_many(function, ["three", "seven"], {}))
    await batch.is_called.wait()
    await cancel(going)
    batch.go.set()
    async with asyncio.timeout(5):
        assert await staying == [5, 5]


async def test_a_batch_that_nobody_waits_for_any_more_is_cancelled() -> None:
    """Rule T52."""
    batch, batcher = Batch(), Batcher(None)
    function = batch.function()
    asking = [asyncio.create_task(batcher.load(function, each)) for each in ("one", "one", "three")]
    await batch.is_called.wait()
    for task in asking[:2]:
        task.cancel()
    await asyncio.wait(asking[:2])
    assert not batch.cancelled.is_set()
    await cancel(asking[2])
    async with asyncio.timeout(5):
        await batch.cancelled.wait()
    assert batch.calls == [["one", "three"]]


async def test_arguments_that_are_lists_or_objects_keep_questions_apart() -> None:
    calls: list[tuple[list[str], Any]] = []

    async def scores_of_words(context: Any, words: Sequence[str], *, by: Any) -> list[int]:
        calls.append((list(words), by))
        return [len(each) for each in words]

    batcher = Batcher(None)
    asked = [
        batcher.load(scores_of_words, word, {"by": by})
        for word, by in (("a", [1]), ("bc", [1]), ("a", [2]), ("a", {"x": [1]}), ("a", [True]))
    ]
    assert await asyncio.gather(*asked) == [1, 2, 1, 1, 1]
    assert calls == [
        (["a", "bc"], [1]),
        (["a"], [2]),
        (["a"], {"x": [1]}),
        (["a"], [True]),
    ]
