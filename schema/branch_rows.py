"""What rows and lists of branches share: the moment as of which they are read, and a few words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import strawberry

from db.enums import InjectionMode, SearchKind, SearchMode
from resolvers import branch_rows as resolve
from resolvers import deltas as resolve_deltas
from resolvers.batching import BatchFunction
from schema.base import Connection, Node, described, enum, field, relation

if TYPE_CHECKING:
    from schema.deltas import Delta
    from schema.stories.rows import Branch

T = TypeVar("T")
LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyDelta = Annotated["Delta", strawberry.lazy("schema.deltas")]

# Of entities, lore and threads.
enum(
    InjectionMode,
    ALWAYS="In every prompt.",
    AUTO="Where it is found to matter.",
    DISABLED="In none, unless somebody asks for it.",
)
# Of what is found and retrieved.
enum(
    SearchKind,
    ENTITY="Characters, locations, items, factions.",
    LORE="What is so in the world.",
    HAPPENING="What has happened.",
    THREAD="Strands of the plot.",
    CHAPTER="Closed chapters.",
    ENTRY="Entries of the story.",
)
enum(
    SearchMode,
    KEYWORD="By words.",
    VECTOR="By what is meant.",
    HYBRID="By both.",
)
EXPECTED_HEAD = "The head of the branch that was seen; any other is refused with CONFLICT."


@strawberry.interface(description="Anything that belongs to a branch.")
class BranchNode(Node):
    """A row of a branch. Its `id` is the branch's, a colon and `rowId`."""

    row_id: strawberry.ID = field("Its own id: the same in every branch that was forked.")
    branch: LazyBranch | None = relation(resolve.branches_of_rows, "The branch it belongs to.")
    history: Connection[LazyDelta] = relation(
        resolve_deltas.histories_of_rows,
        "Every change of it that is in the log of the branch, newest first; none from before the "
        "story began.",
    )


@strawberry.input(one_of=True, description="A moment of a branch: one of the three.")
class AsOfInput:
    """A moment."""

    entry_id: strawberry.Maybe[strawberry.ID] = field(
        "As the branch stood when this entry was its last: what a fork at it would have."
    )
    log_position: strawberry.Maybe[int] = field("All that was logged up to this position.")
    at: strawberry.Maybe[datetime] = field("All that was logged up to this time.")


@described
class ResolvedAt:
    """The moment of which a list is."""

    entry_id: strawberry.ID | None = field("The last entry that there was.")
    log_position: int = field("The position of the last change that counts; 0 before any.")


@strawberry.type(description="One page of a list of a branch.")
class BranchConnection(Connection[T], Generic[T]):
    """A page; its value is a `db.paging.Page`."""

    resolved_at: ResolvedAt | None = relation(
        resolve.moments_of_pages, "The moment that was asked for with asOf; null for the present."
    )


AS_OF = "The moment as of which the list is read; the present unless given."


def branch_list(
    batch: BatchFunction,
    description: str,
    *,
    arguments: Mapping[str, str] = MappingProxyType({}),
    types: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """A relation of a branch to a list of its rows, which can be read as of a moment: the batch
    function has a parameter `as_of`.
    """
    return relation(
        batch,
        description,
        arguments={"as_of": AS_OF, **arguments},
        types={"as_of": AsOfInput | None, **types},
    )
