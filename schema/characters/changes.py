"""Changes to characters and drafts: inputs, payloads and mutations."""

from __future__ import annotations

import strawberry

from db.enums import Origin
from resolvers import characters as resolve
from schema.base import (
    Payload,
    described,
    described_input,
    field,
    mutation,
)
from schema.characters.rows import Character, EmbryoDraft


@described_input
class EmbryoIdentityInput:
    """Who a character is to be."""

    name: str = field("What it is called.")
    nickname: str | None = field("What it is called in talk.", default=None)
    description: str | None = field("Who it is.", default=None)
    personality: str | None = field("What it is like.", default=None)
    scenario: str | None = field("Where it is now.", default=None)
    first_message: str | None = field("How it opens a talk.", default=None)
    example_messages: str | None = field("How it talks, by example.", default=None)
    system_prompt: str | None = field("What a model is told before everything else.", default=None)
    post_history_instructions: str | None = field("What a model is told last of all.", default=None)
    forbidden_zone: list[str] | None = field("What must never happen.", default=None)


@described_input
class EmbryoCreateInput:
    """A draft made by hand."""

    identity: EmbryoIdentityInput = field("Who the character is to be.")
    origin: Origin = field("Where the character comes from.", default=Origin.ORIGINAL)


@described
class EmbryoCreatePayload(Payload):
    """The new draft."""

    embryo: EmbryoDraft | None = field("The draft.")


@described_input
class EmbryoActivateInput:
    """A draft that is to become a character."""

    embryo_id: strawberry.ID = field("The draft.")
    confirmed: list[str] = field(
        "The keys of all points of its checklist that were not confirmed before.",
        default_factory=list,
    )


@described
class EmbryoActivatePayload(Payload):
    """The new character."""

    character: Character | None = field("The character.")


@strawberry.type
class CharacterMutation:
    """Changes to characters."""

    embryo_create: EmbryoCreatePayload = mutation(
        resolve.create_embryo,
        input=EmbryoCreateInput,
        payload=EmbryoCreatePayload,
        description="Make a draft by hand.",
    )
    embryo_activate: EmbryoActivatePayload = mutation(
        resolve.activate_embryo,
        input=EmbryoActivateInput,
        payload=EmbryoActivatePayload,
        description="Turn a draft into a character, with its custodian and its seat.",
    )
