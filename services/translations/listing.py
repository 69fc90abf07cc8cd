"""The translations of branches and of rows, in pages."""

from __future__ import annotations

from sqlmodel import col

from db.paging import PagedList, SortKey
from db.reading import param
from db.tables import Translation
from services.access import visible

_BY_ID = [SortKey(col(Translation.row_id))]
TRANSLATIONS = PagedList(
    "translations",
    Translation,
    sort=[SortKey(col(Translation.created_at)), *_BY_ID],
    parent=col(Translation.branch_id),
    where=lambda: (
        visible(Translation)
        & (param("language").is_(None) | (col(Translation.language) == param("language")))
    ),
)
TRANSLATIONS_OF_TARGETS = PagedList(
    "translations of targets",
    Translation,
    sort=_BY_ID,
    parent=col(Translation.target_id),
    within=col(Translation.branch_id),
    where=lambda: visible(Translation) & (col(Translation.language) == param("language")),
)
