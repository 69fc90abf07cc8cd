"""Another model for a story: its vectors are made beside the old ones, then taken all at once.

A swap is marked in the story's settings, so it can be gone on with or given up whenever and by
whichever server. Source: design, retrieval (model swap); spec aventuras, story settings shape.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.engine import Database
from db.enums import EmbeddingBackend
from db.reading import Reading, Record, Statement, Writing, columns, param, statement
from db.tables import Branch, Story
from services import deltas
from services.access import Viewer, hold_row, require_row, rows_by_ids
from services.deltas.embedding import texts_in
from services.embedding.embedders import Embedder, EmbedderChoice, Embedders
from services.embedding.nearest import KINDS
from services.embedding.storing import copy_vectors
from services.embedding.syncing import embed_texts
from services.embedding.vectors import EmbedderFault
from services.errors import Conflict, Invalid
from services.text import MAX_LINE, checked_text

_PATH = ("input", "storyId")
_MARKERS = (
    "embedding_swap_target",
    "embedding_swap_backend",
    "embedding_swap_provider_id",
    "embedding_swap_source_dim",
    "embedding_swap_target_dim",
)
# How many texts are embedded in one go, and for how many seconds a call goes on.
_STEP = 32
_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a story is embedded: its rows in all branches, how many of them are marked as not
    embedded, and how many have a vector of the model that is to take over.
    """

    rows: int = 0
    stale: int = 0
    staged: int = 0


_PROGRESS: Statement[Any] = Statement(
    "SELECT b.story_id, count(*) AS rows, count(*) FILTER (WHERE t.is_stale) AS stale, "
    "count(e.id) AS staged FROM unnest($1::text[], $2::text[]) AS w (story_id, model_id) "
    f"JOIN branches b ON b.story_id = w.story_id CROSS JOIN LATERAL ({texts_in('b.id')}) t "
    "LEFT JOIN embeddings e ON e.branch_id = b.id AND e.target_kind = t.kind "
    "AND e.target_id = t.id AND e.model_id = w.model_id AND e.source_hash = md5(t.body) "
    "GROUP BY b.story_id",
    ("story_ids", "model_ids"),
    {},
    Record,
)


async def progress_of(
    reading: Reading, viewer: Viewer, targets: Mapping[str, str | None]
) -> dict[str, Progress]:
    """How far stories are embedded, by their ids; nothing is said of one that the viewer may not
    see. `targets` are the names under which the vectors are kept of the models that are to take
    over.
    """
    stories = await rows_by_ids(reading, viewer, Story, list(targets))
    seen = [each.id for each in stories if each is not None]
    rows = await reading.all(
        _PROGRESS, story_ids=seen, model_ids=[targets[each] or "" for each in seen]
    )
    found = {row.story_id: Progress(row.rows, row.stale, row.staged) for row in rows}
    return {each: found.get(each, Progress()) for each in targets}


def swapped(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings of a story as they will be after the swap that runs; None where none does."""
    if settings.get(_MARKERS[0]) is None:
        return None
    kept = {key: value for key, value in settings.items() if key not in _MARKERS}
    return _with_model(
        kept,
        EmbeddingBackend(settings["embedding_swap_backend"]),
        settings[_MARKERS[0]],
        settings.get("embedding_swap_provider_id"),
    )


async def start_swap(
    writing: Writing,
    viewer: Viewer,
    embedders: Embedders,
    story_id: str,
    *,
    backend: EmbeddingBackend,
    model_name: str,
    provider_id: str | None,
) -> Story:
    """Mark that another model is to embed a story. Until the swap is done the old one is read.

    Raises NotFound, Conflict (SWAP_RUNNING), Invalid (TEXT_…, EMBEDDER_MISSING, SAME_EMBEDDER).
    """
    story = await _held(writing, viewer, story_id)
    old, new = await _choices(writing, viewer, embedders, story, backend, model_name, provider_id)
    marker = {
        "embedding_swap_target": model_name,
        "embedding_swap_backend": backend,
        "embedding_swap_provider_id": new.provider_id,
        "embedding_swap_source_dim": old.embedder and old.embedder.dim,
        "embedding_swap_target_dim": new.embedder and new.embedder.dim,
    }
    given = {key: value for key, value in marker.items() if value is not None}
    return await _write(writing, story, {**story.settings, **given})


async def hold_swap(writing: Writing, viewer: Viewer, story_id: str) -> Story:
    """A story in which a swap runs, held. Raises NotFound, Conflict (NO_SWAP)."""
    story = await hold_row(writing, viewer, Story, story_id, *_PATH)
    _require_swap(story)
    return story


async def continue_swap(
    database: Database, viewer: Viewer, embedders: Embedders, story_id: str
) -> Story:
    """Embed for some seconds for the new model, and let it take over where it has every row then.

    Raises what `stage_swap` and `finish_swap` raise.
    """
    await stage_swap(database, viewer, embedders, story_id)
    async with database.writing() as writing:
        return await finish_swap(writing, viewer, embedders, story_id)


async def stage_swap(
    database: Database, viewer: Viewer, embedders: Embedders, story_id: str
) -> None:
    """Go on with a swap for some seconds: embed rows that have no vector of the new model yet.

    Raises NotFound, Conflict (NO_SWAP), and EmbedderFault with the number of rows that wait.
    """
    async with database.reading() as reading:
        story = await require_row(reading, viewer, Story, story_id, *_PATH)
        embedder = await _target(reading, viewer, embedders, story)
        branch_ids = [row.id for row in await reading.all(_branches(), story_id=story.id)]
    until = time.monotonic() + _SECONDS
    for branch_id in branch_ids:
        while time.monotonic() < until:
            async with database.reading() as reading:
                waiting = await deltas.texts_to_embed(
                    reading, branch_id, embedder.model_id, with_flags=False
                )
            if not waiting:
                break
            dim = await embed_texts(database, embedder, waiting, most=_STEP)
            async with database.writing() as writing:
                # Who gave the swap up meanwhile wants no more of it.
                held = await hold_row(writing, viewer, Story, story.id, *_PATH)
                if _markers(held) != _markers(story):
                    return
                await deltas.hold_branch(writing, viewer, branch_id, *_PATH)
                await deltas.note_embedded(writing, branch_id, embedder.model_id, dim, waiting)


async def finish_swap(
    writing: Writing, viewer: Viewer, embedders: Embedders, story_id: str
) -> Story:
    """Let the new model take over where every row has a vector of it, else change nothing; the
    story. Raises NotFound, Conflict (NO_SWAP), EmbedderFault.
    """
    story = await hold_row(writing, viewer, Story, story_id, *_PATH)
    embedder = await _target(writing, viewer, embedders, story)
    branch_ids = await _hold_branches(writing, viewer, story)
    for branch_id in branch_ids:
        if await deltas.texts_to_embed(writing, branch_id, embedder.model_id, with_flags=False):
            return story
    await deltas.forget_models(writing, branch_ids, embedder.model_id, others=True)
    for branch_id in branch_ids:
        kinds = [str(each) for each in KINDS]
        await deltas.mark_fresh(writing, branch_id, embedder.model_id, kinds)
    settings = swapped(story.settings)
    assert settings is not None  # there is a swap
    return await _write(writing, story, settings)


async def cancel_swap(
    writing: Writing, viewer: Viewer, embedders: Embedders, story_id: str
) -> Story:
    """Give a swap up: what was embedded for it is forgotten, and the old model stays.

    Raises NotFound, Conflict (NO_SWAP).
    """
    story = await hold_row(writing, viewer, Story, story_id, *_PATH)
    target = _require_swap(story)
    choices = await embedders.choices_of_stories(writing, viewer, {story.id: target})
    branch_ids = await _hold_branches(writing, viewer, story)
    model_id = choices[story.id].model_id
    assert model_id is not None  # a mark names it
    await deltas.forget_models(writing, branch_ids, model_id)
    return await _write(writing, story, _without_markers(story.settings))


async def relabel(
    writing: Writing,
    viewer: Viewer,
    embedders: Embedders,
    story_id: str,
    *,
    model_name: str,
    provider_id: str,
) -> Story:
    """Let the vectors of a story count as those of another provider's model, of which its owner
    says that it is the same one; nothing is embedded.

    Raises NotFound, Conflict (SWAP_RUNNING), Invalid (TEXT_…, EMBEDDER_MISSING, SAME_EMBEDDER).
    """
    story = await _held(writing, viewer, story_id)
    backend = EmbeddingBackend.PROVIDER
    old, new = await _choices(writing, viewer, embedders, story, backend, model_name, provider_id)
    branch_ids = await _hold_branches(writing, viewer, story)
    assert new.model_id is not None  # who can embed has a name
    if old.model_id is not None:
        await copy_vectors(writing, branch_ids, old.model_id, new.model_id)
        await deltas.rename_model(writing, branch_ids, old.model_id, new.model_id)
    settings = _with_model(story.settings, backend, model_name, provider_id)
    return await _write(writing, story, settings)


def _with_model(
    settings: Mapping[str, Any],
    backend: EmbeddingBackend,
    model_name: str,
    provider_id: str | None,
) -> dict[str, Any]:
    changed = {**settings, "embeddingBackend": str(backend), "embedding_model_id": model_name}
    changed.pop("embedding_provider_id", None)
    return changed if provider_id is None else {**changed, "embedding_provider_id": provider_id}


def _markers(story: Story) -> dict[str, Any]:
    return {key: story.settings.get(key) for key in _MARKERS[:3]}


def _without_markers(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in _MARKERS}


def _require_swap(story: Story) -> dict[str, Any]:
    target = swapped(story.settings)
    if target is None:
        raise Conflict("No other model is to embed this story.", "NO_SWAP", _PATH)
    return target


async def _held(writing: Writing, viewer: Viewer, story_id: str) -> Story:
    """A story, held, in which no swap runs."""
    story = await hold_row(writing, viewer, Story, story_id, *_PATH)
    if swapped(story.settings) is not None:
        raise Conflict(
            "Another model is taking over already: go on with that, or give it up.",
            "SWAP_RUNNING",
            _PATH,
        )
    return story


async def _choices(
    reading: Reading,
    viewer: Viewer,
    embedders: Embedders,
    story: Story,
    backend: EmbeddingBackend,
    model_name: str,
    provider_id: str | None,
) -> tuple[EmbedderChoice, EmbedderChoice]:
    """Who embeds a story, and who is to; the latter can."""
    checked_text(model_name, "input", "modelId", max_length=MAX_LINE)
    settings = _with_model(story.settings, backend, model_name, provider_id)
    old = (await embedders.choices_of_stories(reading, viewer, {story.id: story.settings}))[
        story.id
    ]
    new = (await embedders.choices_of_stories(reading, viewer, {story.id: settings}))[story.id]
    if new.failure is not None:
        raise Invalid(
            f"Nothing can be embedded so: {new.failure}.", "EMBEDDER_MISSING", ("input", "modelId")
        )
    if old.model_id == new.model_id:
        raise Invalid("This model embeds it already.", "SAME_EMBEDDER", ("input", "modelId"))
    return old, new


async def _target(reading: Reading, viewer: Viewer, embedders: Embedders, story: Story) -> Embedder:
    target = _require_swap(story)
    choices = await embedders.choices_of_stories(reading, viewer, {story.id: target})
    choice = choices[story.id]
    if choice.embedder is None:
        raise EmbedderFault(f"Nothing can be embedded: {choice.failure}.", reason="init")
    return choice.embedder


async def _hold_branches(writing: Writing, viewer: Viewer, story: Story) -> list[str]:
    """All branches of a story, held in the order of their ids."""
    branch_ids = [row.id for row in await writing.all(_branches(), story_id=story.id)]
    for each in branch_ids:
        await deltas.hold_branch(writing, viewer, each, *_PATH)
    return branch_ids


async def _write(writing: Writing, story: Story, settings: Mapping[str, Any]) -> Story:
    written = await writing.first(_update(), of_id=story.id, settings=dict(settings))
    assert written is not None  # it is held
    return written


@statement(Branch)
def _branches() -> Any:
    return (
        select(col(Branch.id)).where(col(Branch.story_id) == param("story_id")).order_by(Branch.id)
    )


@statement(Story)
def _update() -> Any:
    return (
        update(Story)
        .where(col(Story.id) == param("of_id"))
        .values(
            settings=param("settings", JSONB()),
            updated_at=func.clock_timestamp(),
            version=col(Story.version) + 1,
        )
        .returning(*columns(Story))
    )
