"""The document cache: what it keeps, in which order it drops it, and what that weighs."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from graphql import get_introspection_query

from schema.wire.documents import DocumentCache, DocumentReader
from schema.wire.errors import RequestError
from schema.wire.limits import Limits
from schema.wire.requests import OperationRequest, request_of
from tests.schema.wire.asking import asking
from tests.schema.wire.serving import probe_schema

WEIGHT_OF_ENTRY, WEIGHT_OF_TEXT, WEIGHT_OF_ERROR = 3_000, 130, 1_000


def reader_of(limits: Limits = Limits(), **given: bool) -> DocumentReader:  # noqa: B008
    given = {"suggestions": False, "introspection": True, **given}
    return DocumentReader(probe_schema._schema, limits, **given)


def cache_of(entries: int = 100, size: int = 10_000_000, **given: Any) -> DocumentCache:
    return DocumentCache(reader_of(), Limits(), entries=entries, size=size, **given)


def by_text(text: str) -> OperationRequest:
    return request_of({"query": text})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def by_hash(text: str) -> OperationRequest:
    return request_of({"documentId": f"sha256:{digest(text)}"})


def greeting(number: int) -> str:
    return f'{{ hello(name: "{number:04}") }}'


def known(cache: DocumentCache, texts: Sequence[str]) -> list[str]:
    """Which of the texts the cache knows; looking makes them the last to be dropped."""
    found = []
    for text in texts:
        with contextlib.suppress(RequestError):
            cache.find(by_hash(text))
            found.append(text)
    return found


def test_a_document_is_read_once() -> None:
    cache = cache_of()
    document = cache.find(by_text("{ hello }"))
    assert (cache.hits, cache.misses, len(cache)) == (0, 1, 1)
    assert document.id == f"sha256:{digest('{ hello }')}"
    assert cache.find(by_text("{ hello }")) is document
    assert cache.find(by_hash("{ hello }")) is document
    assert (cache.hits, cache.misses, len(cache)) == (2, 1, 1)


def test_every_other_text_is_another_document() -> None:
    cache = cache_of()
    texts = ["{ hello }", "{hello}", "{ hello } ", "query { hello }", "{ Hello }"]
    assert len({id(cache.find(by_text(text))) for text in texts}) == 5
    assert (cache.hits, cache.misses, len(cache)) == (0, 5, 5)


@pytest.mark.parametrize("text", ["{", "{ nothing }", "{ " + "thing { " * 20 + "}" * 20])
def test_what_is_wrong_with_a_document_is_kept_as_well(text: str) -> None:
    cache = cache_of()
    document = cache.find(by_text(text))
    assert document.errors
    assert document.ast is None
    assert cache.find(by_text(text)) is document
    assert (cache.hits, cache.misses, len(cache)) == (1, 1, 1)
    raised = []
    for _ in range(2):
        with pytest.raises(RequestError) as caught:
            document.operation(None)
        raised.append(caught.value)
    # Equal, but not the same: somebody may add headers to one.
    assert raised[0].errors == raised[1].errors == list(document.errors)
    assert raised[0] is not raised[1]
    assert raised[0].errors is not raised[1].errors


def test_an_unknown_operation_leaves_the_document_known() -> None:
    cache = cache_of()
    document = cache.find(by_text("query A { hello } query B { caller }"))
    for name in (None, "C"):
        with pytest.raises(RequestError, match="A, B"):
            document.operation(name)
    assert document.operation("A").name == "A"
    assert document.operation("B").name == "B"


def test_the_least_recently_used_document_is_dropped_first() -> None:
    cache = cache_of(entries=3)
    a, b, c, d, e = map(greeting, range(5))
    for text in (a, b, c):
        cache.find(by_text(text))
    cache.find(by_text(a))
    cache.find(by_text(d))
    assert len(cache) == 3
    assert known(cache, [b]) == []
    # By its hash it counts as used as well.
    cache.find(by_hash(c))
    cache.find(by_text(e))
    assert known(cache, [a, b, c, d, e]) == [c, d, e]
    assert cache.misses == 5


def test_the_cache_is_bounded_in_bytes() -> None:
    text = greeting(0)
    weight = WEIGHT_OF_ENTRY + WEIGHT_OF_TEXT * len(text)
    cache = cache_of(size=3 * weight + 1)
    for number in range(10):
        cache.find(by_text(greeting(number)))
        assert cache.bytes == weight * min(number + 1, 3)
    assert known(cache, [greeting(number) for number in range(10)]) == list(
        map(greeting, (7, 8, 9))
    )


def test_a_large_document_drops_as_many_as_it_needs() -> None:
    small = WEIGHT_OF_ENTRY + WEIGHT_OF_TEXT * len(greeting(0))
    large = "{ hello }".ljust(3 * len(greeting(0)))
    cache = cache_of(size=5 * small)
    for number in range(5):
        cache.find(by_text(greeting(number)))
    assert (len(cache), cache.bytes) == (5, 5 * small)
    cache.find(by_text(large))
    assert known(cache, [large, *map(greeting, range(5))]) == [large, *map(greeting, (2, 3, 4))]
    assert cache.bytes == 3 * small + WEIGHT_OF_ENTRY + WEIGHT_OF_TEXT * len(large)


def test_a_document_larger_than_the_cache_is_served_and_not_kept() -> None:
    cache = cache_of(size=WEIGHT_OF_ENTRY + WEIGHT_OF_TEXT * 20)
    cache.find(by_text("{ hello }"))
    large = "{ hello caller }".ljust(21)
    for _ in range(2):
        assert cache.find(by_text(large)).operation(None).name is None
    assert known(cache, ["{ hello }", large]) == ["{ hello }"]
    assert cache.misses == 3


def test_a_refused_document_weighs_by_its_errors() -> None:
    cache = cache_of()
    assert len(cache.find(by_text("{ a b c }" + " " * 90_000)).errors) == 3
    assert cache.bytes == WEIGHT_OF_ENTRY + 3 * WEIGHT_OF_ERROR


def test_a_text_that_is_too_long_is_neither_hashed_nor_kept() -> None:
    cache = cache_of()
    with pytest.raises(RequestError, match=r"at most 100,000 characters") as caught:
        cache.find(by_text("{ hello }".ljust(100_001)))
    assert (caught.value.status, caught.value.code) == (413, "DOCUMENT_TOO_LARGE")
    assert (len(cache), cache.misses) == (0, 0)


SHAPES = {
    "one field": "{ hello }",
    "indented": "{\n" + "  thing {\n    number\n    thing {\n      number\n    }\n  }\n" * 20 + "}",
    "dense": "{" + "".join(f"a{number}:thing{{number loaded}}" for number in range(49)) + "}",
    "arguments": "query Q($ids: [Int!]!, $first: Int) {\n"
    + "".join(
        f"  list{number}: listOf(ids: $ids) {{ number things(first: $first) {{ nodes {{ number }}"
        " } }\n"
        for number in range(20)
    )
    + "}",
    "fragments": "{ thing { "
    + " ".join(f"...Fragment{number}" for number in range(30))
    + " } }"
    + "".join(f" fragment Fragment{number} on Thing {{ number }}" for number in range(30)),
    "operations": "\n".join(
        f"query Operation{number}($name: String) {{ hello(name: $name) caller }}"
        for number in range(30)
    ),
    "introspection": get_introspection_query(),
    "long text": f'{{ hello(name: "{"x" * 20_000}") }}',
    "one error": "{ nothing }",
    "thirty errors": "{" + "".join(f"nothing{number} " for number in range(30)) + "}",
    "syntax error": "{ hello " + "x " * 400,
}


def test_documents_weigh_no_more_than_is_counted() -> None:
    """Measured as memory that is held, garbage left out."""
    limits = Limits(tokens=10_000)
    cache = DocumentCache(reader_of(limits), limits, entries=1_000, size=10**9)
    gc.freeze()  # the rest of the tests need not be looked through again and again
    tracemalloc.start()
    try:
        # Python keeps small tuples and the like for use again: what that takes is not ours, and
        # is at its most after this.
        for number in range(200):
            cache.find(by_text("{ caller }".ljust(10 + number)))
        weights = {shape: _weights(cache, text) for shape, text in SHAPES.items()}
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    heavier = {shape: each for shape, each in weights.items() if each[0] > each[1]}
    assert heavier == {}


def _weights(cache: DocumentCache, text: str) -> tuple[int, int]:
    """What some documents take in memory, and what the cache counts for them."""
    cache.find(by_text(text))
    gc.collect()
    counted, (held, _) = cache.bytes, tracemalloc.get_traced_memory()
    for number in range(1, 3):
        cache.find(by_text(text + " " * number))
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - held, cache.bytes - counted


async def test_hits_over_the_wire() -> None:
    async with asking() as asker:
        documents = asker.wire.operations.documents
        for name in ("Ada", "Eve", "Zoë"):
            asked = {
                "query": "query Q($name: String!) { hello(name: $name) }",
                "variables": {"name": name},
            }
            assert (await asker.post(asked)).body == {"data": {"hello": f"hello {name}"}}
        assert (documents.hits, documents.misses, len(documents)) == (2, 1, 1)


@pytest.mark.parametrize(
    "text", ["{ __schema { queryType { name } } }", '{ __type(name: "A") { name } }']
)
async def test_introspection_can_be_switched_off(text: str) -> None:
    async with asking(introspection=False) as asker:
        answer = await asker.post({"query": text})
        assert answer.status == 422
        codes = {each["extensions"]["code"] for each in answer.body["errors"]}
        assert codes == {"GRAPHQL_VALIDATION_FAILED"}
        assert answer.body["errors"][0]["message"].startswith(
            "GraphQL introspection has been disabled"
        )
        answer = await asker.post({"query": "{ __typename }"})
        assert answer.body == {"data": {"__typename": "Query"}}
    async with asking() as asker:
        assert (await asker.post({"query": text})).status == 200


@pytest.mark.parametrize(
    ("suggestions", "said"), [(True, " Did you mean 'hello' or 'caller'?"), (False, "")]
)
async def test_suggestions_of_names_can_be_hidden(suggestions: bool, said: str) -> None:
    """Rule T32: the message itself stays, and so does its code."""
    async with asking(suggestions=suggestions) as asker:
        answer = await asker.post({"query": "{ hallo }"})
        assert answer.message == f"Cannot query field 'hallo' on type 'Query'.{said}"
        assert answer.code == "GRAPHQL_VALIDATION_FAILED"
        answer = await asker.post(
            {
                "query": "query Q($input: NumberInput!) { twice(input: $input) }",
                "variables": {"input": {"numbr": 1, "number": 1}},
            }
        )
        assert ("Did you mean" in answer.message) is suggestions
        assert answer.code == "BAD_USER_INPUT"
