"""What is asked for, how much it counts, and the numbers that a story sets."""

from __future__ import annotations

import pytest

from db.enums import QuerySlot, SearchKind, StoryMode
from services.retrieval.buffer import buffer_length
from services.retrieval.parameters import Parameters, parameters_of
from services.retrieval.queries import blended, digest_of, query_stack, shares_of
from services.shapes import loaded_settings

ACTION, DIGEST = QuerySlot.ACTION, QuerySlot.DIGEST
SUMMARY, DIRECT = QuerySlot.SUMMARY, QuerySlot.DIRECT
WEIGHTS = Parameters().weights


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ([ACTION], [1.0]),
        ([ACTION, DIGEST], [0.5455, 0.4545]),
        ([ACTION, DIGEST, SUMMARY], [0.4, 0.3333, 0.2667]),
        ([ACTION, DIRECT], [0.5455, 0.4545]),
        ([ACTION, DIRECT, DIRECT, DIRECT], [0.5455, 0.4545]),
        ([ACTION, DIGEST, SUMMARY, DIRECT], [0.3, 0.25, 0.2, 0.25]),
        ([], []),
    ],
)
def test_the_shares_of_absent_slots_go_to_the_others(
    slots: list[QuerySlot], expected: list[float]
) -> None:
    """Rule B103."""
    shares = shares_of(slots, WEIGHTS)
    assert [round(each, 4) for each in shares.values()] == expected


def test_several_direct_queries_count_as_one() -> None:
    """Rule B103."""
    alone = blended([ACTION, DIRECT], [0.2, 0.6], WEIGHTS)
    several = blended([ACTION, DIRECT, DIRECT, DIRECT], [0.2, 0.3, 0.6, 0.9], WEIGHTS)
    assert round(alone, 4) == round(several, 4) == 0.3818


def test_a_query_without_a_vector_is_absent_and_not_unlike() -> None:
    """Rule B103."""
    assert blended([ACTION, DIGEST], [0.4, None], WEIGHTS) == 0.4
    assert round(blended([ACTION, DIGEST], [0.4, 0.0], WEIGHTS), 4) == 0.2182
    assert blended([ACTION], [None], WEIGHTS) == 0


def test_the_stack_has_up_to_six_texts() -> None:
    """Rules B101, B102."""
    stack = query_stack(
        "  I look.  ", "Mira.", "s" * 300, ["", "a" * 250, "a" * 250, "b", "c", "d", " "]
    )
    assert [(each.slot, each.text) for each in stack] == [
        (ACTION, "I look."),
        (DIGEST, "Mira."),
        (SUMMARY, "s" * 200),
        (DIRECT, "a" * 200),
        (DIRECT, "b"),
        (DIRECT, "c"),
    ]
    assert query_stack("   ", "", "", []) == []


@pytest.mark.parametrize(
    ("scene", "threads", "era", "expected"),
    [
        (
            ["Mira", "Quay"],
            ["The debt", "The fog"],
            "Second Age",
            "Mira, Quay.\nActive threads: The debt, The fog\nEra: Second Age",
        ),
        (["Mira"], [], None, "Mira."),
        ([], ["The debt"], None, "Active threads: The debt"),
        ([], [], "Second Age", "Era: Second Age"),
        ([], [], None, ""),
    ],
)
def test_a_digest_leaves_out_lines_with_nothing_in_them(
    scene: list[str], threads: list[str], era: str | None, expected: str
) -> None:
    """Rule B101."""
    assert digest_of(scene, threads, era) == expected


@pytest.mark.parametrize(
    ("size", "partial", "protected", "is_full", "expected"),
    [
        (2, 10, 10, False, 10),
        (10, 10, 10, False, 10),
        (50, 10, 10, False, 10),
        (12, 20, 10, False, 12),
        (2, 10, 10, True, 10),
        (50, 10, 10, True, 50),
        (0, 0, 0, False, 0),
    ],
)
def test_a_prompt_carries_the_open_chapter_and_no_less_than_is_protected(
    size: int, partial: int, protected: int, is_full: bool, expected: int
) -> None:
    """Rule B104."""
    parameters = Parameters(
        partial_buffer=partial, protected_buffer=protected, is_full_chapter=is_full
    )
    assert buffer_length(size, parameters) == expected


def test_the_settings_of_a_story_are_its_parameters() -> None:
    """Rule B100."""
    defaults = parameters_of(loaded_settings({}, StoryMode.ADVENTURE))
    assert defaults == Parameters()
    chosen = {
        "retrievalBudgets": {"lore": 7},
        "keywordRetrieval": {"mode": "inject", "cascade": True, "scanEntries": 3},
        "fullChapterInBuffer": True,
    }
    ours = parameters_of(loaded_settings(chosen, StoryMode.ADVENTURE))
    assert (ours.injects, ours.cascade_depth, ours.scanned_entries) == (True, 2, 3)
    assert (ours.budgets[SearchKind.LORE], ours.budgets[SearchKind.ENTITY]) == (7, 1200)
    assert (ours.is_full_chapter, ours.injected_share) == (True, 0.5)


def test_the_numbers_are_those_of_the_rules() -> None:
    """Rule B100."""
    assert Parameters().as_json() == {
        "weights": {"action": 0.3, "digest": 0.25, "summary": 0.2, "direct": 0.25},
        "fades": {"chapter": 0, "entity": 0.025, "lore": 0, "thread": 0.025, "happening": 0.07},
        "pin_factors": {"chapter": 0, "entity": 0, "lore": 0.25, "thread": 0, "happening": 0},
        "pins": {},
        "keyword_bonus": 0.1,
        "revival": 0.85,
        "chapter_boost": 1.3,
        "score_floor": 0.15,
        "diversity": 0.75,
        "pre_filter": 200,
        "neighbours": 200,
        "overheads": {"chapter": 4, "entity": 11, "lore": 4, "thread": 4, "happening": 5},
        "budgets": {"chapter": 600, "entity": 1200, "lore": 1800, "thread": 400, "happening": 1500},
        "injects": False,
        "injected_share": 0.5,
        "scanned_entries": 1,
        "cascade_depth": 0,
        "is_full_chapter": False,
        "partial_buffer": 10,
        "protected_buffer": 10,
    }  # fmt: skip
    assert Parameters.from_json(Parameters().as_json()) == Parameters()
