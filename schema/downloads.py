"""`GET /exports/{id}` and `GET /assets/{id}`: files, for their owners alone."""

from __future__ import annotations

import mimetypes
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from resolvers import assets, transfers
from resolvers.context import Context
from schema.signing_in import SignedIn
from schema.wire.errors import Refused, RequestError, error_response, masked
from schema.wire.metrics import Metrics
from schema.wire.origins import refuse_foreign_pages
from services.errors import Unavailable

# Finds what is asked for and makes the answer; raises Refused.
Answer: TypeAlias = Callable[[Context, Request], Awaitable[Response]]

# RFC 8187: what may stand in an extended value as it is.
_ATTRIBUTE_CHARACTERS = "!#$&+-.^_`|~"
# Shown in a page; anything else is saved. None of these can hold a script.
_SHOWN = re.compile(r"(image|audio|video)/[a-z0-9.-]+")
_ONE_RANGE = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")


def download(
    answer: Answer,
    sign_in: Callable[[Mapping[str, str]], Awaitable[SignedIn]],
    allowed_origins: tuple[str, ...],
    metrics: Metrics,
) -> Callable[[Request], Awaitable[Response]]:
    """The handler of an address. What is not there, not the caller's or out of time is 404."""

    async def serve(request: Request) -> Response:
        try:
            refuse_foreign_pages(request, allowed_origins)
            caller = await sign_in(request.headers)
            return await answer(caller.context(), request)
        except Refused as refused:
            metrics.count(refused)
            return error_response(refused)
        except Exception as error:
            # A mistake of ours, or a database that does not answer.
            return error_response(RequestError(500, [masked(str(error), uuid.uuid4().hex, error)]))

    return serve


async def export_answer(context: Context, request: Request) -> Response:
    """The file of an export."""
    found = await transfers.find_export(context, request.path_params["id"])
    if found is None:
        raise Refused(404, "NOT_FOUND", "There is no such Export for you.")
    export, content = found
    headers = {
        "content-disposition": content_disposition(export.file_name),
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return Response(content, media_type=export.media_type, headers=headers)


async def asset_answer(context: Context, request: Request) -> Response:
    """The bytes of a file, or the part of them that is asked for. They never change, so who has
    them need not ask again.
    """
    absent = Refused(404, "NOT_FOUND", "There is no such Asset for you.")
    asset = await assets.asset_by_id(context, request.path_params["id"])
    if asset is None:
        raise absent
    tag = f'"{asset.content_hash}"'
    headers = {
        "etag": tag,
        # Not for others on the same machine: the address alone must not be enough.
        "cache-control": "private, max-age=31536000, immutable",
        "vary": "authorization",
    }
    if _names(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    size = asset.size_bytes
    part = requested_range(request.headers, tag, size)
    start, end = part or (0, size)
    headers |= {
        "accept-ranges": "bytes",
        "content-type": _content_type(asset.mime_type),
        "content-length": str(end - start),
        "content-disposition": _disposition(asset.id, asset.mime_type),
        # Neither sniffed nor, opened by itself, allowed to do anything.
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }
    status = 200
    if part is not None:
        status = 206
        headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    try:
        content = await assets.bytes_of_asset(context, asset, start, end)
    except Unavailable as error:
        raise Refused(
            503, error.code, error.message, headers={"retry-after": "5"}, retryable=True
        ) from None
    if content is None:
        raise absent
    return StreamingResponse(content, status, headers)


def requested_range(headers: Mapping[str, str], tag: str, size: int) -> tuple[int, int] | None:
    """The one part that is asked for, from its first byte to before its end; None for all.

    What is malformed, of several parts, or of another version (If-Range) is not followed. Raises
    Refused with 416 for a part that is not there.
    """
    asked = _ONE_RANGE.fullmatch(headers.get("range", ""))
    if asked is None or headers.get("if-range", tag) != tag:
        return None
    first, last = asked.groups()
    if not first and not last:
        return None
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if first and last and int(last) < int(first):
        return None
    if start >= size or (not first and int(last) == 0):
        raise Refused(
            416,
            "RANGE_NOT_SATISFIABLE",
            f"The file has {size} bytes.",
            headers={"content-range": f"bytes */{size}"},
        )
    return start, end


def _names(header: str | None, tag: str) -> bool:
    """Whether a list of tags has this one; weak ones count."""
    tags = [each.strip().removeprefix("W/") for each in (header or "").split(",")]
    return tag in tags or tags == ["*"]


def _content_type(mime_type: str) -> str:
    return f"{mime_type}; charset=utf-8" if mime_type.startswith("text/") else mime_type


def _disposition(asset_id: str, mime_type: str) -> str:
    if _SHOWN.fullmatch(mime_type):
        return "inline"
    return content_disposition(f"{asset_id}{mimetypes.guess_extension(mime_type) or ''}")


def content_disposition(file_name: str) -> str:
    """The header that has a browser save a file under its name (RFC 6266).

    Browsers read the second name; the first is for programs that know ASCII alone.
    """
    plain = "".join(letter if letter.isascii() else "_" for letter in file_name)
    extended = quote(file_name, safe=_ATTRIBUTE_CHARACTERS)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{extended}"
