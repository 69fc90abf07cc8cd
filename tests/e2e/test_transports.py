"""One API over every transport, as hand-written and real clients see it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from gql import Client, GraphQLRequest
from gql.transport.websockets import WebsocketsTransport
from websockets import ConnectionClosed

from tests.conftest import ServerProcess
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
    Ledger,
    dialled,
    event_of,
    node_lines,
    numbers_of,
    text_of,
)
from tests.scripted_provider import Script, ScriptedProvider, scripted_provider

MAX_BYTES = 65_536
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
        "MIRRORGRAPH_MAX_REQUEST_BYTES": str(MAX_BYTES),
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
        async for data in session.subscribe(asked):
            yield data["runEvents"]


async def by_graphql_ws(caller: Caller, run: str) -> AsyncIterator[Json]:
    async for result in node_lines(
        "follow-graphql-ws.mjs",
        socketUrl=caller.server.socket_url,
        query=RUN_EVENTS,
        variables={"run": run},
    ):
        yield event_of(result)


async def by_graphql_sse(caller: Caller, run: str) -> AsyncIterator[Json]:
    async for result in node_lines(
        "follow-graphql-sse.mjs", url=caller.server.url, query=RUN_EVENTS, variables={"run": run}
    ):
        yield event_of(result)


async def by_urql(caller: Caller, run: str) -> AsyncIterator[Json]:
    async for result in node_lines(
        "urql.mjs",
        url=caller.server.url,
        socketUrl=caller.server.socket_url,
        subscription={"text": RUN_EVENTS, "variables": {"run": run}},
    ):
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
    """Numbers are reserved 256 at a time, stored events are read 500 at a time."""
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


async def test_a_subscription_is_not_answered_as_a_single_result(caller: Caller) -> None:
    answer = await caller.post(RUN_EVENTS, {"run": "run_x"})
    assert (answer.status, answer.codes) == (400, ["STREAM_REQUIRED"])


async def test_a_query_by_get_needs_a_header_that_a_link_cannot_send(caller: Caller) -> None:
    asked = {"query": "{ viewer { user { name } } }"}
    refused = await caller.request("GET", params=asked)
    assert (refused.status, refused.codes) == (403, ["PREFLIGHT_REQUIRED"])
    for name in (*PREFLIGHT, "apollo-require-preflight", "x-apollo-operation-name"):
        answer = await caller.request("GET", headers={name: "x"}, params=asked)
        assert answer.data == {"viewer": {"user": {"name": "local"}}}


async def test_a_mutation_by_get_is_refused_and_changes_nothing(
    caller: Caller, ledger: Ledger
) -> None:
    tree = await caller.create_tree()
    before = await ledger.fingerprint()
    asked = {
        "query": TREE_ASK,
        "operationName": "TreeAsk",
        "variables": json.dumps({"tree": tree, "text": "Well?"}),
    }
    for accept in ("application/json", "text/event-stream"):
        refused = await caller.request("GET", headers={**PREFLIGHT, "Accept": accept}, params=asked)
        if accept == "application/json":
            assert (refused.status, refused.codes) == (400, ["BAD_REQUEST"])
        else:
            assert refused.status == 200
            assert '"code":"BAD_REQUEST"' in refused.body
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "text/plain; charset=application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "Multipart/Form-Data; boundary=x",
        "",
    ],
)
async def test_what_a_plain_form_can_send_changes_nothing(
    caller: Caller, ledger: Ledger, content_type: str
) -> None:
    tree = await caller.create_tree()
    before = await ledger.fingerprint()
    operations = json.dumps(
        {
            "query": TREE_ASK,
            "operationName": "TreeAsk",
            "variables": {"tree": tree, "text": "Well?"},
        }
    )
    if "boundary" in content_type:
        parts = {"operations": operations, "map": "{}"}
        operations = "".join(
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in parts.items()
        )
        operations += "--x--\r\n"
    refused = await caller.request(
        "POST", headers={"Content-Type": content_type}, data=operations.encode()
    )
    assert (refused.status, refused.codes) == (403, ["PREFLIGHT_REQUIRED"])
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("is_multipart", [False, True])
async def test_a_request_over_the_limit_is_refused(
    caller: Caller, ledger: Ledger, *, is_chunked: bool, is_multipart: bool
) -> None:
    body = json.dumps({"query": "{ viewer { roles } }" + " " * MAX_BYTES}).encode()
    headers = {"Content-Type": "application/json"}
    if is_multipart:
        head = '--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n'
        body = head.encode() + body + b"\r\n--x--\r\n"
        headers = {"Content-Type": "multipart/form-data; boundary=x", **PREFLIGHT}

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 8_192):
            yield body[start : start + 8_192]

    before = await ledger.fingerprint()
    refused = await caller.request("POST", headers=headers, data=chunks() if is_chunked else body)
    assert refused.status == 413
    assert refused.body == {
        "errors": [
            {
                "message": "A request has at most 65,536 bytes.",
                "extensions": {"code": "REQUEST_TOO_LARGE"},
            }
        ]
    }
    assert await ledger.fingerprint() == before


async def test_a_request_just_under_the_limit_is_served(caller: Caller) -> None:
    body = json.dumps({"query": "{ viewer { roles } }"}).encode().ljust(MAX_BYTES)
    answer = await caller.request("POST", headers={"Content-Type": "application/json"}, data=body)
    assert answer.data == {"viewer": {"roles": []}}


@pytest.mark.parametrize(
    "body",
    [
        "5",
        "null",
        "true",
        '"text"',
        "[]",
        "[1]",
        '[{"query": "{ viewer { roles } }"}]',
        "",
        "{",
        "{} {}",
        "{}",
        '{"query": null}',
        '{"query": ""}',
        '{"query": 5}',
        '{"query": "{ viewer { roles } }", "variables": []}',
        '{"query": "{ viewer { roles } }", "variables": "x"}',
        '{"query": "{ viewer { roles } }", "extensions": 1}',
        '{"query": "{ viewer { roles } }", "operationName": "Other"}',
        b'{"query": "\xff"}',
    ],
)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_body_of_another_shape_is_a_bad_request(
    caller: Caller, body: str | bytes, accept: str
) -> None:
    headers = {"Content-Type": "application/json", "Accept": accept}
    refused = await caller.request("POST", headers=headers, data=body)
    if accept == "text/event-stream" and refused.status == 200:
        event, data = refused.body.split("\n\n")[0].split("\n")
        assert event == "event: next"
        errors = json.loads(data.removeprefix("data: "))["errors"]
    else:
        assert refused.status == 400
        errors = refused.body["errors"]
    assert [each["extensions"]["code"] for each in errors] == ["BAD_REQUEST"]


MALFORMED_UPLOADS = {
    "no map": {"operations": '{"query": "{ viewer { roles } }"}'},
    "a map that is a list": {"operations": "{}", "map": "[]"},
    "a map to nowhere": {"operations": "{}", "map": '{"0": ["variables.file"]}'},
    "operations that are text": {"operations": '"x"', "map": "{}"},
    "a path past a list": {
        "operations": '{"query": "{ viewer { roles } }", "variables": {"files": []}}',
        "map": '{"0": ["variables.files.7"]}',
    },
    "paths that are numbers": {"operations": '{"variables": {}}', "map": '{"0": [5]}'},
    "a path into text": {
        "operations": '{"query": "x", "variables": {"file": "x"}}',
        "map": '{"0": ["variables.file.x"]}',
    },
}


@pytest.mark.parametrize("name", MALFORMED_UPLOADS)
async def test_a_malformed_upload_is_a_bad_request(caller: Caller, name: str) -> None:
    form = aiohttp.FormData(default_to_multipart=True)
    for field, value in MALFORMED_UPLOADS[name].items():
        form.add_field(field, value)
    if name != "a map to nowhere":
        form.add_field("0", b"x", filename="x")
    answer = await caller.request("POST", headers=PREFLIGHT, data=form)
    if name == "no map":
        assert answer.data == {"viewer": {"roles": []}}
    else:
        assert (answer.status, answer.codes) == (400, ["BAD_REQUEST"])


NOBODY = "0" * 26
REFUSED_OPERATIONS: dict[str, tuple[str, str, Json]] = {
    "syntax": ("{", "GRAPHQL_PARSE_FAILED", {}),
    "validation": ("{ nothing }", "GRAPHQL_VALIDATION_FAILED", {}),
    "a variable left out": (
        "query($a: ID!) { node(id: $a) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
        {},
    ),
    "an id that is none": (
        '{ node(id: "x") { id } }',
        "MALFORMED_ID",
        {"argument": "id"},
    ),
    "an id with U+0000": (
        '{ nodes(ids: ["tree_\\u0000"]) { id } }',
        "MALFORMED_ID",
        {"argument": "ids"},
    ),
    "a cursor that is none": (
        '{ characters(after: "x") { nodes { id } } }',
        "INVALID_CURSOR",
        {"argument": "after"},
    ),
    "a cursor with U+0000": (
        '{ characters(before: "\\u0000") { nodes { id } } }',
        "INVALID_CURSOR",
        {"argument": "before"},
    ),
    "a page too large": (
        "{ characters(first: 201) { nodes { id } } }",
        "INVALID_PAGE",
        {"argument": "first"},
    ),
    "two ends of a page": (
        "{ characters(first: 1, last: 1) { nodes { id } } }",
        "INVALID_PAGE",
        {"argument": "last"},
    ),
    "too many ids": (
        f"{{ nodes(ids: [{', '.join([chr(34) + 'tree_' + NOBODY + chr(34)] * 101)}]) {{ id }} }}",
        "LIMIT_REACHED",
        {"argument": "ids"},
    ),
}


@pytest.mark.parametrize("name", REFUSED_OPERATIONS)
async def test_a_refused_operation_has_one_code_on_every_transport(
    caller: Caller, name: str
) -> None:
    query, code, rest = REFUSED_OPERATIONS[name]
    answers = [(await caller.post(query)).body["errors"]]
    async with caller.stream(query) as results:
        (result,) = [each async for each in results]
    answers.append(result["errors"])
    async with caller.socket() as socket:
        operation = await socket.start(query)
        refused = [result async for result in operation]
        answers.append(operation.errors or refused[0]["errors"])
        # The socket is still good for the next operation.
        assert await socket.ask("{ viewer { roles } }") == {"viewer": {"roles": []}}
    extensions = {"code": code, **rest}
    assert [[error["extensions"] for error in errors] for errors in answers] == [[extensions]] * 3


REFUSED_STREAMS: dict[str, tuple[Json, str]] = {
    "an unknown run": ({"run": "run_01890a5d-ac96-774b-bcce-b302099a8057"}, "NOT_FOUND"),
    "an id that is none": ({"run": "x"}, "NOT_FOUND"),
    "an id of another kind": ({"run": f"tree_{NOBODY}"}, "NOT_FOUND"),
    "an id with U+0000": ({"run": "run_\0"}, "NOT_FOUND"),
    "a number below zero": (
        {"run": "run_01890a5d-ac96-774b-bcce-b302099a8057", "after": -1},
        "INVALID_CURSOR",
    ),
}


@pytest.mark.parametrize("name", REFUSED_STREAMS)
async def test_a_refused_subscription_ends_with_its_code(caller: Caller, name: str) -> None:
    variables, code = REFUSED_STREAMS[name]
    async with caller.stream(variables=variables) as results:
        (over_stream,) = [each async for each in results]
    async with caller.socket() as socket:
        operation = await socket.start(RUN_EVENTS, variables)
        refused = [result async for result in operation]
        over_socket = operation.errors or refused[0]["errors"]
    codes = [
        [e["extensions"]["code"] for e in each] for each in (over_stream["errors"], over_socket)
    ]
    assert codes == [[code], [code]]


REFUSED_CHANGES: dict[str, tuple[Json, str, list[str]]] = {
    "U+0000": ({"text": "a\0b"}, "INVALID_TEXT", ["input", "text"]),
    "no text": ({"text": " \n"}, "TEXT_EMPTY", ["input", "text"]),
    "an unknown tree": ({"tree": f"tree_{NOBODY}"}, "NOT_FOUND", ["input", "treeId"]),
    "a tree with U+0000": ({"tree": "tree_\0"}, "INVALID_TEXT", ["input", "treeId"]),
    "an id that is none": ({"tree": "x"}, "NOT_FOUND", ["input", "treeId"]),
    "an unknown parent": ({"parent": f"node_{NOBODY}"}, "NOT_FOUND", ["input", "parentId"]),
}


@pytest.mark.parametrize("name", REFUSED_CHANGES)
async def test_a_refused_change_says_which_field_to_mend_and_changes_nothing(
    caller: Caller, ledger: Ledger, name: str
) -> None:
    change, code, path = REFUSED_CHANGES[name]
    given = {"tree": await caller.create_tree(), "parent": None, "text": "Well?", **change}
    before = await ledger.fingerprint()
    payload = (await caller.ask(TREE_ASK, given, "TreeAsk"))["treeAsk"]
    (error,) = payload.pop("errors")
    assert (error["code"], error["path"]) == (code, path)
    assert payload == {"question": None, "run": None}
    assert await ledger.fingerprint() == before


@pytest.mark.usefixtures("at_once")
async def test_text_of_every_script_comes_back_as_it_was_sent(caller: Caller) -> None:
    text = "Ça va? 你好，世界 — こんにちは — Привет — 안녕 — שלום — 👩‍👩‍👧 \r\n\t\u2028\u2029 “end”"
    begun = await caller.begin(text)
    node = await caller.read("Node", begun.question)
    assert node["content"] == text
    async with caller.socket() as socket:
        over_socket = await socket.ask(READS, {"id": begun.question}, "Node")
    assert over_socket["treeNode"]["content"] == text


INIT: Json = {"type": "connection_init"}
ODD_FRAMES: dict[str, tuple[list[Any], int]] = {
    "a number": ([5], 4400),
    "a list": ([[INIT]], 4400),
    "null": ([None], 4400),
    "no JSON": (["{"], 4400),
    "bytes": ([b'{"type": "connection_init"}'], 4400),
    "an unknown type": ([{"type": "start"}], 4400),
    "no type": ([{"id": "1"}], 4400),
    "a type that is a list": ([{"type": []}], 4400),
    "an init payload that is text": ([{**INIT, "payload": "x"}], 4400),
    "two inits": ([INIT, INIT], 4429),
    "an operation before the init": (
        [{"type": "subscribe", "id": "1", "payload": {"query": "{ viewer { roles } }"}}],
        4401,
    ),
    "an id that is a list": (
        [INIT, {"type": "subscribe", "id": [], "payload": {"query": "{ x }"}}],
        4400,
    ),
    "an id that is empty": (
        [INIT, {"type": "subscribe", "id": "", "payload": {"query": "{ x }"}}],
        4400,
    ),
    "a payload that is text": ([INIT, {"type": "subscribe", "id": "1", "payload": "{ x }"}], 4400),
    "a query that is null": (
        [INIT, {"type": "subscribe", "id": "1", "payload": {"query": None}}],
        4400,
    ),
    "variables that are a list": (
        [INIT, {"type": "subscribe", "id": "1", "payload": {"query": "{ x }", "variables": []}}],
        4400,
    ),
    "a complete with no id": ([INIT, {"type": "complete"}], 4400),
}


@pytest.mark.parametrize("name", ODD_FRAMES)
async def test_a_frame_outside_of_the_protocol_closes_the_socket_with_its_code(
    server: ServerProcess, name: str
) -> None:
    frames, code = ODD_FRAMES[name]
    async with asyncio.timeout(PATIENCE), dialled(server) as connection:
        for frame in frames:
            plain = isinstance(frame, bytes) or frame == "{"
            await connection.send(frame if plain else json.dumps(frame))
        with contextlib.suppress(ConnectionClosed):
            async for answer in connection:
                assert json.loads(answer) == {"type": "connection_ack"}
    assert connection.close_code == code


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
        for frame in (INIT, subscribe, subscribe):
            await connection.send(json.dumps(frame))
        with contextlib.suppress(ConnectionClosed):
            async for _ in connection:
                pass
    assert connection.close_code == 4409
    provider.resume()
    assert (await follower.whole())[-1]["status"] == "SUCCEEDED"


async def test_a_socket_answers_pings_and_takes_an_empty_init(server: ServerProcess) -> None:
    async with asyncio.timeout(PATIENCE), dialled(server) as connection:
        await connection.send('{"type": "ping"}')
        assert json.loads(await connection.recv()) == {"type": "pong"}
        await connection.send('{"type": "connection_init", "payload": null}')
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}
        await connection.send('{"type": "complete", "id": "nobody"}')
        await connection.send('{"type": "ping", "payload": null}')
        assert json.loads(await connection.recv()) == {"type": "pong"}


@pytest.mark.parametrize("subprotocols", [None, ["graphql-ws"], ["other"]])
async def test_a_socket_of_another_protocol_is_closed(
    server: ServerProcess, subprotocols: list[str] | None
) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        dialled(server, subprotocols=subprotocols) as connection,
    ):
        with pytest.raises(ConnectionClosed):
            await connection.recv()
    assert connection.close_code == 4406
