"""GraphQL over HTTP by the newest draft: the status, the media type and the body of every outcome,
for clients that read the media type of GraphQL and for those that read JSON alone.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from schema.wire.http import EndpointSettings
from tests.schema.wire.asking import JSON, PREFLIGHT, RESPONSE_JSON, Asker, asking, error
from tests.schema.wire.outcomes import OUTCOMES, Outcome


@pytest.fixture(scope="module")
async def usual() -> AsyncIterator[Asker]:
    async with asking() as asker:
        yield asker


@pytest.fixture(scope="module")
async def legacy() -> AsyncIterator[Asker]:
    async with asking(settings=EndpointSettings(legacy_status_codes=True)) as asker:
        yield asker


CASES = pytest.mark.parametrize("outcome", [pytest.param(each, id=each.name) for each in OUTCOMES])


@CASES
async def test_each_outcome_has_its_status_and_media_type(usual: Asker, outcome: Outcome) -> None:
    """Rules T35, T38, T42."""
    answer = await usual.post(outcome.asked, RESPONSE_JSON)
    assert (answer.status, answer.body) == (outcome.status, outcome.body)
    assert answer.media == (JSON if outcome.kind == "http" else RESPONSE_JSON)


@CASES
async def test_clients_of_json_get_the_same_status_but_plain_success(
    usual: Asker, outcome: Outcome
) -> None:
    """Only successful responses take the older type: a failure in it could come from anywhere."""
    answer = await usual.post(outcome.asked, JSON)
    assert (answer.status, answer.body) == (outcome.json_status or outcome.status, outcome.body)
    assert answer.media == (RESPONSE_JSON if outcome.kind == "request error" else JSON)


@CASES
async def test_legacy_codes_for_clients_of_the_media_type(legacy: Asker, outcome: Outcome) -> None:
    answer = await legacy.post(outcome.asked, RESPONSE_JSON)
    assert (answer.status, answer.body) == (outcome.legacy, outcome.body)
    assert answer.media == (JSON if outcome.kind == "http" else RESPONSE_JSON)


@CASES
async def test_legacy_codes_for_clients_of_json(legacy: Asker, outcome: Outcome) -> None:
    """A well-formed response has 200 whatever is in it."""
    answer = await legacy.post(outcome.asked, JSON)
    status = outcome.legacy if outcome.kind == "http" else 200
    assert (answer.status, answer.body) == (status, outcome.body)
    assert answer.media == JSON


@pytest.mark.parametrize(("accept", "status"), [(RESPONSE_JSON, 294), (JSON, 200)])
async def test_null_data_is_a_partial_success(usual: Asker, accept: str, status: int) -> None:
    answer = await usual.post({"query": "{ brokenRoot }"}, accept)
    assert (answer.status, answer.media, answer.body["data"]) == (status, accept, None)
    assert answer.body["errors"] == [
        {
            **error(
                "INTERNAL",
                "Something went wrong on the server. Say this request id when you report it.",
                requestId=answer.headers["x-request-id"],
            ),
            "locations": [{"line": 1, "column": 3}],
            "path": ["brokenRoot"],
        }
    ]


MULTIPART_SUBSCRIPTION = "multipart/mixed;subscriptionSpec=1.0"


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        ("Application/JSON; charset=utf-8", JSON),
        (RESPONSE_JSON, RESPONSE_JSON),
        (f"{RESPONSE_JSON}; charset=utf-8", RESPONSE_JSON),
        (f"{RESPONSE_JSON}, {JSON};q=0.9", RESPONSE_JSON),
        (f"{JSON};q=0.9, {RESPONSE_JSON}", RESPONSE_JSON),
        (f"{JSON}, {RESPONSE_JSON}", JSON),
        (f"{RESPONSE_JSON};q=0.1, {JSON};q=0.2", JSON),
        (f"{RESPONSE_JSON};q=0, */*", JSON),
        (f"{JSON};q=0, */*", RESPONSE_JSON),
        (f"*/*, {JSON};q=0.1", RESPONSE_JSON),
        (f"text/html, {RESPONSE_JSON};q=0.2, */*;q=0.1", RESPONSE_JSON),
        ("text/html,application/xhtml+xml,*/*;q=0.8", JSON),
        (f"{MULTIPART_SUBSCRIPTION}, {RESPONSE_JSON}, {JSON}", RESPONSE_JSON),
        (f"{RESPONSE_JSON}, text/event-stream", RESPONSE_JSON),
        (f"{JSON}, text/event-stream;q=0.9", JSON),
        ("text/event-stream", "text/event-stream"),
        (f"text/event-stream, {JSON};q=0.5", "text/event-stream"),
        (MULTIPART_SUBSCRIPTION, "multipart/mixed"),
    ],
)
async def test_the_media_type_most_wanted_is_sent(
    usual: Asker, accept: str | None, media: str
) -> None:
    answer = await usual.post({"query": "{ hello }"}, accept)
    assert (answer.status, answer.media) == (200, media)
    if media in {JSON, RESPONSE_JSON}:
        assert answer.headers["Content-Type"] == f"{media}; charset=utf-8"


async def test_several_accept_headers_are_one(usual: Asker) -> None:
    headers = [("Content-Type", JSON), ("Accept", "text/html"), ("Accept", RESPONSE_JSON)]
    answer = await usual.request("POST", headers=headers, data=b'{"query": "{ hello }"}')
    assert (answer.status, answer.media) == (200, RESPONSE_JSON)


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "image/*, text/plain",
        "text/",
        ";q=1",
        "multipart/mixed",
        "multipart/mixed;deferSpec=20220824",
        f"{JSON};q=0",
        f"{JSON};q=nan, {RESPONSE_JSON};q=none",
        "*/*;q=0",
        f"*/*, {JSON};q=0, {RESPONSE_JSON};q=0",
    ],
)
async def test_a_client_that_reads_none_of_the_types_is_told_which_there_are(
    usual: Asker, legacy: Asker, accept: str
) -> None:
    for asker in (usual, legacy):
        answer = await asker.post({"query": "mutation { set(value: 666) }"}, accept)
        assert (answer.status, answer.media) == (406, JSON)
        assert answer.body["errors"] == [
            error(
                "NOT_ACCEPTABLE",
                "Accept one of application/graphql-response+json, application/json, "
                "text/event-stream, or multipart/mixed;subscriptionSpec=1.0.",
            )
        ]
        assert asker.wire.probe.value != 666


@pytest.mark.parametrize("accept", [None, "*/*", JSON, RESPONSE_JSON])
async def test_a_subscription_without_a_stream_is_refused(
    usual: Asker, legacy: Asker, accept: str | None
) -> None:
    asked = {"query": "subscription { count(to: 1) }"}
    body = {
        "errors": [
            error(
                "STREAM_REQUIRED",
                "A subscription is a stream: accept text/event-stream, or open a WebSocket.",
            )
        ]
    }
    answer = await usual.post(asked, accept)
    assert (answer.status, answer.media, answer.body) == (406, RESPONSE_JSON, body)
    answer = await legacy.post(asked, accept)
    expected = (406, RESPONSE_JSON) if accept == RESPONSE_JSON else (200, JSON)
    assert (answer.status, answer.media, answer.body) == (*expected, body)
    assert usual.wire.probe.opened == 0


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
@pytest.mark.parametrize("method", ["PATCH", "OPTIONS", "TRACE", "HEAD", "QUERY"])
async def test_other_methods_are_told_which_there_are(
    usual: Asker, legacy: Asker, method: str, accept: str
) -> None:
    for asker in (usual, legacy):
        headers = {**PREFLIGHT, "Accept": accept, "Content-Type": JSON}
        answer = await asker.request(method, headers=headers, data=b'{"query": "{ hello }"}')
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST, PUT, DELETE")
        if method != "HEAD":
            assert (answer.media, answer.code) == (JSON, "METHOD_NOT_ALLOWED")


async def test_a_failed_sign_in_is_refused_in_json() -> None:
    async with asking(must_sign_in=True) as asker:
        answer = await asker.post({"query": "{ hello }"}, RESPONSE_JSON)
        assert (answer.status, answer.media, answer.code) == (401, JSON, "UNAUTHENTICATED")


async def test_a_stopping_server_refuses_in_json() -> None:
    async with asking() as asker:
        asker.wire.probe.is_stopping = True
        answer = await asker.post({"query": "{ hello }"}, RESPONSE_JSON)
        assert (answer.status, answer.media, answer.code) == (503, JSON, "SERVER_STOPPING")


async def test_what_was_executed_says_its_request_id(usual: Asker) -> None:
    answered = await usual.post({"query": "{ hello refused }"})
    assert answered.headers["x-request-id"].startswith("request-anybody-")
    refused = await usual.post(
        {"query": "query Q($name: String) { hello(name: $name) }", "variables": {"name": 1}}
    )
    assert refused.headers["x-request-id"].startswith("request-anybody-")
    unread = await usual.post({"query": "{ nothing }"})
    assert "x-request-id" not in unread.headers


async def test_the_text_of_names_comes_back_as_it_was_sent(usual: Asker) -> None:
    asked = {
        "query": "query Q($name: String) { hello(name: $name) }",
        "variables": {"name": 'Zoë \U0001f9ea "\\ \n\t\x7f\u2028'},
    }
    answer = await usual.request(
        "POST",
        headers={"Content-Type": JSON},
        data=json.dumps(asked, ensure_ascii=False).encode(),
    )
    assert answer.body == {"data": {"hello": f"hello {asked['variables']['name']}"}}
