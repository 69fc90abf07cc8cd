"""Lore, threads, happenings and translations as front ends see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.acceptance import document
from tests.e2e.callers import Caller, Json
from tests.e2e.plot_documents import PLOT, PLOT_CHANGES
from tests.e2e.ways_back_documents import WAYS_BACK, tell_story

WORLD_WRITE = document("22-world-write.graphql")
TRANSLATION = document("50-translation.graphql")


async def change(caller: Caller, operation: str, **given: Any) -> Json:
    (payload,) = (await caller.ask(PLOT_CHANGES, {"input": given}, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def refusal(caller: Caller, operation: str, **given: Any) -> tuple[str, list[str]]:
    (payload,) = (await caller.ask(PLOT_CHANGES, {"input": given}, operation)).values()
    (error,) = payload.pop("errors")
    assert set(payload.values()) == {None}
    return error["code"], error["path"]


async def ask(caller: Caller, branch: str, **variables: Any) -> Json:
    return dict((await caller.ask(PLOT, {"branch": branch, **variables}, "Plot"))["branch"])


@dataclass(frozen=True)
class Scene:
    """A story with a character, a place and three entries; ids of all of them."""

    branch: str
    mira: str
    odo: str
    quay: str
    entries: list[str]


CAST = [
    {"key": "mira", "kind": "CHARACTER", "name": "Mira"},
    {"key": "odo", "kind": "CHARACTER", "name": "Odo"},
    {"key": "quay", "kind": "LOCATION", "name": "Quay"},
]


async def make_scene(caller: Caller) -> Scene:
    told = await tell_story(caller, "Fog.", "More fog.", cast=CAST, lore=[])
    cast = "query ($id: ID!) { branch(id: $id) { entities(first: 9) { nodes { id name } } } }"
    found = (await caller.ask(cast, {"id": told.branch}))["branch"]["entities"]["nodes"]
    ids = {each["name"]: each["id"] for each in found}
    return Scene(told.branch, ids["Mira"], ids["Odo"], ids["Quay"], told.entries)


async def test_lore_is_written_read_changed_and_deleted(caller: Caller) -> None:
    """Rules Q1, Q2, Q11."""
    scene = await make_scene(caller)
    given = {"title": "Oil", "body": "Taxed.", "category": "economy", "keywords": ["oil"]}
    oil = (await change(caller, "LoreCreate", branchId=scene.branch, **given))["lore"]
    fog = await change(
        caller,
        "LoreCreate",
        branchId=scene.branch,
        title="Fog",
        body="Thick.",
        injectionMode="ALWAYS",
        priority=90,
    )
    shown = {
        "id": oil["id"],
        "title": "Oil",
        "body": "Taxed.",
        "category": "economy",
        "tags": [],
        "keywords": ["oil"],
        "injectionMode": "AUTO",
        "priority": 50,
        "embeddingStale": True,
        "translated": "Oil",
    }
    found = (await ask(caller, scene.branch))["lore"]
    assert (found["nodes"][0], found["totalCount"]) == (shown, 2)
    assert [found["nodes"][1][each] for each in ("injectionMode", "priority")] == ["ALWAYS", 90]
    found = (await ask(caller, scene.branch, lore={"category": "economy"}))["lore"]
    assert found == {"nodes": [shown], "totalCount": 1}
    changed = await change(
        caller,
        "LoreUpdate",
        loreId=oil["id"],
        title="Whale oil",
        category=None,
        tags=["city"],
        expectedHead=fog["branch"]["head"],
    )
    assert changed["branch"]["head"] == fog["branch"]["head"] + 1
    then = {"logPosition": fog["branch"]["head"]}
    found = (await ask(caller, scene.branch, asOf=then, lore={"category": "economy"}))["lore"]
    assert found == {"nodes": [shown], "totalCount": 1}
    found = (await ask(caller, scene.branch, lore={"category": "economy"}))["lore"]
    assert found == {"nodes": [], "totalCount": 0}
    refused = await refusal(
        caller, "LoreDelete", loreId=oil["id"], expectedHead=fog["branch"]["head"]
    )
    assert refused == ("CONFLICT", ["input", "expectedHead"])
    gone = await change(caller, "LoreDelete", loreId=oil["id"])
    assert gone["deletedId"] == oil["id"]
    assert (await ask(caller, scene.branch))["lore"]["totalCount"] == 1


async def test_a_filter_that_holds_u0000_is_told_so(caller: Caller) -> None:
    """Rule T47."""
    scene = await make_scene(caller)
    for name in ("lore", "threads", "happenings"):
        asked = {"branch": scene.branch, name: {"category": "a\0b"}}
        (error,) = (await caller.post(PLOT, asked, "Plot")).body["errors"]
        assert error["path"] == ["branch", name]
        assert error["extensions"] == {"code": "INVALID_TEXT", "argument": "category"}


async def test_threads_are_filtered_by_how_they_stand(caller: Caller) -> None:
    """Rules Q3, Q11."""
    scene = await make_scene(caller)
    first = await change(
        caller,
        "ThreadCreate",
        branchId=scene.branch,
        title="Who burns?",
        description="Lamps go out.",
        category="quest",
        icon="lamp",
        status="ACTIVE",
        triggeredAtEntryId=scene.entries[1],
    )
    await change(caller, "ThreadCreate", branchId=scene.branch, title="The torn page")
    resolved = await change(
        caller,
        "ThreadUpdate",
        threadId=first["thread"]["id"],
        status="RESOLVED",
        resolvedAtEntryId=scene.entries[2],
    )
    assert resolved["thread"]["status"] == "RESOLVED"
    shown = {
        "id": first["thread"]["id"],
        "title": "Who burns?",
        "description": "Lamps go out.",
        "category": "quest",
        "icon": "lamp",
        "status": "RESOLVED",
        "injectionMode": "AUTO",
        "triggeredAt": {"position": 2},
        "resolvedAt": {"position": 3},
    }
    asked = {"statuses": ["RESOLVED", "FAILED"]}
    found = (await ask(caller, scene.branch, threads=asked))["threads"]
    assert found == {"nodes": [shown], "totalCount": 1}
    for then in ({"logPosition": resolved["branch"]["head"]}, None):
        found = (await ask(caller, scene.branch, threads={"statuses": ["PENDING"]}, asOf=then))[
            "threads"
        ]
        assert [each["title"] for each in found["nodes"]] == ["The torn page"]
    assert (await ask(caller, scene.branch, threads={"category": "arc"}))["threads"]["nodes"] == []
    before = {"logPosition": first["branch"]["head"]}
    found = (await ask(caller, scene.branch, threads=asked, asOf=before))["threads"]
    assert found["nodes"] == []
    gone = await change(caller, "ThreadDelete", threadId=first["thread"]["id"])
    assert gone["deletedId"] == first["thread"]["id"]


async def test_a_happening_is_written_down_as_front_ends_do(caller: Caller) -> None:
    """Rules Q5, Q7, Q8."""
    scene = await make_scene(caller)
    given: Json = {
        "branch": scene.branch,
        "title": "The seventh lamp",
        "description": "It will not light.",
        "at": scene.entries[1],
        "involved": [
            {"entityId": scene.mira.partition(":")[2], "role": "actor"},
            {"entityId": scene.quay},
        ],
        "aware": [
            {"characterId": scene.mira, "source": "saw it", "learnedAtEntryId": scene.entries[2]}
        ],
    }
    made = (await caller.ask(WORLD_WRITE, given, "HappeningCreate"))["happeningCreate"]
    happening = made["happening"]
    assert made == {
        "happening": {
            "id": happening["id"],
            "title": "The seventh lamp",
            "occurredAt": {"id": scene.entries[1], "position": 2},
            "involvements": [
                {"role": "actor", "entity": {"rowId": scene.mira.split(":")[1], "name": "Mira"}},
                {"role": None, "entity": {"rowId": scene.quay.split(":")[1], "name": "Quay"}},
            ],
            "awareness": [
                {
                    "source": "saw it",
                    "learnedAt": {"position": 3},
                    "character": {"rowId": scene.mira.split(":")[1], "name": "Mira"},
                }
            ],
        },
        "errors": [],
    }
    given = {**given, "at": None, "involved": None, "aware": None, "title": "The king is dead"}
    made = (await caller.ask(WORLD_WRITE, given, "HappeningCreate"))["happeningCreate"]
    await change(
        caller, "HappeningUpdate", happeningId=made["happening"]["id"], commonKnowledge=True
    )
    known = (await caller.ask(PLOT, {"id": scene.mira}, "Known"))["node"]
    assert known == {
        "knows": {
            "nodes": [
                {
                    "source": "saw it",
                    "learnedAt": {"position": 3},
                    "happening": {"id": happening["id"], "title": "The seventh lamp"},
                }
            ],
            "totalCount": 1,
        },
        "involvements": {
            "nodes": [{"role": "actor", "happening": {"id": happening["id"]}}],
            "totalCount": 1,
        },
    }
    found = (await ask(caller, scene.branch, happenings={"commonKnowledge": True}))["happenings"]
    assert [each["title"] for each in found["nodes"]] == ["The king is dead"]
    found = (await ask(caller, scene.branch, happenings={"commonKnowledge": False}))["happenings"]
    assert [each["title"] for each in found["nodes"]] == ["The seventh lamp"]


async def test_who_takes_part_and_who_knows_is_changed_one_by_one(caller: Caller) -> None:
    """Rules Q4, Q6, Q7, Q8, Q10."""
    scene = await make_scene(caller)
    fire = await change(
        caller,
        "HappeningCreate",
        branchId=scene.branch,
        title="Fire",
        temporal="last winter",
        category="disaster",
        icon="flame",
    )
    of_fire = {"happeningId": fire["happening"]["id"]}
    part = await change(
        caller, "InvolvementSet", **of_fire, entityId=scene.quay.split(":")[1], role="site"
    )
    again = await change(caller, "InvolvementSet", **of_fire, entityId=scene.quay)
    assert again["involvement"] == part["involvement"]
    assert part["involvement"]["entity"] == {"id": scene.quay}
    learned = {"learnedAtEntryId": scene.entries[0], "decayResistance": 0.25}
    known = await change(
        caller, "AwarenessSet", **of_fire, characterId=scene.odo, source="a letter", **learned
    )
    again = await change(caller, "AwarenessSet", **of_fire, characterId=scene.odo, source=None)
    assert known["awareness"] == {
        "id": known["awareness"]["id"],
        "source": "a letter",
        "decayResistance": 0.25,
        "learnedAt": {"id": scene.entries[0]},
        "character": {"id": scene.odo},
    }
    assert again["awareness"] == {**known["awareness"], "source": None}
    shown = {
        "id": fire["happening"]["id"],
        "title": "Fire",
        "description": "",
        "category": "disaster",
        "icon": "flame",
        "temporal": "last winter",
        "commonKnowledge": False,
        "occurredAt": None,
        "involvements": [
            {"role": "site", "entity": {"name": "Quay"}, "happening": {"title": "Fire"}}
        ],
        "awareness": [
            {
                "source": "a letter",
                "decayResistance": 0.25,
                "retrievalCount": 0,
                "learnedAt": {"position": 1},
                "character": {"name": "Odo"},
            }
        ],
    }
    now = {**shown, "awareness": [{**shown["awareness"][0], "source": None}]}
    then = {"logPosition": known["branch"]["head"]}
    assert (await ask(caller, scene.branch))["happenings"]["nodes"] == [now]
    assert (await ask(caller, scene.branch, asOf=then))["happenings"]["nodes"] == [shown]
    for operation, ids in [
        ("InvolvementDelete", {"involvementId": part["involvement"]["id"]}),
        ("AwarenessDelete", {"awarenessId": known["awareness"]["id"]}),
    ]:
        gone = await change(caller, operation, **ids)
        assert [gone["deletedId"]] == list(ids.values())
    bare = {**now, "involvements": [], "awareness": []}
    assert (await ask(caller, scene.branch))["happenings"]["nodes"] == [bare]
    refused = await refusal(
        caller, "HappeningUpdate", **of_fire, occurredAtEntryId=scene.entries[0]
    )
    assert refused == ("ONE_TIME_ANCHOR", ["input", "occurredAtEntryId"])
    gone = await change(caller, "HappeningDelete", **of_fire)
    assert gone["deletedId"] == fire["happening"]["id"]


@pytest.mark.parametrize("resistance", [1.5, -1, 1e308, -1e308])
async def test_a_share_beyond_one_is_refused(caller: Caller, resistance: float) -> None:
    """Rule Q7."""
    scene = await make_scene(caller)
    fire = await change(caller, "HappeningCreate", branchId=scene.branch, title="Fire")
    given = {"characterId": scene.odo, "decayResistance": resistance}
    refused = await refusal(caller, "AwarenessSet", happeningId=fire["happening"]["id"], **given)
    assert refused == ("OUT_OF_RANGE", ["input", "decayResistance"])
    refused = await refusal(
        caller, "HappeningCreate", branchId=scene.branch, title="Fog", awareness=[given]
    )
    assert refused == ("OUT_OF_RANGE", ["input", "awareness", "0", "decayResistance"])


async def test_an_undo_takes_back_a_happening_with_all_that_was_made_with_it(
    caller: Caller,
) -> None:
    """Rules Q1, Q5, Q8."""
    scene = await make_scene(caller)
    fire = await change(
        caller,
        "HappeningCreate",
        branchId=scene.branch,
        title="Fire",
        involvements=[{"entityId": scene.quay}],
        awareness=[{"characterId": scene.odo}],
    )
    before = (await ask(caller, scene.branch))["happenings"]
    await change(
        caller, "HappeningUpdate", happeningId=fire["happening"]["id"], commonKnowledge=True
    )
    for expected in (before, {"nodes": [], "totalCount": 0}):
        undone = await caller.ask(WAYS_BACK, {"branch": scene.branch}, "BranchUndo")
        assert undone["branchUndo"]["errors"] == []
        assert (await ask(caller, scene.branch))["happenings"] == expected
    known = (await caller.ask(PLOT, {"id": scene.odo}, "Known"))["node"]
    assert known["knows"] == {"nodes": [], "totalCount": 0}


TRANSLATED = """
query Translated($branch: ID!, $language: String) {
  branch(id: $branch) {
    entries(first: 9) { nodes { translated(field: "content", language: $language) } }
    entities(first: 9) { nodes { translated(field: "name", language: $language) } }
    lore { nodes { translated(field: "title", language: $language) } }
    happenings { nodes { translated(field: "title", language: $language) } }
    translations(language: $language) {
      nodes { field language text targetKind target { __typename id } } totalCount
    }
  }
}
query One($id: ID!, $field: String!, $language: String) {
  node(id: $id) { ... on Translatable { translated(field: $field, language: $language) } }
}
"""


async def test_texts_are_shown_in_another_language_where_there_are_translations(
    caller: Caller,
) -> None:
    """Rules V1, V2, V4, V7."""
    scene = await make_scene(caller)
    lore = await change(caller, "LoreCreate", branchId=scene.branch, title="Oil", body="Taxed.")
    said = [
        (scene.entries[1], "content", "Brume."),
        (scene.mira, "name", "Myra"),
        (lore["lore"]["id"], "title", "Huile"),
    ]
    for target, field, text in said:
        asked = {"target": target, "field": field, "language": "fr", "text": text}
        made = (await caller.ask(TRANSLATION, asked))["translationSet"]
        assert (made["errors"], made["branch"]["id"]) == ([], scene.branch)
        kind = made["translation"]["target"].pop("__typename")
        assert made["translation"] == {
            "id": made["translation"]["id"],
            "field": field,
            "language": "fr",
            "text": text,
            "target": {"id": target},
        }
        assert kind in ("StoryEntry", "StoryCharacter", "Lore")
    asked = {"branch": scene.branch, "language": "fr"}
    found = (await caller.ask(TRANSLATED, asked, "Translated"))["branch"]
    texts = {
        name: [each["translated"] for each in found[name]["nodes"]]
        for name in ("entries", "entities", "lore", "happenings")
    }
    assert texts == {
        "entries": ["It begins.", "Brume.", "More fog."],
        "entities": ["Myra", "Odo", "Quay"],
        "lore": ["Huile"],
        "happenings": [],
    }
    assert [each["text"] for each in found["translations"]["nodes"]] == ["Brume.", "Myra", "Huile"]
    asked = {"branch": scene.branch, "language": None}
    found = (await caller.ask(TRANSLATED, asked, "Translated"))["branch"]
    assert [each["translated"] for each in found["lore"]["nodes"]] == ["Oil"]
    assert found["translations"]["totalCount"] == 3
    gone = await change(caller, "TranslationDelete", translationId=made["translation"]["id"])
    assert gone["deletedId"] == made["translation"]["id"]
    asked = {"id": lore["lore"]["id"], "field": "title", "language": "fr"}
    assert await caller.ask(TRANSLATED, asked, "One") == {"node": {"translated": "Oil"}}


async def test_what_cannot_be_translated_is_an_error_of_its_field(caller: Caller) -> None:
    """Rules V1, V2."""
    scene = await make_scene(caller)
    for field, language in [("colour", "fr"), ("state", None), ("a\0b", "fr")]:
        asked = {"id": scene.mira, "field": field, "language": language}
        answer = await caller.post(TRANSLATED, asked, "One")
        assert answer.body["data"] == {"node": {"translated": None}}
        (error,) = answer.body["errors"]
        assert error["path"] == ["node", "translated"]
        assert error["extensions"] == {"code": "FIELD_NOT_TRANSLATABLE", "argument": "field"}
    for language in ("fr-CA", "xx", ""):
        asked = {"id": scene.mira, "field": "name", "language": language}
        assert await caller.ask(TRANSLATED, asked, "One") == {"node": {"translated": "Mira"}}
    asked = {"id": scene.mira, "field": "name", "language": "a\0b"}
    (error,) = (await caller.post(TRANSLATED, asked, "One")).body["errors"]
    assert error["extensions"] == {"code": "INVALID_TEXT", "argument": "language"}
    refused = await refusal(
        caller,
        "TranslationSet",
        targetId=scene.mira,
        field="voice",
        language="fr",
        text="basse",
    )
    assert refused == ("NOTHING_TO_TRANSLATE", ["input", "field"])


async def test_a_translation_of_an_entry_stays_as_long_as_the_entry(caller: Caller) -> None:
    """Rule V5."""
    scene = await make_scene(caller)
    for entry, text in [(scene.entries[1], "Brume."), (scene.entries[2], "Encore.")]:
        await change(
            caller,
            "TranslationSet",
            targetId=entry,
            field="content",
            language="fr",
            text=text,
        )
    kept = {"branch": scene.branch, "entry": scene.entries[1]}
    rolled = await caller.ask(WAYS_BACK, kept, "BranchRollback")
    assert rolled["branchRollback"]["errors"] == []
    found = (await ask(caller, scene.branch))["translations"]
    assert [each["text"] for each in found["nodes"]] == ["Brume."]


MISSING = """
query Missing(
  $branch: ID!, $kinds: [TranslationTarget!], $first: Int, $after: String, $language: String!
) {
  branch(id: $branch) {
    untranslated(language: $language, kinds: $kinds, first: $first, after: $after) {
      nodes { targetKind field text target { __typename id } } totalCount
      pageInfo { hasNextPage endCursor }
    }
    translationCoverage(language: $language) { kind total translated missing }
  }
}
"""


async def test_what_is_missing_is_listed_and_said_in_one_import(caller: Caller) -> None:
    """Rules V8, V9, V10."""
    scene = await make_scene(caller)
    asked = {"branch": scene.branch, "language": "fr"}

    async def missing(**more: Any) -> Json:
        return dict((await caller.ask(MISSING, {**asked, **more}, "Missing"))["branch"])

    found = await missing(kinds=["ENTITY"], first=2)
    assert found["untranslated"]["nodes"] == [
        {
            "targetKind": "ENTITY",
            "field": "name",
            "text": text,
            "target": {"__typename": "StoryCharacter", "id": target},
        }
        for text, target in (("Mira", scene.mira), ("Odo", scene.odo))
    ]
    info = found["untranslated"]["pageInfo"]
    assert (found["untranslated"]["totalCount"], info["hasNextPage"]) == (3, True)
    rest = await missing(kinds=["ENTITY"], first=2, after=info["endCursor"])
    assert [each["text"] for each in rest["untranslated"]["nodes"]] == ["Quay"]

    def wordings(nodes: list[Json]) -> list[Json]:
        return [
            {"targetId": each["target"]["id"], "field": each["field"], "text": f"«{each['text']}»"}
            for each in nodes
        ]

    everything = (await missing())["untranslated"]["nodes"]
    assert [each["field"] for each in everything] == ["name"] * 3 + ["content"] * 3
    wrong = wordings(everything)
    wrong[1]["field"], wrong[4]["targetId"] = "colour", "x"
    given = {"branchId": scene.branch, "language": "fr", "translations": wrong}
    refused = (await caller.ask(PLOT_CHANGES, {"input": given}, "TranslationImport"))[
        "translationImport"
    ]
    assert [(each["code"], each["path"]) for each in refused.pop("errors")] == [
        ("FIELD_NOT_TRANSLATABLE", ["input", "translations", "1", "field"]),
        ("NOT_FOUND", ["input", "translations", "4", "targetId"]),
    ]
    assert set(refused.values()) == {None}
    assert (await missing())["untranslated"]["totalCount"] == 6
    done = await change(
        caller,
        "TranslationImport",
        branchId=scene.branch,
        language="fr",
        translations=wordings(everything),
    )
    assert (done["created"], done["updated"]) == (6, 0)
    after = await missing()
    assert after["untranslated"]["nodes"] == []
    counts = {each["kind"]: each for each in after["translationCoverage"]}
    assert counts["ENTITY"] == {"kind": "ENTITY", "total": 3, "translated": 3, "missing": 0}
    assert counts["LORE"] == {"kind": "LORE", "total": 0, "translated": 0, "missing": 0}
    assert len(counts) == 7
    undone = await caller.ask(WAYS_BACK, {"branch": scene.branch}, "BranchUndo")
    assert undone["branchUndo"]["errors"] == []
    assert (await missing())["untranslated"]["totalCount"] == 6
    answer = await caller.post(MISSING, {**asked, "language": "french"}, "Missing")
    assert {each["extensions"]["code"] for each in answer.body["errors"]} == {"LANGUAGE_INVALID"}
