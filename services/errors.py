"""The errors of the domain: what went wrong, a code for programs, and the input field to mend.

Six classes say what kind of trouble it is; a new trouble is a new code, not a new class.
How an error reaches a client is decided in `schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class DomainError(Exception):
    """Trouble that the caller can understand.

    `message` says what to do, `code` is stable and in upper case, `path` leads to the input field
    (`("input", "text")`) or is empty when no single field is at fault. `details` are what a program
    needs beyond the code, by the names under which clients get them.
    """

    default_code = "INVALID"
    # Whether the same call may succeed later without any change.
    is_retryable = False
    # What else is wrong with the same input, where all of it was looked through.
    others: tuple[DomainError, ...] = ()

    def __init__(
        self,
        message: str,
        code: str | None = None,
        path: tuple[str | int, ...] = (),
        *,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.path = path
        self.details = dict(details or {})


class NotFound(DomainError):
    """The thing is not there, or not there for this viewer: the two look alike on purpose."""

    default_code = "NOT_FOUND"


class Forbidden(DomainError):
    """The viewer sees the thing but may not do this to it."""

    default_code = "FORBIDDEN"


class Invalid(DomainError):
    """The input breaks a rule."""

    default_code = "INVALID"


class Conflict(DomainError):
    """The thing has changed, or is being changed, since the caller looked."""

    default_code = "CONFLICT"


class Unavailable(DomainError):
    """Something outside cannot serve now; the same call may work later."""

    default_code = "UNAVAILABLE"
    is_retryable = True


class LimitReached(DomainError):
    """More than the server allows at once."""

    default_code = "LIMIT_REACHED"
