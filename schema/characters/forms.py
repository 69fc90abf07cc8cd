"""Outward forms: what they are, and how they change."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import FormKind, FormStatus
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
    FormKind,
    PRIMARY="The character's own form; one of them is official at a time.",
    VARIANT="Another form beside it.",
)
enum(
    FormStatus,
    CANDIDATE="Proposed; not official before it is settled.",
    CONFIRMED="Official.",
    REJECTED="Turned down for good.",
    RETIRED="Was official once.",
)

if TYPE_CHECKING:
    from schema.characters import Character

LazyCharacter = Annotated["Character", strawberry.lazy("schema.characters")]


@described
class VariableFeature:
    """Something about an outward form that may change."""

    feature: str = field("What may change, such as the hair.")
    range: str = field("Within which range, such as black to silver.")


@row_type
class FormAnchor(Node):
    """What every outward form of a character keeps to. Whether one does is for people to see."""

    stable_traits: list[str] = field("What makes the character known again, 50 at most.")
    permissions: list[str] = field("What a form may show, 50 at most.")
    taboos: list[str] = field("What no form may show, 50 at most.")
    variable_range: list[VariableFeature] = field("What may change, by feature, 50 at most.")
    created_at: datetime = field("When it was set first.")
    updated_at: datetime | None = field("When it was set last; null before it was set anew.")
    version: int = field("Counts its changes, from 1.")
    character: LazyCharacter | None = relation(
        resolve.characters_of_forms, "The character that it belongs to."
    )


@row_type
class Form(Node):
    """An outward form of a character."""

    kind: FormKind = field("Which of the character's forms it is.")
    status: FormStatus = field("Whether it is official.")
    name: str = field("What it is called.")
    description: str = field("What it looks like; a model is told that of the primary form.")
    asset_ref: str | None = field("Where its picture is kept, as it was given.")
    settled_at: datetime | None = field("When it was settled; null before.")
    created_at: datetime = field("When it was proposed.")
    version: int = field("Counts its changes, from 1.")
    character: LazyCharacter | None = relation(
        resolve.characters_of_forms, "The character that it belongs to."
    )
    settled_by: User | None = relation(resolve.settlers_of_forms, "Who settled it.")


@described_input
class VariableFeatureInput:
    """Something about an outward form that may change."""

    feature: str = field("What may change, such as the hair; each once, 500 characters at most.")
    range: str = field("Within which range, such as black to silver; 500 characters at most.")


@described_input
class FormAnchorSetInput:
    """What every form of a character is to keep to, in place of all that was set before."""

    character_id: strawberry.ID = field("The character.")
    stable_traits: list[str] = field(
        "What makes the character known again: 50 at most, of 500 characters each."
    )
    permissions: list[str] = field("What a form may show: 50 at most, of 500 characters each.")
    taboos: list[str] = field("What no form may show: 50 at most, of 500 characters each.")
    variable_range: list[VariableFeatureInput] = field(
        "What may change, and within which range; 50 at most."
    )
    expected_version: int | None = field(
        "The version that you saw: refused with CONFLICT when it is another one.", default=None
    )


@described
class FormAnchorSetPayload(Payload):
    """The anchor as it is now."""

    anchor: FormAnchor | None = field("The anchor.")


@described_input
class FormProposeInput:
    """A form that a character could have."""

    character_id: strawberry.ID = field("The character.")
    kind: FormKind = field("Which of the character's forms it is to be.")
    name: str = field("What it is called, 500 characters at most.")
    description: str = field("What it looks like, 20,000 characters at most.")
    asset_ref: str | None = field(
        "Where its picture is kept, 2,000 characters at most; it is kept as it is.", default=None
    )


@described
class FormProposePayload(Payload):
    """The new candidate."""

    form: Form | None = field("The form.")


@described_input
class FormSettleInput:
    """A candidate that is to become official."""

    form_id: strawberry.ID = field("The form.")


@described
class FormSettlePayload(Payload):
    """The official form."""

    form: Form | None = field("The form.")


@described_input
class FormRejectInput:
    """A candidate to turn down."""

    form_id: strawberry.ID = field("The form.")


@described
class FormRejectPayload(Payload):
    """The form that was turned down."""

    form: Form | None = field("The form.")


@described_input
class FormRetireInput:
    """An official form that is to be one no longer."""

    form_id: strawberry.ID = field("The form.")


@described
class FormRetirePayload(Payload):
    """The form that was official."""

    form: Form | None = field("The form.")


@strawberry.type
class FormMutation:
    """Changes to outward forms."""

    form_anchor_set: FormAnchorSetPayload = mutation(
        resolve.set_anchor,
        input=FormAnchorSetInput,
        payload=FormAnchorSetPayload,
        description="Say what every form of a character keeps to.",
    )
    form_propose: FormProposePayload = mutation(
        resolve.propose_form,
        input=FormProposeInput,
        payload=FormProposePayload,
        description="Add a form as a candidate.",
    )
    form_settle: FormSettlePayload = mutation(
        resolve.settle_form,
        input=FormSettleInput,
        payload=FormSettlePayload,
        description="Make a candidate official; an earlier primary form is retired by it.",
    )
    form_reject: FormRejectPayload = mutation(
        resolve.reject_form,
        input=FormRejectInput,
        payload=FormRejectPayload,
        description="Turn a candidate down for good.",
    )
    form_retire: FormRetirePayload = mutation(
        resolve.retire_form,
        input=FormRetireInput,
        payload=FormRetirePayload,
        description="Let an official form be one no longer, for good.",
    )
