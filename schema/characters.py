"""Characters: from a card or a draft to an activated character."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry.scalars import JSON

from db.enums import CharacterStatus, EmbryoStatus, Origin
from resolvers import characters as resolve
from schema.accounts import User
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
    root_row,
    row_type,
)
from schema.wire.uploads import Upload

enum(
    Origin,
    ORIGINAL="Made here.",
    ADOPTED="Taken over from another user.",
    IMPORTED="Read from a file.",
    SERENDIPITY="Met by chance.",
)
enum(
    EmbryoStatus,
    DRAFT="Being written.",
    REHEARSING="In trial talk.",
    READY="Complete, waiting for confirmation.",
    ISSUED="Has become a character.",
)
enum(
    CharacterStatus,
    ACTIVE="Lives and can be talked with.",
    SUSPENDED="Set aside for now.",
    DEATH_PENDING="In the cooling-off period before death.",
    DECEASED="A read-only archive.",
    PURGED="Its data was erased.",
)

if TYPE_CHECKING:
    from schema.mirrors import MirrorTree

LazyMirrorTree = Annotated["MirrorTree", strawberry.lazy("schema.mirrors")]


@row_type
class RuntimeSeat(Node):
    """The one seat from which a character may run."""

    epoch: int = field("Rises whenever the seat is taken anew.")
    lease_holder: str | None = field("The server that holds the seat now.")
    lease_expires_at: datetime | None = field("Until when; null while the seat is free.")


@row_type
class Character(Node):
    """A character that was activated and lives on."""

    name: str = field("What the character is called.")
    status: CharacterStatus = field("Where it stands in its life.")
    origin: Origin = field("Where it comes from.")
    identity_baseline: JSON = field(
        "Who it is at the core (core_anchor) and what must never happen (forbidden_zone)."
    )
    custodian: User | None = relation(
        resolve.custodians_of_characters, "The user who governs the character."
    )
    seat: RuntimeSeat | None = relation(
        resolve.seats_of_characters, "The seat that a run must hold."
    )
    trees: Connection[LazyMirrorTree] = relation(
        resolve.trees_of_characters, "Mirror trees with this character, newest first."
    )
    created_at: datetime = field("When it was activated.")
    version: int = field("Counts its changes, from 1.")


@described
class ChecklistPoint:
    """Something to look at before a draft becomes a character."""

    key: str = field("Pass it as confirmed when activating.")
    label: str = field("What is confirmed.")
    is_confirmed: bool = field("Whether it was confirmed.")


@row_type
class EmbryoDraft(Node):
    """A draft that may become a character."""

    origin: Origin = field("Where it comes from.")
    status: EmbryoStatus = field("How far it has come.")
    provisional_identity: JSON = field("Who it is to be, in the field names of a character card.")
    checklist: list[ChecklistPoint] = field("What must be confirmed before activation.")
    created_at: datetime = field("When it was made.")
    version: int = field("Counts its changes, from 1.")


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
class CharacterQuery:
    """Root fields about characters."""

    characters: Connection[Character] = root_list(
        resolve.list_characters, "The viewer's characters, oldest first."
    )
    character: Character | None = root_row(resolve.character_by_id, "One character.")
    embryos: Connection[EmbryoDraft] = root_list(
        resolve.list_embryos, "The viewer's drafts, newest first."
    )


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
