"""The JSON that rows of stories hold: its models, and how it is checked, compared and restored."""

from services.shapes.app_settings import Appearance, Diagnostics
from services.shapes.checking import checked_json, merged
from services.shapes.entries import EntryMeta
from services.shapes.nodes import Fixed, ShapeError, shape_of
from services.shapes.payloads import overlay, same, undo_payload
from services.shapes.states import EMPTY_STATES, MAX_COUNT, STATES
from services.shapes.stories import (
    DEFAULT_SUGGESTION_CATEGORIES,
    DefaultStorySettings,
    Definition,
    StorySettings,
    SuggestionPalettes,
    default_settings,
    loaded_settings,
    needs_lead,
    stored_settings,
)

__all__ = [
    "DEFAULT_SUGGESTION_CATEGORIES",
    "EMPTY_STATES",
    "MAX_COUNT",
    "STATES",
    "Appearance",
    "DefaultStorySettings",
    "Definition",
    "Diagnostics",
    "EntryMeta",
    "Fixed",
    "ShapeError",
    "StorySettings",
    "SuggestionPalettes",
    "checked_json",
    "default_settings",
    "loaded_settings",
    "merged",
    "needs_lead",
    "overlay",
    "same",
    "shape_of",
    "stored_settings",
    "undo_payload",
]
