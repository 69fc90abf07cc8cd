"""A character that goes on by itself, and runs in trees that grew from other trees."""

from __future__ import annotations

from db.engine import Database
from db.enums import NodeStatus, NodeType, RunStatus
from db.tables import MirrorTree, Run, TreeNode
from services import mirrors, runs
from services.access import Viewer, require_row
from services.providers import Finished, TextPart, Usage
from services.runs.prompting import GO_ON
from tests.conftest import People
from tests.services.runs.servers import ScriptedProvider, Server, a_server, until
from tests.trees import Grown, events_of, grown, tree_now


async def ended(server: Server, viewer: Viewer, run: Run) -> TreeNode:
    """What a run has written, once it has ended well."""

    async def found() -> Run:
        async with server.database.reading() as reading:
            return await require_row(reading, viewer, Run, run.id)

    async def is_over() -> bool:
        return (await found()).ended_at is not None

    await until(is_over)
    run = await found()
    assert (run.status, run.error_code) == (RunStatus.SUCCEEDED, None)
    assert run.node_id is not None
    async with server.database.reading() as reading:
        return await require_row(reading, viewer, TreeNode, run.node_id)


async def go_on(server: Server, viewer: Viewer, node_id: str) -> TreeNode:
    async with server.database.writing() as writing:
        run = await runs.continue_node(writing, viewer, node_id, provider="scripted", model=None)
    return await ended(server, viewer, run)


async def ask(
    server: Server, viewer: Viewer, tree: MirrorTree, parent_id: str | None
) -> tuple[TreeNode, TreeNode]:
    async with server.database.writing() as writing:
        question, run = await runs.ask_tree(
            writing, viewer, tree.id, parent_id, "And?", provider="scripted", model=None
        )
    return question, await ended(server, viewer, run)


def prompted(server: Server, place: int = -1) -> list[tuple[str, str]]:
    """What the provider was told, without the character's identity."""
    messages = server.provider.answers[place].request.messages
    return [(each.role, each.text) for each in messages if each.role != "system"]


TALK = [
    ("user", "First?"),
    ("assistant", "The chosen answer."),
    ("user", "Second?"),
    ("assistant", "The last answer."),
]


async def test_a_continued_thought_stands_below_its_answer_and_is_the_entry(
    dsn: str, database: Database, people: People
) -> None:
    """Rule M8."""
    tree = await grown(database, people)
    async with a_server(dsn) as server:
        thought = await go_on(server, people.owner, tree.last.id)
        assert (thought.node_type, thought.parent_node_id) == (
            NodeType.CONTINUED_THOUGHT,
            tree.last.id,
        )
        assert (thought.status, thought.content) == (NodeStatus.SOLIDIFIED, "Yes, always.")
        assert thought.reasoning == "Hm."
        assert prompted(server) == [*TALK, ("user", GO_ON)]
        now = await tree_now(database, people.owner, tree.tree)
        assert now.working_entry_node_id == thought.id
        assert (await events_of(database, tree.tree))[4:] == [
            (5, "node_planted", thought.id),
            (6, "node_finished", thought.id),
            (7, "entry_moved", thought.id),
        ]
        # It is an answer like others: gone on from, asked under, edited, adopted.
        further = await go_on(server, people.owner, thought.id)
        assert (further.node_type, further.parent_node_id) == (
            NodeType.CONTINUED_THOUGHT,
            thought.id,
        )
        assert prompted(server) == [*TALK, ("assistant", "Yes, always."), ("user", GO_ON)]
        question, answer = await ask(server, people.owner, tree.tree, thought.id)
        assert (question.parent_node_id, answer.node_type) == (thought.id, "candidate_answer")
        assert prompted(server) == [*TALK, ("assistant", "Yes, always."), ("user", "And?")]
        async with database.writing() as writing:
            edited = await mirrors.edit_node(writing, people.owner, further.id, "Edited.")
            now = await mirrors.adopt_node(writing, people.owner, edited.id)
    assert (edited.node_type, edited.parent_node_id) == (NodeType.CONTINUED_THOUGHT, thought.id)
    assert now.working_entry_node_id == edited.id


async def test_going_on_twice_makes_two_thoughts_and_leaves_the_first_the_entry(
    dsn: str, database: Database, people: People
) -> None:
    tree = await grown(database, people)
    async with a_server(dsn) as server:
        first = await go_on(server, people.owner, tree.last.id)
        second = await go_on(server, people.owner, tree.last.id)
    assert first.parent_node_id == second.parent_node_id == tree.last.id
    assert first.id != second.id
    now = await tree_now(database, people.owner, tree.tree)
    assert now.working_entry_node_id == first.id


async def test_a_thought_that_is_cut_is_partial_and_no_entry(
    dsn: str, database: Database, people: People
) -> None:
    tree = await grown(database, people)
    cut = ScriptedProvider(TextPart("text", "Half a"), Finished("length", Usage(1, 1, 0), "m"))
    async with a_server(dsn, cut) as server:
        thought = await go_on(server, people.owner, tree.last.id)
    assert (thought.status, thought.content) == (NodeStatus.PARTIAL, "Half a")
    now = await tree_now(database, people.owner, tree.tree)
    assert now.working_entry_node_id == tree.last.id


async def transplanted(database: Database, viewer: Viewer, tree: Grown) -> MirrorTree:
    async with database.writing() as writing:
        return await mirrors.transplant_tree(writing, viewer, tree.last.id, "Elsewhere")


async def test_a_model_is_told_what_was_said_before_the_transplant(
    dsn: str, database: Database, people: People
) -> None:
    """Rule M12. Over two generations."""
    tree = await grown(database, people)
    second = await transplanted(database, people.owner, tree)
    async with a_server(dsn) as server:
        _, answer = await ask(server, people.owner, second, None)
        assert prompted(server) == [*TALK, ("user", "And?")]
        async with database.writing() as writing:
            third = await mirrors.transplant_tree(writing, people.owner, answer.id, "Further")
        _, last = await ask(server, people.owner, third, None)
        told = [*TALK, ("user", "And?"), ("assistant", "Yes, always."), ("user", "And?")]
        assert prompted(server) == told
        await go_on(server, people.owner, last.id)
        assert prompted(server) == [*told, ("assistant", "Yes, always."), ("user", GO_ON)]
    assert (await tree_now(database, people.owner, tree.tree)).working_entry_node_id == tree.last.id


async def test_what_an_open_run_works_on_is_not_pruned(
    dsn: str, database: Database, people: People
) -> None:
    """Rule M14."""
    tree = await grown(database, people)
    provider = ScriptedProvider(is_held=True)
    async with a_server(dsn, provider) as server:
        async with database.writing() as writing:
            edited = await mirrors.edit_node(writing, people.owner, tree.second.id, "Better?")
            run = await runs.regenerate_answer(
                writing, people.owner, edited.id, provider="scripted", model=None
            )
            await mirrors.adopt_node(writing, people.owner, tree.other.id)
        answer = await provider.begun()
        async with database.writing() as writing:
            _, pruning = await mirrors.prune_tree(
                writing, people.owner, tree.tree.id, [], is_dry_run=False
            )
        # The question stays, what it is a version of and what both hang on; the old answer goes.
        assert pruning == mirrors.Pruning(1, [tree.last.id], 7)
        for part in (TextPart("text", "Here."), Finished("stop", Usage(1, 1, 0), "m")):
            answer.script.put_nowait(part)
        node = await ended(server, people.owner, run)
        assert (node.parent_node_id, node.content) == (edited.id, "Here.")
        now = await tree_now(database, people.owner, tree.tree)
        assert now.working_entry_node_id == tree.other.id
