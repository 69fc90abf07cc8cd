"""Stories and branches as front ends see them."""

from __future__ import annotations

from typing import Any

import pytest

from db.enums import StoryMode
from services.shapes import default_settings
from tests.e2e.callers import Caller, Json
from tests.e2e.ledgers import Ledger
from tests.e2e.story_documents import DEFINITION, STORIES, STORY, STORY_CHANGES

EARTH_START = {"year": 2024, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
FORK = """
mutation ($branch: ID!, $entry: ID!, $name: String!) {
  branchFork(input: { branchId: $branch, atEntryId: $entry, name: $name }) {
    branch { id parent { id } forkEntry { rowId position } } errors { code }
  }
}
"""


async def change(caller: Caller, operation: str, **variables: Any) -> Json:
    (payload,) = (await caller.ask(STORY_CHANGES, variables, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def refusal(caller: Caller, operation: str, **variables: Any) -> tuple[str, list[str]]:
    (payload,) = (await caller.ask(STORY_CHANGES, variables, operation)).values()
    (error,) = payload.pop("errors")
    assert set(payload.values()) == {None}
    return error["code"], error["path"]


async def make(caller: Caller, **changes: Any) -> Json:
    """A story's payload."""
    return await change(caller, "StoryCreate", input={**STORY, **changes})


async def fork(caller: Caller, ledger: Ledger, branch: str, name: str) -> Json:
    """A fork at the first entry."""
    entry = await ledger.value(
        "SELECT branch_id || ':' || id FROM story_entries WHERE branch_id = $1 AND position = 1",
        branch,
    )
    given = {"branch": branch, "entry": entry, "name": name}
    payload = (await caller.ask(FORK, given))["branchFork"]
    assert payload["errors"] == []
    return dict(payload["branch"])


async def test_a_story_shows_what_it_is(caller: Caller) -> None:
    """Rules B1, B4, B8, B20."""
    made = await make(
        caller, description="A blurb.", tags=["fog"], accentColor="#AABBCC", title="The Lamp"
    )
    story, keys = made["story"], {each["key"]: each["id"] for each in made["keys"]}
    branch = story["currentBranch"]["id"]
    assert story == {
        "id": story["id"],
        "title": "The Lamp",
        "status": "ACTIVE",
        "isFavorite": False,
        "version": 1,
        "currentBranch": {"id": branch, "name": "Main"},
    }
    assert {key: each.partition(":")[0] for key, each in keys.items()} == {
        "mira": branch,
        "oil": branch,
    }
    lead = {"leadEntityId": keys["mira"], "narration": "FIRST"}
    given = {"storyId": story["id"], "definition": lead, "expectedVersion": 1}
    assert (await change(caller, "StoryUpdate", input=given))["story"]["version"] == 2
    found = (await caller.ask(STORIES, {"id": story["id"]}, "Story"))["story"]
    assert found.pop("updatedAt") is not None
    assert found == {
        "title": "The Lamp",
        "description": "A blurb.",
        "tags": ["fog"],
        "accentColor": "#aabbcc",
        "status": "ACTIVE",
        "isFavorite": False,
        "settings": default_settings(StoryMode.CREATIVE),
        "version": 2,
        "coverAsset": None,
        "calendar": {"id": "earth-gregorian", "name": "Earth (Gregorian)"},
        "definition": {
            "mode": "CREATIVE",
            "narration": "FIRST",
            "genre": {"label": "Test", "promptBody": ""},
            "tone": {"label": "Plain", "promptBody": ""},
            "setting": "",
            "calendarSystemId": "earth-gregorian",
            "worldTimeOrigin": EARTH_START,
            "leadEntity": {
                "id": keys["mira"],
                "rowId": keys["mira"].partition(":")[2],
                "name": "Mira",
            },
        },
        "currentBranch": {"id": branch},
        "branches": {"nodes": [{"id": branch, "name": "Main"}], "totalCount": 1},
    }
    found = (await caller.ask(STORIES, {"id": branch}, "Branch"))["branch"]
    assert found == {
        "name": "Main",
        "head": 0,
        "canUndo": False,
        "canRedo": False,
        "story": {"id": story["id"]},
        "parent": None,
        "children": {"nodes": [], "totalCount": 0},
        "classifierStatus": {
            "state": "idle",
            "processedThrough": 0,
            "lastSuccessAt": None,
            "lastError": None,
            "retryCount": 0,
        },
    }
    await change(caller, "StoryDelete", story=story["id"])


async def test_stories_are_found_by_status_and_by_words(caller: Caller) -> None:
    """Rule B19."""
    ids = {}
    for title, given in (
        ("First", {"tags": ["Fog and Öl"]}),
        ("Second", {"description": "Of fog."}),
        ("A draft", {"isDraft": True, "opening": None}),
    ):
        ids[title] = (await make(caller, title=title, **given))["story"]["id"]
    await change(caller, "StoryUpdate", input={"storyId": ids["First"], "isFavorite": True})
    given = {"storyId": ids["Second"], "status": "ARCHIVED"}
    await change(caller, "StoryUpdate", input=given)

    async def titles(**asked: Any) -> list[str]:
        found = (await caller.ask(STORIES, asked, "Stories"))["stories"]
        assert found["totalCount"] == len(found["nodes"])
        return [each["title"] for each in found["nodes"] if each["id"] in ids.values()]

    assert await titles() == ["First", "A draft", "Second"]
    await change(caller, "StoryOpen", story=ids["Second"])
    assert await titles() == ["First", "Second", "A draft"]
    assert await titles(status="DRAFT") == ["A draft"]
    assert await titles(status="ARCHIVED", search="FOG") == ["Second"]
    assert await titles(search="fog") == ["First", "Second"]
    assert await titles(search="öl") == ["First"]
    assert await titles(search="%") == []
    for each in ids.values():
        await change(caller, "StoryDelete", story=each)


async def test_a_branch_is_renamed_opened_and_deleted(caller: Caller, ledger: Ledger) -> None:
    """Rules B21, B22, B23, B24, B25."""
    story = (await make(caller))["story"]
    main = story["currentBranch"]["id"]
    assert await refusal(caller, "BranchDelete", branch=main) == (
        "BRANCH_LAST",
        ["input", "branchId"],
    )
    other = await fork(caller, ledger, main, "Other")
    assert other["parent"] == {"id": main}
    assert other["forkEntry"]["position"] == 1
    named = await change(caller, "BranchRename", branch=other["id"], name="Another")
    assert named == {"branch": {"id": other["id"], "name": "Another"}}
    seen = (await caller.ask(STORIES, {"id": main}, "Branch"))["branch"]
    assert seen["children"] == {
        "nodes": [{"id": other["id"], "name": "Another"}],
        "totalCount": 1,
    }
    assert await refusal(caller, "BranchDelete", branch=main) == (
        "BRANCH_CURRENT",
        ["input", "branchId"],
    )
    opened = await change(caller, "StoryOpen", story=story["id"], branch=other["id"])
    assert opened["story"]["currentBranch"]["id"] == other["id"]
    assert opened["story"]["version"] == 1
    gone = await change(caller, "BranchDelete", branch=main)
    assert gone == {"deletedId": main, "story": {"id": story["id"]}}
    seen = (await caller.ask(STORIES, {"id": other["id"]}, "Branch"))["branch"]
    assert seen["parent"] is None
    assert await ledger.value("SELECT count(*) FROM story_entries WHERE branch_id = $1", main) == 0
    assert await change(caller, "StoryDelete", story=story["id"]) == {"deletedId": story["id"]}
    assert (await caller.ask(STORIES, {"id": other["id"]}, "Branch"))["branch"] is None


async def test_a_lead_is_null_in_a_branch_that_does_not_have_it(
    caller: Caller, ledger: Ledger
) -> None:
    """Rules B13, B20."""
    story = (await make(caller))["story"]
    main = story["currentBranch"]["id"]
    late = """
    mutation ($branch: ID!) {
      entryAppend(input: { branchId: $branch, kind: USER_ACTION, content: "I wait." }) {
        errors { code }
      }
      entityCreate(input: { branchId: $branch, kind: CHARACTER, name: "Late" }) {
        entity { id } errors { code }
      }
    }
    """
    made = (await caller.ask(late, {"branch": main}))["entityCreate"]["entity"]["id"]
    given = {"storyId": story["id"], "definition": {"leadEntityId": made}}
    await change(caller, "StoryUpdate", input=given)
    other = await fork(caller, ledger, main, "Before")
    lead = "query ($id: ID!) { story(id: $id) { definition { leadEntity { id } } } }"
    for branch, expected in ((main, {"id": made}), (other["id"], None), (main, {"id": made})):
        await change(caller, "StoryOpen", story=story["id"], branch=branch)
        found = await caller.ask(lead, {"id": story["id"]})
        assert found["story"]["definition"]["leadEntity"] == expected
    await change(caller, "StoryDelete", story=story["id"])


async def test_what_is_refused_changes_nothing(caller: Caller, ledger: Ledger) -> None:
    """Rules B10, B11, B12, B13, B14, B15, B16."""
    made = await make(caller)
    story, branch = made["story"]["id"], made["story"]["currentBranch"]["id"]
    draft = (await make(caller, isDraft=True, opening=None, title="Draft"))["story"]["id"]
    (mira, oil) = [each["id"] for each in made["keys"]]
    before = await ledger.fingerprint()
    gone = "story_01900000-0000-7000-8000-000000000000"
    definition = ["input", "definition"]
    for given, code, where in (
        ({"storyId": gone}, "NOT_FOUND", ["input", "storyId"]),
        ({"expectedVersion": 2, "title": "x"}, "CONFLICT", ["input", "expectedVersion"]),
        ({"title": ""}, "TEXT_EMPTY", ["input", "title"]),
        ({"accentColor": "#12345"}, "COLOR_INVALID", ["input", "accentColor"]),
        ({"coverAssetId": "asset_1"}, "NOT_FOUND", ["input", "coverAssetId"]),
        ({"status": "DRAFT"}, "STATUS_REFUSED", ["input", "status"]),
        ({"storyId": draft, "status": "ARCHIVED"}, "STATUS_REFUSED", ["input", "status"]),
        ({"storyId": draft, "status": "ACTIVE"}, "OPENING_REQUIRED", ["input", "opening"]),
        ({"opening": {"content": "Again."}}, "OPENING_EXISTS", ["input", "opening"]),
        (
            {"storyId": draft, "opening": {"content": "x", "sceneEntityIds": [mira]}},
            "NOT_FOUND",
            ["input", "opening", "sceneEntityIds", "0"],
        ),
        (
            {"definition": {"narration": "FIRST"}},
            "LEAD_REQUIRED",
            [*definition, "leadEntityId"],
        ),
        (
            {"definition": {"leadEntityId": oil}},
            "NOT_FOUND",
            [*definition, "leadEntityId"],
        ),
        (
            {"definition": {"calendarSystemId": "stardate"}},
            "ORIGIN_REQUIRED",
            [*definition, "worldTimeOrigin"],
        ),
        (
            {"definition": {"worldTimeOrigin": {"count": 1}}},
            "DATE_INVALID",
            [*definition, "worldTimeOrigin", "count"],
        ),
        (
            {"settings": {"suggestionCount": 9}},
            "INVALID_SHAPE",
            ["input", "settings", "suggestionCount"],
        ),
        ({"settings": {"colour": 9}}, "INVALID_SHAPE", ["input", "settings", "colour"]),
    ):
        asked: Any = {"storyId": story, **given}
        assert await refusal(caller, "StoryUpdate", input=asked) == (code, where), given
    for operation, given, code, where in (
        (
            "StoryCreate",
            {"input": {**STORY, "definition": {**DEFINITION, "narration": "FIRST"}}},
            "LEAD_REQUIRED",
            [*definition, "leadKey"],
        ),
        (
            "StoryCreate",
            {"input": {**STORY, "cast": [{**STORY["cast"][0], "locationKey": "x"}]}},
            "KEY_UNKNOWN",
            ["input", "cast", "0", "locationKey"],
        ),
        ("StoryOpen", {"story": story, "branch": gone}, "NOT_FOUND", ["input", "branchId"]),
        ("BranchRename", {"branch": branch, "name": " "}, "TEXT_EMPTY", ["input", "name"]),
        ("BranchDelete", {"branch": branch}, "BRANCH_LAST", ["input", "branchId"]),
    ):
        assert await refusal(caller, operation, **given) == (code, where), operation
    assert await ledger.fingerprint() == before
    for each in (story, draft):
        await change(caller, "StoryDelete", story=each)


DEEP: Any = {}
for _ in range(100):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    "value",
    [5, "x", [], [[]], 1.5, True, {"year": 2**70}, {"year": 1e300}, {"year": None}, {"a": DEEP}],
    ids=lambda value: str(value)[:20],
)
async def test_json_that_cannot_be_meant_is_told_so(
    caller: Caller, ledger: Ledger, value: Any
) -> None:
    """Rule T47."""
    before = await ledger.fingerprint()
    for given, code, where in (
        (
            {"definition": {**DEFINITION, "worldTimeOrigin": value}},
            "DATE_INVALID",
            ["input", "definition", "worldTimeOrigin"],
        ),
        (
            {"cast": [{**STORY["cast"][0], "state": value}]},
            "INVALID_SHAPE",
            ["input", "cast", "0", "state"],
        ),
    ):
        found, path = await refusal(caller, "StoryCreate", input={**STORY, **given})
        assert (found, path[: len(where)]) == (code, where)
    assert await ledger.fingerprint() == before


@pytest.mark.parametrize(
    "value",
    [5, "x", [], True, {"suggestionCount": 2**70}, {"packVariables": 5}, {"models": {"a": DEEP}}],
    ids=lambda value: str(value)[:20],
)
async def test_settings_that_cannot_be_meant_are_told_so(
    caller: Caller, ledger: Ledger, value: Any
) -> None:
    """Rules B15, T47."""
    story = (await make(caller))["story"]["id"]
    before = await ledger.fingerprint()
    found, path = await refusal(caller, "StoryUpdate", input={"storyId": story, "settings": value})
    assert (found, path[:2]) == ("INVALID_SHAPE", ["input", "settings"])
    assert await ledger.fingerprint() == before


async def test_values_of_a_pack_may_nest_and_are_kept(caller: Caller) -> None:
    """Rule B15."""
    story = (await make(caller))["story"]["id"]
    values = {"packVariables": {"deep": DEEP, "list": [1, "2", None], "huge": 1e300}}
    await change(caller, "StoryUpdate", input={"storyId": story, "settings": values})
    found = (await caller.ask(STORIES, {"id": story}, "Story"))["story"]
    assert found["settings"]["packVariables"] == values["packVariables"]
    await change(caller, "StoryDelete", story=story)
