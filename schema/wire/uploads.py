"""Uploads by the GraphQL multipart request specification, bounded in number and size.

The request's bytes as a whole are bounded where the body is received; files wait on disk.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NewType

import strawberry
from graphql import GraphQLError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from schema.wire.errors import Refused
from schema.wire.limits import Limits
from schema.wire.requests import in_time, parse_json

# A file in the variables of a request; resolvers get Starlette's UploadFile.
Upload = NewType("Upload", UploadFile)


def _only_files(value: Any) -> UploadFile:
    if isinstance(value, UploadFile):
        return value
    raise GraphQLError(
        "A file is uploaded with the request, by the GraphQL multipart request specification."
    )


def _never_sent(_value: Any) -> Any:
    raise TypeError("files are only taken in")


def _never_written(_node: Any, _variables: Any = None) -> Any:
    return _only_files(None)


UPLOAD_SCALAR = strawberry.scalar(
    name="Upload",
    description="A file that is sent along with the request, by the GraphQL multipart request "
    "specification.",
    serialize=_never_sent,
    parse_value=_only_files,
    parse_literal=_never_written,
)


@asynccontextmanager
async def uploaded(request: Request, limits: Limits) -> AsyncIterator[Any]:
    """The operations of a multipart request, files put into their variables; the files last as
    long as the block. Raises Refused.
    """
    try:
        receiving = request.form(
            max_files=limits.files, max_fields=2, max_part_size=limits.request_bytes
        )
        form = await in_time(receiving, limits)
    except (MultiPartException, HTTPException) as error:
        said = error.message if isinstance(error, MultiPartException) else error.detail
        if "Too many files" in said:
            raise Refused(
                413, "TOO_MANY_FILES", f"A request has at most {limits.files} files."
            ) from None
        raise _malformed("The body does not follow multipart/form-data.") from None
    try:
        yield _assembled(form, limits)
    finally:
        await form.close()


def _assembled(form: FormData, limits: Limits) -> Any:
    operations = _json_field(form, "operations")
    places = _json_field(form, "map")
    if not isinstance(places, dict) or not all(map(_is_list_of_paths, places.values())):
        raise _malformed("`map` is an object from the names of files to lists of paths.")
    # Each place is a file to be read: a small body must not stand for a large one.
    if sum(map(len, places.values())) > limits.files:
        raise Refused(413, "TOO_MANY_FILES", f"A request has at most {limits.files} files.")
    for name, paths in places.items():
        file = form.get(name)
        if not isinstance(file, UploadFile):
            raise _malformed(f"`map` names a file {name!r}, which the body does not have.")
        for path in paths:
            _put(operations, path, file)
    return operations


def _json_field(form: FormData, name: str) -> Any:
    text = form.get(name)
    if not isinstance(text, str):
        raise _malformed(f"The body has no field `{name}`.")
    return parse_json(text, f"`{name}`")


def _is_list_of_paths(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _put(operations: Any, path: str, file: UploadFile) -> None:
    """Put a file where null stands for it."""
    *steps, last = path.split(".")
    holder = operations
    try:
        for step in steps:
            holder = holder[_key(holder, step)]
        key = _key(holder, last)
        is_free = holder[key] is None
    except (KeyError, IndexError, TypeError, ValueError):
        is_free = False
    # In a batch, the place of the operation comes first.
    if not is_free or steps[isinstance(operations, list) :][:1] != ["variables"]:
        raise _malformed(f"`map` leads to {path!r}, where no variable is null.")
    holder[key] = file


def _key(holder: Any, step: str) -> Any:
    # A step into a list is its index, written plainly: "-1" would lead to its end.
    if isinstance(holder, list):
        if not (step.isascii() and step.isdigit()):
            raise ValueError(step)
        return int(step)
    if not isinstance(holder, dict):
        raise TypeError(step)
    return step


def _malformed(message: str) -> Refused:
    return Refused(422, "BAD_REQUEST", message)
