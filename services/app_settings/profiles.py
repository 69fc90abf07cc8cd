"""Profiles of a user: with which model and how calls are made; and which agent uses which.

One profile is the narrative's, always. Source: spec aventuras, profiles; assignments; profile
deletion semantics; reset-to-defaults semantics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from db.enums import Agent, ProfileKind
from db.ids import new_id
from db.reading import Writing
from db.tables import AppSettings
from services.access import Viewer
from services.app_settings.holding import hold_settings, write_settings
from services.app_settings.providers import find_provider, require_provider
from services.app_settings.seeds import seeded
from services.errors import Conflict, Forbidden, Invalid, LimitReached, NotFound
from services.text import MAX_LINE, checked_prose, checked_text

MAX_PROFILES = 100
MAX_DESCRIPTION = 2_000
MAX_CUSTOM_BYTES = 16 * 1024
_PATH = ("input", "profileId")
# The least and the most of each number, by the key under which it is stored.
BOUNDS = {
    "temperature": (0, 2),
    "maxOutput": (1, 10_000_000),
    "thinking": (0, 10_000_000),
    "timeout": (1, 3_600),
}
_NUMBERS = {
    "temperature": "temperature",
    "max_output": "maxOutput",
    "thinking": "thinking",
    "timeout": "timeout",
}
# The narrative has neither.
_OF_AGENTS = {"description": "description", "structured_output": "structuredOutput"}


async def create_profile(
    writing: Writing,
    viewer: Viewer,
    values: Mapping[str, Any],
    expected_version: int | None,
) -> tuple[AppSettings, str]:
    """Make a profile of agents, `values` by the names of `ModelProfile`; its id too.

    Raises Invalid (TEXT_…, OUT_OF_RANGE, INVALID_SHAPE), NotFound (the model's provider),
    LimitReached, Conflict.
    """
    settings = await hold_settings(writing, viewer, expected_version)
    if len(settings.profiles_json) >= MAX_PROFILES:
        raise LimitReached(f"Make {MAX_PROFILES} profiles at most.", path=("input",))
    checked = _checked(settings, ProfileKind.AGENT, values)
    made = {"id": new_id("profiles"), "kind": ProfileKind.AGENT, **_present(checked)}
    profiles = [*settings.profiles_json, made]
    settings = await write_settings(writing, settings, {"profiles_json": profiles})
    return settings, str(made["id"])


async def update_profile(
    writing: Writing,
    viewer: Viewer,
    profile_id: str,
    changes: Mapping[str, Any],
    expected_version: int | None,
) -> AppSettings:
    """Change a profile; None clears what may be absent.

    Raises what `create_profile` raises, and Invalid (NOT_OF_NARRATIVE).
    """
    settings = await hold_settings(writing, viewer, expected_version)
    before = _require(settings, profile_id)
    after = _present({**before, **_checked(settings, before["kind"], changes)})
    profiles = [after if each is before else each for each in settings.profiles_json]
    return await write_settings(writing, settings, {"profiles_json": profiles})


async def delete_profile(
    writing: Writing, viewer: Viewer, profile_id: str, expected_version: int | None
) -> AppSettings:
    """Delete a profile of agents; those that used it have none from then on.

    Raises NotFound, Forbidden (NARRATIVE_STAYS), Conflict.
    """
    settings = await hold_settings(writing, viewer, expected_version)
    gone = _require(settings, profile_id)
    if gone["kind"] == ProfileKind.NARRATIVE:
        raise Forbidden(
            "The story is told with this profile: change it instead.", "NARRATIVE_STAYS", _PATH
        )
    assignments = settings.assignments_json.items()
    return await write_settings(
        writing,
        settings,
        {
            "profiles_json": [each for each in settings.profiles_json if each is not gone],
            "assignments_json": {agent: used for agent, used in assignments if used != profile_id},
        },
    )


async def assign_profile(
    writing: Writing,
    viewer: Viewer,
    agent: Agent,
    profile_id: str | None,
    expected_version: int | None,
) -> AppSettings:
    """Have an agent use a profile, or none. Raises NotFound, Invalid (WRONG_KIND: the narrative's
    is for the narrative), Conflict.
    """
    settings = await hold_settings(writing, viewer, expected_version)
    assignments = dict(settings.assignments_json)
    if profile_id is None:
        assignments.pop(agent, None)
    else:
        if _require(settings, profile_id)["kind"] != ProfileKind.AGENT:
            raise Invalid("Agents use profiles of agents.", "WRONG_KIND", _PATH)
        assignments[agent.value] = profile_id
    return await write_settings(writing, settings, {"assignments_json": assignments})


async def reset_profiles(
    writing: Writing, viewer: Viewer, expected_version: int | None
) -> AppSettings:
    """Put what is recommended for the default provider in the place of all profiles and
    assignments. Raises Conflict (NO_PROVIDER while none is set up).
    """
    settings = await hold_settings(writing, viewer, expected_version)
    provider = find_provider(settings, settings.default_provider_id or "")
    if provider is None:
        raise Conflict("Set up a provider first.", "NO_PROVIDER", ("input",))
    profiles, assignments = seeded(provider)
    return await write_settings(
        writing, settings, {"profiles_json": profiles, "assignments_json": assignments}
    )


def _require(settings: AppSettings, profile_id: str) -> dict[str, Any]:
    for each in settings.profiles_json:
        if each["id"] == profile_id:
            return each
    raise NotFound("You have no such profile.", path=_PATH)


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _checked(settings: AppSettings, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of a profile as it is stored; None takes a key away."""
    found: dict[str, Any] = {}
    for name, key in _OF_AGENTS.items():
        if given.get(name) is not None and kind == ProfileKind.NARRATIVE:
            raise Invalid("Only profiles of agents have this.", "NOT_OF_NARRATIVE", ("input", key))
    if "name" in given:
        found["name"] = checked_text(given["name"], "input", "name", max_length=MAX_LINE)
    if "description" in given:
        text = given["description"]
        found["description"] = text and checked_prose(
            text, "input", "description", max_length=MAX_DESCRIPTION
        )
    if "structured_output" in given:
        found["structuredOutput"] = given["structured_output"]
    if "model" in given:
        found["modelRef"] = given["model"] and _checked_model(settings, given["model"])
    for name, key in _NUMBERS.items():
        if name in given:
            found[key] = _checked_number(key, given[name])
    if "custom_json" in given:
        found["customJson"] = _checked_custom(given["custom_json"])
    return found


def _checked_model(settings: AppSettings, model: Any) -> dict[str, str]:
    path = ("input", "model")
    provider = require_provider(settings, model.provider_id, *path, "providerId")
    model_id = checked_text(model.model_id, *path, "modelId", max_length=MAX_LINE)
    return {"providerId": provider["id"], "modelId": model_id}


def _checked_number(key: str, value: float | None) -> float | None:
    least, most = BOUNDS[key]
    if value is not None and not least <= value <= most:
        raise Invalid(f"Give {least} to {most:,}.", "OUT_OF_RANGE", ("input", key))
    return value


def _checked_custom(value: Any) -> dict[str, Any] | None:
    path = ("input", "customJson")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Invalid("Give an object.", "INVALID_SHAPE", path)
    try:
        size = len(orjson.dumps(value))
    except TypeError:
        raise Invalid("This holds what JSON here cannot.", "INVALID_SHAPE", path) from None
    if size > MAX_CUSTOM_BYTES:
        raise LimitReached(f"This has {MAX_CUSTOM_BYTES:,} bytes at most.", path=path)
    return value
