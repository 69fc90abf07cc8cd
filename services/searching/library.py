"""A search in all that a user has: what belongs to characters, to worlds, to nobody; and rows of
stories, of one branch each, so that what forks have in common is found once. By words alone: nobody
keeps what these texts mean.

Source: design, performance (traps), benchmarks (B5).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Integer, select
from sqlmodel import col

from db.engine import Database
from db.enums import LibraryKind, SearchKind
from db.reading import Reading, any_of, param, statement
from db.tables import Story, Table
from services.access import Viewer, rows_by_ids, visible
from services.searching.finding import MAX_HITS, checked_query
from services.searching.ranking import (
    CANDIDATES,
    Hit,
    Key,
    Match,
    Part,
    Said,
    candidates,
    first_of,
    found_by_words,
    snippet_of,
    summed,
)
from services.searching.shelves import SHELVES, Home, said_of, texts_of_library
from services.searching.surfaces import LOOKED
from services.searching.texts import BranchTexts, keep_words, matches_in, states_of_branches

# Of so many stories, those opened last, rows are searched.
MAX_STORIES = 20
_ROWS: Mapping[LibraryKind, SearchKind] = {LibraryKind(each): each for each in LOOKED}


@dataclass(frozen=True, slots=True)
class LibraryAsked:
    """What is searched for."""

    text: str
    kinds: tuple[LibraryKind, ...]
    first: int


@dataclass(frozen=True, slots=True)
class LibraryFound:
    """What was found."""

    hits: list[Hit]
    # The ids of what was found as well, next in order.
    beyond: list[str]


@statement(object)
def _open_branches(*, of_stories: bool) -> Any:
    opened: Any = select(col(Story.id), col(Story.current_branch_id).label("branch_id")).where(
        visible(Story), col(Story.current_branch_id).is_not(None)
    )
    if of_stories:
        opened = opened.where(any_of(Story.id, "homes"))
    return opened.order_by(col(Story.last_opened_at).desc(), col(Story.id).desc()).limit(
        param("most", Integer())
    )


async def search_library(
    database: Database, branch_texts: BranchTexts, viewer: Viewer, asked: LibraryAsked
) -> LibraryFound:
    """What is found in all that the viewer has. Raises Invalid (OUT_OF_RANGE, TEXT_…)."""
    (found,) = await search_homes(database, branch_texts, viewer, asked, None, [""])
    return found


async def search_homes(
    database: Database,
    branch_texts: BranchTexts,
    viewer: Viewer,
    asked: LibraryAsked,
    home: Home | None,
    home_ids: Sequence[str],
) -> list[LibraryFound]:
    """What is found in each of these characters, stories or worlds; in one that the viewer may not
    see nothing is. Raises like `search_library`.
    """
    query = checked_query(asked.text, asked.first)
    ids = list(dict.fromkeys(home_ids))
    shelved = [each for each in asked.kinds if each in SHELVES]
    has_rows = home in (None, "story") and len(shelved) < len(asked.kinds)
    async with database.reading() as reading:
        listed = await texts_of_library(reading, viewer, shelved, home, ids)
        branches = await _branches(reading, viewer, home, ids) if has_rows else {}
        branch_ids = [branch_id for each in branches.values() for branch_id in each]
        states = await states_of_branches(reading, viewer, branch_ids) if has_rows else {}
    homes = {each: [each, *branches.get(each, ())] for each in ids}
    texts = await keep_words(database, listed)
    texts |= await branch_texts.of_branches(database, states)
    async with database.reading() as reading:
        matches = await matches_in(reading, texts, asked.kinds, query.words)
        found = {}
        for each, parts_of_it in homes.items():
            rows_of_it = candidates(
                query,
                [match for part in parts_of_it for match in _named(part, matches.get(part, ()))],
                sum(texts[part].count(asked.kinds) for part in parts_of_it if part in texts),
            )
            found[each] = first_of(rows_of_it, asked.first + CANDIDATES)
        keys = list(dict.fromkeys(key for rows in found.values() for key in rows))
        said, rows = await _looked_at(reading, viewer, asked.kinds, keys)
        shown: dict[str, list[tuple[Key, list[Part]]]] = {
            each: list(
                itertools.islice(found_by_words(query, rows_of_it, said), asked.first + MAX_HITS)
            )
            for each, rows_of_it in found.items()
        }
        hit_keys = [key for each in shown.values() for key, _ in each[: asked.first]]
        rows |= await _rows(reading, viewer, shelved, hit_keys)
    answers = {}
    for each, listed_of_it in shown.items():
        hits = [
            Hit(
                key[0],
                rows[key],
                _label(key, rows[key]),
                snippet_of(query, said[key]),
                summed(parts),
                parts,
            )
            for key, parts in listed_of_it[: asked.first]
            if key in rows
        ]
        answers[each] = LibraryFound(hits, [key[1] for key, _ in listed_of_it[asked.first :]])
    return [answers[each] for each in home_ids]


async def _branches(
    reading: Reading, viewer: Viewer, home: Home | None, home_ids: Sequence[str]
) -> dict[str, list[str]]:
    """The branches whose rows are searched, by the home of which they are part."""
    of_stories = home == "story"
    given = {"homes": list(home_ids)} if of_stories else {}
    rows: list[Any] = await reading.all(
        _open_branches(of_stories=of_stories), most=MAX_STORIES, **given, **viewer.parameters
    )
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.id if of_stories else "", []).append(row.branch_id)
    return found


def _named(home: str, matches: Sequence[Match]) -> list[Match]:
    """The same, with the ids that rows have outside."""
    return [
        replace(each, row_id=f"{home}:{each.row_id}") if each.kind in _ROWS else each
        for each in matches
    ]


async def _looked_at(
    reading: Reading, viewer: Viewer, kinds: Sequence[LibraryKind], keys: Sequence[Key]
) -> tuple[dict[Key, Said], dict[Key, Any]]:
    """What is said in rows that may be hits; rows of branches are read for it, and handed on."""
    said = await said_of(reading, viewer, [key for key in keys if key[0] in SHELVES])
    rows = await _rows(reading, viewer, [each for each in kinds if each in _ROWS], keys)
    for key, row in rows.items():
        said[key] = LOOKED[_ROWS[LibraryKind(key[0])]].said(row)
    return said, rows


async def _rows(
    reading: Reading, viewer: Viewer, kinds: Sequence[LibraryKind], keys: Sequence[Key]
) -> dict[Key, Any]:
    found: dict[Key, Any] = {}
    for kind in kinds:
        ids = [row_id for each, row_id in keys if each == kind]
        listed: list[Any] = await rows_by_ids(reading, viewer, _table(kind), ids)
        found |= {(kind, row.id): row for row in listed if row is not None}
    return found


def _table(kind: LibraryKind) -> type[Table]:
    return SHELVES[kind].table if kind in SHELVES else LOOKED[_ROWS[kind]].table


def _label(key: Key, row: Any) -> str:
    kind = LibraryKind(key[0])
    return SHELVES[kind].label_of(row) if kind in SHELVES else LOOKED[_ROWS[kind]].label(row)
