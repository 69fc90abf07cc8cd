"""Random sequences of everything that can be done to a tree: the rules hold after each step.

Source: spec soul-mirror, section 2, the four invariants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.engine import Database
from db.enums import NodeStatus, NodeType, Realm, RunStatus
from db.paging import FIRST_PAGE
from db.reading import Writing
from db.tables import MirrorTree
from services import mirrors, runs
from services.access import Viewer
from services.errors import DomainError
from services.runs import records
from tests.conftest import People
from tests.factories import make_tree
from tests.trees import above, events_of, fetch, tree_now

PROVIDER: dict[str, Any] = {"provider": "demo", "model": None}
HOLDER = "a server of the tests"
# What a step may be refused for, as the things it is tried on are chosen blindly.
ALLOWED = {
    "ask": {"PARENT_NOT_ADOPTED", "BAD_PARENT_KIND"},
    "continue": {"PARENT_NOT_ADOPTED", "BAD_PARENT_KIND"},
    "regenerate": {"NOT_A_QUESTION"},
    "adopt": {"BAD_PARENT_KIND"},
    "edit": set(),
    "canonize": {"BAD_PARENT_KIND", "ALREADY_CANON"},
    "correct": {"NOT_CANON"},
    "transplant": set(),
    "prune": set(),
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted(ALLOWED)), st.integers(0, 10_000)), max_size=14)


async def answered(writing: Writing, run_id: str) -> str:
    """What a server does with a queued run; the id of what was written."""
    run = await records.take_next_run(writing, HOLDER, "demo", 60)
    assert run is not None
    assert run.id == run_id
    assert run.node_id is not None
    await records.end_run(
        writing,
        run,
        HOLDER,
        status=RunStatus.SUCCEEDED,
        node_status=NodeStatus.SOLIDIFIED,
        content=f"Answer of {run_id}.",
        reasoning="",
        model="test",
    )
    return run.node_id


@dataclass
class Story:
    """A tree, and what its log must say by now."""

    database: Database
    viewer: Viewer
    tree: MirrorTree
    log: list[tuple[str, str | None]] = field(default_factory=list)

    async def nodes(self) -> dict[str, dict[str, Any]]:
        sql = "SELECT * FROM tree_nodes WHERE tree_id = $1 ORDER BY created_at, id"
        async with self.database.reading() as reading:
            rows = await reading._connection.fetch(sql, self.tree.id)
        return {row["id"]: dict(row) for row in rows}

    async def canon(self) -> list[Any]:
        sql = "SELECT * FROM canonizations WHERE tree_id = $1 ORDER BY confirmed_at, id"
        return await fetch(self.database, sql, self.tree.id)

    async def step(self, name: str, on: str, entry: str | None, parent: str | None) -> None:
        """One step on a node; what it must leave in the log is added to `log`."""
        log: list[tuple[str, str | None]] = []
        async with self.database.writing() as writing:
            viewer = self.viewer
            if name in ("ask", "regenerate", "continue"):
                gone_on_from: str | None = on
                if name == "ask":
                    question, run = await runs.ask_tree(
                        writing, viewer, self.tree.id, on, "And?", **PROVIDER
                    )
                    log.append(("node_planted", question.id))
                elif name == "regenerate":
                    run = await runs.regenerate_answer(writing, viewer, on, **PROVIDER)
                    gone_on_from = parent
                else:
                    run = await runs.continue_node(writing, viewer, on, **PROVIDER)
                new = await answered(writing, run.id)
                log += [("node_planted", new), ("node_finished", new)]
                if entry == gone_on_from:
                    log.append(("entry_moved", new))
            elif name == "adopt":
                await mirrors.adopt_node(writing, viewer, on)
                log.append(("entry_moved", on))
            elif name == "edit":
                node = await mirrors.edit_node(writing, viewer, on, "Edited.")
                log.append(("node_planted", node.id))
            elif name == "canonize":
                await mirrors.canonize_path(writing, viewer, on, Realm.REALITY)
                log.append(("path_canonized", on))
            elif name == "correct":
                node, (record,) = await mirrors.correct_node(writing, viewer, on, "Right.")
                assert record.endpoint_node_id == node.id
                log += [("node_planted", node.id), ("path_canonized", node.id)]
            elif name == "transplant":
                await mirrors.transplant_tree(writing, viewer, on, "Grown")
                log.append(("tree_transplanted", on))
            else:
                _, pruning = await mirrors.prune_tree(
                    writing, viewer, self.tree.id, [on], is_dry_run=False
                )
                if pruning.removed_count:
                    log.append(("tree_pruned", None))
        self.log += log


@given(steps=STEPS)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_the_rules_hold_whatever_is_done(
    database: Database, people: People, steps: list[tuple[str, int]]
) -> None:
    """Rules M1, M2, M3, M4, M9, M14, M16."""
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        question, run = await runs.ask_tree(
            writing, people.owner, tree.id, None, "First?", **PROVIDER
        )
        first = await answered(writing, run.id)
    story = Story(database, people.owner, tree)
    story.log = [
        ("node_planted", question.id),
        ("node_planted", first),
        ("node_finished", first),
        ("entry_moved", first),
    ]
    for name, place in steps:
        nodes, canon = await story.nodes(), await story.canon()
        entry = (await tree_now(database, people.owner, tree)).working_entry_node_id
        on = list(nodes)[place % len(nodes)]
        adopted = above(_rows(nodes), entry)
        try:
            await story.step(name, on, entry, nodes[on]["parent_node_id"])
        except DomainError as error:
            is_allowed = error.code in ALLOWED[name]
        else:
            is_allowed = True
        assert is_allowed
        await check(story, name, nodes, canon, adopted)


def _rows(nodes: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return list(nodes.values())


async def check(
    story: Story,
    name: str,
    before: dict[str, dict[str, Any]],
    canon_before: list[Any],
    adopted: set[str],
) -> None:
    """Compare what there is with what there was before a step."""
    nodes, canon = await story.nodes(), await story.canon()
    # 1: nothing that is final changes; only pruning removes, and never what is adopted.
    assert all(nodes[each] == before[each] for each in before if each in nodes)
    gone = before.keys() - nodes.keys()
    assert name == "prune" or not gone
    assert gone & adopted == set()
    # 2: what was asked hangs on what was adopted; kinds alternate.
    for each in nodes.keys() - before.keys():
        if name in ("ask", "continue"):
            assert nodes[each]["parent_node_id"] in adopted | (nodes.keys() - before.keys())
    for each in nodes.values():
        above_it = nodes.get(each["parent_node_id"] or "")
        is_answer = each["node_type"] == NodeType.CANDIDATE_ANSWER
        if above_it is None:
            assert (each["parent_node_id"], each["node_type"]) == (None, NodeType.QUESTION)
        else:
            assert (above_it["node_type"] == NodeType.QUESTION) is is_answer
        earlier = each["supersedes_node_id"]
        assert earlier is None or nodes[earlier]["parent_node_id"] == each["parent_node_id"]
    # 3 and 4: canon only grows, by canonizing and correcting, and stands.
    assert canon[: len(canon_before)] == canon_before
    assert name in ("canonize", "correct") or canon == canon_before
    async with story.database.reading() as reading:
        (page,) = await mirrors.CANONIZATIONS_OF_TREES.pages(
            reading, [story.tree.id], FIRST_PAGE, **story.viewer.parameters
        )
        assert len(page.nodes) == len(canon)
        assert all(await mirrors.intact_flags(reading, story.viewer, page.nodes))
    # The log has no gaps and says what was done, no more and no less.
    stored = await events_of(story.database, story.tree)
    assert stored == [(seq, *event) for seq, event in enumerate(story.log, start=1)]
    tree = await tree_now(story.database, story.viewer, story.tree)
    assert tree.last_seq == len(story.log)
    assert tree.working_entry_node_id in nodes
