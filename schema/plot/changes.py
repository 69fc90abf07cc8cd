"""Changes to lore and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import InjectionMode, ThreadStatus
from resolvers import plot as resolve
from schema.base import Payload, described, described_input, field, mutation
from schema.branch_rows import EXPECTED_HEAD
from schema.plot.rows import Lore, Thread

if TYPE_CHECKING:
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
NEW_HEAD = "The branch, with its new head."
TITLE = "What it is called, 500 characters at most."
CATEGORY = "Of which kind, in free words; blank is none."
ICON = "The name of a picture, from a catalogue that is the front end's; blank is none."
MODE = "When it comes into a prompt."


@described_input
class LoreCreateInput:
    """Something that is so in the world."""

    branch_id: strawberry.ID = field("The branch.")
    title: str = field(TITLE)
    body: str = field("What is so.")
    category: str | None = field(CATEGORY, default=None)
    tags: list[str] = field("Words by which people sort it, 50 at most.", default_factory=list)
    keywords: list[str] = field("Words that bring it to mind, 50 at most.", default_factory=list)
    injection_mode: InjectionMode = field(MODE, default=InjectionMode.AUTO)
    priority: int = field("From 0 to 100.", default=50)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class LoreCreatePayload(Payload):
    """The lore."""

    lore: Lore | None = field("The lore.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class LoreUpdateInput:
    """Lore to change; what is left out stays as it is."""

    lore_id: strawberry.ID = field("The lore.")
    title: strawberry.Maybe[str] = field(TITLE)
    body: strawberry.Maybe[str] = field("What is so.")
    category: strawberry.Maybe[str | None] = field(CATEGORY)
    tags: strawberry.Maybe[list[str]] = field("All words by which people sort it, 50 at most.")
    keywords: strawberry.Maybe[list[str]] = field("All words that bring it to mind, 50 at most.")
    injection_mode: strawberry.Maybe[InjectionMode] = field(MODE)
    priority: strawberry.Maybe[int] = field("From 0 to 100.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class LoreUpdatePayload(Payload):
    """The changed lore."""

    lore: Lore | None = field("The lore.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class LoreDeleteInput:
    """Lore to delete."""

    lore_id: strawberry.ID = field("The lore.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class LoreDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the lore.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class ThreadCreateInput:
    """A strand of the plot."""

    branch_id: strawberry.ID = field("The branch.")
    title: str = field(TITLE)
    description: str = field("What it is about.", default="")
    category: str | None = field(CATEGORY, default=None)
    icon: str | None = field(ICON, default=None)
    status: ThreadStatus = field("How it stands.", default=ThreadStatus.PENDING)
    injection_mode: InjectionMode = field(MODE, default=InjectionMode.AUTO)
    triggered_at_entry_id: strawberry.ID | None = field("Where it began.", default=None)
    resolved_at_entry_id: strawberry.ID | None = field("Where it ended.", default=None)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class ThreadCreatePayload(Payload):
    """The thread."""

    thread: Thread | None = field("The thread.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class ThreadUpdateInput:
    """A thread to change; what is left out stays as it is."""

    thread_id: strawberry.ID = field("The thread.")
    title: strawberry.Maybe[str] = field(TITLE)
    description: strawberry.Maybe[str] = field("What it is about; may be empty.")
    category: strawberry.Maybe[str | None] = field(CATEGORY)
    icon: strawberry.Maybe[str | None] = field(ICON)
    status: strawberry.Maybe[ThreadStatus] = field("How it stands; any may follow any.")
    injection_mode: strawberry.Maybe[InjectionMode] = field(MODE)
    triggered_at_entry_id: strawberry.Maybe[strawberry.ID | None] = field("Where it began.")
    resolved_at_entry_id: strawberry.Maybe[strawberry.ID | None] = field("Where it ended.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class ThreadUpdatePayload(Payload):
    """The changed thread."""

    thread: Thread | None = field("The thread.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class ThreadDeleteInput:
    """A thread to delete."""

    thread_id: strawberry.ID = field("The thread.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class ThreadDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the thread.")
    branch: LazyBranch | None = field(NEW_HEAD)


@strawberry.type
class LoreMutation:
    """Changes to lore."""

    lore_create: LoreCreatePayload = mutation(
        resolve.create_lore,
        input=LoreCreateInput,
        payload=LoreCreatePayload,
        description="Write down something that is so in the world.",
    )
    lore_update: LoreUpdatePayload = mutation(
        resolve.update_lore,
        input=LoreUpdateInput,
        payload=LoreUpdatePayload,
        description="Change lore.",
    )
    lore_delete: LoreDeletePayload = mutation(
        resolve.delete_lore,
        input=LoreDeleteInput,
        payload=LoreDeletePayload,
        description="Delete lore, with its translations.",
    )


@strawberry.type
class ThreadMutation:
    """Changes to threads."""

    thread_create: ThreadCreatePayload = mutation(
        resolve.create_thread,
        input=ThreadCreateInput,
        payload=ThreadCreatePayload,
        description="Write down a strand of the plot.",
    )
    thread_update: ThreadUpdatePayload = mutation(
        resolve.update_thread,
        input=ThreadUpdateInput,
        payload=ThreadUpdatePayload,
        description="Change a thread.",
    )
    thread_delete: ThreadDeletePayload = mutation(
        resolve.delete_thread,
        input=ThreadDeleteInput,
        payload=ThreadDeletePayload,
        description="Delete a thread, with its translations.",
    )
