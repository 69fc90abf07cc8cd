"""Mirror trees: look-ups, relations and mutations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from db.enums import Realm
from db.paging import FIRST_PAGE, Page, PagedList, PageRequest
from db.tables import (
    Canonization,
    Character,
    Citation,
    MirrorTree,
    Run,
    TreeEvent,
    TreeNode,
    TreeTransplant,
    User,
)
from resolvers.context import Context
from resolvers.runs import asking
from services import mirrors as service
from services import runs
from services.access import checked_id, find_row
from services.errors import Invalid


async def tree_by_id(context: Context, id: str) -> MirrorTree | None:
    """One tree, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, MirrorTree, id)


async def node_by_id(context: Context, id: str) -> TreeNode | None:
    """One node of a tree, or None."""
    async with context.reading() as reading:
        return await find_row(reading, context.viewer, TreeNode, id)


async def _pages(
    context: Context, listing: PagedList[Any], parents: Sequence[Any], request: PageRequest
) -> list[Page[Any]]:
    async with context.reading() as reading:
        return await listing.pages(
            reading, [each.id for each in parents], request, **context.viewer.parameters
        )


async def nodes_of_trees(
    context: Context,
    trees: Sequence[MirrorTree],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[TreeNode]]:
    """The nodes of each tree, oldest first."""
    return await _pages(context, service.NODES_OF_TREES, trees, page)


async def canonizations_of_trees(
    context: Context,
    trees: Sequence[MirrorTree],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[Canonization]]:
    """The canon records of each tree, oldest first."""
    return await _pages(context, service.CANONIZATIONS_OF_TREES, trees, page)


async def children_of_nodes(
    context: Context,
    nodes: Sequence[TreeNode],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[TreeNode]]:
    """The nodes directly below each node, oldest first."""
    return await _pages(context, service.CHILDREN_OF_NODES, nodes, page)


async def candidates_of_nodes(
    context: Context,
    nodes: Sequence[TreeNode],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[TreeNode]]:
    """The answers to each question, oldest first."""
    return await _pages(context, service.CANDIDATES_OF_NODES, nodes, page)


async def characters_of_trees(
    context: Context, trees: Sequence[MirrorTree]
) -> list[Character | None]:
    """Whom each tree is a talk with."""
    return await context.many(Character, [each.character_id for each in trees])


async def working_entries_of_trees(
    context: Context, trees: Sequence[MirrorTree]
) -> list[TreeNode | None]:
    """Where the talk continues in each tree."""
    return await context.many(TreeNode, [each.working_entry_node_id for each in trees])


async def paths_of_trees(
    context: Context, trees: Sequence[MirrorTree], *, to: str | None = None
) -> list[list[TreeNode]]:
    """The path from the root to a node of each tree, by default to its working entry."""
    if to is None:
        ends = [each.working_entry_node_id for each in trees]
    else:
        ends = [checked_id(to, TreeNode)] * len(trees)
    wanted = [each for each in ends if each is not None]
    async with context.reading() as reading:
        paths = await service.paths_to_nodes(reading, context.viewer, wanted)
    found = [paths.get(end, []) if end is not None else [] for end in ends]
    return [
        path if path and path[-1].tree_id == tree.id else []
        for tree, path in zip(trees, found, strict=True)
    ]


async def canon_trunks_of_trees(
    context: Context, trees: Sequence[MirrorTree], *, scope: Realm
) -> list[list[TreeNode]]:
    """The union of the canonized paths of each tree in one scope."""
    async with context.reading() as reading:
        trunks = await service.canon_trunks_of_trees(
            reading, context.viewer, [each.id for each in trees], scope
        )
    return [trunks[each.id] for each in trees]


async def trees_of_nodes(context: Context, nodes: Sequence[Any]) -> list[MirrorTree | None]:
    """The tree of each node, canon record or run."""
    return await context.many(MirrorTree, [each.tree_id for each in nodes])


async def parents_of_nodes(context: Context, nodes: Sequence[TreeNode]) -> list[TreeNode | None]:
    """The node above each node."""
    return await context.many(TreeNode, [each.parent_node_id for each in nodes])


async def superseded_of_nodes(context: Context, nodes: Sequence[TreeNode]) -> list[TreeNode | None]:
    """The node that each node was made from by editing."""
    return await context.many(TreeNode, [each.supersedes_node_id for each in nodes])


async def citations_of_nodes(context: Context, nodes: Sequence[TreeNode]) -> list[list[Citation]]:
    """What each node quotes."""
    async with context.reading() as reading:
        found = await service.citations_of_nodes(
            reading, context.viewer, [each.id for each in nodes]
        )
    return [found[each.id] for each in nodes]


async def sources_of_citations(
    context: Context, citations: Sequence[Citation]
) -> list[TreeNode | None]:
    """The node that each citation quotes, where it quotes one."""
    ids = [checked_id(each.source_id or "", TreeNode) for each in citations]
    return await context.many(TreeNode, ids)


async def newest_sources_of_citations(
    context: Context, citations: Sequence[Citation]
) -> list[TreeNode | None]:
    """The last version of each quoted node that has later ones."""
    ids = [checked_id(each.source_id or "", TreeNode) for each in citations]
    async with context.reading() as reading:
        found = await service.newest_versions_of_nodes(
            reading, context.viewer, [each for each in ids if each is not None]
        )
    return [found.get(each) if each is not None else None for each in ids]


async def runs_of_nodes(context: Context, nodes: Sequence[TreeNode]) -> list[Run | None]:
    """The run in which each answer was written."""
    return await context.many(Run, [each.run_id for each in nodes])


async def working_entry_flags_of_nodes(context: Context, nodes: Sequence[TreeNode]) -> list[bool]:
    """Whether each node is its tree's working entry."""
    trees = await context.many(MirrorTree, [each.tree_id for each in nodes])
    return [
        tree is not None and tree.working_entry_node_id == node.id
        for node, tree in zip(nodes, trees, strict=True)
    ]


async def endpoints_of_canonizations(
    context: Context, canonizations: Sequence[Canonization]
) -> list[TreeNode | None]:
    """The last node of each canonized path."""
    return await context.many(TreeNode, [each.endpoint_node_id for each in canonizations])


async def confirmers_of_canonizations(
    context: Context, canonizations: Sequence[Canonization]
) -> list[User | None]:
    """Who made each path canon."""
    return await context.many(User, [each.confirmed_by_user_id for each in canonizations])


async def corrected_of_canonizations(
    context: Context, canonizations: Sequence[Canonization]
) -> list[Canonization | None]:
    """The record that each record puts right."""
    return await context.many(Canonization, [e.corrects_canonization_id for e in canonizations])


async def intact_flags_of_canonizations(
    context: Context, canonizations: Sequence[Canonization]
) -> list[bool | None]:
    """Whether each canonized path is still what was confirmed."""
    async with context.reading() as reading:
        return await service.intact_flags(reading, context.viewer, canonizations)


async def roots_of_trees(
    context: Context,
    trees: Sequence[MirrorTree],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[TreeNode]]:
    """The nodes of each tree that have no parent."""
    return await _pages(context, service.ROOTS_OF_TREES, trees, page)


async def versions_of_nodes(
    context: Context,
    nodes: Sequence[TreeNode],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[TreeNode]]:
    """What was made from each node by editing."""
    return await _pages(context, service.VERSIONS_OF_NODES, nodes, page)


async def siblings_of_nodes(
    context: Context,
    nodes: Sequence[TreeNode],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[TreeNode]]:
    """All nodes below the parent of each node; of a root, the roots of its tree."""
    async with context.reading() as reading:
        parameters = context.viewer.parameters
        below = await service.CHILDREN_OF_NODES.pages(
            reading, [each.parent_node_id or "" for each in nodes], page, **parameters
        )
        roots = await service.ROOTS_OF_TREES.pages(
            reading, [each.tree_id for each in nodes], page, **parameters
        )
    return [
        siblings if node.parent_node_id is not None else beside
        for node, siblings, beside in zip(nodes, below, roots, strict=True)
    ]


async def outlines_of_trees(
    context: Context,
    trees: Sequence[MirrorTree],
    *,
    max_depth: int = service.MAX_DEPTH,
    collapse_chains: bool = False,
) -> list[service.TreeOutline]:
    """The shape of each tree."""
    if not 1 <= max_depth <= service.MAX_DEPTH:
        raise Invalid(
            f"maxDepth lies between 1 and {service.MAX_DEPTH:,}.", "INVALID_DEPTH", ("maxDepth",)
        )
    async with context.reading() as reading:
        return await service.outlines_of_trees(
            reading, context.viewer, trees, max_depth, collapse_chains=collapse_chains
        )


async def origins_of_trees(
    context: Context, trees: Sequence[MirrorTree]
) -> list[TreeTransplant | None]:
    """Where each tree grew from."""
    async with context.reading() as reading:
        found = await service.transplants_into_trees(
            reading, context.viewer, [each.id for each in trees]
        )
    return [found.get(each.id) for each in trees]


async def transplants_of_trees(
    context: Context,
    trees: Sequence[MirrorTree],
    *,
    page: PageRequest = FIRST_PAGE,
) -> list[Page[TreeTransplant]]:
    """The trees that grew from each tree."""
    return await _pages(context, service.TRANSPLANTS_OF_TREES, trees, page)


async def source_trees_of_transplants(
    context: Context, transplants: Sequence[TreeTransplant]
) -> list[MirrorTree | None]:
    """The tree that each transplant comes from."""
    return await context.many(MirrorTree, [each.source_tree_id for each in transplants])


async def source_nodes_of_transplants(
    context: Context, transplants: Sequence[TreeTransplant]
) -> list[TreeNode | None]:
    """The node that each transplant goes on from."""
    return await context.many(TreeNode, [each.source_node_id for each in transplants])


async def new_trees_of_transplants(
    context: Context, transplants: Sequence[TreeTransplant]
) -> list[MirrorTree | None]:
    """The tree that grew from each transplant."""
    return await context.many(MirrorTree, [each.new_tree_id for each in transplants])


async def nodes_of_events(context: Context, events: Sequence[TreeEvent]) -> list[TreeNode | None]:
    """The node that each event is about."""
    return await context.many(TreeNode, [each.node_id for each in events])


async def create_tree(context: Context, input: Any) -> dict[str, Any]:
    """Begin a tree."""
    async with context.writing() as change:
        tree = await service.create_tree(
            change.writing,
            context.viewer,
            input.character_id,
            input.topic,
            input.realm,
            input.world_id,
        )
        return change.answer(tree=tree)


async def ask_tree(context: Context, input: Any) -> dict[str, Any]:
    """Ask a question and start the run that answers it."""
    async with context.writing() as change:
        question, run = await runs.ask_tree(
            change.writing,
            context.viewer,
            input.tree_id,
            input.parent_id,
            input.text,
            **asking(context),
        )
        return change.answer(question=question, run=run)


async def regenerate_answer(context: Context, input: Any) -> dict[str, Any]:
    """Start a run for one more answer."""
    async with context.writing() as change:
        run = await runs.regenerate_answer(
            change.writing,
            context.viewer,
            input.question_id,
            **asking(context),
        )
        return change.answer(run=run)


async def continue_node(context: Context, input: Any) -> dict[str, Any]:
    """Start a run in which the character goes on."""
    async with context.writing() as change:
        run = await runs.continue_node(
            change.writing,
            context.viewer,
            input.node_id,
            **asking(context),
        )
        return change.answer(run=run)


async def edit_node(context: Context, input: Any) -> dict[str, Any]:
    """Put a version beside a node."""
    async with context.writing() as change:
        node = await service.edit_node(change.writing, context.viewer, input.node_id, input.text)
        return change.answer(node=node)


async def cite_in_node(context: Context, input: Any) -> dict[str, Any]:
    """Quote."""
    async with context.writing() as change:
        citation = await service.cite(
            change.writing,
            context.viewer,
            input.node_id,
            input.target_kind,
            input.source_id,
            input.target,
            input.quote,
            input.source_version,
        )
        return change.answer(citation=citation)


async def canonize_path(context: Context, input: Any) -> dict[str, Any]:
    """Make a path canon."""
    async with context.writing() as change:
        record = await service.canonize_path(
            change.writing, context.viewer, input.endpoint_id, input.scope, input.world_id
        )
        return change.answer(canonization=record)


async def correct_node(context: Context, input: Any) -> dict[str, Any]:
    """Correct what is canon."""
    async with context.writing() as change:
        node, records = await service.correct_node(
            change.writing, context.viewer, input.node_id, input.text
        )
        return change.answer(node=node, canonizations=records)


async def transplant_tree(context: Context, input: Any) -> dict[str, Any]:
    """Begin a tree from a node."""
    async with context.writing() as change:
        tree = await service.transplant_tree(
            change.writing, context.viewer, input.node_id, input.topic
        )
        return change.answer(tree=tree)


async def prune_tree(context: Context, input: Any) -> dict[str, Any]:
    """Remove dead branches."""
    async with context.writing() as change:
        tree, pruning = await service.prune_tree(
            change.writing, context.viewer, input.tree_id, input.keep, is_dry_run=input.dry_run
        )
        return change.answer(
            tree=tree,
            removed_count=pruning.removed_count,
            removed_ids=pruning.removed_ids,
            kept_count=pruning.kept_count,
        )


def tree_events(
    context: Context, tree_id: str, after: int | None
) -> AsyncGenerator[TreeEvent, None]:
    """The changes of a tree behind a number, or from now on."""
    engine = context.engine
    return service.follow_tree(engine.database, engine.hub, context.viewer, tree_id, after)


async def adopt_node(context: Context, input: Any) -> dict[str, Any]:
    """Move the working entry."""
    async with context.writing() as change:
        tree = await service.adopt_node(change.writing, context.viewer, input.node_id)
        return change.answer(tree=tree)
