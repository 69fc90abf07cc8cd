"""Law 3: every relation is a batch function with one result per parent, and the number of its
statements does not depend on the number of parents.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from db.paging import Page, PageRequest
from db.tables import MirrorTree, TreeNode
from resolvers.context import Context
from schema.base import BATCH, relation
from services.access import rows_by_ids
from tests.architecture.declared import ROOTS, Field, fields, relations
from tests.architecture.world import (
    MOST,
    World,
    holds_something,
    parents_with_something,
    sample_arguments,
)

SIZES = (1, 10, MOST)
# Relations whose values are computed from their parents: these ask the database nothing at all.
COMPUTED = {
    "Calendar.render",
    "Calendar.worldTimeOf",
    "GraphCommunity.nodes",
    "ProbeCapture.isCorrupt",
    "ProbeCapture.payload",
    "Story.settings",
    "WorldCommunity.nodes",
}


def misshapen(batch: Any) -> list[str]:
    """What keeps a function from being called as a batch function, or from being found as one."""
    signature = inspect.signature(batch, eval_str=True)
    first, *rest = signature.parameters.values()
    found = []
    if not inspect.iscoroutinefunction(batch):
        found.append("is not async")
    home = sys.modules.get(batch.__module__)
    if not batch.__module__.startswith("resolvers.") or (
        getattr(home, batch.__name__, None) is not batch
    ):
        found.append("is not a function of a module in resolvers")
    if first.name != "context" or first.annotation is not Context:
        found.append("does not take the context first")
    if not rest or rest[0].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return [*found, "does not take its parents second"]
    parents, *arguments = rest
    children, of, named_parents = batch.__name__.rpartition("_of_")
    if not (children and of) or named_parents != parents.name:
        found.append(f"is not called <children>_of_{parents.name}")
    for each in arguments:
        if each.kind is not inspect.Parameter.KEYWORD_ONLY:
            found.append(f"takes {each.name} by position")
        elif not isinstance(each.default, Hashable):
            found.append(f"has a default for {each.name} that cannot be hashed")
    return found


def neither_attribute_nor_relation(declared: Iterator[Field]) -> list[str]:
    """Fields that ask for their value one row at a time."""
    return [
        str(each)
        for each in declared
        if each.owner not in ROOTS and not each.is_attribute and each.batch is None
    ]


@dataclass(frozen=True)
class Shape:
    """A relation with one set of arguments."""

    relation: Field
    paging: tuple[tuple[str, int], ...] = ()

    @property
    def arguments(self) -> dict[str, Any]:
        given = sample_arguments(self.relation)
        return {**given, "page": PageRequest(**dict(self.paging))} if self.paging else given

    def __str__(self) -> str:
        return " ".join([str(self.relation), *(f"{name}={size}" for name, size in self.paging)])


SHAPES = [Shape(each) for each in relations()]
PAGED_SHAPES = [
    Shape(each, ((argument, 2),))
    for each in relations()
    if each.is_connection
    for argument in ("first", "last")
]


async def complaints(
    world: World,
    batch: Any,
    parents: Sequence[Any],
    arguments: dict[str, Any],
    *,
    is_computed: bool = False,
) -> list[str]:
    """What is wrong with the results of a batch function or with the statements it takes."""
    found = []
    counts = {}
    for size in SIZES:
        results, seen = await world.ask(batch, parents[:size], arguments)
        counts[size] = len(seen)
        if len(results) != size:
            found.append(f"{len(results)} results for {size} parents")
    if len(set(counts.values())) > 1 or (counts[1] == 0) is not is_computed:
        found.append(f"statements by number of parents: {counts}")
    some = parents[:10]
    forward, _ = await world.ask(batch, some, arguments)
    backward, _ = await world.ask(batch, some[::-1], arguments)
    alone = [(await world.ask(batch, [each], arguments))[0] for each in some]
    if backward[::-1] != forward or [each for (each,) in alone] != forward:
        found.append("results do not belong to their parents")
    return found


@pytest.mark.parametrize("each", relations(), ids=str)
def test_a_relation_carries_a_batch_function(each: Field) -> None:
    assert misshapen(each.batch) == []


def test_every_field_is_an_attribute_or_a_relation() -> None:
    assert relations()
    assert neither_attribute_nor_relation(fields()) == []


@pytest.mark.parametrize("shape", [*SHAPES, *PAGED_SHAPES], ids=str)
async def test_the_number_of_statements_does_not_depend_on_the_number_of_parents(
    world: World, shape: Shape
) -> None:
    parents = await parents_with_something(world, shape.relation)
    is_computed = str(shape.relation) in COMPUTED or shape.relation.leads_to == "ResolvedAt"
    found = await complaints(
        world, shape.relation.batch, parents, shape.arguments, is_computed=is_computed
    )
    assert found == []


@pytest.mark.parametrize("shape", PAGED_SHAPES, ids=str)
async def test_the_size_of_a_page_counts_for_each_parent(world: World, shape: Shape) -> None:
    parents = await parents_with_something(world, shape.relation)
    whole, asked = await world.ask(shape.relation.batch, parents, sample_arguments(shape.relation))
    pages, seen = await world.ask(shape.relation.batch, parents, shape.arguments)
    is_first = shape.paging[0][0] == "first"
    for page, full in zip(pages, whole, strict=True):
        assert isinstance(page, Page)
        if len(full.nodes) < 20:  # the list is whole, so its end is known
            assert page.nodes == (full.nodes[:2] if is_first else full.nodes[-2:])
    assert len(seen) == len(asked)


async def wrongly_called(context: Any, nodes: Sequence[TreeNode], first: int) -> list[Any]:
    """A batch function with a wrong name that takes an argument by position."""
    return [None for _ in nodes]


def synchronous(nodes: Sequence[TreeNode], *, sizes: Any = []) -> list[Any]:  # noqa: B006
    """No batch function at all."""
    return [None for _ in nodes]


def test_a_misshapen_batch_function_is_noticed() -> None:
    assert misshapen(wrongly_called) == [
        "is not a function of a module in resolvers",
        "does not take the context first",
        "is not called <children>_of_nodes",
        "takes first by position",
    ]
    assert misshapen(synchronous) == [
        "is not async",
        "is not a function of a module in resolvers",
        "does not take the context first",
        "does not take its parents second",
    ]


async def test_bad_batch_functions_are_noticed(world: World) -> None:
    async def one_by_one(context: Context, nodes: Sequence[TreeNode]) -> list[Any]:
        found = []
        for node in nodes:
            async with context.reading() as reading:
                found += await rows_by_ids(reading, context.viewer, MirrorTree, [node.tree_id])
        return found

    async def in_their_own_order(context: Context, nodes: Sequence[TreeNode]) -> list[Any]:
        trees: list[Any] = await context.many(MirrorTree, [each.tree_id for each in nodes])
        return sorted(trees, key=lambda each: each.id)

    async def fewer(context: Context, nodes: Sequence[TreeNode]) -> list[Any]:
        return (await context.many(MirrorTree, [each.tree_id for each in nodes]))[:9]

    nodes = await parents_with_something(world, tree_of_node())
    nodes = sorted({each.tree_id: each for each in nodes}.values(), key=lambda each: each.id)
    nodes = (nodes * MOST)[:MOST]
    assert await complaints(world, one_by_one, nodes, {}) == [
        "statements by number of parents: {1: 1, 10: 10, 100: 100}"
    ]
    assert await complaints(world, in_their_own_order, nodes, {}) == [
        "results do not belong to their parents"
    ]
    assert await complaints(world, fewer, nodes, {}) == [
        "9 results for 10 parents",
        "9 results for 100 parents",
        "results do not belong to their parents",
    ]


def tree_of_node() -> Field:
    (found,) = [each for each in relations() if str(each) == "TreeNode.tree"]
    return found


def test_a_field_that_asks_for_one_row_is_noticed() -> None:
    class Resolved:
        owner = "Run"
        is_attribute = False
        batch = None

        def __str__(self) -> str:
            return "Run.count"

    class OfTheRoot(Resolved):
        owner = "Query"

    class Related(Resolved):
        batch = wrongly_called

    declared: Any = iter([Resolved(), OfTheRoot(), Related()])
    assert neither_attribute_nor_relation(declared) == ["Run.count"]


def test_a_relation_records_its_batch_function() -> None:
    batch = tree_of_node().batch
    assert relation(batch, "The tree.").metadata == {BATCH: batch}


def test_emptiness_is_told_from_an_answer() -> None:
    assert [holds_something(each) for each in (None, [], 0, False, True, 3, [1])] == [
        False,
        False,
        False,
        True,
        True,
        True,
        True,
    ]
