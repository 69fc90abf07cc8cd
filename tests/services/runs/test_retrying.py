"""A provider that fails before its first word is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.enums import RunEventType
from services.providers import ErrorCode, Part, ProviderError, Request, TextPart
from services.runs import Asking, Event, Retries
from services.runs.retrying import FIRST_WAIT, LONGEST_PATIENCE, LONGEST_WAIT
from tests.services.runs.servers import (
    LONG_LEASE,
    PATIENCE,
    STOP,
    WORDS,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    text_of,
    types_of,
    until,
)

PASSING: list[ErrorCode] = ["RATE_LIMITED", "TIMED_OUT", "UNREACHABLE", "PROVIDER_ERROR"]
LASTING: list[ErrorCode] = [
    "MISSING_KEY",
    "INVALID_KEY",
    "REFUSED",
    "MODEL_NOT_FOUND",
    "CONTEXT_TOO_LONG",
    "MALFORMED_STREAM",
]
# Without a wait from one attempt to the next.
AT_ONCE = Asking(retries=Retries(2, draw=lambda: 0.0))


def trouble(
    code: ErrorCode = "UNREACHABLE", *, retryable: bool = True, retry_after: float | None = None
) -> ProviderError:
    return ProviderError(code, f"Of {code}.", retryable=retryable, retry_after=retry_after)


class Failing(ScriptedProvider):
    """Fails as often as there are errors, and then answers; says nothing before it fails."""

    def __init__(self, *errors: ProviderError) -> None:
        super().__init__()
        self.errors = list(errors)
        self.asked: list[Request] = []

    async def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        self.asked.append(request)
        if self.errors:
            raise self.errors.pop(0)
        async for part in super().stream(request):
            yield part


def warnings_of(events: list[Event]) -> list[tuple[str, str]]:
    return [
        (event.code, event.message) for event in events if event.type is RunEventType.RUN_WARNING
    ]


@pytest.mark.parametrize("code", PASSING)
async def test_what_may_pass_is_tried_again(bench: Bench, code: ErrorCode) -> None:
    """Rule R24. Whoever follows is told of each attempt that failed."""
    provider = Failing(trouble(code), trouble(code))
    async with a_server(bench.dsn, provider, asking=AT_ONCE) as server:
        run = await bench.ask()
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert (run.status, run.attempts) == ("succeeded", 3)
    assert provider.asked == provider.asked[:1] * 3
    assert warnings_of(events) == [
        (
            "PROVIDER_RETRY",
            f"Attempt {attempt} of 3 failed, the next one follows. {code}: Of {code}.",
        )
        for attempt in (1, 2)
    ]
    assert types_of(events)[3:6] == [
        RunEventType.PHASE_STARTED,
        RunEventType.RUN_WARNING,
        RunEventType.RUN_WARNING,
    ]
    assert text_of(events) == (await bench.node(run)).content == "Yes, always."
    assert numbers_of(events) == list(range(1, 12))


@pytest.mark.parametrize(
    ("error", "retries"),
    [
        *[(trouble(code), 2) for code in LASTING],
        *[(trouble(code, retryable=False), 2) for code in PASSING],
        (trouble(retry_after=LONGEST_PATIENCE + 1), 2),
        (trouble(), 0),
    ],
    ids=str,
)
async def test_what_will_not_pass_is_not_tried_again(
    bench: Bench, error: ProviderError, retries: int
) -> None:
    """Rule R24."""
    provider = Failing(error)
    asking = Asking(retries=Retries(retries, draw=lambda: 0.0))
    async with a_server(bench.dsn, provider, asking=asking) as server:
        run = await bench.ask()
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert (run.status, run.error_code, run.attempts) == ("failed", error.code, 1)
    assert (len(provider.asked), warnings_of(events)) == (1, [])


async def test_the_last_failure_is_the_runs(bench: Bench) -> None:
    """Rule R24."""
    provider = Failing(trouble("UNREACHABLE"), trouble("RATE_LIMITED"), trouble("PROVIDER_ERROR"))
    async with a_server(bench.dsn, provider, asking=AT_ONCE) as server:
        run = await bench.ask()
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert (run.status, run.error_code, run.attempts) == ("failed", "PROVIDER_ERROR", 3)
    assert (len(provider.asked), len(warnings_of(events))) == (3, 2)
    assert (await bench.node(run)).status == "partial"


@pytest.mark.parametrize("word", WORDS[:2], ids=["reasoning", "text"])
async def test_nothing_is_tried_again_once_a_word_was_said(bench: Bench, word: TextPart) -> None:
    """Rule R24. Also where it is not yet shown."""
    provider = ScriptedProvider(word, trouble())
    async with a_server(bench.dsn, provider, asking=AT_ONCE) as server:
        run = await bench.ask()
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert (run.status, run.error_code, run.attempts) == ("failed", "UNREACHABLE", 1)
    assert (len(provider.answers), warnings_of(events)) == (1, [])


async def test_a_wait_is_shown_while_it_lasts_and_ends_with_a_cancel(bench: Bench) -> None:
    """Rule R24."""
    asking = Asking(retries=Retries(2, draw=lambda: 0.0))
    provider = Failing(trouble("RATE_LIMITED", retry_after=LONGEST_PATIENCE))
    async with a_server(bench.dsn, provider, asking=asking, lease=LONG_LEASE) as server:
        run = await bench.ask()
        stream = server.follow(bench.viewer, run)
        async with asyncio.timeout(PATIENCE):
            events = [await anext(stream) for _ in range(5)]
            assert events[-1].type is RunEventType.RUN_WARNING
            await bench.cancel(run)
            events += [event async for event in stream]
        (run,) = await bench.ended(run)
    assert (events[-1].status, run.status, run.attempts) == ("cancelled", "cancelled", 1)
    assert (len(provider.asked), run.error) == (1, None)


async def test_a_wait_ends_with_the_server(bench: Bench) -> None:
    """Rule R24."""
    provider = Failing(trouble("RATE_LIMITED", retry_after=LONGEST_PATIENCE))
    async with a_server(bench.dsn, provider, asking=AT_ONCE) as server:
        run = await bench.ask()
        await until(lambda: provider.asked)
        async with asyncio.timeout(PATIENCE):
            await server.worker.drain()
    assert (await bench.run(run)).error_code == "SERVER_STOPPED"


async def test_a_stop_is_no_failure(bench: Bench) -> None:
    async with a_server(bench.dsn, ScriptedProvider(*WORDS, STOP), asking=AT_ONCE):
        (run,) = await bench.ended(await bench.ask())
    assert (run.status, run.attempts) == ("succeeded", 1)


# --- how long -------------------------------------------------------------------------------------


@given(st.integers(1, 50), st.floats(0, 1))
def test_waits_double_up_to_a_bound_and_any_shorter_one_is_as_likely(
    attempt: int, drawn: float
) -> None:
    """Rule R24."""
    wait = Retries(50, draw=lambda: drawn).wait_after(trouble(), attempt)
    assert wait == drawn * min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)


@given(st.integers(1, 3), st.floats(0, 1), st.floats(0, LONGEST_PATIENCE))
def test_what_a_provider_asks_for_is_waited_and_more(
    attempt: int, drawn: float, asked: float
) -> None:
    """Rule R24."""
    retries = Retries(3, draw=lambda: drawn)
    wait = retries.wait_after(trouble("RATE_LIMITED", retry_after=asked), attempt)
    assert wait is not None
    assert asked <= wait <= asked + LONGEST_WAIT


def test_chance_is_drawn_where_nothing_else_is_said() -> None:
    waits = {Retries().wait_after(trouble(), 1) for _ in range(20)}
    assert len(waits) > 1
    assert all(wait is not None and 0 <= wait < FIRST_WAIT for wait in waits)
    assert Retries().wait_after(trouble(), 3) is None
