"""Mirror trees: conversation trees, their nodes, citations and canon records."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, cast

import strawberry

from resolvers import mirrors as resolve
from schema.base import Info, root_row
from schema.mirrors.changes import MirrorMutation
from schema.mirrors.rows import Canonization, MirrorTree, TreeEvent, TreeNode

__all__ = [
    "Canonization",
    "MirrorMutation",
    "MirrorQuery",
    "MirrorSubscription",
    "MirrorTree",
    "TreeEvent",
    "TreeNode",
]


@strawberry.type
class MirrorQuery:
    """Root fields about mirror trees."""

    mirror_tree: MirrorTree | None = root_row(resolve.tree_by_id, "One mirror tree.")
    tree_node: TreeNode | None = root_row(resolve.node_by_id, "One node of a mirror tree.")


@strawberry.type
class MirrorSubscription:
    """Streams about mirror trees."""

    @strawberry.subscription(
        description="What changes in a tree: events behind `after`, then live ones, each once and "
        "in order; without `after` from now on."
    )
    async def tree_events(
        self,
        info: Info,
        tree_id: Annotated[strawberry.ID, strawberry.argument(description="The tree.")],
        after: Annotated[
            int | None,
            strawberry.argument(description="Number of the last event seen, such as lastSeq."),
        ] = None,
    ) -> AsyncGenerator[TreeEvent, None]:
        """The changes of a tree."""
        events = resolve.tree_events(info.context, tree_id, after)
        return cast("AsyncGenerator[TreeEvent, None]", events)
