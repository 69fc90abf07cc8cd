"""Who embeds the texts of a story: the server's own model, a model of a provider, or nobody.

Source: design, retrieval (1, 11, 13); spec aventuras, story settings shape, provider instances.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sqlalchemy import Text, func, select, true
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import EmbedderFailure, EmbeddingBackend, ProviderType
from db.reading import Reading, any_of, param, statement
from db.tables import AppSettings, Branch, Embedding, Story
from services import app_settings
from services.access import Viewer, visible
from services.embedding.local import LOCAL_DIM, LOCAL_MODEL, LocalModel, is_installed
from services.embedding.storing import has_vectors
from services.embedding.vectors import EmbedderFault, checked, cut
from services.providers import ProviderError, embed_texts

# Where those types of providers are that need no address.
_ADDRESSES = {
    ProviderType.OPENAI: "https://api.openai.com/v1",
    ProviderType.OPENROUTER: "https://openrouter.ai/api/v1",
    ProviderType.NANOGPT: "https://nano-gpt.com/api/v1",
    ProviderType.NVIDIA_NIM: "https://integrate.api.nvidia.com/v1",
    ProviderType.GOOGLE: "https://generativelanguage.googleapis.com/v1beta/openai",
}
# What a provider is sent in one request, and how long it has for it, in seconds.
_BATCH = 64
_TIMEOUT = 20.0
_LONGEST_PAUSE = 5.0


class Embedder(Protocol):
    """Makes vectors of texts.

    `model_id` is the name under which its vectors are kept; `dim` is how many values they have,
    None before the first answer of a model of which nobody has said it.
    """

    model_id: str
    dim: int | None

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        """The vectors of texts in their order, checked and of length 1. Raises EmbedderFault."""
        ...


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """How a story is embedded, or why it is not."""

    backend: EmbeddingBackend
    # As the story's owner knows it; None where none was chosen.
    model_name: str | None
    provider_id: str | None
    # The name under which its vectors are kept.
    model_id: str | None
    embedder: Embedder | None
    failure: EmbedderFailure | None


class _Local:
    """The server's own model."""

    model_id = LOCAL_MODEL

    def __init__(self, model: LocalModel) -> None:
        self.dim: int | None = LOCAL_DIM
        self._model = model

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        """See Embedder."""
        vectors = await self._model.embed(texts, is_query=is_query)
        checked(vectors, len(texts), self.dim)
        return vectors


class _Provided:
    """A model of a provider, cut to the story's dimension."""

    def __init__(
        self,
        provider: Mapping[str, Any],
        address: str,
        model: str,
        wanted_dim: int | None,
        native_dim: int | None,
    ) -> None:
        self.model_id = _kept_name(provider["id"], model, wanted_dim)
        self.dim = None if native_dim is None else min(wanted_dim or native_dim, native_dim)
        self._wanted_dim = wanted_dim
        self._native_dim = native_dim
        self._model = model
        self._key = provider["apiKey"]
        self._address = address

    async def embed(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        """See Embedder."""
        found: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            served = await self._ask(batch)
            if self._native_dim is not None and any(len(v) != self._native_dim for v in served):
                raise EmbedderFault(
                    f"The provider gave vectors of another dimension than {self._native_dim}."
                )
            vectors = [cut(each, self._wanted_dim) for each in served]
            checked(vectors, len(batch), self.dim)
            self.dim = len(vectors[0])
            found += vectors
        return found

    async def _ask(self, texts: list[str]) -> list[list[float]]:
        for is_last in (False, True):
            try:
                return await embed_texts(
                    self._address, self._key, self._model, texts, within=_TIMEOUT
                )
            except ProviderError as error:
                if is_last or not error.retryable:
                    raise EmbedderFault(error.message) from None
                await asyncio.sleep(min(error.retry_after or 0.0, _LONGEST_PAUSE))
        raise AssertionError("the second try returns or raises")


class Embedders:
    """The embedders of one server process. `default` says whether it has a model of its own."""

    def __init__(self, default: Literal["local", "none"] | None = None, threads: int = 1) -> None:
        has_local = is_installed() if default is None else default == "local"
        self._local = LocalModel(threads) if has_local else None

    def close(self) -> None:
        """Give back what they hold."""
        if self._local is not None:
            self._local.close()

    async def embedder_of(
        self, reading: Reading, viewer: Viewer, branch_id: str
    ) -> Embedder | None:
        """Who embeds the texts of a branch; None where nobody does, or no such branch is there."""
        choice = (await self.choices_of(reading, viewer, [branch_id])).get(branch_id)
        return choice.embedder if choice else None

    async def choices_of(
        self, reading: Reading, viewer: Viewer, branch_ids: Sequence[str]
    ) -> dict[str, EmbedderChoice]:
        """How those of the branches are embedded that the viewer may see."""
        rows: list[Any] = await reading.all(
            _settings_of_branches(), ids=list(dict.fromkeys(branch_ids)), **viewer.parameters
        )
        stories = {row.story_id: row.settings for row in rows}
        choices = await self.choices_of_stories(reading, viewer, stories)
        return {row.branch_id: choices[row.story_id] for row in rows}

    async def choices_of_stories(
        self, reading: Reading, viewer: Viewer, stories: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, EmbedderChoice]:
        """How stories of the viewer are embedded that have these settings, by their ids."""
        settings = await app_settings.find_settings(reading, viewer)
        can_keep = await has_vectors(reading)
        choices = {
            story_id: self._choice(settings, given, can_keep=can_keep)
            for story_id, given in stories.items()
        }
        unsure = {
            story_id: choice.embedder
            for story_id, choice in choices.items()
            if choice.embedder and choice.embedder.dim is None
        }
        if unsure:
            found: list[Any] = await reading.all(
                _kept_dims(),
                story_ids=list(unsure),
                model_ids=[each.model_id for each in unsure.values()],
            )
            for row in found:
                unsure[row.story_id].dim = row.dim
        return choices

    def _choice(
        self, settings: AppSettings | None, story: Mapping[str, Any], *, can_keep: bool
    ) -> EmbedderChoice:
        backend = EmbeddingBackend(story.get("embeddingBackend", EmbeddingBackend.LOCAL))
        named = story.get("embedding_model_id")
        provider_id = story.get("embedding_provider_id")
        found: Embedder | EmbedderFailure
        if backend is EmbeddingBackend.PROVIDER:
            found = _provided(settings, provider_id, named, story.get("effectiveDim"))
        else:
            named, provider_id = named or LOCAL_MODEL, None
            found = self._own(named)
        if not can_keep:
            found = EmbedderFailure.NO_VECTORS
        model_id = named
        if backend is EmbeddingBackend.PROVIDER and named is not None:
            model_id = _kept_name(provider_id, named, story.get("effectiveDim"))
        if isinstance(found, EmbedderFailure):
            return EmbedderChoice(backend, named, provider_id, model_id, None, found)
        return EmbedderChoice(backend, named, provider_id, model_id, found, None)

    def _own(self, model: str) -> Embedder | EmbedderFailure:
        if self._local is None:
            return EmbedderFailure.NOT_INSTALLED
        return _Local(self._local) if model == LOCAL_MODEL else EmbedderFailure.MODEL_MISSING


def _provided(
    settings: AppSettings | None,
    provider_id: str | None,
    model: str | None,
    wanted_dim: int | None,
) -> Embedder | EmbedderFailure:
    providers = settings.providers_json if settings else []
    provider = next((each for each in providers if each["id"] == provider_id), None)
    if provider is None:
        return EmbedderFailure.PROVIDER_MISSING
    if model is None:
        return EmbedderFailure.MODEL_MISSING
    address = _address_of(provider)
    if address is None:
        return EmbedderFailure.PROVIDER_UNFIT
    listed = provider.get("cachedModels") or ()
    can: Mapping[str, Any] = next(
        (each.get("capabilities", {}) for each in listed if each["id"] == model), {}
    )
    return _Provided(provider, address, model, wanted_dim, can.get("embeddingDim"))


def _kept_name(provider_id: str | None, model: str, dim: int | None) -> str:
    # By the provider's id, which is its owner's alone: nobody finds or mars others' vectors.
    return f"{provider_id}:{model}" + ("" if dim is None else f"@{dim}")


def _address_of(provider: Mapping[str, Any]) -> str | None:
    """Where a provider is asked for embeddings; None where it has none."""
    type_ = ProviderType(provider["type"])
    if type_ is ProviderType.ANTHROPIC:
        return None
    return provider.get("endpoint") or _ADDRESSES.get(type_)


@statement(object)
def _settings_of_branches() -> Any:
    # Under a name of its own: the rule of visibility looks at the story by itself.
    told = aliased(Story)
    return (
        select(
            col(Branch.id).label("branch_id"),
            col(told.id).label("story_id"),
            col(told.settings).label("settings"),
        )
        .join(told, col(told.id) == col(Branch.story_id))
        .where(any_of(Branch.id, "ids"), visible(Branch))
    )


@statement(object)
def _kept_dims() -> Any:
    """How many values the vectors of stories have, each by one model."""
    wanted = (
        func.unnest(param("story_ids", ARRAY(Text)), param("model_ids", ARRAY(Text)))
        .table_valued("story_id", "model_id", name="wanted")
        .render_derived()
    )
    one = (
        select(col(Embedding.dim).label("dim"))
        .join(Branch, col(Branch.id) == col(Embedding.branch_id))
        .where(
            col(Branch.story_id) == wanted.c.story_id,
            col(Embedding.model_id) == wanted.c.model_id,
        )
        .limit(1)
        .lateral("one")
    )
    return select(wanted.c.story_id.label("story_id"), one.c.dim.label("dim")).select_from(
        wanted.join(one, true())
    )
