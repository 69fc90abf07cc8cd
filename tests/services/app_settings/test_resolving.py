"""Which model is asked: a table of everything that can be there or missing."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import Agent
from db.tables import AppSettings, ModelRef
from services.app_settings import resolve_model

GONE = {"providerId": "prov_gone", "modelId": "m"}
THERE = {"providerId": "prov_1", "modelId": "m"}
NARRATIVE = {"id": "prof_0", "kind": "narrative", "name": "Narrative", "modelRef": THERE}
AGENT = {"id": "prof_1", "kind": "agent", "name": "Fast", "modelRef": THERE}
OVERRIDE = {"providerId": "prov_1", "modelId": "own"}

CASES: list[tuple[Agent | None, dict[str, Any], dict[str, Any], str | None, str | None, str | None]]
CASES = [
    # agent, what differs in the settings, the story's own, the model, the profile, the failure
    (None, {}, {}, "m", "prof_0", None),
    (None, {}, {"narrative": OVERRIDE}, "own", "prof_0", None),
    (None, {}, {"classifier": OVERRIDE}, "m", "prof_0", None),
    (None, {}, {"narrative": GONE}, None, "prof_0", "override-provider-missing"),
    (None, {"profiles": [{**NARRATIVE, "modelRef": GONE}]}, {}, None, "prof_0", "provider-missing"),
    (
        None,
        {"profiles": [{"id": "prof_0", "kind": "narrative", "name": "x"}]},
        {},
        None,
        "prof_0",
        "model-missing",
    ),
    (Agent.CLASSIFIER, {}, {}, "m", "prof_1", None),
    (Agent.CLASSIFIER, {}, {"classifier": OVERRIDE}, "own", "prof_1", None),
    (Agent.CLASSIFIER, {}, {"classifier": GONE}, None, "prof_1", "override-provider-missing"),
    (Agent.CLASSIFIER, {}, {"narrative": OVERRIDE}, "m", "prof_1", None),
    (Agent.TRANSLATION, {}, {}, None, None, "profile-unassigned"),
    (Agent.TRANSLATION, {}, {"translation": OVERRIDE}, "own", None, None),
    (Agent.LORE_MGMT, {}, {"lore-mgmt": OVERRIDE}, "own", None, None),
    (Agent.CLASSIFIER, {"profiles": [NARRATIVE]}, {}, None, None, "profile-missing"),
    (Agent.CLASSIFIER, {"providers": []}, {}, None, "prof_1", "provider-missing"),
]


@pytest.mark.parametrize(("agent", "differing", "overrides", "model", "profile", "failure"), CASES)
def test_a_model_is_found_or_what_is_missing_is_told(
    agent: Agent | None,
    differing: dict[str, Any],
    overrides: dict[str, Any],
    model: str | None,
    profile: str | None,
    failure: str | None,
) -> None:
    """Rule Z9."""
    settings = AppSettings(
        id="user_1",
        providers_json=differing.get("providers", [{"id": "prov_1"}]),
        profiles_json=differing.get("profiles", [NARRATIVE, AGENT]),
        assignments_json={"classifier": "prof_1"},
    )
    choice = resolve_model(settings, overrides, agent)
    assert choice.model == (model and ModelRef("prov_1", model))
    assert (choice.profile and choice.profile.id) == profile
    assert choice.failure == failure
    is_own = (agent or "narrative") in overrides
    assert choice.is_override is is_own
