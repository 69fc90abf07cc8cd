"""Work on drafts until they are activated or given up, and trial talk with them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any, TypeAlias, cast

import strawberry

from db.enums import TextChannel
from resolvers import characters as resolve
from schema.base import Info, Payload, described, described_input, enum, field, mutation
from schema.characters.rows import EmbryoDraft, RehearsalTurn

enum(
    TextChannel,
    TEXT="The answer itself: all pieces joined are the whole of it.",
    REASONING="What the model thinks aloud.",
)


@described_input
class EmbryoIdentityUpdateInput:
    """What changes about who a character is to be: what is left out stays, null takes away."""

    name: strawberry.Maybe[str] = field("What it is called.")
    nickname: strawberry.Maybe[str | None] = field("What it is called in talk.")
    description: strawberry.Maybe[str | None] = field("Who it is.")
    personality: strawberry.Maybe[str | None] = field("What it is like.")
    scenario: strawberry.Maybe[str | None] = field("Where it is now.")
    first_message: strawberry.Maybe[str | None] = field("How it opens a talk.")
    example_messages: strawberry.Maybe[str | None] = field("How it talks, by example.")
    system_prompt: strawberry.Maybe[str | None] = field(
        "What a model is told before everything else."
    )
    post_history_instructions: strawberry.Maybe[str | None] = field(
        "What a model is told last of all."
    )
    forbidden_zone: strawberry.Maybe[list[str] | None] = field("What must never happen.")


@described_input
class EmbryoUpdateInput:
    """Changes to a draft."""

    embryo_id: strawberry.ID = field("The draft.")
    identity: strawberry.Maybe[EmbryoIdentityUpdateInput] = field(
        "What changes about who it is to be. Unless `confirmed` is given too, a changed forbidden "
        "zone takes back the confirmation of the boundaries, any other change that of the identity."
    )
    confirmed: strawberry.Maybe[list[str]] = field(
        "The keys of all points of the checklist that are confirmed from now on."
    )
    expected_version: int | None = field(
        "The version that the change was made for; any other is refused with CONFLICT.",
        default=None,
    )


@described
class EmbryoUpdatePayload(Payload):
    """The changed draft."""

    embryo: EmbryoDraft | None = field("The draft.")


@described_input
class EmbryoAbandonInput:
    """A draft to give up."""

    embryo_id: strawberry.ID = field("The draft.")


@described
class EmbryoAbandonPayload(Payload):
    """What is no more."""

    deleted_id: strawberry.ID | None = field("The id that the draft had.")


@described_input
class EmbryoRehearsalClearInput:
    """A draft whose trial talk is to be forgotten."""

    embryo_id: strawberry.ID = field("The draft.")


@described
class EmbryoRehearsalClearPayload(Payload):
    """The draft without its trial talk."""

    embryo: EmbryoDraft | None = field("The draft.")


@strawberry.type
class DraftMutation:
    """Changes to drafts."""

    embryo_update: EmbryoUpdatePayload = mutation(
        resolve.update_embryo,
        input=EmbryoUpdateInput,
        payload=EmbryoUpdatePayload,
        description="Change who a draft is to be, confirm points of its checklist, or both.",
    )
    embryo_abandon: EmbryoAbandonPayload = mutation(
        resolve.abandon_embryo,
        input=EmbryoAbandonInput,
        payload=EmbryoAbandonPayload,
        description="Delete a draft with its trial talk, its lorebooks and its imported files.",
    )
    embryo_rehearsal_clear: EmbryoRehearsalClearPayload = mutation(
        resolve.clear_rehearsal,
        input=EmbryoRehearsalClearInput,
        payload=EmbryoRehearsalClearPayload,
        description="Forget the trial talk of a draft.",
    )


def _event(cls: type[Any]) -> Any:
    """A type whose values are of the service's class of the same name."""
    name = cls.__name__
    cls.is_type_of = lambda value, _info: type(value).__name__ == name
    return described(cls)


@_event
class RehearsalDelta:
    """A piece of what the draft answers."""

    channel: TextChannel = field("Which stream it belongs to.")
    text: str = field("The piece; join the pieces of a channel in order.")


@_event
class RehearsalFinished:
    """The end of the turn: the draft keeps it."""

    turn: RehearsalTurn = field("What was asked and answered.")
    embryo: EmbryoDraft = field("The draft with the turn.")


RehearsalEvent: TypeAlias = Annotated[
    RehearsalDelta | RehearsalFinished,
    strawberry.union("RehearsalEvent", description="What happens in one turn of trial talk."),
]


@strawberry.type
class DraftSubscription:
    """Streams about drafts."""

    @strawberry.subscription(
        description="One turn of trial talk with a draft: the pieces of its answer, then "
        "RehearsalFinished. Earlier turns are its context. Nothing is kept when you hang up."
    )
    async def embryo_rehearsal(
        self,
        info: Info,
        embryo_id: Annotated[strawberry.ID, strawberry.argument(description="The draft.")],
        text: Annotated[str, strawberry.argument(description="What is said to it.")],
    ) -> AsyncGenerator[RehearsalEvent, None]:
        """One turn of trial talk."""
        events = resolve.embryo_rehearsal(info.context, embryo_id, text)
        return cast("AsyncGenerator[RehearsalEvent, None]", events)
