"""Communities and central nodes as front ends see them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.callers import Caller, Json
from tests.e2e.entity_documents import ENTITY_CHANGES
from tests.e2e.ways_back_documents import tell_story

FIGURES = """
query Figures(
  $branch: ID!, $asOf: AsOfInput, $perspective: ID, $edgeKinds: [EdgeKind!],
  $kinds: [GraphNodeKind!], $by: CentralityKind! = DEGREE, $first: Int! = 20
) {
  branch(id: $branch) {
    communities(
      asOf: $asOf, perspective: $perspective, edgeKinds: $edgeKinds, kinds: $kinds, first: $first
    ) {
      communityCount nodeCount edgeCount modularity isConverged
      communities { id size nodes(first: 2) { id label kind distance node { id } } }
      resolvedAt { logPosition }
    }
    centrality(
      by: $by, asOf: $asOf, perspective: $perspective, edgeKinds: $edgeKinds, kinds: $kinds,
      first: $first
    ) {
      by nodeCount edgeCount
      nodes { figure node { label } }
      resolvedAt { logPosition }
    }
  }
}
"""
NAMES = ["Ada", "Bo", "Cid", "Dee", "Eva", "Flo"]
TIES = ["Ada Bo", "Bo Cid", "Ada Cid", "Dee Eva", "Eva Flo", "Dee Flo", "Cid Dee"]


async def make_circles(caller: Caller) -> tuple[str, dict[str, str]]:
    """Two circles of three people, of whom one knows one of the other."""
    # The story's lead has this key.
    keys = ["mira", *NAMES[1:]]
    cast = [
        {"key": key, "kind": "CHARACTER", "name": name}
        for key, name in zip(keys, NAMES, strict=True)
    ]
    told = await tell_story(caller, "Fog.", cast=cast, lore=[])
    query = "query ($id: ID!) { branch(id: $id) { entities(first: 9) { nodes { id name } } } }"
    found = (await caller.ask(query, {"id": told.branch}))["branch"]["entities"]["nodes"]
    ids = {each["name"]: each["id"] for each in found}
    return told.branch, ids


async def tie(caller: Caller, branch: str, ids: dict[str, str]) -> int:
    """What one sees in another; the head behind the last but one."""
    heads = []
    for each in TIES:
        one, other = each.split()
        given = {"subjectId": ids[one], "objectId": ids[other], "kind": "a friend"}
        made = (await caller.ask(ENTITY_CHANGES, {"input": given}, "RelationshipSet"))[
            "relationshipSet"
        ]
        assert made["errors"] == []
        heads.append(made["branch"]["head"])
    return int(heads[-2])


async def ask(caller: Caller, branch: str, **variables: Any) -> Json:
    found = await caller.ask(FIGURES, {"branch": branch, **variables})
    return dict(found["branch"])


async def refused(caller: Caller, branch: str, field: str) -> tuple[str, str]:
    text = f"query ($id: ID!) {{ branch(id: $id) {{ {field} }} }}"
    answer = await caller.post(text, {"id": branch})
    (error,) = answer.body["errors"]
    return error["extensions"]["code"], error["message"]


async def test_circles_and_who_holds_them_together(caller: Caller) -> None:
    """Rules J50, J51, J53, J54."""
    branch, ids = await make_circles(caller)
    before = await tie(caller, branch, ids)
    found = await ask(caller, branch)
    divided = found["communities"]
    circles = divided.pop("communities")
    assert divided == {
        "communityCount": 2,
        "nodeCount": 6,
        "edgeCount": 7,
        "modularity": pytest.approx(6 / 7 - 0.5),
        "isConverged": True,
        "resolvedAt": None,
    }
    by_id = sorted(ids.values())
    names = {each: name for name, each in ids.items()}
    groups = [set(NAMES[:3]), set(NAMES[3:])]
    assert sorted([each["size"] for each in circles]) == [3, 3]
    for circle in circles:
        (group,) = [each for each in groups if names[circle["id"]] in each]
        members = [each for each in by_id if names[each] in group]
        assert circle["id"] == members[0]
        assert circle["nodes"] == [
            {
                "id": each,
                "label": names[each],
                "kind": "CHARACTER",
                "distance": None,
                "node": {"id": each},
            }
            for each in members[:2]
        ]
    central = found["centrality"]
    ends = [name for name in map(names.get, by_id) if name in ("Cid", "Dee")]
    others = [name for name in map(names.get, by_id) if name not in ends]
    assert (central["by"], central["nodeCount"], central["edgeCount"]) == ("DEGREE", 6, 7)
    assert [(each["node"]["label"], each["figure"]) for each in central["nodes"]] == [
        *((name, 3) for name in ends),
        *((name, 2) for name in others),
    ]
    found = await ask(caller, branch, by="BETWEENNESS", first=3)
    assert [(each["node"]["label"], each["figure"]) for each in found["centrality"]["nodes"]] == [
        *((name, pytest.approx(0.6)) for name in ends),
        (others[0], 0),
    ]
    then = await ask(caller, branch, asOf={"logPosition": before}, by="BETWEENNESS")
    assert then["communities"]["edgeCount"] == 6
    assert then["communities"]["modularity"] == 0.5
    assert {each["figure"] for each in then["centrality"]["nodes"]} == {0}
    for each in then.values():
        assert each["resolvedAt"] == {"logPosition": before}


async def test_only_what_is_asked_for_and_known_counts(caller: Caller) -> None:
    """Rule J50."""
    branch, ids = await make_circles(caller)
    await tie(caller, branch, ids)
    found = await ask(caller, branch, edgeKinds=["POSITION"])
    assert found["communities"]["communityCount"] == found["communities"]["nodeCount"] == 6
    found = await ask(caller, branch, kinds=["LOCATION"])
    assert (found["communities"]["nodeCount"], found["centrality"]["nodes"]) == (0, [])
    found = await ask(caller, branch, perspective=ids["Cid"])
    assert (found["communities"]["edgeCount"], found["centrality"]["edgeCount"]) == (1, 1)
    shown = {each["node"]["label"] for each in found["centrality"]["nodes"]}
    assert shown >= {"Cid", "Dee"}
    assert shown.isdisjoint({"Eva", "Flo"})


@pytest.mark.parametrize(
    ("field", "argument"),
    [
        ("communities(first: 201) { nodeCount }", "first"),
        ("communities(first: -1) { nodeCount }", "first"),
        ("communities(maxIterations: 0) { nodeCount }", "maxIterations"),
        ("communities(maxIterations: 1001) { nodeCount }", "maxIterations"),
        ("centrality(by: DEGREE, first: 201) { nodeCount }", "first"),
        ("communities { communities { nodes(first: 1001) { id } } }", "first"),
    ],
)
async def test_sizes_have_their_range(caller: Caller, field: str, argument: str) -> None:
    """Rule J56."""
    branch, _ = await make_circles(caller)
    code, message = await refused(caller, branch, field)
    assert code == "OUT_OF_RANGE"
    assert message.startswith(f"{argument} lies between ")


WORLD_CHANGES = """
mutation Create { worldCreate(input: { name: "Sea" }) { world { id } errors { code path } } }
mutation Fill($input: WorldUpsertInput!) {
  worldUpsert(input: $input) { keys { key id } errors { code path } }
}
query Figures($id: ID!, $edgeKinds: [String!], $kinds: [WorldEntityKind!], $validAt: Long) {
  world(id: $id) {
    communities(edgeKinds: $edgeKinds, kinds: $kinds, validAt: $validAt) {
      communityCount nodeCount edgeCount modularity isConverged
      communities { id size nodes(first: 1) { id label kind distance node { name } } }
    }
    centrality(
      by: BETWEENNESS, first: 2, edgeKinds: $edgeKinds, kinds: $kinds, validAt: $validAt
    ) { by nodeCount edgeCount nodes { figure node { label } } }
  }
}
"""


async def test_a_world_has_circles_too(caller: Caller) -> None:
    """Rule J50."""
    made = await caller.ask(WORLD_CHANGES, {}, "Create")
    world = made["worldCreate"]["world"]["id"]
    entities = [{"key": each, "kind": "CHARACTER", "name": each} for each in NAMES]
    relations = [
        {"sourceKey": each.split()[0], "targetKey": each.split()[1], "kind": "ally"}
        for each in TIES
    ]
    relations[-1] |= {"kind": "rival", "validFrom": 0, "validUntil": 10}
    given = {"worldId": world, "entities": entities, "relations": relations}
    filled = (await caller.ask(WORLD_CHANGES, {"input": given}, "Fill"))["worldUpsert"]
    assert filled["errors"] == []
    ids = {each["key"]: each["id"] for each in filled["keys"]}

    async def figures(**asked: Any) -> Json:
        found = await caller.ask(WORLD_CHANGES, {"id": world, **asked}, "Figures")
        return dict(found["world"])

    found = await figures()
    circles = found["communities"].pop("communities")
    assert found["communities"] == {
        "communityCount": 2,
        "nodeCount": 6,
        "edgeCount": 7,
        "modularity": pytest.approx(6 / 7 - 0.5),
        "isConverged": True,
    }
    groups = [NAMES[:3], NAMES[3:]]
    assert sorted((each["id"], each["size"]) for each in circles) == sorted(
        (min(ids[name] for name in group), 3) for group in groups
    )
    (shown,) = circles[0]["nodes"]
    assert (shown["label"], shown["kind"], shown["distance"]) == (
        shown["node"]["name"],
        "CHARACTER",
        None,
    )
    central = found["centrality"]
    assert (central["by"], central["nodeCount"], central["edgeCount"]) == ("BETWEENNESS", 6, 7)
    assert {each["node"]["label"]: each["figure"] for each in central["nodes"]} == {
        "Cid": pytest.approx(0.6),
        "Dee": pytest.approx(0.6),
    }
    for asked in ({"validAt": 10}, {"edgeKinds": ["ally"]}):
        assert (await figures(**asked))["communities"]["edgeCount"] == 6
    assert (await figures(kinds=["EVENT"]))["communities"]["nodeCount"] == 0
    for field in (
        "communities(first: 201) { nodeCount }",
        "centrality(by: DEGREE, first: -1) { by }",
    ):
        text = f"query ($id: ID!) {{ world(id: $id) {{ {field} }} }}"
        assert (await caller.post(text, {"id": world})).codes == ["OUT_OF_RANGE"]
