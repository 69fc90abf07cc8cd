"""How stories are embedded, rows that are like a row, and models that take over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import EmbedderFailure, EmbeddingBackend, SearchMode
from db.tables import Branch, Story
from resolvers.context import Context
from services import embedding as service
from services.access import rows_by_ids
from services.embedding import EmbedderChoice

# The most neighbours of a row that are shown.
MAX_SIMILAR = 50


@dataclass(frozen=True, slots=True)
class EmbeddingSwap:
    """A model that is to take over, and for how many rows it has."""

    backend: EmbeddingBackend
    model_id: str
    provider_id: str | None
    staged: int
    total: int


@dataclass(frozen=True, slots=True)
class StoryEmbedder:
    """How a story is embedded."""

    backend: EmbeddingBackend
    model_id: str | None
    provider_id: str | None
    dim: int | None
    failure: EmbedderFailure | None
    row_count: int
    stale_count: int
    swap: EmbeddingSwap | None


@dataclass(frozen=True, slots=True)
class SimilarRow:
    """A row that is like another, and how much so."""

    score: float
    node: Any


async def embedders_of_stories(context: Context, stories: Sequence[Story]) -> list[StoryEmbedder]:
    """How each story is embedded."""
    embedders = context.engine.embedders
    async with context.reading() as reading:
        present = await embedders.choices_of_stories(
            reading, context.viewer, {each.id: each.settings for each in stories}
        )
        after = {each.id: service.swapped(each.settings) for each in stories}
        targets = await embedders.choices_of_stories(
            reading, context.viewer, {key: each for key, each in after.items() if each is not None}
        )
        progress = await service.progress_of(
            reading,
            context.viewer,
            {
                each.id: targets[each.id].model_id if each.id in targets else None
                for each in stories
            },
        )
    return [
        _embedder(present[each.id], targets.get(each.id), progress[each.id]) for each in stories
    ]


def _embedder(
    choice: EmbedderChoice, target: EmbedderChoice | None, progress: service.Progress
) -> StoryEmbedder:
    swap = None
    if target is not None:
        swap = EmbeddingSwap(
            target.backend,
            target.model_name or "",
            target.provider_id,
            progress.staged,
            progress.rows,
        )
    return StoryEmbedder(
        choice.backend,
        choice.model_name,
        choice.provider_id,
        choice.embedder.dim if choice.embedder else None,
        choice.failure,
        progress.rows,
        progress.stale,
        swap,
    )


async def search_modes_of_branches(
    context: Context, branches: Sequence[Branch]
) -> list[list[SearchMode]]:
    """How each branch can be searched: by words always, by meaning where somebody embeds it."""
    async with context.reading() as reading:
        choices = await context.engine.embedders.choices_of(
            reading, context.viewer, [each.id for each in branches]
        )
    return [
        list(SearchMode)
        if each.id in choices and choices[each.id].embedder
        else [SearchMode.KEYWORD]
        for each in branches
    ]


async def similar_of_rows(
    context: Context, rows: Sequence[Any], *, first: int = 10
) -> list[list[SimilarRow]]:
    """The rows of the same branch that are most like each row, the most alike first; none of a
    row of the past, whose neighbours nobody keeps.
    """
    most = max(0, min(first, MAX_SIMILAR))
    live = [each for each in rows if each.moment is None]
    branch_ids = list(dict.fromkeys(each.branch_id for each in live))
    synced = await context.batcher.load_many(_synced_branches, branch_ids, {})
    models: dict[str, str | None] = dict(zip(branch_ids, synced, strict=True))
    asked = [(each, model) for each in live if (model := models[each.branch_id]) is not None]
    async with context.reading() as reading:
        found = await service.neighbours_of_rows(
            reading,
            context.viewer,
            [(row.branch_id, row.row_id, model) for row, model in asked],
            most,
        )
    near = {(row.branch_id, row.row_id): each for (row, _), each in zip(asked, found, strict=True)}
    nodes: dict[str, Any] = {}
    async with context.reading() as reading:
        # One statement for each kind, also where none is near: their number is the same for all.
        for kind, table in service.KINDS.items():
            ids = [
                f"{branch_id}:{each.row_id}"
                for (branch_id, _), neighbours in near.items()
                for each in neighbours
                if each.kind is kind
            ]
            wanted = list(dict.fromkeys(ids))
            rows_there = await rows_by_ids(reading, context.viewer, table, wanted)
            nodes |= dict(zip(wanted, rows_there, strict=True))
    return [
        [
            SimilarRow(each.similarity, node)
            for each in near.get((row.branch_id, row.row_id), ())
            if row.moment is None and (node := nodes[f"{row.branch_id}:{each.row_id}"]) is not None
        ]
        for row in rows
    ]


async def _synced_branches(context: Context, branch_ids: Sequence[str]) -> list[str | None]:
    """Bring what is embedded of branches up to date, once for an operation; the names under which
    the vectors of each are kept, None where nobody embeds it.
    """
    async with context.reading() as reading:
        choices = await context.engine.embedders.choices_of(reading, context.viewer, branch_ids)
    embedders = {
        branch_id: choice.embedder
        for branch_id, choice in choices.items()
        if choice.embedder is not None
    }
    if embedders:
        await service.sync_branches(context.engine.database, context.viewer, embedders)
    return [embedders[each].model_id if each in embedders else None for each in branch_ids]


async def start_swap(context: Context, input: Any) -> dict[str, Any]:
    """Have another model take over a story."""
    async with context.writing() as change:
        story = await service.start_swap(
            change.writing,
            context.viewer,
            context.engine.embedders,
            input.story_id,
            backend=input.backend,
            model_name=input.model_id,
            provider_id=input.provider_id,
        )
        return change.answer(story=story)


async def resume_swap(context: Context, input: Any) -> dict[str, Any]:
    """Go on with it, and end it where that was the last of it."""
    async with context.writing() as change:
        story = await service.hold_swap(change.writing, context.viewer, input.story_id)
        answer = change.answer(story=story)
    # A repeat does not come here. No transaction is open while texts are embedded.
    engine = context.engine
    going_on = service.continue_swap(
        engine.database, context.viewer, engine.embedders, input.story_id
    )
    return {**answer, "story": await going_on}


async def cancel_swap(context: Context, input: Any) -> dict[str, Any]:
    """Give it up."""
    async with context.writing() as change:
        story = await service.cancel_swap(
            change.writing, context.viewer, context.engine.embedders, input.story_id
        )
        return change.answer(story=story)


async def relabel(context: Context, input: Any) -> dict[str, Any]:
    """Call the model of a story by another name."""
    async with context.writing() as change:
        story = await service.relabel(
            change.writing,
            context.viewer,
            context.engine.embedders,
            input.story_id,
            model_name=input.model_id,
            provider_id=input.provider_id,
        )
        return change.answer(story=story)
