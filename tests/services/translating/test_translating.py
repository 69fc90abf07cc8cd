"""Runs that translate: what they say and what they miss, how they end, and are taken back."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from db.enums import RunEventType, RunKind, TranslationTarget
from db.paging import PageRequest
from db.tables import Branch, Delta, RunProgress
from services import deltas, runs, stories, translations
from services.access import require_row
from services.errors import DomainError
from services.providers import Finished, ProviderError, TextPart
from services.runs import Asking, OpenRuns, Retries, records, recovering
from services.translations import Wording
from tests.conftest import People
from tests.services.deltas.ledgers import rows_of
from tests.services.runs.breaking import Between
from tests.services.runs.servers import SHORT_LEASE, STOP, a_server, numbers_of, types_of, until
from tests.services.runs.servers import someone_waits_for_a_lock as someone_waits
from tests.services.translating.booths import (
    KINDS,
    Booth,
    Interpreter,
    Turn,
    answered,
    answers,
    fails,
    misses_of,
    progress_of,
    right,
    said,
    tell,
    titles,
)

LORE = [TranslationTarget.LORE]
PAGE = PageRequest(first=9)
CUT = Finished("length", None, None)


def error(code: Any, *, retryable: bool = True) -> ProviderError:
    return ProviderError(code, "It quoted: Title 00.", retryable=retryable)


async def test_everything_that_is_missing_is_said_call_by_call(booth: Booth) -> None:
    """Rules V11, V12."""
    await tell(booth, 45)
    provider = Interpreter()
    async with booth.server(provider) as server:
        run = await booth.start(LORE)
        assert (run.status, run.progress, run.character_id, run.tree_id) == (
            "queued",
            None,
            None,
            None,
        )
        events = await server.events(booth.viewer, run)
    (run,) = await booth.ended(run)
    assert provider.asked == [
        tuple(titles(45)[:20]),
        tuple(titles(45)[20:40]),
        tuple(titles(45)[40:]),
    ]
    assert await booth.said() == {each: f"fr {each}" for each in titles(45)}
    assert types_of(events) == [
        RunEventType.RUN_STARTED,
        RunEventType.PHASE_STARTED,
        *[RunEventType.RUN_PROGRESSED] * 4,
        RunEventType.PHASE_FINISHED,
        RunEventType.RUN_FINISHED,
    ]
    assert numbers_of(events) == list(range(1, 9))
    assert events[1].name == "translation"
    assert progress_of(events) == [(0, 45, 0), (20, 45, 0), (40, 45, 0), (45, 45, 0)]
    assert (run.status, run.error, run.language, run.target_kinds) == (
        "succeeded",
        None,
        "fr",
        LORE,
    )
    assert (run.progress, run.attempts, run.model) == (
        RunProgress(45, 45, 0),
        3,
        "scripted-model-1",
    )
    assert run.usage == {"input_tokens": 21, "output_tokens": 9, "reasoning_tokens": 3}
    # Each call is an action of its own.
    async with booth.database.writing() as writing:
        log = (await rows_of(writing, Delta, booth.branch_id))[-45:]
        assert len({each.action_id for each in log}) == 3
        assert {each.source for each in log} == {"ai_classifier"}
        await deltas.undo_branch(writing, booth.viewer, booth.branch_id)
    assert await booth.said() == {each: f"fr {each}" for each in titles(45)[:40]}
    # What was taken back is missing again, and nothing else.
    async with booth.server(again := Interpreter()):
        (run,) = await booth.ended(await booth.start(LORE))
    assert again.asked == [tuple(titles(45)[40:])]
    assert run.progress == RunProgress(5, 5, 0)


async def test_what_a_model_leaves_out_is_told_and_can_be_had_by_another_run(booth: Booth) -> None:
    """Rules V12, V14."""
    await tell(booth, 6)
    rows = [each.id for each in await booth.lore()]

    def some(texts: Any) -> Any:
        right = answered(texts)
        items = [right[0], (2, " "), (3, 7), right[3], right[4], (5, "fr again")]
        return [TextPart("reasoning", "["), TextPart("text", said(items)), STOP]

    provider = Interpreter(some)
    async with booth.server(provider) as server:
        run = await booth.start(LORE)
        events = await server.events(booth.viewer, run)
    (run,) = await booth.ended(run)
    assert misses_of(events) == [("NOT_ANSWERED", rows[at], "title") for at in (1, 2, 4, 5)]
    assert progress_of(events) == [(0, 6, 0), (2, 6, 4)]
    assert (run.status, run.error, run.progress) == ("succeeded", None, RunProgress(2, 6, 4))
    assert await booth.said() == {each: f"fr {each}" for each in ("Title 00", "Title 03")}
    async with booth.server(again := Interpreter()):
        (run,) = await booth.ended(await booth.start(LORE))
    assert again.asked == [("Title 01", "Title 02", "Title 04", "Title 05")]
    assert await booth.missing() == []
    with pytest.raises(DomainError) as refused:
        await booth.start(LORE)
    assert (refused.value.code, refused.value.path) == (
        "NOTHING_TO_TRANSLATE",
        ("input", "branchId"),
    )


@pytest.mark.parametrize(
    ("turns", "count", "status", "code", "progress", "calls"),
    [
        ([fails(error("RATE_LIMITED"))], 25, "succeeded", None, (5, 25, 20), 2),
        ([None, fails(error("TIMED_OUT"))], 25, "succeeded", None, (20, 25, 5), 2),
        ([fails(error("TIMED_OUT"))], 5, "failed", "TIMED_OUT", (0, 5, 5), 1),
        ([fails(error("INVALID_KEY"))], 45, "failed", "INVALID_KEY", (0, 45, 20), 1),
        (
            [None, *[fails(error("UNREACHABLE"))] * 3],
            100,
            "failed",
            "UNREACHABLE",
            (20, 100, 60),
            4,
        ),
        ([answers("No.")], 5, "failed", "UNREADABLE_ANSWER", (0, 5, 5), 1),
        (
            [lambda _texts: [Finished("refused", None, None)]],
            25,
            "succeeded",
            None,
            (5, 25, 20),
            2,
        ),
    ],
    ids=["first", "last", "only", "hopeless", "three", "unreadable", "refused"],
)
async def test_calls_that_fail(
    booth: Booth,
    turns: list[Turn | None],
    count: int,
    status: str,
    code: str | None,
    progress: tuple[int, int, int],
    calls: int,
) -> None:
    """Rules V12, V13. What a provider says of its trouble is in no event."""
    await tell(booth, count)
    provider = Interpreter(*turns)
    async with booth.server(provider) as server:
        run = await booth.start(LORE)
        events = await server.events(booth.viewer, run)
    (run,) = await booth.ended(run)
    assert (run.status, run.error_code, run.progress) == (status, code, RunProgress(*progress))
    assert len(provider.asked) == calls
    assert len(await booth.said()) == progress[0]
    assert len(misses_of(events)) == progress[2]
    assert "quoted" not in str(events)
    assert events[-1].error_code == code


async def test_a_call_that_fails_is_made_again_as_others_are(booth: Booth) -> None:
    """Rule V13."""
    await tell(booth, 2)
    provider = Interpreter(fails(error("RATE_LIMITED")), answers('{"n": 1}'), answers("[3]"))
    asking = Asking(retries=Retries(2, draw=lambda: 0.0))
    async with booth.server(provider, asking=asking) as server:
        run = await booth.start(LORE)
        events = await server.events(booth.viewer, run)
    (run,) = await booth.ended(run)
    assert [each.code for each in events if each.type == "run_warning"] == ["PROVIDER_RETRY"] * 3
    assert "quoted" not in str(events)
    assert (run.status, run.attempts, run.progress) == ("succeeded", 4, RunProgress(2, 2, 0))


async def test_an_answer_that_is_cut_is_asked_for_in_halves(booth: Booth) -> None:
    """Rule V13."""
    await tell(booth, 5)

    def cut(_texts: Any) -> Any:
        return [TextPart("text", '[{"n": 1, "te'), CUT]

    provider = Interpreter(cut, right, cut)
    async with booth.server(provider):
        (run,) = await booth.ended(await booth.start(LORE))
    assert [len(each) for each in provider.asked] == [5, 2, 3, 1, 2]
    assert (run.status, run.progress) == ("succeeded", RunProgress(5, 5, 0))


async def test_a_text_that_a_model_cannot_be_given_is_missed_without_a_call(booth: Booth) -> None:
    """Rule V13."""
    await tell(booth, 3)
    await booth.rename(1, "long " * 400)
    provider = Interpreter()
    async with booth.server(provider, asking=Asking(1_000, Retries(0))) as server:
        events = await server.events(booth.viewer, await booth.start(LORE))
    rows = await booth.lore()
    assert misses_of(events) == [("TEXT_TOO_LONG", rows[1].id, "title")]
    assert provider.asked == [("Title 00",), ("Title 02",)]
    assert progress_of(events)[-1] == (2, 3, 1)
    assert events[-1].status == "succeeded"


async def test_what_was_changed_meanwhile_is_missed_and_what_was_said_stays(booth: Booth) -> None:
    """Rule V12."""
    await tell(booth, 4)
    provider = Interpreter(is_held=True)
    async with booth.server(provider) as server:
        run = await booth.start(LORE)
        answer = await provider.begun()
        rows = await booth.lore()
        await booth.rename(1, "Other")
        async with booth.database.writing() as writing:
            await translations.import_translations(
                writing,
                booth.viewer,
                booth.branch_id,
                "fr",
                [Wording(rows[2].row_id, "title", "By hand")],
            )
            async with deltas.acting_on(writing, booth.viewer, type(rows[3]).table, rows[3].id) as (
                action,
                before,
            ):
                await action.delete(type(rows[3]).table, before)
        for part in provider.parts:
            answer.script.put_nowait(part)
        events = await server.events(booth.viewer, run)
    assert misses_of(events) == [
        ("TEXT_CHANGED", rows[1].id, "title"),
        ("TEXT_CHANGED", rows[3].id, "title"),
    ]
    assert progress_of(events)[-1] == (2, 4, 2)
    assert await booth.said() == {"Title 00": "fr Title 00", "Title 02": "By hand"}


async def test_a_run_that_is_cancelled_keeps_what_it_has_said(booth: Booth) -> None:
    """Rules V14, R10."""
    await tell(booth, 25)
    provider = Interpreter(is_held=True)
    async with booth.server(provider) as server:
        run = await booth.start(LORE)
        answer = await provider.begun()
        for part in provider.parts:
            answer.script.put_nowait(part)
        answer = await provider.begun(2)
        await booth.cancel(run)
        events = await server.events(booth.viewer, run)
        assert not answer.is_open
        (ended,) = await booth.ended(run)
    # Nobody is there to take it up.
    queued = await booth.start(LORE, language="de")
    assert (ended.status, ended.error, ended.progress) == (
        "cancelled",
        None,
        RunProgress(20, 25, 0),
    )
    assert events[-1].status == "cancelled"
    assert len(await booth.said()) == 20
    await booth.cancel(queued)
    assert (await booth.run(queued)).ended_at is not None


async def test_what_is_being_stored_is_not_cut(booth: Booth) -> None:
    """Rules V12, V14."""
    await tell(booth, 3)
    provider = Interpreter(is_held=True)
    async with booth.server(provider) as server:
        run = await booth.start(LORE)
        answer = await provider.begun()
        writer = await asyncpg.connect(booth.dsn)
        async with writer.transaction():
            await writer.execute("SELECT FROM branches WHERE id = $1 FOR UPDATE", booth.branch_id)
            for part in provider.parts:
                answer.script.put_nowait(part)
            await until(lambda: someone_waits(booth))
            await booth.cancel(run)
        await writer.close()
        events = await server.events(booth.viewer, run)
    (run,) = await booth.ended(run)
    assert run.status == "cancelled"
    assert progress_of(events) == [(0, 3, 0), (3, 3, 0)]
    assert run.progress == RunProgress(3, 3, 0)
    assert len(await booth.said()) == 3


async def test_texts_whose_commit_is_not_heard_of_are_said_and_told_once(booth: Booth) -> None:
    """Rules V12, R6."""
    await tell(booth, 3)
    provider = Interpreter(is_held=True)
    async with (
        Between(booth.dsn).open() as between,
        a_server(between.dsn, provider, kinds=KINDS) as server,
    ):
        run = await booth.start(LORE)
        answer = await provider.begun()
        between.to_lose = 1
        for part in provider.parts:
            answer.script.put_nowait(part)
        events = await server.events(booth.viewer, run)
        assert between.lost == 1
        log = [(each.seq, str(each.type)) for each in events]
    assert await booth.stored(run) == log
    assert progress_of(events) == [(0, 3, 0), (3, 3, 0)]
    async with booth.database.reading() as reading:
        written = await rows_of(reading, Delta, booth.branch_id)
    assert [each.target_table for each in written] == ["lore"] * 3 + ["translations"] * 3


async def test_a_lost_run_is_failed_and_another_one_has_the_rest(booth: Booth) -> None:
    """Rules V14, R4, R7. Who has lost the lease stores neither texts nor events."""
    await tell(booth, 25)
    provider = Interpreter(is_held=True)
    async with booth.server(provider) as server:
        run = await booth.start(LORE)
        answer = await provider.begun()
        for part in provider.parts:
            answer.script.put_nowait(part)
        answer = await provider.begun(2)
        await booth.sql(
            "UPDATE runs SET lease_holder = 'server_gone',"
            " lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = $1",
            run.id,
        )
        before = await booth.stored(run)
        for part in provider.parts:
            answer.script.put_nowait(part)
        await until(lambda: server.worker.live_log(run.id) is None)
        assert await booth.stored(run) == before
        assert len(await booth.said()) == 20
        async with booth.database.writing() as writing:
            recovered = await recovering.recover_lost_run(writing)
            assert recovered is not None
        events = await server.events(booth.viewer, run)
    assert numbers_of(events) == list(range(1, len(before) + 2))
    (run,) = await booth.ended(run)
    assert (run.status, run.error_code, run.progress) == (
        "failed",
        "SERVER_LOST",
        RunProgress(20, 25, 0),
    )
    async with booth.server(again := Interpreter(), lease=SHORT_LEASE):
        (run,) = await booth.ended(await booth.start(LORE))
    assert again.asked == [tuple(titles(25)[20:])]
    assert run.status == "succeeded"


async def test_a_server_that_stops_leaves_what_was_said(booth: Booth) -> None:
    """Rules V14, R13, R31. Servers that do not translate leave such runs to others."""
    await tell(booth, 2)
    provider = Interpreter(is_held=True)
    async with booth.server(provider):
        run = await booth.start(LORE)
        await provider.begun()
    assert (await booth.run(run)).error_code == "SERVER_STOPPED"
    run = await booth.start(LORE)
    async with booth.database.writing() as writing:
        assert await records.take_next_run(writing, "server_x", "scripted", 60) is None
        taken = await records.take_next_run(writing, "server_x", "scripted", 60, list(RunKind))
    assert taken is not None
    assert (taken.id, taken.seat_epoch, taken.node_id) == (run.id, None, None)


REFUSED: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"language": "french"}, "LANGUAGE_INVALID", ("input", "language")),
    ({"language": "fr"}, "TRANSLATION_RUNNING", ("input", "language")),
    ({"kinds": []}, "NOTHING_TO_TRANSLATE", ("input", "branchId")),
    ({"limits": OpenRuns(9, 2, 9)}, "RUNS_OF_BRANCH_LIMIT", ("input", "branchId")),
    ({"limits": OpenRuns(2, 9, 9)}, "RUNS_OF_USER_LIMIT", ("input", "branchId")),
    ({"limits": OpenRuns(9, 9, 2)}, "QUEUE_FULL", ()),
]


async def test_what_is_refused_queues_nothing(booth: Booth) -> None:
    """Rules V11, R21, R22."""
    await tell(booth, 1)
    first = await booth.start(language="fr")
    await booth.start(language="de")
    for given, code, path in REFUSED:
        with pytest.raises(DomainError) as refused:
            await booth.start(**{"language": "it", **given})
        assert (refused.value.code, refused.value.path) == (code, path)
        if code == "TRANSLATION_RUNNING":
            assert refused.value.details == {"runId": first.id}
    (row,) = await booth.sql("SELECT count(*) FROM runs")
    assert row["count"] == 2


async def test_a_run_is_seen_by_whose_branch_it_is(booth: Booth, people: People) -> None:
    """Rules V11, V15."""
    await tell(booth, 1)
    run = await booth.start()
    for viewer in (people.stranger, people.anonymous):
        with pytest.raises(DomainError) as refused:
            await booth.cancel(run, viewer)
        assert refused.value.code == "NOT_FOUND"
        async with booth.database.reading() as reading:
            (page,) = await runs.RUNS_OF_BRANCHES.pages(
                reading, [booth.branch_id], PAGE, **viewer.parameters
            )
            assert page.nodes == []
        booth_of_theirs = Booth(booth.database, viewer, booth.tree, booth.dsn, branch=booth.branch)
        with pytest.raises(DomainError) as refused:
            await booth_of_theirs.start(language="de")
        assert refused.value.code == "NOT_FOUND"
    async with booth.database.reading() as reading:
        (page,) = await runs.RUNS_OF_BRANCHES.pages(
            reading, [booth.branch_id], PAGE, **booth.viewer.parameters
        )
        assert [each.id for each in page.nodes] == [run.id]


async def test_runs_of_a_story_that_is_deleted_are_seen_by_nobody(booth: Booth) -> None:
    """Rule V15. They end, and what a provider said of its trouble is gone."""
    await tell(booth, 2)
    async with booth.server(Interpreter(fails(error("TIMED_OUT")))):
        (failed,) = await booth.ended(await booth.start(LORE))
    assert failed.error_message == "It quoted: Title 00."
    queued = await booth.start(LORE)
    running = await booth.start(LORE, language="de")
    await booth.sql(
        "UPDATE runs SET created_at = now() - interval '1 hour' WHERE id = $1", running.id
    )
    provider = Interpreter(is_held=True)
    async with booth.server(provider, concurrent=1):
        answer = await provider.begun()
        async with booth.database.writing() as writing:
            branch = await require_row(writing, booth.viewer, Branch, booth.branch_id)
            await stories.delete_story(writing, booth.viewer, branch.story_id)
        for part in provider.parts:
            answer.script.put_nowait(part)
        await until(lambda: all_ended(booth))
    rows = await booth.sql(
        "SELECT id, status, branch_id, error_code, error_message FROM runs ORDER BY created_at"
    )
    told = "What was to be translated is gone."
    assert [tuple(row) for row in rows] == [
        (running.id, "failed", None, "NOT_FOUND", told),
        (failed.id, "failed", None, "TIMED_OUT", None),
        (queued.id, "failed", None, "NOT_FOUND", told),
    ]
    with pytest.raises(DomainError):
        await booth.run(failed)


async def all_ended(booth: Booth) -> bool:
    return not await booth.sql("SELECT FROM runs WHERE ended_at IS NULL")
