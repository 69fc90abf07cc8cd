"""Changes to what a user has set up: inputs, payloads, mutations."""

from __future__ import annotations

import strawberry
from strawberry.scalars import JSON

from db.enums import Agent, EmbeddingBackend, ProviderType, StructuredOutput
from resolvers import app_settings as resolve
from schema.app_settings.rows import AppSettings
from schema.base import Payload, described, described_input, field, mutation

SETTINGS = "All settings, as they are now."
VERSION = "The version that was seen; any other is refused with CONFLICT."
PROVIDER = "The provider."
PROFILE = "The profile."
NAME = "What to call it."
KEY = "Its key, which is stored and never shown again."
ENDPOINT = "Its address, like https://example.org/v1, where that is not the usual one of its type."
FAVORITES = "Models that are worked with, 200 at most."
CUSTOM = "Models that it does not list, 200 at most."
DESCRIPTION = "What it is for."
MODEL = "The model, of a provider that is there; null for none."
TEMPERATURE = "From 0 to 2; null leaves it to the provider."
MAX_OUTPUT = "The most tokens of an answer, from 1; null leaves it to the provider."
THINKING = "How much it thinks, from 0; null leaves it to the provider."
TIMEOUT = "Seconds after which a call is given up, from 1 to 3,600; null for 60."
STRUCTURED = "Whether answers are held to a form; null for AUTO."
CUSTOM_JSON = (
    "An object whose fields are put over those of the call, 16 KiB at most; null for none."
)


@described_input
class SettingUpdateInput:
    """What changes; what is left out stays. Of JSON, the keys that are given change: null takes one
    away, and null for the whole takes all away.
    """

    default_provider_id: strawberry.Maybe[strawberry.ID] = field(
        "The provider that profiles are recommended for."
    )
    embedding_backend: strawberry.Maybe[EmbeddingBackend | None] = field(
        "Where texts of new stories are embedded; PROVIDER needs embeddingProviderId."
    )
    embedding_model_id: strawberry.Maybe[str | None] = field("The model that embeds.")
    embedding_provider_id: strawberry.Maybe[strawberry.ID | None] = field(
        "The provider that embeds."
    )
    default_story_settings: strawberry.Maybe[JSON | None] = field(
        "Settings of new stories; stories that are there keep theirs."
    )
    default_suggestion_categories: strawberry.Maybe[JSON | None] = field(
        "What may be suggested in new stories: lists of {id, label, promptHint, color, enabled, "
        "order} under adventure and creative."
    )
    default_calendar_id: strawberry.Maybe[strawberry.ID | None] = field(
        "The calendar of new stories: one of the server, or one's own."
    )
    appearance: strawberry.Maybe[JSON | None] = field(
        "themeId, readerFontScale, showJumpToBottom, accentOverride, density (default, compact, "
        "regular, comfortable), readerRailCollapsed."
    )
    ui_language: strawberry.Maybe[str | None] = field("Two small letters, as ISO 639-1 has them.")
    onboarding_completed: strawberry.Maybe[bool] = field(
        "Whether the introduction is finished; the first time is noted."
    )
    diagnostics: strawberry.Maybe[JSON | None] = field("enabled, debug_level_enabled.")
    expected_version: int | None = field(VERSION, default=None)


@described
class SettingUpdatePayload(Payload):
    """What is set up now."""

    settings: AppSettings | None = field(SETTINGS)


@described_input
class ProviderCreateInput:
    """A provider to set up. The first one becomes the default, with the profiles recommended for
    it.
    """

    type: ProviderType = field("Who it is; that never changes.")
    display_name: str = field(NAME)
    api_key: str | None = field(KEY, default=None)
    endpoint: str | None = field(ENDPOINT, default=None)
    favorite_model_ids: list[str] = field(FAVORITES, default_factory=list)
    custom_model_ids: list[str] = field(CUSTOM, default_factory=list)
    expected_version: int | None = field(VERSION, default=None)


@described
class ProviderCreatePayload(Payload):
    """The provider."""

    provider_id: strawberry.ID | None = field("Its id.")
    settings: AppSettings | None = field(SETTINGS)


@described_input
class ModelCapabilitiesInput:
    """What a model can do, as far as it is known."""

    reasoning: bool | None = field("Whether it thinks before it answers.", default=None)
    structured_output: bool | None = field(
        "Whether it can be held to a form of answers.", default=None
    )
    embedding: bool | None = field("Whether it embeds texts.", default=None)
    embedding_dim: int | None = field("How many numbers an embedding of it has.", default=None)
    matryoshka_supported: bool | None = field(
        "Whether embeddings of it can be cut shorter.", default=None
    )
    matryoshka_dims: list[int] | None = field(
        "To which lengths they are best cut, 50 at most.", default=None
    )


@described_input
class CachedModelInput:
    """A model that the provider has listed."""

    model_id: str = field("As its provider names it.")
    capabilities: ModelCapabilitiesInput | None = field("What it can do.", default=None)


@described_input
class ProviderUpdateInput:
    """What changes of a provider; what is left out stays."""

    provider_id: strawberry.ID = field(PROVIDER)
    display_name: strawberry.Maybe[str] = field(NAME)
    api_key: strawberry.Maybe[str | None] = field(f"{KEY} Null takes it away.")
    endpoint: strawberry.Maybe[str | None] = field(f"{ENDPOINT} Null for the usual one.")
    favorite_model_ids: strawberry.Maybe[list[str]] = field(FAVORITES)
    custom_model_ids: strawberry.Maybe[list[str]] = field(CUSTOM)
    cached_models: strawberry.Maybe[list[CachedModelInput] | None] = field(
        "What it has listed just now, 2,000 at most; null to forget it."
    )
    expected_version: int | None = field(VERSION, default=None)


@described
class ProviderUpdatePayload(Payload):
    """What is set up now."""

    settings: AppSettings | None = field(SETTINGS)


@described_input
class ProviderDeleteInput:
    """A provider to delete."""

    provider_id: strawberry.ID = field(PROVIDER)
    expected_version: int | None = field(VERSION, default=None)


@described
class ProviderDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the provider.")
    settings: AppSettings | None = field(SETTINGS)


@described_input
class ModelRefInput:
    """A model of a provider."""

    provider_id: strawberry.ID = field(PROVIDER)
    model_id: str = field("The model, as its provider names it.")


@described_input
class ProfileCreateInput:
    """A profile of agents to make."""

    name: str = field(NAME)
    description: strawberry.Maybe[str | None] = field(DESCRIPTION)
    model: strawberry.Maybe[ModelRefInput | None] = field(MODEL)
    temperature: strawberry.Maybe[float | None] = field(TEMPERATURE)
    max_output: strawberry.Maybe[int | None] = field(MAX_OUTPUT)
    thinking: strawberry.Maybe[float | None] = field(THINKING)
    timeout: strawberry.Maybe[int | None] = field(TIMEOUT)
    structured_output: strawberry.Maybe[StructuredOutput | None] = field(STRUCTURED)
    custom_json: strawberry.Maybe[JSON | None] = field(CUSTOM_JSON)
    expected_version: int | None = field(VERSION, default=None)


@described
class ProfileCreatePayload(Payload):
    """The profile."""

    profile_id: strawberry.ID | None = field("Its id.")
    settings: AppSettings | None = field(SETTINGS)


@described_input
class ProfileUpdateInput:
    """What changes of a profile; what is left out stays. The narrative's has neither description
    nor structuredOutput.
    """

    profile_id: strawberry.ID = field(PROFILE)
    name: strawberry.Maybe[str] = field(NAME)
    description: strawberry.Maybe[str | None] = field(DESCRIPTION)
    model: strawberry.Maybe[ModelRefInput | None] = field(MODEL)
    temperature: strawberry.Maybe[float | None] = field(TEMPERATURE)
    max_output: strawberry.Maybe[int | None] = field(MAX_OUTPUT)
    thinking: strawberry.Maybe[float | None] = field(THINKING)
    timeout: strawberry.Maybe[int | None] = field(TIMEOUT)
    structured_output: strawberry.Maybe[StructuredOutput | None] = field(STRUCTURED)
    custom_json: strawberry.Maybe[JSON | None] = field(CUSTOM_JSON)
    expected_version: int | None = field(VERSION, default=None)


@described
class ProfileUpdatePayload(Payload):
    """What is set up now."""

    settings: AppSettings | None = field(SETTINGS)


@described_input
class ProfileDeleteInput:
    """A profile of agents to delete."""

    profile_id: strawberry.ID = field(PROFILE)
    expected_version: int | None = field(VERSION, default=None)


@described
class ProfileDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the profile.")
    settings: AppSettings | None = field(SETTINGS)


@described_input
class ProfilesResetInput:
    """To begin anew with what is recommended."""

    expected_version: int | None = field(VERSION, default=None)


@described
class ProfilesResetPayload(Payload):
    """What is set up now."""

    settings: AppSettings | None = field(SETTINGS)


@described_input
class AssignmentSetInput:
    """Which profile an agent shall use."""

    agent: Agent = field("The agent.")
    profile_id: strawberry.ID | None = field("The profile; null for none.", default=None)
    expected_version: int | None = field(VERSION, default=None)


@described
class AssignmentSetPayload(Payload):
    """What is set up now."""

    settings: AppSettings | None = field(SETTINGS)


@strawberry.type
class AppSettingsMutation:
    """Changes to what a user has set up."""

    setting_update: SettingUpdatePayload = mutation(
        resolve.update_settings,
        input=SettingUpdateInput,
        payload=SettingUpdatePayload,
        description="Change defaults, looks and diagnostics.",
    )
    provider_create: ProviderCreatePayload = mutation(
        resolve.create_provider,
        input=ProviderCreateInput,
        payload=ProviderCreatePayload,
        description="Set up a provider of models.",
    )
    provider_update: ProviderUpdatePayload = mutation(
        resolve.update_provider,
        input=ProviderUpdateInput,
        payload=ProviderUpdatePayload,
        description="Change a provider, or note what it has listed.",
    )
    provider_delete: ProviderDeletePayload = mutation(
        resolve.delete_provider,
        input=ProviderDeleteInput,
        payload=ProviderDeletePayload,
        description="Delete a provider that is no default and with which no story embeds.",
    )
    profile_create: ProfileCreatePayload = mutation(
        resolve.create_profile,
        input=ProfileCreateInput,
        payload=ProfileCreatePayload,
        description="Make a profile of agents.",
    )
    profile_update: ProfileUpdatePayload = mutation(
        resolve.update_profile,
        input=ProfileUpdateInput,
        payload=ProfileUpdatePayload,
        description="Change a profile, the narrative's or one of agents.",
    )
    profile_delete: ProfileDeletePayload = mutation(
        resolve.delete_profile,
        input=ProfileDeleteInput,
        payload=ProfileDeletePayload,
        description="Delete a profile of agents; those that used it have none from then on.",
    )
    profiles_reset: ProfilesResetPayload = mutation(
        resolve.reset_profiles,
        input=ProfilesResetInput,
        payload=ProfilesResetPayload,
        description="Put what is recommended for the default provider in the place of all profiles "
        "and assignments.",
    )
    assignment_set: AssignmentSetPayload = mutation(
        resolve.assign_profile,
        input=AssignmentSetInput,
        payload=AssignmentSetPayload,
        description="Have an agent use a profile, or none.",
    )
