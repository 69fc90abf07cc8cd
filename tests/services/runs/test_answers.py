"""What a provider may do, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from db.enums import NodeStatus, RunEventType, TextChannel
from db.tables import MirrorTree
from services import runs
from services.access import require_row
from services.errors import Invalid
from services.providers import Finished, ProviderError, TextPart
from tests.conftest import People
from tests.factories import make_talk
from tests.services.runs.servers import (
    WORDS,
    Bench,
    ScriptedProvider,
    a_server,
    numbers_of,
    text_of,
    types_of,
    until,
)

OVERLOADED = ProviderError("RATE_LIMITED", "Wait a minute.", retryable=True)


@pytest.mark.parametrize("after", range(len(WORDS) + 1))
async def test_a_provider_that_fails_leaves_the_text_so_far(bench: Bench, after: int) -> None:
    """Rule R18: what the provider says of its trouble is not in the log."""
    provider = ScriptedProvider(*WORDS[:after], OVERLOADED)
    async with a_server(bench.dsn, provider) as server:
        run = await bench.ask(tree=bench.tree)
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert run.status == "failed"
    assert (run.error_code, run.error_message) == ("RATE_LIMITED", "Wait a minute.")
    assert events[-1].payload["error"] == {"code": "RATE_LIMITED"}
    assert types_of(events)[4:] == [RunEventType.TEXT_DELTA] * after + [RunEventType.RUN_FINISHED]
    assert numbers_of(events) == list(range(1, 6 + after))
    node = await bench.node(run)
    assert node.status == "partial"
    assert node.content == "".join(part.text for part in WORDS[1:after])
    assert node.reasoning == ("Hm." if after else None)
    async with bench.database.reading() as reading:
        tree = await require_row(reading, bench.viewer, MirrorTree, bench.tree.id)
    assert tree.working_entry_node_id is None


async def test_what_nobody_foresaw_ends_the_run_and_tells_nothing(bench: Bench) -> None:
    provider = ScriptedProvider(TextPart("text", "kept"), ZeroDivisionError("secret"))
    async with a_server(bench.dsn, provider):
        with capture_logs() as logs:
            (run,) = await bench.ended(await bench.ask())
    assert run.error is not None
    assert (run.status, run.error.code) == ("failed", "INTERNAL")
    assert "secret" not in run.error.message
    node = await bench.node(run)
    assert (node.status, node.content) == ("partial", "kept")
    assert [each["run"] for each in logs if each["event"] == "a run failed"] == [run.id]


@pytest.mark.parametrize(
    ("reason", "status", "code", "node_status", "warnings"),
    [
        ("stop", "succeeded", None, NodeStatus.SOLIDIFIED, []),
        ("other", "succeeded", None, NodeStatus.SOLIDIFIED, []),
        ("length", "succeeded", None, NodeStatus.PARTIAL, ["ANSWER_CUT"]),
        ("refused", "failed", "REFUSED", NodeStatus.PARTIAL, []),
    ],
)
async def test_how_an_answer_ends(
    bench: Bench,
    reason: Any,
    status: str,
    code: str | None,
    node_status: NodeStatus,
    warnings: list[str],
) -> None:
    """Rule R12."""
    provider = ScriptedProvider(*WORDS, Finished(reason, None, None))
    async with a_server(bench.dsn, provider) as server:
        run = await bench.ask()
        events = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
    assert (run.status, run.error_code, run.finish_reason) == (status, code, reason)
    assert (run.model, run.usage) == ("scripted-default", None)
    assert numbers_of(events) == list(range(1, len(events) + 1))
    assert [event.code for event in events if event.type is RunEventType.RUN_WARNING] == warnings
    assert (await bench.node(run)).status == node_status


async def test_what_the_database_cannot_hold_is_left_out_everywhere(bench: Bench) -> None:
    parts = [
        TextPart("reasoning", "a\0b"),
        TextPart("text", "\0"),
        TextPart("text", "\ud83d"),
        TextPart("text", "\ude00 \u00e9\U0001f600"),
        TextPart("text", " end\0\0"),
    ]
    model = "mod\0el\ud83d"
    async with a_server(
        bench.dsn, ScriptedProvider(*parts, Finished("stop", None, model))
    ) as server:
        run = await bench.ask()
        live = await server.events(bench.viewer, run)
        (run,) = await bench.ended(run)
        await until(lambda: server.worker.live_log(run.id) is None)
        assert await server.events(bench.viewer, run) == live
    node = await bench.node(run)
    assert (node.status, node.content) == ("solidified", "?? \u00e9\U0001f600 end")
    assert (node.reasoning, node.model) == ("ab", "model?")
    assert text_of(live) == node.content
    assert text_of(live, TextChannel.REASONING) == "ab"
    assert numbers_of(live) == list(range(1, len(live) + 1))


async def test_an_error_message_that_the_database_cannot_hold(bench: Bench) -> None:
    error = ProviderError("PROVIDER_ERROR", "no\0pe \ud83d", retryable=False)
    async with a_server(bench.dsn, ScriptedProvider(error)):
        (run,) = await bench.ended(await bench.ask())
    assert (run.error_code, run.error_message) == ("PROVIDER_ERROR", "nope ?")


async def test_the_prompt_is_the_path_to_the_question(bench: Bench, people: People) -> None:
    async with bench.database.writing() as writing:
        path = await make_talk(writing, people.owner, bench.tree, turns=2)
        _, run = await runs.ask_tree(
            writing,
            people.owner,
            bench.tree.id,
            path[-1].id,
            "Last question",
            provider="scripted",
            model="chosen",
        )
    async with a_server(bench.dsn) as server:
        await bench.ended(run)
        (answer,) = server.provider.answers
    assert answer.request.model == "chosen"
    assert [(each.role, each.text) for each in answer.request.messages[1:]] == [
        ("user", "Question 0"),
        ("assistant", "Answer 0"),
        ("user", "Question 1"),
        ("assistant", "Answer 1"),
        ("user", "Last question"),
    ]


async def test_only_questions_get_another_answer(bench: Bench) -> None:
    async with a_server(bench.dsn):
        (run,) = await bench.ended(await bench.ask())
    assert run.node_id is not None
    async with bench.database.writing() as writing:
        with pytest.raises(Invalid) as caught:
            await runs.regenerate_answer(
                writing, bench.viewer, run.node_id, provider="scripted", model=None
            )
    assert caught.value.code == "NOT_A_QUESTION"


async def test_runs_of_another_provider_are_left_alone(bench: Bench) -> None:
    async with bench.database.writing() as writing:
        _, foreign = await runs.ask_tree(
            writing, bench.viewer, bench.tree.id, None, "Well?", provider="other", model=None
        )
    async with a_server(bench.dsn) as server:
        await bench.ended(await bench.ask())
        assert len(server.provider.answers) == 1
    assert (await bench.run(foreign)).status == "queued"
