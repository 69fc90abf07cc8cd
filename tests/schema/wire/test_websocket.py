"""GraphQL over WebSocket, frame by frame: what may be said, and what each mistake is answered with.

Every script is also played to the reference server of the protocol, graphql-ws, where Node is at
hand: both must say the same, but for what is written down beside the script.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
import websockets

from tests.e2e.callers import CLIENTS, Json, dialled, node_program
from tests.schema.wire.serving import Wire, wired
from tests.schema.wire.talking import Talk, complete, error, next_

Step = tuple[str, Any]
MARK = {"is": "the socket still alive"}
ACK = {"type": "connection_ack"}
NOT_OF_PROTOCOL = (4400, "The message is none of graphql-transport-ws")
NOT_JSON = (4400, "The message is not JSON")


def say(message: Any) -> Step:
    return ("say", message)


def hear(message: Json) -> Step:
    return ("hear", message)


def subscribe(payload: Any, id: Any = "1") -> Step:
    return say({"type": "subscribe", "id": id, "payload": payload})


def ask(query: str, **more: Any) -> Step:
    return subscribe({"query": query, **more})


def stop(id: Any = "1") -> Step:
    return say({"type": "complete", "id": id})


READY = (say({"type": "connection_init"}), hear(ACK))
HELLO = (ask("{ hello }"), hear(next_("1", hello="hello world")), hear(complete("1")))


@dataclass(frozen=True)
class Script:
    """What is said and heard in turn, and how it ends: with a close, or with a living socket."""

    name: str
    steps: tuple[Step, ...]
    end: tuple[int, str] | None = None
    # What the reference server answers instead, in the form of `told`; on purpose.
    reference: tuple[Any, ...] | None = None


def ready(name: str, *steps: Step, **more: Any) -> Script:
    """A script that begins with an initialised socket."""
    return Script(name, (*READY, *steps), **more)


MASK = {
    "message": "Something went wrong on the server. Say this request id when you report it.",
    "extensions": {"code": "INTERNAL", "requestId": "request-anybody-1"},
}
MASKED = {"type": "error", "id": "1", "payload": [MASK]}


def failed(field: str, body: Json) -> Json:
    """A result with an error in it."""
    result = {"data": {field: None}, "errors": [body]}
    return {"type": "next", "id": "1", "payload": result}


TWO = 'query A { hello } query B { hello(name: "B") }'
TWICE = "query ($input: NumberInput!) { twice(input: $input) }"
AT = {"locations": [{"line": 1, "column": 3}]}

SCRIPTS = (
    # The beginning.
    Script("init", READY),
    Script(
        "init with a null payload", (say({"type": "connection_init", "payload": None}), READY[1])
    ),
    Script(
        "init with a payload", (say({"type": "connection_init", "payload": {"a": []}}), READY[1])
    ),
    *(
        Script(
            f"init with the payload {payload!r}",
            (say({"type": "connection_init", "payload": payload}),),
            NOT_OF_PROTOCOL,
        )
        for payload in ([], ["a"], "text", "", 1, 0, False)
    ),
    ready("init twice", READY[0], end=(4429, "Too many initialisation requests")),
    Script(
        "subscribe before init",
        (ask("{ hello }"),),
        (4401, "Unauthorized: wait for connection_ack"),
    ),
    Script("complete before init", (stop(),)),
    # Frames.
    *(
        Script(f"the frame {frame}", (say(frame),), NOT_OF_PROTOCOL)
        for frame in ("null", "[]", '[{"type": "ping"}]', '"ping"', "1", "true", "{}")
    ),
    *(
        Script(f"the type {given!r}", (say({"type": given}),), NOT_OF_PROTOCOL)
        for given in (None, 1, [], {})
    ),
    *(
        Script(f"the type {given!r}", (say({"type": given}),), (4400, "Unknown type of message"))
        for given in ("", "start", "connection_terminate", "PING")
    ),
    Script("no type", (say({"payload": {}}),), NOT_OF_PROTOCOL),
    *(
        Script(f"the text {text!r}", (say(text),), NOT_JSON)
        for text in ("", "ping", "{", '{"type":"ping"}{}', '{"type":"ping","payload":NaN}')
    ),
    Script(
        "a binary frame",
        (say(b'{"type":"ping"}'),),
        (4400, "Messages are text frames"),
        # It takes them for texts; the protocol has none.
        reference=({"type": "pong"}, "open"),
    ),
    Script(
        "more members than known", (say({"type": "connection_init", "id": 1, "a": 2}), READY[1])
    ),
    ready(
        "the server's own connection_ack",
        say(ACK),
        end=(4400, "Unknown type of message"),
        # It stumbles over them: they are messages of the protocol, in the wrong direction.
        reference=(ACK, 4500),
    ),
    ready(
        "the server's own next",
        say(next_("1", hello="")),
        end=(4400, "Unknown type of message"),
        reference=(ACK, 4500),
    ),
    # Pings and pongs.
    Script("ping before init", (say({"type": "ping"}), hear({"type": "pong"}), *READY)),
    Script("ping with null", (say({"type": "ping", "payload": None}), hear({"type": "pong"}))),
    *(
        Script(
            f"ping with {payload}",
            (say({"type": "ping", "payload": payload}), hear({"type": "pong", "payload": payload})),
        )
        for payload in ({"a": [1, None, "ö"]}, {})
    ),
    *(
        Script(
            f"{kind} with {payload!r}", (say({"type": kind, "payload": payload}),), NOT_OF_PROTOCOL
        )
        for kind in ("ping", "pong")
        for payload in ([], "text")
    ),
    Script(
        "pong nobody asked for",
        (say({"type": "pong"}), *READY, say({"type": "pong", "payload": {}})),
    ),
    # Ids.
    *(
        ready(
            f"subscribe with the id {given!r}",
            subscribe({"query": "{ hello }"}, given),
            end=NOT_OF_PROTOCOL,
        )
        for given in ("", 1, 0, None, [])
    ),
    *(
        ready(f"complete with the id {given!r}", stop(given), end=NOT_OF_PROTOCOL)
        for given in ("", 1, None)
    ),
    ready(
        "subscribe without an id",
        say({"type": "subscribe", "payload": {"query": "{ hello }"}}),
        end=NOT_OF_PROTOCOL,
    ),
    ready("complete without an id", say({"type": "complete"}), end=NOT_OF_PROTOCOL),
    ready(
        "an id in use",
        ask("subscription { silent }"),
        ask("{ hello }"),
        end=(4409, "Subscriber for 1 already exists"),
    ),
    ready(
        "an id in use by a query",
        ask("{ slow }"),
        ask("{ hello }"),
        end=(4409, "Subscriber for 1 already exists"),
    ),
    ready("an id again after the server's complete", *HELLO, *HELLO),
    ready(
        "an id again after the client's complete", ask("subscription { silent }"), stop(), *HELLO
    ),
    ready(
        "an id again after an error",
        ask("{ unknown }"),
        hear(
            error(
                "1",
                "GRAPHQL_VALIDATION_FAILED",
                "Cannot query field 'unknown' on type 'Query'.",
                **AT,
            )
        ),
        *HELLO,
    ),
    ready("complete of what never was", stop("unknown"), *HELLO),
    ready("complete of what has ended", *HELLO, stop(), stop()),
    ready("complete of a query that runs", ask("{ slow }"), stop()),
    # Payloads.
    *(
        ready(f"subscribe with the payload {payload!r}", subscribe(payload), end=NOT_OF_PROTOCOL)
        for payload in (None, [], "{ hello }", 1, {})
    ),
    ready(
        "subscribe without a payload", say({"type": "subscribe", "id": "1"}), end=NOT_OF_PROTOCOL
    ),
    *(
        ready(
            f"the {name} {value!r}",
            subscribe({"query": "{ hello }", name: value}),
            end=NOT_OF_PROTOCOL,
        )
        for name, value in (
            ("query", None),
            ("query", 1),
            ("query", ["{ hello }"]),
            ("variables", []),
            ("variables", [1]),
            ("variables", "{}"),
            ("variables", 0),
            ("operationName", 1),
            ("operationName", ["A"]),
            ("extensions", []),
            ("extensions", "{}"),
        )
    ),
    ready(
        "nulls", ask("{ hello }", variables=None, operationName=None, extensions=None), *HELLO[1:]
    ),
    # Operations.
    ready("a query", *HELLO),
    ready(
        "a query with variables",
        ask(
            "query Q($name: String) { hello(name: $name) }",
            variables={"name": "ö"},
            operationName="Q",
        ),
        hear(next_("1", hello="hello ö")),
        hear(complete("1")),
    ),
    ready(
        "a mutation",
        ask("mutation { set(value: 5) }"),
        hear(next_("1", set=5)),
        hear(complete("1")),
    ),
    ready(
        "a subscription",
        ask("subscription { count(to: 2) }"),
        hear(next_("1", count=1)),
        hear(next_("1", count=2)),
        hear(complete("1")),
    ),
    ready(
        "a subscription without events", ask("subscription { count(to: 0) }"), hear(complete("1"))
    ),
    ready(
        "one of two operations",
        ask(TWO, operationName="B"),
        hear(next_("1", hello="hello B")),
        hear(complete("1")),
    ),
    # Mistakes in what is asked for end the operation, and nothing else.
    ready(
        "a syntax error",
        ask("{ hello "),
        hear(
            error(
                "1",
                "GRAPHQL_PARSE_FAILED",
                "Syntax Error: Expected Name, found <EOF>.",
                locations=[{"line": 1, "column": 9}],
            )
        ),
        *HELLO,
        reference=(ACK, 4500),
    ),  # it closes the socket, with all other operations on it
    ready(
        "an empty document",
        ask(""),
        hear(
            error(
                "1",
                "GRAPHQL_PARSE_FAILED",
                "Syntax Error: Unexpected <EOF>.",
                locations=[{"line": 1, "column": 1}],
            )
        ),
        reference=(ACK, 4500),
    ),
    ready(
        "two validation errors",
        ask("{ a b }"),
        hear(
            {
                "type": "error",
                "id": "1",
                "payload": [
                    {
                        "message": f"Cannot query field '{name}' on type 'Query'.",
                        "locations": [{"line": 1, "column": column}],
                        "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"},
                    }
                    for name, column in (("a", 3), ("b", 5))
                ],
            }
        ),
    ),
    ready(
        "an unknown operation",
        ask(TWO, operationName="C"),
        hear(
            error(
                "1", "OPERATION_RESOLUTION_FAILURE", "The document has no operation 'C', but A, B."
            )
        ),
    ),
    ready(
        "no name for one of two operations",
        ask(TWO),
        hear(
            error(
                "1",
                "OPERATION_RESOLUTION_FAILURE",
                "The document has several operations: say in operationName which, of A, B.",
            )
        ),
    ),
    ready(
        "a variable of the wrong type",
        ask(TWICE, variables={"input": {"number": "a"}}),
        hear(
            error(
                "1",
                "BAD_USER_INPUT",
                "Variable '$input' has invalid value at .number: "
                "Int cannot represent non-integer value: 'a'",
                locations=[{"line": 1, "column": 8}],
            )
        ),
        reference=(
            ACK,
            {"type": "next", "id": "1", "payload": {"errors": 1}},
            complete("1"),
            "open",
        ),
    ),
    # Failures while executing.
    ready(
        "a field that fails",
        ask("{ broken }"),
        hear(failed("broken", {**MASK, **AT, "path": ["broken"]})),
        hear(complete("1")),
    ),
    ready(
        "a field that refuses",
        ask("{ refused }"),
        hear(
            failed(
                "refused",
                {
                    "message": "Mend this.",
                    **AT,
                    "path": ["refused"],
                    "extensions": {"code": "MEND_THIS", "argument": "argument"},
                },
            )
        ),
        hear(complete("1")),
    ),
    ready(
        "a stream that fails",
        ask("subscription { breaking(after: 2) }"),
        hear(next_("1", breaking=0)),
        hear(next_("1", breaking=1)),
        hear(MASKED),
        *HELLO,
    ),
    ready("a stream that fails at once", ask("subscription { breaking(after: 0) }"), hear(MASKED)),
    ready(
        "a stream that refuses",
        ask("subscription { refusing(after: 1) }"),
        hear(next_("1", refusing=0)),
        hear(error("1", "MEND_THIS", "Mend this.")),
    ),
)


async def played(address: str, script: Script) -> tuple[Any, ...]:
    """Everything that a server says, then how it closes or that it does not."""
    heard: list[Any] = []
    async with dialled(address) as connection:
        talk = Talk(connection)
        try:
            for step, message in script.steps:
                if step == "say":
                    await talk.say(message)
                else:
                    heard.append(await talk.hear())
            await talk.say({"type": "ping", "payload": MARK})
            while (last := await talk.hear()) != {"type": "pong", "payload": MARK}:
                heard.append(last)
        except websockets.ConnectionClosed:
            return (*heard, (connection.close_code, connection.close_reason))
    return (*heard, "open")


def told(what: Any) -> Any:
    """What two servers have in common: not their words for errors and closes."""
    if isinstance(what, tuple):
        return what[0]
    if isinstance(what, dict) and what["type"] == "error":
        return {"type": "error", "id": what["id"], "payload": len(what["payload"])}
    if isinstance(what, dict) and "errors" in what.get("payload", {}):
        return {**what, "payload": {**what["payload"], "errors": len(what["payload"]["errors"])}}
    return what


@pytest_asyncio.fixture(scope="module")
async def wire() -> AsyncIterator[Wire]:
    async with wired() as served:
        yield served


@pytest_asyncio.fixture(scope="module")
async def reference() -> AsyncIterator[str]:
    """The address of the reference server."""
    process = await asyncio.create_subprocess_exec(
        node_program(),
        "reference-socket.mjs",
        cwd=CLIENTS,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = json.loads(await process.stdout.readline())["port"]
        yield f"ws://127.0.0.1:{port}"
    finally:
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            await process.wait()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda each: each.name)
async def test_a_script_is_answered_exactly(wire: Wire, script: Script) -> None:
    """Rules T39, T42, T44. Every frame that is heard must be a text."""
    expected = [message for step, message in script.steps if step == "hear"]
    assert await played(wire.socket_url, script) == (*expected, script.end or "open")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda each: each.name)
async def test_the_reference_server_answers_the_same(reference: str, script: Script) -> None:
    expected = [message for step, message in script.steps if step == "hear"]
    same = tuple(told(each) for each in (*expected, script.end or "open"))
    heard = tuple(told(each) for each in await played(reference, script))
    assert heard == (script.reference or same)
