"""Transplants: new trees that refer to where they grew from, and what a model is told of it."""

from __future__ import annotations

from db.engine import Database
from db.paging import FIRST_PAGE
from services import mirrors
from tests.conftest import People
from tests.factories import make_talk, make_tree
from tests.trees import events_of, fetch, grown


async def test_a_transplant_is_an_empty_tree_that_refers_to_its_source(
    database: Database, people: People
) -> None:
    """Rule M12."""
    tree = await grown(database, people)
    nodes = await fetch(database, "SELECT * FROM tree_nodes ORDER BY id")
    async with database.writing() as writing:
        edited = await mirrors.edit_node(writing, people.owner, tree.last.id, "Edited.")
        new = await mirrors.transplant_tree(writing, people.owner, edited.id, " Elsewhere ")
        other = await mirrors.transplant_tree(writing, people.owner, tree.second.id, "Aside")
        origins = await mirrors.transplants_into_trees(
            writing, people.owner, [new.id, other.id, tree.tree.id]
        )
        hidden = await mirrors.transplants_into_trees(writing, people.stranger, [new.id])
        (grown_from,) = await mirrors.TRANSPLANTS_OF_TREES.pages(
            writing, [tree.tree.id], FIRST_PAGE, **people.owner.parameters
        )
    assert (new.character_id, new.realm, new.status) == (
        tree.tree.character_id,
        tree.tree.realm,
        "active",
    )
    assert (new.topic, new.working_entry_node_id, new.last_seq) == (" Elsewhere ", None, 0)
    assert set(origins) == {new.id, other.id}
    origin = origins[new.id]
    assert (origin.source_tree_id, origin.source_node_id) == (tree.tree.id, edited.id)
    assert (origin.source_version, origins[other.id].source_version) == (2, 1)
    assert hidden == {}
    assert [each.new_tree_id for each in grown_from.nodes] == [new.id, other.id]
    left = await fetch(database, "SELECT * FROM tree_nodes WHERE id <> $1 ORDER BY id", edited.id)
    assert left == nodes
    assert (await events_of(database, tree.tree))[-2:] == [
        (6, "tree_transplanted", edited.id),
        (7, "tree_transplanted", tree.second.id),
    ]
    assert await events_of(database, new) == []


async def test_a_talk_is_told_from_where_it_began(database: Database, people: People) -> None:
    """Rule M12. Over two transplants, each of them from the middle of its source."""
    tree = await grown(database, people)
    async with database.writing() as writing:
        second = await mirrors.transplant_tree(writing, people.owner, tree.chosen.id, "Second")
        second_path = await make_talk(writing, people.owner, second, turns=2)
        third = await mirrors.transplant_tree(writing, people.owner, second_path[1].id, "Third")
        third_path = await make_talk(writing, people.owner, third, turns=1)
        told = await mirrors.talk_to_node(writing, people.owner, third_path[0])
        own = await mirrors.talk_to_node(writing, people.owner, tree.last)
        hidden = await mirrors.talk_to_node(writing, people.stranger, third_path[0])
    path = [tree.first, tree.chosen, *second_path[:2], third_path[0]]
    assert [node.id for node in told] == [node.id for node in path]
    assert [node.id for node in own] == [
        node.id for node in (tree.first, tree.chosen, tree.second, tree.last)
    ]
    assert hidden == []


async def test_twenty_trees_are_told_back(database: Database, people: People) -> None:
    async with database.writing() as writing:
        tree = await make_tree(writing, people.owner)
        trees = []
        for number in range(22):
            question, answer = await make_talk(writing, people.owner, tree, turns=1)
            trees.append((question, answer))
            tree = await mirrors.transplant_tree(writing, people.owner, answer.id, f"{number}")
        last = await mirrors.add_question(writing, people.owner, tree.id, None, "And now?")
        told = await mirrors.talk_to_node(writing, people.owner, last)
    expected = [node.id for pair in trees[-20:] for node in pair]
    assert [node.id for node in told] == [*expected, last.id]
