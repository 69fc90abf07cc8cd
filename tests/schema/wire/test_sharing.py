"""One event for many who ask alike is executed once, and never for those who do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from graphql import ExecutionResult, GraphQLError

from schema.wire import sharing
from schema.wire.sharing import SHARED_EVENTS, SharedEvents


class Event:
    """Something that happened, handed to several streams."""


class Executions:
    """Counts how often something is executed; each result is another one."""

    def __init__(self, errors: list[GraphQLError] | None = None) -> None:
        self.count = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._errors = errors

    async def __call__(self) -> ExecutionResult:
        self.count += 1
        number = self.count
        await self.gate.wait()
        return ExecutionResult({"number": number}, self._errors)


async def test_those_who_ask_alike_share_a_result() -> None:
    shared, execute, event = SharedEvents(), Executions(), Event()
    first = await shared.result("Ada", event, execute)
    assert shared.ready("Ada", event) is first
    assert await shared.result("Ada", event, execute) is first
    assert execute.count == 1


async def test_those_who_come_meanwhile_wait_for_the_first() -> None:
    shared, execute, event = SharedEvents(), Executions(), Event()
    execute.gate.clear()
    asking = [asyncio.create_task(shared.result("Ada", event, execute)) for _ in range(3)]
    await asyncio.sleep(0)
    assert shared.ready("Ada", event) is None
    execute.gate.set()
    results = await asyncio.gather(*asking)
    assert execute.count == 1
    assert all(each is results[0] for each in results)


DIFFERENT: dict[str, Callable[[], tuple[tuple[object, object], tuple[object, object]]]] = {
    "another who asks": lambda: (("Ada", event := Event()), ("Eve", event)),
    "another event": lambda: (("Ada", Event()), ("Ada", Event())),
    "equal numbers": lambda: (("Ada", 5), ("Ada", 5)),
    "equal texts": lambda: (("Ada", "x"), ("Ada", "x")),
}


@pytest.mark.parametrize("name", DIFFERENT)
async def test_others_share_nothing(name: str) -> None:
    shared, execute = SharedEvents(), Executions()
    one, other = DIFFERENT[name]()
    await shared.result(*one, execute)
    assert shared.ready(*other) is None
    await shared.result(*other, execute)
    assert execute.count == 2


async def test_a_result_with_errors_is_its_requests_own() -> None:
    shared, execute, event = SharedEvents(), Executions([GraphQLError("No.")]), Event()
    for _ in range(3):
        await shared.result("Ada", event, execute)
    assert shared.ready("Ada", event) is None
    assert execute.count == 3


async def test_who_leaves_takes_nobody_along() -> None:
    shared, execute, event = SharedEvents(), Executions(), Event()
    execute.gate.clear()
    first, *others = [asyncio.create_task(shared.result("Ada", event, execute)) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    execute.gate.set()
    results = await asyncio.gather(*others)
    assert first.cancelled()
    assert [each.data for each in results] == [{"number": 2}, {"number": 3}]


async def test_one_of_those_who_wait_leaves() -> None:
    shared, execute, event = SharedEvents(), Executions(), Event()
    execute.gate.clear()
    first, second, third = [
        asyncio.create_task(shared.result("Ada", event, execute)) for _ in range(3)
    ]
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    execute.gate.set()
    assert await first is await third
    assert execute.count == 1


async def test_what_is_old_is_executed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SHARED_SECONDS", 0.0)
    shared, execute, event = SharedEvents(), Executions(), Event()
    for _ in range(2):
        await shared.result("Ada", event, execute)
        assert shared.ready("Ada", event) is None
    assert execute.count == 2


async def test_what_was_found_before_a_change_is_found_anew() -> None:
    shared, execute, event = SharedEvents(), Executions(), Event()
    execute.gate.clear()
    early = asyncio.create_task(shared.result("Ada", event, execute))
    await asyncio.sleep(0)
    shared.forget()
    late = asyncio.create_task(shared.result("Ada", event, execute))
    await asyncio.sleep(0)
    execute.gate.set()
    assert await early is not await late
    assert shared.ready("Ada", event) is await late
    shared.forget()
    assert shared.ready("Ada", event) is None


async def test_so_many_are_kept_and_no_more() -> None:
    shared, execute = SharedEvents(), Executions()
    events = [Event() for _ in range(SHARED_EVENTS + 1)]
    for event in events:
        await shared.result("Ada", event, execute)
    assert [shared.ready("Ada", event) is None for event in events] == [True] + [
        False
    ] * SHARED_EVENTS
