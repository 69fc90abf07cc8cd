"""Rows of branches for resolvers: by id, by what they name, in pages; at present or, with `as_of`
or below a row of the past, at that moment. Whatever a row of the past leads to is of its moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db.paging import Page, PagedList, PageRequest
from db.tables import Branch, BranchRow
from resolvers.context import Context
from resolvers.inputs import given
from services import past
from services.past import AsOf, Moment
from services.text import refuse_unstorable

# The most rows of a list that is no connection.
MAX_LINKED = 200


async def branches_of_rows(context: Context, rows: Sequence[Any]) -> list[Branch | None]:
    """The branch of each row."""
    return await context.many(Branch, [each.branch_id for each in rows])


async def linked(
    context: Context, table: type[BranchRow], rows: Sequence[Any], row_ids: Sequence[str | None]
) -> list[Any]:
    """For each of `rows` the row of the same branch and moment that it names by its own id, or
    None: where it names none, or one that is gone.
    """
    lists = await linked_lists(
        context, table, rows, [[each] if each is not None else [] for each in row_ids]
    )
    return [found[0] if found else None for found in lists]


async def linked_lists(
    context: Context,
    table: type[BranchRow],
    rows: Sequence[Any],
    row_ids: Sequence[Iterable[str]],
) -> list[list[Any]]:
    """The same for several ids each, in their order; ids of rows that are gone are left out."""
    named = [
        (getattr(row, "moment", None), row.branch_id, list(ids)[:MAX_LINKED])
        for row, ids in zip(rows, row_ids, strict=True)
    ]
    wanted = list(
        dict.fromkeys(
            f"{branch_id}:{each}"
            for moment, branch_id, ids in named
            if moment is None
            for each in ids
        )
    )
    present = dict(zip(wanted, await context.many(table, wanted), strict=True)) if wanted else {}
    found = []
    for moment, branch_id, ids in named:
        if moment is None:
            each_found = [present[f"{branch_id}:{each}"] for each in ids]
        else:
            then = await rows_at(context, moment, table)
            each_found = [then.get(each) for each in ids]
        found.append([row for row in each_found if row is not None])
    return found


async def pages(
    context: Context,
    listing: PagedList[Any],
    parents: Sequence[Any],
    page: PageRequest,
    *,
    as_of: Any = None,
    keep: Callable[[Any], bool] | None = None,
    **values: Any,
) -> list[Page[Any]]:
    """A page of a list for each parent: a branch, or a row of one.

    `as_of` is GraphQL's input, where the field has one. `values` are parameters of the list's own
    condition; `keep` says the same of one row, for rows of the past. Raises Invalid (INVALID_TEXT).
    """
    refuse_unstorable(values, ())
    moments = [await moment_of(context, parent, as_of) for parent in parents]
    # Before a connection is borrowed: two at once for one operation could block all others.
    past_rows = [
        {} if moment is None else await rows_at(context, moment, listing.table)
        for moment in moments
    ]
    present = [parent.id for parent, moment in zip(parents, moments, strict=True) if moment is None]
    async with context.reading() as reading:
        live = iter(
            await listing.pages(reading, present, page, **values, **context.viewer.parameters)
        )
        found = []
        by_parent: dict[Moment, dict[str, list[Any]]] = {}
        for parent, moment, rows in zip(parents, moments, past_rows, strict=True):
            if moment is None:
                found.append(next(live))
                continue
            if moment not in by_parent:
                by_parent[moment] = defaultdict(list)
                for row in rows.values():
                    if keep is None or keep(row):
                        by_parent[moment][listing.parent_id_of(row)].append(row)
            below = by_parent[moment].get(parent.id, [])
            found.append(
                listing.page_of(reading, below, page, parent_id=parent.id, resolved_at=moment)
            )
    return found


async def lists(
    context: Context, listing: PagedList[Any], parents: Sequence[Any], **options: Any
) -> list[list[Any]]:
    """The first MAX_LINKED rows of a list for each parent."""
    found = await pages(context, listing, parents, PageRequest(first=MAX_LINKED), **options)
    return [page.nodes for page in found]


async def moment_of(context: Context, parent: Any, as_of: Any) -> Moment | None:
    """The moment of a parent: its own, or that which was asked for on a branch."""
    own: Moment | None = getattr(parent, "moment", None)
    if own is not None or as_of is None:
        return own
    asked = AsOf(**given(as_of))
    moment: Moment = await context.batcher.load(_moments_of_branches, parent.id, {"as_of": asked})
    return moment


async def _moments_of_branches(
    context: Context, branch_ids: Sequence[str], *, as_of: AsOf
) -> list[Moment]:
    async with context.reading() as reading:
        return [
            await past.resolve_moment(reading, context.viewer, each, as_of) for each in branch_ids
        ]


async def rows_at(context: Context, moment: Moment, table: type[BranchRow]) -> Mapping[str, Any]:
    """All rows of a table at a moment, by their own ids; read once for an operation."""
    rows: Mapping[str, Any] = await context.batcher.load(
        _tables_at_moments, moment, {"table": table}
    )
    return rows


async def _tables_at_moments(
    context: Context, moments: Sequence[Moment], *, table: type[BranchRow]
) -> list[Mapping[str, Any]]:
    async with context.reading() as reading:
        return [await past.rows_at(reading, context.viewer, moment, table) for moment in moments]


@dataclass(frozen=True, slots=True)
class ResolvedAt:
    """The moment of a page, as clients see it."""

    entry_id: str | None
    log_position: int


def shown_moment(moment: Moment | None) -> ResolvedAt | None:
    """A moment as clients see it; None for the present."""
    if moment is None:
        return None
    entry_id = moment.entry_id and f"{moment.branch_id}:{moment.entry_id}"
    return ResolvedAt(entry_id, moment.log_position)


async def moments_of_pages(context: Context, pages: Sequence[Page[Any]]) -> list[ResolvedAt | None]:
    """Of which moment each page is; None for the present."""
    return [shown_moment(page.resolved_at) for page in pages]
