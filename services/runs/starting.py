"""Asking: a question is put into a tree and a run that will answer it is queued; and queuing runs
of any kind, within the limits.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlmodel import col

from db.enums import NodeType, RunKind, RunStatus
from db.reading import Writing, param, statement
from db.tables import MirrorTree, Run, TreeNode
from services import mirrors
from services.access import Viewer, require_row
from services.accounts import record_act
from services.errors import Invalid, LimitReached, Unavailable
from services.hub import announce

# The hub's topic for "a run was queued, or a seat became free".
QUEUE_TOPIC = "runs"


@dataclass(frozen=True, slots=True)
class OpenRuns:
    """How many runs may be open, which is queued or being worked on; `queued` counts everybody's
    that wait. A branch may have as many as a character.
    """

    per_user: int = 8
    per_character: int = 4
    queued: int = 1_000


STANDARD = OpenRuns()


async def ask_tree(
    writing: Writing,
    viewer: Viewer,
    tree_id: str,
    parent_id: str | None,
    text: str,
    *,
    provider: str,
    model: str | None,
    limits: OpenRuns = STANDARD,
) -> tuple[TreeNode, Run]:
    """Add a question and queue its answer. Raises what mirrors.add_question raises, and what
    `_check_limits` does.
    """
    question = await mirrors.add_question(writing, viewer, tree_id, parent_id, text)
    path = ("input", "treeId")
    run = await _queue_answer(writing, viewer, question, path, limits, provider, model)
    return question, run


async def regenerate_answer(
    writing: Writing,
    viewer: Viewer,
    question_id: str,
    *,
    provider: str,
    model: str | None,
    limits: OpenRuns = STANDARD,
) -> Run:
    """Queue one more answer to a question; the earlier ones stay (section 2, invariant 1).

    Raises NotFound, Invalid (NOT_A_QUESTION), Conflict, and what `_check_limits` raises.
    """
    path = ("input", "questionId")
    _, question = await mirrors.hold_node(writing, viewer, question_id, *path)
    if question.node_type != NodeType.QUESTION:
        raise Invalid("Name a question: this is an answer.", "NOT_A_QUESTION", path)
    return await _queue_answer(writing, viewer, question, path, limits, provider, model)


async def continue_node(
    writing: Writing,
    viewer: Viewer,
    node_id: str,
    *,
    provider: str,
    model: str | None,
    limits: OpenRuns = STANDARD,
) -> Run:
    """Let the character go on from an adopted answer by itself.

    Raises what mirrors.require_continuable raises, and what `_check_limits` does.
    """
    path = ("input", "nodeId")
    node = await mirrors.require_continuable(writing, viewer, node_id, path)
    return await _queue_answer(writing, viewer, node, path, limits, provider, model)


@statement(Run)
def _lock() -> Any:
    return select(func.pg_advisory_xact_lock(func.hashtextextended(param("lock"), 0)))


@statement(Run)
def _counts_of_open_runs(subject: str) -> Any:
    counted = func.count()
    return select(
        counted.filter(col(Run.requested_by_user_id) == param("user_id")).label("of_user"),
        counted.filter(getattr(Run, subject) == param("subject_id")).label("of_subject"),
        counted.filter(col(Run.status) == RunStatus.QUEUED.value).label("queued"),
    ).where(col(Run.ended_at).is_(None))


async def _check_limits(
    writing: Writing,
    viewer: Viewer,
    subject: str,
    subject_id: str,
    path: tuple[str, ...],
    limits: OpenRuns,
) -> None:
    """Raises LimitReached (RUNS_OF_USER_LIMIT, RUNS_OF_CHARACTER_LIMIT, RUNS_OF_BRANCH_LIMIT) and
    Unavailable (QUEUE_FULL).
    """
    # Taken last, behind the locks on what the run is about, and held until the commit: two asks of
    # a user cannot both be the last one that is allowed. A character has one user, and so has a
    # branch, so their limits hold too. The queue's may be passed by as many users as ask in one
    # moment.
    user_id = viewer.signed_in_id
    await writing.run(_lock(), lock=f"open runs of {user_id}")
    found: Any = await writing.first(
        _counts_of_open_runs(subject), user_id=user_id, subject_id=subject_id
    )
    if found.of_user >= limits.per_user:
        raise LimitReached(
            f"{limits.per_user} answers of yours are being written or wait: let one of them end, "
            "or cancel one.",
            "RUNS_OF_USER_LIMIT",
            path,
        )
    if found.of_subject >= limits.per_character:
        name, _, _ = subject.partition("_")
        raise LimitReached(
            f"This {name} has {limits.per_character} answers to write: let one of them end, or "
            "cancel one.",
            f"RUNS_OF_{name.upper()}_LIMIT",
            path,
        )
    if found.queued >= limits.queued:
        raise Unavailable("Too many answers wait for their turn. Try again later.", "QUEUE_FULL")


async def _queue_answer(
    writing: Writing,
    viewer: Viewer,
    question: TreeNode,
    path: tuple[str, ...],
    limits: OpenRuns,
    provider: str,
    model: str | None,
) -> Run:
    # The caller holds the tree, and so has seen that it may grow.
    tree = await require_row(writing, viewer, MirrorTree, question.tree_id)
    return await queue_run(
        writing,
        viewer,
        RunKind.FOREGROUND,
        ("character_id", tree.character_id),
        path,
        limits,
        noted={"question_id": question.id},
        tree_id=tree.id,
        question_node_id=question.id,
        provider=provider,
        model=model,
    )


async def queue_run(
    writing: Writing,
    viewer: Viewer,
    kind: RunKind,
    subject: tuple[str, str],
    path: tuple[str, ...],
    limits: OpenRuns,
    *,
    noted: Mapping[str, Any],
    **values: Any,
) -> Run:
    """Queue a run about something, which the caller holds: the column that names it, and its id.
    `noted` goes into the audit record, `values` are the other columns. Raises what `_check_limits`
    does.
    """
    column, subject_id = subject
    await _check_limits(writing, viewer, column, subject_id, path, limits)
    run = await writing.insert(
        Run,
        kind=kind,
        status=RunStatus.QUEUED,
        requested_by_user_id=viewer.signed_in_id,
        seed=secrets.randbits(62),
        **{column: subject_id},
        **values,
    )
    await record_act(writing, viewer, "run_queued", run.id, dict(noted))
    await announce(writing, QUEUE_TOPIC)
    return run
