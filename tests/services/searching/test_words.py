"""The words of texts and of queries, in every script."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import SearchKind
from services.searching import folded, query_of, words_in
from services.searching.ranking import Match, fused, worth

NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N", "M"]), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Café, twice: CAFÉ!", ["cafe", "the", "twice"]),
        ("Ёлка стоит", ["елка", "стоит"]),
        ("Straße", ["strasse"]),
        ("長谷川", ["川", "谷", "谷川", "長", "長谷"]),
        ("ガラス", ["ガ", "ガラ", "ス", "ラ", "ラス"]),
        ("ｶﾞﾗｽ", ["ガ", "ガラ", "ス", "ラ", "ラス"]),
        ("미라는", ["는", "라", "라는", "미", "미라"]),
        ("علي Tokyo東", ["tokyo", "علي", "東"]),
        ("ミラ・ベル", ["ベ", "ベル", "ミ", "ミラ", "ラ", "ル"]),
        ("कर्म", ["कर्म"]),
        ("… — !?", []),
        ("x" * 70, ["x" * 64]),
    ],
)
def test_a_text_has_words(text: str, words: list[str]) -> None:
    """Rules B70, B71."""
    assert words_in(text) == words


@settings(max_examples=60, deadline=None)
@given(NAMES, st.text(max_size=20), st.text(max_size=20))
def test_a_text_is_found_by_every_name_in_it(name: str, before: str, behind: str) -> None:
    """Rules B71, B72."""
    text = f"{before}\n{name}\n{behind}"
    words = set(words_in(text))
    assert words >= set(words_in(name))
    query = query_of(name)
    assert all(each.is_found(words, folded(text)) for each in query.wanted)
    assert set(query.words) <= words


@pytest.mark.parametrize(
    ("query", "text", "is_found"),
    [
        ("長谷川", "昨日長谷川に会った", True),
        # Both halves of the name are there, but not the name.
        ("長谷川", "長谷と谷川", False),
        ("谷川", "長谷川", True),
        ("川", "長谷川", True),
        ("灯台の鍵を持つのは誰", "彼女は灯台の鍵を持つ", True),
        ("灯台の鍵を持つのは誰", "灯台", False),
        ("mira", "Míra!", True),
        ("mir", "Mira", False),
    ],
)
def test_short_names_stand_there_whole_and_half_of_a_sentence_is_enough(
    query: str, text: str, is_found: bool
) -> None:
    """Rule B72."""
    words = set(words_in(text))
    assert any(e.is_found(words, folded(text)) for e in query_of(query).wanted) is is_found


def test_a_query_looks_for_two_hundred_words_at_most() -> None:
    """Rule B72."""
    assert len(query_of(" ".join(map(str, range(500)))).words) == 200
    assert len(query_of("".join(map(chr, range(0x4E00, 0x4F00)))).words) == 200


def match(row_id: str, *words: str, is_name: bool = False, length: int = 10) -> Match:
    return Match(SearchKind.LORE, row_id, is_name, frozenset(words), length)


def test_rare_words_names_and_short_texts_count_more() -> None:
    """Rule B74."""
    scores = worth(
        [
            match("common", "fog"),
            match("rare", "oil"),
            match("name", "fog", is_name=True),
            match("long", "fog", length=900),
        ],
        10,
    )
    order = sorted(scores, key=lambda key: -scores[key])
    assert [row_id for _, row_id in order] == ["name", "rare", "common", "long"]


def test_two_orders_are_joined_by_places() -> None:
    """Rule B75."""
    one, two = (SearchKind.LORE, "1"), (SearchKind.LORE, "2")
    assert fused([one, two], [two]) == {one: 1 / 61, two: 1 / 62 + 1 / 61}
