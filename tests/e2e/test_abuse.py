"""Requests that are made to harm, to spy or to exhaust: each is refused before it costs anything,
with one code on every transport.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from websockets import ConnectionClosed

from tests.conftest import serving
from tests.e2e.callers import PREFLIGHT, TREE_ASK, Caller, Json, command, dialled
from tests.e2e.ledgers import Ledger

ROLES = "{ viewer { roles } }"
QUESTION = "query ($id: ID!) { treeNode(id: $id) { content } }"


def joined(count: int, pattern: str) -> str:
    """A pattern again and again, each time with the next number for its `#`."""
    return " ".join(pattern.replace("#", str(each)) for each in range(count))


def parents(levels: int) -> str:
    """Nodes above nodes."""
    return "parent { " * levels + "id" + " }" * levels


def doubling(levels: int) -> str:
    """Fragments with twice as many ways down at each level, in which nothing is repeated."""
    down = " ".join(
        f"fragment f{each} on Query {{ ...g{each} ...h{each} }}"
        f" fragment g{each} on Query {{ ...f{each + 1} }}"
        f" fragment h{each} on Query {{ ...f{each + 1} }}"
        for each in range(levels)
    )
    return f"{{ ...f0 }} {down} fragment f{levels} on Query {{ viewer {{ roles }} }}"


@dataclass(frozen=True)
class Harm:
    """A request, and how it is refused."""

    query: str
    code: str
    status: int = 422
    variables: Json = field(default_factory=dict)
    errors: int = 1


INVALID = "GRAPHQL_VALIDATION_FAILED"
CIRCULAR = "{ __schema { types " + "{ fields { type " * 4 + "{ name }" + " } }" * 4 + " } }"

HARM = {
    "too deep": Harm(f'{{ treeNode(id: "x") {{ {parents(15)} }} }}', "DEPTH_LIMIT"),
    "too deep by fragments": Harm(
        '{ treeNode(id: "x") { ...f0 } }'
        + joined(5, "fragment f# on TreeNode { parent { parent { parent { ...g# } } } }")
        + " ".join(f"fragment g{each} on TreeNode {{ id ...f{each + 1} }}" for each in range(5))
        + "fragment f5 on TreeNode { id }",
        "DEPTH_LIMIT",
    ),
    "too deep to parse": Harm("{ a " * 900 + "}" * 900, "GRAPHQL_PARSE_FAILED", 400),
    "101 aliases": Harm("{ " + joined(101, "a#: __typename") + " }", "ALIAS_LIMIT"),
    "aliases in fragments": Harm(
        "{ ...f } fragment f on Query { viewer { " + joined(51, "a#: roles") + " } }",
        "ALIAS_LIMIT",
    ),
    "500 times a field": Harm("{ " + joined(500, "__typename") + " }", "DUPLICATE_FIELD_LIMIT"),
    "repeated inline fragments": Harm(
        "{ " + joined(100, "... { __typename }") + " }", "DUPLICATE_FIELD_LIMIT"
    ),
    "repeated spreads": Harm(
        "{ " + joined(100, "...f") + " } fragment f on Query { __typename }",
        "DUPLICATE_FIELD_LIMIT",
    ),
    "one directive again and again": Harm(
        "{ __typename " + joined(100, "@aa") + " }", "DIRECTIVE_LIMIT"
    ),
    "many directives": Harm(
        "{ __typename " + joined(51, "@include#(if: true)") + " }", "DIRECTIVE_LIMIT"
    ),
    "too many words": Harm("{ " + joined(2_000, "a#") + " }", "TOKEN_LIMIT"),
    "too long": Harm(ROLES + " " * 100_000, "DOCUMENT_TOO_LARGE", 413),
    "one long text": Harm(
        '{ node(id: "' + "x" * 100_000 + '") { id } }', "DOCUMENT_TOO_LARGE", 413
    ),
    "no document": Harm("qwerty $[", "GRAPHQL_PARSE_FAILED", 400),
    "an empty document": Harm("", "GRAPHQL_PARSE_FAILED", 400),
    "an open document": Harm("{ viewer {", "GRAPHQL_PARSE_FAILED", 400),
    "introspection in circles": Harm(CIRCULAR, INVALID),
    "introspection again and again": Harm(
        "{ " + joined(11, "a#: __schema { types { name } }") + " }", "COST_LIMIT"
    ),
    "fragments in circles": Harm(
        "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }", INVALID
    ),
    "lists in lists": Harm(f"{{ nodes(ids: {'[' * 99}{']' * 99}) {{ id }} }}", INVALID),
    "lists deeper than a parser goes": Harm(
        f"{{ nodes(ids: {'[' * 900}{']' * 900}) {{ id }} }}", "GRAPHQL_PARSE_FAILED", 400
    ),
    "objects in objects": Harm(f"{{ nodes(ids: {'{a: ' * 99}1{'}' * 99}) {{ id }} }}", INVALID),
    "lists in lists in a variable": Harm(
        "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }",
        "BAD_USER_INPUT",
        variables={"ids": [[[[[[[["x"]]]]]]]]},
    ),
    "fragments that double": Harm(doubling(30), "COST_LIMIT"),
    "fragments that all compare": Harm(
        "{ " + joined(130, "...f#") + " } "
        + joined(130, "fragment f# on Query { viewer { roles } }"),
        "VALIDATION_LIMIT",
    ),
    "fields that all compare": Harm(
        "{ " + joined(50, "viewer { " + "user { id name status } " + "}") + " "
        + joined(40, "...f#") + " }"
        + joined(40, "fragment f# on Query { viewer { user { id } } }"),
        "VALIDATION_LIMIT",
    ),
    "a long chain of fragments": Harm(
        "{ ...f0 } " + " ".join(f"fragment f{each} on Query {{ ...f{each + 1} }}"
        for each in range(200)) + " fragment f200 on Query { __typename }",
        "VALIDATION_LIMIT",
    ),
    "many operations": Harm(
        joined(200, "query q# { viewer { roles } }"), "OPERATION_RESOLUTION_FAILURE"
    ),
    "many variables": Harm(f"query ({joined(450, '$v#: Int')}) {ROLES}", INVALID, errors=101),
    "many mistakes": Harm("{ " + joined(900, "unknown#") + " }", INVALID, errors=101),
    "large pages of large pages": Harm(
        "{ characters(first: 200) { nodes { trees(first: 200) { nodes { id } } } } }", "COST_LIMIT"
    ),
    "large pages by variables": Harm(
        "query ($n: Int) { characters(first: $n) { nodes { trees(first: $n) { nodes { id } } } } }",
        "COST_LIMIT",
        variables={"n": 200},
    ),
    "a page too large": Harm("{ runs(first: 201) { totalCount } }", "PAGE_LIMIT"),
    "a page too large from the end": Harm(
        "query ($n: Int) { runs(last: $n) { totalCount } }",
        "PAGE_LIMIT",
        variables={"n": 2**31 - 1},
    ),
    "many ids": Harm(
        "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }",
        "COST_LIMIT",
        variables={"ids": ["x"] * 10_001},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HARM)
async def test_a_harmful_document_is_refused_on_every_transport(caller: Caller, name: str) -> None:
    harm = HARM[name]
    refused = await caller.post(harm.query, harm.variables)
    codes = [harm.code] * harm.errors
    assert (refused.status, refused.codes) == (harm.status, codes)
    async with caller.stream(harm.query, harm.variables) as results:
        (streamed,) = [each async for each in results]
    assert streamed == {"errors": refused.body["errors"]}
    async with caller.socket() as socket:
        started = await socket.start(harm.query, harm.variables)
        assert [each async for each in started] == []
        assert started.errors == refused.body["errors"]
    assert await caller.ask(ROLES) == {"viewer": {"roles": []}}


@pytest.mark.parametrize(
    "query",
    [
        f'{{ treeNode(id: "x") {{ {parents(14)} }} }}',
        "{ " + joined(50, "a#: __typename") + " }",
        "{ " + joined(51, "__typename") + " }",
        "{ " + joined(50, "a#: __typename @skip(if: true)") + " viewer { roles } }",
        "{ viewer { roles } } #" + " " * 99_977,
        "{ " + joined(10, "a#: __schema { types { name } }") + " }",
        "{ runs(first: 200) { totalCount } }",
    ],
    ids=["depth", "aliases", "duplicates", "directives", "length", "introspection", "page"],
)  # fmt: skip
async def test_a_document_just_within_the_limits_is_served(caller: Caller, query: str) -> None:
    answer = await caller.post(query)
    assert (answer.status, set(answer.body)) == (200, {"data"})


async def test_a_batch_is_served_up_to_its_limit(caller: Caller) -> None:
    answer = await caller.request("POST", json=[{"query": ROLES}] * 10)
    assert answer.body == [{"data": {"viewer": {"roles": []}}}] * 10
    refused = await caller.request("POST", json=[{"query": ROLES}] * 11)
    assert refused.status == 422
    assert refused.body["errors"] == [
        {
            "message": "A batch has 1 to 10 operations.",
            "extensions": {"code": "BATCH_LIMIT", "found": 11, "limit": 10},
        }
    ]
    refused = await caller.request("POST", json=[[{"query": ROLES}] * 10])
    assert (refused.status, refused.codes) == (422, ["BAD_REQUEST"])


@pytest.mark.parametrize("values", ["[],", '{"":0},', "0,"])
async def test_json_of_very_many_values_is_refused_unread(caller: Caller, values: str) -> None:
    """Two bytes of JSON can ask for eighty of memory: 20 MB of them would take half a gigabyte."""
    body = f'{{"query": "{ROLES}", "variables": {{"value": [{values * 1_000_000}0]}}}}'
    json_type = {"Content-Type": "application/json"}
    refused = await caller.request("POST", headers=json_type, data=body)
    assert (refused.status, refused.codes) == (413, ["REQUEST_TOO_LARGE"])
    async with dialled(caller.server) as connection:
        await connection.send('{"type": "connection_init"}')
        await connection.recv()
        await connection.send(f'{{"type": "subscribe", "id": "1", "payload": {body}}}')
        with pytest.raises(ConnectionClosed) as caught:
            await connection.recv()
    assert caught.value.rcvd is not None
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (
        4400,
        "The message has too many values",
    )


async def test_a_long_text_full_of_signs_is_served(caller: Caller) -> None:
    begun = await caller.begin('[{,"\n' * 150_000)
    (question,) = (await caller.ask(QUESTION, {"id": begun.question})).values()
    await caller.follow(begun.run)
    assert question["content"] == '[{,"\n' * 150_000


async def test_many_errors_of_one_operation_are_all_told(caller: Caller) -> None:
    answer = await caller.post("{ " + joined(50, 'a#: node(id: "x") { id }') + " }")
    assert answer.status == 200
    assert answer.body["data"] == {f"a{each}": None for each in range(50)}
    assert answer.codes == ["MALFORMED_ID"] * 50


# What other sites' pages, and those who look for weak places, send.


@pytest.mark.parametrize(
    ("method", "headers", "body", "status", "code"),
    [
        ("GET", {}, {"params": {"query": ROLES}}, 403, "PREFLIGHT_REQUIRED"),
        ("GET", {}, {"params": {"query": TREE_ASK}}, 403, "PREFLIGHT_REQUIRED"),
        ("GET", PREFLIGHT, {"params": {"query": "mutation { runCancel(input: { runId: 1 }) {"
         " errors { code } } }"}}, 405, "METHOD_NOT_ALLOWED"),
        ("POST", {}, {"data": {"query": ROLES}}, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST", PREFLIGHT, {"data": {"query": ROLES}}, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST", {"Content-Type": "text/plain"}, {"data": "{}"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
        # No page to try things out is found here.
        ("GET", {"Accept": "text/html"}, {}, 403, "PREFLIGHT_REQUIRED"),
        ("GET", {"Accept": "text/html", **PREFLIGHT}, {}, 406, "NOT_ACCEPTABLE"),
    ],
    ids=["GET query", "GET mutation", "GET mutation by a script", "form", "form by a script",
         "plain text", "browser", "browser by a script"],
)  # fmt: skip
async def test_what_a_foreign_page_can_send_is_refused(
    caller: Caller,
    ledger: Ledger,
    method: str,
    headers: dict[str, str],
    body: Json,
    status: int,
    code: str,
) -> None:
    before = await ledger.fingerprint()
    refused = await caller.request(method, headers=headers, **body)
    assert (refused.status, refused.codes) == (status, [code])
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize("header", ["X-Apollo-Tracing", "apollo-federation-include-trace"])
async def test_a_client_cannot_ask_how_long_things_take(caller: Caller, header: str) -> None:
    answer = await caller.post(ROLES, headers={header: "1"})
    assert answer.body == {"data": {"viewer": {"roles": []}}}


# Names that a client has almost guessed.

GUESSES = {
    "{ viewr { roles } }": "Cannot query field 'viewr' on type 'Query'.",
    "{ viewer { role } }": "Cannot query field 'role' on type 'Viewer'.",
    "{ runs(fist: 1) { totalCount } }": "Unknown argument 'fist' on field 'Query.runs'.",
    "{ ... on Qery { __typename } }": "Unknown type 'Qery'.",
    "query ($a: TreeAskInputs) { __typename }": "Unknown type 'TreeAskInputs'.",
    '{ mirrorTree(id: "x") { canonTrunk(scope: WORL) { id } } }': (
        "Value 'WORL' does not exist in 'Realm' enum."
    ),
    'mutation { runCancel(input: { runid: "x", runId: "x" }) { errors { code } } }': (
        "Expected value of type 'RunCancelInput' not to include unknown field 'runid'"
    ),
}
GUESSED_VALUES: list[tuple[str, Json, str]] = [
    (
        "mutation ($a: RunCancelInput!) { runCancel(input: $a) { errors { code } } }",
        {"a": {"runid": "x", "runId": "x"}},
        "runid",
    ),
    (
        'query ($a: Realm!) { mirrorTree(id: "x") { canonTrunk(scope: $a) { id } } }',
        {"a": "WORL"},
        "Value 'WORL' does not exist in 'Realm' enum",
    ),
]


@pytest.fixture(scope="module")
async def guarded(ledger: Ledger, caller: Caller) -> AsyncIterator[Caller]:
    """A user of a second server: in token mode, its schema not to be read by queries."""
    status, printed, _ = await command("user", "guest", DATABASE_URL=ledger.dsn)
    assert status == 0
    token = re.findall(r"\S+", printed.splitlines()[1])[1]
    environment = {"MIRRORGRAPH_AUTH": "token", "MIRRORGRAPH_INTROSPECTION": "false"}
    async with serving(DATABASE_URL=ledger.dsn, **environment) as server:
        yield Caller(server, caller.session, token)


async def told(caller: Caller, query: str, variables: Json | None = None) -> list[str]:
    """The messages with which a document or its variables are refused."""
    refused = await caller.post(query, variables)
    assert refused.status == 422
    assert set(refused.codes) <= {INVALID, "BAD_USER_INPUT"}
    return [each["message"] for each in refused.body["errors"]]


@pytest.mark.parametrize("query", GUESSES)
async def test_names_are_suggested_in_local_mode_alone(
    caller: Caller, guarded: Caller, query: str
) -> None:
    """Rule T32."""
    message = GUESSES[query]
    local = await told(caller, query)
    assert any(each.startswith(message) and "Did you mean" in each for each in local), local
    hidden = await told(guarded, query)
    assert any(each.startswith(message) for each in hidden), hidden
    assert not any("Did you mean" in each for each in hidden), hidden
    async with guarded.socket() as socket:
        started = await socket.start(query)
        assert [each async for each in started] == []
        assert [each["message"] for each in started.errors] == hidden


@pytest.mark.parametrize(("query", "variables", "message"), GUESSED_VALUES)
async def test_names_in_variables_are_suggested_in_local_mode_alone(
    caller: Caller, guarded: Caller, query: str, variables: Json, message: str
) -> None:
    """Rule T32."""
    (local,) = await told(caller, query, variables)
    assert "Did you mean" in local
    (hidden,) = await told(guarded, query, variables)
    assert message in hidden
    assert "Did you mean" not in hidden


@pytest.mark.parametrize(
    "query",
    [
        "{ __schema { types { name } } }",
        '{ __type(name: "Query") { name } }',
        "{ ...f } fragment f on Query { a: __schema { queryType { fields { name } } } }",
    ],
)
async def test_a_server_that_hides_its_schema_does_not_tell_it(guarded: Caller, query: str) -> None:
    (message, *_) = await told(guarded, query)
    assert "introspection has been disabled" in message
    assert (await guarded.request("GET", "/schema.graphql")).status == 404
    assert await guarded.ask("{ __typename }") == {"__typename": "Query"}
