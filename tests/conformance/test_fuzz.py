"""Requests made up by machines, always the same ones: whatever they hold, the server answers, and
says nothing of its own insides.
"""

from __future__ import annotations

import http.client
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import schemathesis
from graphql import GraphQLSchema, NameNode, ObjectFieldNode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_graphql import Mode, mutations, nodes, queries
from schemathesis.core.result import Ok

from schema.root import schema as product
from tests.conftest import ServerProcess

SCHEMA: GraphQLSchema = product._schema
# The scalars of ours that are taken in. What is no file is refused by its own words; places that a
# node quotes are JSON.
PLACES = st.recursive(
    st.just(nodes.Null)
    | st.booleans().map(nodes.Boolean)
    | st.integers(-(2**70), 2**70).map(nodes.Int)
    | st.floats(allow_nan=False, allow_infinity=False).map(nodes.Float)
    | st.text(max_size=5).map(nodes.String),
    lambda below: (
        st.lists(below, max_size=3).map(nodes.List)
        | st.dictionaries(st.sampled_from(["start", "end", "x", "page"]), below, max_size=3).map(
            lambda given: nodes.Object(
                [
                    ObjectFieldNode(name=NameNode(value=name), value=value)
                    for name, value in given.items()
                ]
            )
        )
    ),
    max_leaves=5,
)
TIMES = st.datetimes().map(lambda each: f"{each.isoformat()}Z") | st.text(max_size=5)
SCALARS = {
    "Upload": st.text(max_size=5).map(nodes.String),
    "JSON": PLACES,
    "DateTime": TIMES.map(nodes.String),
    "Long": st.integers(-(2**60), 2**60).map(nodes.Int),
}

usual = settings(
    max_examples=150,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

# What only a mistake of ours would show: names of modules and classes, files, addresses.
INSIDES = re.compile(
    r"Traceback|\.py\b|0x[0-9a-f]{6,}|<class|<function|NoneType|\w+Error\b|\w+Exception\b"
    r"|asyncpg|sqlalchemy|sqlmodel|strawberry|postgres|site-packages|sys\.",
    re.IGNORECASE,
)
# graphql-core speaks of errors of syntax by this name.
HARMLESS = re.compile(r"^Syntax Error: ")


class Sender:
    """Sends requests over one connection; remembers what came of them."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        self.outcomes: Counter[str] = Counter()

    def send(self, body: Any) -> None:
        """Send a request body as JSON, and look at the answer."""
        content = json.dumps(body).encode()
        try:
            response = self._ask(content)
        except ConnectionError:
            # Making a document up may take longer than the server keeps a silent connection.
            self._connection.close()
            response = self._ask(content)
        self.look(response.status, response.read(), body)

    def _ask(self, content: bytes) -> http.client.HTTPResponse:
        self._connection.request("POST", "/graphql", content, {"Content-Type": "application/json"})
        return self._connection.getresponse()

    def look(self, status: int, content: bytes, asked: Any) -> None:
        """Check an answer: its status, and each error's code and message."""
        answers = json.loads(content)
        assert status < 500, (asked, answers)
        # A list of requests has a list of answers, unless it is refused as a whole.
        for answer in answers if isinstance(answers, list) else [answers]:
            self._look_at_one(answer, asked)

    def _look_at_one(self, answer: Any, asked: Any) -> None:
        assert set(answer) <= {"data", "errors"}, (asked, answer)
        for error in answer.get("errors", []):
            assert set(error) <= {"message", "locations", "path", "extensions"}, (asked, error)
            assert error["extensions"]["code"] not in {None, "", "INTERNAL"}, (asked, error)
            # What a client wrote itself it may read again.
            said = without(HARMLESS.sub("", error["message"]), asked)
            assert INSIDES.search(said) is None, (asked, error)
            self.outcomes[error["extensions"]["code"]] += 1
        self.outcomes["data" if answer.get("data") else "no data"] += 1

    def close(self) -> None:
        self._connection.close()


def without(message: str, asked: Any) -> str:
    """A message with what it quotes left out, where the request has that."""
    text = json.dumps(asked, ensure_ascii=False)
    for quoted in re.findall(r"'([^']*)'|\"([^\"]*)\"|: (.*)$", message):
        for each in quoted:
            if each and each in text:
                message = message.replace(each, "")
    return message


@pytest.fixture(scope="module")
def send(server: ServerProcess) -> Iterator[Sender]:
    sender = Sender(server.address)
    yield sender
    sender.close()


def fuzz(strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Check what a strategy makes up."""
    usual(given(strategy)(check))()


def test_valid_queries_are_answered(send: Sender) -> None:
    fuzz(queries(SCHEMA, custom_scalars=SCALARS), lambda text: send.send({"query": text}))
    assert send.outcomes["data"] > 20, send.outcomes


def test_valid_mutations_are_answered(send: Sender) -> None:
    fuzz(mutations(SCHEMA, custom_scalars=SCALARS), lambda text: send.send({"query": text}))
    assert send.outcomes["data"] > 40, send.outcomes


@pytest.mark.parametrize("of", [queries, mutations])
def test_documents_with_a_mistake_are_told_it(send: Sender, of: Any) -> None:
    strategy = of(SCHEMA, custom_scalars=SCALARS, mode=Mode.NEGATIVE)
    fuzz(strategy, lambda text: send.send({"query": text}))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda below: st.lists(below, max_size=3)
    | st.dictionaries(st.text(max_size=4), below, max_size=3),
    max_leaves=6,
)  # fmt: skip

# Every argument that a question or a change has, filled by a variable of any kind.
VARIABLES = """
query Read($a: ID!, $b: [ID!]!, $c: Int, $d: String, $e: Realm!) {
  node(id: $a) { id }
  nodes(ids: $b) { id }
  characters(first: $c, after: $d) { totalCount }
  runs(last: $c, before: $d) { totalCount }
  mirrorTree(id: $a) { canonTrunk(scope: $e) { id } path(to: $a) { id } }
}
mutation Create($identity: EmbryoIdentityInput!, $origin: Origin!) {
  embryoCreate(input: { identity: $identity, origin: $origin }) { errors { code } }
}
mutation Ask($input: TreeAskInput!) { treeAsk(input: $input) { errors { code } } }
mutation Begin($input: TreeCreateInput!) { treeCreate(input: $input) { errors { code } } }
mutation Activate($input: EmbryoActivateInput!) {
  embryoActivate(input: $input) { errors { code } }
}
mutation Update($input: EmbryoUpdateInput!) { embryoUpdate(input: $input) { errors { code } } }
mutation Import($file: Upload!) { cardImport(input: { file: $file }) { errors { code } } }
"""
IDS = st.sampled_from(["tree_1", "character_1", "node_01", "run_1", "", "x"]) | ANYTHING
VALUES = {
    "Read": st.fixed_dictionaries(
        {
            "a": IDS,
            "b": st.lists(IDS, max_size=3) | ANYTHING,
            "c": st.integers(-1, 201) | ANYTHING,
            "d": ANYTHING,
            "e": st.sampled_from(["WORLD", "world"]),
        }
    ),
    "Create": st.fixed_dictionaries(
        {"identity": st.fixed_dictionaries({"name": ANYTHING}) | ANYTHING, "origin": ANYTHING}
    ),
    "Ask": st.fixed_dictionaries(
        {"input": st.fixed_dictionaries({"treeId": IDS, "text": ANYTHING}) | ANYTHING}
    ),
    "Begin": st.fixed_dictionaries(
        {"input": st.fixed_dictionaries({"characterId": IDS, "topic": ANYTHING}) | ANYTHING}
    ),
    "Activate": st.fixed_dictionaries(
        {"input": st.fixed_dictionaries({"embryoId": IDS, "confirmed": ANYTHING}) | ANYTHING}
    ),
    "Update": st.fixed_dictionaries(
        {
            "input": st.fixed_dictionaries(
                {"embryoId": IDS},
                optional={
                    "identity": st.fixed_dictionaries(
                        {}, optional={"name": ANYTHING, "nickname": ANYTHING}
                    )
                    | ANYTHING,
                    "confirmed": ANYTHING,
                    "expectedVersion": ANYTHING,
                },
            )
            | ANYTHING
        }
    ),
    "Import": st.fixed_dictionaries({"file": ANYTHING}),
}


@pytest.mark.parametrize("operation", VALUES)
def test_variables_of_any_kind_are_taken_or_refused(send: Sender, operation: str) -> None:
    asked = {"query": VARIABLES, "operationName": operation}
    fuzz(VALUES[operation], lambda variables: send.send({**asked, "variables": variables}))


def test_bodies_of_any_kind_are_taken_or_refused(send: Sender) -> None:
    names = ("query", "operationName", "variables", "extensions", "documentId")
    body = ANYTHING | st.fixed_dictionaries({}, optional=dict.fromkeys(names, ANYTHING))
    text = ANYTHING.map(json.dumps) | st.text(max_size=30)
    fuzz(body, send.send)
    fuzz(st.lists(body, max_size=3), send.send)
    fuzz(text, lambda written: send.send({"query": written}))


def test_schemathesis_finds_nothing_but_errors_of_the_client(
    server: ServerProcess, send: Sender
) -> None:
    for name, strategy in SCALARS.items():
        schemathesis.graphql.scalar(name, strategy)
    found = schemathesis.graphql.from_url(server.url)
    operations = [each.ok() for each in found.get_all_operations() if isinstance(each, Ok)]
    expected = [SCHEMA.query_type, SCHEMA.mutation_type]
    assert {each.label for each in operations} == {
        f"{each.name}.{name}" for each in expected if each for name in each.fields
    }

    def check(case: Any) -> None:
        answer = case.call()
        send.look(answer.status_code, answer.content, case.body)

    for each in operations:
        settings(usual, max_examples=8)(given(each.as_strategy())(check))()
