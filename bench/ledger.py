"""A branch in memory: its rows and its log, written as `services/deltas` writes them, then put into
a database at once. What it takes to undo each change is true.

It also keeps the changes themselves, which the log does not: they say what any moment of the branch
must look like.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from db.columns import BranchRow
from db.enums import DeltaOp, DeltaSource, LoggedTable
from db.ids import new_id
from db.tables import Delta, Embedding
from services.deltas import CHILDREN, LOGGED, Image, Logged, logged_of
from services.deltas.embedding import content_hash
from services.deltas.logged import DEPENDENT, STALE
from services.deltas.writing import ENCODING_VERSION, payload_between

MODELS = ("generated-384", "generated-768")
# How many of the embedded rows the second model has embedded too.
_SECOND_MODEL = 0.6
# How many changed texts have been embedded anew.
_EMBEDDED_ANEW = 0.5
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)

# A row by its id, in each table.
Rows = dict[LoggedTable, dict[str, Image]]


@dataclass(frozen=True, slots=True)
class Change:
    """What was done: the whole row for a create, the changed columns for an update, nothing for a
    delete, which takes along what names the row.
    """

    position: int
    anchor: str | None
    table: LoggedTable
    op: DeltaOp
    row_id: str
    values: Mapping[str, Any]


class Clock:
    """Moments that rise by a second or so, and ids that sort like them."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._now = _BEGINNING

    def tick(self) -> str:
        """The next moment as PostgreSQL writes it in JSON: with microseconds, none of them 0 at
        the end, since it would be left out.
        """
        step = self._draw.randrange(1, 2_000_000)
        self._now += timedelta(microseconds=step)
        if self._now.microsecond % 10 == 0:
            self._now += timedelta(microseconds=1)
        return self._now.isoformat()

    def id(self, prefix: str) -> str:
        """An id with a UUIDv7 of the present moment."""
        milliseconds = int(self._now.timestamp() * 1000)
        drawn = self._draw.getrandbits(74)
        body = milliseconds << 80 | 7 << 76 | drawn >> 62 << 64 | 2 << 62 | drawn & (1 << 62) - 1
        return f"{prefix}_{uuid.UUID(int=body)}"


@dataclass(slots=True)
class Ledger:
    """The rows of one branch and how they came to be."""

    draw: random.Random
    clock: Clock
    branch_id: str = field(default_factory=lambda: new_id("branches"))
    rows: Rows = field(default_factory=lambda: {name: {} for name in LOGGED})
    # What there was before the log began.
    planted: Rows = field(default_factory=lambda: {name: {} for name in LOGGED})
    deltas: list[Image] = field(default_factory=list)
    embeddings: list[Image] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    _action_id: str = ""
    _source: DeltaSource = DeltaSource.USER_EDIT

    def begin(self, source: DeltaSource) -> None:
        """Begin an action, which lasts until the next one."""
        self._action_id = self.clock.id("act")
        self._source = source

    def plant(self, table: type[BranchRow], prefix: str, **values: Any) -> Image:
        """A row that the branch begins with."""
        logged = logged_of(table)
        image = self._image(logged, prefix, values)
        self.planted[logged.name][image["id"]] = image
        return image

    def create(
        self, table: type[BranchRow], prefix: str, *, anchor: str | None, **values: Any
    ) -> Image:
        """A new row."""
        logged = logged_of(table)
        image = self._image(logged, prefix, values)
        self._log(logged, image["id"], DeltaOp.CREATE, None, anchor, image)
        return image

    def update(
        self, table: type[BranchRow], row_id: str, *, anchor: str | None, **values: Any
    ) -> Image:
        """The row with other values; nothing is logged where it has them already."""
        logged = logged_of(table)
        before = self.rows[logged.name][row_id]
        after = {**before, **values}
        payload = payload_between(logged, before, after)
        if not payload:
            return before
        if "updated_at" in before:
            payload["updated_at"] = before["updated_at"]
            after["updated_at"] = self.clock.tick()
        if payload.keys() & set(logged.embedded):
            after[STALE] = self.draw.random() >= _EMBEDDED_ANEW
            if not after[STALE]:
                self._embed_anew(logged, after)
        self.rows[logged.name][row_id] = after
        changed = {column: after[column] for column in payload}
        self._log(logged, row_id, DeltaOp.UPDATE, payload, anchor, changed)
        return after

    def delete(self, table: type[BranchRow], row_id: str, *, anchor: str | None) -> None:
        """Take a row out, with every row that names it."""
        logged = logged_of(table)
        payload = dict(self.rows[logged.name][row_id])
        gone = take(self.rows, logged.name, row_id)
        if gone:
            payload[CHILDREN] = {str(name): list(rows.values()) for name, rows in gone.items()}
        taken = {row_id, *(each for rows in gone.values() for each in rows)}
        self.embeddings = [each for each in self.embeddings if each["target_id"] not in taken]
        self._log(logged, row_id, DeltaOp.DELETE, payload, anchor, {})

    def newest_anchor(self, row_id: str) -> str | None:
        """The anchor of the newest change of a row: that of its translations."""
        for each in reversed(self.deltas):
            if each["target_id"] == row_id:
                own: str | None = each["entry_id"]
                return own
        return None

    def _image(self, logged: Logged, prefix: str, values: Mapping[str, Any]) -> Image:
        at = self.clock.tick()
        image = {
            str(column.name): _beginning(column, at)
            for column in logged.table.__table__.columns  # type: ignore[attr-defined]
        }
        image |= {"branch_id": self.branch_id, "id": self.clock.id(prefix), **values}
        self.rows[logged.name][image["id"]] = image
        if logged.has_stale:
            image[STALE] = False
            self._embed(logged, image, MODELS[0])
            if self.draw.random() < _SECOND_MODEL:
                self._embed(logged, image, MODELS[1])
        return image

    def _embed(self, logged: Logged, image: Image, model: str) -> None:
        self.embeddings.append(
            {
                "branch_id": self.branch_id,
                "id": self.clock.id("evec"),
                "target_kind": logged.target_kind,
                "target_id": image["id"],
                "field": "text",
                "model_id": model,
                "dim": int(model.rpartition("-")[2]),
                "source_hash": content_hash(logged.name, image),
                "updated_at": self.clock.tick(),
            }
        )

    def _embed_anew(self, logged: Logged, image: Image) -> None:
        for each in self.embeddings:
            if each["target_id"] == image["id"]:
                each["source_hash"] = content_hash(logged.name, image)
                each["updated_at"] = self.clock.tick()

    def _log(
        self,
        logged: Logged,
        row_id: str,
        op: DeltaOp,
        payload: dict[str, Any] | None,
        anchor: str | None,
        values: Mapping[str, Any],
    ) -> None:
        position = len(self.deltas) + 1
        self.changes.append(Change(position, anchor, logged.name, op, row_id, values))
        self.deltas.append(
            {
                "branch_id": self.branch_id,
                "id": self.clock.id("dlt"),
                "entry_id": anchor,
                "action_id": self._action_id,
                "log_position": position,
                "source": self._source,
                "target_table": logged.name,
                "target_id": row_id,
                "op": op,
                "undo_payload": payload,
                "encoding_version": ENCODING_VERSION,
                "created_at": self.clock.tick(),
            }
        )

    async def put(self, connection: Any) -> None:
        """Put everything into a database, in which the branch is."""
        for name, rows in self.rows.items():
            await _put(connection, name, list(rows.values()))
        await _put(connection, str(Delta.__tablename__), self.deltas)
        await _put(connection, str(Embedding.__tablename__), self.embeddings)
        await connection.execute(
            "UPDATE branches SET head = $2, last_position = $2 WHERE id = $1",
            self.branch_id,
            len(self.deltas),
        )


def take(rows: Rows, table: LoggedTable, row_id: str) -> Rows:
    """Take a row out, with those that name it, and those that name these; all but itself."""
    del rows[table][row_id]
    gone: Rows = {}
    wanted = {row_id}
    while wanted:
        named: set[str] = set()
        for logged in DEPENDENT:
            found = {
                each: image
                for each, image in rows[logged.name].items()
                if any(image[column] in wanted for column in logged.names)
            }
            for each in found:
                del rows[logged.name][each]
            if found:
                gone.setdefault(logged.name, {}).update(found)
                if logged.target_kind is not None:
                    named |= found.keys()
        wanted = named
    return gone


def _beginning(column: Any, at: str) -> Any:
    """What a column holds where nothing is given, read off the table's own defaults."""
    if column.server_default is None:
        return None
    default = str(column.server_default.arg)
    if default == "clock_timestamp()":
        return at
    if default.startswith("'"):
        text = default[1:].rpartition("'")[0]
        return orjson.loads(text) if default.endswith("::jsonb") else text
    return orjson.loads(default)


_ROWS_PER_STATEMENT = 5_000


async def _put(connection: Any, table: str, images: list[Image]) -> None:
    for begin in range(0, len(images), _ROWS_PER_STATEMENT):
        chunk = images[begin : begin + _ROWS_PER_STATEMENT]
        columns = ", ".join(chunk[0])
        await connection.execute(
            f"INSERT INTO {table} ({columns}) SELECT {columns} "
            f"FROM jsonb_populate_recordset(NULL::{table}, $1)",
            chunk,
        )
