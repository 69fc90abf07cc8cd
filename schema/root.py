"""Joins the nouns into the schema."""

from __future__ import annotations

from typing import Annotated

import strawberry
from strawberry.schema.config import StrawberryConfig

from resolvers import nodes as resolve
from schema.accounts import AccountQuery, AuditEvent
from schema.app_settings import AppSettingsMutation, AppSettingsQuery
from schema.assets import AssetMutation, AssetQuery
from schema.base import LONG_SCALAR, Info, Long, Node, root_row
from schema.calendars import CalendarMutation, CalendarQuery
from schema.characters import (
    CharacterMutation,
    CharacterQuery,
    DraftMutation,
    DraftSubscription,
    EmbryoDraft,
    EndingMutation,
    FormMutation,
    IdentityMutation,
    IdentityQuery,
    SeatMutation,
    VoiceMutation,
)
from schema.comparing import ComparingMutation, ComparingQuery
from schema.deltas import BranchSubscription
from schema.embedding import EmbeddingMutation
from schema.entities import ENTITY_TYPES, EntityMutation
from schema.lorebooks import LorebookMutation, LorebookQuery
from schema.mirrors import Canonization, MirrorMutation, MirrorQuery, MirrorSubscription
from schema.petitions import PetitionMutation, PetitionQuery, PetitionSubscription
from schema.plot import HappeningMutation, LoreMutation, ThreadMutation
from schema.retrieval import ProbeQuery, RetrievalMutation
from schema.runs import EVENT_TYPES, RunMutation, RunQuery, RunSubscription
from schema.searching import SearchQuery
from schema.stories import StoryMutation, StoryQuery
from schema.stories.chapters import ChapterMutation
from schema.stories.entries import EntryMutation
from schema.stories.eras import EraMutation
from schema.stories.ways_back import WaysBackMutation
from schema.transfers import TransferMutation, TransferQuery
from schema.translations import TranslationMutation
from schema.wire.uploads import UPLOAD_SCALAR, Upload
from schema.worlds import WorldMutation, WorldQuery


@strawberry.type
class NodeQuery:
    """Fetching anything by its id."""

    node: Node | None = root_row(
        resolve.row_by_id, "Anything by its id; null when it is not there for the viewer."
    )

    @strawberry.field(description="Several things by id, in order; null where one is not there.")
    async def nodes(
        self,
        info: Info,
        ids: Annotated[
            list[strawberry.ID], strawberry.argument(description="Their ids, 100 at most.")
        ],
    ) -> list[Node | None]:
        """Several things."""
        return await resolve.rows_by_ids(info.context, ids)


@strawberry.type(description="Everything that can be read.")
class Query(
    NodeQuery,
    AccountQuery,
    AppSettingsQuery,
    AssetQuery,
    CalendarQuery,
    CharacterQuery,
    ComparingQuery,
    LorebookQuery,
    MirrorQuery,
    RunQuery,
    TransferQuery,
    IdentityQuery,
    PetitionQuery,
    WorldQuery,
    ProbeQuery,
    SearchQuery,
    StoryQuery,
):
    """The root of queries."""


@strawberry.type(description="Everything that can be changed.")
class Mutation(
    EmbeddingMutation,
    EntityMutation,
    AppSettingsMutation,
    AssetMutation,
    CalendarMutation,
    CharacterMutation,
    DraftMutation,
    EndingMutation,
    FormMutation,
    SeatMutation,
    LorebookMutation,
    MirrorMutation,
    RunMutation,
    TransferMutation,
    VoiceMutation,
    IdentityMutation,
    PetitionMutation,
    StoryMutation,
    WaysBackMutation,
    ComparingMutation,
    EntryMutation,
    ChapterMutation,
    EraMutation,
    LoreMutation,
    ThreadMutation,
    HappeningMutation,
    WorldMutation,
    TranslationMutation,
    RetrievalMutation,
):
    """The root of mutations."""


@strawberry.type(description="Everything that can be watched.")
class Subscription(
    BranchSubscription,
    DraftSubscription,
    MirrorSubscription,
    RunSubscription,
    PetitionSubscription,
):
    """The root of subscriptions."""


schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    types=[AuditEvent, EmbryoDraft, Canonization, *ENTITY_TYPES, *EVENT_TYPES],
    # Of Strawberry's own execution nothing is used: schema/wire/execution.py calls graphql-core.
    config=StrawberryConfig(
        sort_schema=True, scalar_map={Long: LONG_SCALAR, Upload: UPLOAD_SCALAR}
    ),
)


def sdl() -> str:
    """The schema as text, as the reference implementation prints it. That takes the directive
    @oneOf for granted, which Strawberry writes down.
    """
    return schema.as_str().removeprefix("directive @oneOf on INPUT_OBJECT\n\n") + "\n"
