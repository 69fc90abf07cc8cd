"""A branch as a graph, as front ends see it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance import document
from tests.e2e.callers import Caller, Json
from tests.e2e.test_plot import Scene, make_scene

GRAPH = document("40-graph.graphql")
WORLD_WRITE = document("22-world-write.graphql")
NEIGHBOURS = """
query Neighbours($id: ID!, $direction: EdgeDirection! = BOTH, $kinds: [GraphNodeKind!]) {
  node(id: $id) {
    ... on StoryEntity {
      neighbours(first: 5, direction: $direction, kinds: $kinds) {
        nodes { label distance node { __typename } } edges { kind } truncated truncatedBy
      }
    }
  }
}
"""
KNOWN = """
query Known($branch: ID!, $perspective: ID, $asOf: AsOfInput) {
  branch(id: $branch) {
    happenings(perspective: $perspective, asOf: $asOf) { totalCount nodes { title } }
    lore(perspective: $perspective, asOf: $asOf) { totalCount }
  }
}
"""


async def write(caller: Caller, operation: str, **given: Any) -> Json:
    (payload,) = (await caller.ask(WORLD_WRITE, given, operation)).values()
    assert payload.pop("errors") == []
    return dict(payload)


async def told(caller: Caller) -> tuple[Scene, str]:
    """Mira is at the quay and sees a rival in Odo, who knows of a fire that she was in."""
    scene = await make_scene(caller)
    here = {"current_location_id": scene.quay}
    await write(caller, "EntityUpdate", entity=scene.mira, state=here)
    await write(caller, "RelationshipSet", subject=scene.mira, object=scene.odo, kind="rival")
    made = await write(
        caller,
        "HappeningCreate",
        branch=scene.branch,
        title="Fire",
        description="It burnt.",
        at=scene.entries[0],
        involved=[{"entityId": scene.mira, "role": "witness"}],
        aware=[{"characterId": scene.odo, "source": "heard", "learnedAtEntryId": scene.entries[1]}],
    )
    return scene, str(made["happening"]["id"])


async def graph(caller: Caller, scene: Scene, **variables: Any) -> Json:
    given = {"branch": scene.branch, "depth": 2, **variables}
    return dict((await caller.ask(GRAPH, given, "Graph"))["branch"]["graph"])


def node(id: str, kind: str, label: str, distance: int | None) -> Json:
    of_kind = {"CHARACTER": "StoryCharacter", "LOCATION": "StoryLocation", "HAPPENING": "Happening"}
    row = {"__typename": of_kind[kind], "id": id}
    return {"id": id, "kind": kind, "label": label, "distance": distance, "node": row}


async def test_a_graph_has_nodes_by_distance_and_all_edges_between_them(caller: Caller) -> None:
    """Rules J7, J8, J10, J13, J15."""
    scene, fire = await told(caller)
    found = await graph(caller, scene, around=[scene.quay], depth=2)
    assert found["nodes"] == [
        node(scene.quay, "LOCATION", "Quay", 0),
        node(scene.mira, "CHARACTER", "Mira", 1),
        *sorted(
            [node(scene.odo, "CHARACTER", "Odo", 2), node(fire, "HAPPENING", "Fire", 2)],
            key=lambda each: str(each["id"]),
        ),
    ]
    edges = [
        (e["kind"], e["label"], e["source"], e["target"], e["since"] and e["since"]["position"])
        for e in found["edges"]
    ]
    assert sorted(edges, key=str) == sorted(
        [
            ("POSITION", None, scene.mira, scene.quay, None),
            ("RELATIONSHIP", "rival", scene.mira, scene.odo, None),
            ("INVOLVEMENT", "witness", scene.mira, fire, 1),
            ("AWARENESS", "heard", scene.odo, fire, 2),
        ],
        key=str,
    )
    assert [each["isDirected"] for each in found["edges"]] == [True] * 4
    assert (found["truncated"], found["resolvedAt"]) == (False, None)
    whole = await graph(caller, scene)
    assert {each["id"] for each in whole["nodes"]} == {scene.mira, scene.odo, scene.quay, fire}
    assert {each["distance"] for each in whole["nodes"]} == {None}
    assert [each["id"] for each in whole["edges"]] == [each["id"] for each in found["edges"]]


async def test_a_graph_is_of_a_moment_and_of_what_a_character_knows(caller: Caller) -> None:
    """Rules J6, J17, J18."""
    scene, fire = await told(caller)
    then = await graph(caller, scene, asOf={"logPosition": 0})
    assert then["edges"] == []
    assert then["resolvedAt"]["logPosition"] == 0
    to_odo = await graph(caller, scene, perspective=scene.odo)
    assert {each["id"] for each in to_odo["nodes"]} == {scene.odo, scene.mira, fire}
    assert {each["kind"] for each in to_odo["edges"]} == {"AWARENESS", "INVOLVEMENT"}
    to_mira = await graph(caller, scene, perspective=scene.mira)
    assert {each["id"] for each in to_mira["nodes"]} == {scene.mira, scene.odo, scene.quay}

    async def known(perspective: str | None, as_of: Any = None) -> Any:
        given = {"branch": scene.branch, "perspective": perspective, "asOf": as_of}
        branch = (await caller.ask(KNOWN, given, "Known"))["branch"]
        titles = [each["title"] for each in branch["happenings"]["nodes"]]
        return titles, branch["happenings"]["totalCount"], branch["lore"]["totalCount"]

    assert await known(None) == (["Fire"], 1, 0)
    assert await known(scene.odo) == (["Fire"], 1, 0)
    assert await known(scene.mira) == ([], 0, 0)
    assert await known(scene.odo, {"logPosition": 0}) == ([], 0, 0)


async def test_paths_lead_from_one_node_to_another(caller: Caller) -> None:
    """Rule J20."""
    scene, fire = await told(caller)

    async def paths(start: str, end: str) -> Any:
        given = {"branch": scene.branch, "from": start, "to": end}
        return (await caller.ask(GRAPH, given, "Paths"))["branch"]["paths"]

    places = {"id": scene.quay, "label": "Quay"}
    mira, odo = {"id": scene.mira, "label": "Mira"}, {"id": scene.odo, "label": "Odo"}
    there, knows = {"kind": "POSITION", "label": None}, {"kind": "AWARENESS", "label": "heard"}
    assert await paths(scene.quay, scene.odo) == [
        {
            "length": 2,
            "nodes": [places, mira, odo],
            "edges": [there, {"kind": "RELATIONSHIP", "label": "rival"}],
        },
        {
            "length": 3,
            "nodes": [places, mira, {"id": fire, "label": "Fire"}, odo],
            "edges": [there, {"kind": "INVOLVEMENT", "label": "witness"}, knows],
        },
    ]
    other = await make_scene(caller)
    assert await paths(scene.quay, other.quay) == []


async def test_neighbours_are_one_step_away(caller: Caller) -> None:
    """Rule J16."""
    scene, _ = await told(caller)

    async def neighbours(**given: Any) -> Any:
        return (await caller.ask(NEIGHBOURS, {"id": scene.mira, **given}))["node"]["neighbours"]

    found = await neighbours()
    assert sorted(each["label"] for each in found["nodes"]) == ["Fire", "Odo", "Quay"]
    assert {each["distance"] for each in found["nodes"]} == {1}
    assert len(found["edges"]) == 3
    assert (found["truncated"], found["truncatedBy"]) == (False, None)
    assert (await neighbours(direction="IN"))["nodes"] == []
    assert [each["label"] for each in (await neighbours(kinds=["LOCATION"]))["nodes"]] == ["Quay"]


REFUSED = {
    "graph(depth: 7)": ("OUT_OF_RANGE", "depth"),
    "graph(depth: -1)": ("OUT_OF_RANGE", "depth"),
    "graph(first: 1001)": ("OUT_OF_RANGE", "first"),
    'graph(around: ["\\u0000"])': ("INVALID_TEXT", "around.0"),
    'graph(perspective: "char_1")': ("NOT_FOUND", "perspective"),
    'graph(perspective: "\\u0000")': ("NOT_FOUND", "perspective"),
    "graph(asOf: { logPosition: 99 })": ("OUT_OF_RANGE", "asOf.logPosition"),
    'paths(from: "a", to: "b", maxDepth: 31)': ("OUT_OF_RANGE", "maxDepth"),
    'paths(from: "a", to: "b", first: 21)': ("OUT_OF_RANGE", "first"),
    'paths(from: "\\u0000", to: "b")': ("INVALID_TEXT", "from"),
    'happenings(perspective: "char_1")': ("NOT_FOUND", "perspective"),
}


@pytest.mark.parametrize("asked", REFUSED)
async def test_what_cannot_be_walked_is_refused(caller: Caller, asked: str) -> None:
    """Rules J1, J19."""
    scene = await make_scene(caller)
    shown = "{ totalCount }" if asked.startswith("happenings") else "{ edges { id } }"
    query = f"query ($id: ID!) {{ branch(id: $id) {{ found: {asked} {shown} }} }}"
    (error,) = (await caller.post(query, {"id": scene.branch})).body["errors"]
    assert (error["extensions"]["code"], error["extensions"]["argument"]) == REFUSED[asked]
