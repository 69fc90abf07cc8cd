"""What happened to a branch, as front ends see it: while it happens, later, and beside a fork."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import ServerProcess, serving
from tests.e2e.callers import PATIENCE, Caller, Json
from tests.e2e.history_documents import BRANCH_DIFF, BRANCH_EVENTS, BRANCH_LOG, CARRYING
from tests.e2e.plot_documents import PLOT_CHANGES
from tests.e2e.story_documents import STORY_CHANGES
from tests.e2e.ways_back_documents import TELLING, WAYS_BACK, Told, tell_story


@pytest.fixture(scope="module")
async def second(server_dsn: str, server: ServerProcess, caller: Caller) -> AsyncIterator[Caller]:
    """The same person at another server on the same database."""
    async with serving(DATABASE_URL=server_dsn, MIRRORGRAPH_DEMO_RATE="0") as other:
        yield Caller(other, caller.session, caller.token)


async def done(caller: Caller, text: str, operation: str, **variables: Any) -> Json:
    (payload,) = (await caller.ask(text, variables, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def tell(caller: Caller, branch: str, content: str) -> str:
    answer = await done(caller, TELLING, "EntryAppend", branch=branch, content=content)
    return str(answer["entry"]["id"])


async def fork_of(caller: Caller, told: Told) -> str:
    given = {"branch": told.branch, "entry": told.entries[-1], "name": "Fork"}
    return str((await done(caller, WAYS_BACK, "BranchFork", **given))["branch"]["id"])


async def add_lore(caller: Caller, branch: str, title: str) -> str:
    given = {"branchId": branch, "title": title, "body": "It is so."}
    return str((await done(caller, PLOT_CHANGES, "LoreCreate", input=given))["lore"]["id"])


def seen(result: Json) -> tuple[int, str, int, list[str]]:
    event = result["data"]["branchEvents"]
    assert event["changeCount"] == len(event["changes"])
    assert event["branch"]["lastEventSeq"] >= event["seq"]
    ids = [each["id"] for each in event["changes"]]
    return event["seq"], event["kind"], event["head"], ids


async def test_a_change_reaches_open_pages_on_every_server(caller: Caller, second: Caller) -> None:
    """Rules H1, H2."""
    told = await tell_story(caller, "One.")
    branch = told.branch
    found = await caller.ask(BRANCH_LOG, {"branch": branch, "first": 0}, "BranchLog")
    given = {"branch": branch, "after": found["branch"]["lastEventSeq"]}
    async with (
        asyncio.timeout(PATIENCE),
        second.socket() as socket,
        second.stream(BRANCH_EVENTS, given) as stream,
    ):
        operation = await socket.start(BRANCH_EVENTS, given)
        two = await tell(caller, branch, "Two.")
        three = await tell(second, branch, "Three.")
        await done(caller, WAYS_BACK, "BranchUndo", branch=branch)
        expected = [
            (2, "ACTION", 2, [two]),
            (3, "ACTION", 3, [three]),
            (4, "UNDO", 2, [three]),
        ]
        assert [seen(await anext(operation)) for _ in expected] == expected
        assert [seen(await anext(stream)) for _ in expected] == expected
        await socket.stop(operation)


async def test_who_comes_back_to_another_server_sees_every_event_once(
    caller: Caller, second: Caller
) -> None:
    """Rule H1."""
    branch = (await tell_story(caller)).branch
    found: list[tuple[int, str, int, list[str]]] = []

    async def come_and_go() -> None:
        """Two events at one server, two at the other, and so on."""
        while len(found) < 10:
            given = {"branch": branch, "after": len(found)}
            async with (second, caller)[len(found) // 2 % 2].stream(BRANCH_EVENTS, given) as stream:
                found.extend([seen(await anext(stream)) for _ in range(2)])

    async with asyncio.timeout(PATIENCE):
        reading = asyncio.create_task(come_and_go())
        rows = [
            await add_lore((caller, second)[number % 2], branch, f"Lore {number}")
            for number in range(10)
        ]
        await reading
    assert found == [(seq, "ACTION", seq, [row]) for seq, row in enumerate(rows, start=1)]


@pytest.mark.parametrize("after", [-1, 2])
async def test_a_number_that_is_none_of_the_branchs_is_refused(caller: Caller, after: int) -> None:
    """Rule H1."""
    branch = (await tell_story(caller, "One.")).branch
    async with caller.socket() as socket:
        operation = await socket.start(BRANCH_EVENTS, {"branch": branch, "after": after})
        assert [result async for result in operation] == []
    (error,) = operation.errors
    assert error["extensions"]["code"] == "INVALID_CURSOR"
    assert error["message"] == "after is the number of an event of this branch, or 0 for all."


async def test_who_watches_a_branch_is_told_that_it_is_deleted(caller: Caller) -> None:
    """Rule H3."""
    told = await tell_story(caller, "One.")
    fork = await fork_of(caller, told)
    async with caller.socket() as socket:
        operation = await socket.start(BRANCH_EVENTS, {"branch": fork})
        # The socket answers in order: once this is answered, the stream is open.
        await socket.ask(BRANCH_LOG, {"branch": fork}, "BranchLog")
        await done(caller, STORY_CHANGES, "BranchDelete", branch=fork)
        results = [result async for result in operation]
    codes = [each["extensions"]["code"] for each in operation.errors]
    codes += [each["extensions"]["code"] for result in results for each in result["errors"]]
    assert codes == ["NOT_FOUND"]


async def test_the_log_says_who_changed_what(caller: Caller) -> None:
    """Rules H4, H5, H6."""
    told = await tell_story(caller, "One.")
    branch, entry = told.branch, told.entries[1]
    lore = await add_lore(caller, branch, "Oil")
    changed = {"loreId": lore, "title": "Whale oil", "tags": ["tax"]}
    await done(caller, PLOT_CHANGES, "LoreUpdate", input=changed)
    own = {"lore": lore.rpartition(":")[2], "entry": entry.rpartition(":")[2]}

    async def log(**variables: Any) -> Json:
        found = await caller.ask(BRANCH_LOG, {"branch": branch, **variables}, "BranchLog")
        return dict(found["branch"]["deltas"])

    whole = await log()
    assert whole["totalCount"] == 3
    newest = whole["nodes"][0]
    assert newest == {
        "id": newest["id"],
        "logPosition": 3,
        "source": "USER_EDIT",
        "op": "UPDATE",
        "table": "LORE",
        "rowId": own["lore"],
        "actionId": newest["actionId"],
        "anchor": None,
        "entry": None,
        "branch": {"id": branch},
        "fields": [
            {"path": "title", "before": "Oil", "after": "Whale oil"},
            {"path": "tags", "before": [], "after": ["tax"]},
        ],
    }
    first = whole["nodes"][2]
    assert (first["table"], first["op"], first["rowId"]) == (
        "STORY_ENTRIES",
        "CREATE",
        own["entry"],
    )
    assert (first["anchor"], first["entry"]) == (entry, {"rowId": own["entry"]})
    assert {"path": "content", "before": None, "after": "One."} in first["fields"]

    assert await log(first=1) == {
        "nodes": [newest],
        "totalCount": 3,
        "pageInfo": {
            "hasNextPage": True,
            "endCursor": (await log(first=1))["pageInfo"]["endCursor"],
        },
    }
    page = await log(first=2, after=(await log(first=1))["pageInfo"]["endCursor"])
    assert page["nodes"] == whole["nodes"][1:]
    for chosen, expected in (
        ({"rowId": own["lore"]}, whole["nodes"][:2]),
        ({"rowId": lore}, whole["nodes"][:2]),
        ({"table": "STORY_ENTRIES"}, [first]),
        ({"source": "LORE_AGENT"}, []),
        ({"actionId": newest["actionId"], "table": "LORE"}, [newest]),
    ):
        found = await log(filter=chosen)
        assert (found["nodes"], found["totalCount"]) == (expected, len(expected))

    history = await caller.ask(BRANCH_LOG, {"row": lore}, "RowHistory")
    assert history["node"] == {
        "rowId": own["lore"],
        "history": {"nodes": whole["nodes"][:2], "totalCount": 2},
    }
    await done(caller, WAYS_BACK, "BranchUndo", branch=branch)
    assert (await log())["nodes"] == whole["nodes"][1:]


async def test_a_difference_is_read_page_by_page_and_carried_across(caller: Caller) -> None:
    """Rules H8, H13, H14."""
    told = await tell_story(caller, "One.")
    fork = await fork_of(caller, told)
    rows = [await add_lore(caller, fork, f"Lore {number}") for number in range(3)]
    await tell(caller, fork, "Two.")
    sides = {"left": told.branch, "right": fork}

    async def diff(**variables: Any) -> Json:
        found = await caller.ask(BRANCH_DIFF, {**sides, **variables}, "BranchDiff")
        return dict(found["branchDiff"])

    whole = await diff()
    assert (whole["left"], whole["right"]) == ({"id": told.branch}, {"id": fork})
    assert whole["commonEntry"] == {"id": told.entries[1], "position": 2}
    changes = whole["changes"]
    assert changes["totalCount"] == 4
    assert [(each["table"], each["kind"], each["label"]) for each in changes["nodes"]] == [
        ("STORY_ENTRIES", "ADDED", "Two."),
        *(("LORE", "ADDED", f"Lore {number}") for number in range(3)),
    ]
    only = await diff(tables=["LORE"])
    assert only["changes"]["nodes"] == changes["nodes"][1:]
    found: list[Json] = []
    after = None
    for has_more in (True, False):
        page = (await diff(first=2, after=after))["changes"]
        found += page["nodes"]
        after = page["pageInfo"]["endCursor"]
        assert page["pageInfo"]["hasNextPage"] is has_more
    assert found == changes["nodes"]

    own = rows[1].rpartition(":")[2]
    given = {"from": fork, "to": told.branch, "row": own, "head": 1}
    assert await done(caller, CARRYING, "ChangeCarry", **given) == {
        "kind": "ADDED",
        "row": {"id": f"{told.branch}:{own}", "rowId": own},
        "branch": {"id": told.branch, "head": 2},
    }
    left = (await diff())["changes"]["nodes"]
    assert left == [each for each in changes["nodes"] if each["rowId"] != own]
    back = {"from": told.branch, "to": fork, "row": rows[0]}
    gone = await done(caller, CARRYING, "ChangeCarry", **back)
    assert (gone["kind"], gone["row"]) == ("REMOVED", None)


async def test_a_change_that_cannot_be_carried_is_refused_and_nothing_changes(
    caller: Caller, ledger: Any
) -> None:
    """Rule H14."""
    told = await tell_story(caller, "One.")
    fork = await fork_of(caller, told)
    entry = await tell(caller, fork, "Two.")
    before = await ledger.fingerprint()
    given = {"from": fork, "to": told.branch, "row": entry}
    refused = (await caller.ask(CARRYING, given, "ChangeCarry"))["changeCarry"]
    assert refused == {
        "kind": None,
        "row": None,
        "branch": None,
        "errors": [
            {
                "code": "NOT_CARRIED",
                "message": "The text of a story is not carried: tell it there.",
                "path": ["input", "rowId"],
            }
        ],
    }
    assert await ledger.fingerprint() == before


async def test_branches_of_different_stories_are_not_compared(caller: Caller) -> None:
    """Rule H12."""
    first, second = [(await tell_story(caller, "One.")).branch for _ in range(2)]
    answer = await caller.post(BRANCH_DIFF, {"left": first, "right": second})
    (error,) = answer.body["errors"]
    assert error["extensions"]["code"] == "NOT_OF_ONE_STORY"
    assert answer.body["data"] == {"branchDiff": None}
    for sides in (("br_none", first), (first, "story_none")):
        given = dict(zip(("left", "right"), sides, strict=True))
        assert await caller.ask(BRANCH_DIFF, given) == {"branchDiff": None}
