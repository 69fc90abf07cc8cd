"""What all model providers agree on: the request, the parts of an answer, the error, the settings.

Nothing here knows a wire format or an SDK; how an answer is kept and retried belongs to the run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant"]
Channel: TypeAlias = Literal["text", "reasoning"]
FinishReason: TypeAlias = Literal["stop", "length", "refused", "other"]
ErrorCode: TypeAlias = Literal[
    "MISSING_KEY",
    "INVALID_KEY",
    "REFUSED",
    "RATE_LIMITED",
    "TIMED_OUT",
    "UNREACHABLE",
    "MALFORMED_STREAM",
    "MODEL_NOT_FOUND",
    "CONTEXT_TOO_LONG",
    "PROVIDER_ERROR",
]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation, its text already expanded."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class CharacterSheet:
    """The character's own words, from which the demo provider takes its prose."""

    name: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextsToTranslate:
    """What a request to translate is about, from which the demo provider takes its answer."""

    language: str
    texts: tuple[str, ...]


# Where nobody speaks.
NO_CHARACTER = CharacterSheet("", ())


@dataclass(frozen=True, slots=True)
class Request:
    """One answer asked for.

    `model` None means the provider's default model, `max_tokens` None the provider's own limit.
    `seed` makes the demo provider repeatable; it is not sent to real providers, some of which
    refuse a request that bears one.
    """

    model: str | None
    messages: tuple[Message, ...]
    character: CharacterSheet
    seed: int
    max_tokens: int | None
    to_translate: TextsToTranslate | None = None


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of the answer, never empty. The pieces of one channel joined are its whole text."""

    channel: Channel
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them, None where it did not say.

    `output_tokens` includes `reasoning_tokens`.
    """

    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None


@dataclass(frozen=True, slots=True)
class Finished:
    """The last item of every complete stream. `model` is the name the provider itself gave."""

    reason: FinishReason
    usage: Usage | None
    model: str | None


Part: TypeAlias = TextPart | Finished


class ProviderError(Exception):
    """The answer cannot be had, or not to its end.

    `message` says what to do and never bears a key; `retryable` says whether the same request may
    succeed later, `retry_after` after how many seconds, where the provider said so.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Which provider answers, and how it is reached.

    `provider` is "demo", "openai" or "anthropic". `model` replaces the provider's own default
    model. An OpenAI key is optional when `openai_base_url` is set, as local servers ask for none.
    `demo_rate` is in tokens per second, 0 as fast as possible. The time-outs are in seconds:
    `first_token_timeout` until the first part, `silence_timeout` between parts.
    """

    provider: str
    model: str | None = None
    openai_base_url: str | None = None
    openai_api_key: str | None = field(default=None, repr=False)
    anthropic_api_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    demo_rate: float = 30.0
    first_token_timeout: float = 120.0
    silence_timeout: float = 60.0


class Provider(Protocol):
    """A source of answers."""

    name: str
    default_model: str

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """The parts of one answer as they arrive, `Finished` last.

        Closing the generator, or cancelling whoever waits for it, ends the HTTP request at once.
        Raises ProviderError and nothing else.
        """
        ...

    async def close(self) -> None:
        """Close the connections. A later `stream` opens new ones."""
        ...
