"""Scores, diversity and the fill: every number of the rules, and what never may happen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import DropReason, QuerySlot, SearchKind
from services.retrieval.parameters import Parameters
from services.retrieval.ranking import (
    Candidate,
    Ranked,
    diversified,
    filled,
    rank,
    recency_of,
    score_of,
)

ACTION = (QuerySlot.ACTION,)
DEFAULTS = Parameters()
ENTITY, LORE, THREAD = SearchKind.ENTITY, SearchKind.LORE, SearchKind.THREAD
HAPPENING, CHAPTER = SearchKind.HAPPENING, SearchKind.CHAPTER


def candidate(
    kind: SearchKind = LORE, similarity: float | None = 0.5, id: str = "a", **values: Any
) -> Candidate:
    vector = np.asarray(values.pop("vector", (1.0, 0.0)), dtype=np.float32)
    return Candidate(kind, id, id.upper(), "text", (similarity,), vector, **values)


def score(each: Candidate, **changes: Any) -> float:
    return score_of(each, ACTION, DEFAULTS.changed(changes)).value


def price(each: Candidate) -> int:
    assert each.tokens is not None
    return each.tokens


@pytest.mark.parametrize(
    ("age", "fade", "pin", "expected"),
    [
        (10, 0.07, 0, 0.4966),
        (10, 0.07, 0.5, 0.7047),
        (10, 0.07, 1, 1),
        (28, 0.025, 0, 0.4966),
        (57, 0.07, 0.3, 0.0612),
        (99, 0, 0, 1),
        (-5, 0.07, 0, 1),
        (10, 0.07, 7, 1),
        (10, 0.07, -7, 0.4966),
    ],
)
def test_chapters_fade_a_row_and_a_pin_holds_it(
    age: int, fade: float, pin: float, expected: float
) -> None:
    """Rule B111."""
    assert round(recency_of(age, fade, pin), 4) == expected


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (candidate(LORE, 0.6, pin=1.0), 0.75),
        (candidate(LORE, 0.6, pin=1.0, is_keyword_hit=True), 0.85),
        (candidate(LORE, 0.02, pin=1.0), 0.025),
        (candidate(LORE, 0.6, pin=9.0), 0.75),
        (candidate(LORE, 0.6, pin=1.0, age=50), 0.75),
        (candidate(ENTITY, 0.6, pin=0.0, age=28), 0.298),
        (candidate(THREAD, 0.6, age=28), 0.298),
        (candidate(CHAPTER, 0.6, age=28), 0.6),
        (candidate(HAPPENING, 0.6, age=10), 0.298),
        (candidate(HAPPENING, 0.6, age=10, pin=1.0), 0.6),
        (candidate(HAPPENING, 0.6, age=10, pin=1.0, is_common=True), 0.6),
        (candidate(HAPPENING, 0.6, age=10, is_common=True, is_keyword_hit=True), 0.7),
        (candidate(HAPPENING, 0.5, is_in_seated_chapter=True), 0.65),
        # Faded to nothing, and so similar that it comes back; then the chapter counts.
        (candidate(HAPPENING, 0.95, age=57), 0.1),
        (candidate(HAPPENING, 0.95, age=57, is_in_seated_chapter=True), 0.13),
        (candidate(HAPPENING, 0.84, age=57), 0.0155),
    ],
    ids=lambda value: "",
)
def test_a_score_is_made_of_likeness_age_pin_and_keywords(each: Candidate, expected: float) -> None:
    """Rules B110, B111, B112."""
    assert round(score(each), 4) == expected


def test_a_row_is_revived_only_where_that_raises_it() -> None:
    """Rule B112."""
    faded = score_of(candidate(HAPPENING, 0.95, age=57), ACTION, DEFAULTS)
    fresh = score_of(candidate(HAPPENING, 0.95), ACTION, DEFAULTS)
    assert (faded.is_revived, fresh.is_revived) == (True, False)
    assert (round(faded.value, 4), fresh.value) == (0.1, 0.95)


def test_a_pin_of_the_parameters_replaces_that_of_the_row_but_not_of_common_knowledge() -> None:
    """Rule B111."""
    known, common = candidate(HAPPENING, age=10), candidate(HAPPENING, age=10, is_common=True)
    assert score(known, pins={"a": 1.0}) == 0.5
    assert score(common, pins={"a": 0.1}, fades={HAPPENING: 9.0}) == 0.5


def test_unlike_rows_are_raised_and_like_ones_lowered() -> None:
    """Rule B113."""
    apart = np.array([[1, 0], [-1, 0]], dtype=np.float32)
    assert diversified([1.0, 0.9], apart, 0.75) == [(0, 0.75), (1, 0.925)]
    # A row whose cosine with the one picked is 0.5 needs 0.3667 to come to the floor.
    half = np.array([[1, 0], [0.5, 0.75**0.5]], dtype=np.float32)
    (_, first), (_, second) = diversified([1.0, 0.3667], half, 0.75)
    assert (first, round(second, 3)) == (0.75, 0.15)
    # The likest of all that were picked counts.
    three = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    order = diversified([1.0, 0.8, 0.9], three, 0.5)
    assert [(place, round(value, 4)) for place, value in order] == [(0, 0.5), (1, 0.4), (2, -0.05)]


def seated(rows: list[tuple[float, int, bool]], budget: int, spent: int = 0) -> list[str]:
    ranked = []
    for number, (mmr, tokens, is_revived) in enumerate(rows):
        parts = score_of(candidate(), ACTION, DEFAULTS)
        made = type(parts)(0, 1, 0, 0, 0, is_revived, mmr)
        ranked.append(
            Ranked(candidate(id=str(number)), made, DropReason.NOT_DROPPED, mmr, number, tokens)
        )
    return [str(each.drop) for each in filled(ranked, budget, spent, 0.15)]


@pytest.mark.parametrize(
    ("rows", "budget", "spent", "expected"),
    [
        # The first pick needs a score of 0.2.
        ([(0.15, 10, False)], 10, 0, ["not_dropped"]),
        ([(0.149, 10, False)], 10, 0, ["below_threshold"]),
        # The door stays shut, also for one that is above the floor.
        ([(0.1, 1, False), (0.9, 1, False)], 10, 0, ["below_threshold", "below_threshold"]),
        # Who was revived comes in, and shuts the door.
        ([(0.1, 1, True), (0.9, 1, False)], 10, 0, ["not_dropped", "below_threshold"]),
        ([(0.1, 1, False), (0.1, 1, True)], 10, 0, ["below_threshold", "not_dropped"]),
        # Smaller ones still fit.
        ([(0.9, 6, False), (0.8, 5, False), (0.7, 4, False)], 10, 0,
         ["not_dropped", "over_budget", "not_dropped"]),
        ([(0.9, 11, False), (0.8, 10, False)], 10, 0, ["candidate_too_large", "not_dropped"]),
        ([(0.9, 6, False), (0.8, 5, False)], 10, 5, ["over_budget", "not_dropped"]),
        ([(0.9, 1, False)], 0, 0, ["candidate_too_large"]),
    ],
)  # fmt: skip
def test_the_fill_walks_in_order_and_shuts_the_door(
    rows: list[tuple[float, int, bool]], budget: int, spent: int, expected: list[str]
) -> None:
    """Rule B114."""
    assert seated(rows, budget, spent) == expected


def test_only_the_best_are_priced() -> None:
    """Rule B113."""
    rows = [candidate(LORE, number / 10, id=str(number), tokens=1) for number in range(1, 9)]
    ranked = rank(rows, ACTION, DEFAULTS.changed({"pre_filter": 3}), 100, 0, price)
    assert [(each.candidate.id, each.rank) for each in ranked] == [
        ("8", 1), ("7", 2), ("6", 3), ("5", None), ("4", None), ("3", None), ("2", None),
        ("1", None),
    ]  # fmt: skip
    assert {each.drop for each in ranked[3:]} == {DropReason.PRE_FILTERED}
    assert [each.tokens for each in ranked[3:]] == [None] * 5
    assert rank([], ACTION, DEFAULTS, 100, 0, price) == []


def test_equals_stand_in_the_order_of_their_ids() -> None:
    """Rule B113."""
    rows = [candidate(LORE, 0.5, id=each, tokens=1) for each in "cab"]
    ranked = rank(rows, ACTION, DEFAULTS, 100, 0, price)
    assert [each.candidate.id for each in ranked] == ["a", "b", "c"]


directions = st.integers(0, 11).map(
    lambda step: (float(np.cos(step * np.pi / 6)), float(np.sin(step * np.pi / 6)))
)
pools = st.lists(
    st.tuples(st.floats(-1, 1), directions, st.integers(1, 40), st.integers(0, 60)), max_size=25
)


@given(rows=pools, budget=st.integers(0, 120), spent=st.integers(0, 60), data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_budget_is_exceeded_no_row_sits_twice_and_order_of_arrival_does_not_matter(
    rows: list[Any], budget: int, spent: int, data: st.DataObject
) -> None:
    """Rules B113, B114."""
    pool = [
        candidate(HAPPENING, similarity, id=f"{n:02}", vector=vector, tokens=tokens, age=age)
        for n, (similarity, vector, tokens, age) in enumerate(rows)
    ]
    ranked = rank(pool, ACTION, DEFAULTS, budget, spent, price)
    ids = [each.candidate.id for each in ranked]
    assert sorted(ids) == [each.id for each in pool]
    used = sum(each.tokens or 0 for each in ranked if each.is_seated)
    assert used <= max(budget - spent, 0)
    shuffled = data.draw(st.permutations(pool))
    again = rank(shuffled, ACTION, DEFAULTS, budget, spent, price)
    assert [(e.candidate.id, e.drop, e.mmr) for e in again] == [
        (e.candidate.id, e.drop, e.mmr) for e in ranked
    ]
