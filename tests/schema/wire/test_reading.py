"""What is refused while it is read: JSON, tokens, and what takes too long to validate. And that
real documents are far from all limits.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphql import GraphQLSchema, get_introspection_query, parse

from schema.wire.documents import Document, DocumentReader, FrugalOverlapRule
from schema.wire.errors import Refused
from schema.wire.limits import Limits, check_counts
from schema.wire.requests import MOST_VALUES, has_too_many_values, parse_json
from tests.conftest import shared
from tests.schema.wire.test_limits import BOUNDLESS, SCHEMA

# What a document meets before and while it is validated.


def read(document: str, limits: Limits, schema: GraphQLSchema = SCHEMA) -> Document:
    return DocumentReader(schema, limits, suggestions=True, introspection=True).read("id", document)


def told(document: Document) -> list[tuple[str, str]]:
    """Codes and messages."""
    return [(each["extensions"]["code"], each["message"]) for each in document.errors]


def test_tokens_are_served_up_to_their_limit_and_refused_one_above() -> None:
    # A bare name is a token, a text another, a comment one more for graphql-core.
    document = '{ byIds(ids: ["a b c"]) { name } } # of things'
    assert told(read(document, replace(BOUNDLESS, tokens=14))) == []
    refused = read(document, replace(BOUNDLESS, tokens=12))
    assert told(refused) == [("TOKEN_LIMIT", "The document has more than 12 tokens.")]
    assert refused.errors[0]["extensions"] == {"code": "TOKEN_LIMIT", "limit": 12}
    assert refused.status == 422


@pytest.mark.parametrize(
    "document",
    [
        "{" + "thing{" * 400 + "name" + "}" * 401,
        "{ byIds(ids: " + "[" * 900 + "]" * 900 + ") { name } }",
        "{ byIds(ids: " + "{a:" * 600 + "1" + "}" * 600 + ") { name } }",
        "query ($v: " + "[" * 900 + "Int" + "]" * 900 + ") { names }",
        "{" + "...{" * 400 + "names" + "}" * 401,
    ],
    ids=["fields", "lists", "objects", "types", "inline fragments"],
)
def test_a_document_too_deep_for_the_parser_is_refused(document: str) -> None:
    refused = read(document, BOUNDLESS)
    assert (refused.status, told(refused)) == (
        400,
        [
            (
                "GRAPHQL_PARSE_FAILED",
                "Syntax Error: Document is nested too deeply. Parsing aborted.",
            )
        ],
    )


TOO_LONG = (
    "VALIDATION_LIMIT",
    "The document takes too long to check: repeat fewer fields, nest fewer fragments.",
)


@pytest.mark.parametrize(
    "document",
    [
        # Every fragment is compared with every other.
        "{ " + " ".join(f"...f{each}" for each in range(150)) + " }"
        + " ".join(f"fragment f{each} on Query {{ thing {{ name }} }}" for each in range(150)),
        # Every field is compared with every other of its name, and then all that is below.
        "{ " + ("thing { " + "name " * 20 + "} ") * 50 + "}",
        # Fragments nest deeper than may be validated.
        "{ ...f0 } " + " ".join(f"fragment f{each} on Query {{ ...f{each + 1} }}"
        for each in range(300)) + " fragment f300 on Query { names }",
    ],
    ids=["fragments", "fields", "chain"],
)  # fmt: skip
def test_a_document_that_takes_too_long_to_validate_is_refused(document: str) -> None:
    refused = read(document, BOUNDLESS)
    assert (refused.status, told(refused)[-1:]) == (422, [TOO_LONG])


def test_the_rule_that_is_cut_short_is_the_specifications_own_otherwise() -> None:
    document = "{ thing { x: name } thing { x: thing { name } } }"
    assert told(read(document, BOUNDLESS)) == [
        (
            "GRAPHQL_VALIDATION_FAILED",
            "Fields 'thing' conflict because subfields 'x' conflict because 'name' and 'thing' are "
            "different fields. Use different aliases on the fields to fetch both if this was "
            "intentional.",
        )
    ]
    assert FrugalOverlapRule.COMPARISONS == 30_000


def test_a_number_that_python_cannot_read_is_the_clients_mistake() -> None:
    document = "{ things(first: " + "9" * 5_000 + ") { totalCount } }"
    assert told(read(document, BOUNDLESS)) == [
        ("GRAPHQL_VALIDATION_FAILED", "Expected value of type 'Int'.")
    ]


def test_validation_stops_after_a_hundred_errors() -> None:
    document = "{ " + " ".join(f"unknown{each}" for each in range(500)) + " }"
    refused = told(read(document, BOUNDLESS))
    assert len(refused) == 101
    assert refused[-1] == (
        "GRAPHQL_VALIDATION_FAILED",
        "Too many validation errors, error limit reached. Validation aborted.",
    )


# The defaults let real documents through, several times over.

INTROSPECTION = {
    "usual": get_introspection_query(),
    "all options": get_introspection_query(
        descriptions=True,
        specified_by_url=True,
        directive_is_repeatable=True,
        schema_description=True,
        input_value_deprecation=True,
    ),
}


@pytest.mark.parametrize("document", INTROSPECTION.values(), ids=INTROSPECTION)
def test_introspection_fits_the_limits_several_times(document: str) -> None:
    assert told(read(document, tightened(Limits(), 5))) == []


def test_documents_of_real_clients_fit_the_limits_several_times() -> None:
    names = sorted(each.name for each in shared("acceptance").glob("*.graphql"))
    assert names
    limits = tightened(Limits(), 2)
    for name in names:
        document = parse(shared("acceptance", name).read_text(), max_tokens=limits.tokens)
        check_counts(document, limits)


def tightened(limits: Limits, factor: int) -> Limits:
    """Limits that are so many times smaller."""
    names = ("document_bytes", "tokens", "depth", "aliases", "duplicate_fields", "directives")
    return replace(limits, **{name: getattr(limits, name) // factor for name in names})


# What a request's JSON may hold.


@pytest.mark.parametrize(
    ("pattern", "values"),
    [
        ("[#]", "0,"),
        ("[#]", "[],"),
        ("[#]", '{"":0},'),
        ("{#}", '"x":0,'),
        ("[#]", '"x",'),
        ("[#]", r'"\"\\",'),
        ('["of ends" #]', ",[{"),
    ],
)
def test_values_are_served_up_to_their_limit_and_refused_above(pattern: str, values: str) -> None:
    signs = sum(values.count(each) for each in "[{,")
    before = MOST_VALUES // signs - 1
    assert not has_too_many_values(pattern.replace("#", values * before))
    assert has_too_many_values(pattern.replace("#", values * (before + 2)))


@pytest.mark.parametrize("text", [",", "[", "{", r"\",", r"\\,", "é,", '",'])
def test_signs_within_a_text_are_no_values(text: str) -> None:
    many = MOST_VALUES + 1
    inside = f'{{"text": "{text * many}"}}' if text != '",' else '["' + '\\",' * many + '"]'
    assert not has_too_many_values(inside)
    # A text without an end is one as well: the reader finds out.
    assert not has_too_many_values(inside[:-2])


def test_a_request_of_too_many_values_is_not_read() -> None:
    for content in ("[" + "[]," * MOST_VALUES, b"[" + b"[]," * MOST_VALUES):
        with pytest.raises(Refused) as caught:
            parse_json(content, "`operations`")
        assert (caught.value.status, caught.value.errors) == (
            413,
            [
                {
                    "message": "`operations` has more than 100,000 values.",
                    "extensions": {"code": "REQUEST_TOO_LARGE"},
                }
            ],
        )
