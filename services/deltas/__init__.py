"""The log of a branch: the only writer of what belongs to branches, and every way back.

Source: spec aventuras, entry mutability and rollback; survival anchor; branch model.
"""

from services.deltas.events import MAX_CHANGES, branch_topic, note_event
from services.deltas.logged import LOGGED, Image, Logged, logged_of
from services.deltas.unlogged import drop_branches, plant_rows, uproot_rows
from services.deltas.writing import (
    CHILDREN,
    Action,
    acting,
    hold_branch,
    new_action_id,
    newest_anchor,
)

__all__ = [
    "CHILDREN",
    "LOGGED",
    "MAX_CHANGES",
    "Action",
    "Image",
    "Logged",
    "acting",
    "branch_topic",
    "drop_branches",
    "hold_branch",
    "logged_of",
    "new_action_id",
    "newest_anchor",
    "note_event",
    "plant_rows",
    "uproot_rows",
]
