"""Searches in branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import SearchExclusion, SearchKind, SearchMode
from db.tables import Branch
from resolvers import branch_rows
from resolvers.branch_rows import ResolvedAt
from resolvers.context import Context
from services import searching as service
from services.text import refuse_unstorable


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A row that was found."""

    score: float
    parts: list[service.Part]
    node: Any
    label: str
    snippet: str

    @classmethod
    def of(cls, hit: service.Hit) -> SearchHit:
        """The hit as clients see it."""
        return cls(hit.score, hit.parts, hit.row, hit.label, hit.snippet)


@dataclass(frozen=True, slots=True)
class ExcludedRow:
    """A row that was found and is not shown."""

    id: str
    reason: SearchExclusion


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was found in a branch."""

    mode: SearchMode
    hits: list[SearchHit]
    excluded: list[ExcludedRow]
    resolved_at: ResolvedAt | None


async def searches_of_branches(
    context: Context,
    branches: Sequence[Branch],
    *,
    text: str,
    kinds: list[SearchKind] | None = None,
    mode: SearchMode = SearchMode.KEYWORD,
    first: int = 10,
    as_of: Any = None,
    perspective: str | None = None,
) -> list[SearchResult]:
    """What is found in each branch. Raises Invalid (INVALID_TEXT, TEXT_…, OUT_OF_RANGE), what a
    moment and a perspective raise, and EmbedderFault.
    """
    refuse_unstorable(text, ("text",))
    moments = [await branch_rows.moment_of(context, each, as_of) for each in branches]
    asked = service.Asked(
        text,
        tuple(SearchKind) if kinds is None else tuple(dict.fromkeys(kinds)),
        mode,
        first,
        perspective,
    )
    found = await service.search_branches(
        context.engine.database,
        context.engine.embedders,
        context.viewer,
        [(each.id, moment) for each, moment in zip(branches, moments, strict=True)],
        asked,
    )
    return [
        SearchResult(
            each.mode,
            [SearchHit.of(hit) for hit in each.hits],
            [ExcludedRow(row.id, SearchExclusion.BEYOND_FIRST) for row in each.beyond],
            branch_rows.shown_moment(each.moment),
        )
        for each in found
    ]
