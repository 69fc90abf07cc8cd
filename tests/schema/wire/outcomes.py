"""What can become of a request over HTTP: one table, for every kind of client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.schema.wire.asking import error


@dataclass(frozen=True)
class Outcome:
    """One request and all of its answers.

    `kind` says who speaks: the executor, whose answers come in the media type that the client
    wants; a GraphQL request error, which is a well-formed response; or HTTP, which answers in
    plain JSON since there is no GraphQL response.
    """

    name: str
    asked: Any
    kind: str
    body: dict[str, Any]
    status: int
    # With legacy status codes, for clients of GraphQL's media type. Clients of JSON get 200 for
    # whatever is a well-formed response.
    legacy: int
    # For clients of JSON alone, where they get another.
    json_status: int | None = None


SEVERAL = "query A { hello } query B { caller }"
ADDED = "query Twice($number: Int!) { twice(input: { number: $number }) }"
DOUBLED = "query Twice($input: NumberInput!) { twice(input: $input) }"


def executed(name: str, asked: Any, body: dict[str, Any], status: int = 200) -> Outcome:
    return Outcome(name, asked, "executed", body, status, 200, 200)


def failed(name: str, asked: Any, status: int, *errors: dict[str, Any]) -> Outcome:
    return Outcome(name, asked, "request error", {"errors": list(errors)}, status, 400)


def refused(
    name: str, asked: Any, message: str, status: int = 422, code: str = "BAD_REQUEST"
) -> Outcome:
    return Outcome(name, asked, "http", {"errors": [error(code, message)]}, status, 400)


def no_object(name: str) -> str:
    return f"`{name}` is an object or null."


def no_text(name: str) -> str:
    return f"`{name}` is a text or null."


NOT_JSON = "The body is not JSON in UTF-8."
NO_DOCUMENT = "The request has no document: put its text into `query`."
NO_REQUEST = "The request is a JSON object with the document in `query`."
HELLO = {"data": {"hello": "hello world"}}
TWICE = {"data": {"twice": 6}}

OUTCOMES = [
    executed("a query", {"query": "{ hello }"}, HELLO),
    executed("a mutation", {"query": "mutation { set(value: 0) }"}, {"data": {"set": 0}}),
    executed("variables", {"query": ADDED, "variables": {"number": 3}}, TWICE),
    executed(
        "one operation of several",
        {"query": SEVERAL, "operationName": "B"},
        {"data": {"caller": "anybody"}},
    ),
    executed("an empty operation name", {"query": "{ hello }", "operationName": ""}, HELLO),
    executed(
        "null for everything that may be left out",
        {"query": "{ hello }", "operationName": None, "variables": None, "extensions": None},
        HELLO,
    ),
    executed("extensions", {"query": "{ hello }", "extensions": {"anything": [1]}}, HELLO),
    executed(
        "members that mean nothing",
        {"query": "{ hello }", "id": 1, "doc_id": [], "qeury": None, "OperationName": 7},
        HELLO,
    ),
    executed(
        "partial data",
        {"query": "{ hello refused }"},
        {
            "data": {"hello": "hello world", "refused": None},
            "errors": [
                {
                    **error("MEND_THIS", "Mend this.", (1, 9), argument="argument"),
                    "path": ["refused"],
                }
            ],
        },
        294,
    ),
    failed(
        "a syntax error",
        {"query": "{ hello"},
        400,
        error("GRAPHQL_PARSE_FAILED", "Syntax Error: Expected Name, found <EOF>.", (1, 8)),
    ),
    failed(
        "an empty document",
        {"query": ""},
        400,
        error("GRAPHQL_PARSE_FAILED", "Syntax Error: Unexpected <EOF>.", (1, 1)),
    ),
    failed(
        "a document of nothing but braces, far too deep",
        {"query": "{" * 4000},
        400,
        error(
            "GRAPHQL_PARSE_FAILED",
            "Syntax Error: Expected Name, found '{'.",
            (1, 2),
        ),
    ),
    failed(
        "validation errors",
        {"query": "{\n  nothing\n  twice\n}"},
        422,
        error(
            "GRAPHQL_VALIDATION_FAILED",
            "Cannot query field 'nothing' on type 'Query'. Did you mean 'thing' or 'things'?",
            (2, 3),
        ),
        error(
            "GRAPHQL_VALIDATION_FAILED",
            "Argument 'Query.twice(input:)' of type 'NumberInput!' is required, but it was not "
            "provided.",
            (3, 3),
        ),
    ),
    failed(
        "no operation",
        {"query": "fragment Named on Query { hello }"},
        422,
        error("GRAPHQL_VALIDATION_FAILED", "Fragment 'Named' is never used.", (1, 1)),
    ),
    failed(
        "definitions of types",
        {"query": "type Other { field: Int }"},
        422,
        error("GRAPHQL_VALIDATION_FAILED", "The 'Other' definition is not executable.", (1, 1)),
    ),
    failed(
        "an unknown operation",
        {"query": SEVERAL, "operationName": "C"},
        422,
        error("OPERATION_RESOLUTION_FAILURE", "The document has no operation 'C', but A, B."),
    ),
    failed(
        "a name where the operation has none",
        {"query": "{ hello }", "operationName": "C"},
        422,
        error(
            "OPERATION_RESOLUTION_FAILURE",
            "The document has no operation 'C', but one without a name.",
        ),
    ),
    failed(
        "several operations and no name",
        {"query": SEVERAL},
        422,
        error(
            "OPERATION_RESOLUTION_FAILURE",
            "The document has several operations: say in operationName which, of A, B.",
        ),
    ),
    failed(
        "several operations and an empty name",
        {"query": SEVERAL, "operationName": ""},
        422,
        error(
            "OPERATION_RESOLUTION_FAILURE",
            "The document has several operations: say in operationName which, of A, B.",
        ),
    ),
    failed(
        "a variable left out",
        {"query": DOUBLED},
        422,
        error(
            "BAD_USER_INPUT",
            "Variable '$input' has invalid value: Expected a value of non-null type "
            "'NumberInput!' to be provided.",
            (1, 13),
        ),
    ),
    failed(
        "variables of the wrong type, each told",
        {
            "query": "query Q($a: Int!, $b: Boolean!) { twice(input: {number: $a}) "
            "hello @include(if: $b) }",
            "variables": {"a": "three", "b": 1},
        },
        422,
        error(
            "BAD_USER_INPUT",
            "Variable '$a' has invalid value: Int cannot represent non-integer value: 'three'",
            (1, 9),
        ),
        error(
            "BAD_USER_INPUT",
            "Variable '$b' has invalid value: Boolean cannot represent a non boolean value: 1",
            (1, 19),
        ),
    ),
    failed(
        "a number too large for Int",
        {"query": DOUBLED, "variables": {"input": {"number": 2**31}}},
        422,
        error(
            "BAD_USER_INPUT",
            "Variable '$input' has invalid value at .number: Int cannot represent non 32-bit "
            "signed integer value: 2147483648",
            (1, 13),
        ),
    ),
    failed(
        "a number too large for 64 bits",
        {"query": DOUBLED, "variables": {"input": {"number": 2**64}}},
        422,
        error(
            "BAD_USER_INPUT",
            "Variable '$input' has invalid value at .number: Int cannot represent non 32-bit "
            "signed integer value: 1.8446744073709552e+19",
            (1, 13),
        ),
    ),
    failed(
        "a deep variable",
        b'{"query": "query Q($name: String) { hello(name: $name) }", "variables": {"name": '
        + b"[" * 900
        + b"]" * 900
        + b"}}",
        422,
        error(
            "BAD_USER_INPUT",
            "Variable '$name' has invalid value: String cannot represent a non string value",
            (1, 9),
        ),
    ),
    refused("no query", {}, NO_DOCUMENT),
    refused("a misspelt query", {"qeury": "{ hello }"}, NO_DOCUMENT),
    refused("a null query", {"query": None}, NO_DOCUMENT),
    *(
        refused(f"a query of the wrong type: {value!r}", {"query": value}, no_text("query"))
        for value in (0, 1.5, True, False, [], ["{ hello }"], {}, {"a": 1})
    ),
    *(
        refused(
            f"an operationName of the wrong type: {value!r}",
            {"query": "{ hello }", "operationName": value},
            no_text("operationName"),
        )
        for value in (0, 1.5, False, [], {})
    ),
    *(
        refused(
            f"{name} of the wrong type: {value!r}",
            {"query": "{ hello }", name: value},
            no_object(name),
        )
        for name in ("variables", "extensions")
        for value in (0, 1.5, False, "", "{}", [], [7])
    ),
    refused("a documentId of the wrong type", {"documentId": 7}, no_text("documentId")),
    *(refused(f"{value!r} as the body", value, NO_REQUEST) for value in (None, 7, True, "query")),
    *(
        refused(name, content, NOT_JSON, 400)
        for name, content in (
            ("an empty body", b""),
            ("nonsense", b"NONSENSE"),
            ("JSON that breaks off", b'{"query":'),
            ("two values", b'{"query": "{ hello }"} {}'),
            ("single quotes", b"{'query': '{ hello }'}"),
            ("bytes that are not UTF-8", b'{"query": "{ hello }", "operationName": "\xff"}'),
            ("a surrogate in bytes", b'{"query": "{ hello }", "operationName": "\xed\xa0\x80"}'),
            ("a lone surrogate", b'{"query": "{ hello }", "operationName": "\\ud800"}'),
            ("UTF-16", '{"query": "{ hello }"}'.encode("utf-16")),
            ("NaN", b'{"query": "{ hello }", "variables": {"a": NaN}}'),
            ("Infinity", b'{"query": "{ hello }", "variables": {"a": -Infinity}}'),
            ("an infinite number", b'{"query": "{ hello }", "variables": {"a": 1e999}}'),
            (
                "an endless number",
                b'{"query": "{ hello }", "variables": {"a": ' + b"1" * 400 + b"}}",
            ),
            ("JSON far too deep", b'{"query": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
            ("JSON too deep that breaks off", b"[" * 5_000),
        )
    ),
]
