"""How statements reach PostgreSQL: built with SQLAlchemy Core over the tables, compiled once to
text, prepared and run by asyncpg; rows come back as light records with attribute access.

`Reading` can only read (its connections refuse writes); `Writing` is one open transaction. The two
are different types, so that a signature says which it needs; a `Writing` also reads, and then sees
its own changes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, ParamSpec, TypeVar, cast

import asyncpg
import orjson
from sqlalchemy import BindParameter, ColumnElement, String, Text, bindparam, func, insert
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.inspection import inspect
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.type_api import TypeEngine

from db.columns import Table
from db.cursors import CursorSigner
from db.ids import new_id

Row = TypeVar("Row")
TableRow = TypeVar("TableRow", bound=Table)
Shape = ParamSpec("Shape")

# What a statement may raise because of the connection or the server. The last one is how asyncpg
# refuses a connection that the server has just ended, until it has seen the end itself.
DATABASE_TROUBLE = (
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

_DIALECT: Any = PGDialect_asyncpg()  # type: ignore[no-untyped-call]


class Record(asyncpg.Record):
    """A row: columns are attributes, named as on the table class."""

    __slots__ = ()
    # Rows of a past moment have one; these are of the present.
    moment = None

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no column {name!r}") from None


@functools.cache
def record_class(table: Any) -> type[Record]:
    """The record class of a table: of the same name, with the table class's own properties."""
    derived = {
        name: value
        for each in reversed(getattr(table, "__mro__", ()))
        if each is table or (isinstance(each, type) and issubclass(each, Table))
        for name, value in vars(each).items()
        if isinstance(value, property)
    }
    # These cost a seventh of `__getattr__`, which reads of many rows would feel; and a column comes
    # before a method of asyncpg's records that has its name (`keys`).
    derived |= {name: property(itemgetter(name)) for name in getattr(table, "model_fields", ())}
    return type(table.__name__, (Record,), {"__slots__": (), "table": table, **derived})


@functools.cache
def columns(table: type[Table]) -> tuple[ColumnElement[Any], ...]:
    """All columns of a table, labelled with the names of the class's attributes."""
    return tuple(
        getattr(table, attribute.key).label(attribute.key)
        for attribute in inspect(table).column_attrs
    )


def param(name: str, type_: TypeEngine[Any] | None = None) -> BindParameter[Any]:
    """A parameter that is given when the statement runs; text unless said otherwise."""
    return bindparam(name, type_=type_ or String(), required=True)


def any_of(column: Any, name: str) -> ColumnElement[bool]:
    """`column` is one of the texts in the list parameter `name`."""
    # text[], not varchar[]: asyncpg would ask the server about that type on every new connection.
    return cast("ColumnElement[bool]", column == func.any(param(name, ARRAY(Text))))


@dataclass(frozen=True, slots=True)
class Statement(Generic[Row]):
    """A compiled statement: its text, its parameters in order, fixed values, its rows' class."""

    sql: str
    names: tuple[str, ...]
    fixed: dict[str, Any]
    record: type[Record]

    def arguments(self, given: dict[str, Any]) -> list[Any]:
        """The values in the order of the text; KeyError names one that is missing."""
        fixed = self.fixed
        return [given[name] if name in given else fixed[name] for name in self.names]


def compile_statement(element: ClauseElement, record: type[Record]) -> Statement[Any]:
    """Turn a Core statement into text for asyncpg."""
    compiled: Any = element.compile(dialect=_DIALECT)
    names = tuple(compiled.positiontup or ())
    binds = compiled.binds
    fixed = {name: binds[name].value for name in names if not binds[name].required}
    return Statement(str(compiled), names, fixed, record)


def statement(
    row: type[Row],
) -> Callable[[Callable[Shape, ClauseElement]], Callable[Shape, Statement[Row]]]:
    """Mark a function that builds a statement: it runs once for each set of (hashable) arguments.

    Arguments choose the statement's shape; values are parameters, given when it runs. `row` is a
    table class, or any class for statements whose columns are their own.
    """

    def decorate(build: Callable[Shape, ClauseElement]) -> Callable[Shape, Statement[Row]]:
        record = record_class(cast("Any", row))

        @functools.cache
        def compiled(*args: Any, **kwargs: Any) -> Statement[Row]:
            return compile_statement(build(*args, **kwargs), record)

        return cast("Callable[Shape, Statement[Row]]", functools.wraps(build)(compiled))

    return decorate


@functools.cache
def _insertion(table: type[Table], given: tuple[str, ...]) -> Statement[Any]:
    names = {attribute.key: attribute.columns[0] for attribute in inspect(table).column_attrs}
    values = {
        names[key].name: bindparam(key, type_=names[key].type, required=True) for key in given
    }
    return compile_statement(
        insert(table).values(values).returning(*columns(table)), record_class(table)
    )


class Reading:
    """A handle for reading on one connection."""

    def __init__(self, connection: Any, cursors: CursorSigner) -> None:
        self._connection = connection
        self.cursors = cursors

    async def all(self, statement: Statement[Row], **values: Any) -> list[Row]:
        """Every row."""
        rows = await self._connection.fetch(
            statement.sql, *statement.arguments(values), record_class=statement.record
        )
        return cast("list[Row]", rows)

    async def first(self, statement: Statement[Row], **values: Any) -> Row | None:
        """The first row, or None."""
        row = await self._connection.fetchrow(
            statement.sql, *statement.arguments(values), record_class=statement.record
        )
        return cast("Row | None", row)

    async def value(self, statement: Statement[Any], **values: Any) -> Any:
        """The first column of the first row, or None."""
        return await self._connection.fetchval(statement.sql, *statement.arguments(values))


class Writing(Reading):
    """A handle for changing things inside one open transaction, which its opener commits."""

    async def insert(self, table: type[TableRow], **values: Any) -> TableRow:
        """Insert a row and return it whole; a missing `id` is made."""
        if "id" not in values and "id" in inspect(table).column_attrs:
            values["id"] = new_id(cast("str", table.__tablename__))
        statement: Statement[TableRow] = _insertion(table, tuple(sorted(values)))
        row = await self.first(statement, **values)
        assert row is not None
        return row

    async def insert_many(
        self, table: type[Table], rows: Iterable[dict[str, Any]], *, unless_there: bool = False
    ) -> None:
        """Insert rows that all have the same keys, in one round trip, returning nothing.

        With `unless_there`, a row whose key exists is left as it is.
        """
        listed = list(rows)
        if not listed:
            return
        for row in listed:
            if row.keys() != listed[0].keys():
                differing = ", ".join(sorted(row.keys() ^ listed[0].keys()))
                raise ValueError(
                    f"rows of one insert have the same keys, these differ: {differing}"
                )
        statement = _insertion(table, tuple(sorted(listed[0])))
        sql = statement.sql.partition(" RETURNING ")[0]
        if unless_there:
            sql += " ON CONFLICT DO NOTHING"
        await self._connection.executemany(sql, [statement.arguments(row) for row in listed])

    async def run(self, statement: Statement[Any], **values: Any) -> int:
        """Run a statement for its effect; how many rows it touched."""
        status = await self._connection.execute(statement.sql, *statement.arguments(values))
        return int(status.rpartition(" ")[2])

    async def notify(self, channel: str, payload: str) -> None:
        """Tell every listening process once this transaction commits; at most 8,000 bytes."""
        await self._connection.execute("SELECT pg_notify($1, $2)", channel, payload)


async def prepare_connection(connection: Any) -> None:
    """Give a fresh connection our JSON codec: orjson in and out, in PostgreSQL's binary form."""
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        # The leading byte is the version of PostgreSQL's binary jsonb format.
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda value: orjson.loads(value[1:]),
        format="binary",
    )
