"""A whole retrieval: what waits is embedded, then the queries are, then rows are ranked."""

from __future__ import annotations

from db.engine import Database
from db.enums import ProbeFailure
from services import embedding
from services.access import Viewer
from services.embedding import EmbedderFault, Embedders
from services.retrieval.gathering import World, read_world
from services.retrieval.meaning import BranchMeaning, meaning_of
from services.retrieval.retrieving import Retrieved, action_of, queries_in, retrieve


async def retrieve_for(
    database: Database,
    embedders: Embedders,
    viewer: Viewer,
    branch_id: str,
    text: str | None,
    *path: str | int,
) -> Retrieved:
    """What the next prompt of a branch would carry. Raises NotFound.

    A branch without an embedder has the floor, and what keywords seat; so has one whose embedder
    fails, which is said in `failure`.
    """
    async with database.reading() as reading:
        world = await read_world(reading, viewer, branch_id, *path)
        embedder = await embedders.embedder_of(reading, viewer, branch_id)
    meaning: BranchMeaning | None = None
    failure: ProbeFailure | None = None
    if embedder is not None:
        try:
            if await embedding.sync_branch(database, viewer, branch_id, embedder):
                # Rows that waited do not any more.
                world = await _read_again(database, viewer, branch_id, *path)
            meaning = await meaning_of(embedder, queries_in(world, action_of(world, text)))
        except EmbedderFault as fault:
            failure = ProbeFailure(fault.details.get("reason", ProbeFailure.CALL))
    action = action_of(world, text)
    queries = queries_in(world, action)
    async with database.reading() as reading:
        try:
            return await retrieve(reading, viewer, world, action, queries, meaning, failure)
        except EmbedderFault:
            # A vector that was kept is none of length 1.
            return await retrieve(reading, viewer, world, action, queries, None, ProbeFailure.CALL)


async def _read_again(
    database: Database, viewer: Viewer, branch_id: str, *path: str | int
) -> World:
    async with database.reading() as reading:
        return await read_world(reading, viewer, branch_id, *path)
