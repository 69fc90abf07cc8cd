"""Eras: the moments from which a story's calendar counts by another one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry

from resolvers.stories import dating as resolve_times
from resolvers.stories import eras as resolve
from schema.base import (
    Long,
    Payload,
    described,
    described_input,
    field,
    mutation,
    relation,
    row_type,
)
from schema.branch_rows import EXPECTED_HEAD, BranchNode

if TYPE_CHECKING:
    from schema.stories.rows import Branch

LazyBranch = Annotated["Branch", strawberry.lazy("schema.stories.rows")]
NEW_HEAD = "The branch, with its new head."
NAME = "What the era is called, 500 characters at most."
AT = "When it begins, from 0 to 100,000,000,000; at 0 it is the era in which the story begins."


@row_type
class EraFlip(BranchNode):
    """That an era begins. A calendar without eras takes no notice."""

    at_world_time: Long = field("When: seconds since the beginning of the story.")
    at_world_time_label: str = relation(
        resolve_times.labels_of_flips,
        "The same as the story's calendar says it, in the new era.",
    )
    era_name: str = field("What the era is called.")
    created_at: datetime = field("When somebody said so.")


@described_input
class EraFlipCreateInput:
    """The beginning of an era: at the time of an entry, or of a branch at a time."""

    era_name: str = field(NAME)
    entry_id: strawberry.ID | None = field(
        "The entry at whose time it begins; instead of branchId and atWorldTime.", default=None
    )
    branch_id: strawberry.ID | None = field("The branch.", default=None)
    at_world_time: Long | None = field(AT, default=None)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EraFlipPayload(Payload):
    """The beginning of the era."""

    era_flip: EraFlip | None = field("The beginning of the era.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class EraFlipUpdateInput:
    """The beginning of an era to change; what is left out stays as it is."""

    era_flip_id: strawberry.ID = field("The beginning of the era.")
    era_name: strawberry.Maybe[str] = field(NAME)
    at_world_time: strawberry.Maybe[Long] = field(AT)
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EraFlipUpdatePayload(Payload):
    """The changed beginning of the era."""

    era_flip: EraFlip | None = field("The beginning of the era.")
    branch: LazyBranch | None = field(NEW_HEAD)


@described_input
class EraFlipDeleteInput:
    """The beginning of an era to take back."""

    era_flip_id: strawberry.ID = field("The beginning of the era.")
    expected_head: int | None = field(EXPECTED_HEAD, default=None)


@described
class EraFlipDeletePayload(Payload):
    """What was taken back."""

    deleted_id: strawberry.ID | None = field("Id of the beginning of the era.")
    branch: LazyBranch | None = field(NEW_HEAD)


@strawberry.type
class EraMutation:
    """Changes to eras."""

    era_flip: EraFlipPayload = mutation(
        resolve.flip_era,
        input=EraFlipCreateInput,
        payload=EraFlipPayload,
        description="Begin an era. There is one at most at each moment of a branch.",
    )
    era_flip_update: EraFlipUpdatePayload = mutation(
        resolve.update_flip,
        input=EraFlipUpdateInput,
        payload=EraFlipUpdatePayload,
        description="Change the name of an era or its beginning.",
    )
    era_flip_delete: EraFlipDeletePayload = mutation(
        resolve.delete_flip,
        input=EraFlipDeleteInput,
        payload=EraFlipDeletePayload,
        description="Take an era back.",
    )
