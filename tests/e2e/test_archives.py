"""What has died can only be read: every mutation of the schema, aimed at it."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict

import aiohttp
import pytest

from schema.root import schema
from tests.architecture.declared import table_classes
from tests.e2e.asset_documents import ASSET_PATHS
from tests.e2e.callers import PATIENCE, PREFLIGHT, Caller
from tests.e2e.ending_documents import ENDING_CHANGES, LIFE
from tests.e2e.entity_documents import ENTITY_PATHS
from tests.e2e.entry_documents import TEXT_PATHS
from tests.e2e.everything import PATHS, changes
from tests.e2e.ledgers import Ledger
from tests.e2e.plot_documents import PLOT_PATHS
from tests.e2e.settings_documents import SETTING_PATHS
from tests.e2e.whole_lives import OTHER_CHANGES, Life, act, end, live
from tests.e2e.world_documents import WORLD_PATHS

# How the mutations of nouns begin that have nothing to do with characters, and others of these.
OTHER_NOUNS = (
    "calendar",
    "story",
    "branch",
    "change",
    "asset",
    "setting",
    "provider",
    "profile",
    "world",
    "embedding",
    "retrieval",
    "probe",
)
OTHERS = {*WORLD_PATHS, *PLOT_PATHS, *TEXT_PATHS, *ENTITY_PATHS, *ASSET_PATHS, *SETTING_PATHS}
# Every other field of Mutation but those that begin something of their own.
MUTATIONS = {
    name
    for name in schema._schema.mutation_type.fields  # type: ignore[union-attr]
    if name not in {"cardImport", "embryoCreate", *OTHERS}
    if not name.startswith(OTHER_NOUNS)
}

# What is not refused with CHARACTER_READ_ONLY, and what is said instead; None where it is done.
ANSWERS: dict[str, str | None] = {
    # What ran is over, so there is nothing to cancel.
    "runCancel": None,
    # A draft that has become a character is changed no more, whatever became of that.
    "embryoActivate": "ALREADY_ACTIVATED",
    "embryoUpdate": "ALREADY_ACTIVATED",
    "embryoAbandon": "ALREADY_ACTIVATED",
    "embryoRehearsalClear": "ALREADY_ACTIVATED",
    # Reading, in a file.
    "cardExport": None,
    "identityExport": None,
    # Only the name of the character lets its data be erased.
    "dataErase": "CONFIRMATION_REQUIRED",
    "deathRevoke": "COOLING_OFF_OVER",
    # No is always an answer, and a permission can be read and taken back in every state.
    "petitionDecide": None,
    "voiceAuthorizationRead": None,
    "voiceRevokeClone": None,
}
WHILE_IT_COOLS_OFF = {"dataErase": "CHARACTER_NOT_DECEASED", "deathRevoke": None}
# Done at the end, in this order.
DONE = (
    "runCancel",
    "cardExport",
    "identityExport",
    "voiceAuthorizationRead",
    "voiceRevokeClone",
    "petitionDecide",
)


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_HOUSEKEEPING_SECONDS": "0.1", "MIRRORGRAPH_DEMO_CONTENT": "false"}


@pytest.fixture(scope="module")
async def life(caller: Caller) -> Life:
    return await live(caller, "Ada")


@pytest.fixture(scope="module")
async def ids(life: Life, ledger: Ledger) -> dict[str, str]:
    """One thing of each kind, all of the one character that there is."""
    # Of stories there are none.
    found: dict[str, str] = defaultdict(str)
    for name, table in table_classes().items():
        if "id" in table.model_fields:
            age = "started_at" if name == "Custodianship" else "created_at"
            order = f"ORDER BY {age} DESC" if age in table.model_fields else ""
            sql = f"SELECT id FROM {table.__tablename__} {order} LIMIT 1"
            found[name] = await ledger.value(sql)
    answered = "SELECT {} FROM runs ORDER BY created_at LIMIT 1"
    found["MirrorTree"] = life.tree
    found["TreeNode"] = await ledger.value(answered.format("node_id"))
    found["question"] = await ledger.value(answered.format("question_node_id"))
    found["Petition"] = await ledger.value("SELECT id FROM confirmations WHERE status = 'pending'")
    return found


async def check_all(
    caller: Caller, ledger: Ledger, ids: dict[str, str], answers: dict[str, str | None]
) -> None:
    asked = {name: each for name, each in changes(ids).items() if name in MUTATIONS}
    assert MUTATIONS - set(asked) == {"lorebookImport"}
    before = await ledger.fingerprint()
    for name, (query, variables, operation) in asked.items():
        code = answers.get(name, "CHARACTER_READ_ONLY")
        if code is None:
            continue
        payload = (await caller.ask(query, variables, operation))[name]
        found = [(each["code"], each["path"]) for each in payload["errors"]]
        # Of a list of ids the list is named, as it is not its first one alone.
        path = ["input", "name"] if code == "CONFIRMATION_REQUIRED" else PATHS[name][:2]
        assert found == [(code, path)], name
        assert {value for key, value in payload.items() if key != "errors"} == {None}, name
    assert await ledger.fingerprint() == before


async def test_what_has_died_can_only_be_read(
    caller: Caller, ledger: Ledger, life: Life, ids: dict[str, str]
) -> None:
    """Rules E1, E2, E3, E4."""
    talked = (await caller.ask(LIFE, {"character": life.character}))["character"]["trees"]
    await end(caller, life)
    seen = (await caller.ask(LIFE, {"character": life.character}))["character"]
    assert (seen["status"], seen["archivedAt"]) == ("DEATH_PENDING", None)
    await check_all(caller, ledger, ids, {**ANSWERS, **WHILE_IT_COOLS_OFF})
    # And back, and dead again.
    revived = await act(caller, "DeathRevoke", character=life.character)
    assert (revived["character"]["status"], revived["character"]["diedAt"]) == ("ACTIVE", None)
    await end(caller, life)

    # Its time passes, and a round of chores comes by.
    await ledger.run("UPDATE characters SET cooling_off_until = now()")
    async with asyncio.timeout(PATIENCE):
        while seen["status"] != "DECEASED":
            seen = (await caller.ask(LIFE, {"character": life.character}))["character"]
            await asyncio.sleep(0.02)
    await check_all(caller, ledger, ids, ANSWERS)
    await check_upload(caller, life)
    # Everything of it can still be read.
    assert seen["trees"] == talked
    assert seen["archivedAt"] == seen["coolingOffUntil"]
    assert seen["custodianship"]["status"] == "ACTIVE"
    asked = changes(ids)
    for name in DONE:
        if name in asked:
            query, variables, operation = asked[name]
            assert (await caller.ask(query, variables, operation))[name]["errors"] == [], name


async def check_upload(caller: Caller, life: Life) -> None:
    form = aiohttp.FormData(quote_fields=False)
    asked = {
        "query": OTHER_CHANGES,
        "operationName": "LorebookImport",
        "variables": {"file": None, "character": life.character},
    }
    form.add_field("operations", json.dumps(asked))
    form.add_field("map", json.dumps({"0": ["variables.file"]}))
    form.add_field("0", b'{"name": "Late", "entries": []}', filename="late.json")
    payload = (await caller.request("POST", headers=PREFLIGHT, data=form)).data["lorebookImport"]
    assert [(each["code"], each["path"]) for each in payload["errors"]] == [
        ("CHARACTER_READ_ONLY", ["input", "characterId"])
    ]


async def test_a_late_yes_to_an_act_on_the_dead_is_refused(caller: Caller, ledger: Ledger) -> None:
    """Rule E4."""
    character = await caller.create_character()
    given = {"character": character, "purpose": "Wait."}
    asked = await act(caller, "DeathRequest", **given)
    await ledger.run("UPDATE characters SET status = 'deceased' WHERE id = $1", character)
    approving = {"petition": asked["petition"]["id"]}
    payload = (await caller.ask(ENDING_CHANGES, approving, "Approve"))["petitionDecide"]
    assert [(each["code"], each["path"]) for each in payload["errors"]] == [
        ("CHARACTER_READ_ONLY", ["input", "petitionId"])
    ]
    status = "SELECT status FROM confirmations WHERE id = $1"
    assert await ledger.value(status, asked["petition"]["id"]) == "pending"
