"""Searches in branches, in the trees of characters, and in all that a user has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.enums import LibraryKind, SearchExclusion, SearchKind, SearchMode
from db.tables import Branch, Character
from resolvers import branch_rows
from resolvers.branch_rows import ResolvedAt
from resolvers.context import Context
from resolvers.inputs import given
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


@dataclass(frozen=True, slots=True)
class LibraryHit:
    """A thing that was found."""

    score: float
    parts: list[service.Part]
    kind: LibraryKind
    node: Any
    label: str
    snippet: str


@dataclass(frozen=True, slots=True)
class LibraryResult:
    """What was found in what a user has."""

    mode: SearchMode
    hits: list[LibraryHit]
    excluded: list[ExcludedRow]

    @classmethod
    def of(cls, found: service.LibraryFound) -> LibraryResult:
        """The result as clients see it."""
        return cls(
            SearchMode.KEYWORD,
            [
                LibraryHit(
                    hit.score, hit.parts, LibraryKind(hit.kind), hit.row, hit.label, hit.snippet
                )
                for hit in found.hits
            ],
            [ExcludedRow(row_id, SearchExclusion.BEYOND_FIRST) for row_id in found.beyond],
        )


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
    filter: Any = None,
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
        _filter(filter),
    )
    found = await service.search_branches(
        context.engine.database,
        context.engine.embedders,
        context.engine.branch_texts,
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


def _filter(given: Any) -> service.Filter | None:
    if given is None:
        return None
    refuse_unstorable(given.tags, ("filter", "tags"))
    entities = given.entities
    wanted = service.Filter(
        None if entities is None or entities.kinds is None else tuple(entities.kinds),
        None if entities is None or entities.statuses is None else tuple(entities.statuses),
        None if given.tags is None else tuple(given.tags),
    )
    return None if wanted == service.Filter() else wanted


async def searches_of_characters(
    context: Context, characters: Sequence[Character], *, text: str, first: int = 10
) -> list[LibraryResult]:
    """What is found in the trees of each character. Raises Invalid (INVALID_TEXT, TEXT_…,
    OUT_OF_RANGE).
    """
    refuse_unstorable(text, ("text",))
    found = await service.search_homes(
        context.engine.database,
        context.engine.branch_texts,
        context.viewer,
        service.LibraryAsked(text, (LibraryKind.TREE, LibraryKind.NODE), first),
        "character",
        [each.id for each in characters],
    )
    return [LibraryResult.of(each) for each in found]


async def search_library(
    context: Context, text: str, kinds: Sequence[LibraryKind] | None, first: int, filter: Any
) -> LibraryResult:
    """What is found in all that the viewer has. Raises Invalid (INVALID_TEXT, TEXT_…,
    OUT_OF_RANGE).
    """
    refuse_unstorable(text, ("text",))
    asked = service.LibraryAsked(
        text, tuple(LibraryKind) if kinds is None else tuple(dict.fromkeys(kinds)), first
    )
    engine = context.engine
    if filter is None:
        found = await service.search_library(
            engine.database, engine.branch_texts, context.viewer, asked
        )
    else:
        ((name, home_id),) = given(filter).items()
        refuse_unstorable(home_id, ("filter",))
        (found,) = await service.search_homes(
            engine.database,
            engine.branch_texts,
            context.viewer,
            asked,
            service.HOMES[name],
            [home_id],
        )
    return LibraryResult.of(found)
