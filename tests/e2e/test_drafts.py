"""Drafts as a front end works on them: changed, talked with, activated or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conftest import serving
from tests.e2e.callers import (
    CARD_IMPORT,
    CHECKLIST,
    EMBRYO_ACTIVATE,
    EMBRYO_CREATE,
    PATIENCE,
    Caller,
    Json,
    Operation,
)
from tests.e2e.draft_documents import DRAFT, DRAFT_CHANGES, REHEARSAL
from tests.e2e.ledgers import Ledger

IDENTITY = {
    "name": "Rook",
    "nickname": "R",
    "description": "Guards the bridge. Counts to nine.",
    "forbiddenZone": ["Leaving the bridge."],
}
SLOW = "[demo: rate=10 length=400]"


@pytest.fixture
async def draft(caller: Caller) -> str:
    made = await caller.ask(EMBRYO_CREATE, {"identity": IDENTITY})
    return str(made["embryoCreate"]["embryo"]["id"])


async def change(caller: Caller, operation: str, **variables: Any) -> Json:
    (payload,) = (await caller.ask(DRAFT_CHANGES, variables, operation)).values()
    return dict(payload)


async def read(caller: Caller, draft: str) -> Json:
    return dict((await caller.ask(DRAFT, {"embryo": draft}))["node"])


def confirmed(embryo: Json) -> list[str]:
    return [each["key"] for each in embryo["checklist"] if each["isConfirmed"]]


async def test_absent_stays_and_null_clears(caller: Caller, draft: str) -> None:
    """Rule C4."""
    identity = {"description": "Guards nothing.", "nickname": None, "exampleMessages": "Halt!"}
    payload = await change(caller, "EmbryoUpdate", embryo=draft, identity=identity, version=1)
    assert payload["errors"] == []
    embryo = payload["embryo"]
    assert embryo["provisionalIdentity"] == {
        "name": "Rook",
        "description": "Guards nothing.",
        "mes_example": "Halt!",
        "forbidden_zone": ["Leaving the bridge."],
    }
    assert (embryo["status"], embryo["version"], confirmed(embryo)) == ("DRAFT", 2, [])
    payload = await change(caller, "EmbryoUpdate", embryo=draft, identity=identity, version=1)
    (error,) = payload["errors"]
    assert (error["code"], error["path"]) == ("CONFLICT", ["input", "expectedVersion"])
    assert "version 2" in error["message"]


async def test_the_longest_way_of_a_draft(caller: Caller, draft: str) -> None:
    """Rules C5, C6, C8, C9."""
    async with caller.socket() as socket:
        started = await socket.start(REHEARSAL, {"embryo": draft, "text": "Who are you?"})
        *_, last = [each["data"]["embryoRehearsal"] async for each in started]
    assert last["embryo"]["status"] == "REHEARSING"
    payload = await change(caller, "EmbryoUpdate", embryo=draft, confirmed=CHECKLIST)
    assert (payload["embryo"]["status"], confirmed(payload["embryo"])) == ("READY", CHECKLIST)
    payload = await change(caller, "EmbryoUpdate", embryo=draft, identity={"forbiddenZone": []})
    assert payload["embryo"]["status"] == "REHEARSING"
    assert confirmed(payload["embryo"]) == ["identity", "custody"]
    payload = await change(caller, "EmbryoRehearsalClear", embryo=draft)
    assert (payload["embryo"]["status"], payload["embryo"]["rehearsal"]) == ("DRAFT", [])
    given = {"id": draft, "confirmed": ["boundaries"]}
    issued = (await caller.ask(EMBRYO_ACTIVATE, given))["embryoActivate"]
    assert issued["errors"] == []
    assert issued["character"]["name"] == "Rook"
    assert (await read(caller, draft))["status"] == "ISSUED"
    for operation in ("EmbryoUpdate", "EmbryoAbandon", "EmbryoRehearsalClear"):
        payload = await change(caller, operation, embryo=draft)
        assert [(each["code"], each["path"]) for each in payload["errors"]] == [
            ("ALREADY_ACTIVATED", ["input", "embryoId"])
        ]


async def test_an_abandoned_card_leaves_nothing_to_be_found(caller: Caller, ledger: Ledger) -> None:
    """Rule C7."""
    card = (
        b'{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Nell","character_book":'
        b'{"entries":[{"keys":["oak"],"content":"The oak is hollow.","extensions":{}}]}}}'
    )
    made = (await caller.upload(card, "nell.json", query=CARD_IMPORT)).data["cardImport"]
    embryo = made["embryo"]["id"]
    payload = await change(caller, "EmbryoAbandon", embryo=embryo)
    assert payload == {"deletedId": embryo, "errors": []}
    assert (await caller.ask(DRAFT, {"embryo": embryo}))["node"] is None
    tables = await ledger.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for table in (each["tablename"] for each in tables):
        sql = f"SELECT count(*) FROM {table} r WHERE r::text ~ 'Nell|nell.json|hollow'"
        assert await ledger.value(sql) == 0, table


async def results_of(started: Operation) -> list[Json]:
    """All results on a socket, the error that ends a stream among them, as other transports put
    it.
    """
    results = [each async for each in started]
    return [*results, {"errors": started.errors}] if started.errors else results


Talk = Callable[[str, str], Awaitable[list[Json]]]


@pytest.fixture(params=["websocket", "server-sent events"])
async def talk(request: pytest.FixtureRequest, caller: Caller) -> Talk:
    """One turn by each transport: all results."""

    async def over_socket(draft: str, text: str) -> list[Json]:
        async with caller.socket() as socket:
            started = await socket.start(REHEARSAL, {"embryo": draft, "text": text})
            return await results_of(started)

    async def over_stream(draft: str, text: str) -> list[Json]:
        asked = {"embryo": draft, "text": text}
        async with asyncio.timeout(PATIENCE), caller.stream(REHEARSAL, asked) as results:
            return [each async for each in results]

    return over_socket if request.param == "websocket" else over_stream


async def test_a_rehearsal_comes_in_pieces_and_is_kept_whole(
    caller: Caller, ledger: Ledger, draft: str, talk: Talk
) -> None:
    """Rule C9."""
    before = await ledger.fingerprint()
    results = [each["data"]["embryoRehearsal"] for each in await talk(draft, "Who are you?")]
    *pieces, last = results
    assert {each["__typename"] for each in pieces} == {"RehearsalDelta"}
    answer = "".join(each["text"] for each in pieces if each["channel"] == "TEXT")
    assert len(pieces) > 5
    assert last["__typename"] == "RehearsalFinished"
    turn = last["turn"]
    assert (turn["question"], turn["answer"], turn["model"]) == (
        "Who are you?",
        answer,
        "demo-prose",
    )
    assert last["embryo"]["rehearsal"] == [turn]
    found = await read(caller, draft)
    assert (found["rehearsal"], found["version"]) == ([turn], last["embryo"]["version"])
    after = await ledger.fingerprint()
    assert {name for name in after if after[name] != before[name]} == {"embryo_drafts"}


@pytest.mark.parametrize(
    ("fault", "extensions"),
    [
        ("rate_limited", {"code": "RATE_LIMITED", "retryable": True}),
        ("refused", {"code": "REFUSED"}),
        ("context_too_long", {"code": "CONTEXT_TOO_LONG"}),
    ],
)
async def test_a_provider_that_fails_ends_the_stream_with_its_code(
    caller: Caller, ledger: Ledger, draft: str, talk: Talk, fault: str, extensions: Json
) -> None:
    """Rule C11."""
    before = await ledger.fingerprint()
    *pieces, last = await talk(draft, f"[demo: fault={fault} after=3]")
    assert all("errors" not in each for each in pieces)
    assert [each["extensions"] for each in last["errors"]] == [extensions]
    assert await ledger.fingerprint() == before


async def test_what_cannot_be_talked_with_is_said_so(
    caller: Caller, ledger: Ledger, draft: str, talk: Talk
) -> None:
    """Rule C10."""
    given = {"id": draft, "confirmed": CHECKLIST}
    other = (await caller.ask(EMBRYO_CREATE, {"identity": IDENTITY}))["embryoCreate"]["embryo"]
    await caller.ask(EMBRYO_ACTIVATE, given)
    before = await ledger.fingerprint()
    cases = [
        (draft, "Hello?", {"code": "ALREADY_ACTIVATED", "argument": "embryoId"}),
        ("embryo_1", "Hello?", {"code": "NOT_FOUND", "argument": "embryoId"}),
        (other["id"], " ", {"code": "TEXT_EMPTY", "argument": "text"}),
        (other["id"], "a\0b", {"code": "INVALID_TEXT", "argument": "text"}),
    ]
    for named, text, extensions in cases:
        (result,) = await talk(named, text)
        assert [each["extensions"] for each in result["errors"]] == [extensions]
    assert await ledger.fingerprint() == before


async def test_hanging_up_a_socket_keeps_nothing_and_frees_the_draft(
    caller: Caller, ledger: Ledger, draft: str
) -> None:
    """Rule C10."""
    before = await ledger.fingerprint()
    async with caller.socket() as socket:
        asked = {"embryo": draft, "text": SLOW}
        first = await socket.start(REHEARSAL, asked)
        await anext(first)
        second = await socket.start(REHEARSAL, asked)
        (refusal,) = await results_of(second)
        assert refusal["errors"][0]["extensions"] == {
            "code": "REHEARSAL_RUNNING",
            "argument": "embryoId",
        }
        await socket.stop(first)
        await _talked(socket, draft)
    assert (await read(caller, draft))["rehearsal"][-1]["question"] == "Hello?"
    after = await ledger.fingerprint()
    assert {name for name in after if after[name] != before[name]} == {"embryo_drafts"}
    assert len((await read(caller, draft))["rehearsal"]) == 1


async def test_a_stream_that_is_cut_off_frees_the_draft(caller: Caller, draft: str) -> None:
    """Rule C10."""
    async with caller.stream(REHEARSAL, {"embryo": draft, "text": SLOW}) as results:
        await anext(results)
    async with caller.socket() as socket:
        await _talked(socket, draft)
    assert len((await read(caller, draft))["rehearsal"]) == 1


async def test_a_stop_of_the_server_tells_who_listens(
    caller: Caller, server_dsn: str, draft: str
) -> None:
    """Rule C11."""
    async with serving(DATABASE_URL=server_dsn) as server:
        other = Caller(server, caller.session)
        async with other.socket() as socket:
            started = await socket.start(REHEARSAL, {"embryo": draft, "text": SLOW})
            await anext(started)
            stopping = asyncio.create_task(server.stop())
            *_, last = await results_of(started)
            assert [each["extensions"] for each in last["errors"]] == [
                {"code": "SERVER_STOPPING", "retryable": True}
            ]
        await stopping
    assert (await read(caller, draft))["rehearsal"] == []


async def _talked(socket: Any, draft: str) -> None:
    """Talk once the draft is free, which it is when the server has heard of the end."""
    async with asyncio.timeout(PATIENCE):
        while True:
            started = await socket.start(REHEARSAL, {"embryo": draft, "text": "Hello?"})
            results = await results_of(started)
            if "errors" not in results[-1]:
                return
            assert results[-1]["errors"][0]["extensions"]["code"] == "REHEARSAL_RUNNING"
