"""What a user sets up: closed sets of values.

They are spelled as the specification spells them. Source: spec aventuras, app settings storage.
"""

from __future__ import annotations

from enum import StrEnum


class ProviderType(StrEnum):
    """Who serves models, and how it is spoken to."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    GOOGLE = "google"
    OPENROUTER = "openrouter"
    NANOGPT = "nanogpt"
    NVIDIA_NIM = "nvidia-nim"
    OPENAI_COMPATIBLE = "openai-compatible"


class ProfileKind(StrEnum):
    """Whose calls a profile is for."""

    NARRATIVE = "narrative"
    AGENT = "agent"


class StructuredOutput(StrEnum):
    """Whether a model is held to a form of answers."""

    AUTO = "auto"
    FORCE_ON = "force-on"
    FORCE_OFF = "force-off"


class Agent(StrEnum):
    """Who asks a model besides the storyteller: the registry of agents."""

    CLASSIFIER = "classifier"
    TRANSLATION = "translation"
    SUGGESTION = "suggestion"
    LORE_MGMT = "lore-mgmt"
    RETRIEVAL = "retrieval"
    WIZARD_ASSIST = "wizard-assist"


class EmbeddingBackend(StrEnum):
    """Where texts are embedded."""

    PROVIDER = "provider"
    LOCAL = "local"


class ModelFailure(StrEnum):
    """Why there is no model to ask."""

    OVERRIDE_PROVIDER_MISSING = "override-provider-missing"
    PROFILE_UNASSIGNED = "profile-unassigned"
    PROFILE_MISSING = "profile-missing"
    MODEL_MISSING = "model-missing"
    PROVIDER_MISSING = "provider-missing"
