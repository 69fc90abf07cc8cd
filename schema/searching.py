"""Searches in branches."""

from __future__ import annotations

from typing import Any

import strawberry

from db.enums import SearchExclusion, SearchKind, SearchMode
from resolvers import searching as resolve
from schema.base import described, enum, field, relation
from schema.branch_rows import AS_OF, AsOfInput, BranchNode, ResolvedAt

enum(
    SearchExclusion,
    BEYOND_FIRST="It comes after as many others as were asked for.",
)


@described
class SearchScorePart:
    """What a part of a score is worth."""

    name: str = field(
        "`words` (BM25 within the branch), `name` (the text is a name of the row), or `meaning` "
        "(the cosine, up to 1)."
    )
    value: float = field("What it is worth.")


@described
class SearchHit:
    """A row that was found."""

    score: float = field(
        "The higher, the better; scores of different answers cannot be compared. By words the sum "
        "of its parts, by meaning the cosine, by both the fusion of the two orders."
    )
    parts: list[SearchScorePart] = field("What the score comes from.")
    node: BranchNode = field("The row.")
    label: str = field("Its name or title; empty for an entry.")
    snippet: str = field(
        "The sentence of its text in which most of the words stand: 200 characters at most."
    )


@described
class ExcludedRow:
    """A row that was found and is not among the hits."""

    id: strawberry.ID = field("The row's id.")
    reason: SearchExclusion = field("Why it is not shown.")


@described
class SearchResult:
    """What was found in a branch."""

    mode: SearchMode = field("How it was searched: by words where meaning is not to be had.")
    hits: list[SearchHit] = field("The best first, then by kind and id.")
    excluded: list[ExcludedRow] = field("What was found beyond that, in order: 100 at most.")
    resolved_at: ResolvedAt | None = field("The moment that was asked for; null for the present.")


BRANCH_SEARCH: Any = relation(
    resolve.searches_of_branches,
    "Rows of it that have words of a text or a name, or say something like it. Whatever the "
    "script, case, width and accents.",
    arguments={
        "text": "What is looked for: 1,000 characters at most.",
        "kinds": "Only rows of these kinds; all unless given.",
        "mode": "How to search. Meaning is not searched in the past.",
        "first": "How many hits to show, up to 100.",
        "as_of": AS_OF,
        "perspective": "A character: only what it knows is searched. All unless given.",
    },
    types={"as_of": AsOfInput | None, "kinds": list[SearchKind] | None},
    ids=["perspective"],
)
