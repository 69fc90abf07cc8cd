"""Documents that go by a name: automatic persisted queries, and trusted documents from a file."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schema.wire.documents import ManifestError, read_manifest
from schema.wire.http import EndpointSettings
from tests.e2e.callers import Socket, command, dialled
from tests.schema.wire.asking import JSON, RESPONSE_JSON, Asker, asking, error

GREETING = "query Greeting($name: String) { hello(name: $name) }"
GREETED = {"data": {"hello": "hello Ada"}}
ADA = {"name": "Ada"}
COUNTING = "subscription Counting { count(to: 2) }"
COUNTED = [{"data": {"count": 1}}, {"data": {"count": 2}}]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def automatic(text: str, **changes: Any) -> dict[str, Any]:
    """The extension of Apollo's protocol."""
    return {"persistedQuery": {"version": 1, "sha256Hash": digest(text), **changes}}


NOT_FOUND = {"errors": [error("PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")]}
UNKNOWN = {
    "errors": [error("DOCUMENT_NOT_FOUND", "No document of that id is registered; send its text.")]
}
MISMATCH = {
    "errors": [
        error("DOCUMENT_HASH_MISMATCH", "The hash is not the SHA-256 of the document's text.")
    ]
}
NOT_TRUSTED = {
    "errors": [
        error(
            "DOCUMENT_NOT_TRUSTED",
            "This server executes registered documents alone: name one in documentId.",
        )
    ]
}


@pytest.fixture
async def asker() -> AsyncIterator[Asker]:
    async with asking() as asker:
        yield asker


# Automatic persisted queries


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
async def test_a_hash_is_unknown_then_sent_with_its_text_then_known(
    asker: Asker, accept: str
) -> None:
    by_hash = {"variables": ADA, "extensions": automatic(GREETING)}
    answer = await asker.post(by_hash, accept)
    assert (answer.status, answer.media, answer.body) == (404, RESPONSE_JSON, NOT_FOUND)
    answer = await asker.post({**by_hash, "query": GREETING}, accept)
    assert (answer.status, answer.media, answer.body) == (200, accept, GREETED)
    for again in (
        by_hash,
        {**by_hash, "query": None},
        {**by_hash, "extensions": automatic(GREETING, sha256Hash=digest(GREETING).upper())},
        {"variables": ADA, "documentId": f"sha256:{digest(GREETING)}"},
    ):
        answer = await asker.post(again, accept)
        assert (answer.status, answer.media, answer.body) == (200, accept, GREETED)
    assert asker.wire.operations.documents.misses == 1


async def test_the_same_by_get(asker: Asker) -> None:
    by_hash = {"variables": json.dumps(ADA), "extensions": json.dumps(automatic(GREETING))}
    answer = await asker.get(RESPONSE_JSON, **by_hash)
    assert (answer.status, answer.body) == (404, NOT_FOUND)
    assert (await asker.get(query=GREETING, **by_hash)).body == GREETED
    assert (await asker.get(**by_hash)).body == GREETED
    assert (await asker.get(query="", **by_hash)).body == GREETED
    by_id = {"documentId": f"sha256:{digest(GREETING)}", "variables": json.dumps(ADA)}
    assert (await asker.get(**by_id)).body == GREETED


async def test_a_mutation_by_hash_is_not_executed_by_get(asker: Asker) -> None:
    text = "mutation { set(value: 666) }"
    asker.wire.probe.value = 0
    given = {"extensions": automatic(text)}
    assert (await asker.get(query=text, extensions=json.dumps(given["extensions"]))).status == 405
    assert (await asker.get(extensions=json.dumps(given["extensions"]))).status == 405
    assert asker.wire.probe.value == 0
    assert (await asker.post(given)).body == {"data": {"set": 666}}


async def test_the_same_over_a_socket(asker: Asker) -> None:
    async with connected(asker) as socket:
        by_hash = {"variables": ADA, "extensions": automatic(GREETING)}
        assert await said(socket, by_hash) == [("error", NOT_FOUND["errors"])]
        expected = [("next", GREETED), ("complete", None)]
        assert await said(socket, {**by_hash, "query": GREETING}) == expected
        assert await said(socket, by_hash) == expected
        assert await said(socket, {**by_hash, "query": "{ hello }"}) == [
            ("error", MISMATCH["errors"])
        ]
        # What one transport has registered the others know.
        assert (await asker.post(by_hash)).body == GREETED


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
@pytest.mark.parametrize(
    "given",
    [
        {"extensions": automatic("{ caller }")},
        {"documentId": f"sha256:{digest('{ caller }')}"},
        {"documentId": "greeting"},
        {"extensions": automatic(GREETING, sha256Hash="x")},
    ],
)
async def test_a_hash_of_another_text_registers_nothing(
    asker: Asker, given: dict[str, Any], accept: str
) -> None:
    answer = await asker.post({"query": GREETING, **given}, accept)
    assert (answer.status, answer.media, answer.body) == (422, RESPONSE_JSON, MISMATCH)
    assert len(asker.wire.operations.documents) == 0


@pytest.mark.parametrize(
    "persisted",
    [
        7,
        "x",
        [],
        {},
        {"version": 1},
        {"version": 1, "sha256Hash": None},
        {"version": 1, "sha256Hash": 7},
        {"sha256Hash": digest(GREETING)},
        {"version": 2, "sha256Hash": digest(GREETING)},
        {"version": "1", "sha256Hash": digest(GREETING)},
    ],
)
@pytest.mark.parametrize("query", [{}, {"query": "{ hello }"}])
async def test_a_malformed_extension_is_told(
    asker: Asker, persisted: Any, query: dict[str, str]
) -> None:
    answer = await asker.post({**query, "extensions": {"persistedQuery": persisted}})
    assert (answer.status, answer.media, answer.code) == (422, JSON, "BAD_REQUEST")
    assert answer.message == (
        "extensions.persistedQuery has a version, which is 1, and a sha256Hash."
    )


async def test_null_stands_for_no_extension(asker: Asker) -> None:
    answer = await asker.post({"query": "{ hello }", "extensions": {"persistedQuery": None}})
    assert answer.status == 200
    answer = await asker.post({"extensions": {"persistedQuery": None}})
    assert (answer.status, answer.code) == (422, "BAD_REQUEST")


async def test_a_document_that_is_refused_is_refused_by_its_hash_as_well(asker: Asker) -> None:
    given = {"extensions": automatic("{ nothing }")}
    first = await asker.post({**given, "query": "{ nothing }"})
    again = await asker.post(given)
    assert (first.status, first.code) == (422, "GRAPHQL_VALIDATION_FAILED")
    assert (again.status, again.body) == (422, first.body)


async def test_a_dropped_document_has_to_be_sent_again() -> None:
    async with asking(entries=1) as asker:
        given = {"variables": ADA, "extensions": automatic(GREETING)}
        assert (await asker.post({**given, "query": GREETING})).body == GREETED
        await asker.post({"query": "{ hello }"})
        assert (await asker.post(given)).body == NOT_FOUND
        assert (await asker.post({**given, "query": GREETING})).body == GREETED


async def test_legacy_codes_of_an_unknown_hash() -> None:
    async with asking(settings=EndpointSettings(legacy_status_codes=True)) as asker:
        given = {"extensions": automatic(GREETING)}
        answer = await asker.post(given, JSON)
        assert (answer.status, answer.media, answer.body) == (200, JSON, NOT_FOUND)
        answer = await asker.post(given, RESPONSE_JSON)
        assert (answer.status, answer.media, answer.body) == (400, RESPONSE_JSON, NOT_FOUND)
        # An address that is not found is no GraphQL response.
        assert (await asker.request("DELETE")).status == 404


# Trusted documents

TEXTS = [GREETING, COUNTING, "mutation Set { set(value: 1) }", "{ nothing }"]
RELAY = {hashlib.md5(text.encode()).hexdigest(): text for text in TEXTS}
APOLLO = {
    "format": "apollo-persisted-query-manifest",
    "version": 1,
    "operations": [
        {"id": digest(text), "name": "Name", "type": "query", "body": text} for text in TEXTS
    ],
}
CUSTOM = {"greeting/1": GREETING, "counting": COUNTING, "set": TEXTS[2], "wrong": TEXTS[3]}


def written(folder: Path, manifest: Any) -> Path:
    path = folder / "manifest.json"
    path.write_bytes(manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode())
    return path


@pytest.mark.parametrize("manifest", [RELAY, APOLLO, CUSTOM], ids=["relay", "apollo", "custom"])
def test_manifests_of_each_kind(tmp_path: Path, manifest: Any) -> None:
    trusted = read_manifest(written(tmp_path, manifest))
    own = {} if manifest is APOLLO else manifest
    if manifest is APOLLO:
        own = {each["id"]: each["body"] for each in APOLLO["operations"]}  # type: ignore[index, attr-defined]
    assert trusted == {**own, **{f"sha256:{digest(text)}": text for text in TEXTS}}


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b'{"a": "\xff"}', "is not JSON"),
        *(
            (manifest, "is neither Relay's nor Apollo's manifest of documents")
            for manifest in (
                None,
                7,
                "{ hello }",
                [],
                [GREETING],
                {"a": 7},
                {"a": None},
                {"a": {"body": GREETING}},
                {"operations": [GREETING]},
                {"operations": [None]},
                {"operations": [{"id": "a"}]},
                {"operations": [{"body": GREETING}]},
                {"operations": [{"id": 7, "body": GREETING}]},
                {"operations": [{"id": "a", "body": None}]},
                {"operations": {"a": GREETING}},
            )
        ),
    ],
)
def test_files_that_are_no_manifest(tmp_path: Path, manifest: Any, said: str) -> None:
    path = written(tmp_path, manifest)
    with pytest.raises(ManifestError) as caught:
        read_manifest(path)
    assert str(caught.value) == f"{path} {said}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none.json", "No such file or directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(ManifestError) as caught:
            read_manifest(path)
        assert str(caught.value) == f"{path} cannot be read ({reason})"


async def test_a_server_does_not_start_with_a_file_that_is_no_manifest(tmp_path: Path) -> None:
    path = written(tmp_path, [])
    status, printed, complained = await command(
        "serve",
        DATABASE_URL="postgresql://nobody@127.0.0.1:1/none",
        MIRRORGRAPH_TRUSTED_DOCUMENTS=str(path),
    )
    assert (status, printed, complained) == (
        1,
        "",
        f"mirrorgraph: MIRRORGRAPH_TRUSTED_DOCUMENTS: {path} is neither Relay's nor Apollo's "
        "manifest of documents\n",
    )


@pytest.fixture(scope="module", params=[RELAY, APOLLO, CUSTOM], ids=["relay", "apollo", "custom"])
async def trusting(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Asker, dict[str, str]]]:
    """A server in strict mode, and the ids of the documents by their texts."""
    trusted = read_manifest(written(tmp_path_factory.mktemp("manifest"), request.param))
    ids = {text: name for name, text in trusted.items() if not name.startswith("sha256:")}
    async with asking(trusted=trusted, trusted_only=True, suggestions=False) as asker:
        yield asker, ids


Trusting = tuple[Asker, dict[str, str]]


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
async def test_trusted_documents_go_by_each_of_their_names(trusting: Trusting, accept: str) -> None:
    asker, ids = trusting
    for named in (
        {"documentId": ids[GREETING]},
        {"documentId": f"sha256:{digest(GREETING)}"},
        {"extensions": automatic(GREETING)},
        {"query": GREETING},
        {"query": GREETING, "extensions": automatic(GREETING)},
        {"query": GREETING, "documentId": f"sha256:{digest(GREETING)}"},
    ):
        answer = await asker.post({**named, "variables": ADA}, accept)
        assert (answer.status, answer.media, answer.body) == (200, accept, GREETED)
    answer = await asker.get(documentId=ids[GREETING], variables=json.dumps(ADA))
    assert (answer.status, answer.body) == (200, GREETED)


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
async def test_strict_mode_executes_nothing_else(trusting: Trusting, accept: str) -> None:
    asker, _ = trusting
    for asked, status, body in (
        ({"query": "{ hello }"}, 403, NOT_TRUSTED),
        ({"query": GREETING + " "}, 403, NOT_TRUSTED),
        ({"query": "{"}, 403, NOT_TRUSTED),
        ({"query": "mutation { set(value: 666) }"}, 403, NOT_TRUSTED),
        ({"query": "{ hello }", "extensions": automatic("{ hello }")}, 403, NOT_TRUSTED),
        ({"query": "{ hello }", "extensions": automatic(GREETING)}, 422, MISMATCH),
        ({"extensions": automatic("{ hello }")}, 404, NOT_FOUND),
        ({"documentId": f"sha256:{digest('{ hello }')}"}, 404, UNKNOWN),
        ({"documentId": "../etc"}, 404, UNKNOWN),
    ):
        answer = await asker.post(asked, accept)
        assert (answer.status, answer.media, answer.body) == (status, RESPONSE_JSON, body)
    assert asker.wire.probe.value != 666
    answer = await asker.post([{"query": "{ hello }"}, {"query": GREETING, "variables": ADA}], JSON)
    assert answer.body == [NOT_TRUSTED, GREETED]


async def test_a_trusted_document_is_checked_like_any_other(trusting: Trusting) -> None:
    asker, ids = trusting
    answer = await asker.post({"documentId": ids["{ nothing }"]})
    assert (answer.status, answer.code) == (422, "GRAPHQL_VALIDATION_FAILED")


async def test_strict_mode_over_server_sent_events(trusting: Trusting) -> None:
    asker, ids = trusting
    answer = await asker.post({"documentId": ids[COUNTING]}, "text/event-stream")
    assert (answer.status, answer.media) == (200, "text/event-stream")
    assert events_of(answer.body) == COUNTED
    answer = await asker.post({"query": "subscription { count(to: 1) }"}, "text/event-stream")
    assert events_of(answer.body) == [NOT_TRUSTED]


async def test_strict_mode_over_a_socket(trusting: Trusting) -> None:
    asker, ids = trusting
    async with connected(asker) as socket:
        expected = [*(("next", each) for each in COUNTED), ("complete", None)]
        assert await said(socket, {"documentId": ids[COUNTING]}) == expected
        assert await said(socket, {"query": COUNTING}) == expected
        assert await said(socket, {"extensions": automatic(COUNTING)}) == expected
        for asked, body in (
            ({"query": "{ hello }"}, NOT_TRUSTED),
            ({"documentId": "unknown"}, UNKNOWN),
            ({"extensions": automatic("{ hello }")}, NOT_FOUND),
        ):
            assert await said(socket, asked) == [("error", body["errors"])]


async def test_trusted_documents_are_never_dropped() -> None:
    trusted = {"greeting": GREETING}
    async with asking(trusted=trusted, entries=1, size=4_000) as asker:
        given = {"documentId": "greeting", "variables": ADA}
        assert (await asker.post(given)).body == GREETED
        for number in range(5):
            # Without strict mode other texts are executed as well.
            answer = await asker.post({"query": f"{{ hello }} # {number}"})
            assert answer.status == 200
        assert (await asker.post(given)).body == GREETED


# Callers


@contextlib.asynccontextmanager
async def connected(asker: Asker) -> AsyncIterator[Socket]:
    async with dialled(asker.wire.socket_url) as connection:
        socket = Socket(connection)
        await socket.send({"type": "connection_init"})
        assert await socket.receive() == {"type": "connection_ack"}
        yield socket


async def said(socket: Socket, payload: dict[str, Any]) -> list[tuple[str, Any]]:
    """The messages that answer an operation."""
    await socket.send({"type": "subscribe", "id": "1", "payload": payload})
    messages = [await socket.receive()]
    while messages[-1]["type"] == "next":
        messages.append(await socket.receive())
    return [(each["type"], each.get("payload")) for each in messages]


def events_of(text: str) -> list[Any]:
    """The results in a stream that has completed."""
    assert text.endswith("event: complete\ndata: \n\n")
    lines = [each.removeprefix("data: ") for each in text.splitlines() if each.startswith("data: ")]
    return [json.loads(line) for line in lines if line]
