"""What front ends ask about settings."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.callers import Caller, Json

_PARTS = """
fragment Parts on AppSettings {
  id
  providers {
    id type displayName hasKey endpoint favoriteModelIds customModelIds cachedAt
    cachedModels { modelId capabilities { embedding embeddingDim matryoshkaDims } }
  }
  profiles {
    id kind name description model { providerId modelId } temperature maxOutput thinking timeout
    structuredOutput customJson
  }
  assignments { agent profileId }
  defaultProviderId embeddingBackend embeddingModelId embeddingProviderId
  defaultStorySettings defaultSuggestionCategories defaultCalendarId
  appearance uiLanguage onboardingCompletedAt diagnostics updatedAt version
}
fragment Refused on UserError { code message path }
"""
SETTINGS = _PARTS.partition("fragment Refused")[0] + "query Settings { settings { ...Parts } }"
SETTING_CHANGES = (
    _PARTS
    + """
mutation SettingUpdate($input: SettingUpdateInput!) {
  settingUpdate(input: $input) { settings { ...Parts } errors { ...Refused } }
}
mutation ProviderCreate($input: ProviderCreateInput!) {
  providerCreate(input: $input) { providerId settings { ...Parts } errors { ...Refused } }
}
mutation ProviderUpdate($input: ProviderUpdateInput!) {
  providerUpdate(input: $input) { settings { ...Parts } errors { ...Refused } }
}
mutation ProviderDelete($input: ProviderDeleteInput!) {
  providerDelete(input: $input) { deletedId settings { ...Parts } errors { ...Refused } }
}
mutation ProfileCreate($input: ProfileCreateInput!) {
  profileCreate(input: $input) { profileId settings { ...Parts } errors { ...Refused } }
}
mutation ProfileUpdate($input: ProfileUpdateInput!) {
  profileUpdate(input: $input) { settings { ...Parts } errors { ...Refused } }
}
mutation ProfileDelete($input: ProfileDeleteInput!) {
  profileDelete(input: $input) { deletedId settings { ...Parts } errors { ...Refused } }
}
mutation ProfilesReset($input: ProfilesResetInput!) {
  profilesReset(input: $input) { settings { ...Parts } errors { ...Refused } }
}
mutation AssignmentSet($input: AssignmentSetInput!) {
  assignmentSet(input: $input) { settings { ...Parts } errors { ...Refused } }
}
"""
)
MODEL_OF = """
query ModelOf($story: ID!) {
  story(id: $story) {
    narrative: modelOf { ...Choice }
    classifier: modelOf(agent: CLASSIFIER) { ...Choice }
  }
}
fragment Choice on ModelChoice {
  model { providerId modelId } profile { name } isOverride failure
}
"""


async def set_up(caller: Caller, key: str = "sk-mine") -> dict[str, str]:
    """A provider beside the default one, and a profile; ids by kinds."""
    settings = (await caller.ask(SETTINGS, {}, "Settings"))["settings"]
    names = ["Mine"] if settings["providers"] else ["Default", "Mine"]
    for name in names:
        given = {"type": "OPENAI", "displayName": name, "apiKey": key}
        answer = await caller.ask(SETTING_CHANGES, {"input": given}, "ProviderCreate")
    provider = answer["providerCreate"]["providerId"]
    answer = await caller.ask(SETTING_CHANGES, {"input": {"name": "Mine"}}, "ProfileCreate")
    return {"provider": provider, "profile": answer["profileCreate"]["profileId"]}


def setting_inputs(ids: Mapping[str, str]) -> dict[str, Json]:
    """An input for each change that names something, aimed at what is given by its kind."""
    provider, profile = {"providerId": ids["provider"]}, {"profileId": ids["profile"]}
    return {
        "SettingUpdate": {"defaultProviderId": ids["provider"]},
        "ProviderUpdate": {**provider, "displayName": "Not mine"},
        "ProviderDelete": provider,
        "ProfileUpdate": {**profile, "name": "Not mine"},
        "ProfileDelete": profile,
        "AssignmentSet": {**profile, "agent": "CLASSIFIER"},
    }


# Where each of these says what it did not find.
SETTING_PATHS = {
    "settingUpdate": "defaultProviderId",
    "providerUpdate": "providerId",
    "providerDelete": "providerId",
    "profileUpdate": "profileId",
    "profileDelete": "profileId",
    "assignmentSet": "profileId",
}


def setting_texts() -> dict[str, tuple[str, list[str]]]:
    """Each change with `$value` in the place of each of its texts, and the path of that."""
    update, profile = 'providerId: "prov_1"', 'profileId: "prof_1"'
    new = 'type: OPENAI, displayName: "x"'
    label = 'promptHint: "", color: "", enabled: true, order: 0'
    places: dict[str, list[tuple[str, str]]] = {
        "settingUpdate": [
            ("defaultProviderId", "defaultProviderId: $value"),
            ("embeddingModelId", "embeddingModelId: $value"),
            ("embeddingProviderId", "embeddingProviderId: $value"),
            (
                "defaultStorySettings.translation.targetLanguage",
                "defaultStorySettings: { translation: { targetLanguage: $value } }",
            ),
            (
                "defaultSuggestionCategories.creative.0.label",
                "defaultSuggestionCategories: "
                f'{{ creative: [{{ id: "x", label: $value, {label} }}] }}',
            ),
            ("defaultCalendarId", "defaultCalendarId: $value"),
            ("appearance.themeId", "appearance: { themeId: $value }"),
            ("uiLanguage", "uiLanguage: $value"),
            ("diagnostics.enabled", "diagnostics: { enabled: $value }"),
        ],
        "providerCreate": [
            ("displayName", "type: OPENAI, displayName: $value"),
            ("apiKey", f"{new}, apiKey: $value"),
            ("endpoint", f"{new}, endpoint: $value"),
            ("favoriteModelIds.0", f"{new}, favoriteModelIds: [$value]"),
            ("customModelIds.0", f"{new}, customModelIds: [$value]"),
        ],
        "providerUpdate": [
            ("providerId", "providerId: $value"),
            ("displayName", f"{update}, displayName: $value"),
            ("apiKey", f"{update}, apiKey: $value"),
            ("endpoint", f"{update}, endpoint: $value"),
            ("favoriteModelIds.0", f"{update}, favoriteModelIds: [$value]"),
            ("customModelIds.0", f"{update}, customModelIds: [$value]"),
            ("cachedModels.0.modelId", f"{update}, cachedModels: [{{ modelId: $value }}]"),
        ],
        "providerDelete": [("providerId", "providerId: $value")],
        "profileDelete": [("profileId", "profileId: $value")],
        "assignmentSet": [("profileId", "agent: CLASSIFIER, profileId: $value")],
    }
    for mutation, start in (("profileCreate", 'name: "x"'), ("profileUpdate", profile)):
        places[mutation] = [
            ("name", f"{'' if mutation == 'profileCreate' else start} name: $value"),
            ("description", f"{start}, description: $value"),
            ("model.providerId", f'{start}, model: {{ providerId: $value, modelId: "x" }}'),
            ("model.modelId", f'{start}, model: {{ providerId: "prov_1", modelId: $value }}'),
            ("customJson.stop", f"{start}, customJson: {{ stop: $value }}"),
        ]
    places["profileUpdate"].append(("profileId", "profileId: $value"))
    return {
        f"{mutation} {place}": (
            f"{mutation}(input: {{ {given} }})",
            ["input", *place.split(".")],
        )
        for mutation, fields in places.items()
        for place, given in fields
    }
