"""What clients are told of errors: the message and a code where they can mend it, else a mask.

What only we can mend is logged whole with the request's id, and the client gets that id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog
from graphql import GraphQLError, GraphQLSyntaxError
from strawberry.exceptions import MissingQueryError
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError

from db.paging import BadPageRequest
from services.errors import DomainError

logger = structlog.get_logger("mirrorgraph.errors")

# What Strawberry says of a request that names no operation, or one of the wrong kind.
_REQUEST_TROUBLE = (MissingQueryError, CannotGetOperationTypeError, InvalidOperationTypeError)


def presentable(errors: Sequence[GraphQLError], request_id: str) -> list[GraphQLError]:
    """The same errors as a client may see them."""
    return [_presentable(error, request_id) for error in errors]


def _presentable(error: GraphQLError, request_id: str) -> GraphQLError:
    original = error.original_error
    while isinstance(original, GraphQLError):
        original = original.original_error
    extensions: dict[str, Any]
    if isinstance(original, BadPageRequest):
        extensions = {"code": original.code, "argument": original.argument}
        return _told(error, original.message, extensions)
    if isinstance(original, DomainError):
        extensions = {"code": original.code}
        if original.path:
            extensions["argument"] = ".".join(str(step) for step in original.path)
        if original.is_retryable:
            extensions["retryable"] = True
        return _told(error, original.message, extensions)
    if isinstance(original, _REQUEST_TROUBLE):
        return _told(error, error.message, {"code": "BAD_REQUEST"})
    if original is None and error.path is None:
        is_syntax = isinstance(error, GraphQLSyntaxError)
        code = "GRAPHQL_PARSE_FAILED" if is_syntax else "GRAPHQL_VALIDATION_FAILED"
        return _told(error, error.message, {"code": code, **(error.extensions or {})})
    logger.error(
        "an operation failed",
        request_id=request_id,
        path=error.path,
        message=error.message,
        exc_info=original,
    )
    message = "Something went wrong on the server. Say this request id when you report it."
    return _told(error, message, {"code": "INTERNAL", "requestId": request_id})


def _told(error: GraphQLError, message: str, extensions: dict[str, Any]) -> GraphQLError:
    return GraphQLError(
        message,
        nodes=error.nodes,
        source=error.source,
        positions=error.positions,
        path=error.path,
        extensions=extensions,
    )


def error_body(code: str, message: str, **extensions: Any) -> dict[str, Any]:
    """The JSON body of a request that was refused before it was executed."""
    return {"errors": [{"message": message, "extensions": {"code": code, **extensions}}]}
