"""How columns are declared: the few shapes that every table uses.

A column is a Python attribute of the same name, except that JSON columns of the soul-mirror
specification end in `_json` in the database only.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel


class Table(SQLModel):
    """Base of every table class. Rows are read as light records with the same attributes."""

    # One rule names every constraint, so that migrations and error handling can rely on the names.
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class BranchRow(Table):
    """Base of the tables whose rows belong to a branch. A fork copies them with their ids, so the
    two halves of the key together name a row.
    """

    branch_id: str
    row_id: str

    @property
    def id(self) -> str:
        """The name of the row outside: unique among all branches."""
        return f"{self.branch_id}:{self.row_id}"


def id_column() -> Any:
    """The primary key, filled by `db.ids.new_id` when a row is inserted."""
    return Field(sa_column=Column(String, primary_key=True))


def reference(
    target: str, *, nullable: bool = False, unique: bool = False, on_delete: str | None = None
) -> Any:
    """A foreign key to `table.column`, indexed by the table that declares it."""
    key = ForeignKey(target, ondelete=on_delete)
    return Field(sa_column=Column(String, key, nullable=nullable, unique=unique))


def branch_column() -> Any:
    """The branch a row belongs to: the first half of its key."""
    return Field(sa_column=Column("branch_id", String, ForeignKey("branches.id"), primary_key=True))


def row_id_column() -> Any:
    """A row's own id: the second half of its key, the same in every branch that was forked."""
    return Field(sa_column=Column("id", String, primary_key=True))


def key_column(*, is_number: bool = False) -> Any:
    """A part of a primary key that is no id."""
    type_ = Integer() if is_number else String()
    return Field(sa_column=Column(type_, primary_key=True, autoincrement=False))


def owner_column(target: str) -> Any:
    """A part of a primary key that is the id of a row of `table.column`; rows go with it."""
    key = ForeignKey(target, ondelete="CASCADE")
    return Field(sa_column=Column(String, key, primary_key=True))


def words_column() -> Any:
    """A list of words that PostgreSQL can index."""
    return Field(sa_column=Column(ARRAY(Text), nullable=False))


def vector_column() -> Any:
    """A vector of any dimension. Migrations make it a list of numbers where PostgreSQL does not
    have pgvector.
    """
    return Field(sa_column=Column(Vector, nullable=False))


def number_column() -> Any:
    """The second half of a key that counts within a branch."""
    return Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))


def link_column(*, nullable: bool = False) -> Any:
    """The id of a row of the same branch, without a foreign key: a reversal may bring the two ends
    of a link back in either order, and readers bear with an end that is gone.
    """
    return Field(sa_column=Column(String, nullable=nullable))


def text_column(*, nullable: bool = False, default: str | None = None) -> Any:
    """Text of any length; never with U+0000, which PostgreSQL cannot hold."""
    return Field(
        sa_column=Column(
            Text,
            nullable=nullable,
            server_default=None if default is None else text(f"'{default}'"),
        )
    )


def enum_column(*, nullable: bool = False) -> Any:
    """A closed set kept as text; the table adds `one_of` as its check."""
    return Field(sa_column=Column(String, nullable=nullable))


def one_of(column: str, values: type[StrEnum]) -> CheckConstraint:
    """The check that keeps a text column inside its enum."""
    listed = ", ".join(f"'{value.value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"one_of_{column}")


def integer_column(*, default: int | None = None, nullable: bool = False) -> Any:
    """A 32-bit whole number."""
    return Field(sa_column=Column(Integer, nullable=nullable, server_default=_number(default)))


def long_column(*, default: int | None = None, nullable: bool = False) -> Any:
    """A 64-bit whole number."""
    return Field(sa_column=Column(BigInteger, nullable=nullable, server_default=_number(default)))


def boolean_column(*, default: bool) -> Any:
    """A claim that is always true or false."""
    return Field(
        sa_column=Column(Boolean, nullable=False, server_default=text(str(default).lower()))
    )


def json_column(name: str, *, nullable: bool = False) -> Any:
    """Free-form JSON under its database name; decoded to plain Python values."""
    return Field(sa_column=Column(name, JSONB, nullable=nullable))


def json_object_column(name: str) -> Any:
    """A JSON object under its database name; empty unless given."""
    return Field(sa_column=Column(name, JSONB, nullable=False, server_default=text("'{}'::jsonb")))


def double_column(*, default: float | None = None, nullable: bool = False) -> Any:
    """A number with a fraction."""
    value = None if default is None else text(str(default))
    return Field(sa_column=Column(Double, nullable=nullable, server_default=value))


def json_list_column(name: str) -> Any:
    """A JSON list under its database name; empty unless given."""
    return Field(sa_column=Column(name, JSONB, nullable=False, server_default=text("'[]'::jsonb")))


def bytes_column() -> Any:
    """A file's content. In a table of its own, so that no list reads it."""
    return Field(sa_column=Column(LargeBinary, nullable=False))


def time_column(*, nullable: bool = True) -> Any:
    """A moment in UTC, microseconds."""
    return Field(sa_column=Column(DateTime(timezone=True), nullable=nullable))


def created_at_column() -> Any:
    """When the row was inserted, by the database's clock."""
    return Field(
        sa_column=Column(
            DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        )
    )


def version_column() -> Any:
    """Counts the changes of a row, for optimistic locking; begins at 1."""
    return Field(sa_column=Column(Integer, nullable=False, server_default=text("1")))


def _number(default: int | None) -> Any:
    return None if default is None else text(str(default))
