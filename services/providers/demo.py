"""The built-in provider without a key: no language model, only prose quoted from the character.

It exists so that a server works before anyone has a key, and so that a front-end can be tested
against every kind of trouble; what an answer means is left to the run.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from services.providers import failures
from services.providers.base import (
    CharacterSheet,
    ErrorCode,
    Finished,
    Part,
    Provider,
    ProviderError,
    ProviderSettings,
    Request,
    TextPart,
    TextsToTranslate,
    Usage,
)
from services.providers.deadlines import with_deadlines

_DEFAULT_MODEL = "demo-prose"
_SHORTEST, _LONGEST = 40, 200
_LONGEST_ASKED_FOR = 10_000
_QUOTE_TOKENS = 12

# Scripts written without spaces (Thai to Khmer, kana, Han, full-width forms).
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff00-\uffef\U00020000-\U0003134f"
)
_TOKEN = re.compile(rf"\s*(?:[{_UNSPACED}]{{1,2}}|[^\s{_UNSPACED}]+)")
_ENDS_UNSPACED = re.compile(rf"[{_UNSPACED}]”?\Z")
# Full-width stops need no space behind them, but a closing quote belongs to the sentence.
_SENTENCE_END = re.compile(
    r"(?<=[\u3002\uff01\uff1f])(?![\u3002\uff01\uff1f\u300d\u300f\u2019\u201d])"
    r"|(?<=[.!?…؟।])\s+|\n+"
)
_MACRO = re.compile(r"\{\{[^{}]*\}\}|<(?:user|char|bot|start)>", re.IGNORECASE)
_REMARK = re.compile(r"\s*\[[^\[\]]*\]\s*")
_DIRECTIVE = re.compile(r"\[demo:([^\]]*)\]", re.IGNORECASE)

_FAULTS: dict[str, tuple[ErrorCode, bool]] = {
    "refused": ("REFUSED", False),
    "rate_limited": ("RATE_LIMITED", True),
    "timed_out": ("TIMED_OUT", True),
    "unreachable": ("UNREACHABLE", True),
    "malformed_stream": ("MALFORMED_STREAM", True),
    "model_not_found": ("MODEL_NOT_FOUND", False),
    "context_too_long": ("CONTEXT_TOO_LONG", False),
    "provider_error": ("PROVIDER_ERROR", True),
}
_SILENCE = "silence"


class DemoProvider:
    """Prose put together from the character's own sentences and the user's last message.

    This is no language model: it understands nothing, it quotes. The order of the sentences comes
    from `Request.seed`, so equal requests get equal answers. `Request.model` is not looked at; the
    answer always names "demo-prose". A token is a word, or two characters of a script without
    spaces. Card macros are neither expanded nor repeated.

    A directive in the user's last message scripts the answer:
    `[demo: rate=200 length=400 fault=rate_limited after=20]`

    - `rate`: tokens per second, 0 as fast as possible;
    - `length`: tokens of text, at most 10,000;
    - `fault`: refused, rate_limited, timed_out, unreachable, malformed_stream, model_not_found,
      context_too_long or provider_error raise that error; `silence` sends nothing more, until the
      time-out of the settings ends it;
    - `after`: tokens of text before the fault, by default 0, which is before everything.

    What is to be translated comes back with the language before it, as the JSON list that is asked
    for; directives in the texts are heard, `length` is not.

    Words it does not know are ignored. Neither the directive nor a message that is wholly in
    brackets, which is a remark to the model and nothing that was said, is quoted.
    """

    name = "demo"
    default_model = _DEFAULT_MODEL

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings

    def stream(self, request: Request) -> AsyncGenerator[Part, None]:
        """See Provider."""
        return with_deadlines(
            self._parts(request),
            first=self._settings.first_token_timeout,
            silence=self._settings.silence_timeout,
        )

    async def close(self) -> None:
        """See Provider; there is nothing to close."""

    async def _parts(self, request: Request) -> AsyncGenerator[Part, None]:
        said = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
        wish = _read_directives(said)
        rate = self._settings.demo_rate if wish.rate is None else wish.rate
        pace = _Pace(rate)
        if request.to_translate is not None:
            reasoning, text = [], _tokens(_translations(request.to_translate))
        else:
            reasoning = _tokens(_thought(request.character))
            text = _prose(request, _quote(_spoken(_DIRECTIVE.sub("", said))), wish.length)
        is_cut = request.max_tokens is not None and request.max_tokens < len(text)
        if is_cut:
            text = text[: request.max_tokens]

        if wish.fault and wish.after == 0:
            await _fail(wish.fault)
        for token in reasoning:
            await pace.wait()
            yield TextPart("reasoning", token)
        for count, token in enumerate(text):
            if wish.fault and count == wish.after:
                await _fail(wish.fault)
            await pace.wait()
            yield TextPart("text", token)
        if wish.fault:
            await _fail(wish.fault)
        usage = Usage(
            sum(len(_tokens(message.text)) for message in request.messages),
            len(reasoning) + len(text),
            len(reasoning),
        )
        yield Finished("length" if is_cut else "stop", usage, _DEFAULT_MODEL)


def build(settings: ProviderSettings) -> Provider:
    """The demo provider; of the settings it needs the rate and the time-outs."""
    return DemoProvider(settings)


@dataclass(slots=True)
class _Wish:
    rate: float | None = None
    length: int | None = None
    fault: str | None = None
    after: int = 0


def _read_directives(text: str) -> _Wish:
    wish = _Wish()
    for directive in _DIRECTIVE.findall(text):
        for word in directive.lower().split():
            name, _, value = word.partition("=")
            if name == "rate":
                rate = _number(value)
                wish.rate = wish.rate if rate is None else rate
            elif name == "length" and _is_count(value):
                wish.length = min(max(int(value), 1), _LONGEST_ASKED_FOR)
            elif name == "after" and _is_count(value):
                wish.after = int(value)
            elif name == "fault" and (value in _FAULTS or value == _SILENCE):
                wish.fault = value
    return wish


def _is_count(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) < 10


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


async def _fail(fault: str) -> None:
    if fault == _SILENCE:
        await asyncio.Event().wait()
    code, retryable = _FAULTS[fault]
    if code == "REFUSED":
        raise failures.refusal()
    raise ProviderError(
        code,
        f'The demo provider was asked for the fault "{fault}". Leave out the directive.',
        retryable=retryable,
    )


class _Pace:
    """Spreads tokens evenly; a reader who stalls gets no burst afterwards."""

    def __init__(self, rate: float) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._due = 0.0

    async def wait(self) -> None:
        now = asyncio.get_running_loop().time()
        self._due = max(now, self._due)
        # Even without a delay other tasks must get their turn.
        await asyncio.sleep(self._due - now)
        self._due += self._interval


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _without_macros(text: str) -> str:
    count = 1
    while count:
        text, count = _MACRO.subn("", text)
    return text.replace("{{", "").replace("}}", "")


def _sentences(text: str) -> list[str]:
    pieces = (" ".join(piece.split()) for piece in _SENTENCE_END.split(text))
    return [piece for piece in pieces if any(c.isalnum() for c in piece)]


def _is_plain(sentence: str) -> bool:
    return sentence == _without_macros(sentence)


def _sheet_sentences(sheet: CharacterSheet) -> list[str]:
    """The character's sentences without repetition, those with a macro only if there are no others.

    A sentence from which a macro is taken reads badly.
    """
    plain = [s for text in sheet.texts for s in _sentences(text) if _is_plain(s)]
    mended = plain or [s for text in sheet.texts for s in _sentences(_without_macros(text))]
    return list(dict.fromkeys(mended)) or [
        "This is the built-in demo provider.",
        "It is no language model.",
        f"Describe {_name(sheet)}, and it will quote the description.",
    ]


def _name(sheet: CharacterSheet) -> str:
    return " ".join(_without_macros(sheet.name).split()) or "the character"


def _thought(sheet: CharacterSheet) -> str:
    return f"Demo, no language model: {_name(sheet)} answers in sentences of the character sheet."


def _spoken(said: str) -> str:
    return "" if _REMARK.fullmatch(said) else said


def _quote(said: str) -> str:
    first = next(iter(_sentences(_without_macros(said))), "")
    tokens = _tokens(first)
    kept = "".join(tokens[:_QUOTE_TOKENS]).rstrip()
    return kept + "…" if len(tokens) > _QUOTE_TOKENS else kept


def _prose(request: Request, quote: str, length: int | None) -> list[str]:
    """The tokens of the answer: exactly `length`, or as many as whole sentences come to."""
    draw = random.Random(request.seed)
    least = length or draw.randint(_SHORTEST, _LONGEST // 2)
    pieces = _endless(_sheet_sentences(request.character), draw)
    text = f"“{quote}”" if quote else next(pieces)
    tokens = _tokens(text)
    left_in_paragraph = draw.randint(2, 5)
    while len(tokens) < least:
        left_in_paragraph -= 1
        if left_in_paragraph < 0:
            gap, left_in_paragraph = "\n\n", draw.randint(2, 5)
        else:
            gap = "" if _ENDS_UNSPACED.search(text) else " "
        text = next(pieces)
        tokens += _tokens(gap + text)
    return tokens[: length or _LONGEST]


def _translations(asked: TextsToTranslate) -> str:
    said = [
        {"n": number, "text": f"[{asked.language}] {text}"}
        for number, text in enumerate(asked.texts, start=1)
    ]
    return json.dumps(said, ensure_ascii=False)


def _endless(sentences: list[str], draw: random.Random) -> Iterator[str]:
    while True:
        yield from draw.sample(sentences, len(sentences))
