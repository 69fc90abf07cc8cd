"""Bringing what is embedded of a branch up to date: what has changed since is embedded, and a row
points at the vector of the text that it has. No transaction is open while an embedder works.

Source: design, retrieval (the stale flag; a nearest-neighbour query runs only after this).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from db.engine import Database
from services import deltas
from services.access import Viewer
from services.deltas import EmbeddedText
from services.embedding.embedders import Embedder
from services.embedding.remembered import is_synced, note_synced
from services.embedding.storing import keep_vectors, kept_hashes
from services.embedding.vectors import EmbedderFault, checked

# Texts that are embedded before their vectors are kept. What was kept is not lost when the rest
# fails or takes too long: the next one who tries goes on from there.
_BATCH = 64
# How often to look again where rows were changed, or vectors deleted, while others were embedded.
_ROUNDS = 3


async def sync_branches(
    database: Database, viewer: Viewer, embedders: Mapping[str, Embedder]
) -> None:
    """`sync_branch` for those of several branches that need it; `embedders` by their ids."""
    async with database.reading() as reading:
        waiting = await deltas.branches_to_embed(
            reading, {branch_id: each.model_id for branch_id, each in embedders.items()}
        )
    for branch_id in sorted(waiting):
        await sync_branch(database, viewer, branch_id, embedders[branch_id])


async def sync_branch(
    database: Database, viewer: Viewer, branch_id: str, embedder: Embedder
) -> int:
    """Embed what is still to be embedded of a branch; how many rows were marked so, or had no
    vector of this embedder. All of them point at their vectors then, or none does: what was edited
    meanwhile is embedded too, but after the third time left for the next one.

    Raises EmbedderFault with the number of rows that wait, and NotFound.
    """
    done = 0
    for _ in range(_ROUNDS):
        async with database.reading() as reading:
            state = await deltas.vector_state(reading, branch_id)
            if is_synced(branch_id, embedder.model_id, state):
                break
            waiting = await deltas.texts_to_embed(reading, branch_id, embedder.model_id)
        if not waiting:
            note_synced(branch_id, embedder.model_id, state)
            break
        dim = await embed_texts(database, embedder, waiting)
        async with database.writing() as writing:
            await deltas.hold_branch(writing, viewer, branch_id, "branchId")
            done += await deltas.note_embedded(writing, branch_id, embedder.model_id, dim, waiting)
            await deltas.mark_fresh(
                writing, branch_id, embedder.model_id, [each.kind for each in waiting]
            )
    return done


async def embed_texts(
    database: Database,
    embedder: Embedder,
    waiting: Sequence[EmbeddedText],
    *,
    most: int | None = None,
) -> int:
    """Have a vector kept of every text, or of `most` that have none; how many values they have.

    Raises EmbedderFault with the number of rows that wait.
    """
    texts = {each.text_hash: each.text for each in waiting}
    async with database.reading() as reading:
        kept = await kept_hashes(reading, embedder.model_id, list(texts))
    if embedder.dim is None and len(kept) == 1:
        (embedder.dim,) = kept
    there = kept.get(embedder.dim, set()) if embedder.dim is not None else set()
    missing = iter([each for each in texts if each not in there][:most])
    try:
        while batch := list(islice(missing, _BATCH)):
            vectors = await embedder.embed([texts[each] for each in batch], is_query=False)
            checked(vectors, len(batch), embedder.dim)
            async with database.writing() as writing:
                await keep_vectors(
                    writing,
                    embedder.model_id,
                    len(vectors[0]),
                    dict(zip(batch, vectors, strict=True)),
                )
            embedder.dim = len(vectors[0])
    except EmbedderFault as fault:
        raise fault.with_stale(len(waiting)) from None
    assert embedder.dim is not None  # of texts that were kept, or that were embedded now
    return embedder.dim
