"""Identity records and petitions as front ends see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import ServerProcess, serving
from tests.e2e.callers import PATIENCE, Caller, Json
from tests.e2e.identity_documents import (
    DECIDE_NUMBERED,
    IDENTITY,
    IDENTITY_CHANGES,
    PETITION_EVENTS,
    PETITIONS,
)
from tests.e2e.ledgers import Ledger
from tests.services.test_identity import check_file


@pytest.fixture(scope="module")
async def second(server_dsn: str, server: ServerProcess, caller: Caller) -> AsyncIterator[Caller]:
    """The same person at another server on the same database, which does its chores often."""
    often = {"MIRRORGRAPH_HOUSEKEEPING_SECONDS": "0.2", "MIRRORGRAPH_DEMO_RATE": "0"}
    async with serving(DATABASE_URL=server_dsn, **often) as other:
        yield Caller(other, caller.session, caller.token)


async def change(caller: Caller, operation: str, **variables: Any) -> Json:
    """The payload of one of IDENTITY_CHANGES that must succeed."""
    (payload,) = (await caller.ask(IDENTITY_CHANGES, variables, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def refusal(caller: Caller, operation: str, **variables: Any) -> tuple[str, list[str]]:
    (payload,) = (await caller.ask(IDENTITY_CHANGES, variables, operation)).values()
    (error,) = payload.pop("errors")
    assert set(payload.values()) == {None}
    return error["code"], error["path"]


async def asked(caller: Caller, character: str, **identity: Any) -> str:
    """The id of a petition for a change."""
    given = {"characterId": character, "identity": identity, "purpose": "She has grown."}
    return str((await change(caller, "IdentityChange", input=given))["petition"]["id"])


async def record_of(caller: Caller, character: str) -> Json:
    found = (await caller.ask(IDENTITY, {"character": character}))["character"]
    return dict(found["identityRecord"])


async def make_overdue(ledger: Ledger, petition: str) -> None:
    await ledger.run(
        "UPDATE confirmations SET expires_at = clock_timestamp() WHERE id = $1", petition
    )


async def test_who_a_character_is_changes_when_it_is_approved(
    caller: Caller, second: Caller
) -> None:
    """Rules D1, G1, G2, N1, N3."""
    character = await caller.create_character(forbiddenZone=["To lie."], personality="wild")
    (first,) = (await record_of(caller, character))["versions"]["nodes"]
    assert (first["versionNo"], first["previousDigest"], first["petition"]) == (1, None, None)
    given = {
        "characterId": character,
        "identity": {"name": "Bea", "personality": None, "firstMessage": "Hello."},
        "purpose": "She has grown.",
        "expectedVersion": 1,
    }
    petition = (await change(caller, "IdentityChange", input=given))["petition"]
    assert (petition["kind"], petition["status"], petition["decidedAt"], petition["run"]) == (
        "SOUL_FORGING",
        "PENDING",
        None,
        None,
    )
    assert petition["character"] == {"id": character, "version": 1}
    assert petition["brief"]["purpose"] == "She has grown."
    assert petition["brief"]["dataInvolved"] == (
        "first_mes: nothing becomes “Hello.”; name: “Ada” becomes “Bea”; "
        "personality: “wild” becomes nothing"
    )
    me = (await caller.ask("{ viewer { user { id } } }"))["viewer"]["user"]
    assert petition["requestedBy"] == me
    assert (await record_of(caller, character))["versionNo"] == 1
    # The other server decides.
    decided = await change(second, "PetitionDecide", petition=petition["id"], decision="APPROVE")
    assert decided["petition"]["status"] == "APPROVED"
    assert decided["character"] == {
        "id": character,
        "name": "Bea",
        "version": 2,
        "identityBaseline": {
            "core_anchor": {
                "name": "Bea",
                "description": "Ada tests. She counts to nine.",
                "first_mes": "Hello.",
            },
            "forbidden_zone": ["To lie."],
        },
    }
    seen = await caller.ask(IDENTITY, {"character": character})
    record = seen["character"]["identityRecord"]
    newest, oldest = record["versions"]["nodes"]
    assert oldest == first
    assert (newest["versionNo"], newest["previousDigest"]) == (2, first["digest"])
    assert newest["petition"] == {"id": petition["id"], "status": "APPROVED"}
    assert newest["record"] == {"id": record["id"]}
    assert [each["isAuthentic"] for each in (newest, oldest)] == [True, True]
    assert {each["signer"] for each in (newest, oldest)} == {seen["identitySigner"]}
    assert (await second.ask("{ identitySigner }"))["identitySigner"] == seen["identitySigner"]
    stated = newest["package"]["sections"]["identity"]["baseline"]
    assert stated == decided["character"]["identityBaseline"]
    assert record["current"] == {"id": newest["id"], "versionNo": 2}
    assert record["character"] == {"id": character}
    assert record["versions"]["totalCount"] == 2


async def test_what_was_tampered_with_is_told(caller: Caller, ledger: Ledger) -> None:
    """Rule N3."""
    character = await caller.create_character()
    (version,) = (await record_of(caller, character))["versions"]["nodes"]
    await ledger.run(
        "UPDATE identity_packages SET package_json ="
        " jsonb_set(package_json, '{sections,identity,name}', '\"Eve\"') WHERE version_id = $1",
        version["id"],
    )
    (tampered,) = (await record_of(caller, character))["versions"]["nodes"]
    assert (version["isAuthentic"], tampered["isAuthentic"]) == (True, False)


async def test_decisions_at_two_servers_at_once_leave_one(
    caller: Caller, second: Caller, ledger: Ledger
) -> None:
    """Rule D3."""
    character = await caller.create_character()
    petition = await asked(caller, character, personality="calm")
    given = {"petition": petition, "decision": "APPROVE"}
    answers = await asyncio.gather(
        *(each.ask(IDENTITY_CHANGES, given, "PetitionDecide") for each in [caller, second] * 3)
    )
    errors = [answer["petitionDecide"]["errors"] for answer in answers]
    assert sorted(each[0]["code"] if each else "" for each in errors) == [
        "",
        *["PETITION_DECIDED"] * 5,
    ]
    assert (await record_of(caller, character))["versionNo"] == 2


async def test_an_overdue_petition_expires_though_the_decision_is_refused(
    caller: Caller, ledger: Ledger
) -> None:
    """Rule D4."""
    character = await caller.create_character()
    petition = await asked(caller, character, personality="calm")
    await make_overdue(ledger, petition)
    refused = {
        "petitionDecide": {
            "petition": None,
            "character": None,
            "errors": [
                {
                    "code": "PETITION_EXPIRED",
                    "path": ["input", "petitionId"],
                    "hjCode": "HJ-1302",
                }
            ],
        }
    }
    key = {"Idempotency-Key": "overdue"}
    for _ in range(2):
        answer = await caller.post(DECIDE_NUMBERED, {"petition": petition}, headers=key)
        assert answer.data == refused
        found = await caller.ask(
            "query ($id: ID!) { petition(id: $id) { status decidedAt } }", {"id": petition}
        )
        assert found["petition"]["status"] == "EXPIRED"
        assert found["petition"]["decidedAt"] is not None
    assert await ledger.value("SELECT count(*) FROM idempotency WHERE key = 'overdue'") == 0
    assert (await record_of(caller, character))["versionNo"] == 1
    # Other errors have no number.
    (payload,) = (await caller.ask(DECIDE_NUMBERED, {"petition": "conf_1"})).values()
    assert payload["errors"] == [
        {"code": "NOT_FOUND", "path": ["input", "petitionId"], "hjCode": None}
    ]


async def test_a_stream_tells_of_petitions_on_every_transport(
    caller: Caller, second: Caller, ledger: Ledger
) -> None:
    """Rules D4, D5."""
    for waiting in (await caller.ask(PETITIONS, {"status": "PENDING"}))["petitions"]["nodes"]:
        await change(caller, "PetitionDecide", petition=waiting["id"], decision="DENY")
    characters = [await caller.create_character() for _ in range(3)]
    denied = await asked(caller, characters[0], personality="calm")
    async with (
        asyncio.timeout(PATIENCE),
        caller.stream(PETITION_EVENTS) as stream,
        second.socket() as socket,
    ):
        operation = await socket.start(PETITION_EVENTS)

        async def told() -> tuple[str, str]:
            over_stream, over_socket = [
                (await anext(each))["data"]["petitions"] for each in (stream, operation)
            ]
            assert over_stream == over_socket
            assert over_stream["kind"] == "SOUL_FORGING"
            return over_stream["id"], over_stream["status"]

        assert await told() == (denied, "PENDING")
        await change(second, "PetitionDecide", petition=denied, decision="DENY")
        assert await told() == (denied, "DENIED")
        approved = await asked(second, characters[1], personality="calm")
        assert await told() == (approved, "PENDING")
        await change(caller, "PetitionDecide", petition=approved, decision="APPROVE")
        assert await told() == (approved, "APPROVED")
        # The second server's chore comes by.
        expired = await asked(caller, characters[2], personality="calm")
        assert await told() == (expired, "PENDING")
        await make_overdue(ledger, expired)
        assert await told() == (expired, "EXPIRED")
    assert (await caller.ask(PETITIONS, {"status": "PENDING"}))["petitions"] == {
        "nodes": [],
        "totalCount": 0,
    }
    listed = (await caller.ask(PETITIONS))["petitions"]
    assert [(each["id"], each["status"]) for each in listed["nodes"][:3]] == [
        (expired, "EXPIRED"),
        (approved, "APPROVED"),
        (denied, "DENIED"),
    ]


async def test_each_refusal_changes_nothing(caller: Caller, ledger: Ledger) -> None:
    """Rules D2, G3."""
    character = await caller.create_character()
    petition = await asked(caller, character, personality="calm")
    before = await ledger.fingerprint()
    base = {"characterId": character, "identity": {"personality": "wild"}, "purpose": "Why?"}
    cases: list[tuple[Json, str, list[str]]] = [
        ({}, "PETITION_PENDING", ["input", "characterId"]),
        ({"identity": {}}, "NOTHING_CHANGES", ["input", "identity"]),
        ({"identity": {"name": ""}}, "TEXT_EMPTY", ["input", "identity", "name"]),
        ({"purpose": " "}, "TEXT_EMPTY", ["input", "purpose"]),
        ({"expectedVersion": 7}, "CONFLICT", ["input", "expectedVersion"]),
        ({"characterId": "soul_1"}, "NOT_FOUND", ["input", "characterId"]),
    ]
    for changed, code, path in cases:
        told = await refusal(caller, "IdentityChange", input={**base, **changed})
        assert told == (code, path)
    told = await refusal(caller, "IdentityExport", character=character, sections=[])
    assert told == ("SECTIONS_EMPTY", ["input", "sections"])
    assert await ledger.fingerprint() == before
    await ledger.run("UPDATE characters SET version = version + 1 WHERE id = $1", character)
    before = await ledger.fingerprint()
    told = await refusal(caller, "PetitionDecide", petition=petition, decision="APPROVE")
    assert told == ("CONFLICT", ["input", "petitionId"])
    assert await ledger.fingerprint() == before
    await change(caller, "PetitionDecide", petition=petition, decision="DENY")
    told = await refusal(caller, "PetitionDecide", petition=petition, decision="APPROVE")
    assert told == ("PETITION_DECIDED", ["input", "petitionId"])


async def test_an_export_can_be_checked_by_anybody(caller: Caller) -> None:
    """Rule N5."""
    character = await caller.create_character()
    export = (await change(caller, "IdentityExport", character=character))["export"]
    assert (export["format"], export["fileName"], export["mediaType"]) == (
        "IDENTITY_PACKAGE",
        "Ada.identity-1.json",
        "application/json",
    )
    async with caller.session.get(
        caller.server.address + export["url"], headers=caller.headers
    ) as response:
        assert response.status == 200
        content = await response.read()
    assert len(content) == export["sizeBytes"]
    file = check_file(content)
    assert set(file["sections"]) == {"identity", "data"}
    assert file["signer"] == (await caller.ask("{ identitySigner }"))["identitySigner"]


async def test_the_private_key_is_told_to_nobody(
    caller: Caller, server: ServerProcess, ledger: Ledger
) -> None:
    """Rule N6."""
    seed = await ledger.value("SELECT value_json #>> '{}' FROM settings WHERE key = 'identity_key'")
    character = await caller.create_character()
    answer = await caller.post(IDENTITY, {"character": character})
    assert len(seed) == 64
    assert seed not in str(answer.body)
    assert seed not in server.output
