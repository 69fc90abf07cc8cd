"""Which model is asked: what the story says, else the profile. What is missing is told by kind and
nothing takes its place.

Source: spec aventuras, scope policy; resolver-time failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from db.enums import Agent, ModelFailure, ProfileKind
from db.tables import AppSettings, ModelProfile, ModelRef

# The key of a story's own model for the narrative, which is no agent.
NARRATIVE = "narrative"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, or why there is none; and the profile that says how it is asked."""

    model: ModelRef | None
    profile: ModelProfile | None
    is_override: bool
    failure: ModelFailure | None


def resolve_model(
    settings: AppSettings, overrides: Mapping[str, Mapping[str, str]], agent: Agent | None
) -> ModelChoice:
    """The model of an agent, of the narrative where `agent` is None. `overrides` are the `models`
    of a story's settings.
    """
    providers = {each["id"] for each in settings.providers_json}
    profile, failure = _profile_of(settings, agent)
    override = overrides.get(agent or NARRATIVE)
    if override is not None:
        named = ModelRef(override["providerId"], override["modelId"])
        if named.provider_id not in providers:
            return ModelChoice(None, profile, True, ModelFailure.OVERRIDE_PROVIDER_MISSING)
        return ModelChoice(named, profile, True, None)
    if profile is None:
        return ModelChoice(None, None, False, failure)
    if profile.model is None:
        return ModelChoice(None, profile, False, ModelFailure.MODEL_MISSING)
    if profile.model.provider_id not in providers:
        return ModelChoice(None, profile, False, ModelFailure.PROVIDER_MISSING)
    return ModelChoice(profile.model, profile, False, None)


def _profile_of(
    settings: AppSettings, agent: Agent | None
) -> tuple[ModelProfile | None, ModelFailure | None]:
    profiles = settings.profiles
    if agent is None:
        return next(each for each in profiles if each.kind is ProfileKind.NARRATIVE), None
    assigned: Any = settings.assignments_json.get(agent)
    if assigned is None:
        return None, ModelFailure.PROFILE_UNASSIGNED
    found = next((each for each in profiles if each.id == assigned), None)
    return found, None if found else ModelFailure.PROFILE_MISSING
