"""How the parameters of a request are read, whatever brought them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from schema.wire.errors import Refused, RequestError
from schema.wire.limits import Limits
from schema.wire.requests import OperationRequest, in_time, parse_json, request_of

HASH = "ab" * 32


def automatic(**members: Any) -> dict[str, Any]:
    return {"persistedQuery": {"version": 1, "sha256Hash": HASH, **members}}


def request(query: str | None = "{ a }", **members: Any) -> OperationRequest:
    empty: dict[str, Any] = {
        "operation_name": None,
        "variables": {},
        "extensions": {},
        "document_id": None,
        "is_automatic": False,
    }
    return OperationRequest(query, **{**empty, **members})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"query": "{ a }"}, request()),
        ({"query": ""}, request("")),
        ({"query": "{ a }", "operationName": "A"}, request(operation_name="A")),
        ({"query": "{ a }", "operationName": ""}, request()),
        ({"query": "{ a }", "operationName": None}, request()),
        ({"query": "{ a }", "variables": {"a": [1]}}, request(variables={"a": [1]})),
        ({"query": "{ a }", "variables": {}}, request()),
        ({"query": "{ a }", "variables": None}, request()),
        ({"query": "{ a }", "extensions": {"b": 1}}, request(extensions={"b": 1})),
        ({"query": "{ a }", "extensions": None}, request()),
        ({"query": "{ a }", "documentId": None}, request()),
        ({"query": "{ a }", "more": 1, "Variables": 2}, request()),
        ({"documentId": "a"}, request(None, document_id="a")),
        ({"query": "{ a }", "documentId": "a"}, request(document_id="a")),
        (
            {"extensions": automatic()},
            request(None, document_id=f"sha256:{HASH}", extensions=automatic(), is_automatic=True),
        ),
        (
            {"query": "{ a }", "extensions": automatic(sha256Hash=HASH.upper())},
            request(
                document_id=f"sha256:{HASH}",
                extensions=automatic(sha256Hash=HASH.upper()),
                is_automatic=True,
            ),
        ),
        (
            {"documentId": "a", "extensions": automatic()},
            request(None, document_id="a", extensions=automatic(), is_automatic=True),
        ),
        (
            {"query": "{ a }", "extensions": {"persistedQuery": None}},
            request(extensions={"persistedQuery": None}),
        ),
    ],
)
def test_well_formed_requests(given: dict[str, Any], expected: OperationRequest) -> None:
    assert request_of(given) == expected


NO_OBJECT = "The request is a JSON object with the document in `query`."
NO_DOCUMENT = "The request has no document: put its text into `query`."
BAD_HASH = "extensions.persistedQuery has a version, which is 1, and a sha256Hash."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *((each, NO_OBJECT) for each in (None, 0, "", "{ a }", True, [], [{}])),
        *((each, NO_DOCUMENT) for each in ({}, {"query": None}, {"documentId": None})),
        *(({"query": each}, "`query` is a text or null.") for each in (0, False, [], {})),
        *(
            ({"query": "{ a }", name: each}, f"`{name}` is a text or null.")
            for name in ("operationName", "documentId")
            for each in (0, False, [], {})
        ),
        *(
            ({"query": "{ a }", name: each}, f"`{name}` is an object or null.")
            for name in ("variables", "extensions")
            for each in (0, False, "", "{}", [])
        ),
        *(
            ({"query": "{ a }", "extensions": {"persistedQuery": each}}, BAD_HASH)
            for each in (0, False, "", [], {}, {"version": 1}, {"sha256Hash": HASH})
        ),
        *(
            ({"extensions": automatic(**each)}, BAD_HASH)
            for each in (
                {"version": 2},
                {"version": "1"},
                {"version": None},
                {"sha256Hash": None},
                {"sha256Hash": 1},
            )
        ),
    ],
)
def test_malformed_requests(given: Any, said: str) -> None:
    with pytest.raises(Refused) as caught:
        request_of(given)
    refused = caught.value
    # Not well-formed, so that there is no GraphQL response to it.
    assert not isinstance(refused, RequestError)
    assert (refused.status, refused.code, str(refused)) == (422, "BAD_REQUEST", said)
    assert refused.errors == [{"message": said, "extensions": {"code": "BAD_REQUEST"}}]


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"{}", {}),
        (b" [1, null] ", [1, None]),
        ('"\u00eb"'.encode(), "\u00eb"),
        ("null", None),
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", float(2**64)),
        (b'{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_json(content: bytes | str, value: Any) -> None:
    assert parse_json(content) == value


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"{} {}",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b"\xef\xbb\xbf{}",
        b"\x00",
        b"[" * 5_000,
        b"[" * 5_000 + b"]" * 5_000,
        "{'a': 1}",
        "\ud800",
    ],
)
def test_what_is_not_json(content: bytes | str) -> None:
    with pytest.raises(Refused) as caught:
        parse_json(content, "The text")
    refused = caught.value
    assert (refused.status, refused.code) == (400, "BAD_REQUEST")
    assert str(refused) == "The text is not JSON in UTF-8."


async def test_what_arrives_in_time_is_handed_on() -> None:
    async def received() -> str:
        return "all of it"

    assert await in_time(received(), Limits()) == "all of it"


async def test_what_does_not_arrive_in_time_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        await in_time(asyncio.Event().wait(), Limits(request_seconds=0.01))
    assert (caught.value.status, caught.value.code) == (408, "REQUEST_TIMEOUT")
