"""Runs: one generation each, and the log of what happened in it.

Source: spec soul-mirror, section 6; glossary, sections 5, 7 and 12 (runs are one table for both
specifications).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    text,
)
from sqlmodel import Field

from db.columns import (
    Table,
    boolean_column,
    created_at_column,
    enum_column,
    id_column,
    integer_column,
    json_column,
    long_column,
    one_of,
    reference,
    text_column,
    time_column,
)
from db.enums import (
    ContextOmission,
    ContextPartKind,
    RunEventType,
    RunKind,
    RunStatus,
    TranslationTarget,
    Visibility,
)


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed: a code for programs, and what to do."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ContextPart:
    """Something that a model was given, or would have been."""

    kind: ContextPartKind
    # The id of the row it comes from; None where it is no row, or where several are summed up.
    ref: str | None
    tokens: int
    is_carried: bool
    # Why it was left out.
    reason: ContextOmission | None
    # How many things are summed up.
    count: int


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a model was given: numbers and references, none of the text. Tokens are estimates."""

    budget: int
    tokens: int
    parts: list[ContextPart]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a translation is: texts that are said by now, that there were when it began, and
    that it could not say.
    """

    done: int
    total: int
    missed: int


class Run(Table, table=True):
    """One generation: who asked, what it answers, which server works on it, how it ended. It is
    about a tree of a character; or, of kind translation, about a branch.
    """

    __tablename__ = "runs"
    __table_args__ = (
        one_of("kind", RunKind),
        one_of("status", RunStatus),
        CheckConstraint(
            "(status = 'running') = (lease_holder IS NOT NULL)", name="lease_while_running"
        ),
        CheckConstraint(
            "CASE WHEN kind = 'translation'"
            " THEN character_id IS NULL AND tree_id IS NULL AND language IS NOT NULL"
            " ELSE character_id IS NOT NULL AND tree_id IS NOT NULL AND branch_id IS NULL END",
            name="one_subject",
        ),
        Index(None, "character_id", "created_at", "id"),
        Index(None, "branch_id", "created_at", "id"),
        Index(None, "node_id"),
        Index(None, "question_node_id"),
        Index("ix_runs_open", "status", "created_at", postgresql_where=text("ended_at IS NULL")),
        Index(
            "ix_runs_with_texts",
            "ended_at",
            postgresql_where=text("ended_at IS NOT NULL AND texts_until_seq IS NULL"),
        ),
    )

    id: str = id_column()
    kind: RunKind = enum_column()
    status: RunStatus = enum_column()
    requested_by_user_id: str = reference("users.id")
    character_id: str | None = reference("characters.id", nullable=True)
    tree_id: str | None = reference("mirror_trees.id", nullable=True)
    # What is translated; null once it was deleted, and then nobody sees the run any more.
    branch_id: str | None = reference("branches.id", nullable=True, on_delete="SET NULL")
    # Into which language, and texts of which kinds of rows; null for all.
    language: str | None = text_column(nullable=True)
    kinds_record: list[str] | None = json_column("kinds_json", nullable=True)
    # How far it is, see RunProgress; read through `progress`.
    progress_record: dict[str, Any] | None = json_column("progress_json", nullable=True)
    # What is answered, or gone on from; null once it was pruned.
    question_node_id: str | None = reference("tree_nodes.id", nullable=True, on_delete="SET NULL")
    # The answer that grows in this run; null until the run starts, and once it was pruned.
    node_id: str | None = reference("tree_nodes.id", nullable=True, on_delete="SET NULL")
    provider: str = text_column()
    model: str | None = text_column(nullable=True)
    # Makes the built-in provider's prose repeatable.
    seed: int = long_column()
    # The seat's epoch when the run was taken up; an older one than the seat's can commit nothing.
    seat_epoch: int | None = integer_column(nullable=True)
    lease_holder: str | None = text_column(nullable=True)
    lease_expires_at: datetime | None = time_column()
    is_cancel_requested: bool = boolean_column(default=False)
    # The number of the last event.
    last_seq: int = integer_column(default=0)
    # Once the texts of the run's events are erased: the number of the last event that had one, 0
    # if none had. Null while all of them are kept.
    texts_until_seq: int | None = integer_column(nullable=True)
    # How often the provider was asked.
    attempts: int = integer_column(default=0)
    # What the model was given, see RunContext; read through `context`. Holds no private text.
    context_record: dict[str, Any] | None = json_column("context_json", nullable=True)
    usage: dict[str, Any] | None = json_column("usage_json", nullable=True)
    finish_reason: str | None = text_column(nullable=True)
    error_code: str | None = text_column(nullable=True)
    error_message: str | None = text_column(nullable=True)
    created_at: datetime = created_at_column()
    started_at: datetime | None = time_column()
    ended_at: datetime | None = time_column()

    @property
    def error(self) -> RunError | None:
        """Why the run failed, or None."""
        if self.error_code is None:
            return None
        return RunError(self.error_code, self.error_message or "")

    @property
    def target_kinds(self) -> list[TranslationTarget] | None:
        """Of which kinds of rows texts are translated; None for all, and for other runs."""
        kinds = self.kinds_record
        return None if kinds is None else [TranslationTarget(each) for each in kinds]

    @property
    def progress(self) -> RunProgress | None:
        """How far a translation is; None until it has begun, and for other runs."""
        record = self.progress_record
        return None if record is None else RunProgress(**record)

    @property
    def context(self) -> RunContext | None:
        """What the model was given; None until that was put together."""
        record = self.context_record
        if record is None:
            return None
        parts = [
            ContextPart(
                ContextPartKind(part["kind"]),
                part["ref"],
                part["tokens"],
                part["is_carried"],
                part["reason"] and ContextOmission(part["reason"]),
                part["count"],
            )
            for part in record["parts"]
        ]
        return RunContext(record["budget"], record["tokens"], parts)


class RunEvent(Table, table=True):
    """One thing that happened in a run. Append-only, and so without any private text; `seq` counts
    from 1 within the run.
    """

    __tablename__ = "run_events"
    __table_args__ = (one_of("type", RunEventType), one_of("visibility", Visibility))

    run_id: str = Field(sa_column=Column(String, ForeignKey("runs.id"), primary_key=True))
    seq: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    type: RunEventType = enum_column()
    visibility: Visibility = enum_column()
    payload: dict[str, Any] = json_column("payload_json")
    at: datetime = time_column(nullable=False)


class RunEventText(Table, table=True):
    """The piece of text of a text_delta, beside its event: what can be erased, unlike the event."""

    __tablename__ = "run_event_texts"
    __table_args__ = (
        ForeignKeyConstraint(["run_id", "seq"], ["run_events.run_id", "run_events.seq"]),
    )

    run_id: str = Field(sa_column=Column(String, primary_key=True))
    seq: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    text: str = text_column()
