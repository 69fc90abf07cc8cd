"""Where rows are looked into: their names, and what they say. The words of each text are kept
once, by its MD5, whoever has it.

Source: design, performance (traps).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from db.columns import BranchRow
from db.engine import Database
from db.enums import SearchKind
from db.reading import Reading, Record, Statement
from db.tables import Chapter, Happening, Lore, SearchText, StoryEntity, StoryEntry, Thread
from services.searching.words import words_in


@dataclass(frozen=True, slots=True)
class Looked:
    """How rows of a kind are looked into. A text of several columns has a line for each."""

    table: type[BranchRow]
    # Columns with what a row is called, the first of which is its label; then lists of names.
    names: tuple[str, ...]
    body: tuple[str, ...]
    lists: tuple[str, ...] = ()

    def label(self, row: Any) -> str:
        """What a row is called; an entry has no name."""
        return str(getattr(row, self.names[0])) if self.names else ""

    def all_names(self, row: Any) -> list[str]:
        """Everything that a row is called."""
        listed = [each for column in self.lists for each in getattr(row, column)]
        return [*(getattr(row, each) for each in self.names), *listed]

    def body_text(self, row: Any) -> str:
        """What a row says."""
        return "\n".join(getattr(row, each) for each in self.body)


LOOKED = {
    SearchKind.ENTITY: Looked(StoryEntity, ("name",), ("description",), ("keywords",)),
    SearchKind.LORE: Looked(Lore, ("title",), ("body",), ("keywords",)),
    SearchKind.HAPPENING: Looked(Happening, ("title",), ("description",)),
    SearchKind.THREAD: Looked(Thread, ("title",), ("description",)),
    SearchKind.CHAPTER: Looked(Chapter, ("title",), ("summary", "theme"), ("keywords",)),
    SearchKind.ENTRY: Looked(StoryEntry, (), ("content",)),
}


@dataclass(frozen=True, slots=True)
class Match:
    """A text of a row that has words of a query."""

    branch_id: str
    kind: SearchKind
    row_id: str
    # Whether it is what the row is called, rather than what it says.
    is_name: bool
    words: frozenset[str]
    # How many different words the text has.
    length: int


def _lines(looked: Looked, *, is_name: bool) -> str:
    lists = [
        f"ARRAY(SELECT e FROM jsonb_array_elements_text({each}) WITH ORDINALITY AS l (e, n) "
        "ORDER BY n)"
        for each in (looked.lists if is_name else ())
    ]
    columns = looked.names if is_name else looked.body
    if len(columns) == 1 and not lists:
        return columns[0]
    array = " || ".join([f"ARRAY[{', '.join(columns)}]", *lists])
    return f"array_to_string({array}, E'\\n')"


def _arms(columns: Callable[[Looked, bool], str], *, is_anywhere: bool = False) -> str:
    where = (
        "" if is_anywhere else "WHERE branch_id = ANY($1::text[]) AND '{kind}' = ANY($2::text[])"
    )
    return " UNION ALL ".join(
        f"SELECT branch_id, '{kind}' AS kind, id, {str(is_name).lower()} AS is_name"
        f"{columns(looked, is_name)} FROM {looked.table.__tablename__} "
        f"{where.format(kind=kind)}"
        for kind, looked in LOOKED.items()
        for is_name in (True, False)
        if looked.names or not is_name
    )


def _text_column(looked: Looked, is_name: bool) -> str:
    return f", {_lines(looked, is_name=is_name)} AS text"


def texts_anywhere() -> str:
    """All texts of all branches as SQL, in the column `text`."""
    return _arms(_text_column, is_anywhere=True)


# Texts whose words are not known yet are found, too: with all they say.
_MATCHES: Statement[Any] = Statement(
    "SELECT t.branch_id, t.kind, t.id, t.is_name, s.terms IS NULL AS is_new, "
    "CASE WHEN s.terms IS NULL THEN t.text END AS text, md5(t.text) AS hash, "
    "cardinality(s.terms) AS length, "
    "ARRAY(SELECT w FROM unnest($3::text[]) AS w WHERE w = ANY(s.terms)) AS words "
    f"FROM ({_arms(_text_column)}) t "
    "LEFT JOIN search_texts s ON s.text_hash = md5(t.text) "
    "WHERE s.terms IS NULL OR s.terms && $3::text[]",
    ("branch_ids", "kinds", "words"),
    {},
    Record,
)
_SIZES: Statement[Any] = Statement(
    "SELECT branch_id, count(*) AS rows "
    f"FROM ({_arms(lambda _looked, _is_name: '')}) t WHERE NOT is_name GROUP BY branch_id",
    ("branch_ids", "kinds"),
    {},
    Record,
)


async def sizes_of(
    reading: Reading, branch_ids: Sequence[str], kinds: Collection[SearchKind]
) -> dict[str, int]:
    """How many rows of these kinds branches have; a branch without any is not there."""
    rows = await reading.all(
        _SIZES, branch_ids=list(branch_ids), kinds=[str(each) for each in kinds]
    )
    return {row.branch_id: row.rows for row in rows}


async def matches_in(
    database: Database,
    branch_ids: Sequence[str],
    kinds: Collection[SearchKind],
    words: Sequence[str],
) -> list[Match]:
    """The texts of branches, which the viewer may see, that have one of these words. Texts that
    were not looked into before have their words kept, in a short transaction of its own.
    """
    async with database.reading() as reading:
        rows = await reading.all(
            _MATCHES,
            branch_ids=list(branch_ids),
            kinds=[str(each) for each in kinds],
            words=list(words),
        )
    texts = {row.hash: row.text for row in rows if row.is_new}
    # A long story takes a while: others are served meanwhile.
    new = await asyncio.to_thread(_words_of, texts) if texts else {}
    if new:
        async with database.writing() as writing:
            # In one order, so that two writers never wait for each other.
            await writing.insert_many(
                SearchText,
                ({"text_hash": each, "terms": new[each]} for each in sorted(new)),
                unless_there=True,
            )
    found = []
    wanted = frozenset(words)
    for row in rows:
        there = wanted.intersection(new[row.hash]) if row.is_new else frozenset(row.words)
        if there:
            length = len(new[row.hash]) if row.is_new else row.length
            kind = SearchKind(row.kind)
            found.append(Match(row.branch_id, kind, row.id, row.is_name, there, length))
    return found


def _words_of(texts: dict[str, str]) -> dict[str, list[str]]:
    return {text_hash: words_in(text) for text_hash, text in texts.items()}


def matches_among(
    branch_id: str, kind: SearchKind, rows: Iterable[Any], words: Sequence[str]
) -> list[Match]:
    """The same of rows that are at hand."""
    looked = LOOKED[kind]
    wanted = frozenset(words)
    found = []
    for row in rows:
        for is_name, text in (
            (True, "\n".join(looked.all_names(row))),
            (False, looked.body_text(row)),
        ):
            there = words_in(text)
            if hit := wanted.intersection(there):
                found.append(Match(branch_id, kind, row.row_id, is_name, hit, len(there)))
    return found
