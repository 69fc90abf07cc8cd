"""With which profiles a user begins, by the type of the default provider. Looked up when profiles
are made or reset, and never when a model is asked, so that a later server changes nobody's choice.

Source: spec aventuras, reset-to-defaults seed map.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from db.enums import Agent, ProfileKind, ProviderType
from db.ids import new_id

NARRATIVE_NAME = "Narrative"
_USERS = uuid.UUID("0d0c7f4e-4a57-4f1b-9d6f-2a6c1d5b7e10")


@dataclass(frozen=True, slots=True)
class RoleDefaults:
    """A model, and how it is asked."""

    model_id: str
    temperature: float | None = None
    max_output: int | None = None
    thinking: float | None = None
    timeout: int | None = None


@dataclass(frozen=True, slots=True)
class AgentProfileDefaults:
    """A profile of agents."""

    name: str
    description: str
    defaults: RoleDefaults


@dataclass(frozen=True, slots=True)
class ProviderTypeDefaults:
    """What is recommended for a type of provider; `assignments` names the profiles."""

    narrative: RoleDefaults
    agent_profiles: tuple[AgentProfileDefaults, ...]
    assignments: Mapping[Agent, str] = field(default_factory=dict)


def _recommended(narrative: str, fast: str, thorough: str) -> ProviderTypeDefaults:
    quick, heavy = "Fast tasks", "Heavy reasoning"
    return ProviderTypeDefaults(
        RoleDefaults(narrative, temperature=0.9, timeout=120),
        (
            AgentProfileDefaults(
                quick,
                "Short, frequent work beside the story.",
                RoleDefaults(fast, temperature=0.3, timeout=60),
            ),
            AgentProfileDefaults(
                heavy,
                "Work on whole chapters.",
                RoleDefaults(thorough, temperature=0.3, timeout=180),
            ),
        ),
        {
            Agent.CLASSIFIER: quick,
            Agent.TRANSLATION: quick,
            Agent.SUGGESTION: quick,
            Agent.RETRIEVAL: quick,
            Agent.LORE_MGMT: heavy,
            Agent.WIZARD_ASSIST: heavy,
        },
    )


# Types whose models differ from one deployment to the next have none.
PROVIDER_DEFAULTS: Mapping[ProviderType, ProviderTypeDefaults] = {
    ProviderType.ANTHROPIC: _recommended(
        "claude-sonnet-5-5", "claude-haiku-5-5", "claude-sonnet-5-5"
    ),
    ProviderType.OPENAI: _recommended("gpt-5.4", "gpt-5.4-mini", "gpt-5.4"),
}


def first_profile(user_id: str) -> dict[str, Any]:
    """The narrative's profile of who has made none: of one id, whether there is a row or not."""
    return {
        "id": f"prof_{uuid.uuid5(_USERS, user_id)}",
        "kind": ProfileKind.NARRATIVE,
        "name": NARRATIVE_NAME,
    }


def seeded(provider: Mapping[str, Any]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Profiles and assignments for who has this provider as default, all with new ids."""
    defaults = PROVIDER_DEFAULTS.get(provider["type"])
    if defaults is None:
        narrative = {
            "id": new_id("profiles"),
            "kind": ProfileKind.NARRATIVE,
            "name": NARRATIVE_NAME,
        }
        return [narrative], {}
    profiles = [_profile(ProfileKind.NARRATIVE, NARRATIVE_NAME, defaults.narrative, provider)]
    for each in defaults.agent_profiles:
        made = _profile(ProfileKind.AGENT, each.name, each.defaults, provider)
        profiles.append({**made, "description": each.description})
    ids = {each["name"]: each["id"] for each in profiles}
    return profiles, {agent.value: ids[name] for agent, name in defaults.assignments.items()}


def _profile(
    kind: ProfileKind, name: str, role: RoleDefaults, provider: Mapping[str, Any]
) -> dict[str, Any]:
    parameters = {
        "temperature": role.temperature,
        "maxOutput": role.max_output,
        "thinking": role.thinking,
        "timeout": role.timeout,
    }
    return {
        "id": new_id("profiles"),
        "kind": kind,
        "name": name,
        "modelRef": {"providerId": provider["id"], "modelId": role.model_id},
        **{key: value for key, value in parameters.items() if value is not None},
    }
