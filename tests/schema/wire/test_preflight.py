"""Requests that a page on another site could make a browser send: refused unless they show that
the browser has asked us first.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from schema.wire.http import EndpointSettings
from schema.wire.origins import PREFLIGHT_HEADERS
from tests.schema.wire.asking import JSON, PREFLIGHT, RESPONSE_JSON, Asker, asking, error, form

ALLOWED = "https://front.example"
MUTATION = "mutation { set(value: 666) }"
REFUSAL = {
    "errors": [
        error(
            "PREFLIGHT_REQUIRED",
            "GET requests and forms need a header that shows they come from a script, such as "
            "GraphQL-Preflight: 1. Other requests have the type application/json.",
        )
    ]
}


@pytest.fixture(scope="module")
async def asker() -> AsyncIterator[Asker]:
    async with asking(settings=EndpointSettings(allowed_origins=(ALLOWED,))) as asker:
        yield asker


@pytest.fixture(scope="module")
async def open_asker() -> AsyncIterator[Asker]:
    async with asking(settings=EndpointSettings(allowed_origins=("*",))) as asker:
        yield asker


def multipart(places: str = "{}", query: str = MUTATION) -> bytes:
    return (
        b"".join(
            f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in (("operations", json.dumps({"query": query})), ("map", places))
        )
        + b"--x--\r\n"
    )


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data; boundary=x",
        "Multipart/Form-Data;boundary=x",
        "multipart/form-data ; boundary=x; charset=utf-8",
    ],
)
async def test_a_form_with_a_mutation_is_refused_without_the_header(
    asker: Asker, content_type: str
) -> None:
    """Rule T34."""
    headers = {"Content-Type": content_type, "Accept": RESPONSE_JSON}
    answer = await asker.request("POST", headers=headers, data=multipart())
    assert (answer.status, answer.media, answer.body) == (403, JSON, REFUSAL)
    assert asker.wire.probe.value == 0


@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-www-form-urlencoded",
        "text/plain",
        f"text/plain;{JSON}",
        f"text/plain; charset=utf-8; {JSON}",
        "multipart/mixed; boundary=x",
        None,
    ],
)
@pytest.mark.parametrize("body", [json.dumps({"query": MUTATION}).encode(), multipart()])
async def test_the_other_types_of_simple_requests_are_not_read_at_all(
    asker: Asker, content_type: str | None, body: bytes
) -> None:
    """Rule T34."""
    for header in ({}, PREFLIGHT):
        headers = {**header, **({"Content-Type": content_type} if content_type else {})}
        answer = await asker.request("POST", headers=headers, data=body)
        assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert asker.wire.probe.value == 0


@pytest.mark.parametrize(
    "content_type",
    [None, JSON, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x", ""],
)
async def test_get_is_refused_without_the_header_whatever_its_type(
    asker: Asker, content_type: str | None
) -> None:
    """Rule T34."""
    typed = {"Content-Type": content_type} if content_type is not None else {}
    for query in ("{ hello }", MUTATION, "subscription { count(to: 1) }"):
        answer = await asker.request("GET", headers=typed, params={"query": query})
        assert (answer.status, answer.body) == (403, REFUSAL)
    answer = await asker.request(
        "GET", headers={**typed, **PREFLIGHT}, params={"query": "{ hello }"}
    )
    assert (answer.status, answer.body) == (200, {"data": {"hello": "hello world"}})


@pytest.mark.parametrize("header", PREFLIGHT_HEADERS)
async def test_each_of_the_headers_lets_get_and_forms_in(asker: Asker, header: str) -> None:
    shown = {header.title(): "anything"}
    answer = await asker.request("GET", headers=shown, params={"query": "{ hello }"})
    assert answer.status == 200
    data = form(operations=json.dumps({"query": "{ hello }"}), map="{}")
    assert (await asker.send_form(data, shown)).body == {"data": {"hello": "hello world"}}


async def test_json_needs_no_header(asker: Asker) -> None:
    """A browser asks before it sends this type to another site."""
    answer = await asker.post({"query": "{ hello }"}, Origin="https://foreign.example")
    assert answer.status == 200


async def test_put_and_delete_need_no_header(asker: Asker) -> None:
    """A browser asks before it sends these methods to another site."""
    assert (await asker.request("PUT")).status == 201
    assert (await asker.request("DELETE")).code == "STREAM_NOT_FOUND"


EVENTS = "text/event-stream"


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({}, False),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": ""}, False),
        ({"Origin": "{own}"}, True),
        ({"Origin": ALLOWED}, True),
        ({"Origin": ALLOWED, "Sec-Fetch-Site": "cross-site"}, True),
        ({"Origin": "https://foreign.example"}, False),
        ({"Origin": "https://foreign.example", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": f"{ALLOWED}.foreign.example"}, False),
        ({"Origin": "{own}.foreign.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://["}, False),
        ({"Origin": "//"}, False),
    ],
)
async def test_event_source_is_let_in_by_where_its_page_comes_from(
    asker: Asker, headers: dict[str, str], is_let_in: bool
) -> None:
    """Rule T34: it can send no header of its own."""
    given = {name: value.format(own=asker.wire.address) for name, value in headers.items()}
    answer = await asker.request(
        "GET",
        headers={"Accept": EVENTS, **given},
        params={"query": "subscription { count(to: 1) }"},
    )
    if is_let_in:
        assert (answer.status, answer.media) == (200, EVENTS)
        assert 'data: {"data":{"count":1}}' in answer.body
    else:
        assert (answer.status, answer.media, answer.body) == (403, JSON, REFUSAL)


@pytest.mark.parametrize("accept", ["*/*", JSON, f"{JSON}, {EVENTS}", f"{EVENTS};q=0.5, {JSON}"])
async def test_no_other_get_is_let_in_by_its_page(asker: Asker, accept: str) -> None:
    headers = {"Accept": accept, "Sec-Fetch-Site": "same-origin", "Origin": ALLOWED}
    answer = await asker.request("GET", headers=headers, params={"query": "{ hello }"})
    assert (answer.status, answer.body) == (403, REFUSAL)


async def test_event_source_never_runs_a_mutation(asker: Asker) -> None:
    headers = {"Accept": EVENTS, "Sec-Fetch-Site": "same-origin"}
    answer = await asker.request("GET", headers=headers, params={"query": MUTATION})
    assert (answer.status, answer.code) == (405, "METHOD_NOT_ALLOWED")
    assert asker.wire.probe.value == 0


async def test_with_all_origins_allowed_event_source_still_names_one(open_asker: Asker) -> None:
    params = {"query": "subscription { count(to: 1) }"}
    foreign = {"Accept": EVENTS, "Origin": "https://foreign.example"}
    assert (await open_asker.request("GET", headers=foreign, params=params)).status == 200
    unnamed = {"Accept": EVENTS}
    assert (await open_asker.request("GET", headers=unnamed, params=params)).status == 403
