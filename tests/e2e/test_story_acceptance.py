"""The acceptance documents of stories as a front end sends them, in the order of their numbers."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance import FOLDER, document
from tests.e2e.callers import Caller, Json

STORY_CREATE = document("20-story-create.graphql")
ENTRY_WRITE = document("21-entry-write.graphql")
WORLD_WRITE = document("22-world-write.graphql")
HISTORY = document("23-history.graphql")
BRANCH_PAGE = document("24-branch-page.graphql")
STORY: Json = json.loads(FOLDER.joinpath("20-story-create.json").read_text(encoding="utf-8"))
GIVEN: Json = STORY["input"]
PREFIXES = {
    "quay": "loc",
    "office": "loc",
    "mira": "char",
    "odo": "char",
    "guild": "fact",
    "ledger": "item",
    "oil": "lore",
}
EVENING = "October 3, 1872 AD 19:00"
TABLES = (
    *("STORY_ENTRIES", "ENTITIES", "LORE", "THREADS", "HAPPENINGS", "HAPPENING_INVOLVEMENTS"),
    *("HAPPENING_AWARENESS", "CHARACTER_RELATIONSHIPS", "CHAPTERS", "ENTRY_ASSETS"),
    *("TRANSLATIONS", "BRANCH_ERA_FLIPS", "EMBEDDINGS", "DELTAS"),
)


@dataclass(frozen=True)
class Way:
    """How documents travel: `ask` one answer, `watch` a number of events."""

    ask: Callable[..., Awaitable[Json]]
    watch: Callable[[Json, int], Awaitable[list[Json]]]


@contextlib.asynccontextmanager
async def by_socket(caller: Caller) -> AsyncIterator[Way]:
    async with caller.socket() as socket:

        async def watch(variables: Json, count: int) -> list[Json]:
            operation = await socket.start(HISTORY, variables, "BranchEvents")
            events = [await anext(operation) for _ in range(count)]
            await socket.stop(operation)
            return [each["data"]["branchEvents"] for each in events]

        yield Way(socket.ask, watch)


@contextlib.asynccontextmanager
async def by_http(caller: Caller) -> AsyncIterator[Way]:
    async def watch(variables: Json, count: int) -> list[Json]:
        async with caller.stream(HISTORY, variables, "BranchEvents") as results:
            return [(await anext(results))["data"]["branchEvents"] for _ in range(count)]

    yield Way(caller.ask, watch)


def change(table: str, op: str, id: str | None = None) -> Json:
    return {"table": table, "op": op, **({} if id is None else {"id": id})}


@pytest.mark.parametrize("way_of", [by_socket, by_http])
async def test_a_user_tells_a_story_and_goes_back_in_it(
    caller: Caller, way_of: Callable[[Caller], Any]
) -> None:
    """Rules H1, H2, H6, H8, H9, H11, H12."""
    async with way_of(caller) as way:

        async def ask(text: str, operation: str, **variables: Any) -> Json:
            (answer,) = (await way.ask(text, variables, operation)).values()
            return dict(answer)

        async def done(text: str, operation: str, **variables: Any) -> Json:
            answer = await ask(text, operation, **variables)
            assert answer.pop("errors") == []
            return answer

        # 20
        made = await done(STORY_CREATE, "StoryCreate", **STORY)
        story, branch = made["story"], made["story"]["currentBranch"]["id"]
        ids = {each["key"]: each["id"] for each in made["keys"]}
        own = {key: each.rpartition(":")[2] for key, each in ids.items()}
        assert re.fullmatch(r"br_[0-9a-f-]{36}", branch)
        assert {key: each.partition("_")[0] for key, each in own.items()} == PREFIXES
        assert {each.rpartition(":")[0] for each in ids.values()} == {branch}
        definition = {**GIVEN["definition"], "leadEntity": {"rowId": own["mira"]}}
        del definition["leadKey"]
        assert story == {
            "id": story["id"],
            "title": GIVEN["title"],
            "status": "ACTIVE",
            "definition": definition,
            "currentBranch": {
                "id": branch,
                "name": story["currentBranch"]["name"],
                "head": 0,
                "canUndo": False,
                "canRedo": False,
            },
        }

        # 21
        asked = {"branch": branch, "kind": "USER_ACTION", "content": "I climb.", "head": 0}
        climbed = (await done(ENTRY_WRITE, "EntryAppend", **asked))["entry"]
        assert climbed == {
            "id": f"{branch}:{climbed['rowId']}",
            "rowId": climbed["rowId"],
            "position": 2,
            "kind": "USER_ACTION",
            "content": "I climb.",
            "worldTime": 0,
            "worldTimeLabel": EVENING,
        }
        assert await ask(ENTRY_WRITE, "EntryAppend", **asked) == {
            "entry": None,
            "branch": None,
            "errors": [
                {
                    "code": "CONFLICT",
                    "message": "This branch was changed meanwhile: its head is 1, not 0. "
                    "Read it again.",
                    "path": ["input", "expectedHead"],
                }
            ],
        }
        asked = {**asked, "kind": "AI_REPLY", "content": "The wick is wet.", "head": 1}
        answer = await done(ENTRY_WRITE, "EntryAppend", **asked)
        wet = answer["entry"]["id"]
        assert (answer["entry"]["position"], answer["branch"]) == (3, {"id": branch, "head": 2})
        salty = "The wick is wet with salt."
        assert await done(ENTRY_WRITE, "EntryEdit", entry=wet, content=salty) == {
            "entry": {"id": wet, "content": salty},
            "branch": {"id": branch, "head": 3},
        }

        # 22
        state = {"visual": {"hair": "grey"}, "stackables": {"matches": 3}}
        asked = {"entity": ids["mira"], "description": "Tall.", "state": state}
        blank = {"visual": {}, "traits": [], "drives": [], "equipped_items": [], "inventory": []}
        unknown = {"faction_id": None, "lastSeenAt": None, "current_location_id": own["quay"]}
        was, now = {**blank, **unknown}, {**blank, **unknown, **state}
        assert await done(WORLD_WRITE, "EntityUpdate", **asked) == {
            "entity": {
                "id": ids["mira"],
                "rowId": own["mira"],
                "name": "Mira Voss",
                "description": "Tall.",
                "state": now,
            },
            "branch": {"id": branch, "head": 4},
        }
        mira, odo = (
            {"rowId": own["mira"], "name": "Mira Voss"},
            {"rowId": own["odo"], "name": "Odo Tann"},
        )
        pair: Json = {"subject": ids["odo"], "object": ids["mira"], "kind": "debtor"}
        tied = (await done(WORLD_WRITE, "RelationshipSet", **pair))["relationship"]
        # The earlier id is the first of the pair, whoever was the subject.
        half = {"id": tied["id"], "a": mira, "b": odo}
        assert tied == {**half, "kind": None, "inverseKind": "debtor"}
        pair = {"subject": ids["mira"], "object": ids["odo"], "kind": "rival"}
        whole = (await done(WORLD_WRITE, "RelationshipSet", **pair))["relationship"]
        assert whole == {**half, "kind": "rival", "inverseKind": "debtor"}
        told = (
            await done(
                WORLD_WRITE,
                "HappeningCreate",
                branch=branch,
                title="The lamp goes out",
                description="Salt in the oil.",
                at=wet,
                involved=[{"entityId": ids["mira"], "role": "witness"}],
                aware=[{"characterId": ids["odo"], "source": "heard", "learnedAtEntryId": wet}],
            )
        )["happening"]
        assert told == {
            "id": told["id"],
            "title": "The lamp goes out",
            "occurredAt": {"id": wet, "position": 3},
            "involvements": [{"role": "witness", "entity": mira}],
            "awareness": [{"source": "heard", "learnedAt": {"position": 3}, "character": odo}],
        }

        # 24, of the present and of the past
        here = {"id": ids["quay"], "name": "Quay Street"}
        present = {"id": ids["mira"], "rowId": own["mira"], "name": "Mira Voss"}

        def entry(position: int, kind: str, content: str) -> Json:
            return {
                "position": position,
                "kind": kind,
                "content": content,
                "worldTime": 0,
                "worldTimeLabel": EVENING,
                "model": None,
                "translated": content,
                "sceneEntities": [{**present, "translated": "Mira Voss"}],
                "currentLocation": here,
                "chapter": None,
                "assets": [],
            }

        opening = entry(1, "OPENING", GIVEN["opening"]["content"])
        text = [opening, entry(2, "USER_ACTION", "I climb."), entry(3, "AI_REPLY", salty)]

        async def read(branch_id: str) -> list[Json]:
            """All entries, two at a time."""
            found: list[Json] = []
            after = None
            while True:
                page = await ask(
                    BRANCH_PAGE, "BranchPage", id=branch_id, first=2, after=after, language="ja"
                )
                assert page["story"] == {"title": GIVEN["title"]}
                found += page["entries"]["nodes"]
                assert page["entries"]["totalCount"] >= len(found)
                after = page["entries"]["pageInfo"]["endCursor"]
                if not page["entries"]["pageInfo"]["hasNextPage"]:
                    assert page["entries"]["totalCount"] == len(found)
                    return found

        entries = await read(branch)
        assert [each.pop("id") for each in entries][1:] == [climbed["id"], wet]
        assert entries == text

        async def as_of(id: str) -> Json:
            return await ask(BRANCH_PAGE, "BranchAsOf", id=branch, entry=id)

        earlier, later = await as_of(climbed["id"]), await as_of(wet)
        cast = {each["key"]: each for each in GIVEN["cast"]}
        for moment, position, last, description, its_state in (
            (earlier, 1, climbed["id"], cast["mira"]["description"], was),
            (later, 9, wet, "Tall.", now),
        ):
            found = {each["rowId"]: each for each in moment["entities"]["nodes"]}
            assert moment["entities"]["totalCount"] == len(found) == len(cast)
            assert moment["entities"]["resolvedAt"] == {"entryId": last, "logPosition": position}
            assert found[own["mira"]] == {**mira, "description": description, "state": its_state}
            assert found[own["office"]] == {
                "rowId": own["office"],
                "name": "The Tally Office",
                "description": cast["office"]["description"],
                "state": {"parent_location_id": own["quay"]},
            }
        assert (earlier["relationships"], earlier["happenings"]) == ({"nodes": []}, {"nodes": []})
        ends = {"a": {"rowId": own["mira"]}, "b": {"rowId": own["odo"]}}
        assert later["relationships"] == {
            "nodes": [{**ends, "kind": "rival", "inverseKind": "debtor"}]
        }
        assert later["happenings"] == {"nodes": [{"id": told["id"], "title": told["title"]}]}

        sheet = await ask(BRANCH_PAGE, "CharacterSheet", id=ids["odo"])
        office = {"rowId": own["office"], "name": "The Tally Office"}
        quay = {"rowId": own["quay"], "name": "Quay Street"}
        assert sheet == {
            "name": "Odo Tann",
            "status": "ACTIVE",
            "traits": [],
            "drives": [],
            "voice": None,
            "equippedItems": [],
            "inventory": [],
            "stackables": [],
            "faction": None,
            "visual": {"hair": None, "eyes": None, "attire": None},
            "currentLocation": {**office, "path": [quay]},
            "relationships": [{"other": mira, "selfToOther": "debtor", "otherToSelf": "rival"}],
            "knows": {
                "nodes": [
                    {
                        "source": "heard",
                        "learnedAt": {"position": 3},
                        "happening": {"id": told["id"], "title": told["title"]},
                    }
                ]
            },
        }
        assert await ask(BRANCH_PAGE, "CharacterSheet", id=ids["quay"]) == {
            "name": "Quay Street",
            "parent": None,
            "children": [office],
            "occupants": [mira],
        }

        # 23: undo and redo of the last action
        events = await way.watch({"branch": branch, "after": 0}, 7)
        known = [change(table, "CREATE") for table in (TABLES[6], TABLES[5], TABLES[4])]
        head = {"id": branch, "canUndo": True}
        assert await done(HISTORY, "BranchUndo", branch=branch) == {
            "branch": {**head, "head": 6, "canRedo": True},
            "reversed": [
                {"actionId": events[6]["actionId"], "source": "USER_EDIT", "changes": known}
            ],
        }
        assert (await as_of(wet))["happenings"] == {"nodes": []}
        redone = await done(HISTORY, "BranchRedo", branch=branch)
        assert redone == {"branch": {**head, "head": 9, "canRedo": False}}
        assert await as_of(wet) == later

        # 23: a fork behind the user's action, and what it has not
        forked = await done(
            HISTORY, "BranchFork", branch=branch, entry=climbed["id"], name="Another way"
        )
        fork = forked["branch"]["id"]
        rows = {"STORY_ENTRIES": 2, "ENTITIES": 6, "LORE": 1, "DELTAS": 1}
        assert forked == {
            "branch": {
                "id": fork,
                "name": "Another way",
                "parent": {"id": branch},
                "forkEntry": {"rowId": climbed["rowId"]},
                "head": 1,
            },
            "copied": [{"table": each, "rows": rows.get(each, 0)} for each in TABLES],
        }
        entries = await read(fork)
        assert entries[1].pop("id") == f"{fork}:{climbed['rowId']}"

        # 24: the difference
        diff = await ask(BRANCH_PAGE, "BranchDiff", left=branch, right=fork)
        assert diff["commonEntry"] == {"position": 2}
        assert diff["changes"]["totalCount"] == 6
        assert [
            (each["table"], each["kind"], each["label"]) for each in diff["changes"]["nodes"]
        ] == [
            ("STORY_ENTRIES", "REMOVED", salty),
            ("ENTITIES", "CHANGED", "Mira Voss"),
            ("HAPPENINGS", "REMOVED", "The lamp goes out"),
            ("HAPPENING_INVOLVEMENTS", "REMOVED", "Mira Voss – The lamp goes out"),
            ("HAPPENING_AWARENESS", "REMOVED", "Odo Tann – The lamp goes out"),
            ("CHARACTER_RELATIONSHIPS", "REMOVED", "Mira Voss – Odo Tann"),
        ]
        assert diff["changes"]["nodes"][1] == {
            "table": "ENTITIES",
            "rowId": own["mira"],
            "kind": "CHANGED",
            "label": "Mira Voss",
            "fields": [
                {"path": "description", "left": "Tall.", "right": cast["mira"]["description"]},
                {"path": "state.visual.hair", "left": "grey", "right": None},
                {"path": "state.stackables.matches", "left": 3, "right": None},
            ],
        }
        assert diff["changes"]["nodes"][5]["fields"] == [
            {"path": "aId", "left": own["mira"], "right": None},
            {"path": "bId", "left": own["odo"], "right": None},
            {"path": "kind", "left": "rival", "right": None},
            {"path": "inverseKind", "left": "debtor", "right": None},
        ]

        # 23: a rollback, first only asked about
        back = {"branch": branch, "entry": climbed["id"]}
        looked = await done(HISTORY, "BranchRollback", **back, dryRun=True)
        assert looked["branch"] == {"id": branch, "head": 9}
        assert [each["actionId"] for each in looked["reversed"]] == [
            each["actionId"] for each in events[:0:-1]
        ]
        assert [each["code"] for each in looked["warnings"]] == ["WORLD_EDITS_LOST"]
        assert await as_of(wet) == later
        rolled = await done(HISTORY, "BranchRollback", **back)
        assert rolled == {**looked, "branch": {"id": branch, "head": 1}}
        diff = await ask(BRANCH_PAGE, "BranchDiff", left=branch, right=fork)
        assert diff == {
            "commonEntry": {"position": 2},
            "changes": {"nodes": [], "totalCount": 0},
        }
        entries = await read(branch)
        assert [each.pop("id") for each in entries][1] == climbed["id"]
        assert entries == text[:2]

        # 23: all of it, for who has watched
        events = await way.watch({"branch": branch, "after": 0}, 10)
        assert [(each["seq"], each["kind"], each["source"], each["head"]) for each in events] == [
            (1, "ACTION", "USER_EDIT", 1),
            (2, "ACTION", "USER_EDIT", 2),
            (3, "ACTION", "USER_EDIT", 3),
            (4, "ACTION", "USER_EDIT", 4),
            (5, "ACTION", "USER_EDIT", 5),
            (6, "ACTION", "USER_EDIT", 6),
            (7, "ACTION", "USER_EDIT", 9),
            (8, "UNDO", "USER_EDIT", 6),
            (9, "REDO", "USER_EDIT", 9),
            (10, "ROLLBACK", None, 1),
        ]
        assert len({each["actionId"] for each in events}) == 8
        assert [each["changes"] for each in events[:6]] == [
            [change("STORY_ENTRIES", "CREATE", climbed["id"])],
            [change("STORY_ENTRIES", "CREATE", wet)],
            [change("STORY_ENTRIES", "UPDATE", wet)],
            [change("ENTITIES", "UPDATE", ids["mira"])],
            [change("CHARACTER_RELATIONSHIPS", "CREATE", tied["id"])],
            [change("CHARACTER_RELATIONSHIPS", "UPDATE", tied["id"])],
        ]
        assert events[6]["changes"][0] == change("HAPPENINGS", "CREATE", told["id"])
        assert await way.watch({"branch": branch, "after": 8}, 2) == events[8:]
