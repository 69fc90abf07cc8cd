from __future__ import annotations

import random

import networkx as nx

from db.enums import EdgeDirection, NodeStatus, NodeType, Realm, TruncationReason
from db.paging import PageRequest
from db.tables import Canonization, MirrorTree, TreeNode, World
from services import graphs, mirrors, worlds
from services.graphs import Wanted
from tests.factories import make_character
from tests.services.worlds.made import LOCATION, Made, made, make_world

__all__ = ["made"]


async def test_walks_and_paths_are_those_of_a_library(made: Made) -> None:
    """Rule O17."""
    chance = random.Random(5)
    nodes = [str(number) for number in range(60)]
    ties = {
        (one, other): chance.choice([0.5, 1.0, 2.0, 4.0])
        for one, other in (chance.sample(range(60), 2) for _ in range(110))
    }
    done = await made.change(
        worlds.upsert,
        made.id,
        [worlds.NewEntity(each, {"kind": "character", "name": f"N {each}"}) for each in nodes],
        [
            worlds.NewRelation(str(one), str(other), {"kind": "to", "weight": weight})
            for (one, other), weight in ties.items()
        ],
    )
    ids = {each.key: each.id for each in done.ids}
    oracle = nx.DiGraph()
    oracle.add_nodes_from(ids.values())
    for (one, other), weight in ties.items():
        oracle.add_edge(ids[str(one)], ids[str(other)], cost=1 / weight)
    async with made.database.reading() as reading:
        source = worlds.WorldSource(reading, made.owner)
        for direction, graph in (
            (EdgeDirection.OUT, oracle),
            (EdgeDirection.IN, oracle.reverse()),
            (EdgeDirection.BOTH, oracle.to_undirected()),
        ):
            wanted = Wanted(direction=direction)
            (walk,) = await graphs.walk(source, [[ids["7"]]], wanted, depth=3, first=100)
            lengths = nx.single_source_shortest_path_length(graph, ids["7"], cutoff=3)
            assert {each.node.id: each.distance for each in walk.nodes} == lengths
            assert {(each.source, each.target) for each in walk.edges} == set(
                oracle.subgraph(lengths).edges
            )
            assert walk.truncated_by is None
        pairs = [(ids["7"], ids[str(end)]) for end in range(10)]
        paths = await graphs.find_paths(
            source,
            pairs,
            Wanted(direction=EdgeDirection.OUT),
            max_depth=30,
            first=1,
            is_weighted=True,
        )
        for (start, end), found in zip(pairs, paths, strict=True):
            assert found is not None
            if nx.has_path(oracle, start, end):
                cost = nx.shortest_path_length(oracle, start, end, weight="cost")
                assert [round(each.cost, 9) for each in found] == [round(cost, 9)]
            else:
                assert found == []
        strange = worlds.WorldSource(reading, made.stranger)
        assert await strange.nodes(list(ids.values())) == {}
        assert (await strange.steps(list(ids.values()), Wanted(), 99)).ends == {}
        assert await strange.first_nodes([made.id], Wanted(), 99) == [[]]


async def test_kinds_moments_and_directions_say_what_counts(made: Made) -> None:
    """Rules O17, O10."""
    for name in ("Mira", "Odo", "Ana", "Odo again"):
        await made.add(name)
    await made.add("Quay", LOCATION)
    await made.tie("Mira", "Odo", "knows", valid_from=10, valid_until=20)
    await made.tie("Ana", "Mira", "sibling", is_directed=False)
    await made.tie("Mira", "Quay", "lives at")
    await made.change(worlds.merge_world_entities, made.ids["Odo"], made.ids["Odo again"])

    async def near(valid_at: int | None = None, depth: int = 1, **wanted: object) -> set[str]:
        async with made.database.reading() as reading:
            source = worlds.WorldSource(reading, made.owner, valid_at)
            start = [[made.ids["Mira"]]]
            (walk,) = await graphs.walk(
                source,
                start,
                Wanted(**wanted),
                depth=depth,
                first=9,  # type: ignore[arg-type]
            )
        return {each.node.label for each in walk.nodes} - {"Mira"}

    assert await near() == {"Odo", "Ana", "Quay"}
    assert await near(valid_at=9) == await near(valid_at=20) == {"Ana", "Quay"}
    assert await near(valid_at=19) == {"Odo", "Ana", "Quay"}
    assert await near(direction=EdgeDirection.IN) == {"Ana"}
    assert await near(direction=EdgeDirection.OUT) == {"Odo", "Ana", "Quay"}
    assert await near(edge_kinds=frozenset({"knows"})) == {"Odo"}
    assert await near(node_kinds=frozenset({"location"})) == {"Quay"}
    assert await near(depth=0) == set()
    async with made.database.reading() as reading:
        source = worlds.WorldSource(reading, made.owner)
        (whole,) = await graphs.whole(source, [made.id], Wanted(), first=3)
    assert [each.node.label for each in whole.nodes] == ["Mira", "Odo", "Ana"]
    assert whole.truncated_by == TruncationReason.NODES


async def test_canon_of_a_world_comes_from_talk_in_it(made: Made) -> None:
    """Rule O16."""
    other = await made.change(make_world, "Boreas")
    async with made.database.writing() as writing:
        character = await make_character(writing, made.owner)
    new = (mirrors.create_tree, character.id, "Of old", Realm.WORLD)
    assert await made.refusal(*new) == ("WORLD_ID_REQUIRED", ("input", "realm"))
    assert await made.refusal(*new, "world_x") == ("NOT_FOUND", ("input", "worldId"))
    assert await made.refusal(
        mirrors.create_tree, character.id, "Of old", Realm.REALITY, other
    ) == ("REALM_MISMATCH", ("input", "worldId"))
    tree = await made.change(*new, made.id)
    assert tree.world_id == made.id
    nodes: list[TreeNode] = []
    for kind in (NodeType.QUESTION, NodeType.CANDIDATE_ANSWER):
        async with made.database.writing() as writing:
            nodes.append(
                await writing.insert(
                    TreeNode,
                    tree_id=tree.id,
                    parent_node_id=nodes[-1].id if nodes else None,
                    node_type=kind,
                    status=NodeStatus.SOLIDIFIED,
                    realm=Realm.WORLD,
                    content="So it was.",
                )
            )
    told = (mirrors.canonize_path, nodes[-1].id, Realm.WORLD)
    assert await made.refusal(*told) == ("WORLD_ID_REQUIRED", ("input", "worldId"))
    assert await made.refusal(*told, other) == ("REALM_MISMATCH", ("input", "worldId"))
    first = await made.change(*told, made.id)
    assert (first.world_id, first.scope) == (made.id, "world")
    await made.change(mirrors.correct_node, nodes[-1].id, "So it was not.")
    grown = await made.change(mirrors.transplant_tree, nodes[-1].id, "Further")
    assert grown.world_id == made.id
    async with made.database.reading() as reading:
        (page,) = await mirrors.CANON_OF_WORLDS.pages(
            reading, [made.id], PageRequest(), **made.owner.parameters
        )
    assert [each.corrects_canonization_id for each in page.nodes] == [None, first.id]
    assert (await made.row(World, made.id)).canon_version == 2
    await made.change(worlds.delete_world, made.id)
    made.id = other
    assert (await made.row(MirrorTree, tree.id)).world_id is None
    assert (await made.row(Canonization, first.id)).world_id == first.world_id
