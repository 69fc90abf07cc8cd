"""The model providers: one way to ask for an answer and to read it as it arrives.

An SDK is loaded only when its provider is chosen; runs, retries and storage belong to others.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence

from services.providers.base import (
    NO_CHARACTER,
    CharacterSheet,
    ErrorCode,
    Finished,
    Message,
    Part,
    Provider,
    ProviderError,
    ProviderSettings,
    Request,
    TextPart,
    TextsToTranslate,
    Usage,
)

__all__ = [
    "NO_CHARACTER",
    "CharacterSheet",
    "ErrorCode",
    "Finished",
    "Message",
    "Part",
    "Provider",
    "ProviderError",
    "ProviderSettings",
    "Request",
    "TextPart",
    "TextsToTranslate",
    "Usage",
    "embed_texts",
    "make_provider",
]

_MODULES = {
    "demo": "services.providers.demo",
    "openai": "services.providers.openai_compatible",
    "anthropic": "services.providers.anthropic_messages",
}


def make_provider(settings: ProviderSettings) -> Provider:
    """The provider that the settings name; connects to nothing and asks for no key yet.

    Raises ValueError for a name that is not known.
    """
    if settings.provider not in _MODULES:
        known = ", ".join(sorted(_MODULES))
        raise ValueError(f'No model provider is called "{settings.provider}". Known: {known}.')
    # Each SDK takes one to two seconds to import, so only the chosen one is.
    module = importlib.import_module(_MODULES[settings.provider])
    provider: Provider = module.build(settings)
    return provider


async def embed_texts(
    base_url: str, key: str | None, model: str, texts: Sequence[str], *, within: float
) -> list[list[float]]:
    """The vectors of texts, in their order, as a provider gives them that speaks OpenAI's way;
    `within` is in seconds. Raises ProviderError.
    """
    module = await asyncio.to_thread(importlib.import_module, "services.providers.embeddings")
    vectors: list[list[float]] = await module.embed(base_url, key, model, texts, within=within)
    return vectors
