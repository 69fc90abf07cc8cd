"""The generator and the equality that measuring relies on; nothing is timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import asyncpg
import pytest

from bench import branch_pages, generator
from bench.generator import NODES_PER_TREE
from bench.servers import HAND_WRITTEN, MIRRORGRAPH
from bench.servers import serving as serving_contender
from bench.shapes import Shape
from bench.stage import staged
from bench.workloads import RUN_EVENTS, TREE_ASK, TREE_CREATE, W1, W2
from db.engine import Database, open_database
from tests.acceptance import document
from tests.clusters import Cluster

TABLES = ("mirror_trees", "tree_nodes", "citations")


async def rows(dsn: str, table: str) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [dict(row) for row in await connection.fetch(f"SELECT * FROM {table} ORDER BY id")]
    finally:
        await connection.close()


@pytest.mark.parametrize(("nodes", "sizes"), [(1, [1]), (1000, [1000]), (2345, [345, 1000, 1000])])
async def test_exactly_so_many_nodes(
    database: Database, dsn: str, nodes: int, sizes: list[int]
) -> None:
    heard: list[int] = []
    character = await generator.fill(database, nodes, progress=heard.append)
    assert heard[-1] == nodes
    trees, stored, citations = [await rows(dsn, table) for table in TABLES]
    assert {tree["character_id"] for tree in trees} == {character}
    by_tree = Counter(node["tree_id"] for node in stored)
    assert sorted(by_tree.values()) == sizes
    assert max(sizes) <= NODES_PER_TREE
    answers = {node["id"] for node in stored if node["node_type"] == "candidate_answer"}
    assert len(answers) == nodes // 2
    quoting = Counter(citation["node_id"] for citation in citations)
    assert quoting == dict.fromkeys(answers, 2)
    contents = {node["id"]: node["content"] for node in stored}
    kinds = {node["id"]: node["node_type"] for node in stored}
    for node in stored:
        if node["parent_node_id"] is not None:
            assert kinds[node["parent_node_id"]] != node["node_type"]
    for citation in citations:
        assert citation["quote"]
        assert citation["quote"] in contents[citation["source_id"]]
    # Microseconds are there, so that a page that loses them shows it.
    assert nodes == 1 or any(node["created_at"].microsecond % 1000 for node in stored)


async def test_the_same_seed_gives_the_same_trees(
    database: Database, dsn: str, cluster: Cluster
) -> None:
    await generator.fill(database, 1200, seed=5)
    other_dsn = await cluster.new_database()
    other = await open_database(other_dsn, pool_size=2, statement_timeout=10)
    try:
        await generator.fill(other, 1200, seed=5)
        for table in TABLES:
            ours, theirs = await rows(dsn, table), await rows(other_dsn, table)
            for row in (*ours, *theirs):
                row.pop("character_id", None)
            assert ours == theirs
        assert await generator.unused_seed(other) == 2
        await generator.fill(other, 10, seed=2)
        assert len(await rows(other_dsn, "tree_nodes")) == 1210
    finally:
        await other.close()
        await cluster.drop(other_dsn)


async def test_both_servers_answer_the_same(database: Database, dsn: str) -> None:
    await generator.fill(database, 1150)
    trees = [row["id"] for row in await rows(dsn, "mirror_trees")]
    async with staged(dsn) as stage:
        story = await stage.tell(Shape(60, characters=12))
        await branch_pages.embellish(stage, story.branch_id)
        pages = await branch_pages.bodies(stage, story)
    async with (
        serving_contender(MIRRORGRAPH, dsn) as ours,
        serving_contender(HAND_WRITTEN, dsn) as theirs,
    ):
        assert await branch_pages.check_equal([ours, theirs], pages) > 10_000
        for tree in trees:
            title: Any = await ours.answer(W2.body(tree))
            assert title["data"]["mirrorTree"]["topic"]
            assert await theirs.answer(W2.body(tree)) == title
            after = None
            seen = 0
            while True:
                page: Any = await ours.answer(W1.body(tree, after=after))
                assert await theirs.answer(W1.body(tree, after=after)) == page
                nodes = page["data"]["mirrorTree"]["nodes"]
                seen += len(nodes["nodes"])
                after = nodes["pageInfo"]["endCursor"]
                if not nodes["pageInfo"]["hasNextPage"]:
                    break
            assert seen in {150, 1000}


def test_the_workloads_are_those_of_the_acceptance_documents() -> None:
    for name, query in (
        ("15-tree-page.graphql", W1.query),
        ("15-tree-page.graphql", W2.query),
        ("12-tree-ask.graphql", TREE_CREATE),
        ("12-tree-ask.graphql", TREE_ASK),
        ("13-run-events.graphql", RUN_EVENTS),
    ):
        assert " ".join(query.split()) in " ".join(document(name).split())
