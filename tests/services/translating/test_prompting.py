"""What a model is given to translate at once, and how its answer is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.providers import ProviderSettings, TextPart, make_provider
from services.text import MAX_TEXT
from services.tokens import estimate_tokens
from services.translating.prompting import (
    MAX_TEXTS,
    MAX_TOKENS,
    TEXT_TOKENS,
    batches,
    most_tokens,
    read_answer,
    request_to_translate,
)
from services.translations import UntranslatedText

ONE = {"n": 1, "text": "un"}
TWO = {"n": 2, "text": "deux"}


def texts(*written: str) -> list[UntranslatedText]:
    return [
        UntranslatedText(0, "br_1", f"char_{number}", "name", text)
        for number, text in enumerate(written)
    ]


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (json.dumps([ONE, TWO]), ["un", "deux"]),
        (json.dumps([TWO, ONE]), ["un", "deux"]),
        (f"```json\n{json.dumps([ONE])}\n```\n", ["un", None]),
        (f"```\n{json.dumps([ONE], indent=1)}```", ["un", None]),
        ("[]", [None, None]),
        (json.dumps([ONE, TWO, ONE]), [None, "deux"]),
        (json.dumps([{"n": 1}, {"n": 2, "text": None}]), [None, None]),
        (json.dumps([{"n": 1, "text": " \n"}, {"n": 2, "text": ["deux"]}]), [None, None]),
        (json.dumps([{"n": 1, "text": " u\0n\n", "of": "x"}]), ["un", None]),
        (json.dumps([{"n": 1, "text": "x" * (MAX_TEXT + 1)}, TWO]), [None, "deux"]),
        ("", None),
        ("un, deux", None),
        (json.dumps(ONE), None),
        (json.dumps([ONE])[:-1], None),
        (f"Here you are: {json.dumps([ONE])}", None),
        (json.dumps([ONE, {"n": 3, "text": "x"}]), None),
        (json.dumps([{"n": 0, "text": "x"}]), None),
        (json.dumps([{"n": True, "text": "x"}]), None),
        (json.dumps([{"n": "1", "text": "x"}]), None),
        (json.dumps(["un", "deux"]), None),
        ("[" * 100_000, None),
    ],
    ids=range(21),
)
def test_an_answer_is_read_strictly(answer: str, read: list[str | None] | None) -> None:
    """Rule V13."""
    assert read_answer(answer, 2) == read


@given(
    st.lists(st.integers(0, 9_000).map(lambda length: "a" * length), max_size=60),
    st.integers(600, 20_000),
)
def test_calls_have_all_texts_in_their_order_and_room_for_the_answer(
    written: list[str], budget: int
) -> None:
    """Rule V13."""
    asked = texts(*written)
    made = list(batches(asked, budget))
    assert [each for batch in made for each in batch] == asked
    most = min(MAX_TOKENS, most_tokens(budget))
    for batch in made:
        assert 1 <= len(batch) <= MAX_TEXTS
        tokens = sum(estimate_tokens(each.text) + TEXT_TOKENS for each in batch)
        assert len(batch) == 1 or tokens <= most


async def test_the_built_in_provider_answers_what_is_asked() -> None:
    """Rule V13. And may be told to fail by the texts, as by questions."""
    provider = make_provider(ProviderSettings("demo", demo_rate=0))
    written = ("Mira", 'She said: "No."\nThen  she left.', "灯 が \u3000消えた。", "e\u0301")
    request = request_to_translate("ja", texts(*written), None, 1)
    parts = [part async for part in provider.stream(request)]
    answer = "".join(part.text for part in parts if isinstance(part, TextPart))
    assert read_answer(answer, len(written)) == [f"[ja] {each}" for each in written]
    assert [message.role for message in request.messages] == ["system", "user"]
    assert '"ja"' in request.messages[0].text
    assert json.loads(request.messages[1].text)[0] == {"n": 1, "of": "entity name", "text": "Mira"}
    failing = request_to_translate("ja", texts("[demo: fault=rate_limited]"), None, 1)
    with pytest.raises(Exception, match="rate_limited"):
        async for _ in provider.stream(failing):
            pass
