"""What happens in a run, as numbered events, and the log that a working process holds in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from db.enums import RunEventType, TextChannel, Visibility
from db.tables import RunError, RunEvent

# How many numbers a process may show before it has stored them. Reserved in the run's row ahead of
# use, so that after a crash no number is given out twice.
RESERVE = 256


def topic_of(run_id: str) -> str:
    """The hub's topic for everything that happens in a run."""
    return f"run {run_id}"


def cancel_topic_of(run_id: str) -> str:
    """The hub's topic for "stop this run", heard by the server that works on it."""
    return f"cancel {run_id}"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `seq` rises by one from 1 within a run, save after a crash."""

    run_id: str
    seq: int
    at: datetime
    type: RunEventType
    visibility: Visibility
    payload: dict[str, Any]

    @staticmethod
    def from_row(row: RunEvent) -> Event:
        """The event that a stored row holds."""
        return Event(
            row.run_id,
            row.seq,
            row.at,
            RunEventType(row.type),
            Visibility(row.visibility),
            row.payload,
        )

    def to_row(self) -> dict[str, Any]:
        """The values of the row that stores this event."""
        return {
            "run_id": self.run_id,
            "seq": self.seq,
            "at": self.at,
            "type": self.type,
            "visibility": self.visibility,
            "payload": self.payload,
        }

    # What the payloads hold, by name: one place knows their keys.

    @property
    def name(self) -> str:
        """The phase that started or finished."""
        return str(self.payload["name"])

    @property
    def channel(self) -> TextChannel:
        """Which stream a piece of text belongs to."""
        return TextChannel(self.payload["channel"])

    @property
    def text(self) -> str:
        """A piece of text."""
        return str(self.payload["text"])

    @property
    def target_id(self) -> str:
        """The node that the text is for."""
        return str(self.payload["target_id"])

    @property
    def code(self) -> str:
        """What a warning is about, for programs."""
        return str(self.payload["code"])

    @property
    def message(self) -> str:
        """What a warning says."""
        return str(self.payload["message"])

    @property
    def status(self) -> str:
        """How the run ended."""
        return str(self.payload["status"])

    @property
    def error(self) -> RunError | None:
        """Why the run failed, or None."""
        error = self.payload.get("error")
        return error and RunError(error["code"], error["message"])


class LiveLog:
    """The events of a run since this process took it up, some of them not stored yet."""

    def __init__(self, run_id: str, last_seq: int, reserved_seq: int) -> None:
        self.run_id = run_id
        self._start = last_seq
        self._events: list[Event] = []
        self._stored = 0
        self.reserved_seq = reserved_seq

    @property
    def last_seq(self) -> int:
        """The number of the newest event."""
        return self._start + len(self._events)

    @property
    def is_full(self) -> bool:
        """Whether the next event must wait until earlier ones are stored."""
        return self.last_seq >= self.reserved_seq

    def draft(
        self,
        type: RunEventType,
        payload: dict[str, Any],
        visibility: Visibility = Visibility.PUBLIC,
        ahead: int = 0,
    ) -> Event:
        """The next event (or the one `ahead` places behind it), numbered but not yet in the log."""
        seq = self.last_seq + 1 + ahead
        return Event(self.run_id, seq, datetime.now(UTC), type, visibility, payload)

    def add(self, *events: Event) -> None:
        """Show events to everybody who follows the run."""
        self._events.extend(events)

    def covers(self, seq: int) -> bool:
        """Whether everything behind `seq` is in this log."""
        return seq >= self._start

    def after(self, seq: int) -> Sequence[Event]:
        """The events behind `seq`."""
        return self._events[max(seq - self._start, 0) :]

    def unstored(self) -> Sequence[Event]:
        """The events that are not in the database yet."""
        return self._events[self._stored :]

    def mark_stored(self, count: int, reserved_seq: int) -> None:
        """Note that the next `count` events were stored and numbers reserved."""
        self._stored += count
        self.reserved_seq = reserved_seq
