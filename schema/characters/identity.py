"""Identity: asking for a change of who a character is, and the key that signs identity records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import IdentitySection
from resolvers import characters as resolve
from schema.base import Info, Payload, described, described_input, enum, field, mutation
from schema.characters.drafts import EmbryoIdentityUpdateInput
from schema.exports import Export

enum(
    IdentitySection,
    IDENTITY="Who the character is: its name, its origin and its baseline.",
    DATA="How much there is of it, and the ids of what belongs to it.",
    RUNTIME_STATE="Where it stood: its status, its version and the epoch of its seat.",
)

if TYPE_CHECKING:
    from schema.petitions import Petition

LazyPetition = Annotated["Petition", strawberry.lazy("schema.petitions")]


@described_input
class IdentityChangeInput:
    """A change of who a character is at the core."""

    character_id: strawberry.ID = field("The character.")
    identity: EmbryoIdentityUpdateInput = field("What is to change about who it is.")
    purpose: str = field("What for: whoever decides reads it.")
    expected_version: int | None = field(
        "The version that the change was made for; any other is refused with CONFLICT.",
        default=None,
    )


@described
class IdentityChangePayload(Payload):
    """What was asked."""

    petition: LazyPetition | None = field("Waits for approval; until then nothing changes.")


@described_input
class IdentityExportInput:
    """An identity record to write to a file."""

    character_id: strawberry.ID = field("The character.")
    sections: list[IdentitySection] = field(
        "The sections that the file holds; it can be checked without the others.",
        default_factory=lambda: list(IdentitySection),
    )


@described
class IdentityExportPayload(Payload):
    """The file."""

    export: Export | None = field("The newest version of the record, as JSON, for download.")


@strawberry.type
class IdentityQuery:
    """Root fields about identity."""

    @strawberry.field(
        description="The public key by which this server signs identity records: Ed25519, base64."
    )
    async def identity_signer(self, info: Info) -> str:
        """The public key."""
        return await resolve.identity_signer(info.context)


@strawberry.type
class IdentityMutation:
    """Changes to who a character is."""

    identity_change: IdentityChangePayload = mutation(
        resolve.ask_identity_change,
        input=IdentityChangeInput,
        payload=IdentityChangePayload,
        description="Ask for a change of who a character is at the core; it is made when the "
        "petition is approved.",
    )
    identity_export: IdentityExportPayload = mutation(
        resolve.export_identity,
        input=IdentityExportInput,
        payload=IdentityExportPayload,
        description="Write the newest version of an identity record to a file that anybody can "
        "check.",
    )
