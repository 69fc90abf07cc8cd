"""How near the rows of a branch are to the queries of a retrieval, by the story's embedder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from db.enums import SearchKind
from db.reading import Reading
from services import embedding
from services.embedding import Embedder
from services.retrieval.queries import Query
from services.retrieval.retrieving import Vector


class BranchMeaning:
    """Queries that have been embedded, and the vectors to which a branch's rows point."""

    def __init__(self, model_id: str, vectors: Sequence[Sequence[float]]) -> None:
        self.model_id = model_id
        self.vectors = [np.asarray(each, dtype=np.float32) for each in vectors]

    async def near(
        self, reading: Reading, branch_id: str, kind: SearchKind, limit: int
    ) -> list[list[tuple[str, float]]]:
        """See Meaning."""
        found = []
        for vector in self.vectors:
            nearest = await embedding.nearest_rows(
                reading, branch_id, self.model_id, len(vector), vector.tolist(), [kind], limit
            )
            found.append([(each.row_id, each.similarity) for each in nearest])
        return found

    async def vectors_of(
        self, reading: Reading, branch_id: str, ids: Iterable[str]
    ) -> dict[str, Vector]:
        """See Meaning."""
        found = await embedding.vectors_of_rows(
            reading, branch_id, self.model_id, len(self.vectors[0]), list(ids)
        )
        return {row_id: np.asarray(each, dtype=np.float32) for row_id, each in found.items()}


async def meaning_of(embedder: Embedder, queries: Sequence[Query]) -> BranchMeaning | None:
    """The queries as an embedder understands them; None where nothing is asked for. No connection
    is held while it works. Raises EmbedderFault.
    """
    if not queries:
        return None
    vectors = await embedder.embed([each.text for each in queries], is_query=True)
    return BranchMeaning(embedder.model_id, vectors)
