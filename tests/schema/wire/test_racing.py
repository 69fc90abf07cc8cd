"""Work that ends early for one of several reasons, and what is left behind: nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from schema.wire.racing import EndedEarly, race

# What an event loop complains of: exceptions that nobody took, tasks destroyed while pending.
Complaints = list[dict[str, Any]]


@pytest.fixture(autouse=True)
async def complaints() -> AsyncIterator[Complaints]:
    """Every test ends without a task more than it began with, and without a complaint."""
    loop = asyncio.get_running_loop()
    heard: Complaints = []
    before, handler = asyncio.all_tasks(), loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: heard.append(context))
    yield heard
    gc.collect()
    loop.set_exception_handler(handler)
    assert asyncio.all_tasks() - before <= {asyncio.current_task()}
    assert heard == []


class Work:
    """Something that takes until it is let go or cancelled, and then cleans up."""

    def __init__(self, cleaning: float = 0.0) -> None:
        self.began = asyncio.Event()
        self.go = asyncio.Event()
        self.is_cleaning = asyncio.Event()
        self.may_end = asyncio.Event()
        self.ended = ""
        if not cleaning:
            self.may_end.set()

    async def __call__(self, result: Any = "done") -> Any:
        self.began.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended = "cut"
            self.is_cleaning.set()
            await self.may_end.wait()
            self.ended = "cancelled"
            raise
        self.ended = "finished"
        if isinstance(result, BaseException):
            raise result
        return result


async def at_once(result: Any = None) -> Any:
    """Ends in its first step."""
    if isinstance(result, BaseException):
        raise result
    return result


async def test_the_result_of_the_work_is_returned_and_the_reasons_are_cancelled() -> None:
    work, first, second = Work(), Work(), Work()
    racing = asyncio.create_task(race(work(), gone=first(), late=second()))
    await second.began.wait()
    work.go.set()
    assert await racing == "done"
    assert [each.ended for each in (work, first, second)] == ["finished", "cancelled", "cancelled"]


async def test_work_needs_no_reasons() -> None:
    assert await race(at_once(5)) == 5


async def test_the_reason_that_comes_first_is_named_and_all_else_is_cancelled() -> None:
    work, first, second = Work(), Work(), Work()
    racing = asyncio.create_task(race(work(), gone=first(), late=second()))
    await second.began.wait()
    second.go.set()
    with pytest.raises(EndedEarly) as early:
        await racing
    assert (early.value.reason, str(early.value)) == ("late", "late")
    assert [each.ended for each in (work, first, second)] == ["cancelled", "cancelled", "finished"]


BOTH_AT_ONCE: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "the work and a reason": (5, {"gone": None}, 5),
    "the work and a reason that fails": (5, {"gone": RuntimeError("unheard")}, 5),
    "the work and all reasons": (5, {"gone": None, "late": RuntimeError("unheard")}, 5),
    "the work, which fails, and a reason": (KeyError("work"), {"gone": None}, KeyError("work")),
    "the work and a reason, both of which fail": (
        KeyError("work"),
        {"gone": RuntimeError("unheard")},
        KeyError("work"),
    ),
}


@pytest.mark.parametrize("name", BOTH_AT_ONCE)
async def test_work_that_is_done_goes_before_reasons_to_stop_it(name: str) -> None:
    work, reasons, outcome = BOTH_AT_ONCE[name]
    racing = race(at_once(work), **{key: at_once(each) for key, each in reasons.items()})
    if isinstance(outcome, BaseException):
        with pytest.raises(type(outcome)) as raised:
            await racing
        assert raised.value.args == outcome.args
    else:
        assert await racing == outcome


async def test_of_reasons_that_come_at_once_the_first_given_is_told() -> None:
    work = Work()
    with pytest.raises(EndedEarly, match="gone"):
        await race(work(), gone=at_once(), late=at_once(RuntimeError("unheard")))
    assert work.ended == "cancelled"


async def test_an_exception_of_the_work_is_raised_as_it_is() -> None:
    work, reason = Work(), Work()
    racing = asyncio.create_task(race(work(KeyError("work")), gone=reason()))
    await reason.began.wait()
    work.go.set()
    with pytest.raises(KeyError, match="work"):
        await racing
    assert reason.ended == "cancelled"


async def test_an_exception_of_a_reason_is_raised_as_it_is_and_the_work_is_cancelled() -> None:
    work, reason = Work(), Work()
    racing = asyncio.create_task(race(work(), gone=reason(KeyError("reason"))))
    await reason.began.wait()
    reason.go.set()
    with pytest.raises(KeyError, match="reason"):
        await racing
    assert work.ended == "cancelled"


async def test_work_that_takes_its_time_to_clean_up_is_waited_for() -> None:
    work = Work(cleaning=1)
    racing = asyncio.create_task(race(work(), gone=at_once()))
    await work.is_cleaning.wait()
    done, _ = await asyncio.wait({racing}, timeout=0.02)
    assert not done
    work.may_end.set()
    with pytest.raises(EndedEarly, match="gone"):
        await racing
    assert work.ended == "cancelled"


async def test_being_cancelled_cancels_everything() -> None:
    work, reason = Work(), Work()
    racing = asyncio.create_task(race(work(), gone=reason()))
    await reason.began.wait()
    racing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert (work.ended, reason.ended) == ("cancelled", "cancelled")


@pytest.mark.parametrize("times", [1, 3])
async def test_being_cancelled_while_the_work_cleans_up_does_not_cut_that_short(times: int) -> None:
    work = Work(cleaning=1)
    racing = asyncio.create_task(race(work(), gone=at_once()))
    await work.is_cleaning.wait()
    for _ in range(times):
        racing.cancel()
        done, _ = await asyncio.wait({racing}, timeout=0.02)
        assert not done
    assert work.ended == "cut"
    work.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert work.ended == "cancelled"


async def test_work_that_fails_while_it_cleans_up_is_not_heard_of() -> None:
    async def failing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("clean-up")

    reason = Work()
    racing = asyncio.create_task(race(failing(), gone=reason()))
    await reason.began.wait()
    reason.go.set()
    with pytest.raises(EndedEarly, match="gone"):
        await racing


async def test_work_that_ends_well_in_spite_of_being_cancelled_comes_too_late() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done after all"

    reason = Work()
    racing = asyncio.create_task(race(stubborn(), gone=reason()))
    await reason.began.wait()
    reason.go.set()
    with pytest.raises(EndedEarly, match="gone"):
        await racing


async def test_races_nest() -> None:
    work, inner, outer = Work(), Work(), Work()
    racing = asyncio.create_task(race(race(work(), inner=inner()), outer=outer()))
    await inner.began.wait()
    outer.go.set()
    with pytest.raises(EndedEarly, match="outer"):
        await racing
    assert [each.ended for each in (work, inner, outer)] == ["cancelled", "cancelled", "finished"]


async def test_work_that_says_of_itself_that_it_is_cancelled_does_not_hang_the_race() -> None:
    """Whoever awaits the race is not cancelled by it: it may await on."""
    reason = Work()
    with pytest.raises(asyncio.CancelledError):
        await race(at_once(asyncio.CancelledError()), gone=reason())
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0
