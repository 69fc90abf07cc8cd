"""Queuing a run that translates what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlmodel import col

from db.enums import RunKind, TranslationTarget
from db.reading import Writing, param, statement
from db.tables import Run
from services import deltas, runs, translations
from services.access import Viewer, visible
from services.errors import Conflict, Invalid
from services.text import MAX_LINE, checked_language, checked_text

_PATH = ("input", "branchId")


async def start_translation(
    writing: Writing,
    viewer: Viewer,
    branch_id: str,
    language: str,
    kinds: Sequence[TranslationTarget] | None = None,
    *,
    provider: str,
    model: str | None,
    limits: runs.OpenRuns = runs.STANDARD,
) -> Run:
    """Queue a run that says in a language what is not said in it yet: texts of rows of some kinds,
    or all of a branch. What is missing is looked up when the run is taken up.

    Raises NotFound, Invalid (LANGUAGE_INVALID, TEXT_…, NOTHING_TO_TRANSLATE), Conflict
    (TRANSLATION_RUNNING), and what `runs.queue_run` raises.
    """
    checked_language(language, "input", "language")
    if model is not None:
        checked_text(model, "input", "model", max_length=MAX_LINE)
    branch = await deltas.hold_branch(writing, viewer, branch_id, *_PATH)
    open_run = await writing.first(
        _open_run(), branch_id=branch.id, language=language, **viewer.parameters
    )
    if open_run is not None:
        raise Conflict(
            "This is being translated already: wait for the end, or cancel that run.",
            "TRANSLATION_RUNNING",
            ("input", "language"),
            details={"runId": open_run.id},
        )
    if not await translations.count_untranslated(writing, viewer, branch.id, language, kinds):
        raise Invalid(
            "Everything that was asked for is said in this language.", "NOTHING_TO_TRANSLATE", _PATH
        )
    return await runs.queue_run(
        writing,
        viewer,
        RunKind.TRANSLATION,
        ("branch_id", branch.id),
        _PATH,
        limits,
        noted={"branch_id": branch.id, "language": language},
        language=language,
        kinds_record=None if kinds is None else [str(each) for each in dict.fromkeys(kinds)],
        provider=provider,
        model=model,
    )


@statement(Run)
def _open_run() -> Any:
    return (
        select(col(Run.id))
        .where(
            col(Run.branch_id) == param("branch_id"),
            col(Run.language) == param("language"),
            col(Run.ended_at).is_(None),
            visible(Run),
        )
        .limit(1)
    )
