"""Rehearsal: trial talk with a draft, which leaves no trace but in the draft itself.

No run, no events, no tree, no memory and no audit record come of it. What one process has open is
in `Rehearsals`; the turns that are kept belong to the draft. Spec soul-mirror, section 1.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from db.engine import Database
from db.enums import NodeType, TextChannel
from db.tables import EmbryoDraft, RehearsalTurn, User
from services import characters
from services.access import Viewer, require_row
from services.errors import Conflict, DomainError, Invalid, Unavailable
from services.providers import Finished, Part, Provider, ProviderError, Request
from services.runs.prompting import assemble, character_sheet
from services.text import checked_text, storable

# Tells that the provider has said everything.
_END = None
_Said: TypeAlias = "asyncio.Queue[Part | Exception | None]"


@dataclass(frozen=True, slots=True)
class RehearsalDelta:
    """A piece of the answer as the provider gave it."""

    channel: TextChannel
    text: str


@dataclass(frozen=True, slots=True)
class RehearsalFinished:
    """The turn that is now kept, and the draft that keeps it."""

    turn: RehearsalTurn
    embryo: EmbryoDraft


@dataclass(frozen=True, slots=True)
class _Speaker:
    """A draft, as it would be as a character."""

    name: str
    identity_baseline: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A piece of a rehearsal, as it would be as a node."""

    node_type: NodeType
    content: str
    id: str = ""
    erased_at: datetime | None = None


class Rehearsals:
    """The trial talks that are open in this process: one for each draft, `most` in all.

    `budget` is how many tokens a request may have.
    """

    def __init__(self, database: Database, provider: Provider, *, most: int, budget: int) -> None:
        self._database = database
        self._provider = provider
        self._most = most
        self._budget = budget
        self._places: set[tuple[str | None, str]] = set()
        self._speaking: set[asyncio.Task[None]] = set()
        self._is_draining = False

    @property
    def running_count(self) -> int:
        """How many are open."""
        return len(self._places)

    async def drain(self) -> None:
        """Begin no more, and end those that are open: who listens is told to come again."""
        self._is_draining = True
        for task in self._speaking:
            task.cancel()
        await asyncio.gather(*self._speaking, return_exceptions=True)

    async def rehearse(
        self, viewer: Viewer, embryo_id: str, text: str
    ) -> AsyncGenerator[RehearsalDelta | RehearsalFinished, None]:
        """One turn of trial talk: the pieces of the answer, then the turn as it is kept.

        Earlier turns are its context. To hang up ends it and keeps nothing. Raises NotFound,
        Invalid (TEXT_…), Conflict (ALREADY_ACTIVATED, REHEARSAL_RUNNING), LimitReached
        (REHEARSAL_FULL), Unavailable (TOO_MANY_REHEARSALS, SERVER_STOPPING), and what the provider
        raises under its own code. NotFound and Conflict also come instead of the end, when the
        draft is deleted or issued meanwhile.
        """
        checked_text(text, "text")
        with self._place(viewer, embryo_id):
            request = await self._request(viewer, embryo_id, text)
            answer: list[str] = []
            model = self._provider.default_model
            with self._asked(request) as said:
                while (part := await said.get()) is not _END:
                    if isinstance(part, Exception):
                        raise part
                    if isinstance(part, Finished):
                        _refuse_refusal(part)
                        model = storable(part.model or model)
                    elif piece := storable(part.text):
                        if part.channel == "text":
                            answer.append(piece)
                        yield RehearsalDelta(TextChannel(part.channel), piece)
            turn = RehearsalTurn(text, "".join(answer), model, datetime.now(UTC))
            async with self._database.writing() as writing:
                embryo = await characters.add_rehearsal_turn(writing, viewer, embryo_id, turn)
        # The place is given up by now: who hears of the end may go on at once.
        yield RehearsalFinished(turn, embryo)

    @contextlib.contextmanager
    def _place(self, viewer: Viewer, embryo_id: str) -> Iterator[None]:
        # By viewer and draft: whoever may not see a draft learns nothing and holds nobody up.
        place = (viewer.user_id, embryo_id)
        if self._is_draining:
            raise _stopping()
        if place in self._places:
            raise Conflict(
                "This draft is being talked with already: wait for the end, or hang up there.",
                "REHEARSAL_RUNNING",
                ("embryoId",),
            )
        if len(self._places) >= self._most:
            raise Unavailable(
                "Too many rehearsals are open on this server: try again soon.",
                "TOO_MANY_REHEARSALS",
            )
        self._places.add(place)
        try:
            yield
        finally:
            self._places.discard(place)

    async def _request(self, viewer: Viewer, embryo_id: str, text: str) -> Request:
        async with self._database.reading() as reading:
            embryo = await require_row(reading, viewer, EmbryoDraft, embryo_id, "embryoId")
            user = await require_row(reading, viewer, User, viewer.signed_in_id)
        characters.require_draft(embryo, "embryoId")
        characters.check_rehearsal_room(embryo, "embryoId")
        identity = embryo.provisional_identity
        speaker = _Speaker(identity["name"], characters.baseline_of(identity))
        talk = [
            said
            for turn in embryo.rehearsal
            for said in (
                _Spoken(NodeType.QUESTION, turn.question),
                _Spoken(NodeType.CANDIDATE_ANSWER, turn.answer),
            )
        ]
        asked = [*talk, _Spoken(NodeType.QUESTION, text)]
        messages = assemble(speaker, asked, user.name, budget=self._budget).messages
        if messages is None:
            raise Invalid(
                "Who this is to be and the question do not fit into what a model is told: "
                "shorten them.",
                "CONTEXT_TOO_LONG",
                ("text",),
            )
        return Request(
            model=None,
            messages=messages,
            character=character_sheet(speaker, user.name),
            seed=len(talk),
            max_tokens=None,
        )

    @contextlib.contextmanager
    def _asked(self, request: Request) -> Iterator[_Said]:
        """Let the provider speak. In a task of its own, as its ending waits for the connection to
        close: when a client vanishes, nothing that is awaited here would come to its end.
        """
        said: _Said = asyncio.Queue()
        task = asyncio.create_task(self._speak(request, said), name="rehearsal")
        self._speaking.add(task)
        task.add_done_callback(self._speaking.discard)
        try:
            yield said
        finally:
            task.cancel()

    async def _speak(self, request: Request, said: _Said) -> None:
        try:
            async with contextlib.aclosing(self._provider.stream(request)) as parts:
                async for part in parts:
                    said.put_nowait(part)
            said.put_nowait(_END)
        except ProviderError as error:
            said.put_nowait(_as_domain_error(error))
        except asyncio.CancelledError:
            # Heard where somebody still listens: the server is stopping.
            said.put_nowait(_stopping())
            raise
        except Exception as error:
            said.put_nowait(error)


def _as_domain_error(error: ProviderError) -> DomainError:
    trouble = Unavailable(storable(error.message), error.code)
    trouble.is_retryable = error.retryable
    return trouble


def _refuse_refusal(finished: Finished) -> None:
    if finished.reason == "refused":
        error = ProviderError(
            "REFUSED", "The provider declined to go on with this answer.", retryable=False
        )
        raise _as_domain_error(error)


def _stopping() -> Unavailable:
    return Unavailable("The server is stopping: ask again soon.", "SERVER_STOPPING")
