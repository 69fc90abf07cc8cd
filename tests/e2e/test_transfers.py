"""Cards and lorebooks that come in, are reviewed, and go out again, over HTTP."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import shared
from tests.e2e.callers import (
    CHECKLIST,
    EMBRYO_ACTIVATE,
    EMBRYO_CREATE,
    PREFLIGHT,
    Caller,
    Json,
)
from tests.e2e.ledgers import Ledger
from tests.e2e.test_people import make_user
from tests.e2e.transfer_documents import (
    CARD_TAKEN,
    TRANSFER_CHANGES,
    TRANSFERS,
    lorebook_taken,
)
from tests.services.cards.making import charx
from tests.services.test_transfers import CARDS, ONLY_V3

ENTRIES: list[Json] = [
    {"keys": ["bridge"], "content": "It is old.", "enabled": True},
    {"keys": ["toll"], "content": 2, "comment": "Toll", "enabled": True},
]
BOOK = {"name": "Bridges", "token_budget": 300, "entries": ENTRIES}
CARD = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {"name": 'Zoë "Rook" O/N', "character_book": BOOK},
}
FORMATS = ("CARD_V2_JSON", "CARD_V3_JSON", "CARD_PNG", "CARD_CHARX")


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {"MIRRORGRAPH_AUTH": "token"}


@dataclass
class People:
    """Two people with tokens, and nobody."""

    owner: Caller
    stranger: Caller
    nobody: Caller


@pytest.fixture(scope="module")
async def people(caller: Caller, server_dsn: str) -> People:
    (_, owner), (_, stranger) = await asyncio.gather(
        make_user(server_dsn, "Olga"), make_user(server_dsn, "Sten")
    )
    return People(caller.as_(owner), caller.as_(stranger), caller)


@pytest.fixture(scope="module")
async def newcomer(caller: Caller, server_dsn: str) -> Caller:
    """Somebody who has nothing else."""
    _, token = await make_user(server_dsn, "Nia")
    return caller.as_(token)


async def take(person: Caller, content: bytes, name: str = "rook.json") -> Json:
    """The payload of cardImport."""
    answer = await person.upload(content, name, query=CARD_TAKEN)
    payload: Json = answer.data["cardImport"]
    return payload


async def export_of(person: Caller, **given: str) -> Json:
    payload = (await person.ask(TRANSFER_CHANGES, given, "CardExport"))["cardExport"]
    assert payload["errors"] == []
    export: Json = payload["export"]
    return export


async def download(person: Caller, url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case, and body."""
    signed = {**person.headers, **headers}
    async with person.session.get(person.server.address + url, headers=signed) as response:
        found = {name.lower(): value for name, value in response.headers.items()}
        return response.status, found, await response.read()


@pytest.mark.parametrize("file", CARDS)
async def test_a_real_card_goes_out_and_comes_in_again(people: People, file: str) -> None:
    """Rule X9."""
    content = shared("data", "cards", file).read_bytes()
    first = await take(people.owner, content, file)
    assert first["errors"] == []
    for kind in FORMATS:
        export = await export_of(people.owner, embryo=first["embryo"]["id"], format=kind)
        status, headers, written = await download(people.owner, export["url"])
        assert (status, len(written)) == (200, export["sizeBytes"])
        assert headers["content-type"] == export["mediaType"]
        again = await take(people.owner, written, export["fileName"])
        assert again["errors"] == []
        before, after = [dict(each["embryo"]["provisionalIdentity"]) for each in (first, again)]
        for name in ONLY_V3 if kind == "CARD_V2_JSON" else ():
            before.pop(name, None)
            after.pop(name, None)
        assert after == before
        books = [each["embryo"]["lorebooks"]["nodes"] for each in (first, again)]
        told = [[(book["name"], entries(book)) for book in found] for found in books]
        assert told[0] == told[1]


def entries(book: Json) -> list[Any]:
    return [(each["keys"], each["content"]) for each in book["entries"]["nodes"]]


async def test_an_import_is_told_in_full_and_reviewed(newcomer: Caller) -> None:
    """Rules X2, X4, X5, X6."""
    content = charx(CARD, {"notes/bridge": b"\0Ogres."})
    taken = await take(newcomer, content, "C:\\cards\\rook.charx")
    embryo, job = taken["embryo"]["id"], taken["job"]["id"]
    assert taken["job"]["status"] == "AWAITING_REVIEW"
    assert [each["source"] for each in taken["embryo"]["lorebooks"]["nodes"][0]["entries"]["nodes"]]
    mended = {"code": "TYPE_MENDED", "path": "data.character_book.entries.1.content"}
    seen = await newcomer.ask(TRANSFERS)
    (told,) = seen["importJobs"]["nodes"]
    (book,) = seen["lorebooks"]["nodes"]
    ids = [each["id"] for each in book["all"]["nodes"]]
    items = told.pop("items")["nodes"]
    assert told.pop("finishedAt") is None
    assert told.pop("lorebook") == {"id": book["id"]}
    assert mended in told.pop("warnings")
    assert told == {
        "id": job,
        "kind": "CHARACTER_CARD",
        "status": "AWAITING_REVIEW",
        "fileName": "rook.charx",
        "container": "charx",
        "spec": "v2",
        "sizeBytes": len(content),
        "embryo": {"id": embryo, "importJob": {"id": job}},
    }
    whole = {"mediaType": None, "sizeBytes": None, "warnings": [], "decidedAt": None}
    entry = {**whole, "kind": "LOREBOOK_ENTRY", "status": "PENDING_REVIEW"}
    targets = [{"__typename": "LorebookEntry", "id": each} for each in ids]
    name = CARD["data"]["name"]  # type: ignore[index]
    assert items == [
        {
            **whole,
            "number": 1,
            "kind": "EMBRYO",
            "status": "PARSED",
            "label": name,
            "target": {"__typename": "EmbryoDraft", "id": embryo},
        },
        {**entry, "number": 2, "label": "", "target": targets[0]},
        {
            **entry,
            "number": 3,
            "label": "Toll",
            "target": targets[1],
            "warnings": [{"code": mended["code"]}],
        },
        {
            **whole,
            "number": 4,
            "kind": "FILE",
            "status": "PARSED",
            "label": "notes/bridge",
            "mediaType": "application/octet-stream",
            "sizeBytes": 7,
            "target": None,
        },
    ]
    assert book == {
        "id": book["id"],
        "name": "Bridges",
        "scanDepth": None,
        "tokenBudget": 300,
        "isRecursive": False,
        "character": None,
        "embryo": {"id": embryo},
        "all": {"totalCount": 2, "nodes": [{"id": each} for each in ids]},
        "waiting": {"totalCount": 2},
    }

    given: Json = {"entries": ids, "decision": "ACCEPT"}
    reviewed = await newcomer.ask(TRANSFER_CHANGES, given, "LorebookEntryReview")
    shown = {"reviewStatus": "ACCEPTED", "version": 2, "lorebook": {"id": book["id"]}}
    assert reviewed["lorebookEntryReview"] == {
        "entries": [{"id": each, **shown} for each in ids],
        "errors": [],
    }
    given = {"input": {"entryId": ids[0], "expectedVersion": 2, "keys": ["ford"], "sticky": 3}}
    updated = await newcomer.ask(TRANSFER_CHANGES, given, "LorebookEntryUpdate")
    assert updated["lorebookEntryUpdate"] == {
        "entry": {
            "id": ids[0],
            "name": "",
            "keys": ["ford"],
            "content": "It is old.",
            "sticky": 3,
            "probability": 100,
            "version": 3,
        },
        "errors": [],
    }
    refused = await newcomer.ask(TRANSFER_CHANGES, given, "LorebookEntryUpdate")
    assert refused["lorebookEntryUpdate"] == {
        "entry": None,
        "errors": [
            {
                "code": "CONFLICT",
                "message": "This was changed meanwhile: it has version 3, not 2. Read it again.",
                "path": ["input", "expectedVersion"],
            }
        ],
    }
    given = {"input": {"entryId": ids[0], "sticky": None}}
    updated = await newcomer.ask(TRANSFER_CHANGES, given, "LorebookEntryUpdate")
    assert updated["lorebookEntryUpdate"]["entry"]["sticky"] is None
    (told,) = (await newcomer.ask(TRANSFERS))["importJobs"]["nodes"]
    assert told["status"] == "COMPLETED"
    assert told["finishedAt"] is not None

    issued = await newcomer.ask(EMBRYO_ACTIVATE, {"id": embryo, "confirmed": CHECKLIST})
    character = issued["embryoActivate"]["character"]["id"]
    (book,) = (await newcomer.ask(TRANSFERS))["lorebooks"]["nodes"]
    assert book["character"] == {"id": character}
    export = await export_of(newcomer, character=character)
    _, headers, written = await download(newcomer, export["url"])
    entries_now = json.loads(written)["data"]["character_book"]["entries"]
    assert [each["keys"] for each in entries_now] == [["ford"], ["toll"]]
    assert export["fileName"] == "Zoë Rook O N.json"
    assert headers["content-disposition"] == (
        "attachment; filename=\"Zo_ Rook O N.json\"; filename*=UTF-8''Zo%C3%AB%20Rook%20O%20N.json"
    )
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")

    given = {"lorebook": book["id"]}
    deleted = await newcomer.ask(TRANSFER_CHANGES, given, "LorebookDelete")
    assert deleted["lorebookDelete"] == {"deletedId": book["id"], "errors": []}
    seen = await newcomer.ask(TRANSFERS)
    assert seen["lorebooks"]["nodes"] == []
    assert [each["target"] for each in seen["importJobs"]["nodes"][0]["items"]["nodes"]] == [
        {"__typename": "EmbryoDraft", "id": embryo},
        None,
        None,
        None,
    ]


async def test_a_lorebook_of_its_own_is_for_a_character_or_for_its_owner(people: People) -> None:
    """Rule X3."""
    character = await people.owner.create_character()
    content = json.dumps(BOOK).encode()
    for whose in (None, character):
        answer = await people.owner.upload(content, "b.json", query=lorebook_taken(whose))
        payload = answer.data["lorebookImport"]
        assert payload["errors"] == []
        assert payload["warnings"] == [{"code": "TYPE_MENDED", "path": "entries.1.content"}]
        book, job = payload["lorebook"], payload["job"]
        assert book["character"] == (whose and {"id": whose})
        assert [each["content"] for each in book["entries"]["nodes"]] == ["It is old.", "2"]
        assert (job["kind"], job["status"]) == ("LOREBOOK", "AWAITING_REVIEW")
        assert [each["label"] for each in job["items"]["nodes"]] == ["", "Toll"]
    seen = await people.owner.ask(
        "query ($id: ID!) { character(id: $id) { lorebooks { nodes { id } } } }", {"id": character}
    )
    assert seen["character"]["lorebooks"]["nodes"] == [{"id": book["id"]}]


def bomb() -> bytes:
    """Some kilobytes that inflate to more than may come with a card."""
    return charx(CARD, {"zeros": bytes(33 * 2**20)})


REFUSED = {
    "CARD_NAME_MISSING": b'{"spec": "chara_card_v2", "data": {"name": " "}}',
    "NOT_A_CARD": b'{"spec": "lorebook_v3", "data": {"entries": []}}',
    "BROKEN_CARD": b'{"name": "Rook"',
    "UNSUPPORTED_CARD_CONTAINER": b"Rar!\x1a\x07\x01\0",
    "NO_CARD": b"\x89PNG\r\n\x1a\n\0\0\0\0IEND\xaeB`\x82",
    "BROKEN_PNG": b"\x89PNG\r\n\x1a\n\0\0\0\0IEND\xaeB`\x83",
    "ENCRYPTED_CARD": b"rcc||rccv1||x",
    "CARD_TOO_DEEP": b'{"name": "Rook", "x": ' + b"[" * 100 + b"]" * 100 + b"}",
    "CARD_FILE_TOO_LARGE": b'{"name": "' + b"a" * 16 * 2**20 + b'"}',
    "UNSAFE_CHARX": charx(CARD, {"../rook": b"x"}),
    "CARD_FILES_TOO_LARGE": bomb(),
}


@pytest.mark.parametrize("code", REFUSED)
async def test_nothing_of_a_refused_file_is_stored(
    people: People, ledger: Ledger, code: str
) -> None:
    """Rule X1."""
    before = await ledger.fingerprint()
    refused = await take(people.owner, REFUSED[code])
    (error,) = refused.pop("errors")
    assert (error["code"], error["path"]) == (code, ["input", "file"])
    assert refused == {"embryo": None, "job": None, "warnings": None}
    assert await ledger.fingerprint() == before


async def test_nothing_of_a_refused_lorebook_is_stored(people: People, ledger: Ledger) -> None:
    """Rules X1, X8."""
    theirs = await people.stranger.create_character()
    book = json.dumps(BOOK).encode()
    tries = [
        (b'{"name": "Rook"}', None, "NOT_A_LOREBOOK", ["input", "file"]),
        (b"\0", None, "NOT_A_LOREBOOK", ["input", "file"]),
        (b"{" + b" " * 16 * 2**20, None, "CARD_FILE_TOO_LARGE", ["input", "file"]),
        (book, theirs, "NOT_FOUND", ["input", "characterId"]),
        (book, "x", "NOT_FOUND", ["input", "characterId"]),
    ]
    before = await ledger.fingerprint()
    for content, character, code, path in tries:
        answer = await people.owner.upload(content, query=lorebook_taken(character))
        payload = answer.data["lorebookImport"]
        assert [(each["code"], each["path"]) for each in payload["errors"]] == [(code, path)]
        assert payload["lorebook"] is payload["job"] is None
    assert await ledger.fingerprint() == before


async def test_a_bomb_holds_nobody_up(people: People) -> None:
    """Rule X13. That others are answered while it is read, tests/services/test_transfers.py
    holds without a clock.
    """
    content = bomb()
    *bombs, seen = await asyncio.gather(
        *(take(people.owner, content) for _ in range(4)), people.stranger.ask(TRANSFERS)
    )
    assert [[each["code"] for each in refused["errors"]] for refused in bombs] == [
        ["CARD_FILES_TOO_LARGE"]
    ] * 4
    assert seen["importJobs"]["totalCount"] == 0


async def test_somebody_elses_things_are_not_there(people: People, ledger: Ledger) -> None:
    """Rule X8."""
    taken = await take(people.owner, json.dumps(CARD).encode())
    embryo = taken["embryo"]["id"]
    (book,) = taken["embryo"]["lorebooks"]["nodes"]
    item, entry = [
        await ledger.value(sql, value)
        for sql, value in (
            ("SELECT id FROM import_items WHERE import_job_id = $1", taken["job"]["id"]),
            ("SELECT id FROM lorebook_entries WHERE lorebook_id = $1", book["id"]),
        )
    ]
    export = await export_of(people.owner, embryo=embryo)
    everything = [taken["job"]["id"], item, book["id"], entry, export["id"], embryo]
    before = await ledger.fingerprint()
    query = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    found = await people.owner.ask(query, {"ids": everything})
    assert found["nodes"] == [{"id": each} for each in everything]
    found = await people.stranger.ask(query, {"ids": everything})
    assert found["nodes"] == [None] * len(everything)
    tries: list[tuple[str, Json, list[str]]] = [
        ("CardExport", {"embryo": embryo}, ["input", "embryoId"]),
        (
            "LorebookEntryReview",
            {"entries": [entry], "decision": "REJECT"},
            ["input", "entryIds", "0"],
        ),
        (
            "LorebookEntryUpdate",
            {"input": {"entryId": entry, "content": ""}},
            ["input", "entryId"],
        ),
        ("LorebookDelete", {"lorebook": book["id"]}, ["input", "lorebookId"]),
    ]
    for operation, given, path in tries:
        (payload,) = (await people.stranger.ask(TRANSFER_CHANGES, given, operation)).values()
        assert [(each["code"], each["path"]) for each in payload["errors"]] == [("NOT_FOUND", path)]
    assert await ledger.fingerprint() == before


def message(code: str, said: str) -> bytes:
    return json.dumps(
        {"errors": [{"message": said, "extensions": {"code": code}}]}, separators=(",", ":")
    ).encode()


async def test_a_file_is_given_to_its_owner_alone(people: People, ledger: Ledger) -> None:
    """Rules X8, X11, X14."""
    made = await people.owner.ask(EMBRYO_CREATE, {"identity": {"name": "魂镜"}})
    export = await export_of(people.owner, embryo=made["embryoCreate"]["embryo"]["id"])
    url = export["url"]
    assert url == f"/exports/{export['id']}"
    status, headers, content = await download(people.owner, url)
    assert status == 200
    assert json.loads(content)["data"]["name"] == "魂镜"
    assert headers["content-disposition"] == (
        "attachment; filename=\"__.json\"; filename*=UTF-8''%E9%AD%82%E9%95%9C.json"
    )
    # Who may not have it cannot tell whether it is there.
    absent = message("NOT_FOUND", "There is no such Export for you.")
    for person, address in (
        (people.stranger, url),
        (people.owner, url[:-1]),
        (people.owner, "/exports/x"),
        (people.owner, f"/exports/{made['embryoCreate']['embryo']['id']}"),
        (people.owner, "/exports/%00"),
    ):
        status, headers, content = await download(person, address)
        assert (status, content) == (404, absent), address
    status, headers, _ = await download(people.nobody, url)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    for foreign in ({"Origin": "https://elsewhere.test"}, {"Sec-Fetch-Site": "cross-site"}):
        status, _, content = await download(people.owner, url, **foreign)
        assert status == 403
        assert b"ORIGIN_NOT_ALLOWED" in content
    assert (await people.owner.request("DELETE", url)).status == 405
    await ledger.run("UPDATE exports SET expires_at = now() WHERE id = $1", export["id"])
    assert (await download(people.owner, url))[::2] == (404, absent)


async def test_an_upload_without_a_name_is_taken(people: People) -> None:
    """Rule X2."""
    answer = await people.owner.upload(
        json.dumps(CARD).encode(),
        "",
        PREFLIGHT,
        "mutation ($file: Upload!) { cardImport(input: { file: $file }) "
        "{ job { fileName } errors { code } } }",
    )
    assert answer.data == {"cardImport": {"job": {"fileName": ""}, "errors": []}}
