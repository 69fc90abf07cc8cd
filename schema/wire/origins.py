"""Which pages may talk to the server: what a browser sends on its own is told from what a script
sends that was let in.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

from schema.wire.bodies import FORM, content_type
from schema.wire.errors import Refused

# A page on another site cannot set any of these without the browser asking us first, so requests
# that a plain form or link could send must carry one.
PREFLIGHT_HEADERS = (
    "graphql-preflight",
    "apollo-require-preflight",
    "x-apollo-operation-name",
    "x-requested-with",
)


def is_known_origin(headers: Headers, allowed: tuple[str, ...]) -> bool:
    """Whether the page that sent this may talk to us; a client that is no browser names none."""
    origin = headers.get("origin")
    if origin is None or "*" in allowed or origin in allowed:
        return True
    try:
        return urlsplit(origin).netloc == headers.get("host")
    except ValueError:
        return False


def refuse_foreign_pages(request: Request, allowed: tuple[str, ...]) -> None:
    """Refuse what a page of an unknown origin makes a browser send, be it a link; raises Refused
    with 403.
    """
    is_foreign = request.headers.get("sec-fetch-site") in {"cross-site", "same-site"}
    is_known = is_known_origin(request.headers, allowed)
    if not is_known or (is_foreign and "origin" not in request.headers):
        raise Refused(
            403,
            "ORIGIN_NOT_ALLOWED",
            "Pages of this origin may not connect: see MIRRORGRAPH_ALLOWED_ORIGINS.",
        )


def require_preflight(request: Request, allowed: tuple[str, ...], *, is_event_source: bool) -> None:
    """Refuse what any page could make a browser send; raises Refused with 403."""
    is_simple = request.method == "GET" or content_type(request)[0] == FORM
    if not is_simple or any(name in request.headers for name in PREFLIGHT_HEADERS):
        return
    if request.method == "GET" and is_event_source and _says_where_from(request.headers, allowed):
        return
    raise Refused(
        403,
        "PREFLIGHT_REQUIRED",
        "GET requests and forms need a header that shows they come from a script, such as "
        "GraphQL-Preflight: 1. Other requests have the type application/json.",
    )


def _says_where_from(headers: Headers, allowed: tuple[str, ...]) -> bool:
    # EventSource can send no header of its own, but its browser says where it comes from, which
    # no page can forge.
    if headers.get("sec-fetch-site") == "same-origin":
        return True
    return "origin" in headers and is_known_origin(headers, allowed)
