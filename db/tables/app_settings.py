"""What a user sets up: providers, profiles, defaults for new stories.

Source: spec aventuras, app settings storage; glossary, section 12 (the key is the user's id).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, ForeignKey, String
from sqlmodel import Field

from db.columns import (
    Table,
    created_at_column,
    json_list_column,
    json_object_column,
    link_column,
    text_column,
    time_column,
    version_column,
)
from db.enums import Agent, ProfileKind, ProviderType, StructuredOutput


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    """What a model can do; null where nobody has said it."""

    reasoning: bool | None = None
    structured_output: bool | None = None
    embedding: bool | None = None
    embedding_dim: int | None = None
    matryoshka_supported: bool | None = None
    matryoshka_dims: list[int] | None = None


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model that a provider has listed."""

    model_id: str
    capabilities: ModelCapabilities


@dataclass(frozen=True, slots=True)
class ProviderInstance:
    """A provider as its owner sees it: whether it has a key, and not the key."""

    id: str
    type: ProviderType
    display_name: str
    has_key: bool
    endpoint: str | None
    favorite_model_ids: list[str]
    custom_model_ids: list[str]
    cached_models: list[CachedModel] | None
    cached_at: datetime | None


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model of a provider; the provider may be gone."""

    provider_id: str
    model_id: str


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """With which model and how calls are made. What is null is left to the provider."""

    id: str
    kind: ProfileKind
    name: str
    description: str | None
    model: ModelRef | None
    temperature: float | None
    max_output: int | None
    thinking: float | None
    # In seconds.
    timeout: int | None
    structured_output: StructuredOutput | None
    custom_json: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class AgentAssignment:
    """Which profile an agent uses."""

    agent: Agent
    profile_id: str


class AppSettings(Table, table=True):
    """All of it. One row for each user who has set up something; who has not sees one without a
    row. JSON is spelled as the specification spells it, and read through the properties.
    """

    __tablename__ = "app_settings"

    # The user's id.
    id: str = Field(sa_column=Column(String, ForeignKey("users.id"), primary_key=True))
    # With their keys, which no answer and no log shows: read `providers`.
    providers_json: list[dict[str, Any]] = json_list_column("providers")
    profiles_json: list[dict[str, Any]] = json_list_column("profiles")
    assignments_json: dict[str, str] = json_object_column("assignments")
    default_provider_id: str | None = link_column(nullable=True)
    # A value of EmbeddingBackend.
    embedding_backend: str | None = text_column(nullable=True)
    embedding_model_id: str | None = text_column(nullable=True)
    embedding_provider_id: str | None = link_column(nullable=True)
    # Only what was set; what was not follows the server's defaults.
    default_story_settings: dict[str, Any] = json_object_column("default_story_settings")
    default_suggestion_categories: dict[str, Any] = json_object_column(
        "default_suggestion_categories"
    )
    default_calendar_id: str | None = link_column(nullable=True)
    appearance: dict[str, Any] = json_object_column("appearance")
    ui_language: str | None = text_column(nullable=True)
    onboarding_completed_at: datetime | None = time_column()
    diagnostics: dict[str, Any] = json_object_column("diagnostics")
    created_at: datetime = created_at_column()
    updated_at: datetime | None = time_column()
    version: int = version_column()

    @property
    def providers(self) -> list[ProviderInstance]:
        """The providers, oldest first, without their keys."""
        return [_provider(each) for each in self.providers_json]

    @property
    def profiles(self) -> list[ModelProfile]:
        """The profile of the narrative, then those of agents, oldest first."""
        return [_profile(each) for each in self.profiles_json]

    @property
    def assignments(self) -> list[AgentAssignment]:
        """Which agents have profiles."""
        return [
            AgentAssignment(agent, self.assignments_json[agent])
            for agent in Agent
            if agent in self.assignments_json
        ]


def _provider(value: Mapping[str, Any]) -> ProviderInstance:
    cached = value.get("cachedModels")
    at = value.get("cachedAt")
    return ProviderInstance(
        id=value["id"],
        type=ProviderType(value["type"]),
        display_name=value["displayName"],
        has_key=bool(value["apiKey"]),
        endpoint=value.get("endpoint"),
        favorite_model_ids=value["favoriteModelIds"],
        custom_model_ids=value.get("customModelIds", []),
        cached_models=None if cached is None else [_cached(each) for each in cached],
        cached_at=None if at is None else datetime.fromtimestamp(at, UTC),
    )


def _cached(value: Mapping[str, Any]) -> CachedModel:
    can = value.get("capabilities", {})
    return CachedModel(
        value["id"],
        ModelCapabilities(
            reasoning=can.get("reasoning"),
            structured_output=can.get("structuredOutput"),
            embedding=can.get("embedding"),
            embedding_dim=can.get("embeddingDim"),
            matryoshka_supported=can.get("matryoshkaSupported"),
            matryoshka_dims=can.get("matryoshkaDims"),
        ),
    )


def _profile(value: Mapping[str, Any]) -> ModelProfile:
    model = value.get("modelRef")
    held = value.get("structuredOutput")
    return ModelProfile(
        id=value["id"],
        kind=ProfileKind(value["kind"]),
        name=value["name"],
        description=value.get("description"),
        model=model and ModelRef(model["providerId"], model["modelId"]),
        temperature=value.get("temperature"),
        max_output=value.get("maxOutput"),
        thinking=value.get("thinking"),
        timeout=value.get("timeout"),
        structured_output=StructuredOutput(held) if held else None,
        custom_json=value.get("customJson"),
    )
