"""What an operation carries along: who asks, the database, the loaders."""

from __future__ import annotations

import copy
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, TypeVar

from db.engine import Database
from db.reading import Reading, Writing
from db.settings import Settings
from db.tables import AppSettings, Table
from resolvers.batching import Batcher
from services import accounts
from services.access import Viewer, rows_by_ids
from services.assets import FileStore
from services.embedding import Embedders
from services.graphs import Analyst
from services.hub import Hub
from services.rehearsing import Rehearsals
from services.runs import RunWorker
from services.searching import BranchTexts

TableRow = TypeVar("TableRow", bound=Table)

# Marks what a user has set up, which has the user's id and is no user.
SETTINGS = "app_settings"
# Marks a text or number in a stored payload, which a bare text is not: that is a row's id.
PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Engine:
    """What all operations of a process share."""

    settings: Settings
    database: Database
    hub: Hub
    worker: RunWorker
    rehearsals: Rehearsals
    files: FileStore
    embedders: Embedders = field(default_factory=Embedders)
    analyst: Analyst = field(default_factory=Analyst)
    branch_texts: BranchTexts = field(default_factory=BranchTexts)


class AlreadyDone(Exception):
    """The mutation was carried out before under the same key; `answer` names the rows."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__("carried out before")
        self.answer = answer


@dataclass(slots=True)
class Context:
    """One operation, or one event of a subscription."""

    engine: Engine
    viewer: Viewer
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    idempotency_key: str | None = None
    # SHA-256 of the whole request, files included; only made where there is a key.
    request_hash: str = ""
    # The mutation being carried out, by its name in the response.
    root_field: str = ""
    batcher: Batcher = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = Batcher(self)

    @property
    def audience(self) -> Viewer:
        """Who may see the same: what an event shows depends on the viewer alone."""
        return self.viewer

    def renewed(self) -> Context:
        """The same caller with fresh loaders: for each operation and each event."""
        renewed = copy.copy(self)
        renewed.batcher = Batcher(renewed)
        return renewed

    def reading(self) -> AbstractAsyncContextManager[Reading]:
        """A handle that can only read."""
        return self.engine.database.reading()

    @asynccontextmanager
    async def writing(self, *, sees_one_state: bool = False) -> AsyncIterator[Change]:
        """One transaction for one mutation, committed when the block ends; loaders are renewed.

        With an Idempotency-Key, raises AlreadyDone when this was carried out before.
        `sees_one_state` is for what reads very much and writes only what is new; see `Database`.
        """
        async with self.engine.database.writing(sees_one_state=sees_one_state) as writing:
            claim = None
            if self.idempotency_key is not None:
                claim = accounts.IdempotencyClaim(
                    self.idempotency_key, self.request_hash, self.root_field
                )
                earlier = await accounts.claim_key(writing, self.viewer, claim)
                if earlier is not None:
                    raise AlreadyDone(earlier)
            change = Change(writing)
            yield change
            if claim is not None:
                await accounts.keep_answer(
                    writing, self.viewer, claim, {k: _kept(v) for k, v in change.payload.items()}
                )
        self.batcher = Batcher(self)

    async def many(self, table: type[TableRow], ids: Sequence[str | None]) -> list[TableRow | None]:
        """Visible rows by id, through the operation's one loader for that table."""
        wanted = [each for each in ids if each is not None]
        rows = await self.batcher.load_many(_rows_of_ids, wanted, {"table": table})
        found = dict(zip(wanted, rows, strict=True))
        return [found.get(each) if each is not None else None for each in ids]


@dataclass(slots=True)
class Change:
    """A mutation's open transaction and the payload it will answer with."""

    writing: Writing
    payload: dict[str, Any] = field(default_factory=dict)

    def answer(self, **payload: Any) -> dict[str, Any]:
        """Set the payload by its field names: rows, small dataclasses, texts and numbers, or
        lists of these.
        """
        self.payload = payload
        return payload


def _kept(value: Any) -> Any:
    """A payload's value as it is stored for a repeat; rows by their ids, as they are read anew."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_kept(each) for each in value]
    if isinstance(value, (str, int)):
        return {PLAIN: value}
    if type(value).__name__ == AppSettings.__name__:
        return {SETTINGS: value.id}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value.id


async def _rows_of_ids(
    context: Context, ids: Sequence[str], *, table: type[Table]
) -> list[Table | None]:
    async with context.reading() as reading:
        return await rows_by_ids(reading, context.viewer, table, ids)
