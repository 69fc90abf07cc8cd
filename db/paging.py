"""Keyset pages: the first N rows of a list, or of each of many parents' lists in one statement.

A list is sorted by columns that end in a unique one; a cursor holds a row's values in all of them,
so pages neither repeat nor skip rows while others insert. Null sorts as in PostgreSQL: last in
ascending, first in descending order.
"""

from __future__ import annotations

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

    `parent` is the column that names the parent, or None for a root list. `where` may use
    parameters, whose values are passed to `pages` and `counts`. The last sort key must be unique.
    """

    def __init__(
        self,
        name: str,
        table: type[TableRow],
        *,
        sort: Sequence[SortKey],
        parent: Any | None = None,
        where: Callable[[], ColumnElement[bool]] = true,
    ) -> None:
        self.name = name
        self.table = table
        self.sort = tuple(sort)
        self.parent = parent
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
            parameters["page_parents" if len(distinct) > 1 else "page_parent"] = (
                distinct if len(distinct) > 1 else distinct[0]
            )
        rows = await reading.all(statement, **parameters)
        if self.parent is None:
            return [self._page(reading, None, rows, request, size, values)]
        by_parent: dict[str, list[TableRow]] = {each: [] for each in distinct}
        for row in rows:
            by_parent[getattr(row, self.parent.key)].append(row)
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
        rows: list[Any] = await reading.all(
            self._count_statement(), page_parents=list(dict.fromkeys(parent_ids)), **values
        )
        totals = {row.parent: row.total for row in rows}
        return [totals.get(each, 0) for each in parent_ids]

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
            tuple(values.items()),
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
            self._page_statements[shape] = compile_statement(rows, record_class(self.table))
        return self._page_statements[shape]

    def _for_each_parent(self, rows: Select[Any], is_backward: bool) -> Select[Any]:
        assert self.parent is not None
        parents = (
            func.unnest(param("page_parents", ARRAY(Text)))
            .table_valued("id", with_ordinality="place", name="parents")
            .render_derived()
        )
        found = rows.where(self.parent == parents.c.id).lateral("found")
        order = [
            found.c[key.name].desc() if key.is_descending != is_backward else found.c[key.name]
            for key in self.sort
        ]
        return (
            select(*found.c)
            .select_from(parents.join(found, true()))
            .order_by(parents.c.place, *order)
        )

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
            else:
                counted = (
                    select(self.parent.label("parent"), func.count().label("total"))
                    .where(any_of(self.parent, "page_parents"), self._where())
                    .group_by(literal_column("1"))
                )
            self._count_statements[is_root] = compile_statement(counted, record_class(object))
        return self._count_statements[is_root]


def _nulls(values: list[Any] | None) -> tuple[bool, ...] | None:
    return None if values is None else tuple(value is None for value in values)
