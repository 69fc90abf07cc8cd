"""Which rows of a branch are searched, where somebody asks for some of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import EntityKind, EntityStatus, SearchKind
from db.reading import Reading, any_of, param, statement
from db.tables import BranchRow, Lore, StoryEntity
from services.access import Viewer, visible

# Kinds of rows that have tags.
_TAGGED: dict[SearchKind, Any] = {SearchKind.ENTITY: StoryEntity, SearchKind.LORE: Lore}


@dataclass(frozen=True, slots=True)
class Filter:
    """What rows must be like; None asks for nothing. Rows that cannot be like it are left out."""

    entity_kinds: tuple[EntityKind, ...] | None = None
    entity_statuses: tuple[EntityStatus, ...] | None = None
    # All of these.
    tags: tuple[str, ...] | None = None

    def fits(self, kind: SearchKind, row: Any) -> bool:
        """Whether a row is like that."""
        return (
            kind in self.kinds
            and (self.entity_kinds is None or row.kind in self.entity_kinds)
            and (self.entity_statuses is None or row.status in self.entity_statuses)
            and (self.tags is None or set(self.tags) <= set(row.tags))
        )

    @property
    def kinds(self) -> list[SearchKind]:
        """Kinds of rows that can be like that."""
        if self.entity_kinds is not None or self.entity_statuses is not None:
            return [SearchKind.ENTITY]
        return list(SearchKind) if self.tags is None else list(_TAGGED)


@statement(object)
def _fitting(table: type[BranchRow], *, has_kinds: bool, has_statuses: bool, has_tags: bool) -> Any:
    rows: Any = table
    fitting = select(col(rows.branch_id), col(rows.row_id).label("row_id")).where(
        any_of(rows.branch_id, "branch_ids"), visible(table)
    )
    if has_kinds:
        fitting = fitting.where(any_of(rows.kind, "entity_kinds"))
    if has_statuses:
        fitting = fitting.where(any_of(rows.status, "entity_statuses"))
    if has_tags:
        fitting = fitting.where(col(rows.tags).op("@>")(param("tags", JSONB())))
    return fitting


async def fitting_rows(
    reading: Reading, viewer: Viewer, branch_ids: Sequence[str], asked: Filter
) -> dict[str, dict[SearchKind, set[str]]]:
    """The ids of rows that are like that, by branch and kind."""
    found: dict[str, dict[SearchKind, set[str]]] = {
        each: {kind: set() for kind in SearchKind} for each in branch_ids
    }
    shape = {
        "has_kinds": asked.entity_kinds is not None,
        "has_statuses": asked.entity_statuses is not None,
        "has_tags": asked.tags is not None,
    }
    for kind in asked.kinds:
        rows: list[Any] = await reading.all(
            _fitting(_TAGGED[kind], **shape),
            branch_ids=list(branch_ids),
            entity_kinds=list(asked.entity_kinds or ()),
            entity_statuses=list(asked.entity_statuses or ()),
            tags=list(asked.tags or ()),
            **viewer.parameters,
        )
        for row in rows:
            found[row.branch_id][kind].add(row.row_id)
    return found
