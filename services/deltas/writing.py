"""Changing a branch: the only way to do it. An action holds the branch, changes rows, and logs for
each change what it takes to undo it.

Source: spec aventuras, entry mutability and rollback; log_position assignment; survival anchor.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, delete, func, select, update
from sqlalchemy.dialects.postgresql import distinct_on
from sqlmodel import col

from db.enums import BranchEventKind, DeltaOp, DeltaSource, LoggedTable
from db.ids import new_id
from db.reading import Writing, any_of, param, statement
from db.tables import Branch, BranchRow, Delta, RedoStep
from services.access import Viewer, checked_id, hold_row
from services.assets import settle_references
from services.deltas.embedding import content_hash, embedded_hashes, forget_embeddings
from services.deltas.events import note_event
from services.deltas.logged import DEPENDENT, LOGGED, STALE, Image, Logged, logged_of
from services.deltas.rows import (
    change_images,
    images_by_ids,
    images_naming,
    put_images,
    take_rows,
)
from services.errors import Conflict, NotFound
from services.shapes import same, undo_payload

# The key of a delete's payload under which the rows lie that went with it, by table. Keys that
# begin with $ are never columns.
CHILDREN = "$children"
ENCODING_VERSION = 1


def new_action_id() -> str:
    """An id for things that are done, and undone, together."""
    return new_id("actions")


@dataclass(slots=True)
class Action:
    """One act on one branch, which is held until the transaction ends. Made by `acting`."""

    writing: Writing
    viewer: Viewer
    branch: Branch
    id: str
    source: DeltaSource
    deltas: list[dict[str, Any]] = field(default_factory=list)
    # How many of these are in the log already.
    stored: int = 0
    # What else the action has changed, for those who watch: table, op and id.
    taken_back: list[tuple[str, str, str]] = field(default_factory=list)
    # Files whose links came or went.
    assets: set[str] = field(default_factory=set)
    # Whether something below the action was taken back.
    has_reached_back: bool = False

    async def find(self, table: type[BranchRow], row_id: str) -> Image | None:
        """A row of this branch as an image, or None."""
        logged = logged_of(table)
        found = await images_by_ids(self.writing, self.branch.id, logged.name, [row_id])
        return found.get(row_id)

    async def require(self, table: type[BranchRow], row_id: str, *path: str | int) -> Image:
        """Like `find`, but raises NotFound with the path of the input field."""
        image = await self.find(table, row_id)
        if image is None:
            raise NotFound(f"There is no such {table.__name__} in this branch.", path=path)
        return image

    async def create(
        self,
        table: type[BranchRow],
        values: Mapping[str, Any],
        *,
        anchor: str | None = None,
        prefix: str | None = None,
    ) -> Image:
        """Put a row in; the whole of it. `values` are JSON by the names of columns; those left out
        get the defaults of the table, and a missing `id` is made (`prefix` chooses among several).

        `anchor` is the id of the entry that the row is about: it is reversed with that entry.
        """
        (row,) = await self.create_many(table, [(values, anchor)], prefix=prefix)
        return row

    async def create_many(
        self,
        table: type[BranchRow],
        rows: Sequence[tuple[Mapping[str, Any], str | None]],
        *,
        prefix: str | None = None,
    ) -> list[Image]:
        """Put several rows in with one statement: the values and the anchor of each, as `create`
        takes them. All have values for the same columns.
        """
        logged = logged_of(table)
        images = [
            {"id": new_id(logged.name, prefix), **values, "branch_id": self.branch.id}
            for values, _ in rows
        ]
        found = {row["id"]: row for row in await put_images(self.writing, logged.name, images)}
        made = [found[image["id"]] for image in images]
        for row, (_, anchor) in zip(made, rows, strict=True):
            self._log(logged, row["id"], DeltaOp.CREATE, None, anchor)
            self._note_assets(logged, row)
        return made

    async def update(
        self,
        table: type[BranchRow],
        before: Image,
        changes: Mapping[str, Any],
        *,
        anchor: str | None = None,
        notes: Mapping[str, Any] | None = None,
    ) -> Image:
        """Change a row from what it is now, `before`; the row as it then is.

        `changes` are whole values by the names of columns. Where nothing differs nothing is
        written and nothing logged. `notes` are kept in the payload under keys that begin with $.
        """
        (row,) = await self.update_many(table, [(before, changes, anchor)], notes=notes)
        return row

    async def update_many(
        self,
        table: type[BranchRow],
        rows: Sequence[tuple[Image, Mapping[str, Any], str | None]],
        *,
        notes: Mapping[str, Any] | None = None,
    ) -> list[Image]:
        """Change several rows as `update` changes one: what each is now, its changes, its anchor.
        One statement for all rows in which the same columns change.
        """
        logged = logged_of(table)
        embedded: dict[str, set[str]] | None = None
        found = {before["id"]: before for before, _, _ in rows}
        changed: dict[frozenset[str], list[Image]] = {}
        for before, changes, anchor in rows:
            after = {**before, **changes}
            payload = payload_between(logged, before, after)
            if not payload:
                continue
            columns = set(payload)
            if "updated_at" in logged.columns:
                payload["updated_at"] = before["updated_at"]
                after["updated_at"] = datetime.now(UTC).isoformat()
                columns.add("updated_at")
            if columns & set(logged.embedded):
                if embedded is None:
                    embedded = await embedded_hashes(self.writing, self.branch.id, list(found))
                after[STALE] = content_hash(logged.name, after) not in embedded.get(
                    before["id"], ()
                )
                columns.add(STALE)
            changed.setdefault(frozenset(columns), []).append(after)
            payload.update(notes or {})
            self._log(logged, before["id"], DeltaOp.UPDATE, payload, anchor)
        for each, images in changed.items():
            for row in await change_images(self.writing, logged.name, each, images):
                found[row["id"]] = row
        return [found[before["id"]] for before, _, _ in rows]

    async def delete(
        self, table: type[BranchRow], before: Image, *, anchor: str | None = None
    ) -> None:
        """Take a row out, with every row that names it; all of them lie in the one payload."""
        logged = logged_of(table)
        children = await self._dependents(before["id"])
        for name, rows in children.items():
            await take_rows(self.writing, self.branch.id, name, rows)
            for row in rows.values():
                self._note_assets(LOGGED[name], row)
        await take_rows(self.writing, self.branch.id, logged.name, [before["id"]])
        if logged.embedded:
            await forget_embeddings(self.writing, self.branch.id, [before["id"]])
        held = [(name, row) for name, rows in children.items() for row in rows.values()]
        self._log(logged, before["id"], DeltaOp.DELETE, holding(before, held), anchor)
        self._note_assets(logged, before)

    async def _dependents(self, row_id: str) -> dict[LoggedTable, dict[str, Image]]:
        """The rows that name a row, and those that name these."""
        found: dict[LoggedTable, dict[str, Image]] = {}
        wanted = [row_id]
        while wanted:
            named = []
            for logged in DEPENDENT:
                rows = await images_naming(self.writing, self.branch.id, logged.name, wanted)
                if rows:
                    found.setdefault(logged.name, {}).update(rows)
                if logged.target_kind is not None:
                    named += list(rows)
            wanted = named
        return found

    def _log(
        self,
        logged: Logged,
        row_id: str,
        op: DeltaOp,
        payload: dict[str, Any] | None,
        anchor: str | None,
    ) -> None:
        self.deltas.append(
            {
                "row_id": new_id("deltas"),
                "branch_id": self.branch.id,
                "entry_id": anchor,
                "action_id": self.id,
                "log_position": self.branch.last_position + len(self.deltas) + 1,
                "source": self.source,
                "target_table": logged.name,
                "target_id": row_id,
                "op": op,
                "undo_payload": payload,
                "encoding_version": ENCODING_VERSION,
            }
        )

    def _note_assets(self, logged: Logged, row: Image) -> None:
        if logged.name is LoggedTable.ENTRY_ASSETS:
            self.assets.add(row["asset_id"])

    async def store(self) -> None:
        """Put what has been done so far into the log."""
        await self.writing.insert_many(Delta, self.deltas[self.stored :])
        self.stored = len(self.deltas)

    @property
    def head(self) -> int:
        """The position of the newest delta, those of this action included."""
        return int(self.deltas[-1]["log_position"]) if self.deltas else self.branch.head


def holding(row: Image, children: Iterable[tuple[LoggedTable, Image]]) -> dict[str, Any]:
    """What an undo needs to put a deleted row back, with the rows that went with it."""
    by_table: dict[str, list[Image]] = {}
    for table, child in children:
        by_table.setdefault(str(table), []).append(child)
    return {**row, CHILDREN: by_table} if by_table else dict(row)


def payload_between(logged: Logged, before: Image, after: Image) -> dict[str, Any]:
    """What an undo needs to turn `after` into `before`: the changed columns, and of JSON with a
    shape the changed parts, as they were.
    """
    payload: dict[str, Any] = {}
    for column, value in before.items():
        if column == STALE or same(value, after.get(column)):
            continue
        shape = logged.shapes.get(column)
        if shape is None or not isinstance(value, dict) or not isinstance(after[column], dict):
            payload[column] = value
        else:
            payload[column] = undo_payload(value, after[column], shape(before))
    return payload


@asynccontextmanager
async def acting(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    *,
    expected_head: int | None = None,
    source: DeltaSource = DeltaSource.USER_EDIT,
    action_id: str | None = None,
    path: tuple[str | int, ...] = ("input", "branchId"),
) -> AsyncIterator[Action]:
    """One action on a branch: hold it, change it in the block, log it at the block's end.

    Raises NotFound with `path`, and Conflict with the head as it is where the caller has seen
    another one. What is done ends every possibility to redo.
    """
    branch = await hold_branch(writing, viewer, branch_id, *path, expected_head=expected_head)
    action = Action(writing, viewer, branch, action_id or new_action_id(), source)
    yield action
    if not action.deltas:
        return
    await action.store()
    await settle_references(writing, action.assets)
    await forget_redo(writing, branch.id)
    floor = action.head if action.has_reached_back else 0
    await writing.run(_move_head(), branch_id=branch.id, head=action.head, floor=floor)
    await note_event(
        writing,
        branch,
        BranchEventKind.ACTION,
        action_id=action.id,
        source=source,
        head=action.head,
        changes=[
            *((each["target_table"], each["op"], each["target_id"]) for each in action.deltas),
            *action.taken_back,
        ],
    )


@asynccontextmanager
async def acting_on(
    writing: Writing,
    viewer: Viewer,
    table: type[BranchRow],
    id: str,
    *path: str | int,
    expected_head: int | None = None,
) -> AsyncIterator[tuple[Action, Image]]:
    """One action that begins with a row, which is named as clients name it: the action, and the row
    as it is. Raises NotFound with `path`, and Conflict like `acting`.
    """
    named = checked_id(id, table)
    if named is None:
        raise NotFound(f"There is no such {table.__name__} for you.", path=path)
    branch_id, _, row_id = named.partition(":")
    async with acting(writing, viewer, branch_id, expected_head=expected_head, path=path) as action:
        yield action, await action.require(table, row_id, *path)


async def hold_branch(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    *path: str | int,
    expected_head: int | None = None,
) -> Branch:
    """Lock a branch: one writer at a time. Raises NotFound and Conflict like `acting`."""
    branch = await hold_row(writing, viewer, Branch, branch_id, *path)
    if expected_head is not None and branch.head != expected_head:
        raise Conflict(
            f"This branch was changed meanwhile: its head is {branch.head}, not {expected_head}. "
            "Read it again.",
            path=("input", "expectedHead"),
            details={"head": branch.head},
        )
    return branch


@statement(RedoStep)
def _forget_redo() -> Any:
    return delete(RedoStep).where(col(RedoStep.branch_id) == param("branch_id"))


async def forget_redo(writing: Writing, branch_id: str) -> None:
    """What was undone can no longer be done again."""
    await writing.run(_forget_redo(), branch_id=branch_id)


@statement(Branch)
def _move_head() -> Any:
    head = param("head", BigInteger())
    return (
        update(Branch)
        .where(col(Branch.id) == param("branch_id"))
        .values(
            head=head,
            last_position=func.greatest(col(Branch.last_position), head),
            head_floor=func.greatest(col(Branch.head_floor), param("floor", BigInteger())),
        )
    )


@statement(Delta)
def _newest_anchors() -> Any:
    return (
        select(col(Delta.target_id), col(Delta.entry_id))
        .ext(distinct_on(col(Delta.target_id)))
        .where(col(Delta.branch_id) == param("branch_id"), any_of(Delta.target_id, "target_ids"))
        .order_by(col(Delta.target_id), col(Delta.log_position).desc())
    )


async def newest_anchors(action: Action, row_ids: Sequence[str]) -> dict[str, str]:
    """The anchors of the newest changes of rows, by the rows' ids: what says the same in another
    language goes when that change goes. A row is not here whose newest change has no anchor, or
    that was never changed since its story was made.
    """
    stored = await action.writing.all(
        _newest_anchors(), branch_id=action.branch.id, target_ids=list(row_ids)
    )
    found = {each.target_id: each.entry_id for each in stored}
    found.update({each["target_id"]: each["entry_id"] for each in action.deltas})
    return {row_id: anchor for row_id in row_ids if (anchor := found.get(row_id)) is not None}


async def newest_anchor(action: Action, row_id: str) -> str | None:
    """The anchor of the newest change of one row, as `newest_anchors` has it."""
    return (await newest_anchors(action, [row_id])).get(row_id)
