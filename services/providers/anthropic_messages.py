"""Speaks to Anthropic's Messages API, or to a server that imitates it.

Uses the official SDK over aiohttp; what an error body means is decided in `failures`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anthropic
from anthropic.types import MessageDeltaUsage, MessageParam, RawMessageStreamEvent
from anthropic.types import Usage as MessageUsage

from services.providers import failures
from services.providers.base import (
    Finished,
    FinishReason,
    Message,
    Part,
    Provider,
    ProviderError,
    ProviderSettings,
    Request,
    Role,
    TextPart,
    Usage,
)
from services.providers.deadlines import with_deadlines

_OWN_BASE_URL = "https://api.anthropic.com"
_DEFAULT_MODEL = "claude-haiku-5-5"
_DEFAULT_MAX_TOKENS = 4096
# The API wants the user to speak first, but a character's greeting often opens a conversation.
_OPENING = "[The conversation begins.]"

_FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}


class AnthropicProvider:
    """Messages, streamed. Needs a key, whatever `anthropic_base_url` says."""

    name = "anthropic"

    def __init__(self, settings: ProviderSettings) -> None:
        self.default_model = settings.model or _DEFAULT_MODEL
        self._settings = settings
        self._client: anthropic.AsyncAnthropic | None = None

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """See Provider."""
        return with_deadlines(
            self._parts(request),
            first=self._settings.first_token_timeout,
            silence=self._settings.silence_timeout,
        )

    async def close(self) -> None:
        """See Provider."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _parts(self, request: Request) -> AsyncGenerator[Part, None]:
        key = failures.checked_key(self._settings.anthropic_api_key, "ANTHROPIC_API_KEY")
        model = request.model or self.default_model
        origin = failures.Origin(model, key, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
        answer = _Answer()
        has_answered = False
        try:
            async with await self._send(request, model, key) as events:
                has_answered = True
                async for event in events:
                    part = answer.read(event)
                    if part is not None:
                        yield part
        except ProviderError:
            raise
        except anthropic.APIStatusError as error:
            # An error event inside a stream bears the status of the stream, which is success.
            status = error.status_code if error.status_code >= 300 else None
            headers = error.response.headers
            raise failures.error_answer(status, error.body, origin, headers) from None
        except anthropic.APIConnectionError:
            raise failures.unreachable(origin) from None
        except Exception as error:
            raise (
                failures.broken_stream() if has_answered else failures.unsendable(error)
            ) from None
        if answer.reason is None:
            raise failures.unfinished_stream(origin)
        yield Finished(answer.reason, answer.usage, answer.model)

    async def _send(
        self, request: Request, model: str, key: str
    ) -> anthropic.AsyncStream[RawMessageStreamEvent]:
        if self._client is None:
            self._client = _connect(key, self._settings.anthropic_base_url or _OWN_BASE_URL)
        system = "\n\n".join(m.text for m in request.messages if m.role == "system" and m.text)
        return await self._client.messages.create(
            model=model,
            max_tokens=request.max_tokens or _DEFAULT_MAX_TOKENS,
            system=system or anthropic.omit,
            messages=_alternating(request.messages),
            stream=True,
        )


def build(settings: ProviderSettings) -> Provider:
    """The provider for these settings; nothing is connected yet."""
    return AnthropicProvider(settings)


class _Answer:
    """What has been gathered from the events of one answer so far."""

    def __init__(self) -> None:
        self.reason: FinishReason | None = None
        self.usage: Usage | None = None
        self.model: str | None = None

    def read(self, event: RawMessageStreamEvent) -> TextPart | None:
        """The text in one event, if it has any."""
        if event.type == "message_start":
            self.model = event.message.model
            self.usage = _usage(event.message.usage, None)
        elif event.type == "message_delta":
            self.usage = _usage(event.usage, self.usage)
            if event.delta.stop_reason:
                self.reason = _FINISH_REASONS.get(event.delta.stop_reason, "other")
        elif event.type == "content_block_delta":
            if event.delta.type == "text_delta" and event.delta.text:
                return TextPart("text", event.delta.text)
            if event.delta.type == "thinking_delta" and event.delta.thinking:
                return TextPart("reasoning", event.delta.thinking)
        return None


def _usage(usage: MessageUsage | MessageDeltaUsage, earlier: Usage | None) -> Usage:
    # The input is counted in three parts, and the closing event may leave them out.
    counts = (
        usage.input_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
    )
    details = usage.output_tokens_details
    if usage.input_tokens is not None:
        input_tokens: int | None = sum(count or 0 for count in counts)
    else:
        input_tokens = earlier.input_tokens if earlier is not None else None
    return Usage(
        input_tokens,
        usage.output_tokens,
        details.thinking_tokens if details is not None else None,
    )


def _alternating(messages: tuple[Message, ...]) -> list[MessageParam]:
    """User and assistant in turn, the user first; empty texts, which the API rejects, left out."""
    turns: list[tuple[Role, list[str]]] = []
    for message in messages:
        if message.role == "system" or not message.text.strip():
            continue
        if turns and turns[-1][0] == message.role:
            turns[-1][1].append(message.text)
        else:
            turns.append((message.role, [message.text]))
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [_OPENING]))
    return [_wire_message(role, "\n\n".join(texts)) for role, texts in turns]


def _wire_message(role: Role, text: str) -> MessageParam:
    if role == "user":
        return {"role": "user", "content": text}
    return {"role": "assistant", "content": text}


def _connect(key: str, base_url: str) -> anthropic.AsyncAnthropic:
    client = anthropic.AsyncAnthropic(
        api_key=key,
        webhook_key="",
        base_url=base_url,
        timeout=None,
        max_retries=0,
        # Its spans would carry users' texts wherever the environment points.
        open_telemetry=False,
        http_client=anthropic.DefaultAioHttpClient(timeout=None),
    )
    # Settings come from one place: what the SDK found in its own environment variables is dropped.
    client._custom_headers = {}
    return client
