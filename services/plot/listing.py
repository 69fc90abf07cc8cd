"""Reading the plot of a branch: its lore, threads and happenings, and who is tied to these."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, ColumnElement, Text, func, or_
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import col

from db.columns import BranchRow
from db.paging import PagedList, SortKey
from db.reading import any_of, param
from db.tables import Happening, HappeningAwareness, HappeningInvolvement, Lore, Thread
from services.access import visible


def _oldest_first(table: Any) -> list[SortKey]:
    return [SortKey(col(table.created_at)), SortKey(col(table.row_id))]


def _of_category(table: type[Lore | Thread | Happening]) -> ColumnElement[bool]:
    """Rows of the category that is asked for, or of any."""
    wanted = param("category")
    return visible(table) & or_(wanted.is_(None), col(table.category) == wanted)


def _known(table: type[Lore | Happening]) -> ColumnElement[bool]:
    """Rows whose names outside are among those that are known, or all."""
    known = param("known", ARRAY(Text))
    name = col(table.branch_id) + ":" + col(table.row_id)
    return or_(known.is_(None), name == func.any(known))


LORE_OF_BRANCHES = PagedList(
    "lore",
    Lore,
    sort=_oldest_first(Lore),
    parent=col(Lore.branch_id),
    where=lambda: _of_category(Lore) & _known(Lore),
)
THREADS_OF_BRANCHES = PagedList(
    "threads",
    Thread,
    sort=_oldest_first(Thread),
    parent=col(Thread.branch_id),
    where=lambda: (
        _of_category(Thread)
        & or_(param("statuses", ARRAY(Text)).is_(None), any_of(Thread.status, "statuses"))
    ),
)
HAPPENINGS_OF_BRANCHES = PagedList(
    "happenings",
    Happening,
    sort=_oldest_first(Happening),
    parent=col(Happening.branch_id),
    where=lambda: (
        _of_category(Happening)
        & _known(Happening)
        & or_(
            param("common_knowledge", Boolean()).is_(None),
            col(Happening.common_knowledge) == param("common_knowledge", Boolean()),
        )
    ),
)


def _ties(name: str, table: type[BranchRow], parent: Any) -> PagedList[Any]:
    """The involvements or awareness that name a row in one of their columns, oldest first: their
    ids rise with time.
    """
    tie: Any = table
    return PagedList(
        name,
        table,
        sort=[SortKey(col(tie.row_id))],
        parent=col(parent),
        within=col(tie.branch_id),
        where=lambda: visible(table),
    )


INVOLVEMENTS_OF_HAPPENINGS = _ties(
    "involvements of happenings", HappeningInvolvement, HappeningInvolvement.happening_id
)
INVOLVEMENTS_OF_ENTITIES = _ties(
    "involvements of entities", HappeningInvolvement, HappeningInvolvement.entity_id
)
AWARENESS_OF_HAPPENINGS = _ties(
    "awareness of happenings", HappeningAwareness, HappeningAwareness.happening_id
)
AWARENESS_OF_CHARACTERS = _ties(
    "awareness of characters", HappeningAwareness, HappeningAwareness.character_id
)
