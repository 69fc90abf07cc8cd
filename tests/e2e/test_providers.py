"""Answers of model providers, good and bad, as clients of the server see them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from tests.clusters import Cluster
from tests.conftest import ServerProcess, serving
from tests.e2e.callers import Caller, Json, numbers_of, text_of
from tests.scripted_provider import Script, ScriptedProvider, scripted_provider

KEY = "sk-scripted-0123456789abcdef"
MODEL = "scripted-choice"
WIRES = ("openai", "anthropic")
FIRST_TOKEN_TIMEOUT = 0.5
SILENCE_TIMEOUT = 0.5


@dataclass
class Setting:
    """A server, the provider that it asks, and everything that clients were shown."""

    wire: str
    provider: ScriptedProvider
    server: ServerProcess
    caller: Caller

    def plays(self, **script: object) -> None:
        """What the next requests get."""
        self.provider.script = Script(**script)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def setting(
    wire: str, dsn: str, session: aiohttp.ClientSession, **environment: str
) -> AsyncIterator[Setting]:
    async with scripted_provider() as provider:
        given = {
            "DATABASE_URL": dsn,
            "MIRRORGRAPH_PROVIDER": wire,
            "MIRRORGRAPH_MODEL": MODEL,
            "MIRRORGRAPH_FIRST_TOKEN_TIMEOUT": str(FIRST_TOKEN_TIMEOUT),
            "MIRRORGRAPH_SILENCE_TIMEOUT": str(SILENCE_TIMEOUT),
            "MIRRORGRAPH_PROVIDER_RETRIES": "1",
            "OPENAI_BASE_URL": provider.openai_base_url,
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": provider.anthropic_base_url,
            "ANTHROPIC_API_KEY": KEY,
            **environment,
        }
        async with serving(**given) as server:
            yield Setting(wire, provider, server, Caller(server, session))
        assert "Traceback" not in server.output
        assert KEY not in server.output


@pytest.fixture(scope="module")
async def settings(
    cluster: Cluster, session: aiohttp.ClientSession
) -> AsyncIterator[dict[str, Setting]]:
    """One server for each wire format."""
    async with contextlib.AsyncExitStack() as stack:
        made = {}
        for wire in WIRES:
            dsn = await cluster.new_database()
            stack.push_async_callback(cluster.drop, dsn)
            made[wire] = await stack.enter_async_context(setting(wire, dsn, session))
        yield made


@pytest.fixture(params=WIRES)
def scene(request: pytest.FixtureRequest, settings: dict[str, Setting]) -> Setting:
    return settings[request.param]


async def assert_key_is_hidden(scene: Setting, run: str, events: list[Json]) -> None:
    everything = [events, await scene.caller.read("Run", run), scene.server.output]
    assert KEY not in str(everything)


async def test_an_answer_comes_with_its_reasoning_usage_and_model(scene: Setting) -> None:
    scene.plays(reasoning=("Let me", " think."), words=("Good", " day", "."))
    begun = await scene.caller.begin("Greet me.")
    events = await scene.caller.follow(begun.run)
    assert numbers_of(events) == list(range(1, len(events) + 1))
    assert text_of(events, "REASONING") == "Let me think."
    assert text_of(events) == "Good day."
    node = await scene.caller.read("Node", events[-1]["node"]["id"])
    assert node == {
        "id": events[-1]["node"]["id"],
        "status": "SOLIDIFIED",
        "content": "Good day.",
        "reasoning": "Let me think.",
        "model": "scripted-model",
    }
    run = await scene.caller.read("Run", begun.run)
    assert run == {
        "id": begun.run,
        "status": "SUCCEEDED",
        "provider": scene.wire,
        "model": "scripted-model",
        "usage": {"input_tokens": 11, "output_tokens": 5, "reasoning_tokens": 2},
        "finishReason": "stop",
        "error": None,
        "lastSeq": len(events),
        "startedAt": run["startedAt"],
        "question": {"id": begun.question},
        "node": {**node},
    }
    await assert_key_is_hidden(scene, begun.run, events)


async def test_the_other_spelling_of_reasoning_is_read_too(settings: dict[str, Setting]) -> None:
    scene = settings["openai"]
    scene.plays(reasoning=("Hm.",), reasoning_field="reasoning", words=("Yes.",))
    events = await scene.caller.follow((await scene.caller.begin("Well?")).run)
    assert (text_of(events, "REASONING"), text_of(events)) == ("Hm.", "Yes.")


async def test_an_answer_cut_at_its_length_is_kept_as_partial_with_a_warning(
    scene: Setting,
) -> None:
    scene.plays(words=("Once", " upon"), finish="length")
    begun = await scene.caller.begin("Tell me all.")
    *_, warning, last = await scene.caller.follow(begun.run)
    assert (warning["__typename"], warning["code"]) == ("RunWarning", "ANSWER_CUT")
    assert (last["status"], last["error"]) == ("SUCCEEDED", None)
    assert (last["node"]["status"], last["node"]["content"]) == ("PARTIAL", "Once upon")
    assert (await scene.caller.read("Run", begun.run))["finishReason"] == "length"
    assert (await scene.caller.read("Tree", begun.tree))["workingEntry"] is None
    await assert_goes_on(scene, begun.tree, begun.question, last["node"]["id"])


async def assert_goes_on(scene: Setting, tree: str, question: str, partial: str) -> None:
    """The tree is still usable: behind the partial answer, and with one more answer."""
    scene.plays(words=("Better", " now."))
    adopted = await scene.caller.change("NodeAdopt", node=partial)
    assert adopted["errors"] == []
    assert adopted["tree"]["workingEntry"] == {"id": partial}
    more = await scene.caller.begin("Go on.", tree, partial)
    assert (await scene.caller.follow(more.run))[-1]["status"] == "SUCCEEDED"
    again = await scene.caller.change("AnswerRegenerate", question=question)
    assert again["errors"] == []
    last = (await scene.caller.follow(again["run"]["id"]))[-1]
    assert last["status"] == "SUCCEEDED"
    assert (last["node"]["status"], last["node"]["content"]) == ("SOLIDIFIED", "Better now.")


WORDS = ("The", " text", " so", " far")
# What the provider does, the code of the failed run, and the text that is kept.
FAULTS: dict[str, tuple[Json, str, str]] = {
    "a wrong key": ({"fault": "status", "status": 401}, "INVALID_KEY", ""),
    "no right": ({"fault": "status", "status": 403}, "INVALID_KEY", ""),
    "an unknown model": ({"fault": "status", "status": 404}, "MODEL_NOT_FOUND", ""),
    "too many requests": ({"fault": "status", "status": 429}, "RATE_LIMITED", ""),
    "too long a talk": ({"fault": "status", "status": 413}, "CONTEXT_TOO_LONG", ""),
    "a broken provider": ({"fault": "status", "status": 500}, "PROVIDER_ERROR", ""),
    "a page of a proxy": (
        {"fault": "status", "status": 502, "error_body": "<html>Bad gateway</html>"},
        "PROVIDER_ERROR",
        "",
    ),
    "a key in the error": (
        {"fault": "status", "status": 400, "error_message": f"Bad key {KEY} for you"},
        "PROVIDER_ERROR",
        "",
    ),
    "a refusal": ({"fault": "refusal", "after": 2}, "REFUSED", "The text"),
    "no first word": ({"fault": "hang", "after": 0}, "TIMED_OUT", ""),
    "silence in the middle": ({"fault": "hang", "after": 2}, "TIMED_OUT", "The text"),
    "a cut connection": ({"fault": "cut", "after": 3}, "MALFORMED_STREAM", "The text so"),
    "no sense": ({"fault": "broken_json", "after": 1}, "MALFORMED_STREAM", "The"),
    "an error in the stream": ({"fault": "error_event", "after": 1}, "PROVIDER_ERROR", "The"),
    "no finish": ({"fault": "no_finish", "after": 4}, "MALFORMED_STREAM", "The text so far"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_fails_the_run_with_its_code_and_keeps_the_text(
    scene: Setting, name: str
) -> None:
    script, code, kept = FAULTS[name]
    scene.plays(words=WORDS, **script)
    begun = await scene.caller.begin("Well?")
    events = await scene.caller.follow(begun.run)
    last = events[-1]
    assert (last["status"], last["error"]["code"]) == ("FAILED", code)
    assert last["error"]["message"] != ""
    assert text_of(events) == kept
    assert (last["node"]["status"], last["node"]["content"]) == ("PARTIAL", kept)
    run = await scene.caller.read("Run", begun.run)
    assert (run["status"], run["error"]) == ("FAILED", last["error"])
    assert (run["node"]["status"], run["node"]["content"]) == ("PARTIAL", kept)
    assert (await scene.caller.read("Tree", begun.tree))["workingEntry"] is None
    await assert_key_is_hidden(scene, begun.run, events)
    scene.provider.resume()
    await assert_goes_on(scene, begun.tree, begun.question, last["node"]["id"])


async def test_an_answer_that_fails_before_its_first_word_is_asked_for_again(
    scene: Setting,
) -> None:
    """Rule R24."""
    count = len(scene.provider.requests)
    # Time enough to change what the next request gets.
    said = f"Slow down, {KEY}."
    scene.plays(fault="status", status=429, headers={"Retry-After": "1"}, error_message=said)
    begun = await scene.caller.begin("Well?")
    await scene.provider.received(count + 1)
    scene.plays(words=("Well", " then."))
    events = await scene.caller.follow(begun.run)
    (warning,) = [each for each in events if each["__typename"] == "RunWarning"]
    assert warning["code"] == "PROVIDER_RETRY"
    assert warning["message"].startswith("Attempt 1 of 2 failed, the next one follows. RATE_LIMIT")
    assert (events[-1]["status"], text_of(events)) == ("SUCCEEDED", "Well then.")
    first, second = scene.provider.requests[count:]
    assert first.body == second.body
    await assert_key_is_hidden(scene, begun.run, events)


async def test_a_cancelled_answer_hangs_up_on_the_provider(scene: Setting) -> None:
    count = len(scene.provider.requests)
    # Slower than any wait for it, faster than the limit on silence.
    scene.plays(words=("word ",) * 1_000, delay=0.1)
    begun = await scene.caller.begin("Well?")
    received = await scene.provider.received(count + 1)
    await scene.caller.change("RunCancel", run=begun.run)
    assert (await scene.caller.follow(begun.run))[-1]["status"] == "CANCELLED"
    await received.disconnected.wait()


@pytest.mark.parametrize("wire", WIRES)
async def test_without_a_key_a_run_fails_and_says_what_to_set(
    dsn: str, session: aiohttp.ClientSession, wire: str
) -> None:
    environment = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "OPENAI_BASE_URL": ""}
    async with setting(wire, dsn, session, **environment) as scene:
        begun = await scene.caller.begin("Well?")
        last = (await scene.caller.follow(begun.run))[-1]
        assert last["error"] == {
            "code": "MISSING_KEY",
            "message": f"No key for the model provider. Set {wire.upper()}_API_KEY, "
            "or choose the demo provider.",
        }
        assert (last["node"]["status"], last["node"]["content"]) == ("PARTIAL", "")
        assert scene.provider.requests == []


async def test_an_unreachable_provider_fails_the_run(
    dsn: str, session: aiohttp.ClientSession
) -> None:
    async with scripted_provider() as gone:
        address = gone.openai_base_url
    # The client tries several times: time enough for that on a slow machine.
    given = {"OPENAI_BASE_URL": address, "MIRRORGRAPH_FIRST_TOKEN_TIMEOUT": "30"}
    async with setting("openai", dsn, session, **given) as scene:
        events = await scene.caller.follow((await scene.caller.begin("Well?")).run)
        assert (events[-1]["status"], events[-1]["error"]["code"]) == ("FAILED", "UNREACHABLE")


def talk_of(body: Json, wire: str) -> tuple[str, list[tuple[str, str]]]:
    """The system message, and the other messages by role."""
    if wire == "anthropic":
        return body["system"], [(each["role"], each["content"]) for each in body["messages"]]
    system, *rest = body["messages"]
    assert system["role"] == "system"
    return system["content"], [(each["role"], each["content"]) for each in rest]


async def test_a_provider_is_told_who_speaks_and_what_was_said_on_the_path(
    scene: Setting,
) -> None:
    scene.plays(words=("First answer.",))
    character = await scene.caller.create_character(
        name="Ada Byron",
        nickname="Ada",
        description="{{char}} tests {{user}}'s patience.",
        personality="Exact, says {{ CHAR }} and <BOT>.",
        scenario="<USER> enters.",
        firstMessage="Sit down, {{User}}.",
        systemPrompt="Be {{char}}.",
        forbiddenZone=["Ada never lies to {{user}}."],
    )
    tree = await scene.caller.create_tree(character)
    first = await scene.caller.begin("One, {{char}}?", tree)
    answer = (await scene.caller.follow(first.run))[-1]["node"]["id"]
    # Another answer to the same question stays outside of the path.
    scene.plays(words=("Not adopted.",))
    other = await scene.caller.change("AnswerRegenerate", question=first.question)
    await scene.caller.follow(other["run"]["id"])
    scene.plays(words=("Second answer.",))
    count = len(scene.provider.requests)
    second = await scene.caller.begin("Two?", tree, answer)
    await scene.caller.follow(second.run)
    received = await scene.provider.received(count + 1)
    assert received.body["model"] == MODEL
    assert received.body["stream"] is True
    assert received.headers["authorization"] == f"Bearer {KEY}"
    system, talk = talk_of(received.body, scene.wire)
    assert system == (
        "You are Ada. Answer as Ada, in the language you are addressed in.\n\n"
        "Be Ada.\n\n"
        "Ada tests local's patience.\n\n"
        "Personality: Exact, says {{ CHAR }} and Ada.\n\n"
        "Scenario: local enters.\n\n"
        "Never, whatever is asked:\n- Ada never lies to local."
    )
    opening = [("user", "[The conversation begins.]")] if scene.wire == "anthropic" else []
    assert talk == [
        *opening,
        ("assistant", "Sit down, local."),
        ("user", "One, Ada?"),
        ("assistant", "First answer."),
        ("user", "Two?"),
    ]


# The demo provider takes its faults from the question.
DEMO_FAULTS = {
    "refused": "REFUSED",
    "rate_limited": "RATE_LIMITED",
    "timed_out": "TIMED_OUT",
    "unreachable": "UNREACHABLE",
    "malformed_stream": "MALFORMED_STREAM",
    "model_not_found": "MODEL_NOT_FOUND",
    "context_too_long": "CONTEXT_TOO_LONG",
    "provider_error": "PROVIDER_ERROR",
    "silence": "TIMED_OUT",
}


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """For the demo provider's server."""
    return {
        "MIRRORGRAPH_FIRST_TOKEN_TIMEOUT": str(FIRST_TOKEN_TIMEOUT),
        "MIRRORGRAPH_SILENCE_TIMEOUT": str(SILENCE_TIMEOUT),
        "MIRRORGRAPH_PROVIDER_RETRIES": "0",
    }


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("fault", DEMO_FAULTS)
async def test_the_demo_provider_plays_the_fault_that_the_question_asks_for(
    caller: Caller, fault: str, after: int
) -> None:
    begun = await caller.begin(f"Well then? [demo: length=9 fault={fault} after={after}]")
    events = await caller.follow(begun.run)
    last = events[-1]
    assert (last["status"], last["error"]["code"]) == ("FAILED", DEMO_FAULTS[fault])
    assert last["node"]["status"] == "PARTIAL"
    assert last["node"]["content"] == text_of(events)
    assert len([each for each in events if each.get("channel") == "TEXT"]) == after
    assert (text_of(events, "REASONING") != "") is (after > 0)


async def test_the_demo_provider_answers_at_the_length_that_the_question_asks_for(
    caller: Caller,
) -> None:
    begun = await caller.begin("Well then? [demo: length=7]")
    events = await caller.follow(begun.run)
    assert len([each for each in events if each.get("channel") == "TEXT"]) == 7
    assert "[demo" not in text_of(events)
    run = await caller.read("Run", begun.run)
    assert (run["provider"], run["model"], run["finishReason"]) == ("demo", "demo-prose", "stop")
