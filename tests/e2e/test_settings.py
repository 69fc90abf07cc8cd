"""What users set up, over HTTP; their keys go in and never come out."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from typing import Any

import aiohttp
import pytest

from tests.conftest import ServerProcess
from tests.e2e.callers import Answer, Caller, Json
from tests.e2e.ledgers import Ledger
from tests.e2e.settings_documents import MODEL_OF, SETTING_CHANGES, SETTINGS
from tests.e2e.story_documents import STORY, STORY_CHANGES
from tests.e2e.test_people import make_user

KEY = "sk-nobody-ever-sees-this-one"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {
        "MIRRORGRAPH_AUTH": "token",
        "MIRRORGRAPH_LOG_LEVEL": "debug",
        "MIRRORGRAPH_LOG_FORMAT": "json",
    }


@pytest.fixture
async def owner(caller: Caller, server_dsn: str) -> Caller:
    """Somebody new."""
    return caller.as_((await make_user(server_dsn, uuid.uuid4().hex))[1])


async def change(caller: Caller, operation: str, **given: Any) -> Json:
    """The payload of a change that is not refused."""
    (payload,) = (await caller.ask(SETTING_CHANGES, {"input": given}, operation)).values()
    assert payload["errors"] == [], payload
    return dict(payload)


async def refusal(caller: Caller, operation: str, **given: Any) -> tuple[str, list[str]]:
    (payload,) = (await caller.ask(SETTING_CHANGES, {"input": given}, operation)).values()
    (error,) = payload.pop("errors")
    assert set(payload.values()) == {None}
    return error["code"], error["path"]


async def seen(caller: Caller) -> Json:
    return dict((await caller.ask(SETTINGS, {}, "Settings"))["settings"])


async def test_a_key_comes_out_of_nothing(
    server: ServerProcess, session: aiohttp.ClientSession, ledger: Ledger, owner: Caller
) -> None:
    """Rule Z2."""
    answers: list[Answer] = []
    given: Json = {"type": "OPENAI", "displayName": "Mine", "apiKey": KEY}

    async def send(operation: str, given: Json, **headers: str) -> Any:
        answer = await owner.post(SETTING_CHANGES, {"input": given}, operation, headers)
        answers.append(answer)
        return answer

    twice = {"Idempotency-Key": uuid.uuid4().hex}
    for _ in range(2):
        made = await send("ProviderCreate", given, **twice)
    provider = made.data["providerCreate"]["providerId"]
    named = {"providerId": provider}
    await send("ProviderUpdate", {**named, "apiKey": KEY}, **{"Idempotency-Key": uuid.uuid4().hex})
    await send("ProviderUpdate", {**named, "apiKey": f"{KEY} "})
    await send("ProviderUpdate", {**named, "apiKey": f"{KEY}\0"})
    await send("ProviderUpdate", {**named, "endpoint": f"https://me:{KEY}@example.org"})
    await send("ProviderCreate", {**given, "expectedVersion": 99})
    await send("ProviderDelete", named)
    await send("ProfilesReset", {})
    literal = f'type: OPENAI, displayName: "x", apiKey: "{KEY}"'
    inline = f"mutation {{ providerCreate(input: {{ {literal} }}) {{ providerId }} }}"
    answers.append(await owner.post(inline))
    answers.append(
        await owner.post(
            "{ settings { providers { id displayName hasKey endpoint } } "
            "viewer { auditEvents { nodes { action arguments } } } }"
        )
    )
    async with owner.socket() as socket:
        told = await socket.ask(
            SETTING_CHANGES, {"input": {**named, "apiKey": KEY}}, "ProviderUpdate"
        )
        assert told["providerUpdate"]["errors"] == []
        assert KEY not in json.dumps(told)
    # A key under a name that is none, of a kind that is none, and beside another mistake.
    for wrong in (
        {"apikey": KEY},
        {"apiKey": [KEY, {}]},
        {"apiKey": {"x": KEY}},
        {"apiKey": KEY, "nme": 1},
        [KEY],
    ):
        mistaken = [named, wrong] if isinstance(wrong, list) else {**named, **wrong}
        assert (await send("ProviderUpdate", mistaken)).codes == ["BAD_USER_INPUT"]
        written = re.sub(r'"(\w+)":', r"\1:", json.dumps(mistaken))
        document = f"mutation {{ providerUpdate(input: {written}) {{ settings {{ id }} }} }}"
        answers.append(await owner.post(document))
        assert answers[-1].codes == ["GRAPHQL_VALIDATION_FAILED"]
    for answer in answers:
        assert KEY not in json.dumps(answer.body)
        assert KEY not in repr(dict(answer.headers))
    assert KEY not in server.output
    tables = await ledger.rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    )
    holding = [
        each["tablename"]
        for each in tables
        if await ledger.value(
            f"SELECT count(*) FROM {each['tablename']} t WHERE t::text LIKE '%{KEY}%'"
        )
    ]
    assert holding == ["app_settings"]


async def test_what_is_set_up_is_told_as_it_is(owner: Caller) -> None:
    """Rules Z1, Z3, Z4, Z5, Z6."""
    before = await seen(owner)
    assert (before["providers"], before["version"], before["updatedAt"]) == ([], 1, None)
    (narrative,) = before["profiles"]
    assert (narrative["kind"], narrative["name"], narrative["model"]) == (
        "NARRATIVE",
        "Narrative",
        None,
    )
    made = await change(
        owner, "ProviderCreate", type="ANTHROPIC", displayName="Work", apiKey="sk-1"
    )
    settings = made["settings"]
    (provider,) = settings["providers"]
    assert provider == {
        "id": made["providerId"],
        "type": "ANTHROPIC",
        "displayName": "Work",
        "hasKey": True,
        "endpoint": None,
        "favoriteModelIds": [],
        "customModelIds": [],
        "cachedModels": None,
        "cachedAt": None,
    }
    assert settings["defaultProviderId"] == provider["id"]
    assert [each["name"] for each in settings["profiles"]] == [
        "Narrative",
        "Fast tasks",
        "Heavy reasoning",
    ]
    assert {each["agent"] for each in settings["assignments"]} == {
        "CLASSIFIER",
        "TRANSLATION",
        "SUGGESTION",
        "LORE_MGMT",
        "RETRIEVAL",
        "WIZARD_ASSIST",
    }
    listed = [{"modelId": "m", "capabilities": {"embedding": True, "embeddingDim": 768}}]
    changed = await change(
        owner, "ProviderUpdate", providerId=provider["id"], cachedModels=listed, apiKey=None
    )
    (provider,) = changed["settings"]["providers"]
    assert provider["hasKey"] is False
    assert provider["cachedAt"] is not None
    assert provider["cachedModels"] == [
        {
            "modelId": "m",
            "capabilities": {"embedding": True, "embeddingDim": 768, "matryoshkaDims": None},
        }
    ]
    profile = await change(
        owner,
        "ProfileCreate",
        name="Odd",
        model={"providerId": provider["id"], "modelId": "m"},
        temperature=0.5,
        structuredOutput="FORCE_ON",
        customJson={"top_k": 3},
    )
    assert profile["settings"]["profiles"][-1] == {
        "id": profile["profileId"],
        "kind": "AGENT",
        "name": "Odd",
        "description": None,
        "model": {"providerId": provider["id"], "modelId": "m"},
        "temperature": 0.5,
        "maxOutput": None,
        "thinking": None,
        "timeout": None,
        "structuredOutput": "FORCE_ON",
        "customJson": {"top_k": 3},
    }
    set_ = await change(owner, "AssignmentSet", agent="LORE_MGMT", profileId=profile["profileId"])
    given = {"agent": "LORE_MGMT", "profileId": profile["profileId"]}
    assert given in set_["settings"]["assignments"]
    after = await change(owner, "ProfileDelete", profileId=profile["profileId"])
    assert "LORE_MGMT" not in {each["agent"] for each in after["settings"]["assignments"]}
    assert after["settings"] == await seen(owner)


async def test_a_story_asks_its_own_model_or_that_of_its_owners_profile(owner: Caller) -> None:
    """Rules Z7, Z9."""
    made = await owner.ask(STORY_CHANGES, {"input": STORY}, "StoryCreate")
    story = made["storyCreate"]["story"]["id"]

    async def models() -> tuple[Json, Json]:
        found = (await owner.ask(MODEL_OF, {"story": story}))["story"]
        return found["narrative"], found["classifier"]

    nothing = {"model": None, "isOverride": False}
    assert await models() == (
        {**nothing, "profile": {"name": "Narrative"}, "failure": "MODEL_MISSING"},
        {**nothing, "profile": None, "failure": "PROFILE_UNASSIGNED"},
    )
    for name in ("Default", "Other"):
        answer = await change(owner, "ProviderCreate", type="OPENAI", displayName=name)
    other = answer["providerId"]
    narrative, classifier = await models()
    assert narrative["failure"] is classifier["failure"] is None
    assert classifier["profile"] == {"name": "Fast tasks"}
    own = {"providerId": other, "modelId": "own"}
    given = {"storyId": story, "settings": {"models": {"narrative": own}}}
    updated = await owner.ask(STORY_CHANGES, {"input": given}, "StoryUpdate")
    assert updated["storyUpdate"]["errors"] == []
    assert (await models())[0] == {
        "model": own,
        "profile": {"name": "Narrative"},
        "isOverride": True,
        "failure": None,
    }
    await change(owner, "ProviderDelete", providerId=other)
    assert (await models())[0]["failure"] == "OVERRIDE_PROVIDER_MISSING"


EXTREMES: list[Any] = [5, True, "x", [], [[]], {"x": 1}, {"": None}, {"enabled": 2**70}]


@pytest.mark.parametrize("value", EXTREMES, ids=str)
async def test_json_of_no_known_shape_is_refused(owner: Caller, ledger: Ledger, value: Any) -> None:
    """Rules Z10, Z11."""
    before = await ledger.fingerprint()
    for field in (
        "defaultStorySettings",
        "defaultSuggestionCategories",
        "appearance",
        "diagnostics",
    ):
        code, path = await refusal(owner, "SettingUpdate", **{field: value})
        assert (code, path[:2]) == ("INVALID_SHAPE", ["input", field])
    if not isinstance(value, dict):
        given = {"name": "x", "customJson": value}
        assert await refusal(owner, "ProfileCreate", **given) == (
            "INVALID_SHAPE",
            ["input", "customJson"],
        )
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize("value", [-1e308, -0.001, 2.001, 1e308])
async def test_numbers_beyond_their_bounds_are_refused(
    owner: Caller, ledger: Ledger, value: float
) -> None:
    """Rule Z8."""
    before = await ledger.fingerprint()
    assert await refusal(owner, "ProfileCreate", name="x", temperature=value) == (
        "OUT_OF_RANGE",
        ["input", "temperature"],
    )
    beyond = value if value < 0 else value * 1e7
    if beyond != float("inf"):
        assert await refusal(owner, "ProfileCreate", name="x", thinking=beyond) == (
            "OUT_OF_RANGE",
            ["input", "thinking"],
        )
    assert await ledger.fingerprint() == before


async def test_two_who_change_at_once_lose_nothing(owner: Caller) -> None:
    """Rule Z12."""
    made = await asyncio.gather(
        *(change(owner, "ProfileCreate", name=f"{number}") for number in range(8))
    )
    settings = await seen(owner)
    assert {each["profileId"] for each in made} < {each["id"] for each in settings["profiles"]}
    assert settings["version"] == 9
    assert await refusal(owner, "SettingUpdate", uiLanguage="ja", expectedVersion=8) == (
        "CONFLICT",
        ["input", "expectedVersion"],
    )
