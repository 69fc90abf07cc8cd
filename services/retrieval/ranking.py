"""Which rows of a kind come into a prompt: their scores, their order, and whom the budget seats.

What a prompt gets and what a simulation says both come from here. Source: retrieval, sections 6
and 7. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from db.enums import DropReason, QuerySlot, SearchKind
from services.retrieval.parameters import Parameters
from services.retrieval.queries import blended

# Similarities are rounded, so that the order of summing never shows.
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row of a pool, with all that its score is made of."""

    kind: SearchKind
    id: str
    name: str
    text: str | None
    # In the order of the queries; None where a query has no vector.
    similarities: tuple[float | None, ...]
    # Of length 1.
    vector: NDArray[np.float32] | None = field(default=None, compare=False)
    # From 0, fades as others do, to 1, never fades.
    pin: float = 0.0
    # In chapters.
    age: int = 0
    is_keyword_hit: bool = False
    # A happening of a chapter that is seated.
    is_in_seated_chapter: bool = False
    # A happening that everybody knows of.
    is_common: bool = False
    # With what stands around it; only the best are priced.
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """A score and its parts."""

    blend: float
    recency: float
    pin: float
    age: int
    keyword_bonus: float
    is_revived: bool
    value: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and what became of it; no place and no price where it was not among the best."""

    candidate: Candidate
    score: Score
    drop: DropReason
    mmr: float | None = None
    rank: int | None = None
    tokens: int | None = None

    @property
    def is_seated(self) -> bool:
        """Whether it comes into the prompt."""
        return self.drop is DropReason.NOT_DROPPED


def recency_of(age: float, fade: float, pin: float) -> float:
    """What is left of a row after so many chapters; a full pin keeps it whole."""
    return math.exp(-fade * max(age, 0) * (1 - min(max(pin, 0.0), 1.0)))


def score_of(candidate: Candidate, slots: Sequence[QuerySlot], parameters: Parameters) -> Score:
    """How much a row matters."""
    blend = blended(slots, candidate.similarities, parameters.weights)
    bonus = parameters.keyword_bonus if candidate.is_keyword_hit else 0.0
    pin, age = min(max(candidate.pin, 0.0), 1.0), max(candidate.age, 0)
    if candidate.is_common:
        # Nobody has learned of it, so nothing fades and nothing is pinned.
        pin, recency, base = 0.0, 1.0, blend + bonus
    else:
        pin = min(max(parameters.pins.get(candidate.id, pin), 0.0), 1.0)
        recency = recency_of(age, parameters.fades[candidate.kind], pin)
        base = blend * recency * (1 + parameters.pin_factors[candidate.kind] * pin) + bonus
    revived = blend - parameters.revival
    is_revived = revived >= 0 and revived > base
    value = max(base, revived) if revived >= 0 else base
    if candidate.is_in_seated_chapter:
        value *= parameters.chapter_boost
    return Score(blend, recency, pin, age, bonus, is_revived, value)


def diversified(
    scores: Sequence[float], vectors: NDArray[np.float32], diversity: float
) -> list[tuple[int, float]]:
    """All rows in the order in which they are picked, each by its place, with the score it had
    then: its own, less its likeness to the likest of those before it.

    Of equals the first is picked. A row that is unlike all of them is raised.
    """
    own = diversity * np.asarray(scores, dtype=np.float64)
    likenesses = np.clip(vectors.astype(np.float64) @ vectors.T.astype(np.float64), -1, 1)
    likenesses = np.round(likenesses, DIGITS)
    likest = np.zeros(len(own))
    waiting = np.ones(len(own), dtype=bool)
    order = []
    for place in range(len(own)):
        values = np.where(waiting, own - (1 - diversity) * likest, -np.inf)
        picked = int(values.argmax())
        order.append((picked, float(values[picked])))
        waiting[picked] = False
        likest = np.maximum(likest, likenesses[picked]) if place else likenesses[picked]
    return order


def rank(
    candidates: Sequence[Candidate],
    slots: Sequence[QuerySlot],
    parameters: Parameters,
    budget: int,
    spent: int,
    price: Callable[[Candidate], int],
) -> list[Ranked]:
    """All candidates of one kind: the best in the order in which they were picked, then the rest
    by their scores. The order in which they are given does not matter. `spent` is what keywords
    took of the budget.
    """
    scored = sorted(
        ((score_of(each, slots, parameters), each) for each in candidates),
        key=lambda pair: (-pair[0].value, pair[1].id),
    )
    best, rest = scored[: parameters.pre_filter], scored[parameters.pre_filter :]
    picked = _picked([(score.value, each.vector) for score, each in best], parameters.diversity)
    ranked = [
        Ranked(
            best[place][1],
            best[place][0],
            DropReason.NOT_DROPPED,
            mmr,
            number,
            price(best[place][1]),
        )
        for number, (place, mmr) in enumerate(picked, start=1)
    ]
    return filled(ranked, budget, spent, parameters.score_floor) + [
        Ranked(each, score, DropReason.PRE_FILTERED) for score, each in rest
    ]


def _picked(best: Sequence[tuple[float, Any]], diversity: float) -> list[tuple[int, float]]:
    if not best:
        return []
    return diversified([score for score, _ in best], np.stack([row for _, row in best]), diversity)


def filled(ranked: Sequence[Ranked], budget: int, spent: int, score_floor: float) -> list[Ranked]:
    """Rows in their order, each with whether it is seated or why it is dropped.

    The first one below the floor shuts the door for all behind it, except for those that were
    revived; a revived one shuts it as well.
    """
    left, is_shut, decided = budget - spent, False, []
    for each in ranked:
        mmr, tokens = each.mmr or 0.0, each.tokens or 0
        is_shut = is_shut or mmr < score_floor
        if is_shut and not each.score.is_revived:
            drop = DropReason.BELOW_THRESHOLD
        elif tokens > budget:
            drop = DropReason.CANDIDATE_TOO_LARGE
        elif tokens > left:
            drop = DropReason.OVER_BUDGET
        else:
            drop = DropReason.NOT_DROPPED
            left -= tokens
        decided.append(Ranked(each.candidate, each.score, drop, each.mmr, each.rank, each.tokens))
    return decided
