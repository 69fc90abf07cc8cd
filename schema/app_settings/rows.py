"""What users set up, as it can be read. Keys of providers can not."""

from __future__ import annotations

from datetime import datetime

import strawberry
from strawberry.scalars import JSON

from db.enums import (
    Agent,
    EmbeddingBackend,
    ModelFailure,
    ProfileKind,
    ProviderType,
    StructuredOutput,
)
from schema.base import described, enum, field, row_type

enum(
    ProviderType,
    ANTHROPIC="Anthropic.",
    OPENAI="OpenAI.",
    GOOGLE="Google.",
    OPENROUTER="OpenRouter.",
    NANOGPT="NanoGPT.",
    NVIDIA_NIM="NVIDIA NIM.",
    OPENAI_COMPATIBLE="Any endpoint that speaks as OpenAI's does; it needs an address.",
)
enum(
    ProfileKind,
    NARRATIVE="The storyteller's: there is one, always.",
    AGENT="Of agents, which do the work beside the story.",
)
enum(
    StructuredOutput,
    AUTO="Where the model is known to be able to.",
    FORCE_ON="Always.",
    FORCE_OFF="Never.",
)
enum(
    Agent,
    CLASSIFIER="Reads facts off the text.",
    TRANSLATION="Says the text in another language.",
    SUGGESTION="Says what could be done next.",
    LORE_MGMT="Keeps the lore when a chapter closes.",
    RETRIEVAL="Decides what is brought in where that is not clear.",
    WIZARD_ASSIST="Helps to set up a story.",
)
enum(
    EmbeddingBackend,
    PROVIDER="At a provider's endpoint.",
    LOCAL="By a model that the server has.",
)
enum(
    ModelFailure,
    OVERRIDE_PROVIDER_MISSING="The story names a model of a provider that is gone: mend the story.",
    PROFILE_UNASSIGNED="The agent has no profile.",
    PROFILE_MISSING="The agent's profile is gone.",
    MODEL_MISSING="The profile names no model.",
    PROVIDER_MISSING="The profile names a model of a provider that is gone.",
)


@described
class ModelCapabilities:
    """What a model can do; null where nobody has said it."""

    reasoning: bool | None = field("Whether it thinks before it answers.")
    structured_output: bool | None = field("Whether it can be held to a form of answers.")
    embedding: bool | None = field("Whether it embeds texts.")
    embedding_dim: int | None = field("How many numbers an embedding of it has.")
    matryoshka_supported: bool | None = field("Whether embeddings of it can be cut shorter.")
    matryoshka_dims: list[int] | None = field("To which lengths they are best cut: 50 at most.")


@described
class CachedModel:
    """A model that a provider has listed."""

    model_id: str = field("As its provider names it.")
    capabilities: ModelCapabilities = field("What it can do.")


@described
class ProviderInstance:
    """A provider of models that a user has set up. Its key is never shown."""

    id: strawberry.ID = field("Its id among the providers of its owner.")
    type: ProviderType = field("Who it is.")
    display_name: str = field("What its owner calls it.")
    has_key: bool = field("Whether it has a key.")
    endpoint: str | None = field("Its address, where that is not the usual one of its type.")
    favorite_model_ids: list[str] = field("Models that its owner works with: 200 at most.")
    custom_model_ids: list[str] = field("Models that it does not list: 200 at most.")
    cached_models: list[CachedModel] | None = field(
        "What it has listed, 2,000 at most; null before."
    )
    cached_at: datetime | None = field("When it listed them.")


@described
class ModelRef:
    """A model of a provider. The provider may be gone: calls fail then."""

    provider_id: strawberry.ID = field("The provider.")
    model_id: str = field("The model, as its provider names it.")


@described
class ModelProfile:
    """With which model and how calls are made. What is null is left to the provider."""

    id: strawberry.ID = field("Its id among the profiles of its owner.")
    kind: ProfileKind = field("Whose calls it is for.")
    name: str = field("What its owner calls it.")
    description: str | None = field("What it is for; only of agents.")
    model: ModelRef | None = field("The model; calls fail without one.")
    temperature: float | None = field("From 0 to 2; some providers take no more than 1.")
    max_output: int | None = field("The most tokens of an answer.")
    thinking: float | None = field("How much it thinks, as its model understands it.")
    timeout: int | None = field("Seconds after which a call is given up; 60 where it is null.")
    structured_output: StructuredOutput | None = field(
        "Whether answers are held to a form; only of agents."
    )
    custom_json: JSON | None = field("What is put over the call's own fields, one by one.")


@described
class AgentAssignment:
    """Which profile an agent uses."""

    agent: Agent = field("The agent.")
    profile_id: strawberry.ID = field("The profile.")


@row_type
class AppSettings:
    """What a user has set up. There is one for each user."""

    id: strawberry.ID = field("The id of the user whose they are.")
    providers: list[ProviderInstance] = field("Providers of models, oldest first: 50 at most.")
    profiles: list[ModelProfile] = field(
        "The narrative's profile, then those of agents, oldest first: 100 at most."
    )
    assignments: list[AgentAssignment] = field("Which agents have profiles; others have none.")
    default_provider_id: strawberry.ID | None = field(
        "The provider that profiles are recommended for; null while there is none."
    )
    embedding_backend: EmbeddingBackend | None = field(
        "Where texts of new stories are embedded; null follows the server."
    )
    embedding_model_id: str | None = field("The model that embeds texts of new stories.")
    embedding_provider_id: strawberry.ID | None = field("The provider that embeds them.")
    default_story_settings: JSON = field(
        "Settings of new stories, as far as they were set; others follow the server when a story "
        "is made."
    )
    default_suggestion_categories: JSON = field(
        "What may be suggested in new stories, by mode (adventure, creative), as far as it was set."
    )
    default_calendar_id: strawberry.ID | None = field("The calendar of new stories.")
    appearance: JSON = field("How the pages look, as far as it was set.")
    ui_language: str | None = field(
        "The language of the pages: ISO 639-1; null follows the browser."
    )
    onboarding_completed_at: datetime | None = field("When the introduction was first finished.")
    diagnostics: JSON = field("What is noted to find mistakes, as far as it was set.")
    updated_at: datetime | None = field("When something was last changed; null before.")
    version: int = field("Counts the changes, from 1.")


@described
class ModelChoice:
    """Which model is asked, or why none can be."""

    model: ModelRef | None = field("The model; null where there is none.")
    profile: ModelProfile | None = field("The profile that says how it is asked.")
    is_override: bool = field("Whether the story says it, and not the profile.")
    failure: ModelFailure | None = field("Why there is no model; null where there is one.")
