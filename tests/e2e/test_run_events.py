"""A run's events for clients without a GraphQL library: `GET /runs/{id}/events`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import aiohttp
import pytest

from db.engine import Database, open_database
from services import accounts
from tests.conftest import ServerProcess, serving
from tests.e2e.callers import PATIENCE, Answer, Caller, Json, numbers_of, text_of
from tests.e2e.plain_streams import last_event_id, plain_events

LONG_RUN = "Tell me everything. [demo: rate=300 length=300]"
SLOW_RUN = "Tell me slowly. [demo: rate=10 length=4000]"
NOT_FOUND = {"code": "NOT_FOUND", "argument": "runId"}


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_AUTH": "token", "MIRRORGRAPH_HOUSEKEEPING_SECONDS": "0.2"}


@dataclass
class People:
    """Who asks, and their database."""

    owner: Caller
    stranger: Caller
    database: Database
    anonymous: Caller


@pytest.fixture(scope="module")
async def people(caller: Caller, server_dsn: str) -> AsyncIterator[People]:
    database = await open_database(server_dsn, pool_size=2, statement_timeout=10)
    async with database.writing() as writing:
        olga, sten = [await accounts.ensure_user(writing, name) for name in ("Olga", "Sten")]
        owner, stranger = [
            caller.as_(await accounts.issue_token(writing, user.id)) for user in (olga, sten)
        ]
    yield People(owner, stranger, database, caller)
    await database.close()


@dataclass
class Ended:
    """A run that is over, and what a subscriber sees of it."""

    id: str
    events: list[Json]


@pytest.fixture(scope="module")
async def ended(people: People) -> Ended:
    begun = await people.owner.begin("Well? [demo: length=9]")
    return Ended(begun.run, await people.owner.follow(begun.run))


async def all_of(
    caller: Caller, run: str, last_seen: int | None = None, query: str = ""
) -> list[Json]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in plain_events(caller, run, last_seen, query)]


async def asked(caller: Caller, run: str, query: str = "", **headers: str) -> Answer:
    """An answer that is no stream."""
    return await caller.request("GET", f"/runs/{run}/events{query}", headers)


async def test_the_owner_sees_what_a_subscriber_sees(people: People, ended: Ended) -> None:
    """Rule R17."""
    opening, *events = await all_of(people.owner, ended.id)
    assert events == ended.events
    assert opening == {
        "__typename": "StreamOpened",
        "seq": 0,
        "at": opening["at"],
        "text": "",
        "reasoning": "",
        "run": {"id": ended.id, "status": "SUCCEEDED", "lastSeq": len(events)},
    }


async def test_an_opening_has_the_text_so_far(people: People, ended: Ended) -> None:
    """Rule R16."""
    for after in range(len(ended.events)):
        for opening, *events in (
            await all_of(people.owner, ended.id, after),
            await all_of(people.owner, ended.id, query=f"?after={after}"),
            # Where there are both, the header is the newer one.
            await all_of(people.owner, ended.id, after, query="?after=1"),
        ):
            assert opening["seq"] == after
            assert opening["text"] == text_of(ended.events[:after])
            assert opening["reasoning"] == text_of(ended.events[:after], "REASONING")
            assert events == ended.events[after:]


async def test_who_has_seen_the_end_is_told_not_to_come_back(people: People, ended: Ended) -> None:
    """Rule R17."""
    last = len(ended.events)
    for seen in (last, last + 1, 999_999_999):
        for query, headers in ((f"?after={seen}", {}), ("", last_event_id(seen))):
            answer = await asked(people.owner, ended.id, query, **headers)
            assert (answer.status, answer.body) == (204, "")


async def test_others_are_refused_before_the_stream(people: People, ended: Ended) -> None:
    """Rule R17."""
    strange = await asked(people.stranger, ended.id)
    missing = await asked(people.owner, "run_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    unstorable = await asked(people.owner, "run%00")
    for refused in (strange, missing, unstorable):
        assert (refused.status, refused.headers["Content-Type"]) == (404, "application/json")
        (error,) = refused.body["errors"]
        assert error["extensions"] == NOT_FOUND
    for nobody in (people.anonymous, people.anonymous.as_("wrong")):
        refused = await asked(nobody, ended.id)
        assert (refused.status, refused.codes) == (401, ["UNAUTHENTICATED"])
        assert refused.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("number", ["-1", "1.5", "x", "٣", "+1", "1 2", "2147483648", "1" * 5_000])
async def test_what_is_no_number_of_an_event_is_refused(
    people: People, ended: Ended, number: str
) -> None:
    """Rule T47."""
    answers = [
        await people.owner.request("GET", f"/runs/{ended.id}/events", params={"after": number})
    ]
    if number.isascii():
        answers.append(await asked(people.owner, ended.id, **{"Last-Event-ID": number}))
    for refused in answers:
        assert (refused.status, refused.codes) == (422, ["INVALID_CURSOR"])


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
async def test_other_methods_are_refused(people: People, ended: Ended, method: str) -> None:
    refused = await people.owner.request(method, f"/runs/{ended.id}/events")
    assert (refused.status, refused.headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://foreign.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 204),
        ({"Sec-Fetch-Site": "none"}, 204),
    ],
)
async def test_pages_of_other_origins_are_refused(
    people: People, ended: Ended, headers: dict[str, str], status: int
) -> None:
    """Rule T34."""
    answer = await asked(people.owner, ended.id, f"?after={len(ended.events)}", **headers)
    assert answer.status == status
    if status == 403:
        assert answer.codes == ["ORIGIN_NOT_ALLOWED"]


async def test_who_comes_back_again_and_again_sees_each_event_once(people: People) -> None:
    """Rules R9, R16, R17, T7. The text of each opening is what was seen before it."""
    draw = random.Random(5)
    begun = await people.owner.begin(LONG_RUN)
    seen: list[Json] = []
    visits = 0
    async with asyncio.timeout(PATIENCE):
        while not seen or seen[-1]["__typename"] != "RunFinished":
            last = seen[-1]["seq"] if seen else None
            visits += 1
            enough = draw.randrange(1, 20)
            async with aclosing(plain_events(people.owner, begun.run, last)) as stream:
                opening = await anext(stream)
                assert opening["seq"] == (last or 0)
                assert opening["text"] == text_of(seen)
                async for event in stream:
                    seen.append(event)
                    enough -= 1
                    if enough == 0:
                        break
    assert visits > 10
    assert seen == await people.owner.follow(begun.run)
    assert numbers_of(seen) == list(range(1, len(seen) + 1))
    assert text_of(seen) == seen[-1]["node"]["content"]
    assert await all_of(people.owner, begun.run, len(seen)) == []


async def test_a_stream_ends_with_its_sign_in(people: People) -> None:
    async with people.database.writing() as writing:
        gus = (await accounts.ensure_user(writing, "Gus")).id
        guest = people.anonymous.as_(await accounts.issue_token(writing, gus))
    begun = await guest.begin(SLOW_RUN)
    async with asyncio.timeout(PATIENCE), aclosing(plain_events(guest, begun.run)) as stream:
        assert (await anext(stream))["__typename"] == "StreamOpened"
        async with people.database.writing() as writing:
            assert await accounts.revoke_tokens(writing, gus) == 1
        rest = [event async for event in stream]
    assert all(event["__typename"] not in {"RunFinished", "Interrupted"} for event in rest)
    assert (await asked(guest, begun.run)).status == 401


CONTEXT = """
query RunContext($id: ID!) {
  run(id: $id) {
    attempts textsUntilSeq lastSeq
    node { status content }
    context { budget tokens parts { kind ref tokens isCarried reason count } }
  }
}
"""


async def test_a_run_says_what_its_model_was_given(people: People) -> None:
    """Rules R28, R29. To whoever may see the run."""
    begun = await people.owner.begin("Well? [demo: length=3]")
    await people.owner.follow(begun.run)
    run = (await people.owner.ask(CONTEXT, {"id": begun.run}))["run"]
    context = run.pop("context")
    assert (run["attempts"], run["textsUntilSeq"]) == (1, None)
    identity, question = context["parts"]
    assert context == {
        "budget": 8_192 - 1_024,
        "tokens": identity["tokens"] + question["tokens"],
        "parts": [
            {
                "kind": "IDENTITY",
                "ref": None,
                "tokens": identity["tokens"],
                "isCarried": True,
                "reason": None,
                "count": 1,
            },
            {
                "kind": "QUESTION",
                "ref": begun.question,
                "tokens": question["tokens"],
                "isCarried": True,
                "reason": None,
                "count": 1,
            },
        ],
    }
    assert (await people.stranger.ask(CONTEXT, {"id": begun.run}))["run"] is None
    assert (await people.anonymous.post(CONTEXT, {"id": begun.run})).codes == ["UNAUTHENTICATED"]


async def test_texts_are_erased_in_time_and_streams_say_so(people: People) -> None:
    """Rules R16, R19, R20. By the server itself; an EventSource that comes back with each number
    that it is told gets to the end.
    """
    begun = await people.owner.begin("Well? [demo: length=9]")
    events = await people.owner.follow(begun.run)
    oldest = max(event["seq"] for event in events if event["__typename"] == "TextDelta")
    async with people.database.writing() as writing:
        await writing._connection.execute(
            "UPDATE runs SET ended_at = ended_at - interval '31 days' WHERE id = $1", begun.run
        )
    async with asyncio.timeout(PATIENCE):
        while True:
            run = (await people.owner.ask(CONTEXT, {"id": begun.run}))["run"]
            if run["textsUntilSeq"] is not None:
                break
            await asyncio.sleep(0.05)
    assert (run["textsUntilSeq"], run["lastSeq"]) == (oldest, len(events))
    assert run["node"] == {"status": "SOLIDIFIED", "content": text_of(events)}

    refused = {"code": "OUT_OF_WINDOW", "argument": "after", "oldest": oldest}
    for after in (None, 0, oldest - 1):
        variables = {"run": begun.run, "after": after}
        async with people.owner.stream(variables=variables) as results:
            (result,) = [each async for each in results]
        (error,) = result["errors"]
        assert error["extensions"] == refused
        assert result.get("data") is None
        (interrupted,) = await all_of(people.owner, begun.run, after)
        assert (interrupted["__typename"], interrupted["seq"]) == ("Interrupted", oldest)
        assert interrupted["extensions"] == refused
        assert interrupted["message"] == error["message"]
    assert await people.owner.follow(begun.run, oldest) == events[oldest:]
    opening, *rest = await all_of(people.owner, begun.run, oldest)
    assert rest == events[oldest:]
    assert opening["seq"] == oldest
    assert opening["text"] == text_of(events)
    assert opening["reasoning"] == text_of(events, "REASONING")
    assert await all_of(people.owner, begun.run, rest[-1]["seq"]) == []
    for nobody, status in ((people.stranger, 404), (people.anonymous, 401)):
        assert (await asked(nobody, begun.run)).status == status


@pytest.fixture
async def elsewhere(server_dsn: str) -> AsyncIterator[ServerProcess]:
    """A second server on the same database, which takes up no runs of the first one's provider."""
    environment = {
        "DATABASE_URL": server_dsn,
        "MIRRORGRAPH_AUTH": "token",
        "MIRRORGRAPH_PROVIDER": "openai",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }
    async with serving(**environment) as server:
        yield server


async def test_a_run_is_followed_on_another_server_than_it_is_worked_on(
    people: People, elsewhere: ServerProcess, session: aiohttp.ClientSession
) -> None:
    """Rules R9, R11. When that server stops, the stream says: come back."""
    there = Caller(elsewhere, session, people.owner.token)
    begun = await people.owner.begin(LONG_RUN)
    here, (opening, *followed) = await asyncio.gather(
        people.owner.follow(begun.run), all_of(there, begun.run)
    )
    assert (opening["seq"], opening["run"]["id"]) == (0, begun.run)
    assert followed == here
    assert numbers_of(here) == list(range(1, len(here) + 1))

    slow = await people.owner.begin(SLOW_RUN)
    async with asyncio.timeout(PATIENCE), aclosing(plain_events(there, slow.run)) as stream:
        seen = [await anext(stream) for _ in range(5)]
        await elsewhere.stop()
        seen += [event async for event in stream]
    *before, interrupted = seen
    assert interrupted["__typename"] == "Interrupted"
    assert interrupted["extensions"] == {"code": "SERVER_STOPPING", "retryable": True}
    last = before[-1]["seq"]
    await people.owner.change("RunCancel", run=slow.run)
    _, *rest = await all_of(people.owner, slow.run, last)
    assert [*before[1:], *rest] == await people.owner.follow(slow.run)
