"""Trees as front ends see them: changes on every open page, going on, pruning, corrections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import ServerProcess, serving
from tests.e2e.callers import PATIENCE, TREE_ASK, Caller, Json
from tests.e2e.tree_documents import TREE_CHANGES, TREE_EVENTS, TREE_RULES, TREE_SHAPE

# More answers at once than a character may owe unless said otherwise.
MANY = {"MIRRORGRAPH_RUNS_PER_CHARACTER": "100", "MIRRORGRAPH_RUNS_PER_USER": "100"}


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return MANY


@pytest.fixture(scope="module")
async def second(server_dsn: str, server: ServerProcess, caller: Caller) -> AsyncIterator[Caller]:
    """The same person at another server on the same database."""
    async with serving(DATABASE_URL=server_dsn, MIRRORGRAPH_DEMO_RATE="0", **MANY) as other:
        yield Caller(other, caller.session, caller.token)


async def change(caller: Caller, operation: str, **variables: Any) -> Json:
    document = TREE_RULES if operation in TREE_RULES else TREE_CHANGES
    (payload,) = (await caller.ask(document, variables, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def talked(caller: Caller, text: str = "What floats?") -> tuple[str, str, str]:
    """A tree, a question and its answer."""
    begun = await caller.begin(text)
    return begun.tree, begun.question, (await caller.follow(begun.run))[-1]["node"]["id"]


def event_of(result: Json) -> tuple[int, str, str]:
    assert set(result) == {"data"}, result
    event = result["data"]["treeEvents"]
    return event["seq"], event["type"], event["nodeId"]


async def test_a_change_reaches_open_pages_on_every_server(caller: Caller, second: Caller) -> None:
    """Rule M15."""
    tree, question, answer = await talked(caller)
    given = {"tree": tree, "after": 4}
    async with (
        asyncio.timeout(PATIENCE),
        second.socket() as socket,
        second.stream(TREE_EVENTS, given) as stream,
    ):
        operation = await socket.start(TREE_EVENTS, given)
        edited = (await change(caller, "NodeEdit", node=question, text="What sinks?"))["node"]
        await change(second, "PathCanonize", endpoint=answer, scope="REALITY")
        expected = [(5, "NODE_PLANTED", edited["id"]), (6, "PATH_CANONIZED", answer)]
        assert [event_of(await anext(operation)) for _ in expected] == expected
        assert [event_of(await anext(stream)) for _ in expected] == expected
        await socket.stop(operation)


@pytest.mark.parametrize("after", [-1, 5])
async def test_a_number_that_is_none_of_the_trees_is_refused(caller: Caller, after: int) -> None:
    tree, _, _ = await talked(caller)
    async with caller.socket() as socket:
        operation = await socket.start(TREE_EVENTS, {"tree": tree, "after": after})
        assert [result async for result in operation] == []
    (error,) = operation.errors
    assert error["extensions"]["code"] == "INVALID_CURSOR"
    assert error["message"] == "after is the number of an event of this tree, or 0 for all."


async def test_a_character_goes_on_by_itself(caller: Caller) -> None:
    """Rule M8."""
    tree, _, answer = await talked(caller)
    run = (await change(caller, "NodeContinue", node=answer))["run"]
    last = (await caller.follow(run["id"]))[-1]
    assert (last["status"], last["error"]) == ("SUCCEEDED", None)
    thought = last["node"]
    # The demo model quotes what was said, and nobody has said anything.
    assert "“" not in thought["content"]
    found = await caller.ask(
        "query($tree: ID!, $run: ID!) { mirrorTree(id: $tree) { workingEntry { id nodeType"
        " parent { id } } } run(id: $run) { question { id } node { id } } }",
        {"tree": tree, "run": run["id"]},
    )
    assert found == {
        "mirrorTree": {
            "workingEntry": {
                "id": thought["id"],
                "nodeType": "CONTINUED_THOUGHT",
                "parent": {"id": answer},
            }
        },
        "run": {"question": {"id": answer}, "node": {"id": thought["id"]}},
    }


async def test_what_was_pruned_reads_as_null_and_its_run_is_kept(caller: Caller) -> None:
    """Rule M14."""
    tree, question, answer = await talked(caller)
    edited = (await change(caller, "NodeEdit", node=question, text="What sinks?"))["node"]["id"]
    again = await caller.change("AnswerRegenerate", question=edited)
    run = again["run"]["id"]
    (*_, last) = await caller.follow(run)
    dead = [edited, last["node"]["id"]]
    looked = await change(caller, "TreePrune", tree=tree)
    assert looked == {
        "tree": {"id": tree, "lastSeq": 7},
        "removedCount": 2,
        "removedIds": dead,
        "keptCount": 2,
    }
    kept = await change(caller, "TreePrune", tree=tree, keep=[dead[1]], dryRun=False)
    assert (kept["removedCount"], kept["keptCount"], kept["tree"]["lastSeq"]) == (0, 4, 7)
    done = await change(caller, "TreePrune", tree=tree, dryRun=False)
    assert done == {**looked, "tree": {"id": tree, "lastSeq": 8}}
    found = await caller.ask(
        "query($run: ID!, $ids: [ID!]!) { run(id: $run) { status question { id } node { id } }"
        " nodes(ids: $ids) { id } }",
        {"run": run, "ids": [*dead, answer]},
    )
    assert found == {
        "run": {"status": "SUCCEEDED", "question": None, "node": None},
        "nodes": [None, None, {"id": answer}],
    }
    events = await caller.follow(run)
    assert events[-1] == {**last, "node": None}
    async with caller.stream(TREE_EVENTS, {"tree": tree, "after": 4}) as stream:
        results = [(await anext(stream))["data"]["treeEvents"] for _ in range(4)]
    assert [(each["seq"], each["type"], each["nodeId"], each["node"]) for each in results] == [
        (5, "NODE_PLANTED", edited, None),
        (6, "NODE_PLANTED", dead[1], None),
        (7, "NODE_FINISHED", dead[1], None),
        (8, "TREE_PRUNED", None, None),
    ]


async def test_a_repeat_after_pruning_answers_with_what_is_left(caller: Caller) -> None:
    """Rules I1, M14."""
    tree, question, _ = await talked(caller)
    headers = {"Idempotency-Key": f"edit of {question}"}
    given = {"node": question, "text": "What sinks?"}
    first = (await caller.post(TREE_RULES, given, "NodeEdit", headers)).data["nodeEdit"]
    assert first["node"]["supersedes"]["id"] == question
    await change(caller, "TreePrune", tree=tree, dryRun=False)
    again = (await caller.post(TREE_RULES, given, "NodeEdit", headers)).data["nodeEdit"]
    assert again == {"node": None, "errors": []}


async def test_a_correction_leads_from_the_quote_to_what_is_right(caller: Caller) -> None:
    """Rules M10, M11."""
    tree, question, answer = await talked(caller)
    place = {"source": question, "target": {"start": 0, "end": 4}}
    cited = (await change(caller, "NodeCite", node=answer, **place))["citation"]
    assert cited == {
        "id": cited["id"],
        "targetKind": "TEXT_RANGE",
        "target": {"start": 0, "end": 4},
        "quote": "What",
        "sourceId": question,
        "sourceVersion": 1,
        "source": {"id": question},
    }
    record = await change(caller, "PathCanonize", endpoint=answer, scope="REALITY")
    right = await change(caller, "NodeCorrect", node=question, text="Who floats?")
    node, (correction,) = right["node"], right["canonizations"]
    assert node == {
        "id": node["id"],
        "content": "Who floats?",
        "contentVersion": 2,
        "supersedes": {"id": question},
    }
    assert correction == {
        "id": correction["id"],
        "scope": "REALITY",
        "pathLength": 1,
        "isIntact": True,
        "endpoint": {"id": node["id"]},
        "corrects": {"id": record["canonization"]["id"]},
    }
    shape = await caller.ask(TREE_SHAPE, {"tree": tree, "node": answer})
    assert shape["treeNode"]["citations"] == [{"quote": "What", "newestSource": {"id": node["id"]}}]
    shape = await caller.ask(TREE_SHAPE, {"tree": tree, "node": question})
    assert shape["treeNode"]["versions"] == {"nodes": [{"id": node["id"]}], "totalCount": 1}
    both = {"nodes": [{"id": question}, {"id": node["id"]}], "totalCount": 2}
    assert shape["treeNode"]["siblings"] == shape["mirrorTree"]["roots"] == both


@pytest.mark.parametrize("depth", [0, -1, 10_001])
async def test_a_depth_that_makes_no_sense_is_refused(caller: Caller, depth: int) -> None:
    tree = await caller.create_tree()
    query = "query($tree: ID!, $depth: Int!) { mirrorTree(id: $tree) { outline(maxDepth: $depth)"
    answer = await caller.post(query + " { isTruncated } } }", {"tree": tree, "depth": depth})
    assert answer.codes == ["INVALID_DEPTH"]
    (error,) = answer.body["errors"]
    assert error["message"] == "maxDepth lies between 1 and 10,000."


async def test_everything_at_once_in_one_tree_ends(caller: Caller, second: Caller) -> None:
    """Locks are taken in one order: nobody is refused for a deadlock, and no number is lost."""
    tree, question, answer = await talked(caller)
    place = {"source": question, "target": {"start": 0, "end": 4}}
    asked = {"tree": tree, "parent": answer, "text": "And?"}

    async def ask(person: Caller) -> None:
        payload = (await person.ask(TREE_ASK, asked, "TreeAsk"))["treeAsk"]
        assert payload["errors"] == []
        await person.follow(payload["run"]["id"])

    async def cancel(person: Caller) -> None:
        payload = await person.change("AnswerRegenerate", question=question)
        await person.change("RunCancel", run=payload["run"]["id"])

    works = []
    for person in (caller, second) * 4:
        works += [
            ask(person),
            cancel(person),
            change(person, "NodeEdit", node=question, text="Edited?"),
            change(person, "NodeCite", node=answer, **place),
            change(person, "TreeTransplant", node=answer, topic="Elsewhere"),
            change(person, "TreePrune", tree=tree, dryRun=False),
        ]
    async with asyncio.timeout(PATIENCE * 2):
        await asyncio.gather(*works)
    shape = await caller.ask(TREE_SHAPE, {"tree": tree, "node": answer})
    last = shape["mirrorTree"]["lastSeq"]
    async with caller.stream(TREE_EVENTS, {"tree": tree, "after": 0}) as stream:
        seen = [event_of(await anext(stream))[0] for _ in range(last)]
    assert seen == list(range(1, last + 1))
    assert len(shape["treeNode"]["citations"]) == 8
    assert shape["mirrorTree"]["transplants"]["totalCount"] == 8
