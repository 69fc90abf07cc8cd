"""How many answers may be asked for at once, as clients are told."""

from __future__ import annotations

import asyncio

import pytest

from tests.acceptance import document
from tests.e2e.callers import PATIENCE, Caller, Json

TREE_ASK = document("12-tree-ask.graphql")
SLOW = "Well? [demo: rate=1 length=4000]"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {
        "MIRRORGRAPH_CONCURRENT_RUNS": "2",
        "MIRRORGRAPH_RUNS_PER_USER": "4",
        "MIRRORGRAPH_RUNS_PER_CHARACTER": "2",
        "MIRRORGRAPH_QUEUED_RUNS": "1",
    }


async def ask(caller: Caller, tree: str) -> Json:
    asked = {"tree": tree, "parent": None, "text": SLOW}
    payload: Json = (await caller.ask(TREE_ASK, asked, "TreeAsk"))["treeAsk"]
    return payload


async def running(caller: Caller, run: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await caller.read("Run", run))["status"] != "RUNNING":  # noqa: ASYNC110, a server's
            await asyncio.sleep(0.01)


async def test_who_asks_for_too_much_is_refused_and_nothing_is_stored(caller: Caller) -> None:
    """Rules R21, R22."""
    busy, idle = [await caller.create_character() for _ in range(2)]
    begun = []
    for _ in range(2):
        # One that waits for its turn still would fill the queue.
        begun.append(await caller.begin(SLOW, await caller.create_tree(busy)))
        await running(caller, begun[-1].run)

    async def assert_refused(tree: str, code: str, path: list[str]) -> None:
        payload = await ask(caller, tree)
        assert [(each["code"], each["path"]) for each in payload["errors"]] == [(code, path)]
        assert payload["errors"][0]["message"] != ""
        assert (payload["question"], payload["run"]) == (None, None)
        assert (await caller.read("Tree", tree))["nodes"]["totalCount"] == 0

    tree_of_busy, tree_of_idle = await caller.create_tree(busy), await caller.create_tree(idle)
    await assert_refused(tree_of_busy, "RUNS_OF_CHARACTER_LIMIT", ["input", "treeId"])
    begun.append(await caller.begin(SLOW, await caller.create_tree(idle)))
    assert (await caller.read("Run", begun[-1].run))["status"] == "QUEUED"
    await assert_refused(tree_of_idle, "QUEUE_FULL", [])

    # Room is made by whatever ends.
    await caller.change("RunCancel", run=begun[0].run)
    await caller.follow(begun[0].run)
    await running(caller, begun[2].run)
    payload = await ask(caller, tree_of_idle)
    assert payload["errors"] == []
    await caller.change("RunCancel", run=payload["run"]["id"])
    for each in begun[1:]:
        await caller.change("RunCancel", run=each.run)
        await caller.follow(each.run)
