"""Several operations in one request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.schema.wire.asking import JSON, RESPONSE_JSON, Asker, asking, error, form

HELLO = {"query": "{ hello }"}
GREETED = {"data": {"hello": "hello world"}}
TYPES = pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])


@pytest.fixture(scope="module")
async def asker() -> AsyncIterator[Asker]:
    async with asking(Limits(batch=4)) as asker:
        yield asker


@pytest.fixture(scope="module")
async def legacy() -> AsyncIterator[Asker]:
    settings = EndpointSettings(legacy_status_codes=True)
    async with asking(Limits(batch=4), settings) as asker:
        yield asker


@TYPES
@pytest.mark.parametrize("count", [1, 3, 4])
async def test_a_batch_is_answered_in_its_order(asker: Asker, accept: str, count: int) -> None:
    asked = [
        {
            "query": "query Q($name: String) { hello(name: $name) }",
            "variables": {"name": str(number)},
        }
        for number in range(count)
    ]
    answer = await asker.post(asked, accept)
    assert (answer.status, answer.media) == (200, accept)
    assert answer.body == [{"data": {"hello": f"hello {number}"}} for number in range(count)]


@TYPES
@pytest.mark.parametrize("count", [0, 5, 1_000])
async def test_a_batch_that_is_empty_or_too_long_is_refused(
    asker: Asker, legacy: Asker, accept: str, count: int
) -> None:
    body = {
        "errors": [error("BATCH_LIMIT", "A batch has 1 to 4 operations.", found=count, limit=4)]
    }
    asked = [{"query": "mutation { set(value: 666) }"}] * count
    for each, status in ((asker, 422), (legacy, 400)):
        answer = await each.post(asked, accept)
        assert (answer.status, answer.media, answer.body) == (status, JSON, body)
        assert each.wire.probe.value == 0


@TYPES
async def test_refused_operations_stand_among_the_others(
    asker: Asker, legacy: Asker, accept: str
) -> None:
    for each in (asker, legacy):
        answer = await each.post(
            [{"query": "{"}, HELLO, {"query": "query A { hello } query B { hello }"}], accept
        )
        assert (answer.status, answer.media) == (200, accept)
        assert answer.body == [
            {
                "errors": [
                    error(
                        "GRAPHQL_PARSE_FAILED",
                        "Syntax Error: Expected Name, found <EOF>.",
                        (1, 2),
                    )
                ]
            },
            GREETED,
            {
                "errors": [
                    error(
                        "OPERATION_RESOLUTION_FAILURE",
                        "The document has several operations: say in operationName which, of A, B.",
                    )
                ]
            },
        ]


@TYPES
async def test_errors_of_execution_stand_in_their_own_result(asker: Asker, accept: str) -> None:
    asked = [
        {"query": "{ refused }"},
        {"query": "query Q($name: String) { hello(name: $name) }", "variables": {"name": 1}},
        HELLO,
    ]
    answer = await asker.post(asked, accept)
    assert (answer.status, answer.media) == (200, accept)
    partial, unread, whole = answer.body
    assert partial["data"] == {"refused": None}
    assert [each["extensions"]["code"] for each in partial["errors"]] == ["MEND_THIS"]
    assert set(unread) == {"errors"}
    assert [each["extensions"]["code"] for each in unread["errors"]] == ["BAD_USER_INPUT"]
    assert whole == GREETED


@pytest.mark.parametrize(
    "malformed",
    [None, 7, "{ hello }", [], [HELLO], {}, {"query": 1}, {"query": "{ hello }", "variables": []}],
)
async def test_a_batch_with_a_malformed_request_is_refused_as_a_whole(
    asker: Asker, malformed: Any
) -> None:
    answer = await asker.post([{"query": "mutation { set(value: 666) }"}, malformed])
    assert (answer.status, answer.code) == (422, "BAD_REQUEST")
    assert asker.wire.probe.value == 0


async def test_mutations_run_one_after_another(asker: Asker) -> None:
    asked = [
        {"query": "mutation { set(value: 10) }"},
        {"query": "{ thing { loaded } }"},
        {"query": "mutation { set(value: 20) }"},
        {"query": "{ thing { loaded } }"},
    ]
    answer = await asker.post(asked)
    assert answer.body == [
        {"data": {"set": 10}},
        {"data": {"thing": {"loaded": 11}}},
        {"data": {"set": 20}},
        {"data": {"thing": {"loaded": 21}}},
    ]
    await asker.post({"query": "mutation { set(value: 0) }"})


async def test_operations_of_a_batch_share_no_loader(asker: Asker) -> None:
    asker.wire.probe.batches.clear()
    answer = await asker.post([{"query": "{ thing { loaded thing { loaded } } }"}] * 2)
    assert answer.body == [{"data": {"thing": {"loaded": 1, "thing": {"loaded": 2}}}}] * 2
    assert asker.wire.probe.batches == [[1, 2], [1, 2]]


async def test_each_operation_has_a_request_id_of_its_own(asker: Asker) -> None:
    answer = await asker.post([HELLO, {"query": "{"}, {"query": "{ broken }"}])
    first, second = answer.headers["x-request-id"].split(", ")
    assert first != second
    assert answer.body[2]["errors"][0]["extensions"] == {"code": "INTERNAL", "requestId": second}


@TYPES
async def test_a_subscription_in_a_batch_is_refused(asker: Asker, accept: str) -> None:
    opened = asker.wire.probe.opened
    for accepted in (accept, f"text/event-stream, {accept}"):
        answer = await asker.post([HELLO, {"query": "subscription { silent }"}], accepted)
        assert (answer.status, answer.media) == (200, accept)
        greeted, refused = answer.body
        assert greeted == GREETED
        assert [each["extensions"]["code"] for each in refused["errors"]] == ["STREAM_REQUIRED"]
    assert asker.wire.probe.opened == opened


async def test_a_client_that_reads_streams_alone_cannot_read_a_batch(asker: Asker) -> None:
    for accept in ("text/event-stream", "multipart/mixed;subscriptionSpec=1.0"):
        answer = await asker.post([{"query": "mutation { set(value: 666) }"}], accept)
        assert (answer.status, answer.media, answer.code) == (406, JSON, "NOT_ACCEPTABLE")
        assert answer.message == (
            "Accept one of application/graphql-response+json, application/json, for a batch no "
            "stream."
        )
    assert asker.wire.probe.value == 0


async def test_an_idempotency_key_for_a_batch_is_refused(asker: Asker) -> None:
    asked = [{"query": "mutation { set(value: 666) }"}]
    answer = await asker.post(asked, **{"Idempotency-Key": "key"})
    assert (answer.status, answer.code) == (422, "BAD_REQUEST")
    assert answer.message == "An Idempotency-Key stands for one operation: send no batch."
    assert asker.wire.probe.value == 0


async def test_a_batch_with_files(asker: Asker) -> None:
    query = "mutation Read($file: Upload!) { readFile(file: $file) }"
    operations = [{"query": query, "variables": {"file": None}}, HELLO] * 2
    places = {"a": ["0.variables.file"], "b": ["2.variables.file"]}
    data = form(operations=json.dumps(operations), map=json.dumps(places), a=b"one", b=b"two")
    answer = await asker.send_form(data)
    assert (answer.status, answer.body) == (
        200,
        [{"data": {"readFile": "one"}}, GREETED, {"data": {"readFile": "two"}}, GREETED],
    )
