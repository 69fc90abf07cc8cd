"""Searches in branches, in the trees of characters, and in all that a user has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import strawberry

from db.enums import LibraryKind, SearchExclusion, SearchKind, SearchMode
from resolvers import searching as resolve
from schema.base import Info, Node, described, described_input, enum, field, relation
from schema.branch_rows import AS_OF, AsOfInput, BranchNode, ResolvedAt

if TYPE_CHECKING:
    from schema.entities import EntityFilter

LazyEntityFilter = Annotated["EntityFilter", strawberry.lazy("schema.entities")]

enum(
    SearchExclusion,
    BEYOND_FIRST="It comes after as many others as were asked for.",
)
enum(
    LibraryKind,
    CHARACTER="Characters: name, and who they are at the core.",
    TREE="Mirror trees: topic.",
    NODE="What was asked and answered in trees.",
    STORY="Stories: title and description.",
    LOREBOOK_ENTRY="Entries of lorebooks: name, keys and content.",
    WORLD="Worlds: name, background and rules.",
    WORLD_ENTITY="Who and what is in worlds: names and description.",
    ENTITY="Of stories: characters, locations, items, factions.",
    LORE="Of stories: what is so in the world.",
    HAPPENING="Of stories: what has happened.",
    THREAD="Of stories: strands of the plot.",
    CHAPTER="Of stories: closed chapters.",
    ENTRY="Of stories: entries.",
)


@described
class SearchScorePart:
    """What a part of a score is worth."""

    name: str = field(
        "`words` (BM25 among what is searched), `name` (the text is a name of the row), or "
        "`meaning` (the cosine, up to 1)."
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


@described_input
class SearchFilter:
    """Which rows are searched; what is left out asks for nothing. Rows that have no such thing are
    not searched.
    """

    entities: LazyEntityFilter | None = field("Only entities that are like this.", default=None)
    tags: list[str] | None = field("Only entities and lore that have all these tags.", default=None)


@described
class LibraryHit:
    """A thing that was found."""

    score: float = field(
        "The higher, the better; scores of different answers cannot be compared. The sum of its "
        "parts."
    )
    parts: list[SearchScorePart] = field("What the score comes from.")
    kind: LibraryKind = field("What it is.")
    node: Node = field("The thing itself.")
    label: str = field("Its name, title or topic; empty for nodes of trees and entries.")
    snippet: str = field(
        "The sentence of its text in which most of the words stand: 200 characters at most."
    )


@described
class LibraryResult:
    """What was found in what a user has."""

    mode: SearchMode = field("How it was searched: by words, since nobody keeps meanings here.")
    hits: list[LibraryHit] = field("The best first, then by kind and id.")
    excluded: list[ExcludedRow] = field("What was found beyond that, in order: 100 at most.")


@strawberry.input(one_of=True, description="To what things belong that are searched: one of these.")
class LibraryFilter:
    """Where to search."""

    character_id: strawberry.Maybe[strawberry.ID] = field(
        "A character: itself, its trees with their nodes, entries of its lorebooks."
    )
    story_id: strawberry.Maybe[strawberry.ID] = field(
        "A story: itself, and the rows of its current branch."
    )
    world_id: strawberry.Maybe[strawberry.ID] = field("A world: itself, and who and what is in it.")


_TEXT = "What is looked for: 1,000 characters at most."
_FIRST = "How many hits to show, up to 100."


@strawberry.type
class SearchQuery:
    """The root field that searches."""

    @strawberry.field(
        description="What the viewer has that has words of a text or a name in it, whatever the "
        "script, case, width and accents. Of stories the current branches of the 20 opened last "
        "are searched."
    )
    async def search(
        self,
        info: Info,
        text: Annotated[str, strawberry.argument(description=_TEXT)],
        kinds: Annotated[
            list[LibraryKind] | None,
            strawberry.argument(description="Only things of these kinds; all unless given."),
        ] = None,
        first: Annotated[int, strawberry.argument(description=_FIRST)] = 10,
        filter: Annotated[
            LibraryFilter | None,
            strawberry.argument(description="Only what belongs to this; all unless given."),
        ] = None,
    ) -> LibraryResult:
        """What is found."""
        found = await resolve.search_library(info.context, text, kinds, first, filter)
        return cast("LibraryResult", found)


CHARACTER_SEARCH: Any = relation(
    resolve.searches_of_characters,
    "Its trees and what was asked and answered in them, by words of a text or a name. Whatever the "
    "script, case, width and accents.",
    arguments={"text": _TEXT, "first": _FIRST},
)
BRANCH_SEARCH: Any = relation(
    resolve.searches_of_branches,
    "Rows of it that have words of a text or a name, or say something like it. Whatever the "
    "script, case, width and accents.",
    arguments={
        "text": _TEXT,
        "kinds": "Only rows of these kinds; all unless given.",
        "mode": "How to search. Meaning is not searched in the past.",
        "first": _FIRST,
        "as_of": AS_OF,
        "perspective": "A character: only what it knows is searched. All unless given.",
        "filter": "Only rows that are like this; all unless given.",
    },
    types={
        "as_of": AsOfInput | None,
        "kinds": list[SearchKind] | None,
        "filter": SearchFilter | None,
    },
    ids=["perspective"],
)
