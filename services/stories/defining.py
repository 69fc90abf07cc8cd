"""What a story must be: its lead, its calendar, where time 0 stands; what its settings begin with.

Source: spec aventuras, story settings shape; scope policy; calendar systems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from db.enums import StoryMode
from db.reading import Reading, Writing
from db.tables import Calendar, World
from services import app_settings, calendars
from services.access import Viewer, hold_row, require_row
from services.errors import Invalid, LimitReached
from services.shapes import (
    Definition,
    StorySettings,
    checked_json,
    default_settings,
    merged,
    needs_lead,
    overlay,
    shape_of,
    stored_settings,
)
from services.text import MAX_LINE, checked_lines, checked_prose, checked_text

Path = tuple[str | int, ...]
# Each part of what a model is told in every prompt.
MAX_PROSE = 50_000
MAX_SETTINGS_BYTES = 64 * 1024
_OF_A_SWAP = "embedding_swap_"
_COLOR = re.compile("#[0-9a-fA-F]{6}")


def checked_style(label: str, prompt_body: str, *path: str | int) -> dict[str, str]:
    """A genre or a tone as it is kept; what a model is told may be blank. Raises Invalid."""
    return {
        "label": checked_text(label, *path, "label", max_length=MAX_LINE),
        "promptBody": checked_prose(prompt_body, *path, "promptBody", max_length=MAX_PROSE),
    }


def checked_identity(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Those of title, description, tags and accent colour that are given, checked.

    Raises Invalid (TEXT_…, COLOR_INVALID) and LimitReached.
    """
    checked = dict(wanted)
    if "title" in wanted:
        checked_text(wanted["title"], "input", "title", max_length=MAX_LINE)
    if "description" in wanted:
        checked_prose(wanted["description"], "input", "description", max_length=MAX_PROSE)
    if "tags" in wanted:
        checked["tags"] = checked_lines(wanted["tags"], "input", "tags")
    color = wanted.get("accent_color")
    if color is not None:
        if not _COLOR.fullmatch(color):
            told = "A colour is # and six hexadecimal digits."
            raise Invalid(told, "COLOR_INVALID", ("input", "accentColor"))
        checked["accent_color"] = color.lower()
    return checked


async def checked_world(reading: Reading, viewer: Viewer, world_id: str | None) -> str | None:
    """The world in which a story is set, if in any. Raises NotFound."""
    if world_id is not None:
        await require_row(reading, viewer, World, world_id, "input", "worldId")
    return world_id


async def hold_calendar(
    writing: Writing, viewer: Viewer, calendar_id: str | None, path: Path
) -> Calendar:
    """The calendar of a story, kept from being deleted meanwhile. Without an id the one that the
    viewer has chosen for new stories. Raises NotFound and Invalid (CALENDAR_REQUIRED).
    """
    if calendar_id is None:
        settings = await app_settings.find_settings(writing, viewer)
        calendar_id = settings.default_calendar_id if settings else None
    if calendar_id is None:
        raise Invalid("Say by which calendar the story counts.", "CALENDAR_REQUIRED", path)
    built_in = calendars.find_built_in(viewer, calendar_id)
    return built_in or await hold_row(writing, viewer, Calendar, calendar_id, *path)


def checked_origin(calendar: Calendar, origin: Any, path: Path) -> dict[str, int]:
    """What time 0 is: a value for each tier of the calendar, and for nothing else.

    Raises Invalid (DATE_INVALID) with the tier.
    """
    system = calendars.system_of(calendar.definition)
    system.values_of(origin, *path)
    for tier in system.definition.tiers:
        if tier.name not in origin:
            told = f"Say which {tier.name} it is when the story begins."
            raise Invalid(told, "DATE_INVALID", (*path, tier.name))
    return dict(origin)


def checked_definition(definition: dict[str, Any], lead_path: Path, *, is_draft: bool) -> None:
    """Refuse what is no definition: of another shape, or without the lead that it needs.

    Raises Invalid (INVALID_SHAPE, LEAD_REQUIRED). A draft has time to find its lead.
    """
    checked_json(Definition, definition, "input", "definition")
    if not is_draft and definition["leadEntityId"] is None and needs_lead(definition):
        raise Invalid(
            "An adventure, and a story that is told as I or you, needs a lead.",
            "LEAD_REQUIRED",
            lead_path,
        )


async def initial_settings(reading: Reading, viewer: Viewer, mode: StoryMode) -> dict[str, Any]:
    """The settings of a new story: what its owner has set up, else the server's defaults."""
    found = default_settings(mode)
    settings = await app_settings.find_settings(reading, viewer)
    if settings is None:
        return stored_settings(found)
    shape = shape_of(StorySettings)
    given = {
        "suggestionCategories": settings.default_suggestion_categories.get(mode),
        "embeddingBackend": settings.embedding_backend,
        "embedding_model_id": settings.embedding_model_id,
        "embedding_provider_id": settings.embedding_provider_id,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    own = overlay(found, {**settings.default_story_settings, **chosen}, shape)
    return stored_settings(own)


def changed_settings(stored: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """Settings with a patch: what is left out stays, null goes back to the default, arrays are
    replaced whole. Raises Invalid (INVALID_SHAPE, FIELD_READ_ONLY) and LimitReached.
    """
    path = ("input", "settings")
    for key in patch if isinstance(patch, dict) else ():
        if key.startswith(_OF_A_SWAP):
            told = "This is written when another model takes over: see embeddingSwapStart."
            raise Invalid(told, "FIELD_READ_ONLY", (*path, key))
    settings = merged(StorySettings, stored, patch, *path)
    try:
        size = len(orjson.dumps(settings))
    except TypeError:
        raise Invalid("This holds what JSON here cannot.", "INVALID_SHAPE", path) from None
    if size > MAX_SETTINGS_BYTES:
        raise LimitReached(f"Settings have {MAX_SETTINGS_BYTES:,} bytes at most.", path=path)
    return settings
