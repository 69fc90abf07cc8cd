"""How stories are embedded, so that rows are found by what they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import strawberry

from db.enums import EmbedderFailure, EmbeddingBackend
from resolvers import embedding as resolve
from schema.base import (
    Payload,
    described,
    described_input,
    enum,
    field,
    mutation,
    relation,
)
from schema.branch_rows import BranchNode
from schema.translations import Translatable

if TYPE_CHECKING:
    from schema.stories.rows import Story

LazyStory = Annotated["Story", strawberry.lazy("schema.stories.rows")]

enum(
    EmbedderFailure,
    NOT_INSTALLED="This server has no model of its own.",
    MODEL_MISSING="No model was chosen, or the server does not have it.",
    PROVIDER_MISSING="The provider is not there any more.",
    PROVIDER_UNFIT="The provider embeds nothing.",
    NO_VECTORS="The database cannot compare vectors: it lacks pgvector.",
)
_BACKEND = "Whether the server's own model embeds, or one of a provider."
_STORY = "The story."


@described
class SimilarRow:
    """A row that is like another by what it means."""

    score: float = field("The cosine of the two vectors: 1 for the same, 0 for nothing in common.")
    node: BranchNode = field("The row.")


@strawberry.interface(description="A row of a branch that is found by what it means.")
class Embeddable(Translatable):
    """What types of such rows derive from."""

    similar: list[SimilarRow] = relation(
        resolve.similar_of_rows,
        "Rows of the same branch that are most like it by what they mean, of whichever kind; none "
        "where searchModes has no VECTOR, and none of a row of the past. What has changed is "
        "embedded first; where that fails, EMBEDDER_FAILED is told.",
        arguments={"first": "How many: 50 at most."},
    )


@described
class EmbeddingSwap:
    """A model that is to take over. Until it has all rows the old one is used."""

    backend: EmbeddingBackend = field(_BACKEND)
    model_id: str = field("The model.")
    provider_id: strawberry.ID | None = field("The provider, where there is one.")
    staged: int = field("For how many rows it has a vector.")
    total: int = field("How many there are.")


@described
class StoryEmbedder:
    """How the texts of a story are embedded."""

    backend: EmbeddingBackend = field(_BACKEND)
    model_id: str | None = field("The model; null where none was chosen.")
    provider_id: strawberry.ID | None = field("The provider, where there is one.")
    dim: int | None = field("How many numbers a vector has, where that is known.")
    failure: EmbedderFailure | None = field("Why nothing is embedded; null where it is.")
    row_count: int = field("How many rows there are to be embedded, in all branches.")
    stale_count: int = field("How many of them are still to be embedded.")
    swap: EmbeddingSwap | None = field("The model that is to take over; null where none is.")


@described_input
class EmbeddingSwapStartInput:
    """A model that is to take over."""

    story_id: strawberry.ID = field(_STORY)
    backend: EmbeddingBackend = field(_BACKEND)
    model_id: str = field("The model.")
    provider_id: strawberry.ID | None = field("The provider, where one embeds.", default=None)


@described
class EmbeddingSwapStartPayload(Payload):
    """The story."""

    story: LazyStory | None = field(_STORY)


@described_input
class EmbeddingSwapResumeInput:
    """A story in which a model is to take over."""

    story_id: strawberry.ID = field(_STORY)


@described
class EmbeddingSwapResumePayload(Payload):
    """The story."""

    story: LazyStory | None = field(_STORY)


@described_input
class EmbeddingSwapCancelInput:
    """A story in which no model is to take over any more."""

    story_id: strawberry.ID = field(_STORY)


@described
class EmbeddingSwapCancelPayload(Payload):
    """The story."""

    story: LazyStory | None = field(_STORY)


@described_input
class EmbeddingRelabelInput:
    """Where the model of a story is to be found from now on."""

    story_id: strawberry.ID = field(_STORY)
    model_id: str = field("The model, as that provider calls it.")
    provider_id: strawberry.ID = field("The provider.")


@described
class EmbeddingRelabelPayload(Payload):
    """The story."""

    story: LazyStory | None = field(_STORY)


@strawberry.type
class EmbeddingMutation:
    """Changes to how stories are embedded."""

    embedding_swap_start: EmbeddingSwapStartPayload = mutation(
        resolve.start_swap,
        input=EmbeddingSwapStartInput,
        payload=EmbeddingSwapStartPayload,
        description="Have another model embed a story. Call embeddingSwapResume until `swap` is "
        "null; until then the old model is used.",
    )
    embedding_swap_resume: EmbeddingSwapResumePayload = mutation(
        resolve.resume_swap,
        input=EmbeddingSwapResumeInput,
        payload=EmbeddingSwapResumePayload,
        description="Embed for some seconds for the model that is to take over; it takes over when "
        "it has every row.",
    )
    embedding_swap_cancel: EmbeddingSwapCancelPayload = mutation(
        resolve.cancel_swap,
        input=EmbeddingSwapCancelInput,
        payload=EmbeddingSwapCancelPayload,
        description="Keep the old model, and forget what was embedded for the new one.",
    )
    embedding_relabel: EmbeddingRelabelPayload = mutation(
        resolve.relabel,
        input=EmbeddingRelabelInput,
        payload=EmbeddingRelabelPayload,
        description="Say that the model of a story is the same as one of a provider: its vectors "
        "stay, and nothing is embedded.",
    )
