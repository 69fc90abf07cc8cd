"""What a model was given stands on the run, in numbers and references."""

from __future__ import annotations

from typing import Any

from db.enums import CitationTarget
from db.tables import Run
from services import mirrors, runs
from services.runs import Asking, Retries
from tests.factories import make_character, make_talk, make_tree
from tests.services.runs.servers import (
    NO_LIMITS,
    STOP,
    WORDS,
    Bench,
    ScriptedProvider,
    a_server,
    until,
)


def told(run: Run) -> list[tuple[Any, ...]]:
    assert run.context is not None
    return [(part.kind, part.ref, part.is_carried, part.reason) for part in run.context.parts]


async def ask_below(bench: Bench, parent_id: str, text: str) -> Run:
    async with bench.database.writing() as writing:
        _, run = await runs.ask_tree(
            writing,
            bench.viewer,
            bench.tree.id,
            parent_id,
            text,
            provider="scripted",
            model=None,
            limits=NO_LIMITS,
        )
    return run


async def test_a_run_says_what_its_model_was_given(bench: Bench) -> None:
    """Rule R28. It is there before the first word is, and holds no text."""
    async with bench.database.writing() as writing:
        path = await make_talk(writing, bench.viewer, bench.tree, turns=1)
        citation = await mirrors.cite(
            writing, bench.viewer, path[1].id, CitationTarget.ATTACHMENT, "a book", {}, "Quoted."
        )
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider) as server:
        run = await ask_below(bench, path[1].id, "Unheard of?")
        answer = await provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        await until(lambda: log.last_seq == 4 and not log.unstored())
        early = await bench.run(run)
        for part in (*WORDS, STOP):
            answer.script.put_nowait(part)
        (run,) = await bench.ended(run)
    assert early.context == run.context is not None
    assert told(run) == [
        ("identity", None, True, None),
        ("citation", citation.id, True, None),
        ("question", path[0].id, True, None),
        ("answer", path[1].id, True, None),
        ("question", run.question_node_id, True, None),
    ]
    assert run.context.budget == Asking().budget
    assert run.context.tokens == sum(part.tokens for part in run.context.parts)
    assert "Quoted in this talk:\n- “Quoted.” (a book)" in answer.request.messages[0].text
    (row,) = await bench.sql("SELECT context_json::text AS stored FROM runs WHERE id = $1", run.id)
    for text in ("Question", "Answer", "Unheard", "Quoted", "book", "Ada", "tests"):
        assert text not in row["stored"]
    assert (run.usage, run.attempts) == (
        {"input_tokens": 7, "output_tokens": 3, "reasoning_tokens": 1},
        1,
    )


async def test_a_small_budget_leaves_the_oldest_turns_out(bench: Bench) -> None:
    """Rule R27."""
    async with bench.database.writing() as writing:
        path = await make_talk(writing, bench.viewer, bench.tree, turns=6)
    asking = Asking(budget=80, retries=Retries(0))
    async with a_server(bench.dsn, asking=asking) as server:
        (run,) = await bench.ended(await ask_below(bench, path[-1].id, "Last?"))
        (answer,) = server.provider.answers
    carried = [ref for _, ref, is_carried, _ in told(run) if is_carried and ref]
    assert 1 < len(carried) < len(path)
    assert carried == [*[node.id for node in path][1 - len(carried) :], run.question_node_id]
    assert len(answer.request.messages) == 1 + len(carried)
    assert run.context is not None
    assert run.context.tokens <= 80
    assert {reason for *_, is_carried, reason in told(run) if not is_carried} == {"over_budget"}


async def test_who_does_not_fit_fails_before_anybody_is_asked(bench: Bench) -> None:
    """Rule R26."""
    async with bench.database.writing() as writing:
        character = await make_character(writing, bench.viewer, "Ada" * 30)
        tree = await make_tree(writing, bench.viewer, character)
    asking = Asking(budget=40, retries=Retries(2))
    async with a_server(bench.dsn, asking=asking) as server:
        run = await bench.ask("Well?", tree)
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
        assert server.provider.answers == []
    assert (run.status, run.error_code, run.attempts) == ("failed", "CONTEXT_TOO_LONG", 0)
    assert events[-1].error_code == run.error_code
    assert [event.type for event in events] == [
        "run_started",
        "phase_started",
        "phase_finished",
        "run_finished",
    ]
    assert run.context is not None
    assert (run.context.budget, run.context.tokens) == (40, 0)
    assert {part.reason for part in run.context.parts} == {"over_budget"}
    node = await bench.node(run)
    assert (node.status, node.content) == ("partial", "")


async def test_a_context_is_sent_to_the_database_once(bench: Bench) -> None:
    """Rule R28. Not with every batch of events."""
    provider = ScriptedProvider(is_held=True)
    async with a_server(bench.dsn, provider) as server:
        run = await bench.ask()
        answer = await provider.begun()
        log = server.worker.live_log(run.id)
        assert log is not None
        await until(lambda: log.last_seq == 4 and not log.unstored())
        await bench.sql("UPDATE runs SET context_json = NULL WHERE id = $1", run.id)
        for part in (*WORDS, STOP):
            answer.script.put_nowait(part)
        (run,) = await bench.ended(run)
    assert (run.status, run.context) == ("succeeded", None)
