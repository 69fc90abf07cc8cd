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
from schema.wire.uploads import Upload


@described
class CardWarning:
    """Something in an imported file that was mended or left out."""

    code: str = field("For programs: upper case and stable.")
    message: str = field("For people: what was done.")
    path: str = field("The place in the file, dotted; empty for the file as a whole.")


@described_input
class CardImportInput:
    """A character card to read."""

    file: Upload = field("The card: PNG or JSON, V1, V2 or V3.")


@described
class CardImportPayload(Payload):
    """What became of a card."""

    embryo: EmbryoDraft | None = field("The draft.")
    warnings: list[CardWarning] | None = field("What was mended or left out.")


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
    confirmed: list[str] = field("The key of every point of its checklist.")


@described
class EmbryoActivatePayload(Payload):
    """The new character."""

    character: Character | None = field("The character.")


@strawberry.type
class CharacterMutation:
    """Changes to characters."""

    card_import: CardImportPayload = mutation(
        resolve.import_card,
        input=CardImportInput,
        payload=CardImportPayload,
        description="Read a character card into a draft.",
    )
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
