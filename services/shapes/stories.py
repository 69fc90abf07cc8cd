"""What a story is and how it is written: the JSON of its definition and of its settings.

A definition has no defaults: all of it is somebody's choice. Settings have defaults, here and
nowhere else. They are put in when a story is read, so that stories of earlier servers have them
too. Keys are spelled as the specification spells them.
Source: spec aventuras, story settings shape; scope policy; default suggestion categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from db.enums import Narration, StoryMode
from services.shapes.entries import ABSENT
from services.shapes.nodes import shape_of
from services.shapes.payloads import overlay

MAX_PALETTE = 30

Line = Annotated[str, StringConstraints(max_length=500)]
Prose = Annotated[str, StringConstraints(max_length=50_000)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Tokens = Annotated[int, Field(ge=0, le=10_000_000)]
Entries = Annotated[int, Field(ge=0, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Style(_Closed):
    """A genre or a tone."""

    label: Line
    promptBody: Prose


class Definition(_Closed):
    """What a story is. Whether it needs a lead, and fits its calendar, is asked elsewhere."""

    mode: Literal["adventure", "creative"]
    leadEntityId: str | None
    narration: Literal["first", "second", "third"]
    genre: Style
    tone: Style
    setting: Prose
    calendarSystemId: Key
    worldTimeOrigin: dict[str, int]


def needs_lead(definition: Mapping[str, Any]) -> bool:
    """Whether somebody must be the lead: adventures, and what is told as I or you."""
    return definition["mode"] == StoryMode.ADVENTURE or definition["narration"] in (
        Narration.FIRST,
        Narration.SECOND,
    )


class SuggestionCategory(_Closed):
    """A kind of suggestion of what to do next; its id is unique within its palette."""

    id: Key
    label: Line
    promptHint: Annotated[str, StringConstraints(max_length=2_000)]
    # A name of the front end's palette, or #rrggbb.
    color: Annotated[str, StringConstraints(max_length=40)]
    enabled: bool
    order: Annotated[int, Field(ge=0, le=1_000)]


Palette = Annotated[list[SuggestionCategory], Field(max_length=MAX_PALETTE)]


def _distinct(palette: list[SuggestionCategory]) -> list[SuggestionCategory]:
    if len({each.id for each in palette}) < len(palette):
        raise ValueError("two categories have the same id")
    return palette


class SuggestionPalettes(_Closed):
    """A palette for each mode: what new stories begin with."""

    adventure: Palette = Field(default=ABSENT)
    creative: Palette = Field(default=ABSENT)

    _are_distinct = field_validator("adventure", "creative")(_distinct)


class RetrievalBudgets(_Closed):
    """Tokens for what is retrieved, by type."""

    entities: Tokens = Field(default=ABSENT)
    lore: Tokens = Field(default=ABSENT)
    happenings: Tokens = Field(default=ABSENT)
    threads: Tokens = Field(default=ABSENT)
    chapters: Tokens = Field(default=ABSENT)


class KeywordRetrieval(_Closed):
    """What a keyword does that is found in the text."""

    mode: Literal["boost", "inject"] = Field(default=ABSENT)
    budgetShare: Share = Field(default=ABSENT)
    scanEntries: Entries = Field(default=ABSENT)
    cascade: bool = Field(default=ABSENT)
    cascadeMaxDepth: Annotated[int, Field(ge=0, le=10)] = Field(default=ABSENT)


class TranslationToggles(_Closed):
    """What is translated."""

    narrative: bool = Field(default=ABSENT)
    entityNames: bool = Field(default=ABSENT)
    entityDescriptions: bool = Field(default=ABSENT)
    lore: bool = Field(default=ABSENT)
    threads: bool = Field(default=ABSENT)
    happenings: bool = Field(default=ABSENT)
    chapterMeta: bool = Field(default=ABSENT)


class TranslationSettings(_Closed):
    """Whether and into which language a story is translated."""

    enabled: bool = Field(default=ABSENT)
    # Null where it is read and none was chosen.
    targetLanguage: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}$")] = Field(default=ABSENT)
    granularToggles: TranslationToggles = Field(default=ABSENT)


class DefaultStorySettings(_Closed):
    """What new stories begin with where their owner has said so. What is absent here follows the
    server's defaults when a story is made, also those of a later server: no default is written in.
    """

    chapterTokenThreshold: Annotated[int, Field(ge=1, le=10_000_000)] = Field(default=ABSENT)
    chapterAutoClose: bool = Field(default=ABSENT)
    fullChapterInBuffer: bool = Field(default=ABSENT)
    partialChapterBuffer: Entries = Field(default=ABSENT)
    protectedBuffer: Entries = Field(default=ABSENT)
    classifierCadence: Annotated[int, Field(ge=1, le=10_000)] = Field(default=ABSENT)
    # A user's action and the reply are what facts are taken from.
    classifierContextEntries: Annotated[int, Field(ge=2, le=10_000)] = Field(default=ABSENT)
    piggybackMode: Literal["on", "off"] = Field(default=ABSENT)
    classifierMentionedPlaces: bool = Field(default=ABSENT)
    retrievalBudgets: RetrievalBudgets = Field(default=ABSENT)
    keywordRetrieval: KeywordRetrieval = Field(default=ABSENT)
    probe_mode_active: bool = Field(default=ABSENT)
    composerModesEnabled: bool = Field(default=ABSENT)
    composerWrapPov: Literal["first", "third"] = Field(default=ABSENT)
    suggestionsEnabled: bool = Field(default=ABSENT)
    suggestionCount: Annotated[int, Field(ge=1, le=6)] = Field(default=ABSENT)
    translation: TranslationSettings = Field(default=ABSENT)


class ModelRef(_Closed):
    """A model of a provider."""

    providerId: Key
    modelId: Key


class ModelOverrides(_Closed):
    """Models of one story; what is absent is found by the user's profiles when it is used."""

    narrative: ModelRef = Field(default=ABSENT)
    classifier: ModelRef = Field(default=ABSENT)
    translation: ModelRef = Field(default=ABSENT)
    suggestion: ModelRef = Field(default=ABSENT)
    lore_mgmt: ModelRef = Field(default=ABSENT, alias="lore-mgmt")
    retrieval: ModelRef = Field(default=ABSENT)


class StorySettings(DefaultStorySettings):
    """How a story is written. As stored it may lack any key; `loaded_settings` has them all, but
    those that have no default: embedding_…, effectiveDim. Who embeds from when on is marked by
    `embedding_swap_…`, which `services/embedding` alone writes.
    """

    embeddingBackend: Literal["provider", "local"] = Field(default=ABSENT)
    embedding_model_id: Key = Field(default=ABSENT)
    embedding_provider_id: Key = Field(default=ABSENT)
    embedding_upgrade_declined: Key = Field(default=ABSENT)
    embedding_swap_target: Key = Field(default=ABSENT)
    embedding_swap_backend: Literal["provider", "local"] = Field(default=ABSENT)
    embedding_swap_provider_id: Key = Field(default=ABSENT)
    embedding_swap_source_dim: Annotated[int, Field(ge=1, le=100_000)] = Field(default=ABSENT)
    embedding_swap_target_dim: Annotated[int, Field(ge=1, le=100_000)] = Field(default=ABSENT)
    effectiveDim: Annotated[int, Field(ge=1, le=100_000)] = Field(default=ABSENT)
    suggestionCategories: Palette = Field(default=ABSENT)
    models: ModelOverrides = Field(default=ABSENT)
    # Null where it is read and none was chosen.
    activePackId: Key = Field(default=ABSENT)
    packVariables: dict[Key, Any] = Field(default=ABSENT)

    _are_distinct = field_validator("suggestionCategories")(_distinct)


STORY_SETTINGS_DEFAULTS: dict[str, Any] = {
    "chapterTokenThreshold": 24_000,
    "chapterAutoClose": True,
    "fullChapterInBuffer": False,
    "partialChapterBuffer": 10,
    "protectedBuffer": 10,
    "classifierCadence": 5,
    "classifierContextEntries": 4,
    "piggybackMode": "on",
    "classifierMentionedPlaces": False,
    "embeddingBackend": "local",
    "retrievalBudgets": {
        "entities": 1_200,
        "lore": 1_800,
        "happenings": 1_500,
        "threads": 400,
        "chapters": 600,
    },
    "keywordRetrieval": {
        "mode": "boost",
        "budgetShare": 0.5,
        "scanEntries": 1,
        "cascade": False,
        "cascadeMaxDepth": 2,
    },
    "probe_mode_active": False,
    "composerModesEnabled": True,
    "suggestionsEnabled": True,
    "suggestionCount": 3,
    "translation": {
        "enabled": False,
        "targetLanguage": None,
        "granularToggles": dict.fromkeys(TranslationToggles.model_fields, True),
    },
    "models": {},
    "activePackId": None,
    "packVariables": {},
}


def _palette(*entries: tuple[str, str, str, str]) -> list[dict[str, Any]]:
    return [
        {
            "id": category_id,
            "label": label,
            "promptHint": hint,
            "color": color,
            "enabled": True,
            "order": order,
        }
        for order, (category_id, label, hint, color) in enumerate(entries)
    ]


DEFAULT_SUGGESTION_CATEGORIES: dict[StoryMode, list[dict[str, Any]]] = {
    StoryMode.ADVENTURE: _palette(
        ("cat_action", "Action", "Something the lead does at once.", "amber"),
        ("cat_dialogue", "Dialogue", "Something the lead says to somebody present.", "blue"),
        ("cat_explore", "Explore", "A closer look at the place or a thing in it.", "green"),
        ("cat_inner", "Thought", "What the lead thinks or remembers.", "purple"),
    ),
    StoryMode.CREATIVE: _palette(
        ("cat_event", "Event", "Something that happens to the characters.", "amber"),
        ("cat_dialogue", "Dialogue", "An exchange between characters present.", "blue"),
        ("cat_scene", "Scene", "A change of place or time.", "green"),
        ("cat_twist", "Twist", "A turn that nobody expected.", "purple"),
    ),
}


def default_settings(mode: StoryMode) -> dict[str, Any]:
    """The server's defaults for stories of a mode."""
    return {
        **STORY_SETTINGS_DEFAULTS,
        "composerWrapPov": "first" if mode is StoryMode.ADVENTURE else "third",
        "suggestionCategories": DEFAULT_SUGGESTION_CATEGORIES[mode],
    }


def stored_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are kept: what was not chosen is absent, never null."""
    return {
        key: stored_settings(value) if isinstance(value, dict) else value
        for key, value in settings.items()
        if value is not None
    }


def loaded_settings(stored: Mapping[str, Any], mode: StoryMode) -> dict[str, Any]:
    """Settings as they are used: what a story has, and defaults for what it lacks."""
    return overlay(default_settings(mode), stored, shape_of(StorySettings))
