"""Speaks to OpenAI and to every server that imitates its chat completions (Ollama, vLLM, ...).

Uses the official SDK over aiohttp; what an error body means is decided in `failures`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from openai.types.completion_usage import CompletionUsage

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
    TextPart,
    Usage,
)
from services.providers.deadlines import with_deadlines

_OWN_BASE_URL = "https://api.openai.com/v1"
_DEFAULT_MODEL = "gpt-5.4-mini"
# The SDK insists on a key; servers that ask for none ignore it.
_NO_KEY = "not-needed"

_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refused",
}


class OpenAICompatibleProvider:
    """Chat completions, streamed.

    Without `openai_base_url` it is OpenAI itself and needs a key.
    """

    name = "openai"

    def __init__(self, settings: ProviderSettings) -> None:
        self.default_model = settings.model or _DEFAULT_MODEL
        self._settings = settings
        self._client: openai.AsyncOpenAI | None = None

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
        key = self._key()
        model = request.model or self.default_model
        origin = failures.Origin(model, key, "OPENAI_API_KEY", "OPENAI_BASE_URL")
        answer = _Answer()
        has_answered = False
        try:
            async with await self._send(request, model, key) as chunks:
                has_answered = True
                async for chunk in chunks:
                    for part in answer.read(chunk):
                        yield part
        except ProviderError:
            raise
        except openai.APIStatusError as error:
            headers = error.response.headers
            raise failures.error_answer(error.status_code, error.body, origin, headers) from None
        except openai.APIConnectionError:
            # Without time-outs of its own the SDK still calls some lost connections time-outs:
            # its aiohttp transport maps a refused connection so.
            raise (
                failures.broken_stream() if has_answered else failures.unreachable(origin)
            ) from None
        except openai.APIError as error:
            raise failures.error_answer(None, error.body, origin) from None
        except Exception as error:
            raise (
                failures.broken_stream() if has_answered else failures.unsendable(error)
            ) from None
        if answer.reason is None:
            raise failures.unfinished_stream(origin)
        yield Finished(answer.reason, answer.usage, answer.model)

    def _key(self) -> str:
        if self._settings.openai_base_url and not (self._settings.openai_api_key or "").strip():
            return _NO_KEY
        return failures.checked_key(self._settings.openai_api_key, "OPENAI_API_KEY")

    async def _send(
        self, request: Request, model: str, key: str
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        if self._client is None:
            self._client = connect(key, self._settings.openai_base_url or _OWN_BASE_URL)
        # OpenAI's newer models know only the new name of the limit, most imitators only the old.
        imitated = bool(self._settings.openai_base_url)
        limit = openai.omit if request.max_tokens is None else request.max_tokens
        return await self._client.chat.completions.create(
            model=model,
            messages=[_wire_message(message) for message in request.messages],
            max_tokens=limit if imitated else openai.omit,
            max_completion_tokens=openai.omit if imitated else limit,
            stream=True,
            stream_options={"include_usage": True},
        )


def build(settings: ProviderSettings) -> Provider:
    """The provider for these settings; nothing is connected yet."""
    return OpenAICompatibleProvider(settings)


class _Answer:
    """What has been gathered from the chunks of one answer so far."""

    def __init__(self) -> None:
        self.reason: FinishReason | None = None
        self.usage: Usage | None = None
        self.model: str | None = None

    def read(self, chunk: ChatCompletionChunk) -> list[TextPart]:
        """The text in one chunk. Raises ProviderError REFUSED."""
        self.model = chunk.model or self.model
        if chunk.usage is not None:
            self.usage = _usage(chunk.usage)
        # The last chunk has no choices; some servers write null for that.
        if not chunk.choices:
            return []
        choice = chunk.choices[0]
        if choice.finish_reason:
            self.reason = _FINISH_REASONS.get(choice.finish_reason, "other")
        # Azure sends a choice without a delta for its filter results.
        return _texts(choice.delta) if choice.delta else []


def _texts(delta: ChoiceDelta) -> list[TextPart]:
    if delta.refusal:
        raise failures.refusal()
    parts = []
    # Not OpenAI's own: DeepSeek and vLLM write the first, OpenRouter the second, some write both.
    reasoning = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
    if isinstance(reasoning, str) and reasoning:
        parts.append(TextPart("reasoning", reasoning))
    if delta.content:
        parts.append(TextPart("text", delta.content))
    return parts


def _usage(usage: CompletionUsage) -> Usage:
    details = usage.completion_tokens_details
    return Usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        details.reasoning_tokens if details is not None else None,
    )


def _wire_message(message: Message) -> ChatCompletionMessageParam:
    if message.role == "system":
        return {"role": "system", "content": message.text}
    if message.role == "user":
        return {"role": "user", "content": message.text}
    return {"role": "assistant", "content": message.text}


def connect(key: str, base_url: str) -> openai.AsyncOpenAI:
    """A client without time-outs and retries of its own, which is to be closed."""
    client = openai.AsyncOpenAI(
        api_key=key,
        admin_api_key="",
        webhook_secret="",
        base_url=base_url,
        timeout=None,
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(timeout=None),
    )
    # Settings come from one place: what the SDK found in its own environment variables is dropped.
    client.organization = client.project = None
    client._custom_headers = {}
    return client
