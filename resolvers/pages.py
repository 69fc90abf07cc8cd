"""Pages of lists: from Relay's arguments to a request, and the counts of many pages at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.paging import Page
from resolvers.context import Context


async def total_counts_of_pages(context: Context, pages: Sequence[Page[Any]]) -> list[int]:
    """How many rows the whole list behind each page has: one statement for each kind of list."""
    groups: dict[Any, list[int]] = {}
    totals = [page.total or 0 for page in pages]
    for place, page in enumerate(pages):
        if page.total is None:
            groups.setdefault((page.source, page.values), []).append(place)
    if not groups:
        return totals
    async with context.reading() as reading:
        for (source, values), places in groups.items():
            parent_ids = [pages[place].parent_id for place in places]
            counts = await source.counts(reading, parent_ids, **dict(values))
            for place, count in zip(places, counts, strict=True):
                totals[place] = count
    return totals
