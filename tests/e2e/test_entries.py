"""The text of a story as front ends write and read it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.callers import Caller, Json
from tests.e2e.entry_documents import TEXT, TEXT_CHANGES, append, begin_story
from tests.e2e.ledgers import Ledger
from tests.e2e.story_documents import DEFINITION

CAST = [
    {"key": "mira", "kind": "CHARACTER", "name": "Mira"},
    {"key": "quay", "kind": "LOCATION", "name": "Quay"},
]
JAPAN: Json = {
    **DEFINITION,
    "calendarSystemId": "imperial-japan",
    "worldTimeOrigin": dict.fromkeys(("hour", "minute", "second"), 0)
    | {"year": 1912, "month": 7, "day": 29},
}
DAY = 86_400


async def change(caller: Caller, operation: str, **given: Any) -> Json:
    (payload,) = (await caller.ask(TEXT_CHANGES, {"input": given}, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def refusal(caller: Caller, operation: str, **given: Any) -> tuple[str, list[str]]:
    (payload,) = (await caller.ask(TEXT_CHANGES, {"input": given}, operation)).values()
    (error,) = payload.pop("errors")
    assert set(payload.values()) == {None}
    return error["code"], error["path"]


async def text(caller: Caller, branch: str, **variables: Any) -> Json:
    found = await caller.ask(TEXT, {"branch": branch, **variables})
    return dict(found["branch"])


async def test_a_text_is_written_read_and_corrected(caller: Caller) -> None:
    """Rules B32, B40, B43, B44, B45, B46."""
    opening = {"content": "It begins.", "sceneKeys": ["mira"], "locationKey": "quay"}
    branch = await begin_story(caller, cast=CAST, opening=opening)
    given: Json = {"branchId": branch, "kind": "USER_ACTION", "content": "I wait."}
    given |= {"worldTimeDelta": 3_600, "expectedHead": 0}
    made = await change(caller, "EntryAppend", **given)
    assert made["branch"] == {"id": branch, "head": 1}
    action = made["entry"]
    (mira,), quay = action["sceneEntities"], action["currentLocation"]
    assert action == {
        "id": f"{branch}:{action['rowId']}",
        "rowId": action["rowId"],
        "position": 2,
        "kind": "USER_ACTION",
        "content": "I wait.",
        "worldTime": 3_600,
        "worldTimeLabel": "January 1, 2024 AD 01:00",
        "model": None,
        "summary": None,
        "sceneEntities": [{"id": mira["id"], "name": "Mira"}],
        "currentLocation": {"id": quay["id"], "name": "Quay"},
        "chapter": None,
    }
    reply = await append(
        caller,
        branch,
        "She leaves.",
        worldTime=0,
        sceneEntityIds=[],
        currentLocationId=None,
        model="test",
        summary="Mira leaves.",
    )
    assert (reply["model"], reply["summary"]) == ("test", "Mira leaves.")
    edited = await change(caller, "EntryEdit", entryId=reply["id"], content="Mira leaves.")
    assert (edited["entry"]["content"], edited["branch"]["head"]) == ("Mira leaves.", 3)
    given = {"entryId": reply["id"], "worldTime": 7_200, "sceneEntityIds": [mira["id"]]}
    given |= {"currentLocationId": quay["id"], "summary": None, "expectedHead": 3}
    corrected = await change(caller, "EntryMetaUpdate", **given)
    assert corrected["entry"] == {
        **edited["entry"],
        "worldTime": 7_200,
        "worldTimeLabel": "January 1, 2024 AD 02:00",
        "summary": None,
        "sceneEntities": [{"id": mira["id"], "name": "Mira"}],
        "currentLocation": {"id": quay["id"], "name": "Quay"},
    }
    given = {"entryId": action["id"], "worldTime": 9_000}
    await change(caller, "EntryMetaUpdate", **given)
    found = await text(caller, branch)
    assert found["head"] == 5
    nodes = found["entries"]["nodes"]
    assert [
        (each["position"], each["kind"], each["worldTime"], each["isTimeBackwards"])
        for each in nodes
    ] == [
        (1, "OPENING", 0, False),
        (2, "USER_ACTION", 9_000, False),
        (3, "AI_REPLY", 7_200, True),
    ]
    last = nodes[-1]
    assert last.pop("createdAt") is not None
    row = quay["id"].partition(":")[2]
    assert last == {
        "id": reply["id"],
        "position": 3,
        "kind": "AI_REPLY",
        "content": "Mira leaves.",
        "worldTime": 7_200,
        "worldTimeLabel": "January 1, 2024 AD 02:00",
        "isTimeBackwards": True,
        "model": "test",
        "reasoning": None,
        "summary": None,
        "metadata": {
            "worldTime": 7_200,
            "sceneEntities": [mira["id"].partition(":")[2]],
            "currentLocationId": row,
            "model": "test",
        },
        "sceneEntities": [{"rowId": mira["id"].partition(":")[2], "name": "Mira"}],
        "currentLocation": {"rowId": row, "name": "Quay"},
        "chapter": None,
        "branch": {"id": branch},
    }
    gone = await change(caller, "EntryDelete", entryId=action["id"])
    assert gone == {"deletedId": action["id"], "branch": {"id": branch, "head": 6}}
    found = await text(caller, branch, filter={"kinds": ["USER_ACTION", "OPENING"]})
    assert [each["position"] for each in found["entries"]["nodes"]] == [1]
    assert found["entries"]["totalCount"] == 1


async def test_a_notice_is_shown_at_the_end_and_moves_no_head(caller: Caller) -> None:
    """Rule B38."""
    branch = await begin_story(caller)
    notice = {"branchId": branch, "kind": "SYSTEM", "content": "No model is set up."}
    made = await change(caller, "EntryAppend", **notice)
    assert (made["entry"]["position"], made["branch"]["head"]) == (2, 0)
    assert [each["kind"] for each in (await text(caller, branch))["entries"]["nodes"]] == [
        "OPENING",
        "SYSTEM",
    ]
    reply = await append(caller, branch, "It goes on.")
    assert reply["position"] == 2
    found = (await text(caller, branch))["entries"]["nodes"]
    assert [each["kind"] for each in found] == ["OPENING", "AI_REPLY"]


async def test_chapters_are_closed_changed_and_opened_again(caller: Caller) -> None:
    """Rules B50, B51, B53, B54."""
    branch = await begin_story(caller)
    first, second = [await append(caller, branch, each) for each in ("One.", "Two.")]
    region = (await text(caller, branch))["openRegion"]
    assert region == {
        "entryCount": 3,
        "tokenCount": region["tokenCount"],
        "tokenThreshold": 24_000,
        "isReadyToClose": False,
    }
    given: Json = {"branchId": branch, "endEntryId": first["rowId"], "title": "The lamp"}
    made = await change(caller, "ChapterCreate", **given)
    chapter = made["chapter"]
    assert chapter == {
        "id": f"{branch}:{chapter['rowId']}",
        "rowId": chapter["rowId"],
        "sequenceNumber": 1,
        "title": "The lamp",
        "summary": "",
        "theme": "",
        "keywords": [],
        "startEntry": {"position": 1},
        "endEntry": {"position": 2},
        "entries": {"nodes": [{"position": 1}, {"position": 2}], "totalCount": 2},
    }
    given = {"chapterId": chapter["id"], "summary": "It is dark.", "keywords": ["lamp"]}
    changed = await change(caller, "ChapterUpdate", **given)
    assert changed["chapter"] == {**chapter, "summary": "It is dark.", "keywords": ["lamp"]}
    found = await text(caller, branch)
    titles = [each["chapter"] for each in found["entries"]["nodes"]]
    assert titles == [{"title": "The lamp"}, {"title": "The lamp"}, None]
    assert (found["openRegion"]["entryCount"], found["chapters"]["totalCount"]) == (1, 1)
    given = {"branchId": branch, "endEntryId": first["id"], "title": "Again"}
    refused = await refusal(caller, "ChapterCreate", **given)
    assert refused == ("CHAPTER_CLOSED", ["input", "endEntryId"])
    # Before the second entry there was no chapter; as of the second, with all of it, neither.
    past = await text(caller, branch, asOf={"logPosition": 2})
    assert past["chapters"]["totalCount"] == 0
    assert [each["chapter"] for each in past["entries"]["nodes"]] == [None, None, None]
    past = await text(caller, branch, asOf={"entryId": second["rowId"]})
    assert past["chapters"]["nodes"] == [
        {
            "title": "The lamp",
            "startEntry": {"position": 1},
            "entries": {
                "nodes": [
                    {"position": 1, "chapter": {"title": "The lamp"}},
                    {"position": 2, "chapter": {"title": "The lamp"}},
                ]
            },
        }
    ]
    gone = await change(caller, "ChapterDelete", chapterId=chapter["id"])
    assert gone["deletedId"] == chapter["id"]
    assert (await text(caller, branch))["chapters"] == {"nodes": [], "totalCount": 0}


async def test_an_era_changes_what_times_are_called_from_its_beginning_on(
    caller: Caller,
) -> None:
    """Rules B45, B60, B61."""
    branch = await begin_story(caller, definition=JAPAN)
    later = await append(caller, branch, "The emperor is dead.", worldTime=DAY)
    before = later["worldTimeLabel"]
    given: Json = {"entryId": later["id"], "eraName": "Taisho"}
    made = await change(caller, "EraFlip", **given)
    flip = made["eraFlip"]
    assert (flip["atWorldTime"], flip["eraName"], made["branch"]["head"]) == (DAY, "Taisho", 2)
    found = await text(caller, branch)
    first, second = [each["worldTimeLabel"] for each in found["entries"]["nodes"]]
    assert ("Meiji" in first, "Meiji" in before) == (True, True)
    assert (second, "Taisho" in second) == (flip["atWorldTimeLabel"], True)
    # As of a moment before, the era has not begun.
    past = await text(caller, branch, asOf={"logPosition": 1})
    assert [each["worldTimeLabel"] for each in past["entries"]["nodes"]] == [first, before]
    assert past["eraFlips"] == {"nodes": [], "totalCount": 0}
    refused = await refusal(
        caller,
        "EraFlip",
        branchId=branch,
        atWorldTime=DAY,
        eraName="Again",
    )
    assert refused == ("ERA_FLIP_EXISTS", ["input", "atWorldTime"])
    given = {"eraFlipId": flip["id"], "eraName": "Late", "atWorldTime": 0}
    changed = await change(caller, "EraFlipUpdate", **given)
    assert (changed["eraFlip"]["eraName"], changed["eraFlip"]["atWorldTime"]) == ("Late", 0)
    found = await text(caller, branch)
    assert all("Late" in each["worldTimeLabel"] for each in found["entries"]["nodes"])
    gone = await change(caller, "EraFlipDelete", eraFlipId=flip["id"])
    assert gone == {"deletedId": flip["id"], "branch": {"id": branch, "head": 4}}
    assert (await text(caller, branch))["entries"]["nodes"][1]["worldTimeLabel"] == before


async def test_times_of_a_past_moment_are_compared_with_those_of_that_moment(
    caller: Caller,
) -> None:
    """Rule B46."""
    branch = await begin_story(caller)
    first = await append(caller, branch, "One.", worldTime=10)
    await append(caller, branch, "Two.", worldTime=20)
    given = {"entryId": first["id"], "worldTime": 30}
    await change(caller, "EntryMetaUpdate", **given)

    async def flags(**variables: Any) -> list[bool]:
        found = await text(caller, branch, **variables)
        return [each["isTimeBackwards"] for each in found["entries"]["nodes"]]

    assert await flags() == [False, False, True]
    assert await flags(asOf={"logPosition": 2}) == [False, False, False]


@pytest.mark.parametrize("value", [2**53 - 1, 1 - 2**53])
async def test_times_of_extreme_size_are_refused(caller: Caller, value: int) -> None:
    """Rule T47."""
    branch = await begin_story(caller)
    entry = (await append(caller, branch, "One."))["id"]
    flip = (await change(caller, "EraFlip", entryId=entry, eraName="x"))["eraFlip"]["id"]
    here: Json = {"branchId": branch, "kind": "AI_REPLY", "content": "x"}
    for operation, given, field in (
        ("EntryAppend", here, "worldTime"),
        ("EntryAppend", here, "worldTimeDelta"),
        ("EntryMetaUpdate", {"entryId": entry}, "worldTime"),
        ("EraFlip", {"branchId": branch, "eraName": "x"}, "atWorldTime"),
        ("EraFlipUpdate", {"eraFlipId": flip}, "atWorldTime"),
    ):
        refused = await refusal(caller, operation, **{**given, field: value})
        assert refused == ("OUT_OF_RANGE", ["input", field])


async def test_what_is_refused_changes_nothing(caller: Caller, ledger: Ledger) -> None:
    """Rules B34, B35, B36, B37, B44."""
    branch = await begin_story(caller)
    found = (await text(caller, branch))["entries"]["nodes"]
    opening, entry = found[0]["id"], (await append(caller, branch, "One."))["id"]
    here: Json = {"branchId": branch, "kind": "AI_REPLY", "content": "x"}
    nobody = "char_01900000-0000-7000-8000-000000000000"
    before = await ledger.fingerprint()
    for operation, given, code, path in (
        ("EntryAppend", {**here, "kind": "OPENING"}, "OPENING_EXISTS", ["kind"]),
        ("EntryAppend", {**here, "worldTime": -1}, "OUT_OF_RANGE", ["worldTime"]),
        ("EntryAppend", {**here, "expectedHead": 7}, "CONFLICT", ["expectedHead"]),
        (
            "EntryAppend",
            {**here, "sceneEntityIds": [nobody]},
            "NOT_FOUND",
            ["sceneEntityIds", "0"],
        ),
        (
            "EntryAppend",
            {**here, "currentLocationId": f"{branch}:{nobody}"},
            "NOT_FOUND",
            ["currentLocationId"],
        ),
        ("EntryEdit", {"entryId": entry, "content": " "}, "TEXT_EMPTY", ["content"]),
        ("EntryEdit", {"entryId": branch, "content": "x"}, "NOT_FOUND", ["entryId"]),
        (
            "EntryMetaUpdate",
            {"entryId": entry, "worldTime": 10**11 + 1},
            "OUT_OF_RANGE",
            ["worldTime"],
        ),
        ("EntryDelete", {"entryId": opening}, "OPENING_STAYS", ["entryId"]),
    ):
        refused = await refusal(caller, operation, **given)
        assert refused == (code, ["input", *path])
    assert await ledger.fingerprint() == before
