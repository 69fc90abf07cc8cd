"""W6 and W9 at the smallest scale: what they compare is equal, and what is not is noticed. Nothing
is timed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from websockets.asyncio.server import ServerConnection, serve

from bench import fan_out, figures, first_token, measure
from bench.fan_out import Size
from bench.report import table
from bench.servers import peer_packages
from bench.subscribers import Heard, listening
from bench.workloads import request
from tests.bench.results import result

# RunStarted, two phases of two events, 13 pieces of reasoning, RunFinished.
BESIDE_TEXT = 19
NEXT, END = '{"type":"next","id":"1","payload":1}', '{"type":"complete","id":"1"}'
OTHER = '{"type":"next","id":"1","payload":2}'

Script = Callable[[int], list[str]]


async def test_all_subscribers_of_both_servers_hear_the_same_events(dsn: str) -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs Node and npm")
    await peer_packages()
    character = await fan_out.create_character(dsn)
    size = Size(subscribers=7, fast=30, paced=10, rate=500)
    measured = await fan_out.measure_size(dsn, character, size, 2, lambda _: None)
    assert measured["events"] == 30 + BESIDE_TEXT
    assert measured["paced_events"] == 10 + BESIDE_TEXT
    assert list(measured["servers"]) == ["mirrorgraph", "graphql_ws"]
    assert len(measured["vs_graphql_ws_rounds"]) == 2
    # Times without microseconds are shorter, but few are.
    ours, theirs = [each["message_bytes"] for each in measured["servers"].values()]
    assert ours == pytest.approx(theirs, abs=1)
    printed = table(result(W6={"7": measured}))
    assert (
        "W6, 7 subscribers: 49 events as fast as can be, then 29 of them, 500 a second" in printed
    )


async def test_first_tokens_are_had_from_the_server_and_from_the_provider_itself(dsn: str) -> None:
    measured = await first_token.measure(dsn, 1, lambda _: None, runs=2)
    assert measured["runs"] == 2
    assert {name: list(each) for name, each in measured["servers"].items()} == {
        "mirrorgraph": [
            "added_milliseconds",
            "before_milliseconds",
            "after_milliseconds",
            "taken_up_milliseconds",
        ],
        "aiohttp": ["added_milliseconds", "before_milliseconds", "after_milliseconds"],
    }
    printed = table(result(W9=measured))
    assert "W9, 2 first tokens of a provider that takes 50 ms" in printed


def events(*texts: str, run: str = "run_1", node: str = "node_1") -> list[dict[str, Any]]:
    """The events of a run that says these pieces."""
    all_: list[dict[str, Any]] = [{"__typename": "RunStarted", "run": {"id": run}}]
    all_ += [{"__typename": "TextDelta", "text": each, "targetId": node} for each in texts]
    all_.append({"__typename": "RunFinished", "status": "SUCCEEDED", "node": {"id": node}})
    return [{**each, "seq": seq, "at": f"at {run} {seq}"} for seq, each in enumerate(all_, 1)]


def heard(all_: list[dict[str, Any]]) -> Heard:
    messages = [orjson.dumps({"payload": {"data": {"runEvents": each}}}).decode() for each in all_]
    return Heard(3, messages, [0] * len(messages), [0] * len(messages), 0.0)


def test_runs_are_equal_that_differ_in_times_and_their_own_ids_alone() -> None:
    recorded = events("The", " lamp")
    fan_out.check_equal(heard(events("The", " lamp", run="run_2", node="node_2")), recorded, "it")
    assert heard(recorded).deliveries == 12


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (events("The"), "it delivers 3 events instead of 4"),
        (events("The", " lamp", "s"), "it delivers 5 events instead of 4"),
        (events("The", " ship"), "it delivers .* ship.* where .* lamp.* was expected"),
        (events("The", " lamp")[:-1], r"numbered \[1, 2, 3\]"),
        (events("The", " lamp")[1:], r"numbered \[2, 3, 4\]"),
        ([*events("The", " lamp")[:2], *events("The", " lamp")[1:]], r"numbered \[1, 2, 2, 3, 4\]"),
        (
            [events("The", " lamp")[place] for place in (0, 2, 1, 3)],
            r"numbered \[1, 3, 2, 4\]",
        ),
    ],
    ids=["fewer", "more", "another text", "no end", "no beginning", "one twice", "out of order"],
)
def test_a_run_that_differs_is_not_measured(other: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        fan_out.check_equal(heard(other), events("The", " lamp"), "it")


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[str]:
    """A server of the protocol that says to each client in turn what the script has for it."""
    count = 0
    all_here = asyncio.Event()

    async def serve_one(socket: ServerConnection) -> None:
        nonlocal count
        number, count = count, count + 1
        assert orjson.loads(await socket.recv()) == {"type": "connection_init"}
        await socket.send('{"type":"connection_ack"}')
        subscribe = orjson.loads(await socket.recv())
        assert subscribe == {"type": "subscribe", "id": "1", "payload": {"query": "q" * 300}}
        await socket.send(NEXT)
        if count == 3:
            all_here.set()
        await all_here.wait()
        await (await socket.ping())
        for message in script(number):
            await socket.send(message)
        await socket.close()

    protocols: Any = ["graphql-transport-ws"]
    async with serve(serve_one, "127.0.0.1", 0, subprotocols=protocols) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"http://127.0.0.1:{port}/graphql"


async def hear(script: Script) -> Heard:
    async with (
        serving(script) as url,
        listening(url, {"query": "q" * 300}, 3) as subscribers,
    ):
        return await subscribers.heard()


async def test_what_is_heard_begins_behind_the_opening_and_ends_before_the_end() -> None:
    large = NEXT.replace("1}", f'"{"x" * 70_000}"}}')
    all_ = await hear(lambda _: [OTHER, large, NEXT, END])
    assert all_.messages == [OTHER, large, NEXT]
    assert all_.deliveries == 9
    assert all(first <= last for first, last in zip(all_.first_at, all_.last_at, strict=True))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (lambda number: [NEXT, OTHER if number == 2 else NEXT, END], "where another heard"),
        (lambda number: [NEXT, END] if number == 1 else [NEXT, NEXT, END], "where another heard"),
        (lambda number: [NEXT, NEXT][number == 1 :], "was cut off after"),
        (lambda _: ['{"type":"error","id":"1","payload":[]}'], 'heard .*"error"'),
        (lambda _: [NEXT, END, NEXT], "heard .* behind the end"),
    ],
    ids=["another event", "fewer events", "no end", "an error", "an event behind the end"],
)
async def test_subscribers_who_hear_something_else_are_not_measured(
    script: Script, said: str
) -> None:
    with pytest.raises(RuntimeError, match=f"a subscriber .*{said}"):
        await hear(script)


async def test_a_server_that_is_not_there_is_not_measured() -> None:
    with pytest.raises(RuntimeError, match="a subscriber"):
        async with listening("http://127.0.0.1:1/graphql", request("{ a }"), 2):
            pass


@pytest.mark.parametrize(
    ("values", "expected"), [([3.0], 3.0), (list(range(100)), 99), (list(range(200, 0, -1)), 199)]
)
def test_99_of_100_values_are_not_above_the_p99(values: list[float], expected: float) -> None:
    assert figures.p99(values) == expected
    assert sum(each <= expected for each in values) >= 0.99 * len(values)


def test_rounds_are_summed_up_by_median_least_and_most() -> None:
    assert figures.spread([3.0, 1.0, 2.0004]) == {"median": 2.0, "least": 1.0, "most": 3.0}
    assert figures.spread([]) is None
    assert figures.ratios("vs_it", [1.0, 4.0], [2.0, 2.0]) == {
        "vs_it": 1.25,
        "vs_it_rounds": [0.5, 2.0],
    }


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("1970-01-01T00:00:00+00:00", 0),
        ("1970-01-02T00:00:01.000002+00:00", 86_401_000_002_000),
        ("2026-11-30T14:19:57.123456+00:00", 1_796_048_397_123_456_000),
        ("2026-11-30T15:19:57.123456+01:00", 1_796_048_397_123_456_000),
    ],
)
def test_times_of_the_api_are_exact_to_the_microsecond(at: str, expected: int) -> None:
    assert figures.nanoseconds(at) == expected


SAVED = sorted(measure.FOLDER.joinpath("results").glob("*.json"))


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_every_saved_result_can_be_read(path: Any) -> None:
    saved = orjson.loads(path.read_bytes())
    printed = table(saved)
    assert set(saved["workloads"]) <= set(measure.NAMES)
    assert all(name in printed for name in saved["workloads"])
