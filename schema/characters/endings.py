"""How a character's life ends: custodianship, death, its withdrawal, and erasure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import CustodianshipStatus
from resolvers import characters as resolve
from schema.accounts import User
from schema.base import (
    Node,
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
    row_type,
)

enum(
    CustodianshipStatus,
    ACTIVE="Governs the character, or its archive.",
    ENDED="Ended when the character was erased.",
)

if TYPE_CHECKING:
    from schema.characters.rows import Character
    from schema.petitions import Petition

LazyCharacter = Annotated["Character", strawberry.lazy("schema.characters.rows")]
LazyPetition = Annotated["Petition", strawberry.lazy("schema.petitions")]


@row_type
class Custodianship(Node):
    """That a user governs a character and answers for it; apart from any covenant between them."""

    status: CustodianshipStatus = field("Whether it still holds.")
    started_at: datetime = field("When the character was activated.")
    ended_at: datetime | None = field("When the character was erased.")
    user: User | None = relation(resolve.users_of_custodianships, "Who governs.")


@described_input
class DeathRequestInput:
    """A character whose life is to end."""

    character_id: strawberry.ID = field("The character.")
    purpose: str = field("Why, for whoever decides: 500 characters at most.")


@described
class DeathRequestPayload(Payload):
    """The petition for it."""

    petition: LazyPetition | None = field(
        "Approve it with petitionDecide; nothing else has changed yet."
    )


@described_input
class DeathRevokeInput:
    """A death to take back."""

    character_id: strawberry.ID = field("The character.")


@described
class DeathRevokePayload(Payload):
    """The character."""

    character: LazyCharacter | None = field("Active again.")


@described_input
class DataEraseInput:
    """A deceased character whose data is to be erased."""

    character_id: strawberry.ID = field("The character.")
    name: str = field("Its name, letter by letter: this cannot be taken back.")


@described
class DataErasePayload(Payload):
    """What is left of the character."""

    character: LazyCharacter | None = field("A tombstone: ids, times and states without texts.")


@strawberry.type
class EndingMutation:
    """Ends of lives."""

    death_request: DeathRequestPayload = mutation(
        resolve.request_death,
        input=DeathRequestInput,
        payload=DeathRequestPayload,
        description="Ask for a character's death, which a petition decides.",
    )
    death_revoke: DeathRevokePayload = mutation(
        resolve.revoke_death,
        input=DeathRevokeInput,
        payload=DeathRevokePayload,
        description="Take a death back while it cools off (Character.coolingOffUntil).",
    )
    data_erase: DataErasePayload = mutation(
        resolve.erase_character,
        input=DataEraseInput,
        payload=DataErasePayload,
        description="Erase all texts of a deceased character and its talks; tombstones stay.",
    )
