"""Petitions: what waits for a person's decision, deciding it, and the stream of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import cast

import strawberry

from db.enums import PetitionDecision, PetitionKind, PetitionStatus
from resolvers import petitions as resolve
from schema.accounts import User
from schema.base import (
    Connection,
    Info,
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
from schema.characters import Character
from schema.runs import Run

enum(
    PetitionKind,
    TOOL_EXECUTION="A run wants to use a capability.",
    DEATH="A character's life is to end.",
    WEIGHTY_MEMORY="A character wants to remember something weighty.",
    SOUL_FORGING="Who a character is at the core is to change.",
)
enum(
    PetitionStatus,
    PENDING="Waits for a decision.",
    APPROVED="Was approved, and what it asked for was done.",
    DENIED="Was refused.",
    EXPIRED="Nobody decided in time, so it was refused.",
)
enum(
    PetitionDecision,
    APPROVE="Do what it asks for, at once.",
    DENY="Do not.",
)


@described
class Brief:
    """What is asked, in six elements, for the person who decides."""

    action: str = field("What is to be done.")
    target: str = field("To whom or what.")
    purpose: str = field("What for, in the words of who asked.")
    data_involved: str = field("Which data it touches.")
    consequence: str = field("What follows.")
    reversibility: str = field("Whether and how it can be undone.")


@row_type
class Petition(Node):
    """A high-impact act that waits for a person's decision; time running out means no."""

    kind: PetitionKind = field("What kind of act.")
    status: PetitionStatus = field("What became of it.")
    brief: Brief = field("What is asked; empty texts when its character was erased.")
    character: Character | None = relation(resolve.characters_of_petitions, "Who it is about.")
    run: Run | None = relation(resolve.runs_of_petitions, "The run that waits for it.")
    requested_by: User | None = relation(
        resolve.requesters_of_petitions, "Who asked, where the viewer may see it."
    )
    expires_at: datetime = field("Until when it can be decided.")
    decided_at: datetime | None = field("When it was approved, denied or expired.")
    created_at: datetime = field("When it was opened.")


@described_input
class PetitionDecideInput:
    """A decision."""

    petition_id: strawberry.ID = field("The petition.")
    decision: PetitionDecision = field("Yes or no.")


@described
class PetitionDecidePayload(Payload):
    """What was decided."""

    petition: Petition | None = field("The petition.")
    character: Character | None = field("Its character, as it is now.")


@strawberry.type
class PetitionQuery:
    """Root fields about petitions."""

    petition: Petition | None = root_row(resolve.petition_by_id, "One petition.")
    petitions: Connection[Petition] = root_list(
        resolve.list_petitions,
        "Petitions about the viewer's characters, newest first.",
        arguments={"status": "Only those of this status."},
    )


@strawberry.type
class PetitionMutation:
    """Decisions."""

    petition_decide: PetitionDecidePayload = mutation(
        resolve.decide_petition,
        input=PetitionDecideInput,
        payload=PetitionDecidePayload,
        description="Approve a petition, which does what it asks for, or deny it.",
    )


@strawberry.type
class PetitionSubscription:
    """Streams of petitions."""

    @strawberry.subscription(
        description="Petitions about the viewer's characters: those that wait now, then each one "
        "when it is opened, decided or expires, as it is then."
    )
    async def petitions(self, info: Info) -> AsyncGenerator[Petition, None]:
        """What waits, and what becomes of it."""
        return cast("AsyncGenerator[Petition, None]", resolve.petitions(info.context))
