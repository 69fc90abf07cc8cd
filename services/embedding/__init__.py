"""Vectors of texts: who makes them, keeping them for the rows of a branch, the nearest of them.

Source: design, retrieval (1, 2, 11, 12, 13); spec aventuras, diagram (embeddings).
"""

from services.embedding.embedders import Embedder, EmbedderChoice, Embedders
from services.embedding.local import LOCAL_MODEL
from services.embedding.nearest import (
    KINDS,
    Neighbour,
    nearest_rows,
    neighbours_of_rows,
    vectors_of_rows,
)
from services.embedding.storing import VectorSweeper, has_vectors
from services.embedding.swapping import (
    Progress,
    cancel_swap,
    continue_swap,
    hold_swap,
    progress_of,
    relabel,
    start_swap,
    swapped,
)
from services.embedding.syncing import sync_branch, sync_branches
from services.embedding.vectors import EmbedderFault

__all__ = [
    "KINDS",
    "LOCAL_MODEL",
    "Embedder",
    "EmbedderChoice",
    "EmbedderFault",
    "Embedders",
    "Neighbour",
    "Progress",
    "VectorSweeper",
    "cancel_swap",
    "continue_swap",
    "has_vectors",
    "hold_swap",
    "nearest_rows",
    "neighbours_of_rows",
    "progress_of",
    "relabel",
    "start_swap",
    "swapped",
    "sync_branch",
    "sync_branches",
    "vectors_of_rows",
]
