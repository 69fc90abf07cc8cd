"""The work of a run that translates: what is missing, call by call, each kept as soon as it comes.

What a call brings is stored in one transaction with the event that tells of it, so that a run may
be cut, fail or be lost at any moment: what it has said stays, and the next run has the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import update
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import col

from db.enums import RunEventType, RunStatus
from db.paging import MAX_FIRST, Page, PageRequest
from db.reading import Reading, Writing, param, statement
from db.tables import Run, RunError, RunProgress
from services import runs, translations
from services.access import Viewer
from services.errors import NotFound
from services.providers import Finished, ProviderError, TextPart, Usage
from services.text import storable
from services.tokens import estimate_tokens
from services.translating.prompting import (
    batches,
    most_tokens,
    read_answer,
    request_to_translate,
)
from services.translations import Draft, UntranslatedText

# So many calls in a row that bring nothing end the run.
MAX_FAILED_CALLS = 3
# After these no call can succeed.
_HOPELESS = {"MISSING_KEY", "INVALID_KEY", "MODEL_NOT_FOUND"}

NOT_ANSWERED = RunError("NOT_ANSWERED", "The model left this text out, or said nothing of it.")
TEXT_CHANGED = RunError("TEXT_CHANGED", "This text was changed meanwhile, or is gone.")
TEXT_TOO_LONG = RunError(
    "TEXT_TOO_LONG",
    "This text does not fit into what a model may be given: raise MIRRORGRAPH_CONTEXT_TOKENS if "
    "the model can read more.",
)
_CUT = RunError("ANSWER_CUT", "The model reached its length limit.")
_UNREADABLE = RunError("UNREADABLE_ANSWER", "The model did not answer with the list it was asked.")
_GONE = RunError("NOT_FOUND", "What was to be translated is gone.")
# Misses of single texts; any other is a call that failed.
_OF_TEXTS = (NOT_ANSWERED, TEXT_TOO_LONG)


class Translating(runs.Work):
    """A run that says what is missing of a branch in a language."""

    stopped_message = (
        "The server was stopped. What was said so far is kept; translate again for the rest."
    )

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._viewer = Viewer(self._run.requested_by_user_id)
        self._progress = RunProgress(0, 0, 0)
        self._usage = Usage(None, None, None)
        self._model: str | None = None

    async def perform(self) -> runs.Outcome:
        """See Work."""
        await self._emit(RunEventType.RUN_STARTED, {})
        try:
            async with self._phase("translation"):
                error = await self._translate_all()
        except NotFound:
            error = _GONE
        return runs.Outcome(RunStatus.FAILED if error else RunStatus.SUCCEEDED, error=error)

    async def settle(self, writing: Writing, outcome: runs.Outcome) -> None:
        """See Work."""
        counted = asdict(self._usage)
        await runs.close_run(
            writing,
            self._run,
            status=outcome.status,
            model=self._model or self._run.model or self._provider.default_model,
            usage=counted if any(counted.values()) else None,
            error=outcome.error,
        )

    async def _translate_all(self) -> RunError | None:
        """Say everything that can be said; why the run has to be given up, or None."""
        run, branch_id = self._run, self._run.branch_id
        language = run.language
        if branch_id is None or language is None:
            return _GONE
        total = await self._read(
            lambda reading: translations.count_untranslated(
                reading, self._viewer, branch_id, language, run.target_kinds
            )
        )
        self._progress = RunProgress(0, total, 0)
        await self._change(self._note_progress)
        failed_calls = 0
        error: RunError | None = None
        async with contextlib.aclosing(self._missing(branch_id, language)) as missing:
            async for texts in missing:
                said = await self._say(language, texts)
                await self._keep(branch_id, language, list(zip(texts, said, strict=True)))
                failures = [
                    each for each in said if isinstance(each, RunError) and each not in _OF_TEXTS
                ]
                error = failures[0] if len(failures) == len(said) else None
                failed_calls = failed_calls + 1 if error else 0
                if error and (error.code in _HOPELESS or failed_calls == MAX_FAILED_CALLS):
                    return error
        return None if self._progress.done else error

    async def _missing(
        self, branch_id: str, language: str
    ) -> AsyncGenerator[list[UntranslatedText], None]:
        """What is missing, as much at a time as goes into one call. What could not be said is
        passed, and is not asked for again.
        """
        request = PageRequest(first=MAX_FIRST)

        async def read(reading: Reading) -> list[Page[Any]]:
            return await translations.untranslated_of_branches(
                reading, self._viewer, [branch_id], request, language, self._run.target_kinds
            )

        while True:
            (page,) = await self._read(read)
            for batch in batches(page.nodes, self._asking.budget):
                yield batch
            if not page.has_next_page:
                return
            request = PageRequest(first=MAX_FIRST, after=page.page_info.end_cursor)

    async def _say(self, language: str, texts: Sequence[UntranslatedText]) -> list[str | RunError]:
        """What a model makes of each text, or why it made nothing of it."""
        if len(texts) == 1 and estimate_tokens(texts[0].text) > most_tokens(self._asking.budget):
            return [TEXT_TOO_LONG]
        said = await self._ask(language, texts)
        if said is _CUT and len(texts) > 1:
            middle = len(texts) // 2
            return [
                *await self._say(language, texts[:middle]),
                *await self._say(language, texts[middle:]),
            ]
        if isinstance(said, RunError):
            return [said] * len(texts)
        return [NOT_ANSWERED if each is None else each for each in said]

    async def _ask(
        self, language: str, texts: Sequence[UntranslatedText]
    ) -> list[str | None] | RunError:
        """Ask for some texts in one call, and again where the answer cannot be read."""
        request = request_to_translate(language, texts, self._run.model, self._run.seed)
        for attempt in range(1 + self._asking.retries.count):
            if attempt:
                await self._warn(f"{_UNREADABLE.message} It is asked again.")
            pieces: list[str] = []
            finished: Finished | None = None
            parts = runs.parts_of_answer(
                self._provider,
                request,
                self._asking.retries,
                begin=self._begin_attempt,
                warn=self._tell_of_retry,
            )
            try:
                async with contextlib.aclosing(parts):
                    async for part in parts:
                        if isinstance(part, Finished):
                            finished = part
                        elif isinstance(part, TextPart) and part.channel == "text":
                            pieces.append(part.text)
            except ProviderError as error:
                return RunError(error.code, storable(error.message))
            self._note_finish(finished)
            if finished is not None and finished.reason == "refused":
                return RunError("REFUSED", "The provider declined to translate this.")
            said = read_answer("".join(pieces), len(texts))
            if said is not None:
                return said
            if finished is not None and finished.reason == "length":
                return _CUT
        return _UNREADABLE

    async def _tell_of_retry(self, _message: str) -> None:
        # Without the provider's words, which may quote a text: the log outlives the story.
        await self._warn("A call failed, and is made again.")

    def _note_finish(self, finished: Finished | None) -> None:
        if finished is None:
            return
        if finished.model:
            self._model = storable(finished.model)
        if finished.usage is not None:
            self._usage = _sum(self._usage, finished.usage)

    async def _keep(
        self,
        branch_id: str,
        language: str,
        said: Sequence[tuple[UntranslatedText, str | RunError]],
    ) -> None:
        """Store what a call brought, and tell of it."""
        before = self._progress
        drafts = [Draft(text, each) for text, each in said if isinstance(each, str)]
        missed = [(text, each) for text, each in said if isinstance(each, RunError)]

        async def keep(writing: Writing) -> list[runs.Said]:
            stands = await translations.say_drafts(
                writing, self._viewer, branch_id, language, drafts
            )
            changed = [
                (draft.source, TEXT_CHANGED)
                for draft, is_said in zip(drafts, stands, strict=True)
                if not is_said
            ]
            misses = [*missed, *changed]
            self._progress = RunProgress(
                before.done + len(said) - len(misses), before.total, before.missed + len(misses)
            )
            return [
                *(_warning(text, error) for text, error in misses),
                *await self._note_progress(writing),
            ]

        await self._change(keep)

    async def _note_progress(self, writing: Writing) -> list[runs.Said]:
        progress = asdict(self._progress)
        await writing.run(_set_progress(), of_id=self._run.id, progress=progress)
        return [(RunEventType.RUN_PROGRESSED, progress)]


def _warning(text: UntranslatedText, error: RunError) -> runs.Said:
    """That a text was missed. What a provider says of its trouble is left out: the log only grows,
    and that may quote a text.
    """
    is_ours = error in (NOT_ANSWERED, TEXT_CHANGED, TEXT_TOO_LONG, _CUT, _UNREADABLE)
    payload = {
        "code": error.code,
        "message": error.message if is_ours else "The provider failed at this text.",
        "subject_id": f"{text.branch_id}:{text.target_id}",
        "field": text.field,
    }
    return RunEventType.RUN_WARNING, payload


def _sum(one: Usage, other: Usage) -> Usage:
    def add(a: int | None, b: int | None) -> int | None:
        return b if a is None else a + (b or 0)

    return Usage(
        add(one.input_tokens, other.input_tokens),
        add(one.output_tokens, other.output_tokens),
        add(one.reasoning_tokens, other.reasoning_tokens),
    )


@statement(Run)
def _set_progress() -> Any:
    return (
        update(Run)
        .where(col(Run.id) == param("of_id"))
        .values(progress_json=param("progress", JSONB()))
    )
