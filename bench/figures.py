"""Sums up what was measured in several rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Median, least and most of the rounds' figures; None where there are none."""
    if not values:
        return None
    return {
        "median": round(statistics.median(values), 3),
        "least": round(min(values), 3),
        "most": round(max(values), 3),
    }


def p99(values: Sequence[float]) -> float:
    """What 99 of 100 values do not exceed; one of the values."""
    return _share(values, 0.99)


def p95(values: Sequence[float]) -> float:
    """What 95 of 100 values do not exceed; one of the values."""
    return _share(values, 0.95)


def _share(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[int(len(ordered) * share)]


def ratios(name: str, ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """How many times the other's figure ours was: the median under `name`, and each round."""
    rounds = [one / other for one, other in zip(ours, theirs, strict=True)]
    return {
        name: round(statistics.median(rounds), 3),
        f"{name}_rounds": [round(each, 3) for each in rounds],
    }


def nanoseconds(at: str) -> int:
    """A time as the API writes it, in nanoseconds of the wall clock."""
    since = datetime.fromisoformat(at) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1) * 1_000
