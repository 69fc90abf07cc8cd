"""The JSON that rows of stories hold: its models, and how it is checked, compared and restored."""

from services.shapes.checking import checked_json, merged
from services.shapes.entries import EntryMeta
from services.shapes.nodes import Fixed, ShapeError, shape_of
from services.shapes.payloads import overlay, same, undo_payload
from services.shapes.states import EMPTY_STATES, STATES

__all__ = [
    "EMPTY_STATES",
    "STATES",
    "EntryMeta",
    "Fixed",
    "ShapeError",
    "checked_json",
    "merged",
    "overlay",
    "same",
    "shape_of",
    "undo_payload",
]
