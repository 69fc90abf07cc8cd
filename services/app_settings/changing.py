"""Everything of a user's settings but providers and profiles: defaults, looks, diagnostics.

Source: spec aventuras, story defaults; default calendar pointer; default suggestion categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from db.enums import EmbeddingBackend
from db.reading import Writing
from db.tables import AppSettings
from services.access import Viewer
from services.app_settings.holding import hold_settings, write_settings
from services.app_settings.providers import require_provider
from services.calendars import find_calendar
from services.errors import Invalid, NotFound
from services.shapes import (
    Appearance,
    DefaultStorySettings,
    Diagnostics,
    SuggestionPalettes,
    merged,
)
from services.text import MAX_LINE, checked_language, checked_text

# The JSON columns: their model, and the input field.
_SHAPES: dict[str, tuple[type[BaseModel], str]] = {
    "default_story_settings": (DefaultStorySettings, "defaultStorySettings"),
    "default_suggestion_categories": (SuggestionPalettes, "defaultSuggestionCategories"),
    "appearance": (Appearance, "appearance"),
    "diagnostics": (Diagnostics, "diagnostics"),
}


async def update_settings(
    writing: Writing, viewer: Viewer, changes: Mapping[str, Any], expected_version: int | None
) -> AppSettings:
    """Change what is given, by the names of columns, and `onboarding_completed`. Of JSON the keys
    that are given change: null takes one away, and for the whole it takes all away.

    Raises NotFound, Conflict, Invalid (TEXT_…, INVALID_SHAPE, LANGUAGE_INVALID,
    EMBEDDING_PROVIDER_REQUIRED).
    """
    settings = await hold_settings(writing, viewer, expected_version)
    wanted = dict(changes)
    for name, (model, key) in _SHAPES.items():
        if name in wanted:
            patch = wanted[name]
            before = getattr(settings, name)
            wanted[name] = {} if patch is None else merged(model, before, patch, "input", key)
    for name, key in (
        ("default_provider_id", "defaultProviderId"),
        ("embedding_provider_id", "embeddingProviderId"),
    ):
        if wanted.get(name) is not None:
            require_provider(settings, wanted[name], "input", key)
    await _check_calendar(writing, viewer, wanted.get("default_calendar_id"))
    if wanted.get("embedding_model_id") is not None:
        checked_text(wanted["embedding_model_id"], "input", "embeddingModelId", max_length=MAX_LINE)
    if wanted.get("ui_language") is not None:
        checked_language(wanted["ui_language"], "input", "uiLanguage")
    if "onboarding_completed" in wanted:
        wanted["onboarding_completed_at"] = _completed_at(
            settings, is_completed=wanted.pop("onboarding_completed")
        )
    _check_embedding(settings, wanted)
    return await write_settings(writing, settings, wanted)


async def _check_calendar(writing: Writing, viewer: Viewer, calendar_id: str | None) -> None:
    if calendar_id is not None and await find_calendar(writing, viewer, calendar_id) is None:
        raise NotFound("There is no such Calendar for you.", path=("input", "defaultCalendarId"))


def _completed_at(settings: AppSettings, *, is_completed: bool) -> datetime | None:
    """The first time counts."""
    return (settings.onboarding_completed_at or datetime.now(UTC)) if is_completed else None


def _check_embedding(settings: AppSettings, wanted: Mapping[str, Any]) -> None:
    """Who embeds at a provider has one for it."""
    backend = wanted.get("embedding_backend", settings.embedding_backend)
    provider_id = wanted.get("embedding_provider_id", settings.embedding_provider_id)
    if backend == EmbeddingBackend.PROVIDER and provider_id is None:
        raise Invalid(
            "Say which provider embeds.",
            "EMBEDDING_PROVIDER_REQUIRED",
            ("input", "embeddingProviderId"),
        )
