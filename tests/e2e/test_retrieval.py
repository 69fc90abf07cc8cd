"""What a prompt would carry, captures of it, and what they would have chosen, as clients see it."""

from __future__ import annotations

from typing import Any

import pytest

from services.embedding import LOCAL_MODEL
from services.embedding.local import is_installed
from tests.e2e.callers import Caller, Json
from tests.e2e.plot_documents import PLOT_CHANGES
from tests.e2e.retrieval_documents import PREVIEW, PROBES, probe_on
from tests.e2e.ways_back_documents import Told, tell_story


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_EMBEDDER": "local"}


async def done(caller: Caller, document: str, operation: str, **variables: Any) -> Json:
    (payload,) = (await caller.ask(document, variables, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def refused(caller: Caller, operation: str, **variables: Any) -> tuple[str, list[str]]:
    (payload,) = (await caller.ask(PROBES, variables, operation)).values()
    (error,) = payload["errors"]
    return error["code"], error["path"]


async def codes(
    caller: Caller, document: str, variables: Json, operation: str | None = None
) -> list[str]:
    return (await caller.post(document, variables, operation)).codes


async def told_story(caller: Caller) -> Told:
    told = await tell_story(caller, "The lamps go out.")
    for title, body in (("Lamps", "They burn whale oil."), ("Bread", "It is baked at night.")):
        given = {"branchId": told.branch, "title": title, "body": body}
        await done(caller, PLOT_CHANGES, "LoreCreate", input=given)
    return told


async def preview(caller: Caller, branch: str, text: str | None = "I light a lamp.") -> Json:
    found = await caller.ask(PREVIEW, {"branch": branch, "text": text})
    return dict(found["retrievalPreview"])


async def test_a_preview_says_what_the_next_prompt_carries(caller: Caller) -> None:
    """Rules B100, B105."""
    told = await told_story(caller)
    found = await preview(caller, told.branch)
    assert found["branch"] == {"id": told.branch}
    assert found["bufferEntries"] == 2
    assert [each["kind"] for each in found["pools"]] == [
        "CHAPTER", "ENTITY", "LORE", "THREAD", "HAPPENING",
    ]  # fmt: skip
    assert found["queries"][0]["text"] == "I light a lamp."
    if not is_installed():
        assert (found["modelId"], found["warnings"][0]) == (None, "NOTHING_COMPARED")
        return
    assert (found["modelId"], found["failure"]) == (LOCAL_MODEL, None)
    lore = found["pools"][2]
    assert (lore["budget"], lore["poolSize"], lore["staleCount"]) == (1800, 3, 0)
    first, *_ = lore["seated"]
    assert (first["name"], first["rank"], first["drop"]) == ("Lamps", 1, "NOT_DROPPED")
    assert first["node"]["id"] == f"{told.branch}:{first['rowId']}"
    assert lore["tokensUsed"] == sum(each["tokens"] for each in lore["seated"]) <= 1800
    # Nothing waits any more: the same again, and nothing is written.
    assert await preview(caller, told.branch) == found


async def test_what_is_not_there_and_a_bad_text_are_refused(caller: Caller) -> None:
    """Rule B100."""
    told = await told_story(caller)
    nowhere = told.branch[:-1] + ("0" if told.branch[-1] != "0" else "1")
    for branch, text, code in (
        (nowhere, "x", "NOT_FOUND"),
        (told.branch, "a\u0000", "INVALID_TEXT"),
    ):
        assert await codes(caller, PREVIEW, {"branch": branch, "text": text}) == [code]


async def test_what_is_captured_can_be_read_simulated_and_deleted(caller: Caller) -> None:
    """Rules B130, B132, B133, B134, B137."""
    told = await told_story(caller)
    given = {"branch": told.branch, "text": "I light a lamp."}
    assert await refused(caller, "RetrievalProbe", **given) == ("PROBE_OFF", [])
    await probe_on(caller, told.story)
    made = [
        (await done(caller, PROBES, "RetrievalProbe", **given, mode=mode))["capture"]
        for mode in ("LIGHT", "DEEP")
    ]
    light, deep = made
    assert (light["mode"], deep["mode"], light["isCorrupt"]) == ("LIGHT", "DEEP", False)
    assert light["targetEntry"] == {"id": told.entries[-1]}
    assert light["payload"]["queries"][0]["text"] == "I light a lamp."
    listed = (await caller.ask(PROBES, {"branch": told.branch}, "Captures"))["branch"]
    assert listed["probeCaptures"] == {"nodes": [deep, light], "totalCount": 2}
    one = await caller.ask(PROBES, {"id": deep["id"]}, "Capture")
    assert one["probeCapture"] == deep
    assert one["node"] == {"id": deep["id"], "__typename": "ProbeCapture"}

    async def simulated(capture: Json, parameters: Json | None = None) -> Json:
        asked = {"id": capture["id"], "parameters": parameters}
        return dict((await caller.ask(PROBES, asked, "Simulation"))["probeSimulation"])

    seen = await preview(caller, told.branch)
    for capture in made:
        same = await simulated(capture)
        assert same["isSame"] is True
        assert [
            [(each["rowId"], each["name"]) for each in pool["seated"]] for pool in same["pools"]
        ] == [[(each["rowId"], each["name"]) for each in pool["seated"]] for pool in seen["pools"]]
    if is_installed():
        poor = await simulated(light, {"budgets": {"lore": 0}})
        assert (poor["isSame"], poor["pools"][2]["seated"]) == (False, [])
        assert {each["drop"] for each in poor["pools"][2]["dropped"]} <= {
            "CANDIDATE_TOO_LARGE", "BELOW_THRESHOLD",
        }  # fmt: skip
        assert (await simulated(deep, {"diversity": 1.0, "weights": {"action": 1.0}}))["pools"]
    for parameters, code in (
        ({"diversity": 1.0}, "NEEDS_DEEP"),
        ({"scoreFloor": -1}, "OUT_OF_RANGE"),
    ):
        asked = {"id": light["id"], "parameters": parameters}
        assert await codes(caller, PROBES, asked, "Simulation") == [code]
    deleted = await done(caller, PROBES, "ProbeCaptureDelete", capture=light["id"])
    assert deleted == {"deletedId": light["id"]}
    assert await refused(caller, "ProbeCaptureDelete", capture=light["id"]) == (
        "NOT_FOUND",
        ["input", "captureId"],
    )
    assert await done(caller, PROBES, "ProbeCapturesDelete", story=told.story) == {
        "deletedIds": [deep["id"]]
    }
