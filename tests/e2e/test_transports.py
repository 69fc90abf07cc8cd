"""One API over every transport, as hand-written and real clients see it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from gql import Client, GraphQLRequest
from gql.transport.websockets import WebsocketsTransport
from websockets import ConnectionClosed

from tests.e2e.callers import (
    CHANGES,
    PATIENCE,
    PREFLIGHT,
    READS,
    RUN_EVENTS,
    TREE_ASK,
    Begun,
    Caller,
    Json,
    dialled,
    event_of,
    node_lines,
    numbers_of,
    text_of,
    without_opening,
)
from tests.scripted_provider import Script, ScriptedProvider, scripted_provider

WORDS = ("One", " two", " three", " four", " five", " six")
# After the start and the phases come the words: the provider hangs when three of them are out.
UNTIL_HANG = 4 + 3


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[ScriptedProvider]:
    """Answers at once, or hangs in the middle until it is told to go on."""
    async with scripted_provider(Script(words=WORDS)) as provider:
        yield provider


@pytest.fixture(scope="module")
def environment(provider: ScriptedProvider) -> dict[str, str]:
    return {
        "MIRRORGRAPH_PROVIDER": "openai",
        "OPENAI_BASE_URL": provider.openai_base_url,
    }


@pytest.fixture
def at_once(provider: ScriptedProvider) -> None:
    provider.script = Script(words=WORDS)


@pytest.fixture
def hanging(provider: ScriptedProvider) -> None:
    provider.script = Script(words=WORDS, fault="hang", after=3)


class Follower:
    """A client that notes events and says when it has seen a number."""

    def __init__(self, events: AsyncIterator[Json]) -> None:
        self.events: list[Json] = []
        self._seen = asyncio.Condition()
        self._task = asyncio.create_task(self._follow(events))

    async def _follow(self, events: AsyncIterator[Json]) -> None:
        async for event in events:
            async with self._seen:
                self.events.append(event)
                self._seen.notify_all()

    async def has_seen(self, seq: int) -> None:
        """Wait for an event; a client that ended too early is an error."""
        waiting = asyncio.create_task(self._wait(seq))
        done, _ = await asyncio.wait(
            {waiting, self._task}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
        )
        waiting.cancel()
        if waiting not in done:
            await asyncio.wait_for(self._task, 0.1)
            raise AssertionError(f"ended with {numbers_of(self.events)}")

    async def _wait(self, seq: int) -> None:
        async with self._seen:
            await self._seen.wait_for(lambda: bool(self.events) and self.events[-1]["seq"] >= seq)

    async def whole(self) -> list[Json]:
        """All events once the stream has completed."""
        await asyncio.wait_for(self._task, PATIENCE)
        return self.events


Follow = Callable[[Caller, str], AsyncIterator[Json]]


async def by_gql(caller: Caller, run: str) -> AsyncIterator[Json]:
    transport = WebsocketsTransport(
        url=caller.server.socket_url, subprotocols=["graphql-transport-ws"]
    )
    async with Client(transport=transport) as session:
        asked = GraphQLRequest(RUN_EVENTS, variable_values={"run": run, "after": None})
        results = ({"data": data} async for data in session.subscribe(asked))
        async for result in without_opening(results):
            yield event_of(result)


async def by_graphql_ws(caller: Caller, run: str) -> AsyncIterator[Json]:
    lines = node_lines(
        "follow-graphql-ws.mjs",
        socketUrl=caller.server.socket_url,
        query=RUN_EVENTS,
        variables={"run": run},
    )
    async for result in without_opening(lines):
        yield event_of(result)


async def by_graphql_sse(caller: Caller, run: str) -> AsyncIterator[Json]:
    lines = node_lines(
        "follow-graphql-sse.mjs", url=caller.server.url, query=RUN_EVENTS, variables={"run": run}
    )
    async for result in without_opening(lines):
        yield event_of(result)


async def by_urql(caller: Caller, run: str) -> AsyncIterator[Json]:
    lines = node_lines(
        "urql.mjs",
        url=caller.server.url,
        socketUrl=caller.server.socket_url,
        subscription={"text": RUN_EVENTS, "variables": {"run": run}},
    )
    async for result in without_opening(lines):
        yield event_of(result)


async def by_event_stream(caller: Caller, run: str) -> AsyncIterator[Json]:
    async with caller.stream(variables={"run": run}) as results:
        async for result in results:
            yield event_of(result)


async def by_socket(caller: Caller, run: str) -> AsyncIterator[Json]:
    async with caller.socket() as socket:
        async for result in await socket.start(RUN_EVENTS, {"run": run}):
            yield event_of(result)


CLIENTS: list[Follow] = [
    by_gql,
    by_graphql_ws,
    by_graphql_sse,
    by_urql,
    by_event_stream,
    by_socket,
]


@pytest.mark.usefixtures("hanging")
async def test_every_client_sees_the_same_events_once_and_in_order_while_they_happen(
    caller: Caller, provider: ScriptedProvider
) -> None:
    begun = await caller.begin("Count, please.")
    followers = [Follower(follow(caller, begun.run)) for follow in CLIENTS]
    # All are connected and have caught up before the answer goes on.
    await asyncio.gather(*(each.has_seen(UNTIL_HANG) for each in followers))
    assert [numbers_of(each.events) for each in followers] == [
        list(range(1, UNTIL_HANG + 1))
    ] * len(CLIENTS)
    provider.resume()
    streams = [await each.whole() for each in followers]
    assert numbers_of(streams[0]) == list(range(1, len(streams[0]) + 1))
    assert text_of(streams[0]) == "".join(WORDS)
    assert streams[0][-1]["node"]["content"] == "".join(WORDS)
    # urql adds __typename to what it asks for, in nested objects too.
    assert [_without_typenames(each) for each in streams] == [_without_typenames(streams[0])] * len(
        CLIENTS
    )


def _without_typenames(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_typenames(v) for k, v in value.items() if k != "__typename"}
    return [_without_typenames(each) for each in value] if isinstance(value, list) else value


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("by_get", [False, True])
async def test_urql_reads_and_changes_over_http(caller: Caller, *, by_get: bool) -> None:
    tree = await caller.create_tree(topic="By urql")
    lines = [
        line
        async for line in node_lines(
            "urql.mjs",
            url=caller.server.url,
            socketUrl=caller.server.socket_url,
            preferGetMethod=by_get,
            headers=PREFLIGHT if by_get else {},
            query={
                "text": "query Q($id: ID!) { mirrorTree(id: $id) { topic } }",
                "variables": {"id": tree},
            },
            mutation={
                "text": 'mutation M($id: ID!) { treeAsk(input: {treeId: $id, text: "Well?"}) '
                "{ question { content } errors { code } } }",
                "variables": {"id": tree},
            },
        )
    ]
    asked = {"question": {"content": "Well?"}, "errors": []}
    assert [_without_typenames(line) for line in lines] == [
        {"data": {"mirrorTree": {"topic": "By urql"}}},
        {"data": {"treeAsk": asked}},
    ]


@pytest.mark.usefixtures("at_once")
async def test_a_client_that_joins_late_gets_exactly_the_rest(caller: Caller) -> None:
    begun = await caller.begin("Count, please.")
    whole = await caller.follow(begun.run)
    async with caller.socket() as socket:
        for after in (None, *range(len(whole) + 2)):
            rest = whole[after or 0 :]
            assert await socket.follow(begun.run, after) == rest
            assert await caller.follow(begun.run, after) == rest


async def test_a_run_longer_than_any_batch_is_seen_whole_live_and_again(
    caller: Caller, provider: ScriptedProvider
) -> None:
    """At most 256 events wait to be stored, and stored ones are read 500 at a time."""
    provider.script = Script(words=tuple(f"{number} " for number in range(1_200)))
    begun = await caller.begin("Count far, please.")
    async with caller.socket() as socket:
        live, live_again = await asyncio.gather(socket.follow(begun.run), caller.follow(begun.run))
        assert numbers_of(live) == list(range(1, 4 + 1_200 + 2 + 1))
        assert text_of(live) == live[-1]["node"]["content"] == "".join(provider.script.words)
        assert live_again == live
        for after in (0, 255, 256, 499, 500, 501, 1_000):
            assert await socket.follow(begun.run, after) == live[after:]


@pytest.mark.usefixtures("hanging")
async def test_a_client_that_joins_in_the_middle_gets_the_rest_as_it_happens(
    caller: Caller, provider: ScriptedProvider
) -> None:
    begun = await caller.begin("Count, please.")
    first = Follower(by_socket(caller, begun.run))
    await first.has_seen(UNTIL_HANG)
    async with caller.socket() as socket:
        late = await socket.start(RUN_EVENTS, {"run": begun.run, "after": UNTIL_HANG - 1})
        assert event_of(await anext(late)) == first.events[-1]
        provider.resume()
        rest = [event_of(result) async for result in late]
    assert rest == (await first.whole())[UNTIL_HANG:]


@pytest.mark.usefixtures("hanging")
async def test_hanging_up_does_not_stop_the_run(caller: Caller, provider: ScriptedProvider) -> None:
    """Rule R10."""
    begun = await caller.begin("Count, please.")
    variables = {"run": begun.run}
    async with caller.socket() as socket:
        hung_up = await socket.start(RUN_EVENTS, variables)
        for _ in range(UNTIL_HANG):
            await anext(hung_up)
        await socket.stop(hung_up)
        # The socket lives on, and the operation's id is free again.
        assert (await socket.ask(READS, {"id": begun.run}, "Run"))["run"]["status"] == "RUNNING"
        await anext(await socket.start(RUN_EVENTS, variables))
    async with caller.stream(variables=variables) as results:
        await anext(results)
    provider.resume()
    events = await caller.follow(begun.run)
    assert events[-1]["status"] == "SUCCEEDED"
    assert text_of(events) == "".join(WORDS)


@pytest.mark.usefixtures("hanging")
async def test_a_socket_carries_several_subscriptions_at_once(
    caller: Caller, provider: ScriptedProvider
) -> None:
    one, two = [await caller.begin(text) for text in ("Count, please.", "You too.")]
    async with caller.socket() as socket:
        followers = [
            Follower(_events_of(await socket.start(RUN_EVENTS, {"run": run})))
            for run in (one.run, two.run, one.run)
        ]
        await asyncio.gather(*(each.has_seen(UNTIL_HANG) for each in followers))
        provider.resume()
        first, second, first_again = [await each.whole() for each in followers]
    assert first == first_again
    assert first[0]["run"]["id"] == one.run
    assert second[0]["run"]["id"] == two.run
    for events in (first, second):
        assert numbers_of(events) == list(range(1, len(events) + 1))
        assert text_of(events) == "".join(WORDS)


async def _events_of(results: AsyncIterator[Json]) -> AsyncIterator[Json]:
    async for result in results:
        yield event_of(result)


@pytest.mark.usefixtures("at_once")
async def test_a_socket_reads_anew_for_every_operation(caller: Caller) -> None:
    async with caller.socket() as socket:
        begun = await caller.begin("Count, please.")

        async def entry() -> Json | None:
            tree: Json = (await socket.ask(READS, {"id": begun.tree}, "Tree"))["mirrorTree"]
            return tree["workingEntry"]

        before = await entry()
        first = (await socket.follow(begun.run))[-1]["node"]["id"]
        assert before in (None, {"id": first})
        assert await entry() == {"id": first}
        again = await socket.ask(CHANGES, {"question": begun.question}, "AnswerRegenerate")
        other = (await socket.follow(again["answerRegenerate"]["run"]["id"]))[-1]["node"]["id"]
        # One more answer does not move the entry; adopting it does, also when another socket does.
        assert await entry() == {"id": first}
        await caller.change("NodeAdopt", node=other)
        assert await entry() == {"id": other}
        await socket.ask(CHANGES, {"node": first}, "NodeAdopt")
        assert await entry() == {"id": first}


@pytest.mark.usefixtures("hanging")
async def test_an_event_shows_its_node_as_it_is_now(
    caller: Caller, provider: ScriptedProvider
) -> None:
    """Rule R8."""
    document = """
    subscription Watch($run: ID!) {
      runEvents(runId: $run) {
        ... on RunStarted { run { status node { status content } } }
        ... on RunFinished { node { status content run { status } } }
      }
    }
    """
    begun = await caller.begin("Count, please.")
    watched = Follower(by_event_stream(caller, begun.run))
    async with caller.socket() as socket, caller.stream(document, {"run": begun.run}) as results:
        operation = await socket.start(document, {"run": begun.run})
        openings = [event_of(await anext(each)) for each in (operation, results)]
        assert openings == [{}, {}]
        starts = [event_of(await anext(each)) for each in (operation, results)]
        bud = {"run": {"status": "RUNNING", "node": {"status": "BUD", "content": ""}}}
        assert starts == [bud, bud]
        await watched.has_seen(UNTIL_HANG)
        provider.resume()
        ends = [[event_of(each) async for each in source][-1] for source in (operation, results)]
    node = {"status": "SOLIDIFIED", "content": "".join(WORDS), "run": {"status": "SUCCEEDED"}}
    assert ends == [{"node": node}, {"node": node}]


@pytest.mark.usefixtures("at_once")
async def test_a_stream_and_a_socket_also_answer_queries_and_mutations(caller: Caller) -> None:
    tree = await caller.create_tree(topic="Once")
    async with caller.stream(READS, {"id": tree}, "Tree") as results:
        (result,) = [each async for each in results]
    assert result["data"]["mirrorTree"]["topic"] == "Once"
    given = {"tree": tree, "parent": None, "text": "Well?"}
    async with caller.stream(TREE_ASK, given, "TreeAsk") as results:
        (result,) = [each async for each in results]
    assert result["data"]["treeAsk"]["errors"] == []


@pytest.mark.usefixtures("at_once")
async def test_text_of_every_script_comes_back_as_it_was_sent(caller: Caller) -> None:
    text = "Ça va? 你好，世界 — こんにちは — Привет — 안녕 — שלום — 👩‍👩‍👧 \r\n\t\u2028\u2029 “end”"
    begun = await caller.begin(text)
    node = await caller.read("Node", begun.question)
    assert node["content"] == text
    async with caller.socket() as socket:
        over_socket = await socket.ask(READS, {"id": begun.question}, "Node")
    assert over_socket["treeNode"]["content"] == text


@pytest.mark.usefixtures("hanging")
async def test_an_operation_id_in_use_closes_the_socket(
    caller: Caller, provider: ScriptedProvider
) -> None:
    begun: Begun = await caller.begin("Count, please.")
    subscribe = {
        "type": "subscribe",
        "id": "1",
        "payload": {"query": RUN_EVENTS, "variables": {"run": begun.run}},
    }
    follower = Follower(by_event_stream(caller, begun.run))
    await follower.has_seen(UNTIL_HANG)
    async with asyncio.timeout(PATIENCE), dialled(caller.server) as connection:
        for frame in ({"type": "connection_init"}, subscribe, subscribe):
            await connection.send(json.dumps(frame))
        with contextlib.suppress(ConnectionClosed):
            async for _ in connection:
                pass
    assert connection.close_code == 4409
    provider.resume()
    assert (await follower.whole())[-1]["status"] == "SUCCEEDED"
