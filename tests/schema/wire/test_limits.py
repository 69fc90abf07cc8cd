from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from graphql import (
    DocumentNode,
    OperationDefinitionNode,
    build_schema,
    get_introspection_query,
    parse,
    validate,
)

from schema.wire.errors import ErrorBody, RequestError
from schema.wire.limits import (
    ASSUMED_LIST,
    LARGEST_COST,
    Cost,
    CostReader,
    Limits,
    check_counts,
)

# So large that a test of one limit meets no other.
BOUNDLESS = Limits(
    **{
        each.name: 10**9
        for each in fields(Limits)
        if each.name not in {"seconds", "request_seconds"}
    }
)
LIMIT_OF_CODE = {
    "DEPTH_LIMIT": "depth",
    "ALIAS_LIMIT": "aliases",
    "DUPLICATE_FIELD_LIMIT": "duplicate_fields",
    "DIRECTIVE_LIMIT": "directives",
}

SCHEMA = build_schema("""
  interface Named { name: String thing: Thing things(first: Int, last: Int): ThingPage! }
  type Thing implements Named {
    name: String
    thing: Thing
    all: [Thing!]!
    things(first: Int, last: Int): ThingPage!
  }
  type Other implements Named {
    name: String
    thing: Thing
    other: Other
    things(first: Int, last: Int): ThingPage!
  }
  union Either = Thing | Other
  type ThingPage { nodes: [Thing!]! edges: [ThingEdge!]! pageInfo: PageInfo! totalCount: Int! }
  type ThingEdge { cursor: String! node: Thing! }
  type PageInfo { endCursor: String }
  type Query {
    thing: Thing
    named: Named
    either: [Either]!
    names: [String!]!
    all: [Thing!]!
    grid: [[Thing!]!]!
    things(first: Int, last: Int): ThingPage!
    byIds(ids: [ID!]!, hints: [ID!]): [Thing]!
  }
  type Mutation { change: Thing }
  type Subscription { watch: Thing }
""")


def refusal(document: str, limits: Limits) -> ErrorBody:
    """The single error with which the counts of a document are refused."""
    with pytest.raises(RequestError) as caught:
        check_counts(parse(document), limits)
    assert caught.value.status == 422
    (error,) = caught.value.errors
    return error


# depth, aliases, duplicate fields, directives
COUNTS = {
    "{ a }": (1, 0, 0, 0),
    "{ a { b { c } } d { e } }": (3, 0, 0, 0),
    # Depth: fragments and inline fragments are no levels of their own.
    "{ ... { ... on T { a { ... { b } } } } }": (2, 0, 0, 0),
    "{ a { ...f } } fragment f on T { b { c } }": (3, 0, 0, 0),
    "{ ...f a { ...f } } fragment f on T { b ...g } fragment g on T { c { d } }": (3, 0, 0, 0),
    "query p { a } query q { a { b } }": (2, 0, 0, 0),
    # Circles, what is unknown and what nobody uses end somewhere.
    "{ ...f } fragment f on T { a { ...f } }": (1, 0, 0, 0),
    "{ ...f } fragment f on T { a { ...g } } fragment g on T { b { ...f } }": (2, 0, 0, 0),
    "{ a { ...unknown } }": (1, 0, 0, 0),
    "{ a } fragment unused on T { a { b { c } } }": (1, 0, 0, 0),
    # Introspection has a rule of its own for its depth.
    "{ __schema { types { fields { type { name } } } } a { b } }": (2, 0, 0, 0),
    "{ __type(name: T) { fields { x: name } } }": (1, 1, 0, 0),
    # Aliases, wherever they are; one that renames nothing is none.
    "{ x: a y: b { z: c } a: a }": (2, 3, 0, 0),
    "{ ...f } fragment f on T { x: a ... { y: b } } fragment unused on T { z: c }": (1, 3, 0, 0),
    # Duplicates: the same key again at the same place, through inline fragments as well.
    "{ a a a }": (1, 0, 2, 0),
    "{ a { b } a { b } }": (2, 0, 1, 0),
    "{ x: a x: b }": (1, 2, 1, 0),
    "{ a ... { a ... on T { a } } b { a } }": (2, 0, 2, 0),
    "{ ...f ... { ...f } b { ...f } } fragment f on T { a }": (2, 0, 1, 0),
    "query p { a } query q { a }": (1, 0, 0, 0),
    # Directives, wherever they are.
    "query ($v: Int @d) @d @d { a @d ... @d { b } ...f @d } fragment f on T @d { c @d }": (
        1,
        0,
        0,
        8,
    ),
    "type T @d { a: Int @d }": (0, 0, 0, 1),
}


@pytest.mark.parametrize("document", COUNTS)
def test_each_count_is_served_up_to_its_limit_and_refused_one_above(document: str) -> None:
    counts = COUNTS[document]
    limits = replace(
        BOUNDLESS,
        depth=counts[0],
        aliases=counts[1],
        duplicate_fields=counts[2],
        directives=counts[3],
    )
    check_counts(parse(document), limits)
    for (code, limit), found in zip(LIMIT_OF_CODE.items(), counts, strict=True):
        if found:
            error = refusal(document, replace(limits, **{limit: found - 1}))
            assert error["extensions"] == {"code": code, "found": found, "limit": found - 1}


@pytest.mark.parametrize(
    ("document", "limits", "message"),
    [
        ("{ a { b } }", Limits(depth=1), "The document is 2 levels deep; 1 at most."),
        ("{ x: a }", Limits(aliases=0), "The document has 1 aliases; 0 at most."),
        (
            "{ " + "a " * 1_501 + "}",
            Limits(duplicate_fields=1_000),
            "The document has 1,500 fields more than once; 1,000 at most.",
        ),
        ("{ a @d @e }", Limits(directives=1), "The document has 2 directives; 1 at most."),
    ],
)
def test_the_refusal_says_what_was_found_and_how_much_is_served(
    document: str, limits: Limits, message: str
) -> None:
    assert refusal(document, limits)["message"] == message


def test_a_long_chain_of_fragments_is_refused_and_not_an_error_of_ours() -> None:
    names = range(2_000)
    chain = " ".join(f"fragment f{each} on T {{ ...f{each + 1} }}" for each in names)
    assert refusal("{ ...f0 } " + chain, BOUNDLESS) == {
        "message": "The document nests its fragments too deeply.",
        "extensions": {"code": "DEPTH_LIMIT", "limit": BOUNDLESS.depth},
    }


def cost_of(document: DocumentNode | str, name: str | None = None) -> Cost:
    """The cost of the operation of a name, or the only one; the document is valid."""
    ast = parse(document) if isinstance(document, str) else document
    assert validate(SCHEMA, ast) == []
    reader = CostReader(SCHEMA, ast)
    costs = {
        each.name.value if each.name else None: reader.cost(each)
        for each in ast.definitions
        if isinstance(each, OperationDefinitionNode)
    }
    return costs[name] if name else next(iter(costs.values()))


@pytest.mark.parametrize(
    ("document", "cost"),
    [
        # Objects cost one each; what is no object costs nothing.
        ("{ __typename names }", 0),
        ("{ thing { name __typename } }", 1),
        ("{ thing { thing { thing { name } } } }", 3),
        ("{ thing { name } x: thing { name } }", 2),
        ("mutation { change { thing { name } } }", 2),
        ("subscription { watch { name } }", 1),
        ("{ thing @skip(if: true) { name } }", 1),
        # A list without a size of its own.
        ("{ all { name } }", ASSUMED_LIST),
        ("{ all { all { name } thing { name } } }", ASSUMED_LIST * (1 + ASSUMED_LIST + 1)),
        ("{ grid { name } }", ASSUMED_LIST),
        # Pages: the connection, and as many rows as were asked for.
        ("{ things { totalCount } }", 1),
        ("{ things { nodes { name } } }", 1 + 20),
        ("{ things(first: 5) { nodes { name } } }", 1 + 5),
        ("{ things(last: 7) { nodes { name } } }", 1 + 7),
        ("{ things(first: 5, last: null) { nodes { name } } }", 1 + 20),
        ("{ things(first: null) { nodes { name } } }", 1 + 20),
        ("{ things(first: 0) { nodes { thing { name } } } }", 1),
        ("{ things(first: -5) { nodes { name } } }", 1),
        ("{ things(first: 5) { edges { cursor node { name } } } }", 1 + 5 * 2),
        ("{ things(first: 5) { nodes { name } edges { node { name } } } }", 1 + 5 + 10),
        ("{ things(first: 5) { pageInfo { endCursor } nodes { name } } }", 1 + 1 + 5),
        ("{ things(first: 3) { nodes { things(first: 4) { nodes { name } } } } }", 19),
        ("{ things(first: 3) { nodes { all { name } } } }", 1 + 3 * (1 + ASSUMED_LIST)),
        # Lists of ids are as long as their ids.
        ('{ byIds(ids: ["a", "b", "c"]) { thing { name } } }', 6),
        ("{ byIds(ids: []) { name } }", 0),
        # A list that may be left out says nothing of the size.
        ('{ byIds(hints: ["x"], ids: ["a", "b", "c"]) { name } }', 3),
        ('{ byIds(ids: "a") { name } }', 1),
        # Fragments: as if they were written out.
        ("{ ...f } fragment f on Query { thing { name } }", 1),
        ("{ ... { ... on Query { thing { name } } } }", 1),
        ("{ things(first: 3) { ...f } } fragment f on ThingPage { nodes { name } }", 4),
        (
            "{ a: things(first: 3) { ...f } b: things(first: 5) { ...f } }"
            " fragment f on ThingPage { nodes { name } }",
            4 + 6,
        ),
        # Of types that exclude each other, both are counted.
        ("{ named { ... on Thing { thing { name } } ... on Other { other { name } } } }", 3),
        ("{ either { ... on Thing { thing { name } } } }", ASSUMED_LIST * 2),
        ("{ named { ... on Named { things(first: 3) { nodes { name } } } } }", 1 + 1 + 3),
        # Introspection.
        ("{ __schema { types { fields { name } } } }", 1_000),
        ('{ __type(name: "Thing") { fields { name } } }', 100),
        (get_introspection_query(), 1_000),
    ],
)
def test_the_cost_of_a_document_is_how_many_objects_it_may_return(document: str, cost: int) -> None:
    assert cost_of(document).check({}, replace(BOUNDLESS, cost=cost)) == cost
    if cost:
        with pytest.raises(RequestError) as caught:
            cost_of(document).check({}, replace(BOUNDLESS, cost=cost - 1))
        assert caught.value.status == 422
        assert caught.value.errors == [
            {
                "message": f"The operation may return {cost:,} objects; {cost - 1:,} at most. "
                "Ask for smaller pages or fewer levels.",
                "extensions": {"code": "COST_LIMIT", "found": cost, "limit": cost - 1},
            }
        ]


PAGE = "query ($n: Int) { things(first: $n) { nodes { name } } }"
PAGE_OR_4 = "query ($n: Int = 4) { things(first: $n) { nodes { name } } }"
PAGE_FROM_THE_END = "query ($n: Int) { things(last: $n) { nodes { name } } }"
IDS = "query ($ids: [ID!]!) { byIds(ids: $ids) { name } }"
IDS_OR_TWO = 'query ($ids: [ID!]! = ["a", "b"]) { byIds(ids: $ids) { name } }'
IDS_ONE_BY_ONE = "query ($a: ID!, $b: ID!) { byIds(ids: [$a, $b]) { name } }"


@pytest.mark.parametrize(
    ("document", "variables", "cost"),
    [
        (PAGE, {}, 21),
        (PAGE, {"n": None}, 21),
        (PAGE, {"n": 0}, 1),
        (PAGE, {"n": 3}, 4),
        (PAGE, {"n": -3}, 21),
        (PAGE_OR_4, {}, 5),
        (PAGE_OR_4, {"n": 9}, 10),
        (PAGE_FROM_THE_END, {"n": 9}, 10),
        (IDS, {"ids": []}, 0),
        (IDS, {"ids": ["a", "b", "c"]}, 3),
        (IDS_OR_TWO, {}, 2),
        (IDS_OR_TWO, {"ids": ["a"]}, 1),
        (IDS_ONE_BY_ONE, {"a": "a", "b": "b"}, 2),
    ],
)
def test_variables_say_how_large_lists_are(
    document: str, variables: Mapping[str, Any], cost: int
) -> None:
    assert cost_of(document).check(variables, BOUNDLESS) == cost


def test_operations_that_share_a_fragment_have_their_own_defaults() -> None:
    document = (
        "query a($n: Int = 3) { ...f } query b($n: Int = 5) { ...f }"
        " fragment f on Query { things(first: $n) { nodes { name } } }"
    )
    assert cost_of(document, "a").check({}, BOUNDLESS) == 4
    assert cost_of(document, "b").check({}, BOUNDLESS) == 6


@pytest.mark.parametrize(
    ("document", "variables", "argument"),
    [
        ("{ things(first: 8) { totalCount } }", {}, "first"),
        ("{ things(last: 8) { totalCount } }", {}, "last"),
        ("{ things(first: 1, last: 8) { totalCount } }", {}, "last"),
        (PAGE, {"n": 8}, "first"),
        (PAGE_FROM_THE_END, {"n": 8}, "last"),
        (PAGE_OR_4, {"n": 8}, "first"),
        (PAGE_OR_4.replace("4", "8"), {}, "first"),
        ("{ ...f } fragment f on Query { things(first: 8) { totalCount } }", {}, "first"),
        ("{ named { ... on Other { things(first: 8) { totalCount } } } }", {}, "first"),
    ],
)
def test_pages_are_served_up_to_their_limit_and_refused_one_above(
    document: str, variables: Mapping[str, Any], argument: str
) -> None:
    cost_of(document).check(variables, replace(BOUNDLESS, page=8))
    with pytest.raises(RequestError) as caught:
        cost_of(document).check(variables, replace(BOUNDLESS, page=7))
    assert caught.value.status == 422
    assert caught.value.errors == [
        {
            "message": f"{argument} is 8; 7 at most.",
            "extensions": {"code": "PAGE_LIMIT", "argument": argument, "found": 8, "limit": 7},
        }
    ]


@pytest.mark.parametrize("levels", [10, 100])
def test_fragments_that_double_at_each_level_are_added_up_once(levels: int) -> None:
    """With 100 levels there are 2^100 ways down: adding them up one by one would never end."""
    doubling = " ".join(
        f"fragment f{each} on Thing {{ a: thing {{ {spread} }} b: thing {{ {spread} }} }}"
        for each, spread in enumerate(f"...f{below}" for below in range(1, levels + 1))
    )
    document = f"{{ thing {{ ...f0 }} }} {doubling} fragment f{levels} on Thing {{ name }}"
    # graphql-core has a limit of its own for levels, which 100 exceed; the cost must not need it.
    reader = CostReader(SCHEMA, parse(document))
    operation = parse(document).definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    cost = reader.cost(operation).check({}, BOUNDLESS if levels == 10 else ANY_COST)
    assert cost == min(2 ** (levels + 1) - 1, LARGEST_COST)


ANY_COST = replace(BOUNDLESS, cost=LARGEST_COST)


def test_fragments_that_double_without_a_field_between_them_are_added_up_once() -> None:
    """Two spreads in each fragment, none repeated: no count is above one, nothing is deep."""
    levels = 60
    doubling = " ".join(
        f"fragment f{each} on Query {{ ...g{each} ...h{each} }}"
        f" fragment g{each} on Query {{ ...f{each + 1} }}"
        f" fragment h{each} on Query {{ ...f{each + 1} }}"
        for each in range(levels)
    )
    document = f"{{ ...f0 }} {doubling} fragment f{levels} on Query {{ thing {{ name }} }}"
    check_counts(parse(document), replace(BOUNDLESS, depth=2, duplicate_fields=0))
    assert cost_of(document).check({}, ANY_COST) == LARGEST_COST


def test_a_negative_page_does_not_pay_for_the_rest() -> None:
    document = (
        "{ x: things(first: -1000000) { nodes { name } } things(first: 9) { nodes { name } } }"
    )
    assert cost_of(document).check({}, BOUNDLESS) == 1 + 1 + 9
