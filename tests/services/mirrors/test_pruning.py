"""Pruning: what is kept is exactly what something alive stands on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import CitationTarget, NodeStatus, NodeType, Realm, RunStatus
from db.tables import MirrorTree, Run, RunEvent, TreeNode
from services import mirrors, runs
from services.access import require_row
from services.errors import Conflict, Invalid, LimitReached, NotFound
from services.mirrors.pruning import MAX_LISTED
from tests.conftest import People
from tests.e2e.ledgers import Ledger
from tests.factories import make_talk, make_tree
from tests.trees import (
    SHAPES,
    events_of,
    fetch,
    grow,
    grown,
    planned,
    refused,
    run_sql,
    until_somebody_waits,
)

PLACES = st.lists(st.integers(0, 10_000), max_size=2)


def modelled(rows: list[dict[str, Any]], entry: str, alive: set[str]) -> tuple[set[str], list[str]]:
    """What is kept and, in its order, what goes."""
    by_id = {row["id"]: row for row in rows}
    kept: set[str] = set()
    below = {entry}
    for row in rows:  # parents come first
        if row["parent_node_id"] in below:
            below.add(row["id"])
    buds = {row["id"] for row in rows if row["status"] is NodeStatus.BUD}
    waiting: list[str | None] = [*below, *buds, *alive]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in kept:
            kept.add(node)
            waiting += [by_id[node]["parent_node_id"], by_id[node]["supersedes_node_id"]]
    return kept, [row["id"] for row in rows if row["id"] not in kept]


async def a_run(writing: Any, tree: MirrorTree, user_id: str, **nodes: Any) -> Run:
    run: Run = await writing.insert(
        Run,
        kind="foreground",
        requested_by_user_id=user_id,
        character_id=tree.character_id,
        tree_id=tree.id,
        provider="demo",
        seed=1,
        **nodes,
    )
    await writing.insert_many(
        RunEvent,
        [
            {
                "run_id": run.id,
                "seq": 1,
                "type": "run_started",
                "visibility": "public",
                "payload": {},
                "at": run.created_at,
            }
        ],
    )
    return run


@given(
    shape=SHAPES,
    entry=st.integers(0, 10_000),
    canon=PLACES,
    grafts=PLACES,
    keep=PLACES,
    asked=PLACES,
    cited=PLACES,
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_what_is_kept_is_what_something_alive_stands_on(
    database: Database,
    people: People,
    shape: list[tuple[int, int]],
    entry: int,
    canon: list[int],
    grafts: list[int],
    keep: list[int],
    asked: list[int],
    cited: list[int],
) -> None:
    """Rule M14."""
    owner = people.owner

    def picked(places: list[int], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        fitting = [row for row in rows if row["status"] is NodeStatus.SOLIDIFIED]
        return list({(each := fitting[p % len(fitting)])["id"]: each for p in places}.values())

    async with database.writing() as writing:
        tree = await make_tree(writing, owner)
        rows = planned(tree.id, [(0, 9), (0, 9), *shape])  # a question and its answer come first
        answers = [row for row in rows if row["node_type"] is not NodeType.QUESTION]
        await writing.insert_many(TreeNode, rows)
        ids = [row["id"] for row in rows]
        # What has ended leans on nothing; what is open on the question that it is to answer.
        ended = [
            await a_run(
                writing,
                tree,
                owner.signed_in_id,
                status=RunStatus.FAILED,
                question_node_id=row["parent_node_id"],
                node_id=row["id"],
                ended_at=tree.created_at,
            )
            for row in rows
            if row["parent_node_id"] is not None
        ]
        waiting = [row["id"] for row in picked(asked, rows)]
        for each in waiting:
            await a_run(
                writing, tree, owner.signed_in_id, status=RunStatus.QUEUED, question_node_id=each
            )
        entry_id = picked([entry], answers)[0]["id"]
        await mirrors.move_working_entry(writing, tree.id, entry_id)
        records = [
            await mirrors.canonize_path(writing, owner, row["id"], Realm.REALITY)
            for row in picked(canon, answers)
        ]
        sources = [row["id"] for row in picked(grafts, rows)]
        for each in sources:
            await mirrors.transplant_tree(writing, owner, each, "Grown")
        for row in picked(cited, rows):
            await mirrors.cite(
                writing,
                owner,
                row["id"],
                CitationTarget.TEXT_RANGE,
                rows[0]["id"],
                {"start": 0, "end": 4},
            )
    named = [ids[place % len(ids)] for place in keep]
    alive = {*named, *sources, *waiting, *(each.endpoint_node_id for each in records)}
    kept, removed = modelled(rows, entry_id, alive)
    before = await events_of(database, tree)

    ledger = Ledger(database.dsn)
    untouched = await ledger.fingerprint()
    async with database.writing() as writing:
        _, looked = await mirrors.prune_tree(writing, owner, tree.id, named, is_dry_run=True)
    assert await ledger.fingerprint() == untouched
    async with database.writing() as writing:
        _, done = await mirrors.prune_tree(writing, owner, tree.id, named, is_dry_run=False)
    assert looked == done == mirrors.Pruning(len(removed), removed, len(kept))

    of_tree = "FROM tree_nodes WHERE tree_id = $1 ORDER BY created_at, id"
    left = [each for (each,) in await fetch(database, f"SELECT id {of_tree}", tree.id)]
    assert left == [each for each in ids if each in kept]
    after = await events_of(database, tree)
    assert after == [*before, *([(len(before) + 1, "tree_pruned", None)] if removed else [])]
    quoting = await fetch(
        database,
        "SELECT node_id FROM citations WHERE node_id LIKE 'node_%' AND node_id = ANY($1)",
        ids,
    )
    assert {each for (each,) in quoting} == {row["id"] for row in picked(cited, rows)} & kept
    async with database.reading() as reading:
        found = [await require_row(reading, owner, Run, run.id) for run in ended]
        assert all(await mirrors.intact_flags(reading, owner, records)) or not records
        paths = await mirrors.paths_to_nodes(reading, owner, [entry_id])
        assert {node.id for node in paths[entry_id]} <= kept
        for run, earlier in zip(found, ended, strict=True):
            for name in ("question_node_id", "node_id"):
                was = getattr(earlier, name)
                assert getattr(run, name) == (was if was in kept else None)
    ((count,),) = await fetch(
        database, "SELECT count(*) FROM run_events WHERE run_id = ANY($1)", [e.id for e in ended]
    )
    assert count == len(ended)


async def test_a_dead_branch_goes_and_the_rest_stays(database: Database, people: People) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        edited = await mirrors.edit_node(writing, people.owner, tree.first.id, "Edited?")
    async with database.writing() as writing:
        now, looked = await mirrors.prune_tree(
            writing, people.owner, tree.tree.id, [], is_dry_run=True
        )
    assert looked == mirrors.Pruning(2, [tree.other.id, edited.id], 5)
    assert now.last_seq == 5
    async with database.writing() as writing:
        _, looked = await mirrors.prune_tree(
            writing, people.owner, tree.tree.id, [edited.id, edited.id], is_dry_run=True
        )
    assert looked == mirrors.Pruning(1, [tree.other.id], 6)
    async with database.writing() as writing:
        now, done = await mirrors.prune_tree(
            writing, people.owner, tree.tree.id, [], is_dry_run=False
        )
    assert done == mirrors.Pruning(2, [tree.other.id, edited.id], 5)
    assert (now.last_seq, now.working_entry_node_id) == (6, tree.last.id)
    assert await fetch(
        database, "SELECT arguments_json FROM audit_events WHERE action = 'tree_pruned'"
    ) == [({"removed": 2},)]


async def test_no_more_than_two_hundred_are_listed(database: Database, people: People) -> None:
    tree = await grown(database, people)
    await run_sql(
        database,
        "INSERT INTO tree_nodes (id, tree_id, parent_node_id, node_type, status, realm, content)"
        " SELECT 'node_' || lpad(i::text, 26, '0'), $1, $2, 'candidate_answer', 'solidified',"
        " 'reality', 'A' FROM generate_series(1, 300) AS i",
        tree.tree.id,
        tree.first.id,
    )
    async with database.writing() as writing:
        _, done = await mirrors.prune_tree(
            writing, people.owner, tree.tree.id, [], is_dry_run=False
        )
    assert (done.removed_count, len(done.removed_ids), done.kept_count) == (301, MAX_LISTED, 5)
    assert done.removed_ids[0] == tree.other.id


async def test_what_is_to_be_kept_is_named_rightly(database: Database, people: People) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        elsewhere = await make_talk(writing, people.owner, await make_tree(writing, people.owner))
    absent = "node_" + "0" * 26
    for keep, kind, code, path in (
        ([tree.other.id, "node"], Invalid, "MALFORMED_ID", ("keep", 1)),
        ([tree.tree.id], Invalid, "MALFORMED_ID", ("keep", 0)),
        ([tree.other.id, absent], NotFound, "NOT_FOUND", ("keep", 1)),
        ([elsewhere[0].id], NotFound, "NOT_FOUND", ("keep", 0)),
        ([tree.other.id] * 101, LimitReached, "LIMIT_REACHED", ("keep",)),
    ):
        for is_dry_run in (True, False):
            await refused(
                database,
                kind,
                code,
                ("input", *path),
                lambda writing, keep=keep, is_dry_run=is_dry_run: mirrors.prune_tree(
                    writing, people.owner, tree.tree.id, keep, is_dry_run=is_dry_run
                ),
            )


async def test_a_tree_in_which_nothing_is_adopted_is_not_pruned(
    database: Database, people: People
) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        await mirrors.add_question(writing, people.owner, tree.id, None, "Well?")
    await refused(
        database,
        Conflict,
        "NOTHING_ADOPTED",
        ("input", "treeId"),
        lambda writing: mirrors.prune_tree(writing, people.owner, tree.id, [], is_dry_run=True),
    )


@pytest.mark.parametrize("change", ["edit", "cite", "canonize", "regenerate", "transplant"])
async def test_a_change_of_what_is_pruned_meanwhile_is_refused(
    database: Database, people: People, change: str
) -> None:
    """It waits for the tree, and then finds that the node has gone."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        gone_question = await mirrors.edit_node(writing, people.owner, tree.first.id, "Edited?")
    owner, gone = people.owner, tree.other.id
    text = CitationTarget.TEXT_RANGE
    works: dict[str, Any] = {
        "edit": lambda w: mirrors.edit_node(w, owner, gone, "Edited."),
        "cite": lambda w: mirrors.cite(w, owner, gone, text, gone, {"start": 0, "end": 3}),
        "canonize": lambda w: mirrors.canonize_path(w, owner, gone, Realm.REALITY),
        "regenerate": lambda w: runs.regenerate_answer(
            w, owner, gone_question.id, provider="demo", model=None
        ),
        "transplant": lambda w: mirrors.transplant_tree(w, owner, gone, "New"),
    }

    async def work() -> None:
        async with database.writing() as writing:
            await works[change](writing)

    async with database.writing() as writing:
        await mirrors.prune_tree(writing, owner, tree.tree.id, [], is_dry_run=False)
        task = asyncio.create_task(work())
        await until_somebody_waits(database)
    with pytest.raises(NotFound):
        await task


async def test_trees_do_not_touch_each_other(database: Database, people: People) -> None:
    tree = await grown(database, people)
    async with database.writing() as writing:
        other = await grow(writing, people.owner)
        await mirrors.prune_tree(writing, people.owner, tree.tree.id, [], is_dry_run=False)
    found = await fetch(database, "SELECT id FROM tree_nodes WHERE tree_id = $1", other.tree.id)
    assert len(found) == 6
