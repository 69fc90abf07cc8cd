"""Lorebooks: books of texts that come into a prompt when their keys are spoken of."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import LorePosition, ReviewDecision, ReviewStatus, SelectiveLogic
from resolvers import lorebooks as resolve
from schema.base import (
    Connection,
    Node,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    root_list,
    row_type,
)

enum(
    LorePosition,
    BEFORE_CHAR="Before the description of the character.",
    AFTER_CHAR="Behind the description of the character.",
    BEFORE_EXAMPLES="Before the sample talk.",
    AFTER_EXAMPLES="Behind the sample talk.",
    BEFORE_AUTHOR_NOTE="Before the author's note.",
    AFTER_AUTHOR_NOTE="Behind the author's note.",
    AT_DEPTH="In the talk, `depth` messages from its end.",
    OUTLET="Where a text calls for it by name.",
)
enum(
    SelectiveLogic,
    AND_ANY="A key and at least one secondary key.",
    AND_ALL="A key and all secondary keys.",
    NOT_ANY="A key and none of the secondary keys.",
    NOT_ALL="A key, unless all secondary keys are there.",
)
enum(
    ReviewStatus,
    PENDING_REVIEW="Nobody has decided yet.",
    ACCEPTED="Taken.",
    REJECTED="Left out: also of exports.",
)
enum(ReviewDecision, ACCEPT="Take it.", REJECT="Leave it out.")

if TYPE_CHECKING:
    from schema.characters import Character, EmbryoDraft

LazyCharacter = Annotated["Character", strawberry.lazy("schema.characters")]
LazyEmbryoDraft = Annotated["EmbryoDraft", strawberry.lazy("schema.characters")]
LazyLorebook = Annotated["Lorebook", strawberry.lazy("schema.lorebooks")]


@described
class LoreRecursion:
    """How an entry takes part when the texts of entries are searched for keys as well."""

    exclude: bool = field("The text of other entries does not bring it up.")
    prevent: bool = field("Its own text brings up no others.")
    delay_until: int = field("The level of recursion that it waits for; 0 when it does not wait.")


@row_type
class LorebookEntry(Node):
    """One text and what brings it up."""

    number: int = field("Its place in the book, from 1.")
    name: str = field("What people call it.")
    keys: list[str] = field("Words that bring it up; a key like /x/i is a pattern.")
    secondary_keys: list[str] = field("Further words, which count as selectiveLogic says.")
    selective_logic: SelectiveLogic = field("How secondary keys count.")
    is_constant: bool = field("Whether it is always there, without any key.")
    position: LorePosition = field("Where its text goes.")
    depth: int = field("How many messages from the end, where the position is AT_DEPTH.")
    insertion_order: int = field("Lower stands earlier.")
    probability: int = field("In percent.")
    sticky: int | None = field("For how many messages it stays.")
    cooldown: int | None = field("For how many messages it rests after that.")
    delay: int | None = field("From which message on it can come up.")
    recursion: LoreRecursion = field("How it takes part when entries bring up entries.")
    content: str = field("The text.")
    is_enabled: bool = field("Whether it can come up at all.")
    review_status: ReviewStatus = field("Whether a person has taken it.")
    reviewed_at: datetime | None = field("When that was decided.")
    source: JSON = field("The entry exactly as its file had it.")
    created_at: datetime = field("When it was imported.")
    version: int = field("Counts its changes, from 1.")
    lorebook: LazyLorebook | None = relation(resolve.lorebooks_of_entries, "The book.")


@row_type
class Lorebook(Node):
    """A book of entries: of a draft, of a character, or of nobody but its owner."""

    name: str = field("What it is called; may be empty.")
    description: str = field("What it is about.")
    scan_depth: int | None = field("How many messages back keys are looked for, where it says so.")
    token_budget: int | None = field("How many tokens its entries may take, where it says so.")
    is_recursive: bool = field("Whether texts of entries are searched for keys as well.")
    entries: Connection[LorebookEntry] = relation(
        resolve.entries_of_lorebooks,
        "Its entries in the order of the book; totalCount counts those that are asked for.",
        arguments={"review_status": "Only those of one status."},
    )
    character: LazyCharacter | None = relation(
        resolve.characters_of_lorebooks, "Whose it is, from the activation of a draft on."
    )
    embryo: LazyEmbryoDraft | None = relation(
        resolve.embryos_of_lorebooks, "The draft whose card it came with."
    )
    created_at: datetime = field("When it was imported.")
    version: int = field("Counts its changes, from 1.")


@described_input
class LorebookEntryReviewInput:
    """Entries to decide about."""

    entry_ids: list[strawberry.ID] = field("The entries, 200 at most.")
    decision: ReviewDecision = field("What is decided about all of them; it can be taken back.")


@described
class LorebookEntryReviewPayload(Payload):
    """What was decided about."""

    entries: list[LorebookEntry] | None = field("The entries, in the order given.")


@described_input
class LoreRecursionInput:
    """How an entry takes part when the texts of entries are searched for keys as well."""

    exclude: bool = field("The text of other entries does not bring it up.")
    prevent: bool = field("Its own text brings up no others.")
    delay_until: int = field("The level of recursion that it waits for; 0 not to wait.")


@described_input
class LorebookEntryUpdateInput:
    """An entry to change; what is left out stays as it is."""

    entry_id: strawberry.ID = field("The entry.")
    expected_version: int | None = field(
        "The version that the change was made for; any other is refused with CONFLICT.",
        default=None,
    )
    name: strawberry.Maybe[str] = field("What people call it, 500 characters at most.")
    keys: strawberry.Maybe[list[str]] = field("Words that bring it up, 1,000 at most.")
    secondary_keys: strawberry.Maybe[list[str]] = field("Further words, 1,000 at most.")
    selective_logic: strawberry.Maybe[SelectiveLogic] = field("How secondary keys count.")
    is_constant: strawberry.Maybe[bool] = field("Whether it is always there.")
    position: strawberry.Maybe[LorePosition] = field("Where its text goes.")
    depth: strawberry.Maybe[int] = field("How many messages from the end.")
    insertion_order: strawberry.Maybe[int] = field("Lower stands earlier.")
    probability: strawberry.Maybe[int] = field("In percent.")
    sticky: strawberry.Maybe[int | None] = field("For how many messages it stays.")
    cooldown: strawberry.Maybe[int | None] = field("For how many messages it rests after that.")
    delay: strawberry.Maybe[int | None] = field("From which message on it can come up.")
    recursion: strawberry.Maybe[LoreRecursionInput] = field("How it takes part in recursion.")
    content: strawberry.Maybe[str] = field("The text, 1,000,000 characters at most.")
    is_enabled: strawberry.Maybe[bool] = field("Whether it can come up at all.")


@described
class LorebookEntryUpdatePayload(Payload):
    """The changed entry."""

    entry: LorebookEntry | None = field("The entry; its source stays.")


@described_input
class LorebookDeleteInput:
    """A book to delete."""

    lorebook_id: strawberry.ID = field("The book; its entries go with it.")


@described
class LorebookDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the book.")


@strawberry.type
class LorebookQuery:
    """Root fields about lorebooks."""

    lorebooks: Connection[Lorebook] = root_list(
        resolve.list_lorebooks, "The viewer's lorebooks, newest first."
    )


@strawberry.type
class LorebookMutation:
    """Changes to lorebooks."""

    lorebook_entry_review: LorebookEntryReviewPayload = mutation(
        resolve.review_entries,
        input=LorebookEntryReviewInput,
        payload=LorebookEntryReviewPayload,
        description="Take or leave entries that were imported.",
    )
    lorebook_entry_update: LorebookEntryUpdatePayload = mutation(
        resolve.update_entry,
        input=LorebookEntryUpdateInput,
        payload=LorebookEntryUpdatePayload,
        description="Change an entry of a lorebook.",
    )
    lorebook_delete: LorebookDeletePayload = mutation(
        resolve.delete_lorebook,
        input=LorebookDeleteInput,
        payload=LorebookDeletePayload,
        description="Delete a lorebook with its entries.",
    )
