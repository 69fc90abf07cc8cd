"""Where rows of branches are looked into: their names, and what they say.

Source: design, performance (traps).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from db.columns import BranchRow
from db.enums import EntryKind, SearchKind
from db.tables import Chapter, Happening, Lore, StoryEntity, StoryEntry, Thread
from services.searching.ranking import Match, Said
from services.searching.words import words_in

# Notices stand in no past moment and in no fork.
_IS_STORY = f"kind <> '{EntryKind.SYSTEM.value}'"


@dataclass(frozen=True, slots=True)
class Looked:
    """How rows of a kind are looked into. A text of several columns has a line for each."""

    table: type[BranchRow]
    # Columns with what a row is called, the first of which is its label; then lists of names.
    names: tuple[str, ...]
    body: tuple[str, ...]
    lists: tuple[str, ...] = ()
    # Which rows are looked into; all unless given.
    condition: str = "true"

    def label(self, row: Any) -> str:
        """What a row is called; an entry has no name."""
        return str(getattr(row, self.names[0])) if self.names else ""

    def said(self, row: Any) -> Said:
        """What a row is called, and what it says."""
        listed = [each for column in self.lists for each in getattr(row, column)]
        return Said(
            [*(getattr(row, each) for each in self.names), *listed],
            "\n".join(getattr(row, each) for each in self.body),
        )


LOOKED = {
    SearchKind.ENTITY: Looked(StoryEntity, ("name",), ("description",), ("keywords",)),
    SearchKind.LORE: Looked(Lore, ("title",), ("body",), ("keywords",)),
    SearchKind.HAPPENING: Looked(Happening, ("title",), ("description",)),
    SearchKind.THREAD: Looked(Thread, ("title",), ("description",)),
    SearchKind.CHAPTER: Looked(Chapter, ("title",), ("summary", "theme"), ("keywords",)),
    SearchKind.ENTRY: Looked(StoryEntry, (), ("content",), condition=_IS_STORY),
}


def lines_of(columns: Iterable[str], lists: Iterable[str] = ()) -> str:
    """Columns and lists in JSON as one text in SQL, with a line for each."""
    arrays = [
        f"ARRAY(SELECT e FROM jsonb_array_elements_text({each}) WITH ORDINALITY AS l (e, n) "
        "ORDER BY n)"
        for each in lists
    ]
    listed = list(columns)
    if len(listed) == 1 and not arrays:
        return listed[0]
    joined = " || ".join([f"ARRAY[{', '.join(listed)}]", *arrays])
    return f"array_to_string({joined}, E'\\n')"


def texts_of_branches(where: str) -> str:
    """The texts of branches as SQL: branch_id, kind, id, is_name, text. `where` is a condition."""
    return " UNION ALL ".join(
        f"SELECT branch_id, '{kind}' AS kind, id, {str(is_name).lower()} AS is_name, "
        f"{lines_of(looked.names, looked.lists) if is_name else lines_of(looked.body)} AS text "
        f"FROM {looked.table.__tablename__} WHERE {looked.condition} AND {where}"
        for kind, looked in LOOKED.items()
        for is_name in (True, False)
        if looked.names or not is_name
    )


def matches_among(kind: SearchKind, rows: Iterable[Any], words: Iterable[str]) -> list[Match]:
    """The texts of rows that are at hand and have one of these words."""
    looked = LOOKED[kind]
    wanted = frozenset(words)
    found = []
    for row in rows:
        said = looked.said(row)
        for is_name, text in ((True, "\n".join(said.names)), (False, said.body)):
            there = words_in(text)
            if hit := wanted.intersection(there):
                found.append(Match(kind, row.row_id, is_name, hit, len(there)))
    return found
