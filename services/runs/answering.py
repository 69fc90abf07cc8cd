"""Answers what a character was asked: the text of one node, piece by piece as a model says it."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

from db.enums import NodeStatus, RunEventType, RunStatus, TextChannel
from db.reading import Writing
from db.tables import Run, RunError
from services.access import Viewer
from services.providers import Finished, TextPart
from services.runs import records
from services.runs.events import LiveLog
from services.runs.requesting import build_request
from services.runs.retrying import parts_of_answer
from services.runs.working import Means, Outcome, Said, Work
from services.text import storable

_TOO_LONG = RunError(
    "CONTEXT_TOO_LONG",
    "Who the character is and what is asked do not fit into MIRRORGRAPH_CONTEXT_TOKENS. Shorten "
    "them, or raise that setting if the model can read more.",
)


class Answering(Work):
    """A run whose answer grows in a node of a tree."""

    stopped_message = "The server was stopped. The text so far is in the answer; ask again."

    def __init__(self, means: Means, run: Run, log: LiveLog) -> None:
        super().__init__(means, run, log)
        self._texts: dict[TextChannel, list[str]] = {channel: [] for channel in TextChannel}

    async def perform(self) -> Outcome:
        """See Work."""
        await self._emit(RunEventType.RUN_STARTED, {})
        async with self._phase("context"):
            viewer, budget = Viewer(self._run.requested_by_user_id), self._asking.budget
            request, assembly = await self._read(
                lambda reading: build_request(reading, viewer, self._run, budget)
            )
            self._context = assembly.record()
        if request is None:
            return Outcome(RunStatus.FAILED, error=_TOO_LONG)
        finished: Finished | None = None
        parts = parts_of_answer(
            self._provider,
            request,
            self._asking.retries,
            begin=self._begin_attempt,
            warn=self._warn,
        )
        async with self._phase("answer"), contextlib.aclosing(parts):
            async for part in parts:
                if isinstance(part, TextPart):
                    await self._emit_text(part)
                else:
                    finished = part
        if finished is not None and finished.reason == "refused":
            error = RunError("REFUSED", "The provider declined to go on with this answer.")
            return Outcome(RunStatus.FAILED, finished, error)
        return Outcome(RunStatus.SUCCEEDED, finished)

    def last_words(self, outcome: Outcome) -> list[Said]:
        """See Work."""
        if outcome.status is not RunStatus.SUCCEEDED or outcome.is_whole:
            return []
        warning = {
            "code": "ANSWER_CUT",
            "message": "The model reached its length limit: the answer is kept as partial.",
        }
        return [(RunEventType.RUN_WARNING, warning)]

    async def settle(self, writing: Writing, outcome: Outcome) -> None:
        """See Work."""
        run, finished = self._run, outcome.finished
        is_solid = outcome.status is RunStatus.SUCCEEDED and outcome.is_whole
        await records.end_run(
            writing,
            run,
            self._holder,
            status=outcome.status,
            node_status=NodeStatus.SOLIDIFIED if is_solid else NodeStatus.PARTIAL,
            content="".join(self._texts[TextChannel.TEXT]),
            reasoning="".join(self._texts[TextChannel.REASONING]),
            model=(finished and finished.model and storable(finished.model))
            or run.model
            or self._provider.default_model,
            usage=asdict(finished.usage) if finished and finished.usage else None,
            finish_reason=finished.reason if finished else None,
            error=outcome.error,
        )

    async def _emit_text(self, part: TextPart) -> None:
        channel = TextChannel(part.channel)
        # What the database cannot hold is left out of events and answer alike.
        text = storable(part.text)
        if text:
            self._texts[channel].append(text)
            self._may_wait = True
            payload = {"channel": channel, "target_id": self._run.node_id}
            await self._emit(RunEventType.TEXT_DELTA, payload, text)
