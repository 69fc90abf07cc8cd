from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tokens import UNDERESTIMATE, estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("word", 1),
        ("words", 2),
        ("The quick brown fox jumps over the lazy dog", 11),
        ("12345678", 4),
        ("{}[]", 2),
        ("Привет", 3),
        ("café", 2),
        ("你好世界", 4),
        ("こんにちは", 5),
        ("안녕", 2),
        ("😀", 1),
        ("a\n b", 1),
        ("\ud800", 1),
    ],
)
def test_estimates(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text())
def test_no_model_makes_more_of_a_text_than_so_many_times_its_estimate(text: str) -> None:
    """Rule R27. None makes more tokens than there are bytes."""
    assert len(text.encode()) <= UNDERESTIMATE * estimate_tokens(text)


@given(st.text(), st.text())
def test_a_text_is_never_more_than_its_parts_nor_less_than_one_of_them(
    one: str, other: str
) -> None:
    """So a sum over parts is never less than what they come to when joined."""
    whole = estimate_tokens(one + other)
    assert max(estimate_tokens(one), estimate_tokens(other)) <= whole
    assert whole <= estimate_tokens(one) + estimate_tokens(other)
