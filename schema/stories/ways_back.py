"""Ways back: undo, redo, rollback; and forks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import BranchTable, DeltaOp, DeltaSource, LoggedTable
from resolvers.stories import ways_back as resolve
from schema.base import Payload, described, described_input, enum, field, mutation

if TYPE_CHECKING:
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]

EXPECTED_HEAD = (
    "The head that the change was made for; where it is another one by now, nothing is done "
    "(CONFLICT)."
)


enum(
    BranchTable,
    STORY_ENTRIES="Entries.",
    ENTITIES="Entities.",
    LORE="Lore.",
    THREADS="Threads.",
    HAPPENINGS="Happenings.",
    HAPPENING_INVOLVEMENTS="Who took part in happenings.",
    HAPPENING_AWARENESS="Who knows of happenings.",
    CHARACTER_RELATIONSHIPS="Relationships.",
    CHAPTERS="Chapters.",
    ENTRY_ASSETS="Files that entries show.",
    TRANSLATIONS="Translations.",
    BRANCH_ERA_FLIPS="Eras.",
    EMBEDDINGS="Which texts have been embedded.",
    DELTAS="The log.",
)


@described
class ReversedChange:
    """One change that was taken back."""

    table: LoggedTable = field("What kind of row it was.")
    op: DeltaOp = field("What had been done to the row, and was taken back.")
    row_id: strawberry.ID = field("Id of the row, with the branch's before it.")


@described
class ReversedAction:
    """What had been done together and was taken back."""

    action_id: strawberry.ID = field("Id of the action.")
    source: DeltaSource = field("Who had done it.")
    changes: list[ReversedChange] = field("Its changes, newest first; 200 at most.")


@described
class RollbackWarning:
    """Something worth knowing before a rollback."""

    code: str = field("For programs: CHAPTERS_REOPENED, WORLD_EDITS_LOST.")
    message: str = field("For people.")


@described
class CopiedRows:
    """How much of a table a fork has."""

    table: BranchTable = field("What kind of rows.")
    rows: int = field("How many rows.")


@described_input
class BranchUndoInput:
    """A branch."""

    branch_id: strawberry.ID = field("The branch.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class BranchUndoPayload(Payload):
    """The branch, and what was taken back: nothing where there was nothing to undo."""

    branch: LazyBranch | None = field("The branch.")
    reversed: list[ReversedAction] | None = field(
        "What was taken back, newest first; 1,000 at most."
    )


@described_input
class BranchRedoInput:
    """A branch."""

    branch_id: strawberry.ID = field("The branch.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class BranchRedoPayload(Payload):
    """The branch, unchanged where there was nothing to redo."""

    branch: LazyBranch | None = field("The branch.")


@described_input
class BranchRollbackInput:
    """How far to go back."""

    branch_id: strawberry.ID = field("The branch.")
    keep_entry_id: strawberry.ID = field("The entry that becomes the last one.")
    dry_run: bool | None = field("Only say what would be taken back.", default=None)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class BranchRollbackPayload(Payload):
    """The branch, and what was taken back, or would be."""

    branch: LazyBranch | None = field("The branch.")
    reversed: list[ReversedAction] | None = field(
        "What is taken back, newest first; 1,000 at most."
    )
    warnings: list[RollbackWarning] | None = field("What is worth knowing before.")


@described_input
class BranchForkInput:
    """Where a new branch begins."""

    branch_id: strawberry.ID = field("The branch to go on from.")
    at_entry_id: strawberry.ID = field("The last entry that the two have in common.")
    name: str = field("What the new branch is called, 500 characters at most.")


@described
class BranchForkPayload(Payload):
    """The new branch."""

    branch: LazyBranch | None = field("The new branch.")
    copied: list[CopiedRows] | None = field("What it has, by table.")


@strawberry.type
class WaysBackMutation:
    """Undo, redo, rollback, forks."""

    branch_undo: BranchUndoPayload = mutation(
        resolve.undo_branch,
        input=BranchUndoInput,
        payload=BranchUndoPayload,
        description="Take back what was done last: an edit, or a turn with all that came of it.",
    )
    branch_redo: BranchRedoPayload = mutation(
        resolve.redo_branch,
        input=BranchRedoInput,
        payload=BranchRedoPayload,
        description="Do again what was undone last, until something else is done.",
    )
    branch_rollback: BranchRollbackPayload = mutation(
        resolve.roll_back_branch,
        input=BranchRollbackInput,
        payload=BranchRollbackPayload,
        description="Take back everything behind an entry, which becomes the last one.",
    )
    branch_fork: BranchForkPayload = mutation(
        resolve.fork_branch,
        input=BranchForkInput,
        payload=BranchForkPayload,
        description="Make a branch of its own, as this one stood when an entry was its last.",
    )
