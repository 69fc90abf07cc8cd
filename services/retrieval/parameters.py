"""Every number that retrieval turns on, in one place.

Source: retrieval, sections 3, 6, 7, 8, 10; spec aventuras, story settings (budgets, buffers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from db.enums import QuerySlot, SearchKind

# What is ranked, in this order: happenings of chapters that got a seat come into the pool late.
RANKED = (
    SearchKind.CHAPTER,
    SearchKind.ENTITY,
    SearchKind.LORE,
    SearchKind.THREAD,
    SearchKind.HAPPENING,
)
# What a keyword can seat without asking how similar it is.
INJECTED = (SearchKind.ENTITY, SearchKind.LORE)
MAX_DIRECT_QUERIES = 3
# Of summaries and direct queries, in characters.
MAX_QUERY_LENGTH = 200
# Among so many nearest rows it is counted which are there anyway.
REDUNDANCY_NEIGHBOURS = 10

_BUDGET_KEYS = {
    SearchKind.ENTITY: "entities",
    SearchKind.LORE: "lore",
    SearchKind.HAPPENING: "happenings",
    SearchKind.THREAD: "threads",
    SearchKind.CHAPTER: "chapters",
}


def _by_slot() -> dict[QuerySlot, float]:
    return {
        QuerySlot.ACTION: 0.30,
        QuerySlot.DIGEST: 0.25,
        QuerySlot.SUMMARY: 0.20,
        QuerySlot.DIRECT: 0.25,
    }


def _by_kind(**values: float) -> dict[SearchKind, float]:
    return {kind: values.get(kind.value, 0) for kind in RANKED}


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a retrieval works with. Tokens are those of `services/tokens.py`."""

    # How much each query counts; the shares of queries that are absent go to the others.
    weights: Mapping[QuerySlot, float] = field(default_factory=_by_slot)
    # How fast a kind fades with each chapter.
    fades: Mapping[SearchKind, float] = field(
        default_factory=lambda: _by_kind(entity=0.025, happening=0.07, thread=0.025)
    )
    # How much a pin lifts a kind.
    pin_factors: Mapping[SearchKind, float] = field(default_factory=lambda: _by_kind(lore=0.25))
    # Pins of single rows, by their own ids, in place of their own.
    pins: Mapping[str, float] = field(default_factory=dict)
    keyword_bonus: float = 0.10
    # From this similarity on a faded row comes back.
    revival: float = 0.85
    # Of happenings in a chapter that is seated.
    chapter_boost: float = 1.3
    score_floor: float = 0.15
    # The share of the score, against that of likeness to what is picked already.
    diversity: float = 0.75
    # So many of the best are priced at all.
    pre_filter: int = 200
    neighbours: int = 200
    # What a template puts around a row of a kind.
    overheads: Mapping[SearchKind, float] = field(
        default_factory=lambda: _by_kind(entity=11, lore=4, happening=5, thread=4, chapter=4)
    )
    budgets: Mapping[SearchKind, float] = field(
        default_factory=lambda: _by_kind(
            entity=1200, lore=1800, happening=1500, thread=400, chapter=600
        )
    )
    # Keywords: whether a hit seats a row, at most for which share of the budget, how many entries
    # are scanned, and how often the text of what was seated is scanned again.
    injects: bool = False
    injected_share: float = 0.5
    scanned_entries: int = 1
    cascade_depth: int = 0
    # Entries: those of the open chapter, how many of it, how many at least.
    is_full_chapter: bool = False
    partial_buffer: int = 10
    protected_buffer: int = 10

    def as_json(self) -> dict[str, Any]:
        """All of them, as captures keep them."""
        return {
            name: {str(key): each for key, each in value.items()}
            if isinstance(value, Mapping)
            else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Parameters:
        """The same back. Raises KeyError, TypeError, ValueError for what is none."""
        read: dict[str, Any] = {each.name: values[each.name] for each in fields(cls)}
        read["weights"] = {QuerySlot(key): value for key, value in read["weights"].items()}
        for name in ("fades", "pin_factors", "overheads", "budgets"):
            read[name] = {SearchKind(key): value for key, value in read[name].items()}
        return cls(**read)

    def changed(self, changes: Mapping[str, Any]) -> Parameters:
        """With other values; those by slot, kind or row are laid over what is there."""
        values: dict[str, Any] = {
            name: {**getattr(self, name), **value} if isinstance(value, Mapping) else value
            for name, value in changes.items()
        }
        return replace(self, **values)


def parameters_of(settings: Mapping[str, Any]) -> Parameters:
    """Those of a story, from all of its settings, defaults included."""
    keywords = settings["keywordRetrieval"]
    budgets = settings["retrievalBudgets"]
    return Parameters(
        budgets={kind: budgets[_BUDGET_KEYS[kind]] for kind in RANKED},
        injects=keywords["mode"] == "inject",
        injected_share=keywords["budgetShare"],
        scanned_entries=keywords["scanEntries"],
        cascade_depth=keywords["cascadeMaxDepth"] if keywords["cascade"] else 0,
        is_full_chapter=settings["fullChapterInBuffer"],
        partial_buffer=settings["partialChapterBuffer"],
        protected_buffer=settings["protectedBuffer"],
    )
