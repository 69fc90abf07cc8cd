"""What clients are told of errors: the message and a code where they can mend it, else a mask.

What only we can mend is logged whole with the request's id, and the client gets that id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from graphql import GraphQLError
from starlette.responses import JSONResponse
from strawberry.exceptions import StrawberryInputCoercionError

from db.paging import BadPageRequest
from services.errors import DomainError

logger = structlog.get_logger("mirrorgraph.errors")

# What is said of null where a field of an input can be left out but not taken away.
NULL_REFUSED = "null means nothing here: give a value, or leave the field out."

# Where graphql-core says an object or a list back, at the end of its message.
_SAID_BACK = re.compile(r"(?:,? [Ff]ound|(?<=value)): ?[\[{].*", re.DOTALL)

# A GraphQL error as it is sent: message, locations, path, extensions.
ErrorBody = dict[str, Any]


class Refused(Exception):
    """A request that is not executed: its status over HTTP, and what the client is told.

    Raised with one code and message, or with the errors that a document has.
    """

    # Whether the metrics have it already; several layers see it pass.
    is_counted = False

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        **extensions: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = [error_body(code, message, **extensions)]
        self.headers = dict(headers or {})


def error_response(refused: Refused) -> JSONResponse:
    """The answer to a request that was refused, outside of GraphQL over HTTP."""
    return JSONResponse({"errors": refused.errors}, refused.status, refused.headers)


class RequestError(Refused):
    """A well-formed request whose document, operation or variables cannot be executed: what the
    GraphQL specification calls a request error. The response has errors and no data.
    """

    def __init__(self, status: int, errors: Sequence[ErrorBody]) -> None:
        Exception.__init__(self, errors[0]["message"])
        self.status = status
        self.code = errors[0]["extensions"]["code"]
        self.errors = list(errors)
        self.headers = {}


def request_error(status: int, code: str, message: str, **extensions: Any) -> RequestError:
    """A RequestError with a single error."""
    return RequestError(status, [error_body(code, message, **extensions)])


def error_body(code: str, message: str, **extensions: Any) -> ErrorBody:
    """One error that belongs to no place in a document."""
    return {"message": message, "extensions": {"code": code, **extensions}}


def located_body(code: str, error: GraphQLError) -> ErrorBody:
    """An error of graphql-core about the document or its variables, told as it is; but objects and
    lists are not said back, for a key may be in them whose neighbour is the mistake.
    """
    body: ErrorBody = dict(error.formatted)
    body["message"] = _SAID_BACK.sub("", body["message"])
    body["extensions"] = {"code": code, **(error.extensions or {})}
    return body


def presentable(errors: Sequence[GraphQLError], request_id: str) -> list[ErrorBody]:
    """Errors of an execution as a client may see them."""
    return [_presentable(error, request_id) for error in errors]


def _presentable(error: GraphQLError, request_id: str) -> ErrorBody:
    original = error.original_error
    if isinstance(original, StrawberryInputCoercionError):
        # A null that came in a variable; within a document a rule has found it.
        return {**error.formatted, **error_body("BAD_USER_INPUT", NULL_REFUSED)}
    while isinstance(original, GraphQLError):
        original = original.original_error
    body: ErrorBody = dict(error.formatted)
    if isinstance(original, BadPageRequest):
        body["message"] = original.message
        body["extensions"] = {"code": original.code, "argument": original.argument}
    elif isinstance(original, DomainError):
        body["message"] = original.message
        body["extensions"] = _domain_extensions(original)
    else:
        body.update(masked(error.message, request_id, original, error.path))
    return body


def _domain_extensions(error: DomainError) -> dict[str, Any]:
    extensions: dict[str, Any] = {"code": error.code, **error.details}
    if error.path:
        extensions["argument"] = ".".join(str(step) for step in error.path)
    if error.is_retryable:
        extensions["retryable"] = True
    return extensions


def masked(
    message: str,
    request_id: str,
    cause: BaseException | None,
    path: Sequence[str | int] | None = None,
) -> ErrorBody:
    """Log what went wrong; the client gets a mask that names the request."""
    logger.error(
        "an operation failed", request_id=request_id, path=path, message=message, exc_info=cause
    )
    return error_body(
        "INTERNAL",
        "Something went wrong on the server. Say this request id when you report it.",
        requestId=request_id,
    )
