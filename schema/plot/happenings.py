"""Changes to happenings, to who takes part in them and to who knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry

from resolvers import plot as resolve
from schema.base import Payload, described, described_input, field, mutation
from schema.branch_rows import EXPECTED_HEAD
from schema.plot.changes import CATEGORY, ICON, NEW_HEAD, TITLE
from schema.plot.rows import Happening, HappeningAwareness, HappeningInvolvement

if TYPE_CHECKING:
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
TEMPORAL = "When, in free words, where it has no entry; blank is none."
OCCURRED_AT = "The entry at which it occurred, where it has no time in words."
COMMON = "Whether everybody knows of it."
ROLE = "As what, in free words; blank is none."
SOURCE = "How the character knows, in free words; blank is none."
LEARNED_AT = "The entry at which the character learned of it."
RESISTANCE = "From 0, fades as others do, to 1, never fades."


@described_input
class InvolvementInput:
    """That an entity takes part."""

    entity_id: strawberry.ID = field("The entity, of any kind.")
    role: str | None = field(ROLE, default=None)


@described_input
class AwarenessInput:
    """That a character knows."""

    character_id: strawberry.ID = field("The character.")
    source: str | None = field(SOURCE, default=None)
    learned_at_entry_id: strawberry.ID | None = field(LEARNED_AT, default=None)
    decay_resistance: float | None = field(f"{RESISTANCE} 0 unless given.", default=None)


@described_input
class HappeningCreateInput:
    """A happening, with who takes part and who knows."""

    branch_id: strawberry.ID = field("The branch.")
    title: str = field(TITLE)
    description: str = field("What happened.", default="")
    category: str | None = field(CATEGORY, default=None)
    icon: str | None = field(ICON, default=None)
    temporal: str | None = field(TEMPORAL, default=None)
    occurred_at_entry_id: strawberry.ID | None = field(OCCURRED_AT, default=None)
    common_knowledge: bool = field(COMMON, default=False)
    involvements: list[InvolvementInput] | None = field("Who takes part.", default=None)
    awareness: list[AwarenessInput] | None = field(
        "Who knows of it; nobody is named where everybody does.", default=None
    )
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class HappeningCreatePayload(Payload):
    """The happening."""

    happening: Happening | None = field("The happening.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class HappeningUpdateInput:
    """A happening to change; what is left out stays as it is."""

    happening_id: strawberry.ID = field("The happening.")
    title: strawberry.Maybe[str] = field(TITLE)
    description: strawberry.Maybe[str] = field("What happened; may be empty.")
    category: strawberry.Maybe[str | None] = field(CATEGORY)
    icon: strawberry.Maybe[str | None] = field(ICON)
    temporal: strawberry.Maybe[str | None] = field(TEMPORAL)
    occurred_at_entry_id: strawberry.Maybe[strawberry.ID | None] = field(OCCURRED_AT)
    common_knowledge: strawberry.Maybe[bool] = field(
        f"{COMMON} Then the notes of who knows of it are deleted."
    )
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class HappeningUpdatePayload(Payload):
    """The changed happening."""

    happening: Happening | None = field("The happening.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class HappeningDeleteInput:
    """A happening to delete."""

    happening_id: strawberry.ID = field("The happening.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class HappeningDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the happening.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class InvolvementSetInput:
    """That an entity takes part; what is left out stays as it is."""

    happening_id: strawberry.ID = field("The happening.")
    entity_id: strawberry.ID = field("The entity, of any kind.")
    role: strawberry.Maybe[str | None] = field(ROLE)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class InvolvementSetPayload(Payload):
    """The involvement: the only one of the two."""

    involvement: HappeningInvolvement | None = field("The involvement.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class InvolvementDeleteInput:
    """An involvement to delete."""

    involvement_id: strawberry.ID = field("The involvement.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class InvolvementDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the involvement.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class AwarenessSetInput:
    """That a character knows of a happening; what is left out stays as it is."""

    happening_id: strawberry.ID = field("The happening; not one that everybody knows of.")
    character_id: strawberry.ID = field("The character.")
    source: strawberry.Maybe[str | None] = field(SOURCE)
    learned_at_entry_id: strawberry.Maybe[strawberry.ID | None] = field(LEARNED_AT)
    decay_resistance: strawberry.Maybe[float] = field(RESISTANCE)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class AwarenessSetPayload(Payload):
    """The awareness: the only one of the two."""

    awareness: HappeningAwareness | None = field("The awareness.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class AwarenessDeleteInput:
    """An awareness to delete: the character does not know."""

    awareness_id: strawberry.ID = field("The awareness.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class AwarenessDeletePayload(Payload):
    """What was deleted."""

    deleted_id: strawberry.ID | None = field("Id of the awareness.")
    branch: LazyBranch | None = field(NEW_HEAD)


@strawberry.type
class HappeningMutation:
    """Changes to happenings."""

    happening_create: HappeningCreatePayload = mutation(
        resolve.create_happening,
        input=HappeningCreateInput,
        payload=HappeningCreatePayload,
        description="Write down a happening, with who takes part in it and who knows of it.",
    )
    happening_update: HappeningUpdatePayload = mutation(
        resolve.update_happening,
        input=HappeningUpdateInput,
        payload=HappeningUpdatePayload,
        description="Change a happening.",
    )
    happening_delete: HappeningDeletePayload = mutation(
        resolve.delete_happening,
        input=HappeningDeleteInput,
        payload=HappeningDeletePayload,
        description="Delete a happening, with who took part, who knows of it and translations.",
    )
    involvement_set: InvolvementSetPayload = mutation(
        resolve.set_involvement,
        input=InvolvementSetInput,
        payload=InvolvementSetPayload,
        description="Say that an entity takes part in a happening, or as what.",
    )
    involvement_delete: InvolvementDeletePayload = mutation(
        resolve.delete_involvement,
        input=InvolvementDeleteInput,
        payload=InvolvementDeletePayload,
        description="Say that an entity takes no part in a happening.",
    )
    awareness_set: AwarenessSetPayload = mutation(
        resolve.set_awareness,
        input=AwarenessSetInput,
        payload=AwarenessSetPayload,
        description="Say that a character knows of a happening, or how, since when, how firmly.",
    )
    awareness_delete: AwarenessDeletePayload = mutation(
        resolve.delete_awareness,
        input=AwarenessDeleteInput,
        payload=AwarenessDeletePayload,
        description="Say that a character does not know of a happening.",
    )
