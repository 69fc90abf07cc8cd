"""The acceptance documents as a front end sends them, in the order of their numbers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from graphql import build_schema, parse, validate

from tests.acceptance import NAMES, document
from tests.conftest import shared
from tests.e2e.callers import (
    CARD_IMPORT,
    EMBRYO_ACTIVATE,
    PREFLIGHT,
    TREE_ASK,
    TREE_PAGE,
    Caller,
    Json,
    text_of,
)
from tests.e2e.ledgers import Ledger
from tests.e2e.tree_documents import TREE_RULES

CHECKLIST = [
    ("identity", "The name and the description say who this character is."),
    ("boundaries", "The forbidden zone holds everything that must never happen to this character."),
    ("custody", "I take custody of this character and answer for what it does."),
]
KEYS = [key for key, _ in CHECKLIST]


@dataclass(frozen=True)
class Way:
    """How documents travel: `ask` one answer, `follow` a run."""

    ask: Callable[..., Awaitable[Json]]
    follow: Callable[..., Awaitable[list[Json]]]


@contextlib.asynccontextmanager
async def http_and_socket(caller: Caller) -> AsyncIterator[Way]:
    async with caller.socket() as socket:
        yield Way(caller.ask, socket.follow)


@contextlib.asynccontextmanager
async def socket_alone(caller: Caller) -> AsyncIterator[Way]:
    async with caller.socket() as socket:
        yield Way(socket.ask, socket.follow)


@contextlib.asynccontextmanager
async def http_and_event_stream(caller: Caller) -> AsyncIterator[Way]:
    yield Way(caller.ask, caller.follow)


@pytest.mark.parametrize("name", NAMES)
async def test_a_document_is_valid_against_the_served_sdl(caller: Caller, name: str) -> None:
    sdl = (await caller.request("GET", "/schema.graphql")).body
    assert validate(build_schema(sdl), parse(document(name))) == []


async def test_the_signed_in_user_of_local_mode_sees_the_demo_character(caller: Caller) -> None:
    data = await caller.ask("{ characters(first: 1) { nodes { id name } } }")
    (character,) = data["characters"]["nodes"]
    assert re.fullmatch(r"soul_[0-9A-Z]{26}", character["id"])
    assert character["name"] == "Ilse Marrow"


def assert_is_whole(events: list[Json], run: str) -> Json:
    """The events of one whole run in their order; the node that it left."""
    assert [each["seq"] for each in events] == list(range(1, len(events) + 1))
    times = [datetime.fromisoformat(each["at"]) for each in events]
    assert times == sorted(times)
    assert all(each.utcoffset() is not None for each in times)
    first, *between, last = events
    assert first == {
        "__typename": "RunStarted",
        "seq": 1,
        "at": first["at"],
        "run": {"id": run, "kind": "FOREGROUND"},
    }
    steps = [
        (each["__typename"], each["name"]) for each in between if each["__typename"] != "TextDelta"
    ]
    assert steps == [
        ("PhaseStarted", "context"),
        ("PhaseFinished", "context"),
        ("PhaseStarted", "answer"),
        ("PhaseFinished", "answer"),
    ]
    assert (last["__typename"], last["status"], last["error"]) == ("RunFinished", "SUCCEEDED", None)
    node: Json = last["node"]
    assert node["status"] == "SOLIDIFIED"
    assert node["content"] == text_of(events)
    assert node["content"] != ""
    assert {each["targetId"] for each in events if "targetId" in each} == {node["id"]}
    return node


@pytest.mark.parametrize("way_of", [http_and_socket, socket_alone, http_and_event_stream])
async def test_a_user_walks_from_a_card_to_a_page_of_the_tree(
    caller: Caller, way_of: Callable[[Caller], Any]
) -> None:
    card = shared("data", "cards", "coding-sensei.v2.png").read_bytes()
    async with way_of(caller) as way:
        # 10: uploads always travel over HTTP.
        imported = (await caller.upload(card)).data["cardImport"]
        embryo = imported["embryo"]
        assert imported["errors"] == []
        assert imported["warnings"] == []
        assert re.fullmatch(r"embryo_[0-9A-Z]{26}", embryo["id"])
        assert (embryo["origin"], embryo["status"]) == ("IMPORTED", "DRAFT")
        identity = embryo["provisionalIdentity"]
        assert (identity["name"], identity["creator"]) == ("Coding Sensei", "RossAscends")
        assert embryo["checklist"] == [
            {"key": key, "label": label, "isConfirmed": False} for key, label in CHECKLIST
        ]

        # 11
        given: Json = {"id": embryo["id"], "confirmed": KEYS}
        issued = (await way.ask(EMBRYO_ACTIVATE, given))["embryoActivate"]
        character = issued["character"]
        viewer = (await caller.ask("{ viewer { user { id name } } }"))["viewer"]["user"]
        assert issued == {
            "character": {
                "id": character["id"],
                "name": "Coding Sensei",
                "status": "ACTIVE",
                "origin": "IMPORTED",
                "identityBaseline": {
                    "core_anchor": {
                        "name": "Coding Sensei",
                        "description": identity["description"],
                        "first_mes": identity["first_mes"],
                    },
                    "forbidden_zone": [],
                },
                "custodian": {"id": viewer["id"]},
                "seat": {"epoch": 1, "leaseExpiresAt": None},
                "createdAt": character["createdAt"],
            },
            "errors": [],
        }
        assert viewer["name"] == "local"

        # 12
        given = {"character": character["id"], "topic": "Loops"}
        made = (await way.ask(TREE_ASK, given, "TreeCreate"))["treeCreate"]
        tree = made["tree"]["id"]
        assert made == {
            "tree": {
                "id": tree,
                "topic": "Loops",
                "realm": "REALITY",
                "status": "ACTIVE",
                "workingEntry": None,
            },
            "errors": [],
        }
        given = {"tree": tree, "parent": None, "text": "What is a loop?"}
        asked = (await way.ask(TREE_ASK, given, "TreeAsk"))["treeAsk"]
        question, run = asked["question"]["id"], asked["run"]["id"]
        assert asked == {
            "question": {
                "id": question,
                "nodeType": "QUESTION",
                "status": "SOLIDIFIED",
                "content": "What is a loop?",
                "parent": None,
            },
            "run": {"id": run, "kind": "FOREGROUND", "status": "QUEUED"},
            "errors": [],
        }

        # 13
        events = await way.follow(run)
        answer = assert_is_whole(events, run)
        assert await way.follow(run, len(events) - 2) == events[-2:]

        given = {"tree": tree, "parent": answer["id"], "text": "And a better one?"}
        again = (await way.ask(TREE_ASK, given, "TreeAsk"))["treeAsk"]
        assert again["errors"] == []
        assert again["question"]["parent"] == {"id": answer["id"]}
        second = assert_is_whole(await way.follow(again["run"]["id"]), again["run"]["id"])

        # 15
        path = [question, answer["id"], again["question"]["id"], second["id"]]
        found: list[Json] = []
        after = None
        for has_more in (True, False):
            given = {"id": tree, "first": 2, "after": after}
            page = (await way.ask(TREE_PAGE, given, "TreePage"))["mirrorTree"]
            assert (page["topic"], page["status"]) == ("Loops", "ACTIVE")
            assert page["nodes"]["pageInfo"]["hasNextPage"] is has_more
            after = page["nodes"]["pageInfo"]["endCursor"]
            found += page["nodes"]["nodes"]
        assert [each.pop("createdAt") < "9999" for each in found] == [True] * 4
        texts = ["What is a loop?", answer["content"], "And a better one?", second["content"]]
        assert found == [
            {
                "id": path[place],
                "nodeType": ["QUESTION", "CANDIDATE_ANSWER"][place % 2],
                "status": "SOLIDIFIED",
                "content": texts[place],
                "realm": "REALITY",
                "model": [None, "demo-prose"][place % 2],
                "parent": {"id": path[place - 1]} if place else None,
                "citations": [],
            }
            for place in range(4)
        ]
        title = await way.ask(TREE_PAGE, {"id": tree}, "TreeTitle")
        assert title == {"mirrorTree": {"topic": "Loops", "status": "ACTIVE"}}
        walked = await way.ask(TREE_PAGE, {"id": tree, "node": second["id"]}, "TreePath")

        def candidates(place: int) -> Json:
            if place % 2:
                return {"nodes": [], "totalCount": 0}
            is_entry = place == 2
            node = {"id": path[place + 1], "status": "SOLIDIFIED", "isWorkingEntry": is_entry}
            return {"nodes": [node], "totalCount": 1}

        assert walked["mirrorTree"] == {
            "character": {"id": character["id"], "name": "Coding Sensei"},
            "workingEntry": {"id": second["id"]},
            "path": [
                {
                    "id": path[place],
                    "nodeType": ["QUESTION", "CANDIDATE_ANSWER"][place % 2],
                    "content": texts[place],
                    "candidates": candidates(place),
                }
                for place in range(4)
            ],
            "canonTrunk": [],
            "canonizations": {"nodes": [], "totalCount": 0},
        }


@pytest.mark.parametrize("way_of", [http_and_socket, socket_alone, http_and_event_stream])
async def test_a_user_uses_the_rules_of_a_tree(
    caller: Caller, way_of: Callable[[Caller], Any]
) -> None:
    """Document 14, each operation with what the earlier ones answered."""
    begun = await caller.begin("What is a loop?")
    async with way_of(caller) as way:

        async def change(operation: str, **variables: str | None) -> Json:
            (payload,) = (await way.ask(TREE_RULES, variables, operation)).values()
            return dict(payload)

        first = assert_is_whole(await way.follow(begun.run), begun.run)
        again = await change("AnswerRegenerate", question=begun.question)
        run = again["run"]["id"]
        assert again == {"run": {"id": run, "status": "QUEUED"}, "errors": []}
        second = assert_is_whole(await way.follow(run), run)
        assert second["id"] != first["id"]

        adopted = await change("NodeAdopt", node=second["id"])
        entry = {"id": begun.tree, "workingEntry": {"id": second["id"]}}
        assert adopted == {"tree": entry, "errors": []}

        edited = await change("NodeEdit", node=begun.question, text="What is a good loop?")
        assert edited == {
            "node": {
                "id": edited["node"]["id"],
                "content": "What is a good loop?",
                "contentVersion": 2,
                "supersedes": {"id": begun.question, "content": "What is a loop?"},
                "parent": None,
            },
            "errors": [],
        }

        given = {"endpoint": second["id"], "scope": "REALITY", "world": None}
        canon = await change("PathCanonize", **given)
        record = canon["canonization"]
        assert canon == {
            "canonization": {
                "id": record["id"],
                "scope": "REALITY",
                "pathLength": 2,
                "snapshotDigest": record["snapshotDigest"],
                "confirmedAt": record["confirmedAt"],
                "endpoint": {"id": second["id"]},
            },
            "errors": [],
        }
        path = [[begun.question, "What is a loop?"], [second["id"], second["content"]]]
        text = json.dumps(path, ensure_ascii=False, separators=(",", ":"))
        assert record["snapshotDigest"] == hashlib.sha256(text.encode()).hexdigest()
        assert re.fullmatch(r"canon_[0-9A-Z]{26}", record["id"])

        moved = await change("TreeTransplant", node=second["id"], topic="Loops, elsewhere")
        assert moved == {
            "tree": {
                "id": moved["tree"]["id"],
                "topic": "Loops, elsewhere",
                "transplantedFrom": {
                    "sourceTree": {"id": begun.tree},
                    "sourceNode": {"id": second["id"]},
                    "sourceVersion": 1,
                },
            },
            "errors": [],
        }
        assert moved["tree"]["id"] != begun.tree

        slow = await caller.begin("[demo: fault=silence after=3]", begun.tree, second["id"])
        cancelled = await change("RunCancel", run=slow.run)
        assert cancelled["run"]["id"] == slow.run
        assert cancelled["errors"] == []
        last = (await way.follow(slow.run))[-1]
        assert (last["__typename"], last["status"]) == ("RunFinished", "CANCELLED")


@pytest.mark.parametrize(
    ("file", "name", "warnings"),
    [
        (
            "amy.v3-in-chara.png",
            "Amy",
            [
                {
                    "code": "CHUNK_IGNORED",
                    "message": "Another card, in a chara chunk, was ignored: "
                    "a ccv3 chunk comes first.",
                },
            ],
        ),
        ("minimal-v2.json", "Test Character V2", []),
        ("minimal-v3.json", "Test Character V3", []),
    ],
)
async def test_cards_of_other_programs_become_characters(
    caller: Caller, file: str, name: str, warnings: list[Json]
) -> None:
    answer = await caller.upload(shared("data", "cards", file).read_bytes(), file)
    imported = answer.data["cardImport"]
    assert imported["errors"] == []
    assert imported["warnings"] == warnings
    assert imported["embryo"]["provisionalIdentity"]["name"] == name
    given = {"id": imported["embryo"]["id"], "confirmed": KEYS}
    issued = (await caller.ask(EMBRYO_ACTIVATE, given))["embryoActivate"]
    assert issued["errors"] == []
    assert issued["character"]["name"] == name


async def test_a_card_without_a_name_is_refused_and_nothing_is_stored(
    caller: Caller, ledger: Ledger
) -> None:
    card = shared("data", "cards", "invalid-missing-name.json").read_bytes()
    before = await ledger.fingerprint()
    answer = await caller.upload(card, "invalid-missing-name.json")
    assert answer.data["cardImport"] == {
        "embryo": None,
        "warnings": None,
        "errors": [
            {
                "code": "CARD_NAME_MISSING",
                "message": "The card gives no name for its character.",
                "path": ["input", "file"],
            }
        ],
    }
    assert await ledger.fingerprint() == before


async def test_a_draft_is_not_activated_with_a_point_unconfirmed(
    caller: Caller, ledger: Ledger
) -> None:
    card = b'{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Nell"}}'
    embryo = (await caller.upload(card, "nell.json")).data["cardImport"]["embryo"]
    before = await ledger.fingerprint()
    given = {"id": embryo["id"], "confirmed": KEYS[:2]}
    refused = (await caller.ask(EMBRYO_ACTIVATE, given))["embryoActivate"]
    assert refused == {
        "character": None,
        "errors": [
            {
                "code": "CONFIRMATION_REQUIRED",
                "message": "Confirm every point of the checklist: custody is missing.",
                "path": ["input", "confirmed"],
            }
        ],
    }
    assert await ledger.fingerprint() == before


async def test_an_upload_needs_a_header_that_a_form_cannot_send(
    caller: Caller, ledger: Ledger
) -> None:
    card = b'{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Nell"}}'
    before = await ledger.fingerprint()
    refused = await caller.upload(card, headers={})
    assert (refused.status, refused.codes) == (403, ["PREFLIGHT_REQUIRED"])
    assert await ledger.fingerprint() == before
    names = (*PREFLIGHT, "Apollo-Require-Preflight", "X-Apollo-Operation-Name", "X-Requested-With")
    for name in names:
        answer = await caller.upload(card, headers={name: "1"}, query=CARD_IMPORT)
        assert answer.data["cardImport"]["errors"] == []
