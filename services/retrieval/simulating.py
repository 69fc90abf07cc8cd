"""What a captured retrieval would have chosen with other parameters. Source: probe, section 8.

Pure, and by the same code as a retrieval: the same parameters give what was captured.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from db.enums import CaptureMode, DropReason, QuerySlot, SearchKind
from db.tables import ProbeCapture
from services.errors import Invalid
from services.retrieval.capturing import Corrupt, read_payload
from services.retrieval.parameters import Parameters
from services.retrieval.ranking import Candidate, Ranked, Score, filled, rank

# What follows from stored scores, and what needs vectors. Nothing else can be changed: other rows
# would be in the pools.
LIGHT = frozenset({"budgets", "score_floor"})
DEEP = LIGHT | {
    "weights",
    "fades",
    "pin_factors",
    "pins",
    "keyword_bonus",
    "revival",
    "chapter_boost",
    "diversity",
}


@dataclass(frozen=True, slots=True)
class SimulatedPool:
    """The rows of a kind as they would have been chosen, and who comes in and goes by that."""

    kind: SearchKind
    budget: int
    injected_tokens: int
    ranked: Sequence[Ranked]
    added: Sequence[Ranked]
    removed: Sequence[Ranked]

    @property
    def seated(self) -> list[Ranked]:
        """Those that would come into the prompt."""
        return [each for each in self.ranked if each.is_seated]

    @property
    def dropped(self) -> list[Ranked]:
        """The others."""
        return [each for each in self.ranked if not each.is_seated]

    @property
    def tokens_used(self) -> int:
        """What they would take, also those that keywords seated."""
        return self.injected_tokens + sum(each.tokens or 0 for each in self.seated)


@dataclass(frozen=True, slots=True)
class Simulation:
    """A capture with other parameters."""

    parameters: Parameters
    pools: Sequence[SimulatedPool]
    is_same: bool


def simulate(capture: ProbeCapture, changes: Mapping[str, Any]) -> Simulation:
    """What a capture would have chosen. Those that were not among the best stay out of it.

    Raises Invalid: CORRUPT_CAPTURE, FAILED_CAPTURE, NEEDS_DEEP.
    """
    try:
        return _simulated(capture, read_payload(capture), changes)
    except (Corrupt, KeyError, TypeError, ValueError) as error:
        raise Invalid("This capture cannot be read.", "CORRUPT_CAPTURE", ("captureId",)) from error


def _simulated(
    capture: ProbeCapture, payload: Mapping[str, Any], changes: Mapping[str, Any]
) -> Simulation:
    # The payload decides, should the row say something else.
    if payload["failure"] is not None:
        raise Invalid("Nothing was chosen here.", "FAILED_CAPTURE", ("captureId",))
    is_deep = payload["mode"] == CaptureMode.DEEP
    captured = Parameters.from_json(payload["parameters"])
    parameters = captured.changed(changes)
    if not is_deep and not changes.keys() <= LIGHT:
        raise Invalid("This takes vectors: capture it deep.", "NEEDS_DEEP", ("parameters",))
    slots = [QuerySlot(each["slot"]) for each in payload["queries"]]
    pools = []
    for each in payload["pools"]:
        kind = SearchKind(each["kind"])
        before = [_ranked(kind, row) for row in each["candidates"]]
        best = [row for row in before if row.rank is not None]
        rest = [row for row in before if row.rank is None]
        budget, spent = int(parameters.budgets[kind]), int(each["injectedTokens"])
        if is_deep:
            best = rank(
                [row.candidate for row in best],
                slots,
                # Those who stayed out before stay out.
                parameters.changed({"pre_filter": len(best)}),
                budget,
                spent,
                lambda row: row.tokens or 0,
            )
        else:
            best = filled(best, budget, spent, parameters.score_floor)
        pools.append(_compared(kind, budget, spent, before, best + rest))
    return Simulation(parameters, pools, all(not (p.added or p.removed) for p in pools))


def _compared(
    kind: SearchKind, budget: int, spent: int, before: Sequence[Ranked], after: Sequence[Ranked]
) -> SimulatedPool:
    was = {each.candidate.id for each in before if each.is_seated}
    now = {each.candidate.id for each in after if each.is_seated}
    return SimulatedPool(
        kind,
        budget,
        spent,
        after,
        [each for each in after if each.candidate.id in now - was],
        [each for each in after if each.candidate.id in was - now],
    )


def _ranked(kind: SearchKind, row: Mapping[str, Any]) -> Ranked:
    vector = None
    if "vector" in row:
        vector = np.frombuffer(base64.b64decode(row["vector"]), dtype="<f4")
    candidate = Candidate(
        kind,
        row["id"],
        row["name"],
        row["text"],
        tuple(row["similarities"]),
        vector,
        row["pin"],
        row["age"],
        row["isKeywordHit"],
        row["isInSeatedChapter"],
        row["isCommon"],
        row["tokens"],
    )
    score = Score(
        row["blend"],
        row["recency"],
        row["pin"],
        row["age"],
        row["keywordBonus"],
        row["isRevived"],
        row["score"],
    )
    return Ranked(candidate, score, DropReason(row["drop"]), row["mmr"], row["rank"], row["tokens"])
