"""A branch is translated by a model, as front ends see it."""

from __future__ import annotations

from tests.e2e.callers import Caller, Json, is_opening
from tests.e2e.plot_documents import PLOT_CHANGES
from tests.e2e.ways_back_documents import WAYS_BACK, tell_story

PROGRESS = """
subscription Progress($run: ID!, $after: Int) {
  runEvents(runId: $run, after: $after) {
    __typename
    seq
    ... on PhaseStarted { name }
    ... on RunWarning { code subjectId field }
    ... on RunProgressed { done total missed }
    ... on RunFinished { status error { code } node { id } }
  }
}
"""
BRANCH = """
query ($branch: ID!) {
  branch(id: $branch) {
    lore(first: 30) { nodes { id title translated(field: "title", language: "fr") } }
    translationRuns {
      nodes {
        id kind status language targetKinds progress { done total missed } error { code }
        branch { id } character { id } tree { id } node { id }
      }
      totalCount
    }
  }
  runs { nodes { id } totalCount }
}
"""
# A text at which the built-in provider fails, and all that are given to it together.
FAULT = "Oil [demo: fault=refused]"


async def start(caller: Caller, branch: str) -> Json:
    given = {"branchId": branch, "language": "fr", "kinds": ["LORE"]}
    answer = await caller.ask(PLOT_CHANGES, {"input": given}, "TranslationRun")
    payload: Json = answer["translationRun"]
    return payload


async def test_a_branch_is_translated_in_parts_and_the_rest_by_another_run(caller: Caller) -> None:
    """Rules V11, V12, V14."""
    titles = [FAULT, *(f"Title {number:02}" for number in range(12))]
    lore = [{"key": title, "title": title, "body": title} for title in titles]
    told = await tell_story(caller, "Fog.", lore=lore)
    asked = {"branch": told.branch}

    async with caller.socket() as socket:
        run = (await start(caller, told.branch))["run"]
        assert (run["kind"], run["language"], run["targetKinds"], run["branch"]) == (
            "TRANSLATION",
            "fr",
            ["LORE"],
            {"id": told.branch},
        )
        started = await socket.start(PROGRESS, {"run": run["id"]})
        opening, *events = [result async for result in started]
        assert started.errors == []
    assert is_opening(opening, None)
    events = [each["data"]["runEvents"] for each in events]
    found = await caller.ask(BRANCH, asked)
    rows = found["branch"]["lore"]["nodes"]
    assert [each.pop("seq") for each in events] == list(range(1, len(events) + 1))
    assert events[:3] == [
        {"__typename": "RunStarted"},
        {"__typename": "PhaseStarted", "name": "translation"},
        {"__typename": "RunProgressed", "done": 0, "total": 26, "missed": 0},
    ]
    assert events[3:23] == [
        {"__typename": "RunWarning", "code": "REFUSED", "subjectId": row["id"], "field": field}
        for row in rows[:10]
        for field in ("body", "title")
    ]
    assert events[23:] == [
        {"__typename": "RunProgressed", "done": 0, "total": 26, "missed": 20},
        {"__typename": "RunProgressed", "done": 6, "total": 26, "missed": 20},
        {"__typename": "PhaseFinished"},
        {"__typename": "RunFinished", "status": "SUCCEEDED", "error": None, "node": None},
    ]
    assert [each["translated"] for each in rows] == [
        *titles[:10],
        *(f"[fr] {title}" for title in titles[10:]),
    ]

    given = {"loreId": rows[0]["id"], "title": "Oil", "body": "It is taxed."}
    await caller.ask(PLOT_CHANGES, {"input": given}, "LoreUpdate")
    again = (await start(caller, told.branch))["run"]
    await caller.follow(again["id"])
    found = await caller.ask(BRANCH, asked)
    assert [each["translated"] for each in found["branch"]["lore"]["nodes"]] == [
        f"[fr] {title}" for title in ["Oil", *titles[1:]]
    ]
    shown = {
        "kind": "TRANSLATION",
        "status": "SUCCEEDED",
        "language": "fr",
        "targetKinds": ["LORE"],
        "error": None,
        "branch": {"id": told.branch},
        "character": None,
        "tree": None,
        "node": None,
    }
    assert found["branch"]["translationRuns"] == {
        "nodes": [
            {"id": again["id"], "progress": {"done": 20, "total": 20, "missed": 0}, **shown},
            {"id": run["id"], "progress": {"done": 6, "total": 26, "missed": 20}, **shown},
        ],
        "totalCount": 2,
    }
    assert [each["id"] for each in found["runs"]["nodes"]] == [again["id"], run["id"]]
    refused = await start(caller, told.branch)
    assert (refused["run"], [each["code"] for each in refused["errors"]]) == (
        None,
        ["NOTHING_TO_TRANSLATE"],
    )

    # An undo takes back what the last call has said.
    await caller.ask(WAYS_BACK, {"branch": told.branch}, "BranchUndo")
    found = await caller.ask(BRANCH, asked)
    assert [each["translated"] for each in found["branch"]["lore"]["nodes"]] == [
        "Oil",
        *titles[1:10],
        *(f"[fr] {title}" for title in titles[10:]),
    ]
