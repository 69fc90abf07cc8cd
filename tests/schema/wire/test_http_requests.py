"""GraphQL over HTTP: how requests arrive, by URL and by body, and what is too much of them."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from yarl import URL

from schema import serving
from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.e2e.callers import PATIENCE
from tests.schema.wire.asking import JSON, PREFLIGHT, RESPONSE_JSON, Asker, asking, error

HELLO = {"data": {"hello": "hello world"}}
ADDED = "query Twice($number: Int!) { twice(input: { number: $number }) }"


@pytest.fixture(scope="module")
async def usual() -> AsyncIterator[Asker]:
    async with asking() as asker:
        yield asker


@pytest.fixture(scope="module")
async def legacy() -> AsyncIterator[Asker]:
    async with asking(settings=EndpointSettings(legacy_status_codes=True)) as asker:
        yield asker


@pytest.fixture(scope="module")
async def small() -> AsyncIterator[Asker]:
    async with asking(Limits(document_bytes=500, request_bytes=2_000, request_seconds=0.1)) as each:
        yield each


# GET


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        ({"query": "{ hello }"}, HELLO),
        ({"query": "{ hello }", "operationName": "", "variables": "", "extensions": ""}, HELLO),
        ({"query": "{ hello }", "documentId": "", "anything": "[", "qeury": "{"}, HELLO),
        ({"query": ADDED, "variables": '{"number": 4}'}, {"data": {"twice": 8}}),
        ({"query": "{ hello }", "variables": "null", "extensions": "null"}, HELLO),
        ({"query": "{ hello }", "extensions": '{"anything": 1}'}, HELLO),
        ({"query": "query A { hello } query null { caller }", "operationName": "A"}, HELLO),
        (
            {"query": "query A { hello } query null { caller }", "operationName": "null"},
            {"data": {"caller": "anybody"}},
        ),
        (
            {"query": "query Read { hello } mutation M { set(value: 1) }", "operationName": "Read"},
            HELLO,
        ),
    ],
)
async def test_queries_by_url(usual: Asker, parameters: dict[str, str], body: Any) -> None:
    for accept in (JSON, RESPONSE_JSON):
        answer = await usual.get(accept, **parameters)
        assert (answer.status, answer.media, answer.body) == (200, accept, body)


@pytest.mark.parametrize(
    ("parameters", "status", "code", "message"),
    [
        ({}, 422, "BAD_REQUEST", "The request has no document: put its text into `query`."),
        (
            {"query": ""},
            422,
            "BAD_REQUEST",
            "The request has no document: put its text into `query`.",
        ),
        (
            {"query": "{ hello }", "variables": "{"},
            400,
            "BAD_REQUEST",
            "`variables` is not JSON in UTF-8.",
        ),
        (
            {"query": "{ hello }", "extensions": "x"},
            400,
            "BAD_REQUEST",
            "`extensions` is not JSON in UTF-8.",
        ),
        (
            {"query": "{ hello }", "variables": "[7]"},
            422,
            "BAD_REQUEST",
            "`variables` is an object or null.",
        ),
        (
            {"query": "{ hello }", "variables": '"{}"'},
            422,
            "BAD_REQUEST",
            "`variables` is an object or null.",
        ),
        (
            {"query": "{ hello }", "extensions": "7"},
            422,
            "BAD_REQUEST",
            "`extensions` is an object or null.",
        ),
    ],
)
async def test_malformed_urls(
    usual: Asker,
    legacy: Asker,
    parameters: dict[str, str],
    status: int,
    code: str,
    message: str,
) -> None:
    answer = await usual.get(RESPONSE_JSON, **parameters)
    assert (answer.status, answer.media) == (status, JSON)
    assert (answer.code, answer.message) == (code, message)
    answer = await legacy.get(RESPONSE_JSON, **parameters)
    assert (answer.status, answer.media, answer.message) == (400, JSON, message)


@pytest.mark.parametrize(
    ("parameters", "status", "code"),
    [
        ({"query": "{"}, 400, "GRAPHQL_PARSE_FAILED"),
        ({"query": "{ nothing }"}, 422, "GRAPHQL_VALIDATION_FAILED"),
        ({"query": "query A { hello } query B { hello }"}, 422, "OPERATION_RESOLUTION_FAILURE"),
        ({"query": ADDED, "variables": '{"number": "4"}'}, 422, "BAD_USER_INPUT"),
        ({"query": "subscription { count(to: 1) }"}, 406, "STREAM_REQUIRED"),
    ],
)
async def test_request_errors_by_url(
    usual: Asker, parameters: dict[str, str], status: int, code: str
) -> None:
    """Rule T42."""
    for accept in (JSON, RESPONSE_JSON):
        answer = await usual.get(accept, **parameters)
        assert (answer.status, answer.media, answer.code) == (status, RESPONSE_JSON, code)


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON, "text/event-stream"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"query": "mutation { set(value: 666) }"},
        {"query": "query A { hello } mutation B { set(value: 666) }", "operationName": "B"},
    ],
)
async def test_mutations_by_url_are_never_executed(
    usual: Asker, legacy: Asker, parameters: dict[str, str], accept: str
) -> None:
    for asker in (usual, legacy):
        answer = await asker.get(accept, **parameters)
        assert (answer.status, answer.media, answer.headers["Allow"]) == (405, JSON, "POST")
        assert answer.body["errors"] == [error("METHOD_NOT_ALLOWED", "Send mutations by POST.")]
        assert asker.wire.probe.value == 0


async def test_a_url_of_any_bytes_is_read_as_text(usual: Asker) -> None:
    asked = "?query=" + quote("query Q($name: String) { hello(name: $name) }") + "&variables="
    good = asked + quote('{"name": "Zoë + \U0001f9ea"}')
    bad = asked + "%7B%22name%22%3A%22%FF%22%7D"
    for query, name in ((good, "Zoë + \U0001f9ea"), (bad, "\ufffd")):
        url = URL(usual.wire.url + query, encoded=True)
        async with usual.session.get(url, headers=PREFLIGHT) as response:
            assert await response.json() == {"data": {"hello": f"hello {name}"}}


@pytest.mark.parametrize("size", [61_440, 65_000, 70_000, 1_000_000])
async def test_a_url_that_is_too_long(usual: Asker, legacy: Asker, size: int) -> None:
    for asker in (usual, legacy):
        fitting = await asker.get(query="{ hello }", pad="x" * 61_400)
        assert (fitting.status, fitting.body) == (200, HELLO)
        answer = await asker.get(RESPONSE_JSON, query="{ hello }", pad="x" * size)
        assert (answer.status, answer.media) == (414, JSON)
        assert answer.body["errors"] == [
            error("URI_TOO_LONG", "The URL is too long: send the request by POST.")
        ]


# Bodies


@pytest.mark.parametrize(
    "content_type",
    [
        JSON,
        "APPLICATION/JSON",
        f"{JSON};charset=utf-8",
        f"{JSON}; charset=UTF-8",
        f'{JSON}; Charset="utf-8"',
        f"{JSON}; charset=utf8",
        f"{JSON}; profile=anything",
        f"{JSON} ;",
    ],
)
async def test_json_in_utf_8_is_read(usual: Asker, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    answer = await usual.request("POST", headers=headers, data=b'{"query": "{ hello }"}')
    assert (answer.status, answer.body) == (200, HELLO)


REFUSED_TYPES = [
    None,
    "",
    ";",
    "text/plain",
    "text/plain;charset=UTF-8",
    "application/x-www-form-urlencoded",
    "application/graphql",
    "application/graphql+json",
    RESPONSE_JSON,
    "application/jsonp",
    "application/xml",
    "*/*",
    f"text/plain; {JSON}",
    *(
        f"{JSON};charset={charset}"
        for charset in ("utf-7", "utf-16", "UTF-16LE", "utf-32", "iso-8859-1", "cp037", "x", '""')
    ),
]


@pytest.mark.parametrize("content_type", REFUSED_TYPES)
async def test_other_types_and_charsets_are_refused(
    usual: Asker, legacy: Asker, content_type: str | None
) -> None:
    """Rules T34, T35."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    for asker in (usual, legacy):
        for accept in (JSON, RESPONSE_JSON):
            answer = await asker.request(
                "POST",
                headers={**headers, "Accept": accept},
                data=b'{"query": "mutation { set(value: 666) }"}',
            )
            assert (answer.status, answer.media) == (415, JSON)
            assert answer.headers["Accept-Post"] == "application/json, multipart/form-data"
            assert answer.body["errors"] == [
                error(
                    "UNSUPPORTED_MEDIA_TYPE",
                    "Send application/json in UTF-8, or multipart/form-data with files.",
                )
            ]
            assert asker.wire.probe.value == 0


BOMB = gzip.compress(b"[" + b" " * 100_000_000 + b"]", 9)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "x"])
async def test_compressed_bodies_are_refused_unread(usual: Asker, encoding: str) -> None:
    """Rule T35."""
    answer = await usual.post(BOMB, RESPONSE_JSON, **{"Content-Encoding": encoding})
    assert (answer.status, answer.media) == (415, JSON)
    assert answer.body["errors"] == [
        error("UNSUPPORTED_MEDIA_TYPE", "Send the body without compression.")
    ]


async def test_the_encoding_that_does_nothing_is_read(usual: Asker) -> None:
    answer = await usual.post({"query": "{ hello }"}, **{"Content-Encoding": "identity"})
    assert (answer.status, answer.body) == (200, HELLO)


async def test_a_body_in_pieces_of_one_byte(usual: Asker) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in '{"query": "{ hello(name: \\"Zoë\\") }"}'.encode():
            yield bytes([byte])

    answer = await usual.request("POST", headers={"Content-Type": JSON}, data=pieces())
    assert answer.body == {"data": {"hello": "hello Zoë"}}


async def test_a_deep_variable_that_nobody_asked_for(usual: Asker) -> None:
    """It is hashed with an idempotency key, and is never looked at without one."""
    for depth in (300, 1_000):
        asked = b'{"query": "{ hello }", "variables": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
        answer = await usual.post(asked)
        assert (answer.status, answer.body) == (200, HELLO)
        answer = await usual.post(asked, RESPONSE_JSON, **{"Idempotency-Key": "deep"})
        assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")


# Too much, too slow


def padded(asked: dict[str, Any], size: int) -> bytes:
    written = json.dumps(asked).encode()
    return written + b" " * (size - len(written))


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
async def test_a_body_that_is_too_large(small: Asker, accept: str, is_chunked: bool) -> None:
    async def sent(size: int) -> AsyncIterator[bytes]:
        content = padded({"query": "{ hello }"}, size)
        for begin in range(0, size, 500):
            yield content[begin : begin + 500]

    async def answered(size: int) -> Any:
        data = sent(size) if is_chunked else padded({"query": "{ hello }"}, size)
        return await small.request(
            "POST", headers={"Content-Type": JSON, "Accept": accept}, data=data
        )

    fitting = await answered(2_000)
    assert (fitting.status, fitting.body) == (200, HELLO)
    answer = await answered(2_001)
    assert (answer.status, answer.media) == (413, JSON)
    assert answer.body["errors"] == [
        error("REQUEST_TOO_LARGE", "A request has at most 2,000 bytes.")
    ]


async def test_a_document_that_is_too_large(small: Asker) -> None:
    fitting = "{ hello }".ljust(500)
    for accept in (JSON, RESPONSE_JSON):
        assert (await small.post({"query": fitting}, accept)).body == HELLO
        answer = await small.post({"query": fitting + " "}, accept)
        assert (answer.status, answer.media) == (413, RESPONSE_JSON)
        assert answer.body["errors"] == [
            error("DOCUMENT_TOO_LARGE", "A document has at most 500 characters.", limit=500)
        ]


@contextlib.asynccontextmanager
async def connected(asker: Asker) -> AsyncIterator[tuple[asyncio.StreamReader, Any]]:
    address = URL(asker.wire.url)
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            yield reader, writer
        finally:
            writer.close()


@pytest.mark.parametrize(
    ("kind", "begun"),
    [(JSON, b'{"query": '), ("multipart/form-data; boundary=x", b"--x\r\nContent-Disp")],
)
async def test_a_body_that_never_comes_is_waited_for_in_vain(
    small: Asker, kind: str, begun: bytes
) -> None:
    async with connected(small) as (reader, writer):
        writer.write(
            f"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            "GraphQL-Preflight: 1\r\nContent-Length: 100\r\n\r\n".encode()
            + begun
        )
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readuntil(b"]}")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"content-type: application/json; charset=utf-8\r\n" in head.lower()
    assert json.loads(body)["errors"] == [
        error("REQUEST_TIMEOUT", "The body did not arrive in time: send it again.")
    ]


async def test_a_head_that_never_ends_is_not_waited_for(
    usual: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.05)
    for begun in (b"", b"POST /graphql HTTP/1.1\r\nHost: localh"):
        async with connected(usual) as (reader, writer):
            writer.write(begun)
            assert await reader.read() == b""


async def test_the_next_head_on_a_connection_is_not_waited_for_either(
    usual: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.05)
    asked = b'{"query": "{ slow(seconds: 0.2) }"}'
    head = b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    async with connected(usual) as (reader, writer):
        # The time of a request is not that of its head.
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(asked) + asked)
        answer = await reader.readuntil(b"}}")
        assert answer.endswith(b'{"data":{"slow":"slept"}}')
        writer.write(head)
        assert await reader.read() == b""


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Large": "x" * 66_000},
        {"X-Large": "x" * 1_000_000},
        {f"X-{number}": "x" * 1_000 for number in range(100)},
    ],
)
async def test_headers_that_are_too_large(usual: Asker, headers: dict[str, str]) -> None:
    fitting = await usual.post({"query": "{ hello }"}, **{"X-Large": "x" * 60_000})
    assert (fitting.status, fitting.body) == (200, HELLO)
    answer = await usual.post({"query": "{ hello }"}, RESPONSE_JSON, **headers)
    assert (answer.status, answer.media) == (431, JSON)
    assert answer.body["errors"] == [
        error("HEADERS_TOO_LARGE", "The headers are too large: send fewer or shorter.")
    ]


async def test_headers_without_an_end(usual: Asker) -> None:
    async with connected(usual) as (reader, writer):
        writer.write(b"POST /graphql HTTP/1.1\r\nX-Large: " + b"x" * 70_000)
        assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x02\x00\x01\x00\x01", b"NONSENSE\r\n\r\n", b"FOO / HTTP/1.1\r\n\r\n"]
)
async def test_what_is_not_http_is_told_so(usual: Asker, sent: bytes) -> None:
    async with connected(usual) as (reader, writer):
        writer.write(sent)
        answer = await reader.read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"errors": [error("BAD_REQUEST", "This is not HTTP/1.1.")]}
