"""W9: what the server adds to a provider's first token, against a bare client of that provider.

From the question until a subscriber has the first piece of text, less what the provider itself
took between having the request and sending the token; question and subscription over one WebSocket.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from bench import generator
from bench.figures import nanoseconds, p99, spread
from bench.servers import MIRRORGRAPH, Contender, Served, serving
from bench.workloads import RUN_EVENTS, TREE_ASK, TREE_CREATE, request
from db.engine import open_database

Say = Callable[[str], None]
Json = dict[str, Any]

DELAY_SECONDS = 0.05
RUNS_PER_ROUND = 20
_WARM_UP = 5
_MODEL = "scripted"
_QUESTION = "Who keeps the lamp when you sleep?"

PROVIDER = Contender(
    "provider",
    lambda dsn: [sys.executable, "-m", "bench.provider", str(DELAY_SECONDS)],
    lambda dsn: {},
)


@dataclass(frozen=True, slots=True)
class FirstToken:
    """One first token; all in milliseconds, and without what the provider took.

    `before` is from the question to the provider's having the request, `after` from its sending the
    token to the subscriber's having it. `taken_up` is from the run's first event, which the bare
    client has not.
    """

    before: float
    after: float
    taken_up: float | None = None

    @property
    def added(self) -> float:
        """All that was not the provider's."""
        return self.before + self.after


class BareClient:
    """Asks the provider itself."""

    name = "aiohttp"

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = f"{url}/v1/chat/completions"

    async def first_token(self) -> FirstToken:
        """Ask, and read the answer to its end."""
        body = {
            "model": _MODEL,
            "stream": True,
            "messages": [{"role": "user", "content": _QUESTION}],
        }
        asked = time.time_ns()
        first: FirstToken | None = None
        async with self._session.post(self._url, json=body) as response:
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                delta = orjson.loads(line[6:])["choices"][0]["delta"]
                if first is None and delta.get("content"):
                    first = _first_token(delta["content"], asked, time.time_ns())
        assert first is not None
        return first


class Subscriber:
    """Asks our server over a WebSocket, each time in a new tree, and follows the run there."""

    name = MIRRORGRAPH.name

    def __init__(
        self, socket: aiohttp.ClientWebSocketResponse, server: Served, character: str
    ) -> None:
        self._socket = socket
        self._server = server
        self._character = character
        self._ids = itertools.count(1)

    async def first_token(self) -> FirstToken:
        """Ask, and follow the run to its end. Raises RuntimeError when it does not end well."""
        create = request(TREE_CREATE, character=self._character, topic="First token")
        tree = (await self._server.change(create))["tree"]["id"]
        asked = time.time_ns()
        answer = [each async for each in self._carry_out(TREE_ASK, tree=tree, text=_QUESTION)]
        run = answer[0]["treeAsk"]["run"]["id"]
        first: FirstToken | None = None
        taken_up = 0
        async for data in self._carry_out(RUN_EVENTS, run=run):
            event = data["runEvents"]
            kind = event["__typename"]
            if kind == "RunStarted":
                taken_up = nanoseconds(event["at"])
            elif kind == "TextDelta" and first is None:
                first = _first_token(event["text"], asked, time.time_ns(), taken_up)
            elif kind == "RunFinished" and event["status"] != "SUCCEEDED":
                raise RuntimeError(f"a run of W9 ended with {event['error']}")
        assert first is not None
        return first

    async def _carry_out(self, query: str, **variables: Any) -> AsyncIterator[Json]:
        """The data of each response to an operation."""
        number = str(next(self._ids))
        payload = request(query, **variables)
        await self._socket.send_json({"type": "subscribe", "id": number, "payload": payload})
        while (message := await self._socket.receive_json())["type"] != "complete":
            if message["type"] != "next" or "errors" in message["payload"]:
                raise RuntimeError(f"our server answered {message}")
            yield message["payload"]["data"]


def _first_token(text: str, asked: int, had: int, taken_up: int | None = None) -> FirstToken:
    received, sent = (int(each) for each in text.split())
    return FirstToken(
        (received - asked) / 1e6,
        (had - sent) / 1e6,
        None if taken_up is None else (had - taken_up - (sent - received)) / 1e6,
    )


@asynccontextmanager
async def _asking(dsn: str) -> AsyncIterator[tuple[Subscriber, BareClient]]:
    database = await open_database(dsn, pool_size=1, statement_timeout=60)
    try:
        character = await generator.create_character(database, generator.IDENTITY)
    finally:
        await database.close()
    async with serving(PROVIDER, dsn) as provider:
        url = provider.url.removesuffix("/graphql")
        ours = MIRRORGRAPH.set_to(
            MIRRORGRAPH_PROVIDER="openai", OPENAI_BASE_URL=f"{url}/v1", MIRRORGRAPH_MODEL=_MODEL
        )
        async with (
            serving(ours, dsn) as server,
            aiohttp.ClientSession() as session,
            session.ws_connect(server.url, protocols=["graphql-transport-ws"]) as socket,
        ):
            await socket.send_json({"type": "connection_init"})
            acknowledged = await socket.receive_json()
            assert acknowledged["type"] == "connection_ack", acknowledged
            yield Subscriber(socket, server, character), BareClient(session, url)


async def measure(dsn: str, rounds: int, say: Say, runs: int = RUNS_PER_ROUND) -> Json:
    """W9, on a migrated database: `runs` first tokens in each round, each side in turn."""
    async with _asking(dsn) as askers:
        for asker in askers:
            for _ in range(_WARM_UP):
                await asker.first_token()
        measured: dict[str, list[list[FirstToken]]] = {each.name: [] for each in askers}
        for number in range(rounds):
            say(f"W9, round {number + 1} of {rounds}")
            tokens: dict[str, list[FirstToken]] = {each.name: [] for each in askers}
            for place in range(runs):
                for asker in askers if place % 2 == 0 else askers[::-1]:
                    tokens[asker.name].append(await asker.first_token())
            for name, each in tokens.items():
                measured[name].append(each)
    ours, bare = measured
    summary: Json = {name: _summary(each) for name, each in measured.items()}
    medians = {name: [_median(each, "added") for each in of] for name, of in measured.items()}
    return {
        "provider_milliseconds": DELAY_SECONDS * 1e3,
        "runs": rounds * runs,
        f"added_over_{bare}_milliseconds": spread(
            [one - other for one, other in zip(medians[ours], medians[bare], strict=True)]
        ),
        "servers": summary,
    }


def _median(tokens: list[FirstToken], figure: str) -> float:
    values: list[float] = [getattr(each, figure) for each in tokens]
    return statistics.median(values)


def _summary(rounds: list[list[FirstToken]]) -> Json:
    """Of each figure the median, with its spread over the rounds, and the 99th of 100 of all."""
    everything = [token for each in rounds for token in each]
    figures = ["added", "before", "after"]
    if everything[0].taken_up is not None:
        figures.append("taken_up")
    return {
        f"{figure}_milliseconds": {
            "median": spread([_median(each, figure) for each in rounds]),
            "p99": round(p99([getattr(each, figure) for each in everything]), 3),
        }
        for figure in figures
    }
