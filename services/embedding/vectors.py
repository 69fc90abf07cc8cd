"""What a vector must be: finite, of the right length, and of length 1.

Source: design, retrieval (truncation, failure modes).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from services.errors import Unavailable

# How far the square of the length may be from 1.
_TOLERANCE = 0.001


class EmbedderFault(Unavailable):
    """Texts cannot be embedded: the embedder cannot be set up (`init`) or failed at work (`call`).

    How many rows wait for it is in `details`, where it is known.
    """

    default_code = "EMBEDDER_FAILED"

    def __init__(self, message: str, *, reason: Literal["init", "call"] = "call") -> None:
        super().__init__(message, details={"reason": reason})

    def with_stale(self, count: int) -> EmbedderFault:
        """The same, with the number of rows that wait."""
        self.details["staleCount"] = count
        return self


def checked(vectors: Sequence[Sequence[float]], count: int, dim: int | None) -> None:
    """Refuse what are not `count` vectors of length 1 that have `dim` values each, where that is
    known. Raises EmbedderFault.
    """
    if len(vectors) != count:
        raise EmbedderFault(f"The embedder gave {len(vectors)} vectors for {count} texts.")
    for each in vectors:
        if len(each) != (len(vectors[0]) if dim is None else dim):
            told = "" if dim is None else f" instead of {dim}"
            raise EmbedderFault(f"The embedder gave a vector of {len(each)} values{told}.")
        square = math.fsum(value * value for value in each)
        # Also where one of them is no number.
        if not abs(square - 1.0) <= _TOLERANCE:
            raise EmbedderFault("The embedder gave a vector that does not have length 1.")


def cut(vector: Sequence[float], dim: int | None) -> list[float]:
    """The first `dim` values of a vector, all where it is None, made to have length 1 again.

    Raises EmbedderFault where there is nothing to make longer, or no number.
    """
    kept = vector if dim is None else vector[:dim]
    length = math.sqrt(math.fsum(value * value for value in kept))
    if not (math.isfinite(length) and length > 0):
        raise EmbedderFault("The embedder gave a vector without a direction.")
    return [value / length for value in kept]


def literal(vector: Sequence[float]) -> str:
    """A vector as PostgreSQL reads it."""
    return f"[{','.join(map(repr, map(float, vector)))}]"


def cosine(value: float) -> float:
    """A product of two vectors of length 1 as their similarity: between -1 and 1."""
    return max(-1.0, min(1.0, value))
