"""What happens in a run, as numbered events, and the log that a working process holds in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from db.enums import RunEventType, TextChannel, Visibility
from db.tables import RunEvent


def topic_of(run_id: str) -> str:
    """The hub's topic for everything that happens in a run."""
    return f"run {run_id}"


def cancel_topic_of(run_id: str) -> str:
    """The hub's topic for "stop this run", heard by the server that works on it."""
    return f"cancel {run_id}"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened; `seq` rises by one from 1 within a run, without gaps."""

    run_id: str
    seq: int
    at: datetime
    type: RunEventType
    visibility: Visibility
    payload: dict[str, Any]
    # A piece of text, of a text_delta alone: not in the payload, as it can be erased.
    text: str | None = None

    @staticmethod
    def from_row(row: RunEvent, text: str | None) -> Event:
        """The event that a stored row holds, with its text if it has one that is not erased."""
        return Event(
            row.run_id,
            row.seq,
            row.at,
            RunEventType(row.type),
            Visibility(row.visibility),
            row.payload,
            text,
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

    def to_text_row(self) -> dict[str, Any]:
        """The values of the row that stores this event's text."""
        return {"run_id": self.run_id, "seq": self.seq, "text": self.text}

    @property
    def is_erased(self) -> bool:
        """Whether this event had a text that is gone."""
        return self.type is RunEventType.TEXT_DELTA and self.text is None

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
    def target_id(self) -> str:
        """The node that the text is for."""
        return str(self.payload["target_id"])

    @property
    def subject_id(self) -> str | None:
        """The row that a warning is about, if any."""
        return self.payload.get("subject_id")

    @property
    def field(self) -> str | None:
        """Which text of that row a warning is about."""
        return self.payload.get("field")

    @property
    def code(self) -> str:
        """What a warning is about, for programs."""
        return str(self.payload["code"])

    @property
    def message(self) -> str:
        """What a warning says."""
        return str(self.payload["message"])

    @property
    def done(self) -> int:
        """How many texts are said by now."""
        return int(self.payload["done"])

    @property
    def total(self) -> int:
        """How many there were to be said when the run began."""
        return int(self.payload["total"])

    @property
    def missed(self) -> int:
        """How many could not be said."""
        return int(self.payload["missed"])

    @property
    def status(self) -> str:
        """How the run ended."""
        return str(self.payload["status"])

    @property
    def error_code(self) -> str | None:
        """Why the run failed, for programs, or None."""
        error = self.payload.get("error")
        return error and str(error["code"])


@dataclass(frozen=True, slots=True)
class StreamOpening:
    """What a stream of a run's events begins with; no event of the run, and not numbered as one."""

    run_id: str
    # The number behind which events follow.
    seq: int
    at: datetime
    type: str = "stream_opened"


class LiveLog:
    """The events of a run since this process took it up. Those that are not stored yet are not
    shown: after a crash nobody has seen what is not in the database.
    """

    def __init__(self, run_id: str, last_seq: int) -> None:
        self.run_id = run_id
        self._start = last_seq
        self._events: list[Event] = []
        self._stored = 0

    @property
    def last_seq(self) -> int:
        """The number of the newest event, stored or not."""
        return self._start + len(self._events)

    def add(self, type: RunEventType, payload: dict[str, Any], text: str | None = None) -> None:
        """Put an event, with the next number, where the next batch to be stored is taken from."""
        now = datetime.now(UTC)
        self._events.append(
            Event(self.run_id, self.last_seq + 1, now, type, Visibility.PUBLIC, payload, text)
        )

    @property
    def is_whole(self) -> bool:
        """Whether the end of the run is stored."""
        return self._stored > 0 and (
            self._events[self._stored - 1].type is RunEventType.RUN_FINISHED
        )

    def covers(self, seq: int) -> bool:
        """Whether everything stored behind `seq` is in this log."""
        return seq >= self._start

    def after(self, seq: int) -> Sequence[Event]:
        """The stored events behind `seq`."""
        return self._events[max(seq - self._start, 0) : self._stored]

    def unstored(self) -> Sequence[Event]:
        """The events that are not in the database yet."""
        return self._events[self._stored :]

    def take_back(self, count: int) -> None:
        """Drop the newest `count` events, which are not stored, as what they tell is not either."""
        del self._events[len(self._events) - count :]

    def mark_stored(self, count: int) -> None:
        """Show the next `count` events to everybody who follows the run: they are stored."""
        self._stored += count
