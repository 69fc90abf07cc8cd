"""Files by the GraphQL multipart request specification."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from tempfile import SpooledTemporaryFile
from typing import Any

import aiohttp
import pytest

from schema.wire.http import EndpointSettings
from schema.wire.limits import Limits
from tests.schema.wire.asking import JSON, PREFLIGHT, RESPONSE_JSON, Asker, asking, error, form
from tests.schema.wire.talking import until

ONE = "mutation Read($file: Upload!) { readFile(file: $file) }"
MANY = "mutation Read($files: [Upload!]!) { readFiles(files: $files) }"
NO_PLACE = "`map` leads to {!r}, where no variable is null."


@pytest.fixture(scope="module")
async def asker() -> AsyncIterator[Asker]:
    async with asking(Limits(files=3, batch=4, request_bytes=3_000_000)) as asker:
        yield asker


@pytest.fixture(scope="module", autouse=True)
async def nothing_is_left(asker: Asker) -> AsyncIterator[None]:
    """All temporary files are closed in the end, whatever became of the requests."""
    yield
    gc.collect()
    kept = [each for each in gc.get_objects() if isinstance(each, SpooledTemporaryFile)]
    await until(lambda: all(each.closed for each in kept))


def request(operations: Any, places: Any, **files: bytes) -> aiohttp.FormData:
    """The three parts of a request; what is no text is written as JSON."""
    written = [each if isinstance(each, str) else json.dumps(each) for each in (operations, places)]
    return form(operations=written[0], map=written[1], **files)


def operation(query: str, **variables: Any) -> dict[str, Any]:
    return {"query": query, "variables": variables}


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
@pytest.mark.parametrize(
    ("operations", "places", "files", "body"),
    [
        (
            operation(ONE, file=None),
            {"a": ["variables.file"]},
            {"a": b"one"},
            {"data": {"readFile": "one"}},
        ),
        (
            operation(ONE, file=None),
            {"a": ["variables.file"]},
            {"a": b""},
            {"data": {"readFile": ""}},
        ),
        (
            operation(MANY, files=[None, None]),
            {"b": ["variables.files.1"], "a": ["variables.files.0"]},
            {"a": b"one", "b": b"two"},
            {"data": {"readFiles": ["one", "two"]}},
        ),
        (
            [operation(ONE, file=None), operation(MANY, files=[None])],
            {"a": ["0.variables.file"], "b": ["1.variables.files.0"]},
            {"a": b"one", "b": b"two"},
            [{"data": {"readFile": "one"}}, {"data": {"readFiles": ["two"]}}],
        ),
        (operation("{ hello }"), {}, {}, {"data": {"hello": "hello world"}}),
        (operation("{ hello }"), {}, {"a": b"unasked"}, {"data": {"hello": "hello world"}}),
        (operation("{ hello }"), {"a": []}, {"a": b"unasked"}, {"data": {"hello": "hello world"}}),
    ],
)
async def test_files_arrive_where_the_map_puts_them(
    asker: Asker, operations: Any, places: Any, files: dict[str, bytes], body: Any, accept: str
) -> None:
    answer = await asker.send_form(
        request(operations, places, **files), {**PREFLIGHT, "Accept": accept}
    )
    assert (answer.status, answer.media, answer.body) == (200, accept, body)


async def test_a_file_that_waits_on_disk(asker: Asker) -> None:
    content = b"0123456789" * 200_000
    answer = await asker.send_form(
        request(operation(ONE, file=None), {"a": ["variables.file"]}, a=content)
    )
    assert answer.body == {"data": {"readFile": content.decode()}}


NO_MAP = "`map` is an object from the names of files to lists of paths."


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({}, 422, "The body has no field `operations`."),
        ({"map": "{}"}, 422, "The body has no field `operations`."),
        ({"operations": "{}"}, 422, "The body has no field `map`."),
        ({"operations": b"{}", "map": "{}"}, 422, "The body has no field `operations`."),
        ({"operations": "{}", "map": b"{}"}, 422, "The body has no field `map`."),
        ({"operations": "{", "map": "{}"}, 400, "`operations` is not JSON in UTF-8."),
        ({"operations": "", "map": "{}"}, 400, "`operations` is not JSON in UTF-8."),
        ({"operations": "{}", "map": "NaN"}, 400, "`map` is not JSON in UTF-8."),
        (
            {"operations": "7", "map": "{}"},
            422,
            "The request is a JSON object with the document in `query`.",
        ),
        (
            {"operations": "{}", "map": "{}"},
            422,
            "The request has no document: put its text into `query`.",
        ),
        *(
            ({"operations": "{}", "map": places}, 422, NO_MAP)
            for places in (
                "null",
                "[]",
                '"a"',
                '{"a": "x"}',
                '{"a": [1]}',
                '{"a": [["x"]]}',
                '{"a": null}',
            )
        ),
        (
            {"operations": "{}", "map": "{}", "more": "text"},
            422,
            "The body does not follow multipart/form-data.",
        ),
    ],
)
async def test_forms_that_are_no_request(
    asker: Asker, fields: dict[str, str | bytes], status: int, message: str
) -> None:
    answer = await asker.send_form(form(**fields), {**PREFLIGHT, "Accept": RESPONSE_JSON})
    assert (answer.status, answer.media) == (status, JSON)
    assert answer.body["errors"] == [error("BAD_REQUEST", message)]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--x--\r\n"),
        ("multipart/form-data; boundary=", b"----\r\n"),
        ("multipart/form-data; boundary=x", b"NONSENSE"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\n{}\r\n"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"que',
        ),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"X: " + b"x" * 100_000),
    ],
)
async def test_bodies_that_are_no_form(asker: Asker, content_type: str, body: bytes) -> None:
    headers = {**PREFLIGHT, "Content-Type": content_type}
    answer = await asker.request("POST", headers=headers, data=body)
    assert (answer.status, answer.media, answer.code) == (422, JSON, "BAD_REQUEST")


async def test_a_form_that_breaks_off_before_its_end(asker: Asker) -> None:
    """The connection ends in the middle of a file."""

    async def broken() -> AsyncIterator[bytes]:
        yield (
            b'--x\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n'
            + b"x" * 2_000_000
        )
        raise ConnectionResetError

    headers = {**PREFLIGHT, "Content-Type": "multipart/form-data; boundary=x"}
    with pytest.raises((aiohttp.ClientError, ConnectionResetError)):
        await asker.request("POST", headers=headers, data=broken())
    answer = await asker.post({"query": "{ hello }"})
    assert answer.status == 200


@pytest.mark.parametrize("charset", ["utf-16", "latin-1", "utf-7"])
async def test_other_charsets_are_refused(asker: Asker, charset: str) -> None:
    """Rule T35."""
    headers = {**PREFLIGHT, "Content-Type": f"multipart/form-data; boundary=x; charset={charset}"}
    answer = await asker.request("POST", headers=headers, data=b"--x--\r\n")
    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "variables",
        "variables.",
        "variables.other",
        "variables.files",
        "variables.files.2",
        "variables.files.-1",
        "variables.files.1e0",
        "variables.files.\u0661",
        "variables.files." + "9" * 5_000,
        "variables.files.0.deeper",
        "variables.text",
        "variables.text.0",
        "variables.number.0",
        "variables.file.deeper",
        "0.variables.file",
        "query",
        "operationName",
        "extensions.free",
        "extensions.variables.free",
        "__class__",
        "variables.__class__",
    ],
)
async def test_paths_that_lead_to_no_free_place(asker: Asker, path: str) -> None:
    operations = {
        **operation(MANY, files=[None, "taken"], text="some", number=7, file=None),
        "operationName": None,
        "extensions": {"free": None, "variables": {"free": None}},
    }
    answer = await asker.send_form(request(operations, {"a": [path]}, a=b"one"))
    assert (answer.status, answer.media, answer.code) == (422, JSON, "BAD_REQUEST")
    assert answer.message == NO_PLACE.format(path)


@pytest.mark.parametrize(
    "path", ["variables.file", "1.variables.file", "0.extensions.variables.free"]
)
async def test_paths_of_a_batch_begin_with_the_operation(asker: Asker, path: str) -> None:
    operations = [{**operation(ONE, file=None), "extensions": {"variables": {"free": None}}}]
    answer = await asker.send_form(request(operations, {"a": [path]}, a=b"one"))
    assert (answer.status, answer.message) == (422, NO_PLACE.format(path))


async def test_two_files_for_one_place(asker: Asker) -> None:
    places = {"a": ["variables.file"], "b": ["variables.file"]}
    answer = await asker.send_form(request(operation(ONE, file=None), places, a=b"one", b=b"two"))
    assert (answer.status, answer.message) == (422, NO_PLACE.format("variables.file"))


@pytest.mark.parametrize("name", ["b", "", "operations", "map"])
async def test_a_map_that_names_a_file_that_was_not_sent(asker: Asker, name: str) -> None:
    places = {name: ["variables.file"]}
    answer = await asker.send_form(request(operation(ONE, file=None), places, a=b"one"))
    assert (answer.status, answer.code) == (422, "BAD_REQUEST")
    assert answer.message == f"`map` names a file {name!r}, which the body does not have."


async def test_one_file_in_several_places_counts_for_each(asker: Asker) -> None:
    """A small body must not stand for a large one."""
    for count in (3, 4):
        paths = [f"variables.files.{index}" for index in range(count)]
        answer = await asker.send_form(
            request(operation(MANY, files=[None] * count), {"a": paths}, a=b"one")
        )
        if count == 3:
            # What the first reader has read is gone for the others.
            assert answer.body == {"data": {"readFiles": ["one", "", ""]}}
        else:
            assert (answer.status, answer.media) == (413, JSON)
            assert answer.body["errors"] == [
                error("TOO_MANY_FILES", "A request has at most 3 files.")
            ]


async def test_too_many_files(asker: Asker) -> None:
    files = dict.fromkeys("abcd", b"one")
    answer = await asker.send_form(request(operation("{ hello }"), {}, **files))
    assert (answer.status, answer.media) == (413, JSON)
    assert answer.body["errors"] == [error("TOO_MANY_FILES", "A request has at most 3 files.")]


async def test_files_that_are_too_large_together(asker: Asker) -> None:
    data = request(
        operation(MANY, files=[None, None]),
        {"a": ["variables.files.0"], "b": ["variables.files.1"]},
        a=b"x" * 1_600_000,
        b=b"x" * 1_600_000,
    )
    answer = await asker.send_form(data)
    assert (answer.status, answer.media, answer.code) == (413, JSON, "REQUEST_TOO_LARGE")


@pytest.mark.parametrize(
    ("asked", "places", "status", "code", "message"),
    [
        (
            operation(ONE, file=None),
            {},
            422,
            "BAD_USER_INPUT",
            "Variable '$file' has invalid value: Expected value of non-null type 'Upload!' not "
            "to be None.",
        ),
        (
            operation(ONE, file="text"),
            {},
            422,
            "BAD_USER_INPUT",
            "Variable '$file' has invalid value: A file is uploaded with the request, by the "
            "GraphQL multipart request specification.",
        ),
        (
            operation("query Q($name: String) { hello(name: $name) }", name=None),
            {"a": ["variables.name"]},
            422,
            "BAD_USER_INPUT",
            "Variable '$name' has invalid value: String cannot represent a non string value: "
            "<UploadFile instance>",
        ),
        (
            operation('mutation { readFile(file: "text") }'),
            {},
            422,
            "GRAPHQL_VALIDATION_FAILED",
            "A file is uploaded with the request, by the GraphQL multipart request specification.",
        ),
    ],
)
async def test_files_and_other_values_do_not_stand_for_each_other(
    asker: Asker, asked: Any, places: Any, status: int, code: str, message: str
) -> None:
    answer = await asker.send_form(request(asked, places, a=b"one"))
    assert (answer.status, answer.media, answer.code) == (status, RESPONSE_JSON, code)
    assert answer.message == message


async def test_text_for_a_file_by_json(asker: Asker) -> None:
    answer = await asker.post(operation(ONE, file="text"))
    assert (answer.status, answer.code) == (422, "BAD_USER_INPUT")


async def test_an_idempotency_key_stands_for_the_content_of_the_files(asker: Asker) -> None:
    answer = await asker.send_form(
        request(operation(ONE, file=None), {"a": ["variables.file"]}, a=b"one"),
        {**PREFLIGHT, "Idempotency-Key": "key"},
    )
    # Read for the hash, and whole again for the resolver.
    assert answer.body == {"data": {"readFile": "one"}}


async def test_uploads_in_parallel_do_not_get_mixed_up(asker: Asker) -> None:
    async def sent(number: int) -> Any:
        content = str(number).encode() * 1_000
        return await asker.send_form(
            request(operation(ONE, file=None), {"a": ["variables.file"]}, a=content)
        )

    answers = await asyncio.gather(*map(sent, range(20)))
    assert [each.body for each in answers] == [
        {"data": {"readFile": str(number) * 1_000}} for number in range(20)
    ]


async def test_legacy_codes() -> None:
    settings = EndpointSettings(legacy_status_codes=True)
    async with asking(Limits(files=1), settings) as asker:
        answer = await asker.send_form(form(map="{}"))
        assert (answer.status, answer.media) == (400, JSON)
        answer = await asker.send_form(request(operation("{ hello }"), {}, a=b"1", b=b"2"))
        assert (answer.status, answer.media) == (413, JSON)
