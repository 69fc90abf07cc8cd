"""Undo, redo, rollback and forks as front ends ask for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.e2e.callers import Caller, Json, command
from tests.e2e.ledgers import Ledger
from tests.e2e.ways_back_documents import TELLING, WAYS_BACK, tell_story


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_AUTH": "token"}


@pytest.fixture(scope="module")
async def owner(caller: Caller, server_dsn: str) -> Caller:
    _, printed, _ = await command("user", "Olga", DATABASE_URL=server_dsn)
    return caller.as_(printed.split()[-1])


@pytest.fixture(scope="module")
async def stranger(caller: Caller, server_dsn: str) -> Caller:
    _, printed, _ = await command("user", "Sten", DATABASE_URL=server_dsn)
    return caller.as_(printed.split()[-1])


# Whoever comes too late wants to know the head.
ASKED = WAYS_BACK.replace("errors { code message path }", "errors { code message path head }")


async def way_back(caller: Caller, operation: str, **given: Any) -> Json:
    """One of the mutations; its payload."""
    answer = await caller.ask(ASKED, given, operation)
    payload: Json = answer[operation[0].lower() + operation[1:]]
    return payload


async def texts(caller: Caller, branch: str) -> list[str]:
    told = await caller.ask(TELLING, {"branch": branch}, "Told")
    return [each["content"] for each in told["branch"]["entries"]["nodes"]]


async def test_a_turn_goes_and_comes_again(owner: Caller) -> None:
    told = await tell_story(owner, "One.", "Two.")
    undone = await way_back(owner, "BranchUndo", branch=told.branch)
    assert undone["errors"] == []
    assert undone["branch"] == {"id": told.branch, "head": 1, "canUndo": True, "canRedo": True}
    (action,) = undone["reversed"]
    assert action["source"] == "USER_EDIT"
    assert action["changes"] == [
        {"table": "STORY_ENTRIES", "op": "CREATE", "rowId": told.entries[2]}
    ]
    assert await texts(owner, told.branch) == ["It begins.", "One."]
    redone = await way_back(owner, "BranchRedo", branch=told.branch)
    assert redone["branch"] == {"id": told.branch, "head": 2, "canUndo": True, "canRedo": False}
    assert await texts(owner, told.branch) == ["It begins.", "One.", "Two."]


async def test_where_there_is_nothing_to_go_back_to_nothing_happens(owner: Caller) -> None:
    told = await tell_story(owner)
    head = {"id": told.branch, "head": 0, "canUndo": False, "canRedo": False}
    undone = await way_back(owner, "BranchUndo", branch=told.branch)
    assert undone == {"branch": head, "reversed": [], "errors": []}
    assert await way_back(owner, "BranchRedo", branch=told.branch) == {
        "branch": head,
        "errors": [],
    }
    kept = await way_back(owner, "BranchRollback", branch=told.branch, entry=told.entries[0])
    assert (kept["branch"], kept["reversed"], kept["warnings"]) == (head, [], [])


async def test_a_rollback_says_first_what_it_takes_back(owner: Caller, ledger: Ledger) -> None:
    told = await tell_story(owner, "One.", "Two.", "Three.")
    before = await ledger.fingerprint()
    given = {"branch": told.branch, "entry": told.entries[1]}
    tried = await way_back(owner, "BranchRollback", **given, dryRun=True)
    assert await ledger.fingerprint() == before
    assert [each["changes"][0]["rowId"] for each in tried["reversed"]] == [
        told.entries[3],
        told.entries[2],
    ]
    done = await way_back(owner, "BranchRollback", **given)
    assert done["reversed"] == tried["reversed"]
    assert done["branch"]["head"] == 1
    assert await texts(owner, told.branch) == ["It begins.", "One."]
    bare = told.entries[0].partition(":")[2]
    await way_back(owner, "BranchRollback", branch=told.branch, entry=bare)
    assert await texts(owner, told.branch) == ["It begins."]


async def test_a_fork_goes_its_own_way(owner: Caller) -> None:
    told = await tell_story(owner, "One.", "Two.")
    forked = await way_back(
        owner, "BranchFork", branch=told.branch, entry=told.entries[1], name="What if"
    )
    assert forked["errors"] == []
    branch = forked["branch"]
    assert (branch["name"], branch["head"], branch["parent"]) == (
        "What if",
        1,
        {"id": told.branch},
    )
    assert branch["forkEntry"] == {"rowId": told.entries[1].partition(":")[2]}
    counts = {each["table"]: each["rows"] for each in forked["copied"]}
    assert (counts["STORY_ENTRIES"], counts["ENTITIES"], counts["DELTAS"]) == (2, 1, 1)
    await owner.ask(TELLING, {"branch": branch["id"], "content": "Else."}, "EntryAppend")
    assert await texts(owner, branch["id"]) == ["It begins.", "One.", "Else."]
    assert await texts(owner, told.branch) == ["It begins.", "One.", "Two."]
    await way_back(owner, "BranchUndo", branch=branch["id"])
    await way_back(owner, "BranchUndo", branch=branch["id"])
    assert await texts(owner, branch["id"]) == ["It begins."]
    assert await texts(owner, told.branch) == ["It begins.", "One.", "Two."]


@pytest.mark.parametrize(
    ("name", "given", "code", "path"),
    [
        ("BranchUndo", {"head": 7}, "CONFLICT", ["input", "expectedHead"]),
        ("BranchRedo", {"head": 7}, "CONFLICT", ["input", "expectedHead"]),
        ("BranchRollback", {"head": 7}, "CONFLICT", ["input", "expectedHead"]),
        ("BranchRollback", {"entry": "entry_x"}, "NOT_FOUND", ["input", "keepEntryId"]),
        ("BranchFork", {"entry": "br_x:entry_x"}, "NOT_FOUND", ["input", "atEntryId"]),
        ("BranchFork", {"name": " "}, "TEXT_EMPTY", ["input", "name"]),
        ("BranchFork", {"name": "x" * 501}, "TEXT_TOO_LONG", ["input", "name"]),
    ],
)
async def test_what_cannot_be_done_changes_nothing(
    owner: Caller, ledger: Ledger, name: str, given: Json, code: str, path: list[str]
) -> None:
    told = await tell_story(owner, "One.")
    before = await ledger.fingerprint()
    everything = {"branch": told.branch, "entry": told.entries[0], "name": "Fork", **given}
    payload = await way_back(owner, name, **everything)
    (error,) = payload.pop("errors")
    assert (error["code"], error["path"]) == (code, path)
    assert error.get("head") == (1 if code == "CONFLICT" else None)
    assert set(payload.values()) == {None}
    assert await ledger.fingerprint() == before


async def test_of_many_who_have_seen_one_head_one_gets_to_write(owner: Caller) -> None:
    told = await tell_story(owner)
    given = {"branch": told.branch, "head": 0}
    asked = TELLING.replace("errors { code message path }", "errors { code message path head }")
    answers = await asyncio.gather(
        *(
            owner.ask(asked, {**given, "content": f"Mine, {number}."}, "EntryAppend")
            for number in range(8)
        )
    )
    refused = [each["entryAppend"]["errors"] for each in answers]
    assert sorted(bool(each) for each in refused) == [False] + [True] * 7
    assert {each[0]["head"] for each in refused if each} == {1}
    assert len(await texts(owner, told.branch)) == 2


async def test_writers_of_one_branch_wait_for_each_other(owner: Caller) -> None:
    told = await tell_story(owner)
    given = {"branch": told.branch}
    await asyncio.gather(
        *(
            owner.ask(TELLING, {**given, "content": f"{number}."}, "EntryAppend")
            for number in range(12)
        )
    )
    assert sorted(await texts(owner, told.branch)) == sorted(
        ["It begins.", *(f"{number}." for number in range(12))]
    )


async def test_a_stranger_goes_no_way_back(owner: Caller, stranger: Caller, ledger: Ledger) -> None:
    told = await tell_story(owner, "One.")
    before = await ledger.fingerprint()
    given = {"branch": told.branch, "entry": told.entries[0], "name": "Mine?"}
    for name in ("BranchUndo", "BranchRedo", "BranchRollback", "BranchFork"):
        payload = await way_back(stranger, name, **given)
        (error,) = payload["errors"]
        assert (error["code"], error["path"]) == ("NOT_FOUND", ["input", "branchId"])
    assert await ledger.fingerprint() == before
