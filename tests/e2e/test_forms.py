"""Outward forms and voices as front ends see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conftest import ServerProcess, serving
from tests.e2e.callers import Caller, Json
from tests.e2e.form_documents import ANCHOR, FORM, FORM_CHANGES, OUTWARD, VOICE_CHANGES
from tests.e2e.ledgers import Ledger

REF = "contract 2024/117, signed by M. Okafor"


@pytest.fixture(scope="module")
async def second(server_dsn: str, server: ServerProcess, caller: Caller) -> AsyncIterator[Caller]:
    """The same person at another server on the same database."""
    async with serving(DATABASE_URL=server_dsn, MIRRORGRAPH_DEMO_RATE="0") as other:
        yield Caller(other, caller.session, caller.token)


async def change(caller: Caller, operation: str, **variables: Any) -> Json:
    document = FORM_CHANGES if operation.startswith("Form") else VOICE_CHANGES
    (payload,) = (await caller.ask(document, variables, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def refusal(caller: Caller, operation: str, **variables: Any) -> tuple[str, list[str]]:
    document = FORM_CHANGES if operation.startswith("Form") else VOICE_CHANGES
    (payload,) = (await caller.ask(document, variables, operation)).values()
    (error,) = payload.pop("errors")
    assert set(payload.values()) == {None}
    return error["code"], error["path"]


async def propose(caller: Caller, character: str, **values: Any) -> str:
    given = {"characterId": character, **FORM, **values}
    return str((await change(caller, "FormPropose", input=given))["form"]["id"])


async def outward(caller: Caller, character: str, **variables: Any) -> Json:
    given = {"character": character, **variables}
    return dict((await caller.ask(OUTWARD, given))["character"])


async def test_a_candidate_becomes_the_official_form(caller: Caller) -> None:
    """Rules F1, F2, F3."""
    character = await caller.create_character()
    assert await outward(caller, character) == {
        "formAnchor": None,
        "forms": {"nodes": [], "totalCount": 0},
        "primaryForm": None,
        "voices": {"nodes": [], "totalCount": 0},
        "currentVoice": None,
    }
    set_to = {"characterId": character, **ANCHOR}
    anchor = (await change(caller, "FormAnchorSet", input=set_to))["anchor"]
    assert anchor == {
        "id": anchor["id"],
        **ANCHOR,
        "version": 1,
        "character": {"id": character},
    }
    first, second = [await propose(caller, character) for _ in range(2)]
    me = (await caller.ask("{ viewer { user { id } } }"))["viewer"]["user"]
    form = (await change(caller, "FormSettle", form=first))["form"]
    assert form == {
        "id": first,
        **FORM,
        "status": "CONFIRMED",
        "settledAt": form["settledAt"],
        "version": 2,
        "settledBy": me,
        "character": {"id": character},
    }
    assert form["settledAt"] is not None
    await change(caller, "FormSettle", form=second)
    found = await outward(caller, character)
    assert found["formAnchor"] == {
        "id": anchor["id"],
        "taboos": ANCHOR["taboos"],
        "variableRange": ANCHOR["variableRange"],
        "version": 1,
    }
    assert found["primaryForm"] == {"id": second, "description": FORM["description"]}
    states = [{"id": second, "status": "CONFIRMED"}, {"id": first, "status": "RETIRED"}]
    assert found["forms"] == {"nodes": states, "totalCount": 2}
    retired = await outward(caller, character, status="RETIRED")
    assert retired["forms"] == {"nodes": states[1:], "totalCount": 1}


async def test_each_wrong_state_is_told(caller: Caller, ledger: Ledger) -> None:
    """Rules F1, F2."""
    character = await caller.create_character()
    rejected, official = [await propose(caller, character) for _ in range(2)]
    await change(caller, "FormReject", form=rejected)
    await change(caller, "FormSettle", form=official)
    await change(caller, "FormAnchorSet", input={"characterId": character, **ANCHOR})
    before = await ledger.fingerprint()
    path = ["input", "formId"]
    for operation, form, code in [
        ("FormSettle", rejected, "FORM_NOT_CANDIDATE"),
        ("FormReject", official, "FORM_NOT_CANDIDATE"),
        ("FormRetire", rejected, "FORM_NOT_CONFIRMED"),
    ]:
        assert await refusal(caller, operation, form=form) == (code, path)
    late = {"characterId": character, **ANCHOR, "expectedVersion": 7}
    assert await refusal(caller, "FormAnchorSet", input=late) == (
        "CONFLICT",
        ["input", "expectedVersion"],
    )
    assert await ledger.fingerprint() == before
    await change(caller, "FormRetire", form=official)
    assert (await outward(caller, character))["primaryForm"] is None


async def test_forms_settled_on_two_servers_at_once_leave_one_official(
    caller: Caller, second: Caller, ledger: Ledger
) -> None:
    """Rule F3."""
    character = await caller.create_character()
    forms = [await propose(caller, character) for _ in range(6)]
    await asyncio.gather(
        *(
            change(caller if index % 2 else second, "FormSettle", form=form)
            for index, form in enumerate(forms)
        )
    )
    found = await outward(caller, character)
    assert sorted(each["status"] for each in found["forms"]["nodes"]) == [
        "CONFIRMED",
        *["RETIRED"] * 5,
    ]
    newest = "SELECT subject_id FROM audit_events WHERE action = 'form_settled'"
    newest += " ORDER BY created_at DESC LIMIT 1"
    assert found["primaryForm"]["id"] == await ledger.value(newest)


async def add_voice(caller: Caller, character: str, kind: str = "CLONED") -> str:
    given = {"characterId": character, "name": "Low", "sourceKind": kind, "sourceRef": "low.wav"}
    return str((await change(caller, "VoiceAdd", input=given))["voice"]["id"])


async def test_a_cloned_voice_is_spoken_with_while_it_is_allowed(caller: Caller) -> None:
    """Rules F6, F7, F8, F9."""
    character = await caller.create_character()
    stock, cloned = await add_voice(caller, character, "STOCK"), await add_voice(caller, character)
    await change(caller, "VoiceSelect", voice=stock)
    assert await refusal(caller, "VoiceSelect", voice=cloned) == (
        "CLONE_NOT_AUTHORIZED",
        ["input", "voiceId"],
    )
    assert (await outward(caller, character))["currentVoice"] == {"id": stock}
    me = (await caller.ask("{ viewer { user { id } } }"))["viewer"]["user"]
    allowed = await change(
        caller, "VoiceAuthorizeClone", voice=cloned, ref=REF, until="2999-01-01T02:00:00+02:00"
    )
    assert allowed["voice"] == {
        "id": cloned,
        "name": "Low",
        "sourceKind": "CLONED",
        "sourceRef": "low.wav",
        "isCurrent": False,
        "isUsable": True,
        "hasAuthorization": True,
        "authorizationHint": "…afor",
        "expiresAt": "2999-01-01T00:00:00+00:00",
        "version": 2,
        "authorizedBy": me,
        "character": {"id": character},
    }
    assert (await change(caller, "VoiceSelect", voice=cloned))["voice"]["isCurrent"] is True
    found = await outward(caller, character)
    assert found["currentVoice"] == {"id": cloned}
    assert found["voices"]["nodes"] == [
        {"id": stock, "isCurrent": False},
        {"id": cloned, "isCurrent": True},
    ]
    revoked = (await change(caller, "VoiceRevokeClone", voice=cloned))["voice"]
    assert [revoked[each] for each in ("isUsable", "hasAuthorization", "isCurrent")] == [False] * 3
    assert (revoked["authorizationHint"], revoked["authorizedBy"]) == (None, None)
    assert (await outward(caller, character))["currentVoice"] is None
    left = await change(caller, "VoiceRemove", voice=cloned)
    assert left["character"] == {"id": character, "voices": {"totalCount": 1}}


async def test_what_proves_a_permission_is_read_as_an_act_and_kept_in_one_place(
    caller: Caller, ledger: Ledger
) -> None:
    """Rule F8."""
    voice = await add_voice(caller, await caller.create_character())
    await change(caller, "VoiceAuthorizeClone", voice=voice, ref=REF)
    headers = {"Idempotency-Key": f"read {voice}"}

    async def read() -> Any:
        answer = await caller.post(
            VOICE_CHANGES, {"voice": voice}, "VoiceAuthorizationRead", headers
        )
        return answer.data["voiceAuthorizationRead"]

    shown = {"voice": {"id": voice}, "authorization": {"authorizationRef": REF}, "errors": []}
    assert await read() == shown
    acts = "SELECT count(*) FROM audit_events WHERE action = 'clone_authorization_read'"
    assert await ledger.value(acts) == 1
    holders = [
        table
        for table in await ledger.fingerprint()
        if await ledger.value(f"SELECT count(*) FROM {table} r WHERE r::text LIKE '%Okafor%'")
    ]
    assert holders == ["voice_profiles"]
    # A repeat shows what is there now, and what was taken back is not.
    assert await read() == shown
    await change(caller, "VoiceRevokeClone", voice=voice)
    assert await read() == {**shown, "authorization": {"authorizationRef": None}}
    assert await refusal(caller, "VoiceAuthorizationRead", voice=voice) == (
        "CLONE_NOT_AUTHORIZED",
        ["input", "voiceId"],
    )
