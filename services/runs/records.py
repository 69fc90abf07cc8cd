"""What is kept of runs: listing them, taking them up under a lease, storing events, ending them.

A run is worked on by the one server that holds its lease and, where it speaks for a character, the
character's seat. Every write of that server checks both, so a server that was presumed dead and
comes back can commit nothing.
Source: spec soul-mirror, sections 1 (seat) and 6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Float, Integer, Text, exists, func, not_, or_, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import aliased
from sqlmodel import col

from db.enums import (
    NodeStatus,
    NodeType,
    RunEventType,
    RunKind,
    RunStatus,
    TreeEventType,
    Visibility,
)
from db.paging import Page, PagedList, PageRequest, SortKey
from db.reading import Reading, Writing, any_of, columns, param, statement
from db.tables import MirrorTree, Run, RunError, RunEvent, RunEventText, RuntimeSeat, TreeNode
from services import mirrors
from services.access import Viewer, among_own_runs, hold_row, visible
from services.accounts import record_act
from services.hub import announce
from services.runs.events import Event, cancel_topic_of, topic_of
from services.runs.starting import QUEUE_TOPIC

_NEWEST_FIRST = [
    SortKey(col(Run.created_at), is_descending=True),
    SortKey(col(Run.id), is_descending=True),
]
RUNS = PagedList("runs", Run, sort=_NEWEST_FIRST, where=lambda: visible(Run) & among_own_runs())
RUNS_OF_BRANCHES = PagedList(
    "runs of branches",
    Run,
    sort=_NEWEST_FIRST,
    parent=col(Run.branch_id),
    where=lambda: visible(Run),
)
ANSWERING = (RunKind.FOREGROUND, RunKind.BACKGROUND_DELEGATED)


class LeaseLost(Exception):
    """Another server has taken the run or its seat: whatever was being done must be dropped."""


async def list_runs(reading: Reading, viewer: Viewer, request: PageRequest) -> Page[Run]:
    """Runs of the viewer's characters and branches, newest first."""
    return await RUNS.page(reading, request, **viewer.parameters)


@statement(Run)
def _next_queued() -> Any:
    at_work = aliased(Run)
    in_work = (
        select(col(at_work.requested_by_user_id).label("user_id"), func.count().label("runs"))
        .where(col(at_work.status) == RunStatus.RUNNING.value, col(at_work.ended_at).is_(None))
        .group_by(col(at_work.requested_by_user_id))
        .subquery()
    )
    is_passed = any_of(Run.character_id, "passed")
    # What another server is taking up right now is passed over.
    return (
        select(*columns(Run))
        .outerjoin(RuntimeSeat, col(RuntimeSeat.character_id) == col(Run.character_id))
        .outerjoin(in_work, in_work.c.user_id == col(Run.requested_by_user_id))
        .where(
            col(Run.status) == RunStatus.QUEUED.value,
            col(Run.ended_at).is_(None),  # for the index of open runs
            col(Run.provider) == param("provider"),
            any_of(Run.kind, "kinds"),
            # Where there is no character, there is no seat either.
            or_(col(Run.character_id).is_(None), not_(is_passed)),
            _is_free(),
        )
        .order_by(func.coalesce(in_work.c.runs, 0), col(Run.created_at), col(Run.id))
        .limit(1)
        .with_for_update(skip_locked=True, of=Run)
    )


def _is_free() -> Any:
    return or_(
        col(RuntimeSeat.lease_holder).is_(None),
        col(RuntimeSeat.lease_holder) == param("holder"),
        col(RuntimeSeat.lease_expires_at) < func.clock_timestamp(),
    )


def _lease_end() -> Any:
    return func.clock_timestamp() + func.make_interval(
        0, 0, 0, 0, 0, 0, param("lease_seconds", Float())
    )


@statement(RuntimeSeat)
def _take_seat() -> Any:
    # The epoch rises whenever the seat is taken anew, not when its holder keeps it.
    is_taken_anew = col(RuntimeSeat.lease_holder).is_distinct_from(param("holder"))
    free = (
        select(col(RuntimeSeat.character_id))
        .where(col(RuntimeSeat.character_id) == param("of_character"), _is_free())
        .with_for_update(skip_locked=True)
        .correlate(None)
        .scalar_subquery()
    )
    return (
        update(RuntimeSeat)
        .where(col(RuntimeSeat.character_id) == free)
        .values(
            epoch=col(RuntimeSeat.epoch) + func.cast(is_taken_anew, Integer()),
            lease_holder=param("holder"),
            lease_expires_at=_lease_end(),
        )
        .returning(*columns(RuntimeSeat))
    )


@statement(Run)
def _take_run() -> Any:
    return (
        update(Run)
        .where(col(Run.id) == param("of_id"))
        .values(
            status=RunStatus.RUNNING.value,
            node_id=param("node_id", Text()),
            seat_epoch=param("seat_epoch", Integer()),
            lease_holder=param("holder"),
            lease_expires_at=_lease_end(),
            started_at=func.clock_timestamp(),
        )
        .returning(*columns(Run))
    )


async def take_next_run(
    writing: Writing,
    holder: str,
    provider: str,
    lease_seconds: float,
    kinds: Collection[RunKind] = ANSWERING,
) -> Run | None:
    """Take up a queued run of some kinds for a provider whose character's seat is free, if it has
    one, or None: of the user with the fewest runs in work, and of those the oldest.

    For an answer, takes the seat too, and plants the bud that will hold it.
    """
    lease = {"holder": holder, "lease_seconds": lease_seconds}
    passed: list[str] = []
    while True:
        queued = await writing.first(
            _next_queued(), holder=holder, provider=provider, kinds=list(kinds), passed=passed
        )
        if queued is None:
            return None
        if queued.character_id is None:
            return await writing.first(
                _take_run(), of_id=queued.id, node_id=None, seat_epoch=None, **lease
            )
        seat = await writing.first(_take_seat(), of_character=queued.character_id, **lease)
        if seat is not None:
            break
        # Another server takes or gives back the seat at this moment.
        passed.append(queued.character_id)
    assert queued.tree_id is not None
    await writing.first(_tree_held(), tree_id=queued.tree_id)
    above: Any = await writing.first(_node(), node_id=queued.question_node_id)
    is_answer = above.node_type == NodeType.QUESTION
    node = await writing.insert(
        TreeNode,
        tree_id=queued.tree_id,
        parent_node_id=above.id,
        node_type=NodeType.CANDIDATE_ANSWER if is_answer else NodeType.CONTINUED_THOUGHT,
        status=NodeStatus.BUD,
        realm=above.realm,
        model=queued.model,
        run_id=queued.id,
    )
    await mirrors.note_change(writing, queued.tree_id, TreeEventType.NODE_PLANTED, node.id)
    return await writing.first(
        _take_run(), of_id=queued.id, node_id=node.id, seat_epoch=seat.epoch, **lease
    )


@statement(TreeNode)
def _node() -> Any:
    return select(*columns(TreeNode)).where(col(TreeNode.id) == param("node_id"))


@statement(MirrorTree)
def _tree_held() -> Any:
    return (
        select(*columns(MirrorTree)).where(col(MirrorTree.id) == param("tree_id")).with_for_update()
    )


def _holds_both_leases() -> Any:
    has_seat = exists(
        select(1).where(
            col(RuntimeSeat.character_id) == col(Run.character_id),
            col(RuntimeSeat.epoch) == col(Run.seat_epoch),
            col(RuntimeSeat.lease_holder) == param("by_holder"),
        )
    )
    return (
        (col(Run.status) == RunStatus.RUNNING.value)
        & (col(Run.lease_holder) == param("by_holder"))
        & or_(col(Run.character_id).is_(None), has_seat)
    )


@statement(Run)
def _advance() -> Any:
    return (
        update(Run)
        .where(col(Run.id) == param("of_id"), _holds_both_leases())
        .values(
            last_seq=param("new_last_seq", Integer()),
            attempts=func.greatest(col(Run.attempts), param("new_attempts", Integer())),
            context_json=func.coalesce(param("new_context", JSONB()), col(Run.context_record)),
        )
    )


async def store_events(
    writing: Writing,
    holder: str,
    run_id: str,
    events: Sequence[Event],
    *,
    attempts: int = 0,
    context: dict[str, Any] | None = None,
) -> None:
    """Store events in one go, and with them how often the provider was asked by now, and what the
    model is given once that is known. Raises LeaseLost.
    """
    is_ours = await writing.run(
        _advance(),
        of_id=run_id,
        by_holder=holder,
        new_last_seq=events[-1].seq,
        new_attempts=attempts,
        new_context=context,
    )
    if not is_ours:
        raise LeaseLost
    # A commit whose answer was lost on the way is tried again: what it stored is there already.
    await writing.insert_many(RunEvent, [event.to_row() for event in events], unless_there=True)
    texts = [event.to_text_row() for event in events if event.text is not None]
    await writing.insert_many(RunEventText, texts, unless_there=True)
    await announce(writing, topic_of(run_id))


@statement(TreeNode)
def _settle_node() -> Any:
    return (
        update(TreeNode)
        .where(col(TreeNode.id) == param("of_id"), col(TreeNode.status) == NodeStatus.BUD.value)
        .values(
            status=param("new_status"),
            content=param("new_content"),
            reasoning=param("new_reasoning"),
            model=param("new_model"),
        )
    )


@statement(Run)
def _end_run() -> Any:
    return (
        update(Run)
        .where(col(Run.id) == param("of_id"), col(Run.ended_at).is_(None))
        .values(
            status=param("new_status"),
            model=param("new_model"),
            usage_json=param("new_usage", JSONB()),
            finish_reason=param("new_finish_reason"),
            error_code=param("new_error_code"),
            error_message=param("new_error_message"),
            lease_holder=None,
            lease_expires_at=None,
            ended_at=func.clock_timestamp(),
        )
    )


@statement(RuntimeSeat)
def _seat_held() -> Any:
    return (
        select(*columns(RuntimeSeat))
        .where(col(RuntimeSeat.character_id) == param("character_id"))
        .with_for_update()
    )


@statement(RuntimeSeat)
def _release_seat() -> Any:
    still_used = exists(
        select(1).where(
            col(Run.character_id) == col(RuntimeSeat.character_id),
            col(Run.lease_holder) == param("by_holder"),
        )
    )
    return (
        update(RuntimeSeat)
        .where(
            col(RuntimeSeat.character_id) == param("of_character"),
            col(RuntimeSeat.lease_holder) == param("by_holder"),
            ~still_used,
        )
        .values(lease_holder=None, lease_expires_at=None)
    )


async def end_run(
    writing: Writing,
    run: Run,
    holder: str,
    *,
    status: RunStatus,
    node_status: NodeStatus,
    content: str,
    reasoning: str,
    model: str | None,
    usage: dict[str, Any] | None = None,
    finish_reason: str | None = None,
    error: RunError | None = None,
) -> None:
    """Settle the answer of a run and close it, in the transaction that stores its last events.

    A solid answer becomes the working entry when the talk had not gone on elsewhere: that is,
    while the entry is still the answer above the question, or the one that is gone on from.
    """
    assert run.node_id is not None
    assert run.character_id is not None
    # Locks in one order everywhere: run (the caller has it), seat, tree, node. With the seat held
    # from here on, no run can be taken up unseen before the seat is given back.
    await writing.first(_seat_held(), character_id=run.character_id)
    tree = await writing.first(_tree_held(), tree_id=run.tree_id)
    assert tree is not None
    await writing.run(
        _settle_node(),
        of_id=run.node_id,
        new_status=node_status,
        new_content=content,
        new_reasoning=reasoning or None,
        new_model=model,
    )
    await mirrors.note_change(writing, tree.id, TreeEventType.NODE_FINISHED, run.node_id)
    above: Any = await writing.first(_node(), node_id=run.question_node_id)
    gone_on_from = above.parent_node_id if above.node_type == NodeType.QUESTION else above.id
    if node_status is NodeStatus.SOLIDIFIED and tree.working_entry_node_id == gone_on_from:
        await mirrors.move_working_entry(writing, tree.id, run.node_id)
    await close_run(
        writing,
        run,
        status=status,
        model=model,
        usage=usage,
        finish_reason=finish_reason,
        error=error,
    )
    await writing.run(_release_seat(), of_character=run.character_id, by_holder=holder)


async def close_run(
    writing: Writing,
    run: Run,
    *,
    status: RunStatus,
    model: str | None,
    usage: dict[str, Any] | None = None,
    finish_reason: str | None = None,
    error: RunError | None = None,
) -> None:
    """Say on the run how it ended, in the transaction that stores its last events."""
    await writing.run(
        _end_run(),
        of_id=run.id,
        new_status=status,
        new_model=model,
        new_usage=usage,
        new_finish_reason=finish_reason,
        new_error_code=error and error.code,
        new_error_message=error and error.message,
    )
    await announce(writing, QUEUE_TOPIC)


@statement(Run)
def _renew_runs() -> Any:
    return (
        update(Run)
        .where(any_of(Run.id, "run_ids"), col(Run.lease_holder) == param("holder"))
        .values(lease_expires_at=_lease_end())
        .returning(col(Run.id))
    )


@statement(RuntimeSeat)
def _renew_seats() -> Any:
    worked_on = select(col(Run.character_id)).where(any_of(Run.id, "run_ids"))
    return (
        update(RuntimeSeat)
        .where(
            col(RuntimeSeat.character_id).in_(worked_on),
            col(RuntimeSeat.lease_holder) == param("holder"),
        )
        .values(lease_expires_at=_lease_end())
    )


async def renew_leases(
    writing: Writing, holder: str, run_ids: Sequence[str], lease_seconds: float
) -> set[str]:
    """Say that this server lives and still works on these runs; those it no longer holds."""
    lease = {"holder": holder, "run_ids": list(run_ids), "lease_seconds": lease_seconds}
    held: list[Any] = await writing.all(_renew_runs(), **lease)
    await writing.run(_renew_seats(), **lease)
    return set(run_ids) - {row.id for row in held}


def finished_payload(
    status: RunStatus, node_id: str | None, error: RunError | None
) -> dict[str, Any]:
    """What a run's last event holds. The words about an error stand on the run alone: a provider's
    may quote private text, which must not get into a log that is append-only.
    """
    return {"status": status, "node_id": node_id, "error": error and {"code": error.code}}


@statement(Run)
def _request_cancel() -> Any:
    return update(Run).where(col(Run.id) == param("of_id")).values(is_cancel_requested=True)


@statement(Run)
def _cancel_requested() -> Any:
    return select(col(Run.is_cancel_requested)).where(col(Run.id) == param("id"))


async def is_cancel_requested(reading: Reading, run_id: str) -> bool:
    """Whether somebody asked the run's server to stop it."""
    return bool(await reading.value(_cancel_requested(), id=run_id))


@statement(Run)
def _cancel_queued() -> Any:
    return (
        update(Run)
        .where(col(Run.id) == param("of_id"), col(Run.status) == RunStatus.QUEUED.value)
        .values(status=RunStatus.CANCELLED.value, last_seq=1, ended_at=func.clock_timestamp())
    )


async def cancel_run(writing: Writing, viewer: Viewer, run_id: str) -> Run:
    """Stop a run: at once when it waits in the queue, else as soon as its server hears of it.

    A run that has ended stays as it is. Raises NotFound.
    """
    run = await hold_row(writing, viewer, Run, run_id, "input", "runId")
    if run.ended_at is not None:
        return run
    if await writing.run(_cancel_queued(), of_id=run.id):
        payload = finished_payload(RunStatus.CANCELLED, None, None)
        last = Event(
            run.id, 1, datetime.now(UTC), RunEventType.RUN_FINISHED, Visibility.PUBLIC, payload
        )
        await writing.insert_many(RunEvent, [last.to_row()])
    else:
        await writing.run(_request_cancel(), of_id=run.id)
        await announce(writing, cancel_topic_of(run.id))
    await record_act(writing, viewer, "run_cancelled", run.id)
    await announce(writing, topic_of(run.id))
    return await hold_row(writing, viewer, Run, run.id)


@statement(Run)
def _counts_by_status() -> Any:
    return select(col(Run.status), func.count().label("number")).group_by(col(Run.status))


async def count_by_status(reading: Reading) -> dict[str, int]:
    """How many runs there are in each state, of everybody: for the operator's figures."""
    rows: list[Any] = await reading.all(_counts_by_status())
    return {row.status: row.number for row in rows}
