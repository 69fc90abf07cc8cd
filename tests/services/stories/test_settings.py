"""Settings of stories: patches, defaults, and what new stories begin with."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.enums import StoryMode
from services.errors import Invalid
from services.shapes import (
    DEFAULT_SUGGESTION_CATEGORIES,
    DefaultStorySettings,
    StorySettings,
    SuggestionPalettes,
    checked_json,
    default_settings,
    loaded_settings,
    merged,
    stored_settings,
)

NULL = st.none()
PALETTE = DEFAULT_SUGGESTION_CATEGORIES[StoryMode.ADVENTURE]
MODEL = st.fixed_dictionaries({"providerId": st.just("p"), "modelId": st.sampled_from("ab")})
PATCHES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "suggestionCount": NULL | st.integers(1, 6),
        "chapterAutoClose": NULL | st.booleans(),
        "composerWrapPov": NULL | st.sampled_from(["first", "third"]),
        "activePackId": NULL | st.just("pack_1"),
        "packVariables": NULL
        | st.dictionaries(st.sampled_from("ab"), st.none() | st.integers() | st.lists(st.none())),
        "suggestionCategories": NULL | st.lists(st.sampled_from(PALETTE), unique_by=str),
        "models": NULL
        | st.fixed_dictionaries(
            {}, optional={"narrative": NULL | MODEL, "lore-mgmt": NULL | MODEL}
        ),
        "keywordRetrieval": NULL
        | st.fixed_dictionaries(
            {},
            optional={
                "mode": NULL | st.sampled_from(["boost", "inject"]),
                "budgetShare": NULL | st.floats(0, 1),
            },
        ),
        "translation": NULL
        | st.fixed_dictionaries(
            {},
            optional={
                "targetLanguage": NULL | st.sampled_from(["de", "ja"]),
                "granularToggles": NULL
                | st.fixed_dictionaries({}, optional={"lore": NULL | st.booleans()}),
            },
        ),
    },
)
MODES = st.sampled_from(StoryMode)


def patched(stored: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return merged(StorySettings, stored, patch, "input", "settings")


@given(MODES, PATCHES, PATCHES)
def test_a_patch_done_twice_is_the_patch(
    mode: StoryMode, first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Rule B15."""
    stored = patched(stored_settings(default_settings(mode)), first)
    once = patched(stored, second)
    assert patched(once, second) == once
    # What was left out stays.
    assert {key: value for key, value in once.items() if key not in second} == {
        key: value for key, value in stored.items() if key not in second
    }


@given(MODES, PATCHES)
def test_null_goes_back_to_the_default(mode: StoryMode, patch: dict[str, Any]) -> None:
    """Rules B8, B15."""
    server = default_settings(mode)
    stored = patched(stored_settings(server), patch)
    loaded = loaded_settings(stored, mode)
    assert loaded.keys() == server.keys()
    back = patched(stored, dict.fromkeys(patch))
    assert loaded_settings(back, mode) == server


@given(PATCHES)
def test_no_default_is_written_into_what_new_stories_begin_with(patch: dict[str, Any]) -> None:
    """Rule B7."""
    known = {key: value for key, value in patch.items() if key in DefaultStorySettings.model_fields}
    kept = merged(DefaultStorySettings, {}, known, "input", "defaultStorySettings")
    assert kept.keys() == {key for key, value in known.items() if value is not None}


@pytest.mark.parametrize(
    ("patch", "where"),
    [
        ({"colour": 1}, ("colour",)),
        ({"keywordRetrieval": {"colour": 1}}, ("keywordRetrieval", "colour")),
        (
            {"translation": {"granularToggles": {"x": True}}},
            ("translation", "granularToggles", "x"),
        ),
        ({"translation": 5}, ("translation",)),
        ({"translation": {"targetLanguage": "German"}}, ("translation", "targetLanguage")),
        ({"keywordRetrieval": {"budgetShare": 1.1}}, ("keywordRetrieval", "budgetShare")),
        ({"retrievalBudgets": {"lore": -1}}, ("retrievalBudgets", "lore")),
        ({"chapterTokenThreshold": 0}, ("chapterTokenThreshold",)),
        ({"chapterAutoClose": 1}, ("chapterAutoClose",)),
        ({"models": {"narrative": {"modelId": "m"}}}, ("models", "narrative", "providerId")),
        ({"suggestionCategories": [PALETTE[0], PALETTE[0]]}, ("suggestionCategories",)),
    ],
    ids=str,
)
def test_what_is_no_setting_is_told_where(patch: dict[str, Any], where: tuple[Any, ...]) -> None:
    """Rule B15."""
    for stored in ({}, stored_settings(default_settings(StoryMode.ADVENTURE))):
        with pytest.raises(Invalid) as refusal:
            patched(stored, patch)
        assert (refusal.value.code, refusal.value.path) == (
            "INVALID_SHAPE",
            ("input", "settings", *where),
        )


@pytest.mark.parametrize("mode", StoryMode)
def test_the_servers_defaults_are_settings(mode: StoryMode) -> None:
    """Rule B8."""
    checked_json(StorySettings, stored_settings(default_settings(mode)), "settings")
    checked_json(SuggestionPalettes, {str(mode): DEFAULT_SUGGESTION_CATEGORIES[mode]}, "palettes")
