"""Gathers what one level of an operation asks for, so that a batch function is called once.

The only module that knows dataloaders. A batcher lives for one operation or one subscription event,
and not past a commit: what it has loaded would be stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from opentelemetry import trace
from opentelemetry.trace import StatusCode
from strawberry.dataloader import DataLoader

# async def <children>_of_<parents>(context, parents, **arguments) -> one result for each parent
BatchFunction = Callable[..., Awaitable[Sequence[Any]]]

Answer = TypeVar("Answer")

tracer = trace.get_tracer("mirrorgraph")


class _Same:
    """Equal to itself only. Keeps the object alive, so that its address is not used again."""

    __slots__ = ("_thing",)

    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __hash__(self) -> int:
        return id(self._thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._thing is other._thing


def _cache_key(parent: Any) -> Hashable:
    if isinstance(parent, str):
        return parent
    identity = getattr(parent, "id", None)
    if identity is None:
        return _Same(parent)
    # The same row at another moment is another parent.
    return (type(parent).__name__, identity, getattr(parent, "moment", None))


def _argument_key(value: Any) -> Hashable:
    """An argument's value, or what it looks like where it is a list or an object."""
    return value if isinstance(value, Hashable) else repr(value)


async def _asked(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """What a loader answers, asked again when somebody else's end took the answer away.

    Fields that want the same thing wait for the same future. When one of them is cancelled, because
    a sibling has failed, so is the future; those that go on must not end with it.
    """
    while True:
        try:
            return await ask()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise


class Batcher:
    """The loaders of one operation: one for each batch function and set of arguments."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._loaders: dict[Hashable, DataLoader[Any, Any]] = {}

    async def load(
        self, batch: BatchFunction, parent: Any, arguments: Mapping[str, Any] | None = None
    ) -> Any:
        """The result of a batch function for one parent, asked for together with its siblings."""
        loader = self._loader(batch, arguments or {})
        return await _asked(lambda: loader.load(parent))

    async def load_many(
        self, batch: BatchFunction, parents: Sequence[Any], arguments: Mapping[str, Any]
    ) -> list[Any]:
        """The results for several parents."""
        loader, wanted = self._loader(batch, arguments), list(parents)
        return await _asked(lambda: loader.load_many(wanted))

    def _loader(self, batch: BatchFunction, arguments: Mapping[str, Any]) -> DataLoader[Any, Any]:
        key = (batch, tuple((each, _argument_key(arguments[each])) for each in sorted(arguments)))
        loader = self._loaders.get(key)
        if loader is None:

            async def load(parents: list[Any]) -> Sequence[Any]:
                # Without the exception's text, which may quote what is private.
                with tracer.start_as_current_span(
                    batch.__name__, record_exception=False, set_status_on_exception=False
                ) as span:
                    span.set_attribute("mirrorgraph.parents", len(parents))
                    try:
                        return await batch(self._context, parents, **arguments)
                    except Exception:
                        span.set_status(StatusCode.ERROR)
                        raise

            loader = self._loaders[key] = DataLoader(load_fn=load, cache_key_fn=_cache_key)
        return loader
