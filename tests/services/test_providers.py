"""The model providers over a real socket: exact parts, every error code, closing, the demo."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.providers import (
    CharacterSheet,
    Finished,
    Message,
    Part,
    Provider,
    ProviderError,
    ProviderSettings,
    Request,
    TextPart,
    Usage,
    make_provider,
)
from services.providers.deadlines import with_deadlines
from tests.scripted_provider import Script, ScriptedProvider, scripted_provider

# Looks like no known kind of key, so that only the rule about the configured key can hide it.
KEY = "Test+0123456789/abcdef"
SHEET = CharacterSheet(
    "Mira",
    (
        "Mira keeps the lighthouse. She counts ships!\nShe fears no storm.",
        "{{char}} smiles at {{user}}. Her coat is grey.",
        "<START>\n{{user}}: Hello?\nThe lamp turns twice a minute.",
    ),
)
HELLO = Request(None, (Message("user", "Hello?"),), SHEET, 7, None)
wires = pytest.mark.parametrize("wire", ["openai", "anthropic"])


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ScriptedProvider]:
    async with scripted_provider() as running:
        yield running


@asynccontextmanager
async def provider_for(
    wire: str, server: ScriptedProvider, **changes: Any
) -> AsyncIterator[Provider]:
    settings = ProviderSettings(
        wire,
        openai_base_url=server.openai_base_url,
        openai_api_key=KEY,
        anthropic_api_key=KEY,
        anthropic_base_url=server.anthropic_base_url,
        first_token_timeout=10,
        silence_timeout=10,
    )
    provider = make_provider(replace(settings, **changes))
    try:
        yield provider
    finally:
        await provider.close()


async def read(provider: Provider, request: Request = HELLO) -> list[Part]:
    return [part async for part in provider.stream(request)]


async def read_to_failure(
    provider: Provider, request: Request = HELLO
) -> tuple[list[Part], ProviderError]:
    parts: list[Part] = []

    async def collect() -> None:
        async for part in provider.stream(request):
            parts.append(part)  # noqa: PERF401 - what came before the failure is wanted too

    with pytest.raises(ProviderError) as caught:
        await collect()
    assert KEY not in str(caught.value)
    assert KEY not in caught.value.message
    return parts, caught.value


async def read_whatever_comes(provider: Provider) -> None:
    with suppress(ProviderError):
        await read(provider)


def joined(parts: list[Part], channel: str = "text") -> str:
    return "".join(p.text for p in parts if isinstance(p, TextPart) and p.channel == channel)


# Happy paths


@wires
@pytest.mark.asyncio
async def test_text_reasoning_usage_and_finish_arrive_exactly(
    wire: str, server: ScriptedProvider
) -> None:
    server.script = Script(words=("Good", " morning", "，世界"), reasoning=("Let", " me"))
    async with provider_for(wire, server) as provider:
        assert await read(provider) == [
            TextPart("reasoning", "Let"),
            TextPart("reasoning", " me"),
            TextPart("text", "Good"),
            TextPart("text", " morning"),
            TextPart("text", "，世界"),
            Finished("stop", Usage(11, 5, 2), "scripted-model"),
        ]


@pytest.mark.asyncio
async def test_reasoning_is_read_in_the_other_spelling_too(server: ScriptedProvider) -> None:
    server.script = Script(words=("Yes",), reasoning=("Hm",), reasoning_field="reasoning")
    async with provider_for("openai", server) as provider:
        parts = await read(provider)
    assert parts[:2] == [TextPart("reasoning", "Hm"), TextPart("text", "Yes")]


@wires
@pytest.mark.parametrize(
    ("finish", "reason"), [("stop", "stop"), ("length", "length"), ("refused", "refused")]
)
@pytest.mark.asyncio
async def test_finish_reasons(
    wire: str, finish: Any, reason: str, server: ScriptedProvider
) -> None:
    server.script = Script(finish=finish)
    async with provider_for(wire, server) as provider:
        assert (await read(provider))[-1] == Finished(
            reason,  # type: ignore[arg-type]
            Usage(11, 3, 0),
            "scripted-model",
        )


@wires
@pytest.mark.asyncio
async def test_one_provider_answers_again_and_again(wire: str, server: ScriptedProvider) -> None:
    async with provider_for(wire, server) as provider:
        for words in (("one",), ("two",)):
            server.script = Script(words=words)
            assert joined(await read(provider)) == words[0]
        await provider.close()
        assert joined(await read(provider)) == "two"


# Requests as sent

CONVERSATION = (
    Message("system", "Be Mira."),
    Message("assistant", "Ahoy!"),
    Message("user", "Who"),
    Message("user", "are you?"),
    Message("assistant", " "),
    Message("system", "Stay brief."),
)


@pytest.mark.asyncio
async def test_request_to_openai_as_sent(server: ScriptedProvider) -> None:
    async with provider_for("openai", server, model="chosen") as provider:
        await read(provider, replace(HELLO, messages=CONVERSATION, max_tokens=50))
        await read(provider, replace(HELLO, model="other"))
    first, second = server.requests
    assert first.body == {
        "model": "chosen",
        "messages": [
            {"role": "system", "content": "Be Mira."},
            {"role": "assistant", "content": "Ahoy!"},
            {"role": "user", "content": "Who"},
            {"role": "user", "content": "are you?"},
            {"role": "assistant", "content": " "},
            {"role": "system", "content": "Stay brief."},
        ],
        "max_tokens": 50,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert second.body == {
        "model": "other",
        "messages": [{"role": "user", "content": "Hello?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.asyncio
async def test_request_to_anthropic_as_sent(server: ScriptedProvider) -> None:
    async with provider_for("anthropic", server, model="chosen") as provider:
        await read(provider, replace(HELLO, messages=CONVERSATION))
        await read(provider, replace(HELLO, model="other", max_tokens=50))
    first, second = server.requests
    assert first.body == {
        "model": "chosen",
        "max_tokens": 4096,
        "system": "Be Mira.\n\nStay brief.",
        "messages": [
            {"role": "user", "content": "[The conversation begins.]"},
            {"role": "assistant", "content": "Ahoy!"},
            {"role": "user", "content": "Who\n\nare you?"},
        ],
        "stream": True,
    }
    assert KEY in " ".join(first.headers.values())
    assert second.body == {
        "model": "other",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "Hello?"}],
        "stream": True,
    }


@pytest.mark.asyncio
async def test_the_default_model_is_asked_for_when_none_is_named(server: ScriptedProvider) -> None:
    for wire in ("openai", "anthropic"):
        async with provider_for(wire, server) as provider:
            await read(provider)
            assert server.requests[-1].body["model"] == provider.default_model


@wires
@pytest.mark.asyncio
async def test_the_environment_of_the_sdk_changes_nothing(
    wire: str, server: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "AUTH_TOKEN", "ADMIN_KEY", "ORG_ID", "PROJECT_ID"):
        monkeypatch.setenv(f"{wire.upper()}_{name}", "from-environment")
    monkeypatch.setenv(f"{wire.upper()}_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv(
        f"{wire.upper()}_CUSTOM_HEADERS", "X-Odd: from-environment\nAuthorization: from-environment"
    )
    async with provider_for(wire, server) as provider:
        await read(provider)
    (received,) = server.requests
    assert [n for n, value in received.headers.items() if "from-environment" in value] == []


# Keys


@wires
@pytest.mark.parametrize("key", [None, "", "  "])
@pytest.mark.asyncio
async def test_a_missing_key_is_told_when_an_answer_is_asked_for(
    wire: str, key: str | None
) -> None:
    provider = make_provider(ProviderSettings(wire, openai_api_key=key, anthropic_api_key=key))
    parts, error = await read_to_failure(provider)
    assert (parts, error.code, error.retryable) == ([], "MISSING_KEY", False)
    assert f"Set {wire.upper()}_API_KEY" in error.message


@wires
@pytest.mark.parametrize("key", ["sk-with\nnewline", "ключ-schlüssel"])
@pytest.mark.asyncio
async def test_a_key_that_cannot_stand_in_a_header_is_invalid(
    wire: str, key: str, server: ScriptedProvider
) -> None:
    async with provider_for(wire, server, openai_api_key=key, anthropic_api_key=key) as provider:
        _, error = await read_to_failure(provider)
    assert (error.code, error.retryable) == ("INVALID_KEY", False)
    assert key not in error.message
    assert server.requests == []


@pytest.mark.asyncio
async def test_a_local_server_needs_no_key(server: ScriptedProvider) -> None:
    async with provider_for("openai", server, openai_api_key=None) as provider:
        assert joined(await read(provider)) == "Hello there."


def test_settings_do_not_show_keys() -> None:
    assert KEY not in repr(ProviderSettings("openai", openai_api_key=KEY, anthropic_api_key=KEY))


# Error answers

ANSWERS = [
    (401, "authentication_error", f"Incorrect API key provided: {KEY}", "INVALID_KEY", False),
    (403, "permission_error", f"Key {KEY} may not do this", "INVALID_KEY", False),
    (403, "model_not_found", "no access to model gpt", "MODEL_NOT_FOUND", False),
    (404, "not_found_error", "model: chosen", "MODEL_NOT_FOUND", False),
    (404, "", "404 page not found", "MODEL_NOT_FOUND", False),
    (400, "invalid_request", "chosen is not a valid model ID", "MODEL_NOT_FOUND", False),
    (400, "invalid_request", "chosen does not support this setting", "PROVIDER_ERROR", False),
    (400, "context_length_exceeded", "too long", "CONTEXT_TOO_LONG", False),
    (400, "invalid_request_error", "prompt is too long: 9 > 8", "CONTEXT_TOO_LONG", False),
    (413, "request_too_large", "too large", "CONTEXT_TOO_LONG", False),
    (400, "content_filter", "filtered", "REFUSED", False),
    (429, "rate_limit_error", "slow down", "RATE_LIMITED", True),
    (429, "insufficient_quota", "no money", "RATE_LIMITED", False),
    (408, "timeout", "too slow", "TIMED_OUT", True),
    (402, "payment_required", "no credit", "PROVIDER_ERROR", False),
    (500, "api_error", "oops", "PROVIDER_ERROR", True),
    (503, "server_error", "loading the model", "PROVIDER_ERROR", True),
    (529, "overloaded_error", "busy", "PROVIDER_ERROR", True),
]


@wires
@pytest.mark.parametrize(("status", "kind", "said", "code", "retryable"), ANSWERS)
@pytest.mark.asyncio
async def test_error_answers(
    wire: str,
    status: int,
    kind: str,
    said: str,
    code: str,
    retryable: bool,
    server: ScriptedProvider,
) -> None:
    server.script = Script(fault="status", status=status, error_type=kind, error_message=said)
    async with provider_for(wire, server, model="chosen") as provider:
        parts, error = await read_to_failure(provider)
    assert (parts, error.code, error.retryable) == ([], code, retryable)
    assert len(server.requests) == 1, "retrying belongs to the run"


RETRY_AFTER: dict[str, tuple[dict[str, str], float | None]] = {
    "nothing": ({}, None),
    "seconds": ({"Retry-After": "7"}, 7.0),
    "parts of a second": ({"retry-after": "0.5"}, 0.5),
    "milliseconds": ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
    "a moment that has passed": ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    "a moment without a zone": ({"Retry-After": "Wed, 21 Oct 2015 07:28:00"}, 0.0),
    "less than nothing": ({"Retry-After": "-3"}, 0.0),
    "nonsense": ({"Retry-After": "soon", "Retry-After-Ms": "later"}, None),
    "no number": ({"Retry-After": "nan"}, None),
    "for ever": ({"Retry-After": "inf"}, None),
}


@wires
@pytest.mark.parametrize("name", RETRY_AFTER)
async def test_how_long_a_provider_asks_to_wait(
    wire: str, name: str, server: ScriptedProvider
) -> None:
    headers, seconds = RETRY_AFTER[name]
    server.script = Script(fault="status", status=429, headers=headers)
    async with provider_for(wire, server) as provider:
        _, error = await read_to_failure(provider)
    assert (error.code, error.retry_after) == ("RATE_LIMITED", seconds)


@wires
async def test_a_moment_to_wait_for_is_told_in_seconds(wire: str, server: ScriptedProvider) -> None:
    # Said now: the whole suite takes longer than these five minutes.
    soon = format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)
    server.script = Script(fault="status", status=503, headers={"Retry-After": soon})
    async with provider_for(wire, server) as provider:
        _, error = await read_to_failure(provider)
    assert error.retry_after is not None
    assert 0 < error.retry_after <= 300


@wires
@pytest.mark.parametrize(
    "body",
    [
        {"error": "model 'chosen' not found, try pulling it first"},
        {"detail": "The model `chosen` does not exist."},
        {"object": "error", "message": "chosen: no such model", "type": "NotFoundError"},
    ],
)
@pytest.mark.asyncio
async def test_error_bodies_of_local_servers(
    wire: str, body: object, server: ScriptedProvider
) -> None:
    server.script = Script(fault="status", status=400, error_body=body)
    async with provider_for(wire, server, model="chosen") as provider:
        _, error = await read_to_failure(provider)
    assert (error.code, error.retryable) == ("MODEL_NOT_FOUND", False)
    assert '"chosen"' in error.message


@wires
@pytest.mark.asyncio
async def test_an_error_page_is_not_repeated(wire: str, server: ScriptedProvider) -> None:
    page = "<html><body><h1>502 Bad Gateway</h1></body></html>"
    server.script = Script(fault="status", status=502, error_body=page)
    async with provider_for(wire, server) as provider:
        _, error = await read_to_failure(provider)
    assert (error.code, error.message) == ("PROVIDER_ERROR", "The provider failed. Try again.")


@wires
@pytest.mark.asyncio
async def test_an_excerpt_is_short_clean_and_without_secrets(
    wire: str, server: ScriptedProvider
) -> None:
    said = f"Bad\n\tluck\x00 {KEY} sk-abcd*********wxyz Bearer abcdef " + "x" * 500
    server.script = Script(fault="status", status=500, error_message=said)
    async with provider_for(wire, server) as provider:
        _, error = await read_to_failure(provider)
    excerpt = "Bad luck … … … "
    assert error.message == (
        "The provider failed. Try again. It said: " + excerpt + "x" * (160 - len(excerpt) - 1) + "…"
    )


@wires
@pytest.mark.asyncio
async def test_a_refused_connection_is_unreachable(wire: str) -> None:
    async with scripted_provider() as server:
        pass
    async with provider_for(wire, server) as provider:
        parts, error = await read_to_failure(provider)
    assert (parts, error.code, error.retryable) == ([], "UNREACHABLE", True)
    assert f"{wire.upper()}_BASE_URL" in error.message


@wires
@pytest.mark.parametrize("url", ["localhost:1", "http://[::1", "nothing"])
@pytest.mark.asyncio
async def test_a_base_url_that_is_none_is_a_provider_error(wire: str, url: str) -> None:
    async with scripted_provider() as server:
        pass
    async with provider_for(wire, server, openai_base_url=url, anthropic_base_url=url) as provider:
        _, error = await read_to_failure(provider)
    assert error.code in ("UNREACHABLE", "PROVIDER_ERROR")


@wires
@pytest.mark.asyncio
async def test_text_that_cannot_be_encoded_is_a_provider_error(
    wire: str, server: ScriptedProvider
) -> None:
    async with provider_for(wire, server) as provider:
        _, error = await read_to_failure(
            provider, replace(HELLO, messages=(Message("user", "half \ud83d"),))
        )
    assert (error.code, error.retryable) == ("PROVIDER_ERROR", False)


# Faults inside a stream


@wires
@pytest.mark.parametrize("fault", ["cut", "broken_json", "no_finish"])
@pytest.mark.parametrize("after", [0, 2, 3])
@pytest.mark.asyncio
async def test_a_stream_that_breaks_is_malformed(
    wire: str, fault: Any, after: int, server: ScriptedProvider
) -> None:
    server.script = Script(fault=fault, after=after)
    async with provider_for(wire, server) as provider:
        parts, error = await read_to_failure(provider)
    words = server.script.words if fault == "no_finish" else server.script.words[:after]
    assert parts == [TextPart("text", word) for word in words]
    assert (error.code, error.retryable) == ("MALFORMED_STREAM", True)


@wires
@pytest.mark.parametrize(
    ("kind", "said", "code", "retryable"),
    [
        ("overloaded_error", "busy", "PROVIDER_ERROR", True),
        ("server_error", f"oops {KEY}", "PROVIDER_ERROR", True),
        ("rate_limit_error", "slow down", "RATE_LIMITED", True),
        ("authentication_error", "no", "INVALID_KEY", False),
        ("not_found_error", "no", "MODEL_NOT_FOUND", False),
        ("context_length_exceeded", "no", "CONTEXT_TOO_LONG", False),
        ("content_filter", "no", "REFUSED", False),
        ("timeout_error", "no", "TIMED_OUT", True),
        ("429", "the host is busy", "RATE_LIMITED", True),
    ],
)
@pytest.mark.asyncio
async def test_error_events_inside_a_stream(
    wire: str, kind: str, said: str, code: str, retryable: bool, server: ScriptedProvider
) -> None:
    server.script = Script(fault="error_event", after=1, error_type=kind, error_message=said)
    async with provider_for(wire, server) as provider:
        parts, error = await read_to_failure(provider)
    assert parts == [TextPart("text", "Hello")]
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.asyncio
async def test_a_refusal_by_openai_is_an_error(server: ScriptedProvider) -> None:
    server.script = Script(fault="refusal", after=1)
    async with provider_for("openai", server) as provider:
        parts, error = await read_to_failure(provider)
    assert parts == [TextPart("text", "Hello")]
    assert (error.code, error.retryable) == ("REFUSED", False)


@pytest.mark.asyncio
async def test_a_refusal_by_anthropic_is_a_finish(server: ScriptedProvider) -> None:
    server.script = Script(fault="refusal", after=1)
    async with provider_for("anthropic", server) as provider:
        parts = await read(provider)
    assert parts == [
        TextPart("text", "Hello"),
        Finished("refused", Usage(11, 3, 0), "scripted-model"),
    ]


@wires
@pytest.mark.parametrize(("after", "words"), [(0, []), (1, ["Hello"])])
@pytest.mark.asyncio
async def test_silence_times_out_and_the_server_sees_the_client_go(
    wire: str, after: int, words: list[str], server: ScriptedProvider
) -> None:
    """Rule R25."""
    # Only the time-out under test is short; the other would show as a hanging test.
    limits = {"first_token_timeout" if after == 0 else "silence_timeout": 0.2}
    async with provider_for(wire, server, **limits) as provider:
        # The first request also builds the client, which takes longer than the time-out.
        await read_whatever_comes(provider)
        server.requests.clear()
        server.script = Script(fault="hang", after=after)
        parts, error = await read_to_failure(provider)
        received = await server.received()
        async with asyncio.timeout(5):
            await received.disconnected.wait()
    assert parts == [TextPart("text", word) for word in words]
    assert (error.code, error.retryable) == ("TIMED_OUT", True)
    assert "0.2 seconds" in error.message


@wires
@pytest.mark.asyncio
async def test_an_answer_that_hangs_can_go_on(wire: str, server: ScriptedProvider) -> None:
    server.script = Script(fault="hang", after=1)
    async with provider_for(wire, server) as provider, aclosing(provider.stream(HELLO)) as stream:
        assert await anext(stream) == TextPart("text", "Hello")
        server.resume()
        rest = [part async for part in stream]
    assert joined(rest) == " there."
    assert server.requests[0].completed.is_set()


# Leaving early


@wires
@pytest.mark.asyncio
async def test_closing_the_generator_ends_the_request(wire: str, server: ScriptedProvider) -> None:
    server.script = Script(fault="hang", after=2)
    async with provider_for(wire, server) as provider:
        stream = provider.stream(HELLO)
        assert await anext(stream) == TextPart("text", "Hello")
        await stream.aclose()
        async with asyncio.timeout(5):
            await server.requests[0].disconnected.wait()


@wires
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.asyncio
async def test_cancelling_the_reader_ends_the_request(
    wire: str, after: int, server: ScriptedProvider
) -> None:
    server.script = Script(fault="hang", after=after)
    async with provider_for(wire, server) as provider:
        reader = asyncio.create_task(read(provider))
        received = await server.received()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        async with asyncio.timeout(5):
            await received.disconnected.wait()
        # The same provider still serves others.
        server.script = Script(words=("Next",))
        assert joined(await read(provider)) == "Next"


@wires
@pytest.mark.asyncio
async def test_closing_before_the_first_part_sends_nothing(
    wire: str, server: ScriptedProvider
) -> None:
    async with provider_for(wire, server) as provider:
        await provider.stream(HELLO).aclose()
    assert server.requests == []


@pytest.mark.asyncio
async def test_closing_closes_what_is_waited_for_before_it_returns() -> None:
    is_closed = False

    async def endless() -> AsyncGenerator[Part, None]:
        nonlocal is_closed
        try:
            while True:
                yield TextPart("text", "on")
        finally:
            is_closed = True

    # Kept in a variable: otherwise the garbage collector would close it too.
    parts = endless()
    stream = with_deadlines(parts, first=5, silence=5)
    await anext(stream)
    await stream.aclose()
    assert is_closed


# The choice of a provider


def test_an_unknown_provider_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match=r'"oracle"\. Known: anthropic, demo, openai\.'):
        make_provider(ProviderSettings("oracle"))


def test_the_sdks_are_not_loaded_for_the_demo() -> None:
    program = (
        "import sys, services.providers as p\n"
        "p.make_provider(p.ProviderSettings('demo'))\n"
        "print(sorted({'openai', 'anthropic', 'aiohttp', 'httpx2'} & set(sys.modules)))"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={},
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


# The demo


def demo(**changes: Any) -> Provider:
    return make_provider(ProviderSettings("demo", demo_rate=0, **changes))


def asking(text: str, **changes: Any) -> Request:
    return replace(HELLO, messages=(Message("user", text),), **changes)


@pytest.mark.asyncio
async def test_the_demo_quotes_the_user_and_the_sheet() -> None:
    parts = await read(demo(), asking("Who are you? Tell me."))
    text = joined(parts)
    assert text.startswith("“Who are you?” ")
    sheet = {
        "Mira keeps the lighthouse.",
        "She counts ships!",
        "She fears no storm.",
        "Her coat is grey.",
        "The lamp turns twice a minute.",
    }
    rest = text.removeprefix("“Who are you?”")
    assert {sentence for sentence in sheet if sentence in rest} == sheet
    for sentence in sheet:
        rest = rest.replace(sentence, "")
    assert rest.strip() == ""
    assert joined(parts, "reasoning") == (
        "Demo, no language model: Mira answers in sentences of the character sheet."
    )
    channels = [part.channel for part in parts if isinstance(part, TextPart)]
    assert channels == sorted(channels), "reasoning comes first"
    assert parts[-1] == Finished("stop", Usage(5, len(parts) - 1, 12), "demo-prose")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("[Go on from where you stopped.]", ""),
        (" [Go on.]\n", ""),
        ("[demo: length=50] [Go on.]", ""),
        ("Wait [for it].", "“Wait [for it].”"),
        ("[Softly] Who are you?", "“[Softly] Who are you?”"),
    ],
)
async def test_the_demo_does_not_quote_a_remark_in_brackets(said: str, quote: str) -> None:
    text = joined(await read(demo(), asking(said)))
    assert text.startswith(quote)
    assert ("“" in text, "Go on" in text) == (bool(quote), False)


@pytest.mark.asyncio
async def test_the_demo_is_repeatable_and_follows_its_seed() -> None:
    first, again, other = [await read(demo(), replace(HELLO, seed=seed)) for seed in (1, 1, 2)]
    assert first == again
    assert joined(first) != joined(other)


@pytest.mark.parametrize(
    "said", ["I am {{user}}, {{random:a,{{char}},b}} <USER>", "{{user", "}}{{{user}}}"]
)
@pytest.mark.asyncio
async def test_the_demo_never_repeats_macros(said: str) -> None:
    for sheet in (
        SHEET,
        CharacterSheet(
            "{{char}}", ("{{char}} waits for {{user}}. {{roll:d6. d8}} <BOT> is here.",)
        ),
        CharacterSheet("{{char}}", ()),
    ):
        parts = await read(demo(), asking(said, character=sheet))
        for channel in ("text", "reasoning"):
            text = joined(parts, channel)
            assert text
            assert not [sign for sign in ("{{", "}}", "<BOT>", "<USER>", "<START>") if sign in text]


@pytest.mark.parametrize(
    ("said", "sheet", "longest"),
    [
        ("你好吗？再见。", "美拉守着灯塔。她数着船！她不怕暴风雨。", 4),
        ("สวัสดี", "มีราเฝ้าประภาคาร เธอนับเรือ", 4),
        ("مرحبا؟", "ميرا تحرس المنارة. هي تعد السفن!", 20),
    ],
)
@pytest.mark.asyncio
async def test_the_demo_in_other_scripts(said: str, sheet: str, longest: int) -> None:
    request = asking(said, character=CharacterSheet("美拉", (sheet,)))
    parts = [p for p in await read(demo(), request) if isinstance(p, TextPart)]
    words = [p.text for p in parts if p.channel == "text"]
    assert len(words) >= 40
    assert max(len(word.strip()) for word in words) <= longest
    text = "".join(words)
    assert said.split("？")[0] in text
    assert sheet.split("。")[0].split(". ")[0] in text


@pytest.mark.asyncio
async def test_the_demo_joins_chinese_sentences_without_spaces() -> None:
    sheet = CharacterSheet("美拉", ("她数着船！她不怕暴风雨。她说：「好。」",))
    text = joined(await read(demo(), asking("[demo: length=60] 你好。", character=sheet)))
    assert " " not in text.removeprefix("“你好。”").replace("\n\n", "")
    assert "她说：「好。」" in text


@pytest.mark.asyncio
async def test_the_demo_keeps_to_length_and_max_tokens() -> None:
    async def outcome(said: str, max_tokens: int | None) -> tuple[int, str]:
        parts = await read(demo(), asking(said, max_tokens=max_tokens))
        last = parts[-1]
        assert isinstance(last, Finished)
        return sum(isinstance(p, TextPart) and p.channel == "text" for p in parts), last.reason

    assert await outcome("Hi [demo: length=400]", None) == (400, "stop")
    assert await outcome("Hi [demo: length=400]", 9) == (9, "length")
    assert await outcome("Hi [demo: length=5]", 9) == (5, "stop")
    assert await outcome("Hi [demo: length=99999999]", None) == (10_000, "stop")


@pytest.mark.parametrize(
    ("fault", "code", "retryable"),
    [
        ("refused", "REFUSED", False),
        ("rate_limited", "RATE_LIMITED", True),
        ("timed_out", "TIMED_OUT", True),
        ("unreachable", "UNREACHABLE", True),
        ("malformed_stream", "MALFORMED_STREAM", True),
        ("model_not_found", "MODEL_NOT_FOUND", False),
        ("context_too_long", "CONTEXT_TOO_LONG", False),
        ("provider_error", "PROVIDER_ERROR", True),
    ],
)
@pytest.mark.asyncio
async def test_the_demo_fails_as_asked(fault: str, code: str, retryable: bool) -> None:
    parts, error = await read_to_failure(demo(), asking(f"Hi [demo: fault={fault}]"))
    assert (parts, error.code, error.retryable) == ([], code, retryable)

    parts, error = await read_to_failure(demo(), asking(f"[Demo: after=3  FAULT={fault}] Hi"))
    whole = await read(demo(), asking("Hi"))
    assert parts == whole[: 12 + 3]
    assert error.code == code

    parts, error = await read_to_failure(demo(), asking(f"Hi[demo: after=5000 fault={fault}]"))
    assert (parts, error.code) == (whole[:-1], code)


@pytest.mark.asyncio
async def test_the_demo_falls_silent_as_asked() -> None:
    request = asking("[demo: fault=silence after=2]")
    parts, error = await read_to_failure(demo(silence_timeout=0.05), request)
    assert len(parts) == 12 + 2
    assert (error.code, error.retryable) == ("TIMED_OUT", True)


@pytest.mark.asyncio
async def test_the_demo_ignores_what_it_does_not_know() -> None:
    strange = (
        "[demo: fault=missing_key rate=-1 rate=nan rate=fast length=x after=² mood=sad =, 5]"
        " Hi [demo:]"
    )
    parts, plain = await read(demo(), asking(strange)), await read(demo(), asking("Hi"))
    # Only the count of the tokens read differs.
    assert parts[:-1] == plain[:-1]


@pytest.mark.asyncio
async def test_the_demo_keeps_its_rate_and_a_directive_changes_it() -> None:
    loop = asyncio.get_running_loop()
    for rate, said in ((200.0, "[demo: length=8]"), (0.1, "[demo: length=8 rate=200]")):
        provider = make_provider(ProviderSettings("demo", demo_rate=rate))
        started = loop.time()
        parts = await read(provider, asking(said))
        # The first token comes at once; every further one waits for a two-hundredth of a second.
        assert loop.time() - started >= (len(parts) - 2) / 200


@pytest.mark.asyncio
async def test_the_fastest_demo_lets_other_tasks_run() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count_turns())
    parts = await read(demo(), HELLO)
    counter.cancel()
    assert turns >= len(parts) - 1


@pytest.mark.asyncio
async def test_the_demo_stops_when_closed() -> None:
    stream = demo().stream(HELLO)
    await anext(stream)
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
