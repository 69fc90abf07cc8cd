"""Two branches of a story side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import strawberry
from strawberry.scalars import JSON

from db.enums import DifferenceKind, LoggedTable
from resolvers import comparing as resolve
from schema.base import (
    Connection,
    Info,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
)
from schema.branch_rows import EXPECTED_HEAD, BranchNode
from schema.deltas import PATH

if TYPE_CHECKING:
    from schema.stories.entries import StoryEntry
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyEntry = Annotated["StoryEntry", strawberry.lazy("schema.stories.entries")]

enum(
    DifferenceKind,
    ADDED="Only the right branch has the row.",
    REMOVED="Only the left branch has the row.",
    CHANGED="Both have it, and it says something else.",
)


@described
class FieldDifference:
    """One value of a row in two branches."""

    path: str = field(PATH)
    left: JSON | None = field("The value in the left branch; null where there is none.")
    right: JSON | None = field("The value in the right branch; null where there is none.")


@described
class RowDifference:
    """A row that is not the same in two branches."""

    table: LoggedTable = field("The kind of the row.")
    row_id: strawberry.ID = field("The row's own id, which is the same in both.")
    kind: DifferenceKind = field("How it differs.")
    label: str = field("What people call it: its name or title, or the names of what it links.")
    fields: list[FieldDifference] = field(
        "What differs, 200 values at most; of a row that only one branch has, all that it says."
    )


@described
class BranchDiff:
    """Two branches of a story side by side."""

    left: LazyBranch = field("The left branch.")
    right: LazyBranch = field("The right branch.")
    common_entry: LazyEntry | None = relation(
        resolve.common_entries_of_diffs,
        "The last entry that both have in common, as it is in the left branch; null where there is "
        "none.",
    )
    changes: Connection[RowDifference] = relation(
        resolve.changes_of_diffs,
        "What it takes to make the right branch of the left one: table by table, each in the order "
        "in which the rows were made. When rows were made or changed does not count, nor that an "
        "entry only moved up.",
        arguments={"tables": "Only rows of these kinds."},
    )


@strawberry.type
class ComparingQuery:
    """Root fields about differences."""

    @strawberry.field(
        description="Two branches of one story side by side; null where one is not there for the "
        "viewer."
    )
    async def branch_diff(
        self,
        info: Info,
        left: Annotated[strawberry.ID, strawberry.argument(description="The one branch.")],
        right: Annotated[
            strawberry.ID, strawberry.argument(description="The other branch, of the same story.")
        ],
    ) -> BranchDiff | None:
        """Two branches."""
        return cast("BranchDiff | None", await resolve.find_diff(info.context, left, right))


@described_input
class ChangeCarryInput:
    """A row to carry from one branch to another of the same story."""

    from_branch_id: strawberry.ID = field("The branch that is followed.")
    to_branch_id: strawberry.ID = field("The branch that is changed.")
    row_id: strawberry.ID = field("The row, as a difference shows it.")
    expected_head: int | None = field(
        f"{EXPECTED_HEAD} It is that of the branch that is changed.", default=None
    )


@described
class ChangeCarryPayload(Payload):
    """What was done."""

    kind: DifferenceKind | None = field("What was done to the row; null where it was like it.")
    row: BranchNode | None = field("The row in the changed branch; null where it is gone now.")
    branch: LazyBranch | None = field("The changed branch, with its new head.")


@strawberry.type
class ComparingMutation:
    """Carrying changes across."""

    change_carry: ChangeCarryPayload = mutation(
        resolve.carry_change,
        input=ChangeCarryInput,
        payload=ChangeCarryPayload,
        description="Make one row of a branch like it is in another, in one step: entities, what "
        "they are to each other, lore, threads, happenings, translations, eras. Ids of entries "
        "that the branch has not are left out.",
    )
