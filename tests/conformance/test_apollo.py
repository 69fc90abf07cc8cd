"""Apollo Client over all of its links."""

from __future__ import annotations

from typing import Any

from tests.e2e.callers import Json, node_lines
from tests.schema.wire.serving import Wire

WHOLE = "application/graphql-response+json"
PARTS = "multipart/mixed"


def sent(
    method: str = "POST", *, has_query: Any = True, status: int = 200, type: str = WHOLE
) -> Json:
    return {"method": method, "hasQuery": has_query, "status": status, "type": type}


def refused(*codes: str, kind: str = "CombinedGraphQLErrors", **rest: Any) -> Json:
    return {"kind": kind, "codes": list(codes), **rest}


HELLO = {"data": {"hello": "hello world"}}
PARTIAL = {"data": {"hello": "hello world", "refused": None}}
INVALID = refused("GRAPHQL_VALIDATION_FAILED")


def counted(to: int) -> list[Json]:
    return [{"data": {"count": number}} for number in range(1, to + 1)]


# Each step with its results and the requests that it took.
STEPS: dict[str, tuple[list[Json], list[Json]]] = {
    "query": ([{"data": {"hello": "hello Ça va? 👩‍👩‍👧"}}], [sent()]),
    "mutation": ([{"data": {"set": 3}}], [sent()]),
    "errors: none": ([refused("MEND_THIS")], [sent(status=294)]),
    "errors: all": ([{**PARTIAL, **refused("MEND_THIS")}], [sent(status=294)]),
    "errors: ignore": ([PARTIAL], [sent(status=294)]),
    "invalid": ([INVALID], [sent(status=422)]),
    "by GET": ([HELLO], [sent("GET")]),
    "subscription": (counted(3), [sent(type=PARTS)]),
    "broken subscription": (
        [{"data": {"breaking": 0}}, refused("INTERNAL", kind="CombinedProtocolErrors")],
        [sent(type=PARTS)],
    ),
    "invalid subscription": ([INVALID], [sent(status=422)]),
    # Both ask for deferred parts, which we do not send, and take a whole response.
    "with Defer20220824Handler": ([HELLO], [sent()]),
    "with GraphQL17Alpha9Handler": ([HELLO], [sent()]),
    "miss by POST": ([HELLO], [sent(has_query=False, status=404), sent()]),
    "hit by POST": ([HELLO], [sent(has_query=False)]),
    "miss by GET": ([HELLO], [sent("GET", has_query=False, status=404), sent()]),
    "hit by GET": ([HELLO], [sent("GET", has_query=False)]),
    "batch": (
        [HELLO, INVALID, refused("MEND_THIS", data={"refused": None})],
        [sent(has_query=[True, True, True])],
    ),
    "upload": ([{"data": {"readFiles": ["Erste", "второй"]}}], []),
    "over a socket": (counted(2), []),
}


async def test_apollo_client_works_over_each_of_its_links(wire: Wire) -> None:
    steps: dict[str, Any] = {}
    async for line in node_lines("apollo.mjs", url=wire.url, socketUrl=wire.socket_url):
        steps[line["step"]] = (line["results"], line["requests"])
    assert steps == STEPS
