"""Requests that are refused, by each transport: the status, the code, and that nothing changed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from websockets import ConnectionClosed

from tests.conftest import ServerProcess
from tests.e2e.callers import PATIENCE, PREFLIGHT, RUN_EVENTS, TREE_ASK, Caller, Json, dialled
from tests.e2e.ledgers import Ledger

MAX_BYTES = 65_536


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_MAX_REQUEST_BYTES": str(MAX_BYTES)}


async def test_a_subscription_is_not_answered_as_a_single_result(caller: Caller) -> None:
    answer = await caller.post(RUN_EVENTS, {"run": "run_x"})
    assert (answer.status, answer.codes) == (406, ["STREAM_REQUIRED"])


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
        assert (refused.status, refused.codes) == (405, ["METHOD_NOT_ALLOWED"])
        assert refused.headers["Allow"] == "POST"
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize(
    ("content_type", "status", "code"),
    [
        ("text/plain", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("text/plain; charset=application/json", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("application/x-www-form-urlencoded", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("multipart/form-data; boundary=x", 403, "PREFLIGHT_REQUIRED"),
        ("Multipart/Form-Data; boundary=x", 403, "PREFLIGHT_REQUIRED"),
    ],
)
async def test_what_a_plain_form_can_send_changes_nothing(
    caller: Caller, ledger: Ledger, content_type: str, status: int, code: str
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
    assert (refused.status, refused.codes) == (status, [code])
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


ROLES = "{ viewer { roles } }"
# The status and the code over plain HTTP. What is no GraphQL request at all gets the same answer
# from a client that reads streams; what is one whose document or operation is wrong, a stream.
ODD_BODIES: list[tuple[str | bytes, int, str]] = [
    ("", 400, "BAD_REQUEST"),
    ("{", 400, "BAD_REQUEST"),
    ("{} {}", 400, "BAD_REQUEST"),
    (b'{"query": "\xff"}', 400, "BAD_REQUEST"),
    ("5", 422, "BAD_REQUEST"),
    ("null", 422, "BAD_REQUEST"),
    ("true", 422, "BAD_REQUEST"),
    ('"text"', 422, "BAD_REQUEST"),
    ("[1]", 422, "BAD_REQUEST"),
    ("[]", 422, "BATCH_LIMIT"),
    ("{}", 422, "BAD_REQUEST"),
    ('{"query": null}', 422, "BAD_REQUEST"),
    ('{"query": 5}', 422, "BAD_REQUEST"),
    (f'{{"query": "{ROLES}", "variables": []}}', 422, "BAD_REQUEST"),
    (f'{{"query": "{ROLES}", "variables": "x"}}', 422, "BAD_REQUEST"),
    (f'{{"query": "{ROLES}", "extensions": 1}}', 422, "BAD_REQUEST"),
    (f'{{"query": "{ROLES}", "operationName": 1}}', 422, "BAD_REQUEST"),
    ('{"query": ""}', 400, "GRAPHQL_PARSE_FAILED"),
    (f'{{"query": "{ROLES}", "operationName": "Other"}}', 422, "OPERATION_RESOLUTION_FAILURE"),
]
STREAMED = {"GRAPHQL_PARSE_FAILED", "OPERATION_RESOLUTION_FAILURE"}


@pytest.mark.parametrize(("body", "status", "code"), ODD_BODIES)
async def test_a_body_of_another_shape_is_refused(
    caller: Caller, body: str | bytes, status: int, code: str
) -> None:
    headers = {"Content-Type": "application/json"}
    refused = await caller.request("POST", headers=headers, data=body)
    assert (refused.status, refused.codes) == (status, [code])
    headers["Accept"] = "text/event-stream"
    over_stream = await caller.request("POST", headers=headers, data=body)
    if code not in STREAMED:
        assert (over_stream.status, over_stream.body) == (status, refused.body)
    else:
        _, event, complete, rest = over_stream.body.split("\n\n")
        assert (complete, rest) == ("event: complete\ndata: ", "")
        name, data = event.split("\n")
        assert (over_stream.status, name) == (200, "event: next")
        assert json.loads(data.removeprefix("data: ")) == refused.body


async def test_a_list_of_operations_is_answered_by_a_list(caller: Caller) -> None:
    asked = [{"query": ROLES}, {"query": "{ nothing }"}, {"query": "{ viewer { user { name } } }"}]
    answer = await caller.request("POST", json=asked)
    first, second, third = answer.body
    assert answer.status == 200
    assert (first, third) == (
        {"data": {"viewer": {"roles": []}}},
        {"data": {"viewer": {"user": {"name": "local"}}}},
    )
    assert set(second) == {"errors"}


MALFORMED_UPLOADS = {
    "no map": {"operations": '{"query": "{ viewer { roles } }"}'},
    "a map that is a list": {"operations": "{}", "map": "[]"},
    "a map to nowhere": {"operations": "{}", "map": '{"0": ["variables.file"]}'},
    "operations that are text": {"operations": '"x"', "map": "{}"},
    "a map that no operations go with": {"map": "{}"},
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
    assert (answer.status, answer.codes) == (422, ["BAD_REQUEST"])


NOBODY = "0" * 26
# The status where nothing is executed, else None; the code; what else stands beside it.
REFUSED_OPERATIONS: dict[str, tuple[str, int | None, str, Json]] = {
    "syntax": ("{", 400, "GRAPHQL_PARSE_FAILED", {}),
    "validation": ("{ nothing }", 422, "GRAPHQL_VALIDATION_FAILED", {}),
    "a variable left out": (
        "query($a: ID!) { node(id: $a) { id } }",
        422,
        "BAD_USER_INPUT",
        {},
    ),
    "a page too large": (
        "{ characters(first: 201) { nodes { id } } }",
        422,
        "PAGE_LIMIT",
        {"argument": "first", "found": 201, "limit": 200},
    ),
    "an id that is none": ('{ node(id: "x") { id } }', None, "MALFORMED_ID", {"argument": "id"}),
    "an id with U+0000": (
        '{ nodes(ids: ["tree_\\u0000"]) { id } }',
        None,
        "MALFORMED_ID",
        {"argument": "ids"},
    ),
    "a cursor that is none": (
        '{ characters(after: "x") { nodes { id } } }',
        None,
        "INVALID_CURSOR",
        {"argument": "after"},
    ),
    "a cursor with U+0000": (
        '{ characters(before: "\\u0000") { nodes { id } } }',
        None,
        "INVALID_CURSOR",
        {"argument": "before"},
    ),
    "two ends of a page": (
        "{ characters(first: 1, last: 1) { nodes { id } } }",
        None,
        "INVALID_PAGE",
        {"argument": "last"},
    ),
    "a page below zero": (
        "{ characters(first: -1) { nodes { id } } }",
        None,
        "INVALID_PAGE",
        {"argument": "first"},
    ),
    "too many ids": (
        f"{{ nodes(ids: [{', '.join([chr(34) + 'tree_' + NOBODY + chr(34)] * 101)}]) {{ id }} }}",
        None,
        "LIMIT_REACHED",
        {"argument": "ids"},
    ),
}


@pytest.mark.parametrize("name", REFUSED_OPERATIONS)
async def test_a_refused_operation_has_one_code_on_every_transport(
    caller: Caller, name: str
) -> None:
    query, status, code, rest = REFUSED_OPERATIONS[name]
    answer = await caller.post(query)
    async with caller.stream(query) as results:
        (over_stream,) = [each async for each in results]
    async with caller.socket() as socket:
        operation = await socket.start(query)
        over_socket = [result async for result in operation]
        # The socket is still good for the next operation.
        assert await socket.ask("{ viewer { roles } }") == {"viewer": {"roles": []}}
    extensions = {"code": code, **rest}
    assert [each["extensions"] for each in answer.body["errors"]] == [extensions]
    assert over_stream == answer.body
    if status is None:
        assert (answer.status, set(answer.body)) == (200, {"data", "errors"})
        assert (over_socket, operation.errors) == ([answer.body], [])
    else:
        assert (answer.status, set(answer.body)) == (status, {"errors"})
        assert (over_socket, operation.errors) == ([], answer.body["errors"])


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
        assert [result async for result in operation] == []
    assert [each["extensions"]["code"] for each in operation.errors] == [code]
    assert over_stream == {"errors": operation.errors}


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


async def test_the_figures_are_open_in_local_mode(caller: Caller) -> None:
    figures = await caller.request("GET", "/metrics")
    assert figures.status == 200
    assert "mirrorgraph_running_operations" in figures.body
