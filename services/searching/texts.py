"""Which texts are searched, and which of them have a word. The words of a text are kept once, by
its MD5, whoever has it. Which texts a branch has is known in memory, as long as it has the head at
which that was read.

Source: design, performance (traps); benchmarks (B5).
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Integer, cast, func, select
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.engine import Database
from db.enums import StoryStatus
from db.ids import new_id
from db.reading import Reading, Record, Statement, Writing, any_of, statement
from db.tables import Branch, SearchText, Setting, Story
from services.access import Viewer, visible
from services.searching.ranking import Match
from services.searching.surfaces import texts_of_branches
from services.searching.words import words_in

# A word that more texts of the server have is looked for only among those that are searched.
_COMMON = 2_000
# How many texts of branches a process remembers; some 50 MB.
_REMEMBERED = 200_000
# The setting that counts how often words were deleted.
_DELETIONS = "search_texts_deletions"


class Place(NamedTuple):
    """Where a text stands."""

    kind: str
    row_id: str
    is_name: bool


@dataclass(slots=True)
class Texts:
    """All texts of a branch, or of somebody: where each stands, by its MD5."""

    places: defaultdict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    row_counts: Counter[str] = field(default_factory=Counter)

    def add(self, text_hash: str, place: Place) -> None:
        """One more text."""
        self.places[text_hash].append(place)
        # Every row says something, be it nothing; not every row has a name.
        self.row_counts[place.kind] += not place.is_name

    def count(self, kinds: Iterable[str]) -> int:
        """How many rows of these kinds there are."""
        return sum(self.row_counts[each] for each in kinds)


class State(NamedTuple):
    """What a branch is like: all its texts are the same as long as this is."""

    head: int
    # How often words were deleted, of whomever.
    deletions: int
    # A draft is begun without a new head.
    is_draft: bool


@statement(object)
def _states() -> Any:
    # What is visible asks for stories of its own.
    story = aliased(Story)
    deletions = select(cast(col(Setting.value), Integer)).where(col(Setting.key) == _DELETIONS)
    return (
        select(
            col(Branch.id),
            col(Branch.head),
            func.coalesce(deletions.scalar_subquery(), 0).label("deletions"),
            (col(story.status) == StoryStatus.DRAFT.value).label("is_draft"),
        )
        .join(story, col(story.id) == col(Branch.story_id))
        .where(any_of(Branch.id, "branch_ids"), visible(Branch))
    )


async def states_of_branches(
    reading: Reading, viewer: Viewer, branch_ids: Sequence[str]
) -> dict[str, State]:
    """What branches are like; one that the viewer may not see is not there."""
    rows: list[Any] = await reading.all(_states(), branch_ids=list(branch_ids), **viewer.parameters)
    return {row.id: State(row.head, row.deletions, row.is_draft) for row in rows}


_TEXTS: Statement[Any] = Statement(
    "SELECT t.branch_id AS home, b.head, t.kind, t.id, t.is_name, md5(t.text) AS hash, "
    "CASE WHEN s.text_hash IS NULL THEN t.text END AS new_text "
    f"FROM ({texts_of_branches('branch_id = ANY($1::text[])')}) t "
    "JOIN branches b ON b.id = t.branch_id "
    "LEFT JOIN search_texts s ON s.text_hash = md5(t.text)",
    ("branch_ids",),
    {},
    Record,
)
_HAVING: Statement[Any] = Statement(
    "SELECT w.word, s.text_hash, s.word_count FROM unnest($1::text[]) AS w (word) "
    "CROSS JOIN LATERAL (SELECT text_hash, word_count FROM search_texts "
    f"WHERE terms @> ARRAY[w.word] LIMIT {_COMMON + 1}) s",
    ("words",),
    {},
    Record,
)
_HAVING_AMONG: Statement[Any] = Statement(
    "SELECT w.word, s.text_hash, s.word_count FROM unnest($2::text[]) AS h (hash) "
    "JOIN search_texts s ON s.text_hash = h.hash "
    "JOIN unnest($1::text[]) AS w (word) ON w.word = ANY(s.terms)",
    ("words", "hashes"),
    {},
    Record,
)
_FORGET: Statement[Any] = Statement(
    "DELETE FROM search_texts WHERE text_hash = ANY($1::text[])", ("hashes",), {}, Record
)
_NOTE_DELETION: Statement[Any] = Statement(
    "INSERT INTO settings (id, key, value_json) VALUES ($1, $2, '1') ON CONFLICT (key) "
    "DO UPDATE SET value_json = to_jsonb(settings.value_json::int + 1)",
    ("id", "key"),
    {"key": _DELETIONS},
    Record,
)


class BranchTexts:
    """The texts of the branches that were searched last: one for a process."""

    def __init__(self) -> None:
        self._remembered: OrderedDict[str, tuple[State, Texts]] = OrderedDict()
        self._size = 0

    async def of_branches(
        self, database: Database, states: Mapping[str, State]
    ) -> dict[str, Texts]:
        """The texts of branches that are like this."""
        found = {
            branch_id: texts
            for branch_id, (state, texts) in self._remembered.items()
            if states.get(branch_id) == state
        }
        missing = [each for each in states if each not in found]
        listed: Sequence[Any] = ()
        if missing:
            async with database.reading() as reading:
                listed = await reading.all(_TEXTS, branch_ids=missing)
        for each in found:
            self._remembered.move_to_end(each)
        read = await keep_words(database, listed)
        heads = {row.home: row.head for row in listed}
        for branch_id, texts in read.items():
            if not states[branch_id].is_draft:
                # As it was when the texts were read.
                state = states[branch_id]._replace(head=heads[branch_id])
                self._remember(branch_id, state, texts)
        return {each: found.get(each) or read.get(each) or Texts() for each in states}

    def _remember(self, branch_id: str, state: State, texts: Texts) -> None:
        before = self._remembered.pop(branch_id, None)
        self._remembered[branch_id] = (state, texts)
        self._size += len(texts.places) - (len(before[1].places) if before else 0)
        while self._size > _REMEMBERED and len(self._remembered) > 1:
            _, (_, oldest) = self._remembered.popitem(last=False)
            self._size -= len(oldest.places)


async def keep_words(database: Database, rows: Sequence[Any]) -> dict[str, Texts]:
    """The texts of rows (home, kind, id, is_name, hash, new_text) by their homes. The words of
    those that have a `new_text` are kept, in a short transaction of its own.
    """
    new = {row.hash: row.new_text for row in rows if row.new_text is not None}
    if new:
        # A long story takes a while: others are served meanwhile.
        words = await asyncio.to_thread(_words_of, new)
        async with database.writing() as writing:
            # In one order, so that two writers never wait for each other.
            await writing.insert_many(
                SearchText,
                (
                    {"text_hash": each, "terms": words[each], "word_count": len(words[each])}
                    for each in sorted(words)
                ),
                unless_there=True,
            )
    found: dict[str, Texts] = {}
    for row in rows:
        texts = found.setdefault(row.home, Texts())
        texts.add(row.hash, Place(row.kind, row.id, row.is_name))
    return found


def _words_of(texts: dict[str, str]) -> dict[str, list[str]]:
    return {text_hash: words_in(text) for text_hash, text in texts.items()}


async def matches_in(
    reading: Reading, homes: Mapping[str, Texts], kinds: Collection[str], words: Sequence[str]
) -> dict[str, list[Match]]:
    """The texts of each home that have one of these words. Whoever else has them does not matter,
    but for how they are found.
    """
    found: dict[str, list[Match]] = {home: [] for home in homes}
    if not words or not any(each.places for each in homes.values()):
        return found
    rows = await reading.all(_HAVING, words=list(words))
    counts = Counter(word for word, _, _ in rows)
    common = [word for word, count in counts.items() if count > _COMMON]
    if common:
        hashes = {each for texts in homes.values() for each in texts.places}
        among = await reading.all(_HAVING_AMONG, words=common, hashes=list(hashes))
        rows = [*(row for row in rows if counts[row["word"]] <= _COMMON), *among]
    there: dict[str, set[str]] = {}
    lengths: dict[str, int] = {}
    for word, text_hash, length in rows:
        there.setdefault(text_hash, set()).add(word)
        lengths[text_hash] = length
    for home, texts in homes.items():
        for text_hash in there.keys() & texts.places.keys():
            having, length = frozenset(there[text_hash]), lengths[text_hash]
            found[home] += [
                Match(kind, row_id, is_name, having, length)
                for kind, row_id, is_name in texts.places[text_hash]
                if kind in kinds
            ]
    return found


async def forget_words(writing: Writing, hashes: Sequence[str]) -> int:
    """Delete the words of texts by their MD5, for whoever deletes the texts; how many there were.
    Those that somebody else has as well are looked into again at the next search.
    """
    deleted = await writing.run(_FORGET, hashes=list(hashes))
    if deleted:
        await note_deletion(writing)
    return deleted


async def note_deletion(writing: Writing) -> None:
    """Have every process look anew which texts have words."""
    await writing.run(_NOTE_DELETION, id=new_id("settings"))
