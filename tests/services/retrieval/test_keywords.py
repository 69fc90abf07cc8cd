"""Keywords: where they stand in a text, and whom they seat."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.enums import SearchKind
from services.retrieval.keywords import Keyed, Surface, injected, names_within

ENTITY, LORE = SearchKind.ENTITY, SearchKind.LORE


@pytest.mark.parametrize(
    ("keyword", "text", "is_there"),
    [
        ("fog", "The FOG rises.", True),
        ("FOG", "the fog", True),
        ("fog", "a foghorn", False),
        ("fog", "fog_horn", False),
        ("fog", "fog2", False),
        ("fog", "foghorn in the fog", True),
        ("old quay", "At the Old Quay, late", True),
        ("c++ (old)", "He wrote C++ (old) there.", True),
        (".*", "anything", False),
        ("straße", "In der STRASSE", False),
        ("école", "L'E\u0301COLE est close", True),
        ("туман", "Старый Туман сел", True),
        ("ман", "туман", False),
        ("灯台", "古い灯台守がいる", True),
        ("灯", "古い灯台守", False),
        ("灯", "灯 が", True),
        ("안개", "짙은안개가", True),
        ("灯 台", "古い灯 台守", False),
        ("灯a", "古い灯ab", False),
        ("", "anything", False),
        ("   ", "any   thing", False),
    ],
)
def test_keywords_are_whole_words_or_anywhere_where_there_are_no_blanks(
    keyword: str, text: str, is_there: bool
) -> None:
    """Rules B120, B121."""
    assert Surface(text).has(keyword) is is_there


def keyed(id: str, keyword: str, **values: Any) -> Keyed:
    rest = {"kind": LORE, "priority": 50, "text": "", "tokens": 10, **values}
    return Keyed(id=id, name=id.upper(), keywords=(keyword,), **rest)


def seated(rows: list[Keyed], text: str, depth: int = 0, **budgets: int) -> list[tuple[str, int]]:
    by_kind = {SearchKind(kind): budget for kind, budget in budgets.items()}
    return [(each.id, each.depth) for each in injected(rows, Surface(text), by_kind, 0.5, depth)]


def test_keywords_seat_by_priority_then_name_up_to_their_share() -> None:
    """Rule B122."""
    rows = [
        keyed("c", "fog"),
        keyed("b", "fog"),
        keyed("a", "fog", priority=10),
        keyed("big", "fog", priority=90, tokens=21),
        keyed("z", "fog", priority=90),
        keyed("e", "fog", kind=ENTITY),
        keyed("not", "sun"),
    ]
    assert seated(rows, "fog", lore=40, entity=30) == [("z", 0), ("b", 0), ("e", 0)]
    assert seated(rows, "fog", lore=0, entity=0) == []
    assert seated(rows, "rain", lore=1000, entity=1000) == []


def test_the_texts_of_seated_rows_are_scanned_as_deep_as_is_said() -> None:
    """Rule B123."""
    rows = [
        keyed("a", "fog", text="It hides the wreck.", priority=0),
        keyed("b", "wreck", text="The bell rings.", priority=99),
        keyed("c", "bell", text="", kind=ENTITY),
        # Does not fit, so its text is never scanned.
        keyed("d", "fog", text="The crown.", tokens=999),
        keyed("e", "crown"),
    ]
    budgets = {"lore": 100, "entity": 100}
    assert seated(rows, "fog", 0, **budgets) == [("a", 0)]
    assert seated(rows, "fog", 1, **budgets) == [("a", 0), ("b", 1)]
    assert seated(rows, "fog", 2, **budgets) == [("a", 0), ("b", 1), ("c", 2)]
    # What is found later draws on the same share, however important it is.
    assert seated(rows, "fog", 2, lore=20, entity=100) == [("a", 0)]


def test_a_source_counts_where_it_names_somebody_who_is_spoken_of() -> None:
    """Rule B124."""
    are_named = names_within(["Mira", "Kell"], Surface("I ask Mira."))
    assert are_named(["heard from Mira at the quay"])
    assert not are_named(["heard from Kell"])
    assert not are_named([])


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 30), st.sampled_from([ENTITY, LORE])),
        max_size=12,
    ),
    st.integers(0, 100),
    st.integers(0, 3),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_keywords_never_take_more_than_their_share_nor_seat_a_row_twice(
    rows: list[Any], budget: int, depth: int, data: st.DataObject
) -> None:
    """Rules B122, B123."""
    pool = [
        keyed(f"k{n}", f"k{n // 2}", priority=p, tokens=t, kind=k, text=f"k{n}")
        for n, (p, t, k) in enumerate(rows)
    ]
    budgets = {ENTITY: budget, LORE: budget}
    found = injected(pool, Surface("k0 k1"), budgets, 0.5, depth)
    assert len({each.id for each in found}) == len(found)
    for kind in budgets:
        assert sum(each.tokens for each in found if each.kind is kind) <= budget * 0.5
    again = injected(data.draw(st.permutations(pool)), Surface("k0 k1"), budgets, 0.5, depth)
    assert again == found
