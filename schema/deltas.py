"""What happened to branches: changes of rows, and events for those who watch."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, cast

import strawberry
from strawberry.scalars import JSON

from db.enums import BranchEventKind, DeltaOp, DeltaSource, LoggedTable
from resolvers import deltas as resolve
from resolvers.branch_rows import branches_of_rows
from schema.base import (
    Info,
    Node,
    described,
    described_input,
    enum,
    field,
    relation,
    row_type,
)

if TYPE_CHECKING:
    from schema.stories.entries import StoryEntry
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
LazyEntry = Annotated["StoryEntry", strawberry.lazy("schema.stories.entries")]

enum(
    LoggedTable,
    STORY_ENTRIES="Entries of the story.",
    ENTITIES="Characters, locations, items, factions.",
    LORE="What is so in the world.",
    THREADS="Strands of the plot.",
    HAPPENINGS="What has happened.",
    HAPPENING_INVOLVEMENTS="Who took part in what has happened.",
    HAPPENING_AWARENESS="Who knows of what has happened.",
    CHARACTER_RELATIONSHIPS="What characters are to each other.",
    CHAPTERS="Closed chapters.",
    ENTRY_ASSETS="Files that entries show.",
    TRANSLATIONS="Texts in other languages.",
    BRANCH_ERA_FLIPS="Moments from which the calendar counts by another era.",
)
enum(
    DeltaOp,
    CREATE="The row was made.",
    UPDATE="The row was changed.",
    DELETE="The row was deleted.",
)
enum(
    DeltaSource,
    AI_CLASSIFIER="A model that read what was told.",
    PIGGYBACK_TAGGED_BLOCK="The model that told it, in the same answer.",
    PER_TURN_CLASSIFIER="A model that read one turn.",
    PERIODIC_CLASSIFIER="A model that read several turns in the background.",
    USER_EDIT="A person.",
    LORE_AGENT="A model that keeps the lore.",
    CHAPTER_CLOSE="The closing of a chapter.",
)
enum(
    BranchEventKind,
    ACTION="Something was done.",
    UNDO="The newest action was taken back.",
    REDO="What was taken back was done again.",
    ROLLBACK="The story was cut back to an earlier entry.",
    NOTICE="Something that is in no log: read the branch anew.",
)


PATH = (
    "Which value: a field of the row, such as description, or behind dots one within it, such as "
    "state.visual.hair. Lists are one value."
)


@described
class FieldChange:
    """One value of a row before and after a change."""

    path: str = field(PATH)
    before: JSON | None = field("The value before; null where there was none.")
    after: JSON | None = field("The value after; null where there is none.")


@row_type
class Delta(Node):
    """One change of one row of a branch, as the branch's log has it."""

    log_position: int = field("Its place in the log: rising, with gaps.")
    source: DeltaSource = field("Who made it.")
    op: DeltaOp = field("What was done to the row.")
    target_table: LoggedTable = field("The kind of the row.", name="table")
    target_id: strawberry.ID = field("The row's own id, as its rowId.", name="rowId")
    action_id: strawberry.ID = field("What was done together is undone together: the same here.")
    anchor: strawberry.ID | None = field(
        "Id of the entry that it is about, with which it is taken back; null where it goes by its "
        "place in the log alone."
    )
    entry: LazyEntry | None = relation(
        resolve.entries_of_deltas, "The entry that it is about; null also where that is deleted."
    )
    created_at: datetime = field("When.")
    fields: list[FieldChange] = relation(
        resolve.fields_of_deltas,
        "What it has made of which values, 200 at most; of a row that was made or deleted all that "
        "it says.",
    )
    branch: LazyBranch | None = relation(branches_of_rows, "The branch.")


@described_input
class DeltaFilter:
    """Which changes are wanted; what is left out asks for nothing."""

    row_id: strawberry.ID | None = field("Only those of this row.", default=None)
    table: LoggedTable | None = field("Only those of rows of this kind.", default=None)
    source: DeltaSource | None = field("Only those that came from there.", default=None)
    action_id: strawberry.ID | None = field("Only those that were made together.", default=None)


@described
class RowChange:
    """That a row was changed, or that a change of it was taken back."""

    table: LoggedTable = field("The kind of the row.")
    op: DeltaOp = field("What was done to it; of an undo or a rollback, what was taken back.")
    id: strawberry.ID = field("Id of the row.")


@row_type
class BranchEvent:
    """That something has happened to a branch."""

    seq: int = field("Counts the branch's events from 1, without gaps.")
    kind: BranchEventKind = field("What has happened.")
    action_id: strawberry.ID | None = field("The action that was done, taken back or done again.")
    source: DeltaSource | None = field("Who did that action.")
    head: int = field("The head of the branch after it.")
    changes: list[RowChange] = field(
        "The rows that were changed, 1,000 at most: where changeCount is more, read anew."
    )
    change_count: int = field("How many changes there were.")
    created_at: datetime = field("When.")
    branch: LazyBranch | None = relation(resolve.branches_of_events, "The branch as it is now.")


@strawberry.type
class BranchSubscription:
    """Streams about branches."""

    @strawberry.subscription(
        description="What happens to a branch: events behind `after`, then live ones, each once "
        "and in order; without `after` from now on."
    )
    async def branch_events(
        self,
        info: Info,
        branch_id: Annotated[strawberry.ID, strawberry.argument(description="The branch.")],
        after: Annotated[
            int | None,
            strawberry.argument(description="Number of the last event seen, such as lastEventSeq."),
        ] = None,
    ) -> AsyncGenerator[BranchEvent, None]:
        """What happens to a branch."""
        events = resolve.branch_events(info.context, branch_id, after)
        return cast("AsyncGenerator[BranchEvent, None]", events)
