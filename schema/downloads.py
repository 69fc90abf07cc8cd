"""`GET /exports/{id}`: the file of an export, for its owner alone."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from resolvers import transfers as resolve
from schema.signing_in import SignedIn
from schema.wire.errors import Refused, RequestError, error_response, masked
from schema.wire.metrics import Metrics
from schema.wire.origins import refuse_foreign_pages

# RFC 8187: what may stand in an extended value as it is.
_ATTRIBUTE_CHARACTERS = "!#$&+-.^_`|~"


def export_download(
    sign_in: Callable[[Mapping[str, str]], Awaitable[SignedIn]],
    allowed_origins: tuple[str, ...],
    metrics: Metrics,
) -> Callable[[Request], Awaitable[Response]]:
    """The handler of that address. What is not there, not the caller's or out of time is 404."""

    async def serve(request: Request) -> Response:
        try:
            refuse_foreign_pages(request, allowed_origins)
            caller = await sign_in(request.headers)
            found = await resolve.find_export(caller.context(), request.path_params["export_id"])
            if found is None:
                raise Refused(404, "NOT_FOUND", "There is no such Export for you.")
        except Refused as refused:
            metrics.count(refused)
            return error_response(refused)
        except Exception as error:
            # A mistake of ours, or a database that does not answer.
            return error_response(RequestError(500, [masked(str(error), uuid.uuid4().hex, error)]))
        export, content = found
        headers = {
            "content-disposition": content_disposition(export.file_name),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        }
        return Response(content, media_type=export.media_type, headers=headers)

    return serve


def content_disposition(file_name: str) -> str:
    """The header that has a browser save a file under its name (RFC 6266).

    Browsers read the second name; the first is for programs that know ASCII alone.
    """
    plain = "".join(letter if letter.isascii() else "_" for letter in file_name)
    extended = quote(file_name, safe=_ATTRIBUTE_CHARACTERS)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{extended}"
