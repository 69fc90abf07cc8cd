"""What the plot of a branch is made of."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import InjectionMode, ThreadStatus
from resolvers import plot as resolve
from schema.base import described_input, enum, field, relation, row_type
from schema.branch_rows import BranchNode
from schema.embedding import Embeddable

if TYPE_CHECKING:
    from schema.entities import StoryCharacter, StoryEntity
    from schema.stories.entries import StoryEntry

LazyEntry = Annotated["StoryEntry", strawberry.lazy("schema.stories.entries")]
LazyEntity = Annotated["StoryEntity", strawberry.lazy("schema.entities")]
LazyCharacter = Annotated["StoryCharacter", strawberry.lazy("schema.entities")]
LazyHappening = Annotated["Happening", strawberry.lazy("schema.plot.rows")]

enum(
    ThreadStatus,
    PENDING="It has not begun.",
    ACTIVE="It goes on.",
    RESOLVED="It was brought to its end.",
    FAILED="It came to nothing.",
)
CATEGORY_WANTED = "Only what is of this category."


@described_input
class LoreFilter:
    """Which lore is wanted; what is left out asks for nothing."""

    category: str | None = field(CATEGORY_WANTED, default=None)


@described_input
class ThreadFilter:
    """Which threads are wanted; what is left out asks for nothing."""

    category: str | None = field(CATEGORY_WANTED, default=None)
    statuses: list[ThreadStatus] | None = field("Only those of these statuses.", default=None)


@described_input
class HappeningFilter:
    """Which happenings are wanted; what is left out asks for nothing."""

    category: str | None = field(CATEGORY_WANTED, default=None)
    common_knowledge: bool | None = field(
        "Only those that everybody knows of, or only the others.", default=None
    )


@row_type
class Lore(Embeddable):
    """Something that is so in the world of a story."""

    title: str = field("What it is called.")
    body: str = field("What is so.")
    category: str | None = field("Of which kind, in free words: religion, economy.")
    tags: list[str] = field("Words by which people sort it.")
    keywords: list[str] = field("Words that bring it to mind.")
    injection_mode: InjectionMode = field("When it comes into a prompt.")
    priority: int = field("From 0 to 100: the higher, the likelier it comes into a prompt.")
    embedding_stale: bool = field("Whether its text is still to be embedded for search.")
    created_at: datetime = field("When it was written down.")
    updated_at: datetime | None = field("When it was last changed.")


@row_type
class Thread(Embeddable):
    """A strand of the plot: a quest, an arc, a pressure in the background."""

    title: str = field("What it is called.")
    description: str = field("What it is about; may be empty.")
    category: str | None = field("Of which kind, in free words: quest, prophecy.")
    icon: str | None = field("The name of a picture, from a catalogue that is the front end's.")
    status: ThreadStatus = field("How it stands.")
    injection_mode: InjectionMode = field("When it comes into a prompt.")
    triggered_at: LazyEntry | None = relation(
        resolve.triggering_entries_of_threads, "The entry at which it began, where that is known."
    )
    resolved_at: LazyEntry | None = relation(
        resolve.resolving_entries_of_threads, "The entry at which it ended, where that is known."
    )
    embedding_stale: bool = field("Whether its text is still to be embedded for search.")
    created_at: datetime = field("When it was written down.")
    updated_at: datetime | None = field("When it was last changed.")


@row_type
class HappeningInvolvement(BranchNode):
    """That an entity takes part in a happening."""

    role: str | None = field("As what, in free words: actor, target, site.")
    entity: LazyEntity | None = relation(
        resolve.entities_of_involvements, "Who or what takes part."
    )
    happening: LazyHappening | None = relation(resolve.happenings_of_ties, "The happening.")


@row_type
class HappeningAwareness(BranchNode):
    """That a character knows of a happening."""

    source: str | None = field("How, in free words: overheard in the tavern.")
    learned_at: LazyEntry | None = relation(
        resolve.entries_of_awareness, "The entry at which it became known to the character."
    )
    decay_resistance: float = field("From 0, fades as others do, to 1, never fades.")
    retrieval_count: int = field("How often it came into a prompt in this chapter.")
    character: LazyCharacter | None = relation(resolve.characters_of_awareness, "Who knows.")
    happening: LazyHappening | None = relation(resolve.happenings_of_ties, "The happening.")


@row_type
class Happening(Embeddable):
    """Something that occurred, goes on or is to come, and can be known."""

    title: str = field("What it is called.")
    description: str = field("What happened; may be empty.")
    category: str | None = field("Of which kind, in free words: battle, discovery.")
    icon: str | None = field("The name of a picture, from a catalogue that is the front end's.")
    temporal: str | None = field(
        "When, in free words, where it has no place in the story: next solstice."
    )
    occurred_at: LazyEntry | None = relation(
        resolve.entries_of_happenings,
        "The entry at which it occurred, whose time in the world is its own.",
    )
    common_knowledge: bool = field("Whether everybody knows: then nobody's awareness is noted.")
    involvements: list[HappeningInvolvement] = relation(
        resolve.involvements_of_happenings,
        "Who takes part, in the order it was noted: 200 at most.",
    )
    awareness: list[HappeningAwareness] = relation(
        resolve.awareness_of_happenings, "Who knows of it, in the order it was noted: 200 at most."
    )
    embedding_stale: bool = field("Whether its text is still to be embedded for search.")
    created_at: datetime = field("When it was written down.")
    updated_at: datetime | None = field("When it was last changed.")
