"""urql: over server-sent events, by GET, with persisted documents, and with its graph cache."""

from __future__ import annotations

from typing import Any

from tests.e2e.callers import Caller, Json, node_lines
from tests.schema.wire.serving import Wire

WHOLE = "application/graphql-response+json"
STREAM = "text/event-stream"


def sent(method: str, *, has_query: bool = True, status: int = 200, type: str = WHOLE) -> Json:
    return {"method": method, "hasQuery": has_query, "status": status, "type": type}


HELLO = {"data": {"hello": "hello world"}}
COUNTED_TO_ONE = {"data": {"count": 1}}
INVALID = {"codes": ["GRAPHQL_VALIDATION_FAILED"]}

# Each step with its results and the requests that it took.
STEPS: dict[str, tuple[list[Json], list[Json]]] = {
    "forced GET": ([{"data": {"hello": "hello Ça va? 👩‍👩‍👧 & +"}}], [sent("GET")]),
    "subscription": (
        [COUNTED_TO_ONE, {"data": {"count": 2}}],
        [sent("POST", type=STREAM)],
    ),
    "broken subscription": (
        [{"data": {"breaking": 0}}, {"data": {"breaking": 0}, "codes": ["INTERNAL"]}],
        [sent("POST", type=STREAM)],
    ),
    "invalid subscription": ([INVALID], [sent("POST", type=STREAM)]),
    "invalid": ([INVALID], [sent("GET", status=422)]),
    "partial": (
        [{"data": {"hello": "hello world", "refused": None}, "codes": ["MEND_THIS"]}],
        [sent("GET", status=294)],
    ),
    "miss": ([HELLO], [sent("GET", has_query=False, status=404), sent("GET")]),
    "hit": ([HELLO], [sent("GET", has_query=False)]),
    "mutation": (
        [{"data": {"set": 5}}],
        [sent("POST", has_query=False, status=404), sent("POST")],
    ),
    "mutation again": ([{"data": {"set": 5}}], [sent("POST", has_query=False)]),
    "by POST": ([HELLO], [sent("POST", has_query=False)]),
    "enforced": ([HELLO], [sent("GET", has_query=False)]),
    "enforced miss": (
        [{"codes": ["PERSISTED_QUERY_NOT_FOUND"]}],
        [sent("GET", has_query=False, status=404)],
    ),
}


async def test_urql_reads_streams_and_errors_and_sends_persisted_documents(wire: Wire) -> None:
    """Rule T43."""
    steps: dict[str, Any] = {}
    async for line in node_lines("urql-exchanges.mjs", url=wire.url):
        steps[line["step"]] = (line["results"], line["requests"])
    results, requests = steps.pop("persisted subscription")
    miss, *registered = requests
    assert miss == sent("POST", has_query=False, type=STREAM)
    # urql makes two results of a miss whose error and end are read at once, and then asks twice.
    assert registered in ([sent("POST", type=STREAM)], [sent("POST", type=STREAM)] * 2)
    assert results == [COUNTED_TO_ONE] * len(registered)
    assert steps == STEPS


async def test_the_graph_cache_of_urql_knows_our_ids_and_pages(caller: Caller) -> None:
    begun = await caller.begin("Well? [demo: length=3]")
    await caller.follow(begun.run)
    adopted = (await caller.read("Run", begun.run))["node"]["id"]
    assert (await caller.change("NodeAdopt", node=adopted))["errors"] == []
    again = (await caller.change("AnswerRegenerate", question=begun.question))["run"]["id"]
    await caller.follow(again)
    other = (await caller.read("Run", again))["node"]["id"]
    (seen,) = [
        line
        async for line in node_lines(
            "graphcache.mjs", url=caller.server.url, tree=begun.tree, answer=other
        )
    ]
    assert seen == {
        "pages": [[begun.question], [begun.question, adopted]],
        "hasNextPage": True,
        "errors": [],
        "seen": [adopted, other],
        "requests": 1,
        "complaints": [],
    }
