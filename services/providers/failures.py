"""Turns what providers answer instead of text into ProviderError, with words that say what to do.

Knows the spellings of OpenAI, Anthropic and the servers that imitate them, but no SDK.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from services.providers.base import ProviderError

_EXCERPT_LENGTH = 160
# Providers repeat a wrong key, partly masked, in their error texts.
_LOOKS_SECRET = re.compile(r"\b(?:sk|pk|rk|key|gsk|xai)-[\w*.\-]{4,}|\bBearer\s+\S+", re.IGNORECASE)

_NO_MODEL_WORDS = {"model_not_found", "not_found_error", "notfounderror", "model"}
_NO_MODEL_TEXT = re.compile(
    r"not found|not exist|no such model|(?:unknown|invalid|unsupported) model|not a valid model",
    re.IGNORECASE,
)
_TOO_LONG_WORDS = {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
_TOO_LONG_TEXT = re.compile(
    r"context (?:length|window|size)|prompt is too long|input is too long", re.IGNORECASE
)
_RATE_WORDS = {"rate_limit_error", "rate_limit_exceeded"}
_QUOTA_WORDS = {"insufficient_quota", "billing_hard_limit_reached"}
_KEY_WORDS = {"authentication_error", "permission_error", "invalid_api_key"}
_REFUSAL_WORDS = {"content_filter", "content_policy_violation", "moderation_blocked"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Who was asked for what, in the words of the one who has to mend it.

    `key_setting` and `url_setting` are names of settings; `key` is the secret that must not show.
    """

    model: str
    key: str | None
    key_setting: str
    url_setting: str


def checked_key(key: str | None, setting: str) -> str:
    """The key without surrounding space. Raises ProviderError MISSING_KEY or INVALID_KEY."""
    key = (key or "").strip()
    if not key:
        raise ProviderError(
            "MISSING_KEY",
            f"No key for the model provider. Set {setting}, or choose the demo provider.",
            retryable=False,
        )
    # Anything else cannot stand in a header, and the HTTP client's complaint would quote it.
    if not (key.isascii() and key.isprintable()):
        raise ProviderError(
            "INVALID_KEY",
            f"{setting} holds characters that no key has. Set it again.",
            retryable=False,
        )
    return key


def unreachable(origin: Origin) -> ProviderError:
    """No connection, or none that led to an answer."""
    return ProviderError(
        "UNREACHABLE",
        f"The model provider cannot be reached. Check the network and {origin.url_setting}.",
        retryable=True,
    )


def unsendable(error: Exception) -> ProviderError:
    """The request could not even be written; only the kind of trouble is told."""
    return ProviderError(
        "PROVIDER_ERROR",
        f"The request could not be sent to the model provider ({type(error).__name__}).",
        retryable=False,
    )


def broken_stream() -> ProviderError:
    """The answer began and then broke off or made no sense."""
    return ProviderError(
        "MALFORMED_STREAM",
        "The provider's answer broke off or could not be read. Try again.",
        retryable=True,
    )


def unfinished_stream(origin: Origin) -> ProviderError:
    """The answer ended without a finish mark."""
    return ProviderError(
        "MALFORMED_STREAM",
        "The provider's answer ended without a finish mark. Try again; "
        f"if it always happens, check {origin.url_setting}.",
        retryable=True,
    )


def refusal() -> ProviderError:
    """The model or the provider's filter declined."""
    return ProviderError(
        "REFUSED",
        "The provider refused to answer. Change the request or choose another model.",
        retryable=False,
    )


def error_answer(
    status: int | None,
    body: object,
    origin: Origin,
    headers: Mapping[str, str] | None = None,
) -> ProviderError:
    """What an error body means.

    `status` is the HTTP status, None for an error inside a stream that had begun with success.
    `body` is the decoded JSON, with or without the outer "error", or plain text. `headers` are
    those of the response, looked up without regard to case.
    """
    error = _meaning(status, body, origin)
    error.retry_after = _retry_after(headers or {})
    return error


def _meaning(status: int | None, body: object, origin: Origin) -> ProviderError:
    detail = _detail(body)
    words = {str(detail.get(name) or "").lower() for name in ("code", "type", "param")}
    text = str(detail.get("message") or detail.get("detail") or "")
    if status is None:
        # OpenRouter gives the status of the model's host as the code of the error.
        status = next((int(word) for word in words if re.fullmatch(r"[45]\d\d", word)), None)
    excerpt = _excerpt(text, origin.key)
    said = f" It said: {excerpt}" if excerpt else ""

    if words & _QUOTA_WORDS:
        return ProviderError(
            "RATE_LIMITED",
            "The provider's quota for this key is used up. Check the plan and its billing.",
            retryable=False,
        )
    if status == 429 or words & _RATE_WORDS:
        return ProviderError(
            "RATE_LIMITED",
            f"The provider limits the rate of requests. Wait a little and try again.{said}",
            retryable=True,
        )
    if status == 413 or words & _TOO_LONG_WORDS or _blames(status, text, _TOO_LONG_TEXT):
        return ProviderError(
            "CONTEXT_TOO_LONG",
            "The conversation is longer than the model can read. Shorten it or choose a model "
            f"with a larger context.{said}",
            retryable=False,
        )
    if (
        status == 404
        or words & _NO_MODEL_WORDS
        or (origin.model in text and _blames(status, text, _NO_MODEL_TEXT))
    ):
        return ProviderError(
            "MODEL_NOT_FOUND",
            f'The provider does not offer the model "{_excerpt(origin.model, origin.key)}". '
            f"Choose another model or check {origin.url_setting}.",
            retryable=False,
        )
    if status == 401 or (status != 403 and words & _KEY_WORDS):
        return ProviderError(
            "INVALID_KEY",
            f"The provider does not accept the key. Set {origin.key_setting} to a valid key.",
            retryable=False,
        )
    if status == 403:
        return ProviderError(
            "INVALID_KEY",
            f"The key has no right to this request. Check {origin.key_setting}.{said}",
            retryable=False,
        )
    if words & _REFUSAL_WORDS:
        return refusal()
    if status == 408 or "timeout_error" in words:
        return ProviderError(
            "TIMED_OUT", "The provider took too long and gave up. Try again.", retryable=True
        )
    # An unnamed error inside a stream is the provider's: the request itself had been accepted.
    if status is None or status >= 500:
        return ProviderError(
            "PROVIDER_ERROR", f"The provider failed. Try again.{said}", retryable=True
        )
    return ProviderError(
        "PROVIDER_ERROR",
        f"The provider rejected the request (status {status}).{said}",
        retryable=False,
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; the header holds them, or milliseconds under a name of its own, or a moment."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        with contextlib.suppress(TypeError, ValueError):
            seconds = float(value or "") / unit
            if math.isfinite(seconds):
                return max(seconds, 0.0)
        with contextlib.suppress(TypeError, ValueError):
            moment = parsedate_to_datetime(value or "")
            return max((moment - datetime.now(moment.tzinfo)).total_seconds(), 0.0)
    return None


def _blames(status: int | None, text: str, pattern: re.Pattern[str]) -> bool:
    return (status is None or status < 500) and pattern.search(text) is not None


def _detail(body: object) -> Mapping[str, Any]:
    if isinstance(body, Mapping):
        inner = body.get("error")
        if isinstance(inner, Mapping):
            return inner
        return {"message": inner} if isinstance(inner, str) else body
    # A proxy's error page is HTML, an excerpt of which helps nobody.
    if isinstance(body, str) and not body.lstrip().startswith("<"):
        return {"message": body}
    return {}


def _excerpt(text: str, key: str | None) -> str:
    if key:
        text = text.replace(key, "…")
    text = _LOOKS_SECRET.sub("…", text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= _EXCERPT_LENGTH else text[: _EXCERPT_LENGTH - 1] + "…"
