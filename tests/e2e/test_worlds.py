"""Worlds that outlast stories, as front ends see them."""

from __future__ import annotations

from typing import Any

from tests.acceptance import document
from tests.e2e.callers import Caller, Json
from tests.e2e.test_plot import make_scene
from tests.e2e.world_documents import WORLD_CHANGES, change_world

GRAPH = document("40-graph.graphql")
WORLD = """
query World($world: ID!) {
  worlds(first: 1) { nodes { id } }
  world(id: $world) {
    name background rules canonVersion version
    entities(kinds: [CHARACTER], search: "MÍR") {
      nodes {
        name aliases attributes mergedInto { id }
        outgoing(kinds: ["knows"], validAt: 15) { nodes { kind target { name } } }
        incoming { totalCount }
        castings { nodes { entity { name } story { status } } }
      }
    }
    relations(validAt: 9) { totalCount }
    duplicates(first: 5) { reason score entity { name } other { name } }
    merges { nodes { kept { name } merged { name mergedInto { name } } undoneAt } }
    stories { nodes { castings { totalCount } } }
    canon { totalCount }
  }
}
query Paths($world: ID!, $from: ID!, $to: ID!) {
  world(id: $world) {
    paths(from: $from, to: $to, first: 2, weighted: true, direction: OUT) {
      length cost nodes { label distance } edges { kind row { weight } }
    }
  }
}
"""
PEOPLE = [
    {"key": "m", "kind": "CHARACTER", "name": "Mira", "aliases": ["M."], "attributes": {"age": 3}},
    {"key": "o", "kind": "CHARACTER", "name": "Odo"},
    {"key": "x", "kind": "CHARACTER", "name": "odo"},
    {"key": "a", "kind": "CHARACTER", "name": "Ana"},
    {"key": "q", "kind": "LOCATION", "name": "Quay"},
]
TIES = [
    {"sourceKey": "m", "targetKey": "o", "kind": "knows", "validFrom": 10, "weight": 4.0},
    {"sourceKey": "o", "targetKey": "q", "kind": "lives at", "weight": 4.0},
    {"sourceKey": "m", "targetKey": "q", "kind": "fears", "weight": 1.0},
]


async def peopled(caller: Caller) -> tuple[str, dict[str, str]]:
    """A world, and the ids of those in it by key."""
    made = await change_world(caller, "WorldCreate", name="Aster", rules=["No magic."])
    world = made["world"]["id"]
    others = [each for each in PEOPLE if each["key"] != "x"]
    done = await change_world(caller, "WorldUpsert", worldId=world, entities=others, relations=TIES)
    assert done["entities"] == {"created": 4, "updated": 0, "unchanged": 0}
    assert done["relations"] == {"created": 3, "updated": 0, "unchanged": 0}
    return world, {each["key"]: each["id"] for each in done["keys"]}


async def refusal(caller: Caller, operation: str, **given: Any) -> list[Json]:
    (payload,) = (await caller.ask(WORLD_CHANGES, {"input": given}, operation)).values()
    return [{"code": each["code"], "path": each["path"]} for each in payload["errors"]]


async def test_the_acceptance_document_walks_over_a_world(caller: Caller) -> None:
    """Rule O17."""
    world, ids = await peopled(caller)
    asked = {"id": world, "around": [ids["m"]], "depth": 1}
    found = (await caller.ask(GRAPH, asked, "WorldGraph"))["world"]
    assert found["name"] == "Aster"
    labels = {each["label"]: each["distance"] for each in found["graph"]["nodes"]}
    assert labels == {"Mira": 0, "Odo": 1, "Quay": 1}
    assert found["graph"]["truncated"] is False
    assert sorted((each["kind"], each["label"]) for each in found["graph"]["edges"]) == [
        ("fears", None),
        ("knows", None),
        ("lives at", None),
    ]
    whole = (await caller.ask(GRAPH, {**asked, "around": None}, "WorldGraph"))["world"]["graph"]
    assert {each["label"] for each in whole["nodes"]} == {"Mira", "Odo", "Ana", "Quay"}
    ends = {"world": world, "from": ids["m"], "to": ids["q"]}
    paths = (await caller.ask(WORLD, ends, "Paths"))["world"]["paths"]
    assert [(each["length"], each["cost"]) for each in paths] == [(2, 0.5), (1, 1.0)]
    assert [each["label"] for each in paths[0]["nodes"]] == ["Mira", "Odo", "Quay"]


async def test_a_world_is_read_as_a_whole(caller: Caller) -> None:
    """Rules O1, O3, O13, O15, O16."""
    world, ids = await peopled(caller)
    scene = await make_scene(caller)
    cast = await change_world(
        caller, "WorldEntityCast", worldEntityId=ids["m"], branchId=scene.branch
    )
    assert cast["entity"]["keywords"] == ["M."]
    assert cast["casting"]["entity"]["id"] == cast["entity"]["id"]
    assert cast["entity"]["castings"] == [
        {"id": cast["casting"]["id"], "worldEntity": {"id": ids["m"]}}
    ]
    again = await change_world(
        caller, "WorldEntityCreate", worldId=world, kind="CHARACTER", name="ana"
    )
    twin = again["worldEntity"]["id"]
    asked = await caller.ask(WORLD, {"world": world}, "World")
    assert asked["worlds"]["nodes"] == [{"id": world}]
    assert asked["world"]["duplicates"] == [
        {"reason": "SAME_NAME", "score": 1.0, "entity": {"name": "Ana"}, "other": {"name": "ana"}}
    ]
    told = await change_world(caller, "WorldEntityMerge", keptId=ids["a"], mergedId=twin)
    assert told["changes"] == [{"effect": "MERGED", "id": twin}]
    found = (await caller.ask(WORLD, {"world": world}, "World"))["world"]
    assert found == {
        "name": "Aster",
        "background": "",
        "rules": ["No magic."],
        "canonVersion": 0,
        "version": 1,
        "entities": {
            "nodes": [
                {
                    "name": "Mira",
                    "aliases": ["M."],
                    "attributes": {"age": 3},
                    "mergedInto": None,
                    "outgoing": {"nodes": [{"kind": "knows", "target": {"name": "Odo"}}]},
                    "incoming": {"totalCount": 0},
                    "castings": {
                        "nodes": [{"entity": {"name": "Mira"}, "story": {"status": "ACTIVE"}}]
                    },
                }
            ]
        },
        "relations": {"totalCount": 2},
        "duplicates": [],
        "merges": {
            "nodes": [
                {
                    "kept": {"name": "Ana"},
                    "merged": {"name": "ana", "mergedInto": {"name": "Ana"}},
                    "undoneAt": None,
                }
            ]
        },
        "stories": {"nodes": []},
        "canon": {"totalCount": 0},
    }
    assert await refusal(caller, "WorldUpdate", worldId=world, name=" ") == [
        {"code": "TEXT_EMPTY", "path": ["input", "name"]}
    ]
    assert (await change_world(caller, "WorldDelete", worldId=world))["deletedId"] == world
    assert (await caller.ask(WORLD, {"world": world}, "World"))["world"] is None
