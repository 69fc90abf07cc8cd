"""Keyset pages: the first N rows of a list, or of each of many parents' lists in one statement.

A list is sorted by columns that end in a unique one; a cursor holds a row's values in all of them,
so pages neither repeat nor skip rows while others insert. Null sorts as in PostgreSQL: last in
ascending, first in descending order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Text,
    and_,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY

from db.columns import Table
from db.cursors import CursorSigner, MalformedCursor
from db.reading import Reading, Statement, any_of, columns, compile_statement, param, record_class

TableRow = TypeVar("TableRow", bound=Table)

DEFAULT_FIRST = 20
MAX_FIRST = 200


class BadPageRequest(ValueError):
    """The page that was asked for makes no sense; `argument` is the one to mend."""

    def __init__(self, argument: str, message: str, code: str = "INVALID_PAGE") -> None:
        super().__init__(message)
        self.argument = argument
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a client asked for, in Relay's words."""

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None

    @property
    def is_backward(self) -> bool:
        """Whether the page is counted from the end."""
        return self.last is not None

    @property
    def size(self) -> int:
        """How many rows at most; raises BadPageRequest."""
        if self.first is not None and self.last is not None:
            raise BadPageRequest("last", "Give either first or last, not both.")
        argument, size = ("last", self.last) if self.is_backward else ("first", self.first)
        if size is None:
            return DEFAULT_FIRST
        if not 0 <= size <= MAX_FIRST:
            raise BadPageRequest(argument, f"{argument} lies between 0 and {MAX_FIRST}.")
        return size


# What is read when nothing is said of the page.
FIRST_PAGE = PageRequest()


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column of an order."""

    column: Any
    is_descending: bool = False
    is_nullable: bool = False

    @property
    def name(self) -> str:
        """The attribute's name on the row."""
        return cast("str", self.column.key)

    def follows(self, value: Any, *, value_is_null: bool, reverse: bool) -> ColumnElement[bool]:
        """Rows that sort strictly behind the cursor's value in this column."""
        is_descending = self.is_descending != reverse
        nulls_first = self.is_descending != reverse
        if value_is_null:
            return self.column.is_not(None) if nulls_first else false()
        behind = self.column < value if is_descending else self.column > value
        if self.is_nullable and not nulls_first:
            return or_(behind, self.column.is_(None))
        return cast("ColumnElement[bool]", behind)

    def equals(self, value: Any, *, value_is_null: bool) -> ColumnElement[bool]:
        """Rows that sort beside the cursor's value in this column."""
        return cast(
            "ColumnElement[bool]", self.column.is_(None) if value_is_null else self.column == value
        )

    def order(self, *, reverse: bool) -> ColumnElement[Any]:
        """The ORDER BY term."""
        return cast(
            "ColumnElement[Any]",
            self.column.desc() if self.is_descending != reverse else self.column.asc(),
        )


@dataclass(frozen=True, slots=True)
class Edge(Generic[TableRow]):
    """A row and the cursor behind which the next page begins."""

    node: TableRow
    cursor: str


@dataclass(frozen=True, slots=True)
class PageInfo:
    """What lies before and behind a page."""

    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@dataclass(frozen=True, slots=True)
class Page(Generic[TableRow]):
    """Some rows of one list. Cursors are made when asked for.

    `source` and `values` say of which list, so that counts of many pages can be asked for at once.
    """

    source: PagedList[TableRow]
    parent_id: str | None
    values: tuple[tuple[str, Any], ...]
    nodes: list[TableRow]
    has_next_page: bool
    has_previous_page: bool
    signer: CursorSigner = field(repr=False)
    # Of a list that is at hand as a whole: how many rows it has, and of which moment it is.
    total: int | None = None
    resolved_at: Any = None

    def cursor_of(self, row: TableRow) -> str:
        """The cursor that points at a row of this page."""
        return self.source.write_cursor(self.signer, row)

    @property
    def edges(self) -> list[Edge[TableRow]]:
        """The rows with their cursors."""
        return [Edge(row, self.cursor_of(row)) for row in self.nodes]

    @property
    def page_info(self) -> PageInfo:
        """What lies around the page."""
        nodes = self.nodes
        return PageInfo(
            self.has_next_page,
            self.has_previous_page,
            self.cursor_of(nodes[0]) if nodes else None,
            self.cursor_of(nodes[-1]) if nodes else None,
        )


class PagedList(Generic[TableRow]):
    """A list that can be read in pages: which rows, in which order, below which parent.

    `parent` is the column that names the parent, or None for a root list. Where parents belong to
    branches, `within` is the column of the branch, and parents are named by both halves of their
    keys. `parent_of` reads the parent's id off a row where `parent` is no attribute. `where` may
    use parameters, whose values are passed to `pages` and `counts`. The last sort key must be
    unique, within a branch where `within` is given.
    """

    def __init__(
        self,
        name: str,
        table: type[TableRow],
        *,
        sort: Sequence[SortKey],
        parent: Any | None = None,
        within: Any | None = None,
        parent_of: Callable[[TableRow], str | None] | None = None,
        where: Callable[[], ColumnElement[bool]] = true,
    ) -> None:
        self.name = name
        self.table = table
        self.sort = tuple(sort)
        self.parent = parent
        self._within = within
        self._parent_of = parent_of
        self._where = where
        # Part of every cursor's signature: one made for another order is refused, also one from
        # before an update that changed the order of this list.
        order = ",".join(f"{key.name}{'-' if key.is_descending else '+'}" for key in self.sort)
        self._cursor_list = f"{name}({order})"
        self._page_statements: dict[Any, Statement[TableRow]] = {}
        self._count_statements: dict[bool, Statement[Any]] = {}

    async def pages(
        self, reading: Reading, parent_ids: Sequence[str], request: PageRequest, **values: Any
    ) -> list[Page[TableRow]]:
        """One page for each parent, in order; one statement. Raises BadPageRequest."""
        size = request.size
        after = self._read_cursor(reading, "after", request.after)
        before = self._read_cursor(reading, "before", request.before)
        if not parent_ids:
            return []
        distinct = list(dict.fromkeys(parent_ids))
        statement = self._page_statement(
            len(distinct) > 1, request.is_backward, _nulls(after), _nulls(before)
        )
        # One row more than asked for tells whether there is a next page.
        parameters = {**values, "page_limit": size + 1}
        for side, bounds in (("after", after), ("before", before)):
            for index, value in enumerate(bounds or ()):
                parameters[f"{side}_{index}"] = value
        if self.parent is not None:
            parameters.update(self._parent_parameters(distinct, is_many=len(distinct) > 1))
        rows = await reading.all(statement, **parameters)
        if self.parent is None:
            return [self._page(reading, None, rows, request, size, values)]
        by_parent: dict[str, list[TableRow]] = {each: [] for each in distinct}
        for row in rows:
            by_parent[self.parent_id_of(row)].append(row)
        return [
            self._page(reading, each, by_parent[each], request, size, values) for each in parent_ids
        ]

    async def page(self, reading: Reading, request: PageRequest, **values: Any) -> Page[TableRow]:
        """A page of a root list. Raises BadPageRequest."""
        (page,) = await self.pages(reading, [""], request, **values)
        return page

    async def counts(
        self, reading: Reading, parent_ids: Sequence[str | None], **values: Any
    ) -> list[int]:
        """How many rows each parent's whole list has, in order; one statement."""
        if self.parent is None:
            total = await reading.value(self._count_statement(), **values)
            return [total for _ in parent_ids]
        distinct = list(dict.fromkeys(each for each in parent_ids if each is not None))
        rows: list[Any] = await reading.all(
            self._count_statement(), **self._parent_parameters(distinct, is_many=True), **values
        )
        totals = {
            row.parent if self._within is None else f"{row.within}:{row.parent}": row.total
            for row in rows
        }
        return [totals.get(each, 0) if each is not None else 0 for each in parent_ids]

    def parent_id_of(self, row: TableRow) -> str:
        """The parent of a row, as it is named in `pages`."""
        assert self.parent is not None
        own = self._parent_of(row) if self._parent_of else getattr(row, self.parent.key)
        return f"{row.branch_id}:{own}" if self._within is not None else str(own)  # type: ignore[attr-defined]

    def _parent_parameters(self, parent_ids: list[str], *, is_many: bool) -> dict[str, Any]:
        if self._within is None:
            return {"page_parents": parent_ids} if is_many else {"page_parent": parent_ids[0]}
        pairs = [each.partition(":") for each in parent_ids]
        if not is_many:
            branch_id, _, own_id = pairs[0]
            return {"page_branch": branch_id, "page_parent": own_id}
        return {
            "page_branches": [branch_id for branch_id, _, _ in pairs],
            "page_parents": [own_id for _, _, own_id in pairs],
        }

    def page_of(
        self,
        reading: Reading,
        rows: Sequence[TableRow],
        request: PageRequest,
        *,
        parent_id: str | None,
        resolved_at: Any,
    ) -> Page[TableRow]:
        """A page of a list of which all rows are at hand: those of a past moment.

        The same order and cursors as those of `pages`. Raises BadPageRequest.
        """
        size = request.size
        ordered = sorted(rows, key=self._place_of)
        after = self._read_cursor(reading, "after", request.after)
        before = self._read_cursor(reading, "before", request.before)
        between = [
            row
            for row in ordered
            if (after is None or self._place_of(row) > self._place(after))
            and (before is None or self._place_of(row) < self._place(before))
        ]
        nodes = between[max(len(between) - size, 0) :] if request.is_backward else between[:size]
        has_more = len(between) > size
        return Page(
            self,
            parent_id,
            (),
            nodes,
            request.before is not None if request.is_backward else has_more,
            has_more if request.is_backward else request.after is not None,
            reading.cursors,
            len(ordered),
            resolved_at,
        )

    def _place_of(self, row: TableRow) -> list[Any]:
        return self._place([getattr(row, key.name) for key in self.sort])

    def _place(self, values: Sequence[Any]) -> list[Any]:
        """What sorts as the database sorts: null last, or first where the order is descending."""
        return [
            _Descending((value is None, value)) if key.is_descending else (value is None, value)
            for key, value in zip(self.sort, values, strict=True)
        ]

    def write_cursor(self, signer: CursorSigner, row: TableRow) -> str:
        """The cursor that points at a row of this list."""
        return signer.write(self._cursor_list, [getattr(row, key.name) for key in self.sort])

    def _read_cursor(self, reading: Reading, argument: str, cursor: str | None) -> list[Any] | None:
        if cursor is None:
            return None
        try:
            return reading.cursors.read(self._cursor_list, cursor)
        except MalformedCursor:
            message = f"{argument} is not a cursor of this list: pass one that the server gave."
            raise BadPageRequest(argument, message, "INVALID_CURSOR") from None

    def _page(
        self,
        reading: Reading,
        parent_id: str | None,
        rows: list[TableRow],
        request: PageRequest,
        size: int,
        values: dict[str, Any],
    ) -> Page[TableRow]:
        nodes, has_more = rows[:size], len(rows) > size
        if request.is_backward:
            nodes = nodes[::-1]
        has_next = request.before is not None if request.is_backward else has_more
        has_previous = has_more if request.is_backward else request.after is not None
        return Page(
            self,
            parent_id,
            # Hashable, so that pages of one list are known as such.
            tuple(
                (name, tuple(value) if isinstance(value, list) else value)
                for name, value in values.items()
            ),
            nodes,
            has_next,
            has_previous,
            reading.cursors,
        )

    def _page_statement(
        self,
        is_many: bool,
        is_backward: bool,
        after: tuple[bool, ...] | None,
        before: tuple[bool, ...] | None,
    ) -> Statement[TableRow]:
        shape = (is_many, is_backward, after, before)
        if shape not in self._page_statements:
            rows = select(*columns(self.table)).where(self._where())
            if after is not None:
                rows = rows.where(self._beyond("after", after, reverse=False))
            if before is not None:
                rows = rows.where(self._beyond("before", before, reverse=True))
            order = [key.order(reverse=is_backward) for key in self.sort]
            rows = rows.order_by(*order).limit(param("page_limit", Integer()))
            if is_many:
                rows = self._for_each_parent(rows, is_backward)
            elif self.parent is not None:
                rows = rows.where(self.parent == param("page_parent"))
                if self._within is not None:
                    rows = rows.where(self._within == param("page_branch"))
            self._page_statements[shape] = compile_statement(rows, record_class(self.table))
        return self._page_statements[shape]

    def _for_each_parent(self, rows: Select[Any], is_backward: bool) -> Select[Any]:
        parents = self._parents()
        found = rows.where(self._is_below(parents)).lateral("found")
        order = [
            found.c[key.name].desc() if key.is_descending != is_backward else found.c[key.name]
            for key in self.sort
        ]
        return (
            select(*found.c)
            .select_from(parents.join(found, true()))
            .order_by(parents.c.place, *order)
        )

    def _parents(self) -> Any:
        """The parents that are asked for, as a table, in their order."""
        ids = param("page_parents", ARRAY(Text))
        if self._within is None:
            parents = func.unnest(ids).table_valued("id", with_ordinality="place", name="parents")
        else:
            parents = func.unnest(param("page_branches", ARRAY(Text)), ids).table_valued(
                "branch_id", "id", with_ordinality="place", name="parents"
            )
        return parents.render_derived()

    def _is_below(self, parents: Any) -> ColumnElement[bool]:
        assert self.parent is not None
        below = self.parent == parents.c.id
        if self._within is not None:
            below = and_(below, self._within == parents.c.branch_id)
        return cast("ColumnElement[bool]", below)

    def _beyond(self, side: str, nulls: tuple[bool, ...], *, reverse: bool) -> ColumnElement[bool]:
        values = [param(f"{side}_{index}", key.column.type) for index, key in enumerate(self.sort)]
        directions = {key.is_descending for key in self.sort}
        if len(directions) == 1 and not any(key.is_nullable for key in self.sort):
            # One comparison of whole rows, which a matching index serves directly.
            left = tuple_(*(key.column for key in self.sort))
            right = tuple_(*values)
            is_less = directions.pop() != reverse
            return left < right if is_less else left > right
        choices = []
        for index, key in enumerate(self.sort):
            beside = [
                earlier.equals(values[place], value_is_null=nulls[place])
                for place, earlier in enumerate(self.sort[:index])
            ]
            behind = key.follows(values[index], value_is_null=nulls[index], reverse=reverse)
            choices.append(and_(*beside, behind))
        return or_(*choices)

    def _count_statement(self) -> Statement[Any]:
        is_root = self.parent is None
        if is_root not in self._count_statements:
            counted: Select[Any]
            if self.parent is None:
                counted = select(func.count()).select_from(self.table).where(self._where())
            elif self._within is None:
                counted = (
                    select(self.parent.label("parent"), func.count().label("total"))
                    .where(any_of(self.parent, "page_parents"), self._where())
                    .group_by(literal_column("1"))
                )
            else:
                parents = self._parents()
                counted = (
                    select(
                        parents.c.branch_id.label("within"),
                        parents.c.id.label("parent"),
                        func.count().label("total"),
                    )
                    .select_from(parents)
                    .join(self.table, self._is_below(parents))
                    .where(self._where())
                    .group_by(literal_column("1"), literal_column("2"))
                )
            self._count_statements[is_root] = compile_statement(counted, record_class(object))
        return self._count_statements[is_root]


@functools.total_ordering
class _Descending:
    """Sorts the other way round."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)


def _nulls(values: list[Any] | None) -> tuple[bool, ...] | None:
    return None if values is None else tuple(value is None for value in values)
