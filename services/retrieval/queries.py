"""What is asked for: up to six texts of four slots, and how similarities to them become one number.

Source: retrieval, section 3. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from db.enums import QuerySlot
from services.retrieval.parameters import MAX_DIRECT_QUERIES, MAX_QUERY_LENGTH


@dataclass(frozen=True, slots=True)
class Query:
    """A text that rows are compared with."""

    slot: QuerySlot
    text: str


def digest_of(scene: Iterable[str], threads: Iterable[str], era: str | None) -> str:
    """Where the story stands, in up to three lines: who and what is there, what goes on, the era.

    `scene` are the names of what is present, and of the place.
    """
    present, titles = ", ".join(filter(None, scene)), ", ".join(filter(None, threads))
    lines = (
        present and f"{present}.",
        titles and f"Active threads: {titles}",
        era and f"Era: {era}",
    )
    return "\n".join(filter(None, lines))


def query_stack(action: str, digest: str, summary: str, direct: Iterable[str]) -> list[Query]:
    """What is asked for; slots without a text are absent. `summary` and `direct` are those of the
    last entry that a model wrote.
    """
    asked = [
        (QuerySlot.ACTION, action.strip()),
        (QuerySlot.DIGEST, digest),
        (QuerySlot.SUMMARY, summary[:MAX_QUERY_LENGTH]),
    ]
    cut = dict.fromkeys(each[:MAX_QUERY_LENGTH] for each in direct)
    distinct = [each for each in cut if each.strip()]
    asked += [(QuerySlot.DIRECT, each) for each in distinct[:MAX_DIRECT_QUERIES]]
    return [Query(slot, text) for slot, text in asked if text.strip()]


def shares_of(
    slots: Sequence[QuerySlot], weights: Mapping[QuerySlot, float]
) -> dict[QuerySlot, float]:
    """How much each slot counts that is present; 1 together, however many queries a slot has."""
    present = list(dict.fromkeys(slots))
    whole = sum(weights[each] for each in present)
    return {each: weights[each] / whole if whole else 0.0 for each in present}


def blended(
    slots: Sequence[QuerySlot],
    similarities: Sequence[float | None],
    weights: Mapping[QuerySlot, float],
) -> float:
    """One similarity of several, those of a slot by their mean; None is no similarity of 0, but a
    query without a vector, which is absent.
    """
    by_slot: dict[QuerySlot, list[float]] = {}
    for slot, similarity in zip(slots, similarities, strict=True):
        if similarity is not None:
            by_slot.setdefault(slot, []).append(similarity)
    shares = shares_of(list(by_slot), weights)
    return sum(shares[slot] * float(np.mean(values)) for slot, values in by_slot.items())
